"""cuda_mutants.py --lathe LATHE --driver LIBCUDA --work FOLDER [--graph small|rows|runs|large|warpgroups|turned] [--each N] [--least SHARE] [--ptxas PTXAS]

Who tests the emulated driver: damages the PTX of some 20 kernels, one thing at a time, and looks whether the emulator says so or the
results do. What is damaged: a barrier, fence or wait is removed; the mask of a shuffle loses a lane; a test that branches ahead is removed;
an offset of an address, an added constant or a comparison's is one more or less. Which kernels they are --graph says: products, convolutions,
reductions and what is elementwise (small); rows that are kept, moves, scatters, windows (rows); sorts and running sums (runs); those that only many elements have (large); products
of warpgroups, in an image for sm_90a (warpgroups, turned).
A mutant counts if ptxas takes it and makes other
machine code of it (without ptxas: always), and if it is not proved to compute the same. Prints those that nobody finds;
fails where fewer than SHARE of them are found.
"""
import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e", "Inputs"))
from cuda_graph import (axes, bits, cast, concatenate, conv, elementwise, feeds, given, integers, node, norm, product, product_of_bytes,  # noqa: E402
                        reduce, scatter, softmax, transpose, update, windows, write)  # fmt: skip


def small(out):
    product("tile", 40, 24, 36, bias=True)
    product("tile_across", 36, 20, 33, ta=True, tb=True)
    product("tile_any", 33, 16, 40, free=0)
    product("row", 1, 96, 40, bias=True)
    product("row_across", 1, 80, 33, tb=True)
    product("column", 41, 96, 1)
    product("batch", 32, 10, 21, batch=(2,))
    sides = [given(f"half_{s}", d, "DT_HALF") for s, d in (("p", [40, 64]), ("q", [64, 36]))]
    node("half", "MatMul", sides, T="type: DT_HALF", transpose_a="b: false", transpose_b="b: false")
    cast("half_out", "half", "DT_HALF", "DT_FLOAT")
    conv("conv", [1, 7, 9, 3], [3, 3], 16)
    conv("conv_wide", [1, 5, 5, 16], [3, 3], 20, stride=2)
    conv("conv_bare", [1, 6, 6, 4], [1, 1], 12, padding="VALID")
    softmax("rows", [5, 70])
    softmax("rows_long", [2, 1152])
    softmax("rows_any", [2, 70000], free=1)
    reduce("all", "Sum", [3, 500], [0, 1])
    reduce("rows_sum", "Sum", [5, 100], [1])
    reduce("columns", "Sum", [70, 40], [0])
    reduce("middle", "Max", [3, 70, 34], [1])
    transpose("moved", [36, 45], [1, 0])
    transpose("moved_around", [2, 33, 40], [0, 2, 1], around=True)
    elementwise("plain", [2, 127, 63])
    elementwise("narrow", [3, 301])
    write(out)


def rows(out):
    softmax("kept", [5, 136])
    softmax("kept_block", [2, 1152])
    norm("kept_norm", [3, 384], [1])
    reduce("columns_four", "Sum", [70, 72], [0])
    concatenate("joined", [[5, 3], [5, 4]], 1)
    update("updated", [6, 7, 9], [2, 3, 4], [100, 2, -1], free=0)
    bits("bits", [3, 10], "DT_DOUBLE", "DT_INT32")
    scatter("scatter", 12, [36], 90)
    scatter("scatter_narrow", 20, [3], 90, "TensorScatterMax")
    scatter("scatter_wide", 9, [300], 100)
    x = given("pool_x", [1, 9, 8, 3])
    t = windows("MaxPool", [3, 3], 2)
    y = node("pool_y", "MaxPool", [x], **t)
    node("select", "MaxPoolGrad", [x, y, node("select_y", "Sin", [y], T="type: DT_FLOAT")], **t)
    rows_of = given("gather_x", [7, 3, 8], free=1)
    axis = node("gather_axis", "Const", dtype="type: DT_INT32", value="tensor { dtype: DT_INT32 tensor_shape {} int_val: 0 }")
    node("gather", "GatherV2", [rows_of, integers("gather_at", [5], 0, 7), axis], Tparams="type: DT_FLOAT", Tindices="type: DT_INT32", Taxis="type: DT_INT32")
    w = given("wide_w", [2, 3, 4, 2])
    node("wide", "DepthwiseConv2dNative", [given("wide_x", [2, 7, 6, 4], free=0), w], **windows("Depthwise", [2, 3], 1))
    write(out)


