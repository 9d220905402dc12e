"""run_foreign.py MODEL_DIR WORK_DIR CC RUNNER COMPILE_OPTION...

Compiles MODEL_DIR/graph.pb for another processor, links it with a program in C by CC, runs that by RUNNER (an emulator)
on MODEL_DIR/inputs.npz and compares with MODEL_DIR/expected.npz.
"""
import json
import os
import re
import subprocess
import sys

import numpy as np


def main():
    model, work, cc, runner, *options = sys.argv[1:]
    os.makedirs(work, exist_ok=True)
    feeds = np.load(os.path.join(model, "inputs.npz"))
    shapes = []
    for name in feeds.files:
        shapes += ["--input", name + "=" + "x".join(map(str, feeds[name].shape))]
    prefix = os.path.join(work, "m")
    subprocess.run(["lathe", "compile", os.path.join(model, "graph.pb"), "-o", prefix, *options, *shapes], check=True)
    listing = subprocess.run(["lathe", "inspect", os.path.join(model, "graph.pb"), *shapes], check=True, capture_output=True, text=True).stdout
    names = {kind: re.findall(rf"^  {kind}\s+(\S+)", listing, re.M) for kind in ("input", "output")}
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli", "Inputs", "module_files.c")
    program = os.path.join(work, "program")
    subprocess.run([cc, "-O1", "-static", "-I", work, source, prefix + ".o", "-lm", "-o", program], check=True)
    for i, name in enumerate(names["input"]):
        feeds[name].tofile(os.path.join(work, f"in{i}"))
    subprocess.run([*runner.split(), program, work], check=True)
    want = np.load(os.path.join(model, "expected.npz"))
    with open(os.path.join(model, "model.json")) as f:
        fetches = {v["tensor"].removesuffix(":0"): k for k, v in json.load(f)["fetches"].items()}
    bad = not names["output"]
    for i, name in enumerate(names["output"]):
        w = want[fetches[name.removesuffix(":0")]]
        g = np.fromfile(os.path.join(work, f"out{i}"), dtype=w.dtype).reshape(w.shape)
        error = np.max(np.abs(g.astype(np.float64) - w)) / (np.max(np.abs(w)) + 1e-30)
        print(f"{name}: largest error {error:.3g} of the largest magnitude")
        bad |= not error <= 1e-4
    sys.exit(bad)


main()
