"""unseen_models.py --lathe LATHE --out DIR [--bound 0.05] [MODEL...]

Models with drawn weights that nothing was tuned for, through the quantizer and the writer, beside TensorFlow's converter and LiteRT:

  written    the SavedModel as a float file, and quantized in each way: LiteRT runs the file; its signal-to-noise ratio over unseen inputs
             beside that of the converter's own int8 file
  again      the converter's files in six flavours, read and written: the same results, bit for bit where they are integers
  bound      int8 with --max-error: the share of multiply-adds in integers, and the largest error over 100 unseen inputs

Needs TensorFlow 2.21 and ai_edge_litert. Each model has a process of its own: the converter's calibrator ends it for some (loops of lists).
Exit status 1 where a file is not written or differs, or a bound is exceeded."""
import argparse
import os
import subprocess
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
from unseen_zoo import CALIBRATE, MODELS, UNSEEN

COMPARE = 8


def interpreter(path, reference=True):
    from ai_edge_litert.interpreter import Interpreter, OpResolverType
    kind = OpResolverType.BUILTIN_REF if reference else OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    try:
        i = Interpreter(model_path=path, experimental_op_resolver_type=kind)
        i.allocate_tensors()
        return i
    except ValueError as e:  # Python's list of reference kernels lacks a few
        if reference and "Didn't find op" in str(e):
            return interpreter(path, False)
        raise


def run(path, inputs):
    """The only result of each input, and the tensor's details."""
    i = interpreter(path)
    into, out = i.get_input_details()[0], i.get_output_details()[0]
    scale, zero = into["quantization"]
    results = []
    for x in inputs:
        if scale:
            x = np.clip(np.round(x / scale) + zero, *(np.iinfo(into["dtype"]).min, np.iinfo(into["dtype"]).max)).astype(into["dtype"])
        i.reset_all_variables()
        i.set_tensor(into["index"], x[None])
        i.invoke()
        results.append(i.get_tensor(out["index"]).copy())
    return np.stack(results), out


def real(values, out):
    scale, zero = out["quantization"]
    return (values.astype("d") - zero) * scale if scale else values.astype("d")


def decibels(want, got):
    noise = np.sum((got - want) ** 2)
    return f"{10 * np.log10(np.sum(want ** 2.0) / noise):.1f}" if noise else "exact"


def convert(concrete, inputs, folder):
    import tensorflow as tf
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2
    frozen = convert_variables_to_constants_v2(concrete, lower_control_flow=False)
    sets, optimize = tf.lite.OpsSet, [tf.lite.Optimize.DEFAULT]
    feeds = {"representative_dataset": lambda: ([x[None]] for x in inputs[:CALIBRATE])}
    flavours = {"float": {}, "dynamic": {"optimizations": optimize}, "float16": {"optimizations": optimize, "types": [tf.float16]},
                "int8": {"optimizations": optimize, **feeds}, "int8io": {"optimizations": optimize, "io": tf.int8, "ops": [sets.TFLITE_BUILTINS_INT8], **feeds},
                "16x8": {"optimizations": optimize, "ops": [sets.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8], **feeds}}
    for name, options in flavours.items():
        if name == "int8io" and inputs.dtype != np.float32:
            continue
        c = tf.lite.TFLiteConverter.from_concrete_functions([frozen])
        c.optimizations, c.representative_dataset = options.get("optimizations", []), options.get("representative_dataset")
        c.target_spec.supported_types = options.get("types", [])
        c.target_spec.supported_ops = options.get("ops", [sets.TFLITE_BUILTINS])
        c.inference_input_type = c.inference_output_type = options.get("io", tf.float32)
        try:
            data = c.convert()
        except Exception:  # operators that the converter does not quantize so
            continue
        open(os.path.join(folder, name + ".tflite"), "wb").write(data)


