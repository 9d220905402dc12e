"""compare_npz.py GOT.npz WANT.npz [--map KEY=NAME ...] [--tol 1e-4]

The largest error of each array of WANT as a share of its largest magnitude; integers and booleans exactly.
--map says under which name GOT holds KEY. Exit status 1 when an array is missing or out of tolerance.
"""
import argparse
import sys

import numpy as np


def main():
    p = argparse.ArgumentParser()
    p.add_argument("got")
    p.add_argument("want")
    p.add_argument("--map", action="append", default=[])
    p.add_argument("--tol", type=float, default=1e-4)
    p.add_argument("--same-bits", action="store_true")
    a = p.parse_args()
    names = dict(m.split("=", 1) for m in a.map)
    got, want = np.load(a.got), np.load(a.want)
    bad = False
    for key in want.files:
        if key == "__dtypes__":
            continue
        name = names.get(key, key)
        if name not in got.files:
            print(f"{key}: missing {name}, found {got.files}")
            bad = True
            continue
        g, w = got[name], want[key]
        if g.shape != w.shape or g.dtype != w.dtype:
            print(f"{key}: {g.dtype}{list(g.shape)} is not {w.dtype}{list(w.shape)}")
            bad = True
        elif a.same_bits or w.dtype.kind not in "fc":
            n = np.count_nonzero(g.tobytes() != w.tobytes()) if a.same_bits else np.count_nonzero(g != w)
            print(f"{key}: {n} of {w.size} differ")
            bad |= bool(n)
        else:
            scale = np.max(np.abs(w)) if w.size else 0.0
            wide = np.complex128 if w.dtype.kind == "c" else np.float64
            err = float(np.max(np.abs(g.astype(wide) - w)) / (scale + 1e-30)) if w.size else 0.0
            print(f"{key}: largest error {err:.3g} of the largest magnitude")
            bad |= not err <= a.tol
    sys.exit(bad)


main()
