"""train.py write SAMPLE DIR: the digits as raw arrays. train.py check SAMPLE RESULT: compares with expected.npz."""
import os
import sys

import numpy as np

mode, sample, path = sys.argv[1:]
if mode == "write":
    digits = np.load(os.path.join(sample, "digits.npz"))
    for name in ("train_images", "train_labels", "test_images", "test_labels"):
        digits[name].tofile(os.path.join(path, name))
    sys.exit(0)
got = np.fromfile(path, np.float32)
expected = np.load(os.path.join(sample, "expected.npz"))
losses, accuracy, w, b = got[:300], got[300], got[301:941].reshape(64, 10), got[941:]
error = np.max(np.abs(losses - expected["losses"]) / np.abs(expected["losses"]))
print("losses", error, "accuracy", accuracy, expected["accuracy"], "W", np.max(np.abs(w - expected["W"])), "b",
      np.max(np.abs(b - expected["b"])))
ok = (error < 1e-4 and accuracy == expected["accuracy"] and np.max(np.abs(w - expected["W"])) < 1e-4
      and np.max(np.abs(b - expected["b"])) < 1e-4)
sys.exit(0 if ok else 1)
