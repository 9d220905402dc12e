"""pick.py CORPUS OUT [--results FILE...] [--ops docs/generated/ops.md]

Chooses the cases that live in the tree: for each operation that is compiled, and each class of types that the corpus has it
with, the smallest case. Writes one zip a family of operations (the tables in ops/*.def). Cases that FILE (of run.py --json)
says fail are not taken. Prints the compiled operations that the corpus has no case for.
"""
import argparse
import glob
import json
import os
import re
import sys
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cases as corpus  # noqa: E402

LARGEST = 64 << 10  # bytes of a case


def class_of(dtype):
    if dtype in ("float32", "float64", "float16", "bfloat16", "bool", "string"):
        return dtype
    if dtype.startswith("complex"):
        return "complex"
    if dtype.startswith("float8") or dtype.endswith("int4") or dtype.endswith("int2"):
        return "narrow"
    if dtype.startswith("q"):
        return "quantized"
    return "wide integers" if dtype in ("int32", "int64") else "integers"


def families():
    """The table that each operation stands in."""
    family = {}
    for file in glob.glob(os.path.join(ROOT, "ops", "*Ops.def")):
        with open(file) as lines:
            for line in lines:
                if match := re.match(r"([A-Z]\w*)\(", line):
                    family[match[1]] = os.path.basename(file)[:-len("Ops.def")].lower()
    return family


def compiled_ops(file):
    with open(file) as lines:
        return {m[1] for m in (re.match(r"\| (\w+) \| compiled \|", line) for line in lines) if m}


def files_of(case):
    return case.files() + ["case.json"] + sorted({f for step in case.meta["steps"] for f in step["expected"]} - set(case.files()))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("corpus")
    p.add_argument("out")
    p.add_argument("--results", action="append", default=[])
    p.add_argument("--ops", default=os.path.join(ROOT, "docs", "generated", "ops.md"))
    args = p.parse_args()
    failing = set()
    for file in args.results:
        with open(file) as f:
            failing |= {row["case"] for row in json.load(f)["cases"] if row["reason"]}
    compiled, family = compiled_ops(args.ops), families()

    sized = []
    for case in corpus.load(args.corpus):
        if case.key not in failing:
            size = sum(len(case.read(f)) for f in files_of(case))
            if size <= LARGEST:
                sized.append((size, case.key, case))
    sized.sort(key=lambda s: s[:2])
    covered, zips, total = set(), {}, 0
    for size, _, case in sized:
        classes = {class_of(d) for d in case.meta["dtypes"].values()}
        new = {(op, c) for op in case.meta["ops"] if op in compiled for c in classes} - covered
        if not new:
            continue
        covered |= new
        total += size
        # the operation that it stands for: the one that no smaller case had
        op = min(op for op, _ in new)
        zips.setdefault(family.get(op, "other"), []).append(case)
    os.makedirs(args.out, exist_ok=True)
    for name, chosen in sorted(zips.items()):
        with zipfile.ZipFile(os.path.join(args.out, name + ".zip"), "w", zipfile.ZIP_DEFLATED) as z:
            for case in sorted(chosen, key=lambda c: c.key):
                for file in files_of(case):
                    # a fixed date, so that the same choice gives the same bytes
                    z.writestr(zipfile.ZipInfo(f"{case.suite}~{case.name}/{file}"), case.read(file), zipfile.ZIP_DEFLATED)
    print(f"{sum(map(len, zips.values()))} cases, {total} bytes, {len(covered)} pairs of operation and class of types")
    print("no case: " + " ".join(sorted(compiled - {op for op, _ in covered})))


if __name__ == "__main__":
    main()
