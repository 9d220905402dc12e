"""machine_code.py [options] FILE.ptx...: what ptxas makes of kernels for a device.

Of each kernel: threads of a block, registers, bytes of shared memory, bytes spilled, warps that are resident on a multiprocessor, and, of products
and convolutions on SIMT units, the share of multiply-adds among the instructions of the inner loop (where nvdisasm is found). Fails where a kernel
of a product, a convolution or of rows spills, or where the loop of one of the former two has a smaller share than --ffma says. With --golden FILE the figures
are compared with those that the file has of this version of ptxas, or written there (--update); of other versions nothing is expected.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from os import path

from tensor_pipes import sassOf

WARP, REGISTERS, MOST_WARPS, MOST_BLOCKS = 32, 65536, 64, 32  # of a multiprocessor, from sm_80 on
SHARED = {"sm_80": 164, "sm_90": 228, "sm_100": 228}  # KiB of a multiprocessor
RESERVED = 1024  # bytes of a block
# what must not spill
KEPT_IN_REGISTERS = re.compile(r"_(tile|mma|skinny|kept|team|columns|scan|merge)$")
SIMT_TILE = re.compile(r"_(dot|dot_general|conv)_tile$")


def residentWarps(arch, threads, registers, shared):
    warps = -(-threads // WARP)
    each = -(-registers * WARP // 256) * 256 * warps
    blocks = min(MOST_BLOCKS, MOST_WARPS // warps, REGISTERS // max(1, each), SHARED[arch] * 1024 // (shared + RESERVED))
    return blocks * warps


def multiplyAdds(lines):
    """The share of the loop with the most of them, in per cent; None if none is that of a tile."""
    labels = {label: i for i, (label, _, _) in enumerate(lines) if label}
    best = (64, None)  # loops of epilogues have fewer
    for i, (_, op, operands) in enumerate(lines):
        if not op or not op.startswith("BRA"):
            continue
        target = next((labels[l] for l in re.findall(r"\.L_x_\w+", operands) if l in labels), None)
        if target is None or target > i:
            continue
        body = [o for _, o, _ in lines[target : i + 1] if o]
        count = sum(o.startswith(("FFMA", "DFMA")) for o in body)
        if count > best[0]:
            best = (count, round(100 * count / len(body)))
    return best[1]


def figures(file, arch, ptxas, nvdisasm):
    """{kernel: its figures}"""
    with tempfile.TemporaryDirectory() as folder:
        cubin = path.join(folder, "cubin")
        log = subprocess.run([ptxas, "-arch=" + arch, "-v", file, "-o", cubin], check=True, capture_output=True, text=True).stderr
        sass = subprocess.run([nvdisasm, "-c", cubin], check=True, capture_output=True, text=True).stdout if nvdisasm else ""
    with open(file, encoding="utf-8") as f:
        threads = dict(re.findall(r"\.entry (\w+)\([^{]*?\.reqntid (\d+)", f.read()))
    functions, found, name = sassOf(sass), {}, None
    for line in log.splitlines():
        if m := re.search(r"Compiling entry function '(\w+)'", line):
            name = m.group(1)
            found[name] = {"threads": int(threads[name]), "registers": 0, "shared": 0, "spilled": 0}
        if m := re.search(r"(\d+) bytes spill stores", line):
            found[name]["spilled"] = int(m.group(1))
        if m := re.search(r"Used (\d+) registers", line):
            found[name]["registers"] = int(m.group(1))
            if m := re.search(r"(\d+) bytes smem", line):
                found[name]["shared"] = int(m.group(1))
    for name, k in found.items():
        k["warps"] = residentWarps(arch, k["threads"], k["registers"], k["shared"])
        if SIMT_TILE.search(name) and name in functions and (share := multiplyAdds(functions[name])) is not None:
            k["ffma"] = share
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arch", default="sm_80", choices=sorted(SHARED))
    parser.add_argument("--ffma", type=int, default=0, help="least share in the loops of products and convolutions, in per cent")
    parser.add_argument("--golden")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--quiet", action="store_true", help="tells only what is wrong")
    parser.add_argument("file", nargs="+")
    args = parser.parse_args()
    ptxas = os.environ.get("LATHE_PTXAS") or shutil.which("ptxas")
    if not ptxas:
        sys.exit("no ptxas")
    beside = path.join(path.dirname(ptxas), "nvdisasm")
    nvdisasm = os.environ.get("LATHE_NVDISASM") or (beside if path.exists(beside) else shutil.which("nvdisasm"))
    version = re.search(r"V([\d.]+)", subprocess.run([ptxas, "--version"], capture_output=True, text=True).stdout).group(1)
    goldens = {}
    if args.golden and path.exists(args.golden):
        with open(args.golden, encoding="utf-8") as f:
            goldens = json.load(f)
    bad = 0
    for file in args.file:
        model = path.splitext(path.basename(file))[0]
        now = figures(file, args.arch, ptxas, nvdisasm)
        for name, k in now.items():
            if not args.quiet:
                print(f"{args.arch} {model} {name}: " + ", ".join(f"{v} {what}" for what, v in k.items()))
            if k["spilled"] and KEPT_IN_REGISTERS.search(name):
                print(f"{args.arch} {model} {name} spills {k['spilled']} bytes")
                bad = 1
            if k.get("ffma", 100) < args.ffma:
                print(f"{args.arch} {model} {name}: {k['ffma']} % of the loop's instructions are multiply-adds")
                bad = 1
        lines = {name: " ".join(f"{v}" for v in k.values()) for name, k in now.items()}
        if args.update:
            goldens.setdefault(version, {}).setdefault(args.arch, {})[model] = lines
        elif golden := goldens.get(version, {}).get(args.arch, {}).get(model):
            for name in sorted(set(golden) | set(lines)):
                # without nvdisasm the share is not known
                old, new = golden.get(name), lines.get(name)
                if old != new and not (old and new and not nvdisasm and old.startswith(new)):
                    print(f"{args.arch} {model} {name}: {new}, was {old} (threads, registers, shared, spilled, warps, ffma); --update if it is meant")
                    bad = 1
    if args.update:
        with open(args.golden, "w", encoding="utf-8") as f:
            json.dump(goldens, f, indent=1, sort_keys=True)
            f.write("\n")
    return bad


if __name__ == "__main__":
    sys.exit(main())
