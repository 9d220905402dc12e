"""cuda_same.py A B: whether two files hold the same arrays up to roundings of sums."""
import sys

import numpy as np

a, b = np.load(sys.argv[1]), np.load(sys.argv[2])
bad = sorted(a) != sorted(b)
for name in set(a) & set(b):
    bound = (1e-12 if a[name].dtype == np.float64 else 2e-6) * max(1, np.abs(b[name]).max(initial=0))
    if a[name].shape != b[name].shape or a[name].dtype != b[name].dtype or np.abs(a[name] - b[name]).max(initial=0) > bound:
        print(name, a[name].shape, b[name].shape, np.abs(a[name] - b[name]).max(initial=0), "above", bound)
        bad = True
sys.exit(bad)
