"""export_tflite.py --lathe LATHE --out DIR [--tol 1e-5] [--refused NAME ...] [--quantize KIND [--io TYPE] [--litert]] MODEL...

Writes each model as a .tflite file, runs that file and compares with recorded results: MODEL is a folder of the samples (graph.pb,
inputs.npz, expected.npz) or a .tflite file with its .npz beside it ("want/NAME" are results). --refused names models that must not
be written. With --quantize the models are folders, calibrated with their own inputs, and the file gives the bits of the object
that is quantized alike; --litert asks LiteRT's reference kernels for them too. Exit status 1 when one differs, or when a refused
one is written."""
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


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    return done.stderr.strip() or f"status {done.returncode}" if done.returncode else ""


def litert(path, feeds):
    """What LiteRT's reference kernels give for the file."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType
    interpreter = Interpreter(model_path=path, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    runner = interpreter.get_signature_runner()
    return runner(**feeds)


def check_quantized(a, model, stem):
    source, inputs = os.path.join(model, "graph.pb"), os.path.join(model, "inputs.npz")
    # all but int8 leave operators in f32, whose sums may be in another order: the shapes known are not the same
    tol = 0 if a.quantize == "int8" else a.tol
    options = ["--quantize", a.quantize, "--calibrate", inputs] + (["--io", a.io] if a.io else [])
    problem = run(a.lathe, "compile", source, "-o", stem, "--emit", "tflite", *options)
    if problem:
        return problem, False
    feeds = dict(np.load(inputs))
    if a.io:  # numbers of the type, whatever they stand for
        rng = np.random.default_rng(1)
        low, high = np.iinfo(a.io).min, np.iinfo(a.io).max
        feeds = {k: rng.integers(low, high + 1, v.shape).astype(a.io) if v.dtype == np.float32 else v for k, v in feeds.items()}
    np.savez(stem + ".feeds.npz", **feeds)
    for path, out, more in ((source, ".want.npz", options), (stem + ".tflite", ".out.npz", [])):
        problem = run(a.lathe, "run", path, "--feeds", stem + ".feeds.npz", "--out", stem + out, *more)
        if problem:
            return problem, True
    want, got = ({k.removesuffix(":0"): v for k, v in np.load(stem + out).items()} for out in (".want.npz", ".out.npz"))
    bad = [f"{k}: {text}" for k, v in want.items() for text in [compare(got[k], v, tol) if k in got else "missing"] if text]
    if a.litert:
        theirs = litert(stem + ".tflite", {k.removesuffix(":0"): v for k, v in feeds.items()})
        bad += [f"LiteRT: {k}: {text}" for k, v in theirs.items() for text in [compare(got[k], v, 0) if k in got else "missing"] if text]
    return "\n  ".join(bad), True


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--lathe", required=True)
    p.add_argument("--out", required=True)
    p.add_argument("--tol", type=float, default=1e-5)
    p.add_argument("--quantize")
    p.add_argument("--io")
    p.add_argument("--litert", action="store_true")
    p.add_argument("--refused", action="append", default=[])
    p.add_argument("models", nargs="+")
    a = p.parse_args()
    os.makedirs(a.out, exist_ok=True)
    failed = 0
    for model in a.models:
        name = os.path.splitext(os.path.basename(model.rstrip("/")))[0]
        stem = os.path.join(a.out, name)
        problem, written = check_quantized(a, model, stem) if a.quantize else check(a.lathe, model, stem, a.tol)
        if (name in a.refused) != (not written) or (written and problem):
            failed += 1
            print(f"{name}:\n  {problem or 'was written'}")
    print(f"{len(a.models) - failed} of {len(a.models)} models as expected")
    sys.exit(failed != 0)


main()
