"""cuda_same.py A B [PREFIX=BOUND...]: whether two files hold the same arrays up to roundings of sums. The bound is in terms of an array's
largest element; arrays whose names begin with a prefix have one of their own, or are to be the same bits (PREFIX=bits), but for what is no number, or are
so many units in each element's last place apart at most (PREFIX=4ulp)."""
import sys

import numpy as np

a, b = np.load(sys.argv[1]), np.load(sys.argv[2])
bounds = dict(arg.split("=") for arg in sys.argv[3:])
bad = sorted(a) != sorted(b)


def bits(x):
    return (np.where(np.isnan(x), x.dtype.type(np.nan), x) if np.issubdtype(x.dtype, np.inexact) else x).tobytes()


for name in set(a) & set(b):
    usual = 1e-12 if a[name].dtype == np.float64 else 2e-6
    if any(name.startswith(prefix) and v == "bits" for prefix, v in bounds.items()):
        if a[name].shape != b[name].shape or a[name].dtype != b[name].dtype or bits(a[name]) != bits(b[name]):
            print(name, "has other bits")
            bad = True
        continue
    same = a[name].shape == b[name].shape and a[name].dtype == b[name].dtype
    if same and np.issubdtype(a[name].dtype, np.inexact):  # infinities and NaN are what they are
        alike = (a[name] == b[name]) | (np.isnan(a[name]) & np.isnan(b[name]))
        x, y = np.where(alike, 0, a[name]), np.where(alike, 0, b[name])
        bound = next((v for prefix, v in bounds.items() if name.startswith(prefix)), "")
        if bound.endswith("ulp"):
            units = np.abs(x - y) / np.spacing(np.maximum(np.abs(x), np.abs(y)))
            if not (units <= int(bound[:-3])).all():
                print(name, "is", units.max(), "units apart")
                bad = True
            continue
        far, most = np.abs(x - y), np.abs(b[name][np.isfinite(b[name])]).max(initial=0)
        same = not np.isnan(far).any()
    elif same:
        far, most = np.abs(a[name] - b[name]), np.abs(b[name]).max(initial=0)
    if not same:
        print(name, a[name].shape, b[name].shape, a[name].dtype, b[name].dtype, "are not alike")
        bad = True
        continue
    bound = next((float(v) for prefix, v in bounds.items() if name.startswith(prefix)), usual) * max(1, most)
    if far.max(initial=0) > bound:
        print(name, a[name].shape, far.max(initial=0), "above", bound)
        bad = True
sys.exit(bad)
