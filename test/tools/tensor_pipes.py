"""tensor_pipes.py [options] FILE.ptx: which pipe limits the loops of products on tensor cores.

Of each kernel's loop with products on tensor cores (or, where all its turns are unrolled, of what lies between its first product and
its last): cycles in which four such warps, one on each sub-partition of a multiprocessor, are issued, move operands through shared
memory and multiply. Tensor cycles over the largest of the three are the share of the tensor cores' peak that these pipes leave.
Nothing is known here of latencies, memory beyond shared memory, conflicts of banks, or how often the loop runs.

Where ptxas (LATHE_PTXAS, or in PATH) and nvdisasm (LATHE_NVDISASM, beside ptxas, or in PATH) are found, the loops are those of machine
code, else those of the PTX: ptxas folds additions into addresses, takes several instructions for others, and unrolls.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from os import path

# Products a cycle of one sub-partition's tensor core, by what a product's operands take: from the throughput of dense products that
# NVIDIA's whitepapers of these architectures state (A100: 1024 of f16 a cycle and multiprocessor; H100: 2048, which only wgmma
# reaches).
PRODUCTS = {
    "sm_80": {"f16": 256, "tf32": 128, "s8": 512},
    "sm_90": {"f16": 512, "tf32": 256, "s8": 1024},
}
PARTITIONS = 4       # of a multiprocessor; each issues one instruction a cycle
SHARED_BYTES = 128   # that a multiprocessor's shared memory moves in a cycle
LANES = 32


class Loop:
    def __init__(self):
        self.issue = self.tensor = self.shared = self.products = 0

    def add(self, cost):
        self.issue += 1
        if cost:
            pipe, cycles = cost
            setattr(self, pipe, getattr(self, pipe) + cycles)
            self.products += pipe == "tensor"

    def shares(self):
        """Cycles of a sub-partition; shared memory serves all of them."""
        return {"issue": self.issue, "shared": PARTITIONS * self.shared, "tensor": self.tensor}

    def ratio(self):
        return self.tensor / max(self.shares().values())


def moved(bits):
    return "shared", max(1, LANES * bits // 8 // SHARED_BYTES)


def costOfPtx(op, products):
    """What an instruction takes beside its issue: a pipe and cycles there."""
    parts = op.split(".")
    if parts[0] == "mma":
        m, n, k = map(int, re.search(r"m(\d+)n(\d+)k(\d+)", op).groups())
        kind = "tf32" if "tf32" in parts else "s8" if "s8" in parts else "f16"
        return "tensor", m * n * k / products[kind]
    if parts[0] == "ldmatrix":
        return "shared", {"x1": 1, "x2": 2, "x4": 4}[next(p for p in parts if re.fullmatch(r"x\d", p))]
    if parts[0] in ("ld", "st") and parts[1].startswith("shared"):
        width = int(re.search(r"\d+$", parts[-1]).group())
        count = next((int(p[1]) for p in parts if re.fullmatch(r"v\d", p)), 1)
        return moved(width * count)
    return None


def costOfSass(op, products):
    parts = op.split(".")
    if parts[0] in ("HMMA", "IMMA"):
        digits = next(p for p in parts[1:] if p.isdigit()) # 16816: m16n8k16
        kind = "tf32" if "TF32" in parts else "s8" if parts[0] == "IMMA" else "f16"
        return "tensor", 16 * 8 * int(digits[3:]) / products[kind]
    if parts[0] == "LDSM":
        return "shared", {"1": 1, "2": 2, "4": 4}.get(parts[-1], 1)
    if parts[0] in ("LDS", "STS", "LDGSTS"):
        return moved(next((int(p) for p in parts if p in ("64", "128")), 32))
    return None


def ptxOf(text):
    """Functions as lists of (label, instruction, operands)."""
    functions, lines = {}, None
    for line in text.splitlines():
        line = line.split("//")[0].strip()
        if m := re.match(r"(?:\.visible\s+)?(?:\.entry|\.func)\s.*?([\w$]+)\(?$", line):
            lines = functions.setdefault(m.group(1), [])
        elif lines is None:
            continue
        elif m := re.match(r"(\$\w+):$", line):
            lines.append((m.group(1), None, None))
        elif m := re.match(r"(?:\{\s*)?(?:@!?%\w+\s+)?([a-z][\w.:]*)\s*(.*)$", line):
            if line.startswith("}"):
                continue
            lines.append((None, m.group(1).rstrip(";"), m.group(2)))
    return functions


def sassOf(text):
    functions, lines = {}, None
    for line in text.splitlines():
        if m := re.match(r"\s*\.text\.(\S+):", line):
            lines = functions.setdefault(m.group(1), [])
        elif lines is None:
            continue
        elif m := re.match(r"\s*(\.L_x_\w+):", line):
            lines.append((m.group(1), None, None))
        elif m := re.match(r"\s*(?:/\*[0-9a-f]+\*/)?\s*(@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)\b(.*);", line):
            never = (m.group(1) or "").strip() == "@!PT"  # is issued, and moves nothing
            if m.group(2) != "NOP":
                lines.append((None, "never" if never else m.group(2), m.group(3)))
    return functions


def costOfAll(lines, costOf, products):
    loop = Loop()
    for _, op, operands in lines:
        if not op:
            continue
        cost = costOf(op, products)
        if op.startswith("cp.async.c") and "shared" in op:  # cp.async.commit_group has no destination
            cost = moved(8 * int(re.search(r",\s*(\d+)\s*[,;]", operands).group(1)))
        loop.add(cost)
    return loop


def tensorLoop(lines, costOf, products):
    """The shortest loop with the most products."""
    multiplies = [i for i, (_, op, _) in enumerate(lines) if op and (costOf(op, products) or [""])[0] == "tensor"]
    labels = {label: i for i, (label, _, _) in enumerate(lines) if label}
    best = None
    for i, (_, op, operands) in enumerate(lines):
        if not op or not re.match(r"bra\b|BRA\b", op):
            continue
        target = next((labels[l] for l in re.findall(r"[$.]\w+", operands) if l in labels), None)
        if target is None or target > i:
            continue
        loop = costOfAll(lines[target : i + 1], costOf, products)
        if loop.products and (best is None or (loop.products, -loop.issue) > (best.products, -best.issue)):
            best = loop
    if multiplies and best is None:
        best = costOfAll(lines[multiplies[0] : multiplies[-1] + 1], costOf, products)
    return best


def loopsOf(file, arch, ptxas, nvdisasm):
    with open(file, encoding="utf-8") as f:
        text = f.read()
    parse, costOf = ptxOf, costOfPtx
    if ptxas and nvdisasm:
        with tempfile.TemporaryDirectory() as folder:
            cubin = path.join(folder, "cubin")
            subprocess.run([ptxas, "-arch=" + arch, file, "-o", cubin], check=True)
            text = subprocess.run([nvdisasm, "-c", cubin], check=True, capture_output=True, text=True).stdout
        parse, costOf = sassOf, costOfSass
    for name, lines in parse(text).items():
        if loop := tensorLoop(lines, costOf, PRODUCTS[arch]):
            yield name, loop


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arch", default="sm_80", choices=sorted(PRODUCTS))
    parser.add_argument("--ptx", action="store_true", help="the loops of the PTX, whatever is found")
    parser.add_argument("--least", type=float, default=0, help="fails where a kernel's share is below")
    parser.add_argument("--only", default="", help="kernels with such names")
    parser.add_argument("file", nargs="+")
    args = parser.parse_args()
    ptxas = os.environ.get("LATHE_PTXAS") or shutil.which("ptxas")
    beside = ptxas and path.join(path.dirname(ptxas), "nvdisasm")
    nvdisasm = os.environ.get("LATHE_NVDISASM") or (beside if beside and path.exists(beside) else shutil.which("nvdisasm"))
    if args.ptx or not ptxas or not nvdisasm:
        ptxas = nvdisasm = None
    print("loops of machine code" if ptxas else "loops of PTX")
    found = low = 0
    for file in args.file:
        for name, loop in loopsOf(file, args.arch, ptxas, nvdisasm):
            if not re.search(args.only, name):
                continue
            found += 1
            low += loop.ratio() < args.least
            cycles = loop.shares()
            print(f"{path.basename(file)} {name}: {loop.products} products, issue {cycles['issue']:.0f}, shared {cycles['shared']:.0f}, "
                  f"tensor {cycles['tensor']:.0f}, {100 * loop.ratio():.0f} %")  # fmt: skip
    if not found:
        print("no loop has products on tensor cores")
    return 1 if low or not found else 0


if __name__ == "__main__":
    sys.exit(main())