def runs(out):
    t, i = {"T": "type: DT_FLOAT"}, {"Tidx": "type: DT_INT32"}
    one = node("one", "Const", dtype="type: DT_INT32", value="tensor { dtype: DT_INT32 tensor_shape {} int_val: 1 }")

    def sort(name, dims):
        at = integers(name + "_x", dims, 0, 60)
        node(name, "XlaKeyValueSort", [at, given(name + "_y", dims)], K="type: DT_INT32", V="type: DT_FLOAT")
        for k, kind in enumerate(["DT_INT32", "DT_FLOAT"]):
            node(f"{name}_{k}", "Identity", [f"{name}:{k}"], T=f"type: {kind}")

    def scan(name, dims, reverse=False, exclusive=False):
        node(name, "Cumsum", [given(name + "_x", dims), one], exclusive=f"b: {str(exclusive).lower()}", reverse=f"b: {str(reverse).lower()}", **t, **i)

    sort("sort_few", [7, 20])
    sort("sort", [2, 300])
    sort("sort_long", [2, 2500])
    # a merge ends with either half: one line has its largest element in the first, the other in the second
    feeds["sort_long_x"][0, 7] = feeds["sort_long_x"][1, -7] = 60
    scan("scan", [5, 150])
    scan("scan_four", [3, 420], exclusive=True)
    scan("scan_block", [2, 2500], reverse=True)
    scan("scan_parts", [1, 4200], reverse=True, exclusive=True)
    scan("scan_columns", [3, 40, 7])
    # several lines a block, a block for each, real lines, which are put together from half as many complex numbers
    for name, kind, dims in [("fft_few", "FFT", [7, 48]), ("fft", "FFT", [2, 640])]:
        parts = [given(f"{name}_{part}", dims) for part in ("re", "im")]
        whole = node(name + "_x", "Complex", parts, T="type: DT_FLOAT", Tout="type: DT_COMPLEX64")
        node(name, kind, [whole], Tcomplex="type: DT_COMPLEX64")
    complexes = {"Treal": "type: DT_FLOAT", "Tcomplex": "type: DT_COMPLEX64"}
    spectrum = node("rfft", "RFFT", [given("rfft_x", [3, 400]), axes("rfft_n", [400])], **complexes)
    node("irfft", "IRFFT", [spectrum, axes("irfft_n", [400])], **complexes)
    write(out)


def large(out):
    """What threads with several vectors, and squares of 64x64, are for, with edges."""
    t = {"T": "type: DT_FLOAT"}
    transpose("square", [1028, 1024], [1, 0])
    node("two", "Sub", [given("two_x", [2113, 1024]), given("two_r", [1024])], **t)
    for name, size, channels in ("several", [18, 13, 9], 64), ("one", [4, 15, 14], 60):
        w = given(name + "_w", [3, 3, channels, 1])
        node(name, "DepthwiseConv2dNative", [given(name + "_x", [size[0] * (14 if name == "several" else 1), *size[1:], channels]), w],
             **windows("Depthwise", [3, 3], 1))  # fmt: skip
    node("most", "MaxPool", [given("most_x", [5, 13, 14, 64])], **windows("MaxPool", [3, 2], 1))
    write(out)


def warpgroups(out):
    """Tiles of 64x64 and 128x256, of what is copied and of what is rounded."""
    product("small", 64, 136, 120, batch=(50,), dtype="DT_HALF")
    product("small_across", 120, 40, 64, True, True, batch=(50,))
    product("wide", 40, 200, 248, batch=(120,), dtype="DT_HALF")
    # what is beyond the depth meets zeros of the other operand, which only an infinite number shows
    for name in "small", "wide":
        feeds[name + "_a"][:, 0, -1] = feeds[name + "_b"][:, -1, 0] = np.inf
    write(out)


