"""cuda_mutants.py --lathe LATHE --driver LIBCUDA --work FOLDER [--arch sm_90a] [--each N] [--least SHARE] [--ptxas PTXAS]

Who tests the emulated driver: damages the PTX of some 20 kernels, one thing at a time, and looks whether the emulator says so or the
results do. What is damaged: a barrier, fence or wait is removed; the mask of a shuffle loses a lane; a test that branches ahead is removed;
an offset of an address, an added constant or a comparison's is one more or less. With --arch sm_90a the kernels are products of warpgroups.
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
from cuda_graph import cast, conv, elementwise, feeds, given, node, product, reduce, softmax, transpose, write  # noqa: E402


def graph(out):
    product("tile", 40, 24, 36, bias=True)
    product("tile_across", 36, 20, 33, ta=True, tb=True)
    product("tile_any", 33, 16, 40, free=0)
    product("row", 1, 96, 40, bias=True)
    product("row_across", 1, 80, 33, tb=True)
    product("column", 41, 96, 1)
    product("batch", 17, 10, 21, batch=(2,))
    sides = [given(f"half_{s}", d, "DT_HALF") for s, d in (("p", [40, 64]), ("q", [64, 36]))]
    node("half", "MatMul", sides, T="type: DT_HALF", transpose_a="b: false", transpose_b="b: false")
    cast("half_out", "half", "DT_HALF", "DT_FLOAT")
    conv("conv", [1, 7, 9, 3], [3, 3], 16)
    conv("conv_wide", [1, 5, 5, 16], [3, 3], 20, stride=2)
    conv("conv_bare", [1, 6, 6, 4], [1, 1], 12, padding="VALID")
    softmax("rows", [5, 70])
    softmax("rows_long", [2, 1200])
    softmax("rows_any", [2, 9000], free=1)
    reduce("all", "Sum", [3, 500], [0, 1])
    reduce("rows_sum", "Sum", [5, 100], [1])
    reduce("columns", "Sum", [70, 40], [0])
    reduce("middle", "Max", [3, 70, 34], [1])
    transpose("moved", [36, 45], [1, 0])
    transpose("moved_around", [2, 33, 40], [0, 2, 1], around=True)
    elementwise("plain", [2, 127, 63])
    elementwise("narrow", [3, 301])
    write(out)


def warpgroups(out):
    """Tiles of 64x64 and 128x256, of what is copied and of what is rounded."""
    product("small", 64, 136, 72, batch=(25,), dtype="DT_HALF")
    product("small_across", 72, 40, 64, True, True, batch=(25,))
    product("wide", 40, 200, 248, batch=(120,), dtype="DT_HALF")
    write(out)


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
    p.add_argument("--arch", default="sm_80", choices=["sm_80", "sm_90a"])
    p.add_argument("--each", type=int, default=3, help="of a kind and kernel, at most")
    p.add_argument("--least", type=float, default=0.95)
    p.add_argument("--ptxas", default=os.environ.get("LATHE_PTXAS") or shutil.which("ptxas"))
    p.add_argument("--only", default="", help="kernels with such names")
    a = p.parse_args()
    os.makedirs(a.work, exist_ok=True)
    stem = os.path.join(a.work, "graph")
    own = a.arch != "sm_80"
    (warpgroups if own else graph)(stem)
    subprocess.run([a.lathe, "compile", stem + ".pbtxt", "--backend", "cuda", "--sanitize", "address", "-o", stem, "--emit", "so,ptx",
                    *(["--arch", a.arch, "--precision", "tf32"] if own else [])], check=True, capture_output=True)
    with open(f"{stem}.{a.arch}.ptx" if own else stem + ".ptx") as f:
        lines = f.read().splitlines()
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
                               timeout=60)
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
        if not re.search(a.only, name):
            continue
        whole = machineCode(a.ptxas, a.arch, head, lines[start:end], a.work)
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
                code = machineCode(a.ptxas, a.arch, head, text[start : end - (new is None)], a.work)
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
