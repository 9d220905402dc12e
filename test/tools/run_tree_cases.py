"""run_tree_cases.py LATHE ZIP [CONFORM_ARGUMENT...]: the cases of a stored zip through `lathe conform`.

A case is a folder of graph.pb, case.json (feeds, fetches and targets of its steps, tolerances) and TensorFlow's tensors;
the scripts make_*.py beside this one make the zips. Prints the cases that differ and "N passed, N failed".
"""
import base64
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile

import numpy as np


def decode(name, data):
    if name.endswith(".strings.json"):
        d = json.loads(data)
        return np.array([base64.b64decode(v) for v in d["values"]], dtype=object).reshape(d["shape"])
    return np.load(io.BytesIO(data), allow_pickle=False)


def difference(got, want, case, dtype):
    """What differs, or None."""
    if got.shape != want.shape:
        return f"shape {list(got.shape)}, expected {list(want.shape)}"
    if got.dtype != want.dtype:
        return f"type {got.dtype}, expected {want.dtype}"
    if want.dtype.kind not in "fc":
        return None if np.array_equal(got, want) else "values differ"
    rtol, atol = case.get("rtol", {}).get(dtype, 1e-4), case.get("atol", {}).get(dtype, 1e-5)
    if np.allclose(got, want, rtol=rtol, atol=atol, equal_nan=True):
        return None
    return f"values differ by up to {np.nanmax(np.abs(got - want)):.3g}"


def judge(archive, name, folder):
    case = json.loads(archive.read(f"{name}/case.json"))
    for s, step in enumerate(case["steps"]):
        for i, (fetch, file) in enumerate(zip(step["fetches"], step["expected"])):
            suffix = ".strings.json" if file.endswith(".strings.json") else ".npy"
            path = os.path.join(folder, f"actual_{s}_{i}{suffix}")
            if not os.path.exists(path):
                return f"step {s} {fetch}: no result"
            with open(path, "rb") as f:
                got = decode(file, f.read())
            why = difference(got, decode(file, archive.read(f"{name}/{file}")), case, case["dtypes"][file])
            if why:
                return f"step {s} {fetch}: {why}"
    return None


def main():
    lathe, path, *arguments = sys.argv[1:]
    archive = zipfile.ZipFile(path)
    work = tempfile.mkdtemp(prefix="cases_")
    failed = 0
    try:
        names = sorted({n.split("/")[0] for n in archive.namelist()})
        for n in archive.namelist():
            if not os.path.basename(n).startswith("expected_"):
                archive.extract(n, work)
        report = os.path.join(work, "report.jsonl")
        ended = subprocess.run([lathe, "conform", "--cases", work, "--report", report, *arguments], stdout=subprocess.DEVNULL)
        with open(report) as f:
            lines = [json.loads(line) for line in f]
        said = {r["name"]: r for r in lines}
        for name in names:
            r = said.get(name, {"status": "no report"})
            if r["status"] == "start":
                why = f"ended with status {ended.returncode}"
            elif r["status"] != "ok":
                why = f"{r['status']}: {r.get('message', '')}"
            else:
                why = judge(archive, name, os.path.join(work, name))
            if why:
                failed += 1
                print(f"FAIL {name}: {why}")
    finally:
        shutil.rmtree(work)
    print(f"{len(names) - failed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
