"""cuda_fft.py OUT SEED: OUT.pbtxt, Fourier transforms of random types, kinds and lengths around those where their kernels change, and OUT.npz,
values for their inputs. OUT.kernels: how many of their own there should be."""
import sys

import numpy as np
from cuda_graph import axes, feeds, node, shape, write

random = np.random.default_rng(int(sys.argv[2]))
own = 0


def pick(*of):
    return of[int(random.integers(len(of)))]


def smooth(n):
    for p in (2, 3, 5, 7, 11, 13):
        while n % p == 0:
            n //= p
    return n == 1


def transform(name, kind, dims, lines, double):
    """Of the last sizes `dims`, of so many lines; those of them that are known at run time only where there is one dimension."""
    last = dims[-1] // 2 + 1 if kind.startswith("IR") else dims[-1]
    sizes = [*lines, *dims[:-1], last]
    x = random.standard_normal(sizes)
    if not kind.startswith("R"):
        x = x + 1j * random.standard_normal(sizes)
    if kind.startswith("IR"):  # of a real signal's spectrum; what is no part of one is not looked at
        x = np.fft.rfftn(random.standard_normal([*lines, *dims]), axes=range(len(lines), len(sizes)))
    real, whole = ("DT_DOUBLE", "DT_COMPLEX128") if double else ("DT_FLOAT", "DT_COMPLEX64")
    dtype = real if kind.startswith("R") else whole
    feeds[name + "_x"] = x.astype({"DT_FLOAT": "f4", "DT_DOUBLE": "f8", "DT_COMPLEX64": "c8", "DT_COMPLEX128": "c16"}[dtype])
    free = [d for d in range(len(lines)) if len(dims) == 1 and random.integers(3) == 0]
    node(name + "_x", "Placeholder", dtype=f"type: {dtype}", shape=shape([-1 if d in free else s for d, s in enumerate(x.shape)]))
    if kind.startswith(("FFT", "IFFT")):
        return node(name, kind, [name + "_x"], Tcomplex=f"type: {whole}")
    return node(name, kind, [name + "_x", axes(name + "_n", dims)], Treal=f"type: {real}", Tcomplex=f"type: {whole}")


lengths = [8, 16, 17, 21, 32, 45, 64, 100, 121, 128, 169, 256, 400, 512, 1000, 1023, 1024, 2048]
for i, n in enumerate(random.permutation(lengths)[:9].tolist()):
    for kind in random.permutation(["FFT", "IFFT", "RFFT", "IRFFT"])[:2]:
        double = random.integers(4) == 0
        lines = pick([], [1], [3], [2, 3]) if n > 300 else pick([7], [40], [3, 5], [])
        transform(f"{'double' if double else 'single'}_{kind}_{i}", kind, [n], lines, double)
        count = n // 2 if kind in ("RFFT", "IRFFT") and n % 2 == 0 else n
        own += n >= 16 and smooth(count) and count * (32 if double else 16) < 48000
# lines that are cut, of a length with a large prime factor among them, and several dimensions
for i, n in enumerate([4096, 6000, 17000 if random.integers(2) else 8190, 2 * 10007]):
    kind = pick("FFT", "IFFT", "RFFT", "IRFFT")
    double = random.integers(3) == 0
    transform(f"{'double' if double else 'single'}_long_{i}", kind, [n], pick([], [2]), double)
    own += 2 * (n != 2 * 10007)
for i, kind in enumerate(["FFT2D", "IFFT2D", "RFFT2D", "IRFFT2D", "FFT3D", "IFFT3D", "RFFT3D", "IRFFT3D"]):
    dims = [pick(1, 2, 5, 16, 17, 24, 33) for _ in range(2 if "2D" in kind else 3)]
    double = random.integers(3) == 0
    transform(f"{'double' if double else 'single'}_dims_{i}", kind, dims, pick([], [3], [2, 2]), double)
write(sys.argv[1])
with open(sys.argv[1] + ".kernels", "w", encoding="utf-8") as f:
    f.write(f"{own}\n")