def turned(out):
    """Tiles of 64x64, 128x64 and 128x256, of what is turned on its way, bytes and rounded words; the tile of 64 columns is of what is copied."""
    product_of_bytes("bytes", 72, 144, 112, False, False, 24)
    product("thin", 12288, 456, 56, dtype="DT_HALF")
    product("wide_rounded", 64, 136, 256, True, True, batch=(120,))
    write(out)


GRAPHS = {f.__name__: f for f in (small, rows, runs, large, warpgroups, turned)}
# what is around the kernels of `rows` and `runs`: tests of indices, none of which is wrong
AROUND = re.compile(r"_(check|loop|size|pool)$")


def entriesOf(lines):
    """(name, first line, line behind the last) of each kernel."""
    found, name, start = [], None, 0
    for i, line in enumerate(lines):
        if m := re.search(r"\.entry (\w+)", line):
            name, start = m.group(1), i
        if line == "}" and name:
            found.append((name, start, i + 1))
            name = None
    return found


def mutants(lines, start, end):
    """(kind, line number, new line or None to remove it)"""
    labels = {m.group(1): i for i in range(start, end) if (m := re.match(r"(\$\w+):", lines[i]))}
    for i in range(start, end):
        line = lines[i]
        code = line.strip()
        if re.match(r"(bar|barrier)(\.cta)?(\.warp)?\.sync", code):
            yield "barrier", i, None
        elif re.match(r"(membar|fence)\b", code):
            yield "fence", i, None
        elif code.startswith("cp.async.wait"):
            yield "wait", i, None
        elif re.match(r"wgmma\.(fence|commit_group)", code):
            yield "fence of products", i, None
        elif re.match(r"wgmma\.wait_group\.sync\.aligned \d", code):
            yield "wait for products", i, re.sub(r"\d;$", lambda m: f"{int(m[0][0]) + 1};", line)
        elif code.startswith("shfl.sync"):
            yield "mask", i, re.sub(r"-1;$", "-5;", line)
        elif m := re.match(r"@!?%p\d+ bra\S*\s+(\$\w+);", code):
            if labels.get(m.group(1), 0) > i:
                yield "test", i, None
        elif re.match(r"(ld|st)\.(global|shared)", code):
            size = int(re.search(r"[bfsu](\d+)\s", code).group(1)) // 8
            for step in (size, -size):
                if m := re.search(r"\[(%\w+)(?:\+(-?\d+))?\]", line):
                    offset = int(m.group(2) or "0") + step
                    yield "index", i, line[: m.start()] + f"[{m.group(1)}+{offset}]" + line[m.end() :]
        elif m := re.match(r"(\s*(?:add\.[su](?:32|64)|setp\.\w+\.[su](?:32|64))\s.*, )(-?\d+);$", line):
            for step in (1, -1):
                yield "constant", i, f"{m.group(1)}{int(m.group(2)) + step};"


