"""coverage.py: whether the tree has a conformance case for each operation that is compiled; names those without one and fails.

Counts the pairs of an operation and a class of types (pick.py), too.
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cases as corpus  # noqa: E402
import pick  # noqa: E402

# of MKL's builds, which TensorFlow's wheel has no definition of
NOT_RECORDED = {"QuantizedConcatV2"}


def main():
    compiled = pick.compiled_ops(os.path.join(pick.ROOT, "docs", "generated", "ops.md"))
    pairs = {(op, pick.class_of(dtype)) for case in corpus.load(os.path.join(pick.ROOT, "test", "conform", "cases"))
             for op in case.meta["ops"] for dtype in case.meta["dtypes"].values()}
    missing = sorted(compiled - {op for op, _ in pairs} - NOT_RECORDED)
    print(f"{len(compiled)} compiled operations, {sum(op in compiled for op, _ in pairs)} pairs of one and a class of types; "
          f"without a case: {' '.join(missing) or 'none'}")
    return bool(missing)


if __name__ == "__main__":
    sys.exit(main())
