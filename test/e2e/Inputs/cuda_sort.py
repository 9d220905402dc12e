"""cuda_sort.py OUT SEED: OUT.pbtxt, sorts, the largest of lines and running reductions of random types and sizes around those where their kernels
change, and OUT.npz, values for their inputs: many are equal, some are NaN or infinite. OUT.kernels: how many of their own there should be at least."""
import sys

import numpy as np
from cuda_graph import feeds, node, shape, write

random = np.random.default_rng(int(sys.argv[2]))
TYPES = {"DT_FLOAT": np.float32, "DT_DOUBLE": np.float64, "DT_HALF": np.float16, "DT_INT32": np.int32, "DT_INT64": np.int64,
         "DT_INT16": np.int16, "DT_UINT16": np.uint16, "DT_INT8": np.int8, "DT_UINT8": np.uint8, "DT_COMPLEX64": np.complex64}  # fmt: skip
own = 0


def given(name, value, dtype, free=()):
    feeds[name] = value.astype(TYPES[dtype])
    return node(name, "Placeholder", dtype=f"type: {dtype}", shape=shape([-1 if i in free else d for i, d in enumerate(value.shape)]))


def scalar(name, value):
    return node(name, "Const", dtype="type: DT_INT32", value=f"tensor {{ dtype: DT_INT32 tensor_shape {{}} int_val: {value} }}")


def pick(*of):
    return of[int(random.integers(len(of)))]


def keys(dims, dtype):
    """Few that differ, and where they can be, infinities and NaN."""
    if np.issubdtype(TYPES[dtype], np.integer):
        return random.integers(np.iinfo(TYPES[dtype]).min, 5, dims) if random.integers(2) else random.integers(0, 9, dims)
    v = np.round(random.standard_normal(dims) * pick(2, 1000))
    return np.where(random.random(dims) < 0.05, pick(-np.inf, np.inf, np.nan, -0.0), v)


lengths = [2, 31, 33, 100, 128, 300, 512, 777, 2047, 2048, 2049, 3000, 4096, 4097, 9001]
for i, dtype in enumerate([t for t in TYPES if t != "DT_COMPLEX64"]):
    name, n = f"top_{i}", pick(*lengths)
    k = max(1, min(n, pick(1, 5, 64, 65, 512, 513, n - 1, n)))
    lines = pick([], [1], [3], [2, 3]) if n > 300 else pick([7], [40], [3, 5])
    free = [d for d in range(len(lines) + 1) if random.integers(3) == 0]
    x = given(name + "_x", keys([*lines, n], dtype), dtype, free)
    own += n > 32 or len(lines) in free
    index = pick("DT_INT32", "DT_INT64")
    node(name, "TopKV2", [x, scalar(name + "_k", k)], sorted="b: true", T=f"type: {dtype}", Tk="type: DT_INT32", index_type=f"type: {index}")
    for output, kind in [(0, dtype), (1, index)]:
        if output == i % 2 or random.integers(3):  # else it is nobody's
            node(f"{name}_{output}", "Identity", [f"{name}:{output}"], T=f"type: {kind}")

for i, dtype in enumerate(["DT_FLOAT", "DT_INT32", "DT_DOUBLE", "DT_INT8", "DT_INT64", "DT_UINT16"]):
    name, n, lines = f"pairs_{i}", pick(*lengths), pick([], [1], [3], [2, 3])
    x = given(name + "_x", random.integers(0, 90, [*lines, n]), dtype)
    own += 1
    other = pick("DT_FLOAT", "DT_INT8", "DT_COMPLEX64", "DT_INT64")
    node(name, "XlaKeyValueSort", [x, given(name + "_y", random.integers(-100, 100, [*lines, n]), other)], K=f"type: {dtype}", V=f"type: {other}")
    node(name + "_keys", "Identity", [name], T=f"type: {dtype}")
    node(name + "_with", "Identity", [name + ":1"], T=f"type: {other}")

# of lengths that are known at run time only, around powers of two and where there is nothing to merge
for i, (n, lines) in enumerate([(0, [2]), (1, [3]), (2, []), (5, [2]), (1024, []), (1025, [2]), (2600, [])]):
    dtype = pick("DT_FLOAT", "DT_INT32", "DT_INT64", "DT_INT8", "DT_HALF")
    own += 1
    node(f"pairs_any_{i}", "XlaSort", [given(f"pairs_any_{i}_x", keys([*lines, n], dtype), dtype, [len(lines)])], T=f"type: {dtype}")

for i, (op, dtype) in enumerate([("Cumsum", t) for t in TYPES] + [("Cumprod", "DT_FLOAT"), ("Cumprod", "DT_INT32"), ("CumulativeLogsumexp", "DT_FLOAT"),
                                 ("CumulativeLogsumexp", "DT_DOUBLE"), ("Cumprod", "DT_DOUBLE")]):  # fmt: skip
    name, n = f"{'exact' if 'INT' in dtype else 'product' if op == 'Cumprod' else 'half' if dtype == 'DT_HALF' else 'run'}_{i}", pick(*lengths, 20011)
    dims = pick([n], [n], [3, n], [n, 3], [2, n, 5], [40, n // 20 + 1], [n // 20 + 1, 300])
    axis = max(range(len(dims)), key=lambda d: dims[d])
    v = random.integers(-100, 100, dims) if "INT" in dtype else random.standard_normal(dims)
    v = 1 + v / 1000 if op == "Cumprod" and "INT" not in dtype else np.abs(v) if dtype.startswith("DT_U") or dtype == "DT_HALF" else v
    v = v / 100 if dtype == "DT_HALF" else v + 1j * v[::-1] if dtype == "DT_COMPLEX64" else v
    x = given(name + "_x", v, dtype, (0,) if len(dims) > 1 and random.integers(3) == 0 else ())
    own += dims[axis] > 31 or axis + 1 < len(dims)
    node(name, op, [x, scalar(name + "_axis", axis)], T=f"type: {dtype}", Tidx="type: DT_INT32", exclusive=f"b: {pick('true', 'false')}",
         reverse=f"b: {pick('true', 'false')}")  # fmt: skip
write(sys.argv[1])
with open(sys.argv[1] + ".kernels", "w", encoding="utf-8") as f:
    f.write(f"{own}\n")