def proved(lines, start, kernel, kind, at, new):
    """Why a mutant computes the same as the kernel, "" if nothing is known."""
    threads = next(int(m.group(1)) for l in lines[start:] if (m := re.match(r"\.reqntid (\d+)", l.strip())))
    numbers = {m.group(1) for l in lines[start:at] if (m := re.match(r"\s*mov\.u32\s+(%r\d+), %tid\.x;", l))}
    for line in lines[start:at]:  # the same in 64 bits and back
        if (m := re.match(r"\s*cvt\.(?:u64\.u32|u32\.u64)\s+(%\w+), (%\w+);", line)) and m.group(2) in numbers:
            numbers.add(m.group(1))
    setp = re.match(r"\s*setp\.gt\.u32\s+(%p\d+), (%r\d+), (\d+);", lines[at - (kind == "test")])
    if setp and setp.group(2) in numbers and int(setp.group(3)) >= threads - 1:
        if kind == "constant" and int(re.search(r"(\d+);$", new).group(1)) >= threads - 1:
            return "no thread has a larger number"
        if kind == "test" and re.match(rf"\s*@{setp.group(1)} bra", lines[at]):
            return "no thread has a larger number"
    bound = re.match(r"\s*setp\.lt\.u64\s.*, (\d+);", lines[at])
    limit = int(bound.group(1)) if bound else 1
    if kind == "constant" and kernel.endswith("_dot_tile") and limit % 4 == 0 and new.endswith(f" {limit + 1};"):
        return "steps are loaded by four, from multiples of four on"
    doubled = {m.group(1) for l in lines[start:at] + lines[at : at + 6] if (m := re.match(r"\s*shl\.b64\s+%rd\d+, (%rd\d+), 1;", l))}
    if kind == "constant" and kernel.endswith("_sort_merge") and (m := re.match(r"\s*setp\.(gt|lt)\.u64\s+%p\d+, (%rd\d+), (\d+);", lines[at])):
        both = int(m.group(3)), int(re.search(r"(\d+);$", new).group(1))
        differs = max(both) if m.group(1) == "gt" else min(both)  # the number of which they say different things
        if m.group(2) in doubled and differs & (differs - 1):
            return "runs are powers of two"
    end = next(i for i in range(at, len(lines)) if lines[i] == "}")

    def uses(register):
        return [line for line in lines[at + 1 : end] if re.search(re.escape(register) + r"\b", line)]

    shared = re.match(r"\s*add\.s64\s+(%rd\d+), (%rd\d+), (\d+);", lines[at])
    if kind == "constant" and shared and int(shared.group(3)) % 16 == 0 and new.endswith(f" {int(shared.group(3)) + 1};"):
        aligned = any(re.match(rf"\s*mov\.b64\s+{shared.group(2)}, \w+_(launched|shared);", line) for line in lines[start:at])
        if aligned and all(re.match(r"\s*shr\.u64\s.*, 4;", line) for line in uses(shared.group(1))):
            return "descriptors hold sixteenths of an address"
    exponent = re.match(r"\s*add\.s32\s+(%r\d+), %r\d+, -1262485504;", lines[at])  # less the bits of 1.5 * 2^23
    if kind == "constant" and exponent:
        if len(uses(exponent.group(1))) == 1 and re.match(r"\s*shr\.s32\s.*, 1;", uses(exponent.group(1))[0]):
            return "half an exponent: a factor that is exact, and the other one has the rest"
    last = re.match(r"\s*setp\.gt\.u64\s+(%p\d+), %rd\d+, (\d+);", lines[at])
    if kind == "constant" and kernel.endswith("_sort_merge") and last and new.endswith(f" {int(last.group(2)) + 1};"):
        length = int(last.group(2)) + 1
        guard = next((i for i in range(at, len(lines)) if re.match(rf"\s*@{last.group(1)} bra", lines[i])), at)
        if length & (length - 1) and any(re.match(rf"\s*min\.s64\s.*, {length};", line) for line in lines[guard : guard + 8]):
            return "a place behind the line, which shared memory has, takes what is behind both runs, and nobody reads it"
    if kind == "barrier":
        for line in reversed(lines[start:at]):
            if re.match(r"\$\w+:", line) or re.search(r"\b(ld\.(shared|global)|st|atom|red|cp)\.(?!.*\.nc\.)", line):
                break
            if re.match(r"\s*bar(rier)?(\.cta)?\.sync", line):
                return "nothing was read or written since the barrier before this one"
    if kind == "test" and re.search(r"and\.b64 .*, -4294967296;$", lines[at - 2]):
        return "division of what has 32 bits, which is all that there is here"
    places = re.match(r"\s*setp\.lt\.u32\s.*, (\d+);$", lines[at])
    if kind == "constant" and kernel.endswith("_scatter_owned") and places and new.endswith(f" {int(places.group(1)) + 1};"):
        return "a kernel before this one fails where an index is none of so many places"
    return ""


