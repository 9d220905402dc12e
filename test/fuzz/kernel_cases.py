#!/usr/bin/env python3
"""Compares the answers that diff-fuzz --kernels draws graphs for with the reasons that the sources of the CPU backend give.

kernel_cases.py SOURCE DIFF_FUZZ: fails where a reason of a special form has no case, or a case no reason.
"""
import pathlib
import re
import subprocess
import sys


def literals(text):
    """String literals, those that follow each other as one."""
    return ["".join(re.findall(r'"([^"]*)"', part)) for part in re.findall(r'"[^"]*"(?:\s*"[^"]*")*', text)]


def body(text, begin):
    """What follows up to the end of a function."""
    at = text.index(begin)
    return text[at:text.index("\n}", at)]


def main(source, tool):
    source = pathlib.Path(source)
    given = set()
    for path in sorted((source / "passes/codegen/cpu").rglob("*.cpp")):
        for text in re.findall(r'WhyNot::(?:notMeant|lacks)\(\s*("[^"]*"(?:\s*"[^"]*")*)\)', path.read_text()):
            given.add(literals(text)[0])
    winograd = (source / "passes/codegen/cpu/conv/WinogradPlan.cpp").read_text()
    given.update(t for t in literals(body(winograd, "describe(WinogradRefusal")) if t)
    attention = next(p.read_text() for p in sorted((source / "dialects/kernel").glob("*.cpp")) if "AttentionOp::whyNot(" in p.read_text())
    given.update(t for t in literals(body(attention, "AttentionOp::whyNot(")) if t)
    listed = subprocess.run([tool, "--kernels", "--list"], check=True, capture_output=True, text=True).stdout.splitlines()
    drawn = {line.split(": ", 1)[1] for line in listed} - {"taken"}
    for reason in sorted(given - drawn):
        print(f"no graphs are drawn for: {reason} (add a case to test/fuzz/Kernel*.cpp, or why there can be none)")
    for reason in sorted(drawn - given):
        print(f"no special form gives this reason any more: {reason}")
    print(f"{len(given)} reasons")
    return int(given != drawn)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
