"""record.py OUT.zip [--recipes MODULE ...] [--op NAME ...]: records cases from TensorFlow (tensorflow-cpu 2.21) for operations that
the corpus lacks.

Each entry of the modules (recipes and recipes_state, unless others are named) builds a small graph for each type that the operation
takes. TensorFlow runs it twice, with its graph optimizer and without; a case is kept where both give the same. A type that TensorFlow
has no CPU kernel for is left out; where it has none at all, a step has tensors of other operations that give the same as `expected`.
"""
import argparse
import importlib
import json
import os
import sys
import zipfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cases as corpus  # noqa: E402
import recipes  # noqa: E402

# by the least precise type of a case
TOLERANCE = {"bfloat16": (3e-2, 1e-2), "float16": (1e-2, 2e-3), "float32": (1e-4, 2e-6), "float64": (1e-8, 1e-12)}
ORDER = ["bfloat16", "float16", "float32", "float64"]


def stored(value):
    """As cases.py keeps it."""
    value = np.asarray(value)
    if value.dtype.kind in "SU":
        return value.astype(object)
    return value.view(corpus.storage(value.dtype.name)) if value.dtype.name in corpus.STORED_AS else value


def execute(graph, steps, optimize):
    config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    level = tf.OptimizerOptions.L1 if optimize else tf.OptimizerOptions.L0
    config.graph_options.optimizer_options.opt_level = level
    config.graph_options.place_pruned_graph = any("expected" in step for step in steps)
    if not optimize:
        config.graph_options.rewrite_options.disable_meta_optimizer = True
    with tf.Session(graph=graph, config=config) as session:
        return [session.run([step.get("expected", step.get("fetches", [])), step.get("targets", [])],
                            {k: v for k, v in step.get("feeds", {}).items()})[0] for step in steps]


def tolerances(tensors):
    kinds = [{"complex64": "float32", "complex128": "float64"}.get(d, d) for d, _ in tensors]
    least = next((d for d in ORDER if d in kinds), None)
    if not least:
        return {}, {}
    rtol, scale = TOLERANCE[least]
    rs, as_ = {}, {}
    for dtype, data in tensors:
        if dtype in corpus.INEXACT:
            wide = np.abs(corpus.widen(data, dtype)).reshape(-1)
            largest = float(np.max(wide[np.isfinite(wide)], initial=0))
            rs[dtype] = rtol
            as_[dtype] = max(as_.get(dtype, 0), 5 * scale, scale * largest)
    return rs, as_


def same(a, b):
    if a.dtype == object:
        return a.shape == b.shape and a.tolist() == b.tolist()
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def record(name, op, dtype, build):
    """Files of a case, or a reason why there is none."""
    graph = tf.Graph()
    try:
        with graph.as_default():
            steps = build(dtype)
        first, second = execute(graph, steps, True), execute(graph, steps, False)
    except Exception as e:  # pylint: disable=broad-except
        return None, str(e).split("\n")[0][:200]
    files, meta_steps, dtypes, outputs = {}, [], {}, []
    for s, (step, a, b) in enumerate(zip(steps, first, second)):
        meta = {"feeds": {}, "fetches": [t.name for t in step.get("fetches", [])],
                "targets": [t.name for t in step.get("targets", [])], "expected": []}
        for k, (tensor, value) in enumerate(step.get("feeds", {}).items()):
            data = stored(np.asarray(value, tensor.dtype.as_numpy_dtype))
            suffix, raw = corpus.encode(data)
            file = f"feed_{s}_{k}{suffix}"
            files[file], dtypes[file], meta["feeds"][tensor.name] = raw, tensor.dtype.base_dtype.name, file
        for i, (tensor, x, y) in enumerate(zip(step.get("fetches", []), a, b)):
            if not same(stored(x), stored(y)):
                return None, "the graph optimizer changes the result"
            suffix, raw = corpus.encode(stored(x))
            file = f"expected_{s}_{i}{suffix}"
            files[file], dtypes[file] = raw, tensor.dtype.base_dtype.name
            meta["expected"].append(file)
            outputs.append((dtypes[file], stored(x)))
        meta_steps.append(meta)
    rtol, atol = tolerances(outputs + [(dtype, np.zeros(0, corpus.storage(dtype)))])
    definition = graph.as_graph_def()
    ops = sorted({n.op for n in definition.node} | {n.op for f in definition.library.function for n in f.node_def})
    if op not in ops:
        return None, f"the graph has no {op}"
    meta = {"name": name, "ops": ops, "steps": meta_steps, "tags": [], "dtypes": dtypes, "rtol": rtol, "atol": atol}
    files["graph.pb"] = definition.SerializeToString(deterministic=True)
    files["case.json"] = json.dumps(meta, indent=1, sort_keys=True).encode()
    return files, None


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out")
    p.add_argument("--recipes", action="append", help="a module of recipes beside this file")
    p.add_argument("--op", action="append", default=[])
    args = p.parse_args()
    chosen = args.recipes or ["recipes", "recipes_state"]
    for module in chosen:
        importlib.import_module(module)
    tf.disable_eager_execution()
    count = 0
    with zipfile.ZipFile(args.out, "w", zipfile.ZIP_DEFLATED) as z:
        for op, types, build in recipes.all():
            if build.__module__ not in chosen or (args.op and op not in args.op):
                continue
            made, why = [], {}
            label = f".{build.label}" if hasattr(build, "label") else ""
            for dtype in types:
                name = f"{op}{label}.{dtype}"
                files, reason = record(name, op, dtype, build)
                if not files:
                    why[dtype] = reason
                    continue
                made.append(dtype)
                for file, raw in sorted(files.items()):
                    z.writestr(zipfile.ZipInfo(f"{name}/{file}"), raw, zipfile.ZIP_DEFLATED)
            count += len(made)
            print(op + label, " ".join(made) or "nothing", "".join(f"\n   no {d}: {r}" for d, r in why.items()), flush=True)
    print(count, "cases")


if __name__ == "__main__":
    main()
