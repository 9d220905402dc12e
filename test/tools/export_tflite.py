"""export_tflite.py --lathe LATHE --out DIR [--tol 1e-5] [--refused NAME ...] MODEL...

Writes each model as a .tflite file, runs that file and compares with recorded results: MODEL is a folder of the samples (graph.pb,
inputs.npz, expected.npz) or a .tflite file with its .npz beside it ("want/NAME" are results). --refused names models that must not
be written. Exit status 1 when one differs, or when a refused one is written."""
import argparse
import json
import os
import subprocess
import sys

import numpy as np


def load(model):
    """The file to compile, its feeds, and what it gives."""
    if model.endswith(".tflite"):
        data = np.load(os.path.splitext(model)[0] + ".npz")
        feeds = {k: data[k] for k in data.files if not k.startswith("want/")}
        return model, feeds, {k[5:]: data[k] for k in data.files if k.startswith("want/")}
    feeds, want = (dict(np.load(os.path.join(model, f))) for f in ("inputs.npz", "expected.npz"))
    names = json.load(open(os.path.join(model, "model.json")))["fetches"]
    return os.path.join(model, "graph.pb"), feeds, {names[k]["tensor"].split(":")[0]: v for k, v in want.items()}


def compare(got, want, tol):
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{list(got.shape)} is not {want.dtype}{list(want.shape)}"
    if not want.size or np.array_equal(got, want):
        return ""
    if want.dtype.kind not in "fc":
        return f"{np.count_nonzero(got != want)} of {got.size} differ"
    if not np.array_equal(np.isnan(got), np.isnan(want)):
        return "NaN in other places"
    error = np.nanmax(np.abs(got - want)) / max(np.nanmax(np.abs(want)), 1e-30)
    return f"error {error:.2g}" if error > tol else ""


def check(lathe, model, stem, tol):
    source, feeds, want = load(model)
    written = subprocess.run([lathe, "compile", source, "-o", stem, "--emit", "tflite"], capture_output=True, text=True, timeout=600)
    if written.returncode:
        return written.stderr.strip() or f"status {written.returncode}", False
    np.savez(stem + ".feeds.npz", **feeds)
    ran = subprocess.run([lathe, "run", stem + ".tflite", "--feeds", stem + ".feeds.npz", "--out", stem + ".out.npz"],
                         capture_output=True, text=True, timeout=600)
    if ran.returncode:
        return ran.stderr.strip() or f"status {ran.returncode}", True
    got = {k.removesuffix(":0"): v for k, v in np.load(stem + ".out.npz").items()}
    bad = [f"{k}: {text}" for k, v in want.items() for text in [compare(got[k], v, tol) if k in got else "missing"] if text]
    return "\n  ".join(bad), True


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--lathe", required=True)
    p.add_argument("--out", required=True)
    p.add_argument("--tol", type=float, default=1e-5)
    p.add_argument("--refused", action="append", default=[])
    p.add_argument("models", nargs="+")
    a = p.parse_args()
    os.makedirs(a.out, exist_ok=True)
    failed = 0
    for model in a.models:
        name = os.path.splitext(os.path.basename(model.rstrip("/")))[0]
        problem, written = check(a.lathe, model, os.path.join(a.out, name), a.tol)
        if (name in a.refused) != (not written) or (written and problem):
            failed += 1
            print(f"{name}:\n  {problem or 'was written'}")
    print(f"{len(a.models) - failed} of {len(a.models)} models as expected")
    sys.exit(failed != 0)


main()
