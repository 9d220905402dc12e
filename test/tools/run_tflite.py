"""run_tflite.py --lathe LATHE [--tol 1e-5] [--steps 0] [--close NAME=STEPS ...] [--options "OPTIONS"] [--hosted] MODEL.tflite...

Runs each model on the feeds in MODEL.npz and compares with its results ("want/NAME"): integers and strings exactly, floats within
the tolerance as a share of the largest magnitude. --steps lets integer results differ by so many steps, --close those of one model; --options
go to lathe run, or with --hosted to lathe compile: then it is an object with host kernels that runs, three times.
Exit status 1 when one differs."""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

import hosted


def compare(got, want, tol, steps):
    """Text about the worst result, and whether all is well."""
    if want.dtype.kind == "U":  # strings
        same = got.dtype.kind == "U" and json.loads(str(got)) == json.loads(str(want))
        return "" if same else f"{got} is not {want}", same
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{list(got.shape)} is not {want.dtype}{list(want.shape)}", False
    if not want.size:
        return "", True
    if want.dtype.kind in "fc":
        if not np.array_equal(np.isnan(got), np.isnan(want)):
            return "NaN in other places", False
        error = np.nanmax(np.abs(got - want)) / max(np.nanmax(np.abs(want)), 1e-30)
        return f"{error:.2g}", error <= tol
    away = np.abs(got.astype(np.int64) - want.astype(np.int64))
    return f"{np.count_nonzero(away)} of {away.size} differ, by {away.max()}", away.max() <= steps


def run_hosted(lathe, model, tol, steps, options):
    data = np.load(os.path.splitext(model)[0] + ".npz")
    feeds = {k: data[k] for k in data.files if not k.startswith("want/")}
    with tempfile.TemporaryDirectory() as folder:
        try:
            instance = hosted.Model(hosted.build(lathe, model, folder, options))
            results = [instance.run(feeds) for _ in range(3)]
        except RuntimeError as error:
            return str(error)
    bad = []
    for key in (k for k in data.files if k.startswith("want/")):
        for got in results:
            text, fine = compare(got[key[5:]], data[key], tol, steps) if key[5:] in got else (f"missing, found {list(got)[:5]}", False)
            if not fine:
                bad.append(f"{key[5:]}: {text}")
                break
    return "\n  ".join(bad)


def run(lathe, model, tol, steps, options=()):
    data = np.load(os.path.splitext(model)[0] + ".npz")
    with tempfile.TemporaryDirectory() as folder:
        feeds, out = os.path.join(folder, "feeds.npz"), os.path.join(folder, "out.npz")
        np.savez(feeds, **{k: data[k] for k in data.files if not k.startswith("want/")})
        done = subprocess.run([lathe, "run", model, "--feeds", feeds, "--out", out, *options], capture_output=True, text=True, timeout=600)
        if done.returncode:
            return done.stderr.strip() or f"status {done.returncode}"
        got = np.load(out)
        bad = []
        for key in data.files:
            if not key.startswith("want/"):
                continue
            name = key[5:]
            if name not in got.files:
                bad.append(f"{name}: missing, found {got.files[:5]}")
                continue
            text, fine = compare(got[name], data[key], tol, steps)
            if not fine:
                bad.append(f"{name}: {text}")
        return "\n  ".join(bad)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--lathe", required=True)
    p.add_argument("--tol", type=float, default=1e-5)
    p.add_argument("--steps", type=int, default=0)
    p.add_argument("--close", action="append", default=[])
    p.add_argument("--options", default="", help="of lathe run")
    p.add_argument("--hosted", action="store_true")
    p.add_argument("models", nargs="+")
    a = p.parse_args()
    steps = dict(c.split("=") for c in a.close)
    failed = 0
    for model in a.models:
        name = os.path.splitext(os.path.basename(model))[0]
        problem = (run_hosted if a.hosted else run)(a.lathe, model, a.tol, int(steps.get(name, a.steps)), a.options.split())
        if problem:
            failed += 1
            print(f"{name}:\n  {problem}")
    print(f"{len(a.models) - failed} of {len(a.models)} models agree")
    sys.exit(failed != 0)


main()
