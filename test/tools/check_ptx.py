"""check_ptx.py FILE...: fails when PTX holds what an f32 module of ours must not.

A device's compiler contracts mul and add without a rounding suffix; .ftz, .approx and div.full are not IEEE arithmetic; an
.extern .func needs a library; an entry without .reqntid is compiled for any block.
"""
import re
import sys

ARITHMETIC = re.compile(r"^(add|sub|mul|fma|mad)\.(?!rn|rz|rm|rp)(\w+\.)*(f16|f16x2|bf16|bf16x2|f32|f64)$")


def check(text):
    """Yields (line, what) of each finding."""
    entry = None
    for number, line in enumerate(text.splitlines(), 1):
        code = line.split("//")[0].strip()
        if not code:
            continue
        if re.match(r"(\.visible\s+|\.weak\s+)?\.entry\b", code):
            entry = number
        if ".reqntid" in code:
            entry = None
        if code.startswith("{") and entry is not None:
            yield entry, "an entry without .reqntid"
            entry = None
        if re.search(r"\.extern\s+\.func\b", code):
            yield number, "an external function"
        op = re.sub(r"^@!?%\w+\s+", "", code).split()[0].rstrip(";")
        if ARITHMETIC.match(op):
            yield number, f"{op} may be contracted"
        parts = op.split(".")
        for part in ("ftz", "approx"):
            if part in parts:
                yield number, f"{op} is not IEEE arithmetic"
        if parts[0] == "div" and "full" in parts:
            yield number, f"{op} is not IEEE arithmetic"


def main():
    bad = 0
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as f:
            for line, what in check(f.read()):
                print(f"{path}:{line}: {what}")
                bad = 1
    return bad


if __name__ == "__main__":
    sys.exit(main())
