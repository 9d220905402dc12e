"""A sample against what TensorFlow recorded, with the lathe of this environment: wheel_sample.py SAMPLE BUILD. Nothing may come from BUILD."""
import json
import os
import sys

import numpy as np

import lathe
import lathe.lite

sample, build = sys.argv[1:]
prefix, package = os.path.realpath(sys.prefix) + "/", os.path.dirname(os.path.realpath(lathe.__file__))
assert package.startswith(prefix), package
with open(f"{sample}/model.json") as f:
    model = json.load(f)
inputs, expected = np.load(f"{sample}/inputs.npz"), np.load(f"{sample}/expected.npz")


def check(got):
    assert set(got) == set(model["fetches"]), got
    for name, value in got.items():
        np.testing.assert_allclose(np.asarray(value), expected[name], rtol=1e-4, atol=1e-5, err_msg=name)


with lathe.Session(f"{sample}/graph.pb") as session:
    check(session.run({k: v["tensor"] for k, v in model["fetches"].items()}, {v["tensor"]: inputs[k] for k, v in model["feeds"].items()}))

with open("/proc/self/maps") as f:
    files = {line.split(maxsplit=5)[5].strip() for line in f if len(line.split(maxsplit=5)) == 6}
own = sorted(os.path.basename(file) for file in files if file.startswith(package + "/"))
assert "liblathe_compiler.so" in own and any(file.startswith("liblathe_proto.so") for file in own), own
foreign = [file for file in files if file.startswith(os.path.realpath(build) + "/") and not file.startswith(prefix)]
assert not foreign, foreign

# a library for a device has in it what calls the driver, which is in the package too; the emulated driver alone is the build's
lathe.compile(f"{sample}/graph.pb", "device", backend="cuda", emit="so",
              inputs={v["tensor"]: (None, *v["shape"][1:]) for v in model["feeds"].values()},
              outputs=[v["tensor"] for v in model["fetches"].values()])
os.environ["LATHE_CUDA_DRIVER"] = f"{build}/lib/emulated-cuda/libcuda.so.1"
results = lathe.load("device.so")(*(inputs[k] for k in model["feeds"]))
check({k: results[v["tensor"]] for k, v in model["fetches"].items()})
