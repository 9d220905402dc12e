"""run_foreign.py MODEL_DIR WORK_DIR CC RUNNER COMPILE_OPTION...

Compiles MODEL_DIR/graph.pb for another processor, links it with a program in C by CC, runs that by RUNNER (an emulator)
on MODEL_DIR/inputs.npz and compares with MODEL_DIR/expected.npz. A file MODEL.tflite in place of the folder has its feeds and
results in MODEL.npz; integers are exact then.
"""
import json
import os
import re
import subprocess
import sys

import numpy as np


def run(lathe, path, feeds, like, work, cc, runner, options, shapes=()):
    """The outputs of a model file from a program for another processor: for each name a number of bytes, types and sizes as in like(name)."""
    os.makedirs(work, exist_ok=True)
    prefix = os.path.join(work, "m")
    subprocess.run([lathe, "compile", path, "-o", prefix, *options, *shapes], check=True)
    listing = subprocess.run([lathe, "inspect", path, *shapes], check=True, capture_output=True, text=True).stdout
    names = {kind: re.findall(rf"^  {kind}\s+(\S+)", listing, re.M) for kind in ("input", "output")}
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli", "Inputs", "module_files.c")
    program = os.path.join(work, "program")
    subprocess.run([cc, "-O1", "-static", "-I", work, source, prefix + ".o", "-lm", "-o", program], check=True)
    for i, name in enumerate(names["input"]):
        feeds[name].tofile(os.path.join(work, f"in{i}"))
    subprocess.run([*runner.split(), program, work], check=True)
    return {name: np.fromfile(os.path.join(work, f"out{i}"), dtype=like(name).dtype).reshape(like(name).shape)
            for i, name in enumerate(names["output"])}


def compare_file(model, work, cc, runner, options):
    """Of a TensorFlow Lite file: whether something differs."""
    data = np.load(model.removesuffix(".tflite") + ".npz")
    shapes = [f"--input={k}=" + "x".join(map(str, data[k].shape)) for k in data.files if not k.startswith("want/") and data[k].ndim]
    got = run("lathe", model, data, lambda name: data["want/" + name], work, cc, runner, options, shapes)
    bad = not got
    for name, g in got.items():
        w = data["want/" + name]
        same = np.array_equal(g, w) if w.dtype.kind in "iub" else np.allclose(g, w, rtol=1e-4, atol=1e-4 * np.abs(w).max(initial=1e-30))
        if not same:
            print(f"{name}: {np.count_nonzero(g != w)} of {w.size} differ")
        bad |= not same
    print(f"{len(got)} results, {'not all' if bad else 'all'} as they should be")
    return bad


def main():
    model, work, cc, runner, *options = sys.argv[1:]
    if model.endswith(".tflite"):
        sys.exit(compare_file(model, work, cc, runner, options))
    feeds = np.load(os.path.join(model, "inputs.npz"))
    shapes = []
    for name in feeds.files:
        shapes += ["--input", name + "=" + "x".join(map(str, feeds[name].shape))]
    expected = np.load(os.path.join(model, "expected.npz"))
    with open(os.path.join(model, "model.json")) as f:
        fetches = {v["tensor"].removesuffix(":0"): k for k, v in json.load(f)["fetches"].items()}
    want = lambda name: expected[fetches[name.removesuffix(":0")]]
    got = run("lathe", os.path.join(model, "graph.pb"), feeds, want, work, cc, runner, options, shapes)
    bad = not got
    for name, g in got.items():
        w = want(name)
        error = np.max(np.abs(g.astype(np.float64) - w)) / (np.max(np.abs(w)) + 1e-30)
        print(f"{name}: largest error {error:.3g} of the largest magnitude")
        bad |= not error <= 1e-4
    sys.exit(bad)


if __name__ == "__main__":
    main()
