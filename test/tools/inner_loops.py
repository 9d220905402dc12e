"""inner_loops.py FILE.s

The innermost loops of kernels that multiply and add at least eight times, in assembly of x86-64 or AArch64: one line
each, with how often they multiply, how often by a lane of a register, and how often they touch the stack.
"""
import re
import sys


def main():
    function = label = None
    start = 0
    lines = open(sys.argv[1]).read().split("\n")
    for i, line in enumerate(lines):
        if m := re.match(r"^(k\d+_\w+):", line):
            function = m.group(1)
        if m := re.match(r"^(\.L\w+):", line):
            label, start = m.group(1), i
        if not label or not function or not re.match(r"\s+(b\.?\w*|cbn?z|tbn?z|j\w+)\s.*" + re.escape(label) + r"$", line):
            continue
        body = lines[start + 1:i + 1]
        multiply = sum(bool(re.search(r"\b(fmla|vfn?madd\w*ps|mulps)\b", x)) for x in body)
        if multiply >= 8:
            lane = sum(bool(re.search(r"\bfmla\b.*\.s\[", x)) for x in body)
            stack = sum("[sp" in x or "(%rsp" in x for x in body)
            print(f"{function}: {multiply} products, {lane} by lane, {stack} on the stack")


main()
