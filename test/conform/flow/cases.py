"""Cases of control flow and run-time sizes, with TensorFlow's results: functions of TensorFlow become stored graphs.

python test/conform/flow/make.py test/conform/cases   (needs TensorFlow; the zips are committed)
"""
import base64
import io
import json
import os
import zipfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import numpy as np
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

CASES = {}


def case(spec, feeds, v1=False, name=None):
    """A function of arguments of `spec` ((shape, type) each), run once for each list of arrays in `feeds`."""

    def wrap(fn):
        CASES[name or fn.__name__] = (fn, spec, feeds, v1)
        return fn

    return wrap


def rnd(*shape, seed=0):
    return np.random.RandomState(seed + sum(shape)).randn(*shape).astype(np.float32)


def ints(*shape, lo=0, hi=10, seed=0, dt=np.int32):
    return np.random.RandomState(seed + sum(shape)).randint(lo, hi, size=shape).astype(dt)


def build(fn, spec, v1):
    """The graph, its inputs and outputs; `v1` with Switch and Merge, and variables kept."""
    if v1:
        tf.compat.v1.disable_control_flow_v2()
        graph = tf.Graph()
        with graph.as_default():
            inputs = [tf.compat.v1.placeholder(d, s, name=f"x{i}") for i, (s, d) in enumerate(spec)]
            outputs = [tf.identity(o, name=f"out{i}") for i, o in enumerate(tf.nest.flatten(fn(*inputs), expand_composites=True))]
        tf.compat.v1.enable_control_flow_v2()
        return graph, inputs, outputs
    concrete = tf.function(fn).get_concrete_function(*[tf.TensorSpec(s, d, name=f"x{i}") for i, (s, d) in enumerate(spec)])
    if concrete.variables:
        concrete = convert_variables_to_constants_v2(concrete, lower_control_flow=False)
    return concrete.graph, concrete.inputs[: len(spec)], tf.nest.flatten(concrete.outputs, expand_composites=True)


class Writer:
    """Puts one case into an archive: tensors as they come, case.json at the end."""

    def __init__(self, archive, name):
        self.archive, self.name, self.dtypes = archive, name, {}

    def tensor(self, stem, value):
        value = np.asarray(value)
        if value.dtype.kind in "OSU":
            texts = [base64.b64encode(v if isinstance(v, bytes) else str(v).encode()).decode() for v in value.ravel()]
            file, data, dtype = stem + ".strings.json", json.dumps({"shape": list(value.shape), "values": texts}), "string"
        else:
            buffer = io.BytesIO()
            np.save(buffer, value)
            file, data, dtype = stem + ".npy", buffer.getvalue(), str(value.dtype)
        self.archive.writestr(f"{self.name}/{file}", data)
        self.dtypes[file] = dtype
        return file

    def finish(self, graph, steps):
        meta = {"name": self.name, "steps": steps, "dtypes": self.dtypes, "ops": [], "tags": [],
                "rtol": {"float32": 1e-4, "float64": 1e-8}, "atol": {"float32": 1e-5, "float64": 1e-10}}
        self.archive.writestr(f"{self.name}/graph.pb", graph.SerializeToString())
        self.archive.writestr(f"{self.name}/case.json", json.dumps(meta))


def run(archive, name, graph, steps):
    """Runs (feeds, fetches, targets) after each other in one session of TensorFlow."""
    definition = graph.as_graph_def() if isinstance(graph, tf.Graph) else graph
    again = tf.Graph()
    with again.as_default():
        tf.import_graph_def(definition, name="")
    writer, listed = Writer(archive, name), []
    with tf.compat.v1.Session(graph=again) as session:
        for k, (feeds, fetches, targets) in enumerate(steps):
            results = session.run([fetches, [again.get_operation_by_name(t) for t in targets]], feeds)[0]
            listed.append({"feeds": {n: writer.tensor(f"feed_{k}_{j}", v) for j, (n, v) in enumerate(feeds.items())},
                           "fetches": fetches, "targets": targets,
                           "expected": [writer.tensor(f"expected_{k}_{j}", v) for j, v in enumerate(results)]})
    writer.finish(definition, listed)


def write(path):
    """All cases that were declared since the last call."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (fn, spec, feeds, v1) in CASES.items():
            graph, inputs, outputs = build(fn, spec, v1)
            names = [o.name for o in outputs]
            run(archive, name, graph, [({i.name: np.asarray(v, i.dtype.as_numpy_dtype) for i, v in zip(inputs, feed)}, names, [])
                                       for feed in feeds])
    print(len(CASES), "cases in", path)
    CASES.clear()
