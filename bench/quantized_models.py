"""How far quantized models are from float ones, on inputs that nobody calibrated with.

usage: quantized_models.py --lathe BUILD --zoo FOLDER [--max-error E] [--inputs 500] [MODEL ...]

For each model of a zoo (graph.pb or saved_model, and an inputs.npz that says what inputs look like): 32 random feeds calibrate
`lathe compile --quantize int8 --max-error E`; then the quantized and the float object run on other random inputs. Prints the share of
multiply-adds that are integers, the units that the search left float, and the share of inputs whose error, as a part of the output's
range over all inputs, keeps the bound. With --out FILE, as JSON, too.

Runs in a python that has numpy; BUILD/python is put on its path.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy as np


def draw(example, count, rng):
    """`count` inputs with the range and, for floats, the spread of an example."""
    shape = (count,) + example.shape
    if example.dtype.kind != "f":
        return rng.integers(example.min(), example.max(), shape, endpoint=True).astype(example.dtype)
    if example.min() >= -1 and example.max() <= 1:
        return rng.uniform(example.min(), example.max(), shape).astype(example.dtype)
    return rng.normal(example.mean(), example.std(), shape).astype(example.dtype)


def measure(args, name, work):
    import lathe  # from args.lathe
    folder = os.path.join(args.zoo, name)
    model = os.path.join(folder, "saved_model")
    model = model if os.path.isdir(model) else os.path.join(folder, "graph.pb")
    rng = np.random.default_rng(1)
    with np.load(os.path.join(folder, "inputs.npz")) as examples:
        examples = {k: examples[k] for k in examples.files}
    feeds, report = os.path.join(work, "feeds.npz"), os.path.join(work, "report.json")
    np.savez(feeds, **{k: draw(v, 32, rng) for k, v in examples.items()})
    program, objects = os.path.join(args.lathe, "bin/lathe"), {}
    for kind, more in (("float", []), ("int8", ["--quantize", "int8", "--calibrate", feeds, "--max-error", str(args.max_error),
                                                "--quantized-math", args.math, "--quantize-report", report])):
        prefix = os.path.join(work, kind)
        subprocess.run([program, "compile", model, "-o", prefix, "--emit", "so", *more], check=True, stderr=subprocess.DEVNULL)
        objects[kind] = lathe.load(prefix + ".so")
    with open(report) as f:
        told = json.load(f)
    off, ends = {}, {}  # of each output: the largest difference for each input, the range over all of them
    for _ in range(args.inputs):
        x = {k: draw(v, 1, rng)[0] for k, v in examples.items()}
        want, got = objects["float"](**x), objects["int8"](**x)
        for key in want:
            if np.asarray(want[key]).dtype.kind != "f":
                continue  # the bound is one of floats
            a, b = np.asarray(want[key], np.float64), np.asarray(got[key], np.float64)
            off.setdefault(key, []).append(np.abs(a - b).max())
            low, high = ends.get(key, (a.min(), a.max()))
            ends[key] = min(low, a.min()), max(high, a.max())
    errors = np.zeros(args.inputs)
    for key, (low, high) in ends.items():
        size = max(abs(low), abs(high))
        errors = np.maximum(errors, np.asarray(off[key]) / (high - low if high - low > 1e-3 * size else size or 1))
    worst, kept = errors.max(), int((errors <= args.max_error).sum())
    left = [n for n in told["nodes"] if not n["quantized"]]
    return {"model": name, "max_error": args.max_error, "integer_share": told["integer_share"], "units": len(told["nodes"]), "float_units": len(left),
            "held_out_error": max(o["largest_error"] for o in told["outputs"] if "largest_error" in o), "inputs": args.inputs, "within": kept / args.inputs,
            "largest_error": worst}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", required=True)
    parser.add_argument("--zoo", required=True)
    parser.add_argument("--max-error", type=float, default=0.05)
    parser.add_argument("--math", default="tflite", choices=["tflite", "fast"])
    parser.add_argument("--inputs", type=int, default=500)
    parser.add_argument("--out")
    parser.add_argument("models", nargs="*", default=["resnet50", "mobilenet_v2", "efficientnet_b0", "bert_base", "lstm_multi_output"])
    args = parser.parse_args()
    sys.path.insert(0, os.path.join(args.lathe, "python"))

    rows = []
    for name in args.models:
        with tempfile.TemporaryDirectory() as work:
            rows.append(measure(args, name, work))
        r = rows[-1]
        print(f"{r['model']:18} {100 * r['integer_share']:6.1f} % in integers, {r['float_units']} of {r['units']} units float; {100 * r['within']:.1f} % of "
              f"{r['inputs']} inputs within {r['max_error']}, largest error {r['largest_error']:.4f} (held out {r['held_out_error']:.4f})", flush=True)
    if args.out:
        with open(args.out, "w") as f:
            json.dump(rows, f, indent=1)


if __name__ == "__main__":
    main()
