"""check_models.py --lathe build/bin/lathe --zoo DIR [--models a,b] [--variants base,no-fuse,...] [--tol 1e-4]
                [--flags="--precision bf16"]

Compiles and runs each model of a zoo folder (graph.pb or saved_model/, inputs.npz, expected.npz, model.json) and compares
with the recorded outputs: floating results within --tol of the output's largest magnitude, integers exactly.

Variants: base; saved-model; no-fuse; threads (2 threads give the bits of 1); dynamic (leading dimensions unknown);
sizes (inputs.K.npz against expected.K.npz with leading dimensions unknown).
"""
import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile

import numpy as np


def run(cmd, what):
    r = subprocess.run(cmd, capture_output=True, text=True)
    if r.returncode:
        return f"{what}: exit {r.returncode}: {(r.stderr or r.stdout).strip()[-400:]}"
    return None


def compare(got, want, fetches, tol):
    worst, bad = 0.0, []
    for key in want.files:
        name = fetches.get(key, key)
        if name not in got.files and key in got.files:
            name = key
        if name not in got.files:
            bad.append(f"{key}: missing ({got.files})")
            continue
        g, w = got[name], want[key]
        if g.shape != w.shape or g.dtype != w.dtype:
            bad.append(f"{key}: {g.dtype}{list(g.shape)} is not {w.dtype}{list(w.shape)}")
        elif w.dtype.kind in "fc":
            scale = float(np.max(np.abs(w))) if w.size else 0.0
            e = float(np.max(np.abs(g.astype(np.float64) - w)) / (scale + 1e-30)) if w.size else 0.0
            worst = max(worst, e)
            if not e <= tol:
                bad.append(f"{key}: error {e:.3g} of the largest magnitude")
        elif not np.array_equal(g, w):
            bad.append(f"{key}: {np.count_nonzero(g != w)} of {w.size} differ")
    return worst, bad


def same_bits(a, b):
    return [k for k in a.files if a[k].tobytes() != b[k].tobytes()]


def check(lathe, d, variant, tol, tmp, extra=()):
    meta = json.load(open(os.path.join(d, "model.json")))
    fetches = {k: v["tensor"] for k, v in meta["fetches"].items()}
    saved = variant == "saved-model"
    model = os.path.join(d, "saved_model" if saved else "graph.pb")
    if not os.path.exists(model):
        return None
    names = [] if saved else [x for k in fetches.values() for x in ("--fetch", k)]
    flags = list(extra)
    if variant == "no-fuse":
        flags += ["--no-fuse"]
    if variant in ("dynamic", "sizes"):
        flags += ["--unknown-leading"]
    pairs = [("inputs.npz", "expected.npz")]
    if variant == "sizes":
        pairs = [(os.path.basename(f), os.path.basename(f).replace("inputs", "expected"))
                 for f in sorted(glob.glob(os.path.join(d, "inputs.*.npz")))]
        if not pairs:
            return None
    so = os.path.join(tmp, "m")
    build = [x for k in fetches.values() for x in ("--output", k)] if not saved else []
    why = run([lathe, "compile", model, "-o", so, "--emit", "so"] + flags + ([] if "--cpu" in flags else ["--cpu", "host"]) + build
              + (["--threads", "2"] if variant == "threads" else []), "compile")
    if why:
        return 0.0, [why]
    worst, bad = 0.0, []
    for inputs, expected in pairs:
        out = os.path.join(tmp, "out.npz")
        cmd = [lathe, "run", so + ".so", "--feeds", os.path.join(d, inputs), "--out", out] + names
        why = run(cmd, "run")
        if why:
            return worst, [why]
        e, b = compare(np.load(out), np.load(os.path.join(d, expected)), fetches, tol)
        worst, bad = max(worst, e), bad + b
        if variant == "threads":
            two = os.path.join(tmp, "out2.npz")
            why = run(cmd[:-len(names) - 2] + ["--out", two, "--threads", "2"] + names, "run with 2 threads")
            if why:
                return worst, [why]
            bad += [f"{k}: 2 threads give other bits" for k in same_bits(np.load(out), np.load(two))]
    return worst, bad


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--lathe", default="build/bin/lathe")
    p.add_argument("--zoo", required=True)
    p.add_argument("--models")
    p.add_argument("--variants", default="base,saved-model,no-fuse,threads,dynamic,sizes")
    p.add_argument("--tol", type=float, default=1e-4)
    p.add_argument("--flags", default="", help="further options of lathe compile")
    a = p.parse_args()
    models = a.models.split(",") if a.models else sorted(os.listdir(a.zoo))
    failed = 0
    for m in models:
        for v in a.variants.split(","):
            with tempfile.TemporaryDirectory() as tmp:
                r = check(a.lathe, os.path.join(a.zoo, m), v, a.tol, tmp, a.flags.split())
            if r is None:
                continue
            failed += bool(r[1])
            print(f"{m:20s} {v:12s} {'FAILED ' + '; '.join(r[1]) if r[1] else f'ok, largest error {r[0]:.2g}'}", flush=True)
    sys.exit(failed != 0)


main()