def make(name, folder):
    import tensorflow as tf
    tf.keras.utils.set_random_seed(5)
    model, inputs = MODELS[name](tf.keras, tf.keras.layers)
    for layer in model._flatten_layers():
        if isinstance(layer, tf.keras.layers.BatchNormalization):
            layer.momentum = 0.5
        if type(layer).__name__ == "LayerScale":  # as it begins, its block is nothing
            layer.gamma.assign(tf.random.uniform(layer.gamma.shape, 0.1, 0.5))
    for k in range(4):  # statistics of batch norms
        model(inputs[8 * k:8 * k + 16], training=True)
    concrete = tf.function(lambda x: {"y": model(x, training=False)}).get_concrete_function(tf.TensorSpec([1, *inputs.shape[1:]], inputs.dtype, name="x"))
    tf.saved_model.save(model, os.path.join(folder, "saved"), signatures=concrete)
    want = np.stack([concrete(tf.constant(x[None]))["y"].numpy() for x in inputs[CALIBRATE:]])
    np.savez(os.path.join(folder, "data.npz"), inputs=inputs, want=want)
    np.savez(os.path.join(folder, "calibrate.npz"), x=inputs[:CALIBRATE])
    convert(concrete, inputs, folder)


def check(a, name, folder):
    data = np.load(os.path.join(folder, "data.npz"))
    unseen, want, ok = data["inputs"][CALIBRATE:], data["want"], True
    saved, stem = os.path.join(folder, "saved"), os.path.join(folder, "written")

    def write(model, *options):
        done = subprocess.run([a.lathe, "compile", model, "--emit", "tflite", "-o", stem, *options], capture_output=True, text=True)
        return done.returncode == 0, done.stderr.strip()

    calibrate = ["--calibrate", os.path.join(folder, "calibrate.npz")]
    line, int8 = [], os.path.join(folder, "int8.tflite")
    if os.path.exists(int8):
        line.append("converter int8 " + decibels(want[:COMPARE], real(*run(int8, unseen[:COMPARE]))))
    for kind, options in {"float": [], "dynamic": ["--quantize", "dynamic"], "float16": ["--quantize", "float16"], "int8": ["--quantize", "int8", *calibrate],
                          "int8 io": ["--quantize", "int8", "--io", "int8", *calibrate], "int16x8": ["--quantize", "int16x8", *calibrate]}.items():
        fine, text = write(saved, *options)
        ok &= fine
        line.append(f"{kind} " + (decibels(want[:COMPARE], real(*run(stem + ".tflite", unseen[:COMPARE]))) if fine else text[-200:]))
    print(f"{name}: written, dB: " + ", ".join(line), flush=True)
    line = []
    for flavour in ("float", "dynamic", "float16", "int8", "int8io", "16x8"):
        path = os.path.join(folder, flavour + ".tflite")
        if not os.path.exists(path):
            continue
        fine, text = write(path)
        if fine:
            (before, how), (after, now) = run(path, unseen[:COMPARE]), run(stem + ".tflite", unseen[:COMPARE])
            error = np.max(np.abs(real(before, how) - real(after, now))) / max(np.max(np.abs(real(before, how))), 1e-30)
            fine = error <= (1e-5 if before.dtype.kind == "f" else 0)
            text = f"{error:.1e}" if error else "same"
        ok &= fine
        line.append(f"{flavour} {text[-200:]}")
    print(f"{name}: again: " + ", ".join(line), flush=True)
    fine, text = write(saved, "--quantize", "int8", *calibrate, "--max-error", str(a.bound))
    if fine:
        errors = np.abs(real(*run(stem + ".tflite", unseen)) - want).reshape(UNSEEN, -1).max(1) / (want.max() - want.min())
        text = next(t for t in text.splitlines() if "multiply-adds in integers" in t).split(",")[0].removeprefix("int8: ") + f", largest error {errors.max():.3f}"
        fine = np.mean(errors <= a.bound) >= 0.99
    print(f"{name}: bound: {text[-200:]}", flush=True)
    return ok and fine


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--lathe", required=True)
    p.add_argument("--out", required=True)
    p.add_argument("--bound", type=float, default=0.05)
    p.add_argument("--make", action="store_true", help=argparse.SUPPRESS)
    p.add_argument("models", nargs="*")
    a = p.parse_args()
    bad = []
    for name in a.models or MODELS:
        folder = os.path.join(a.out, name)
        os.makedirs(folder, exist_ok=True)
        if a.make:
            make(name, folder)
            continue
        subprocess.run([sys.executable, __file__, "--lathe", a.lathe, "--out", a.out, "--make", name], stderr=subprocess.DEVNULL)
        if not check(a, name, folder):
            bad.append(name)
    sys.exit(f"failed: {' '.join(bad)}" if bad else 0)


if __name__ == "__main__":
    main()
