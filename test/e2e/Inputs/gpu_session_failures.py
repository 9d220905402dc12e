"""gpu_session_failures.py DRIVER GRAPH FOLDER: runs a graph on the emulated driver, then with its first call failing, its second,
and so on until none is left: each run says which call failed, or gives the right result."""
import os
import subprocess
import sys

import numpy as np

driver, graph, folder = sys.argv[1:]
os.makedirs(folder, exist_ok=True)
feed, out = os.path.join(folder, "x.npy"), os.path.join(folder, "out.npz")
np.save(feed, np.full(600, 1.5, np.float32))


def run(**environment):
    if os.path.exists(out):
        os.remove(out)
    done = subprocess.run(["lathe", "run", graph, "--session", "--backend", "cuda", "--feed", "x=" + feed, "--fetch", "mixed", "--out", out],
                          env=dict(os.environ, LATHE_CUDA_DRIVER=driver, **environment), capture_output=True, text=True, timeout=120)
    if done.returncode == 0:
        assert np.array_equal(np.load(out)["mixed"], np.full(600, 9, np.float32))
    return done


assert run().returncode == 0
failed = last = 0
for call in range(1, 1000):
    done = run(LATHE_EMU_FAIL_CALL=str(call))
    assert done.returncode in (0, 1), (call, done.returncode, done.stderr)
    if done.returncode == 1:
        failed, last = failed + 1, call
        assert "cu" in done.stderr or "CUDA driver" in done.stderr or "has no" in done.stderr, (call, done.stderr)
    elif call > last + 20:
        break  # there are no more calls
assert failed > 10 and call > last + 20, (failed, last)
