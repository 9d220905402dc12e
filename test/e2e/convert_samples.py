"""convert_samples.py --samples DIR --out DIR [NAME ...]: real models by TensorFlow's converter in every way that it quantizes, each with
feeds and what LiteRT's reference kernels give (as run_tflite.py reads them). NAMEs: digits_cnn, lstm, conv_lstm, bert_tiny, mobilenet_v2,
efficientnet_b0, resnet50.

DIR holds folders with graph.pb or saved_model, inputs.npz and model.json; a mobilenet_v2 that is not there is made. Needs tensorflow and ai-edge-litert; for measurements
outside the test suite (docs/tflite.md)."""
import argparse
import json
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
import numpy as np
import tensorflow as tf
import tflite_ops

R = np.random.default_rng(5)
HOW = ("float", "dynamic", "float16", "int8", "int8_io", "int16x8")


def settings(converter, how, examples):
    if how != "float":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if how == "float16":
        converter.target_spec.supported_types = [tf.float16]
    if how in ("int8", "int8_io", "int16x8"):
        converter.representative_dataset = lambda: iter(examples)
        sets = tf.lite.OpsSet
        converter.target_spec.supported_ops = [sets.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8 if how == "int16x8"
                                               else sets.TFLITE_BUILTINS_INT8]
    if how == "int8_io":
        converter.inference_input_type = converter.inference_output_type = tf.int8


def mobilenet_v2(size=224):
    tf.keras.utils.set_random_seed(7)
    m = tf.keras.applications.MobileNetV2(weights=None, input_shape=(size, size, 3))
    for w in m.weights:  # batch norms that do something
        if "moving_variance" in w.name or "gamma" in w.name:
            w.assign(R.uniform(0.7, 1.3, w.shape))
        elif "moving_mean" in w.name or "beta" in w.name:
            w.assign(R.normal(0, 0.1, w.shape))
    examples = [[R.uniform(-1, 1, (1, size, size, 3)).astype(np.float32)] for _ in range(8)]
    return lambda: tf.lite.TFLiteConverter.from_keras_model(m), examples


def sample(folder):
    feeds = dict(np.load(os.path.join(folder, "inputs.npz")))
    info = json.load(open(os.path.join(folder, "model.json")))
    if os.path.isdir(os.path.join(folder, "saved_model")):
        examples = [[v[i:i + 1] for v in feeds.values()] if v0.shape[0] > 16 else list(feeds.values())
                    for v0 in [next(iter(feeds.values()))] for i in range(min(v0.shape[0], 40))]
        if len(examples) == 1 and len(feeds) == 1:  # an image: others like it say what ranges there are
            examples += [[R.normal(v.mean(), v.std(), v.shape).astype(v.dtype)] for v in examples[0] for _ in range(7)]
        return lambda: tf.lite.TFLiteConverter.from_saved_model(os.path.join(folder, "saved_model")), examples
    names, outputs = ([t["tensor"].split(":")[0] for t in info[side].values()] for side in ("feeds", "fetches"))
    shapes = {n: list(feeds[k].shape) for n, k in zip(names, info["feeds"])}
    make = lambda: tf.compat.v1.lite.TFLiteConverter.from_frozen_graph(os.path.join(folder, "graph.pb"), names, outputs, shapes)
    return make, [[feeds[k] for k in info["feeds"]]]


def record(content, examples, out, name):
    content = tflite_ops.without_wide_softmax(content)
    it = tflite_ops.interpreter(content)
    feeds = {}
    for d, value in zip(it.get_input_details(), examples[0]):
        if value.dtype != d["dtype"]:  # whole-integer inputs
            scale, zero = d["quantization"]
            value = np.clip(np.round(value / scale) + zero, -128, 127).astype(d["dtype"])
        feeds[d["name"]] = value
    want = tflite_ops.reference(content, feeds)
    with open(os.path.join(out, name + ".tflite"), "wb") as f:
        f.write(content)
    names = tflite_ops.signature_names(content)
    np.savez_compressed(os.path.join(out, name + ".npz"), **{names[0].get(k, k): v for k, v in feeds.items()},
                        **{"want/" + names[1].get(k, k): v for k, v in want.items()})
    print(name, len(content), flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--samples", required=True)
    p.add_argument("--out", required=True)
    p.add_argument("--how", default=",".join(HOW))
    p.add_argument("--size", type=int, default=224, help="of mobilenet_v2's images")
    p.add_argument("names", nargs="*")
    a = p.parse_args()
    os.makedirs(a.out, exist_ok=True)
    for name in a.names or ("digits_cnn", "lstm", "conv_lstm", "bert_tiny", "mobilenet_v2", "efficientnet_b0", "resnet50"):
        folder = os.path.join(a.samples, {"lstm": "lstm_multi_output"}.get(name, name))
        make, examples = sample(folder) if os.path.isdir(folder) else mobilenet_v2(a.size)
        for how in a.how.split(","):
            # in a process of its own: the calibrator ends it on some models
            child = os.fork()
            if child:
                status = os.waitpid(child, 0)[1]
                if status:
                    print(name, how, "ended with status", status, flush=True)
                continue
            try:
                converter = make()
                settings(converter, how, examples)
                record(converter.convert(), examples, a.out, f"{name}_{how}")
            except Exception as e:  # the converter refuses some
                print(name, how, "is not converted:", str(e).splitlines()[0], flush=True)
            os._exit(0)


main()