def machineCode(ptxas, arch, head, body, work):
    """None if ptxas refuses the kernel; without ptxas something of its own."""
    text = "\n".join(head + body) + "\n"
    if not ptxas:
        return hashlib.sha256(text.encode()).digest()
    file, out = os.path.join(work, "one.ptx"), os.path.join(work, "one.cubin")
    with open(file, "w") as f:
        f.write(text)
    if subprocess.run([ptxas, "-arch=" + arch, file, "-o", out], capture_output=True).returncode:
        return None
    with open(out, "rb") as f:
        return f.read()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--lathe", required=True)
    p.add_argument("--driver", required=True)
    p.add_argument("--work", required=True)
    p.add_argument("--graph", default="small", choices=sorted(GRAPHS))
    p.add_argument("--each", type=int, default=3, help="of a kind and kernel, at most")
    p.add_argument("--least", type=float, default=0.95)
    p.add_argument("--ptxas", default=os.environ.get("LATHE_PTXAS") or shutil.which("ptxas"))
    p.add_argument("--only", default="", help="kernels with such names")
    a = p.parse_args()
    os.makedirs(a.work, exist_ok=True)
    stem = os.path.join(a.work, "graph")
    own = a.graph in ("warpgroups", "turned")
    arch = "sm_90a" if own else "sm_80"
    GRAPHS[a.graph](stem)
    subprocess.run([a.lathe, "compile", stem + ".pbtxt", "--backend", "cuda", "--sanitize", "address", "-o", stem, "--emit", "so,ptx",
                    *(["--arch", arch, "--precision", "tf32"] if own else [])], check=True, capture_output=True)
    with open(f"{stem}.{arch}.ptx" if own else stem + ".ptx") as f:
        lines = f.read().splitlines()
    others = [name for name, start, end in entriesOf(lines) if own and not any("wgmma.mma_async" in line for line in lines[start:end])]
    if others:
        sys.exit("no products of warpgroups, of which other sizes are: " + ", ".join(others))
    changed = os.path.join(a.work, "changed.ptx")

    def run(text, seed):
        """What comes out, or None where the emulator found something."""
        with open(changed, "w") as f:
            f.write("\n".join(text) + "\n")
        out = os.path.join(a.work, "out.npz")
        env = dict(os.environ, LATHE_CUDA_DRIVER=a.driver, LATHE_EMU_CHECKS="init,race", LATHE_EMU_SEED=str(seed), LATHE_EMU_TEXT=changed,
                   LATHE_EMU_LOG=os.path.join(a.work, "findings"), LATHE_EMU_MAX_BRANCHES="2000000", LATHE_CUDA_GRAPHS="0", LATHE_EMU_ARCH="90" if own else "80")
        try:
            r = subprocess.run([a.lathe, "run", stem + ".so", "--feeds", stem + ".npz", "--out", out], capture_output=True, env=env,
                               timeout=180)
        except subprocess.TimeoutExpired:
            return None
        if r.returncode:
            return None
        with np.load(out) as npz:
            return {k: npz[k].tobytes() for k in npz.files}

    want = run(lines, 1)
    if not want:
        sys.exit("the kernels as they are fail")
    head = [l for l in lines[: next(i for i, l in enumerate(lines) if ".entry" in l)]]
    total = found = equal = refused = same = 0
    for name, start, end in entriesOf(lines):
        if not re.search(a.only, name) or (a.graph in ("rows", "runs") and AROUND.search(name)):
            continue
        whole = machineCode(a.ptxas, arch, head, lines[start:end], a.work)
        kinds = {}
        for kind, at, new in mutants(lines, start, end):
            kinds.setdefault(kind, []).append((at, new))
        here = missed = 0
        for kind, all in sorted(kinds.items()):
            picked = all[:: max(1, -(-len(all) // a.each))]
            for at, new in picked:
                if proved(lines, start, name, kind, at, new):
                    same += 1
                    continue
                text = lines[:at] + ([] if new is None else [new]) + lines[at + 1 :]
                code = machineCode(a.ptxas, arch, head, text[start : end - (new is None)], a.work)
                if code is None or code == whole:
                    refused, equal = refused + (code is None), equal + (code == whole)
                    continue
                here += 1
                if any(run(text, seed) != want for seed in (1, 2, 3)):
                    found += 1
                else:
                    missed += 1
                    instead = new.strip() if new else "nothing"
                    print(f"nobody finds: {name}, {kind}, line {at + 1}: {lines[at].strip()} -> {instead}", flush=True)
        total += here
        print(f"{name}: {here} mutants, {here - missed} found", flush=True)
    print(f"{total} mutants, {found} found, {100 * found / max(1, total):.1f} %; "
          f"{equal} have the same machine code, {same} compute the same, {refused} are no PTX")
    return found < a.least * total or not total


if __name__ == "__main__":
    sys.exit(main())
