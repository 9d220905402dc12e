"""make_tflite_nodes.py OUT [OTHERS]: TensorFlow Lite files with operators that run as nodes of a graph (strings, tables, TensorFlow's own without
a compiled form) between compiled ones: OUT/nodes_*.tflite, feeds and TensorFlow's results beside them, as run_tflite.py reads them. In OTHERS
those of test/cli/hosted-tflite.test: one with several signatures, and some that no object is made of."""
import base64
import json
import os
import sys
import tempfile

import numpy as np
import tensorflow as tf

import tflite_ops

F32, I32, I64, S = tf.float32, tf.int32, tf.int64, tf.string
WORDS = ["the", "film", "was", "good", "bad", "dull", "fun"]
rng = np.random.RandomState(0)


def rnd(*shape):
    return rng.randn(*shape).astype(np.float32)


def text(values):
    """Strings as lathe keeps them in npz files."""
    raw = [v if isinstance(v, bytes) else str(v).encode() for v in np.asarray(values, object).ravel().tolist()]
    return np.array(json.dumps({"shape": list(np.shape(values)), "values": [base64.b64encode(v).decode() for v in raw]}))


def convert(converter, path, variables=False):
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS, tf.lite.OpsSet.SELECT_TF_OPS]
    converter.experimental_enable_resource_variables = variables
    with open(path, "wb") as f:
        f.write(converter.convert())


class Signatures(tf.Module):
    """Three signatures: two share tables, one has a variable that is read and written on both sides of a node."""
    def __init__(self):
        super().__init__()
        self.ids = table(WORDS, range(1, 8), (S, I64), 0)
        self.words = table(range(1, 8), WORDS, (I64, S), "?")
        self.total = tf.Variable([10.0, 20.0])

    @tf.function(input_signature=[tf.TensorSpec([None], S, name="text")])
    def encode(self, text):
        ids = self.ids.lookup(text)
        return {"ids": ids, "sum": tf.reduce_sum(tf.cast(ids, F32) * 0.5)}

    @tf.function(input_signature=[tf.TensorSpec([None], I64, name="numbers")])
    def decode(self, numbers):
        return {"words": self.words.lookup(numbers * 2 - 1)}

    @tf.function(input_signature=[tf.TensorSpec([2], S, name="amounts")])
    def count(self, amounts):
        self.total.assign(self.total.read_value() * 0.5 + 1.0)
        whole = tf.strings.as_string(tf.cast(self.total.read_value(), I32))
        self.total.assign_add(tf.strings.to_number(tf.strings.join([whole, amounts])))
        return {"total": self.total.read_value(), "whole": whole}


def make_others(out):
    signatures = Signatures()
    with tempfile.TemporaryDirectory() as folder:
        keys = ["encode", "decode", "count"]
        tf.saved_model.save(signatures, folder, signatures={key: getattr(signatures, key) for key in keys})
        convert(tf.lite.TFLiteConverter.from_saved_model(folder, signature_keys=keys), os.path.join(out, "nodes_signatures.tflite"), True)

    make_quantized(os.path.join(out, "nodes_quantized.tflite"))

    def refused(name, fn, *specs):
        f = tf.function(fn, input_signature=specs).get_concrete_function()
        convert(tf.lite.TFLiteConverter.from_concrete_functions([f]), os.path.join(out, f"nodes_{name}.tflite"))
    refused("loop", lambda s: tf.while_loop(lambda i, t: i < 3, lambda i, t: (i + 1, tf.strings.join([t, "x"])), (0, s))[1], tf.TensorSpec([2], S, name="s"))
    refused("sums", lambda x, s: tf.reduce_sum(x, tf.strings.length(s)) * 0.5, tf.TensorSpec([1, 2, 2, 1], F32, name="x"), tf.TensorSpec([2], S, name="s"))


def make_quantized(path):
    """Bytes that stand for real numbers, in and out, around a RESHAPE whose sizes are an input: no part compiles that."""
    f = tflite_ops.File()
    x = f.input(np.zeros(6), "i8", scale=0.5, zero=3)
    sizes = f.input(np.array([2, 3]), "i32")
    added = f.tensor((6,), "i8", scale=1.0, zero=-2)
    f.op("ADD", [x, x], [added], tflite_ops.options("Add"), 2)
    f.op("RESHAPE", [added, sizes], [f.output((2, 3), "i8", scale=1.0, zero=-2)], tflite_ops.options("Reshape"), 1)
    with open(path, "wb") as out:
        out.write(f.bytes())


def make(out, name, fn, feeds, keep=()):
    """`feeds`: name -> (value, shape, type)."""
    module = tf.Module()
    module.keep = list(keep)
    module.f = tf.function(fn, input_signature=[tf.TensorSpec(shape, kind, name=n) for n, (_, shape, kind) in feeds.items()])
    convert(tf.lite.TFLiteConverter.from_concrete_functions([module.f.get_concrete_function()], module), os.path.join(out, f"nodes_{name}.tflite"))
    results = tf.nest.flatten(module.f(*[tf.constant(v, kind) for v, _, kind in feeds.values()]))
    arrays = {n: text(v) if kind == S else np.asarray(v, kind.as_numpy_dtype) for n, (v, _, kind) in feeds.items()}
    # a single result has the same name as the first of several
    arrays.update({f"want/output_{i}": text(r.numpy()) if r.dtype == S else r.numpy() for i, r in enumerate(results)})
    arrays["__dtypes__"] = np.array(json.dumps({n: "string" for n, (_, _, kind) in feeds.items() if kind == S}))
    np.savez_compressed(os.path.join(out, f"nodes_{name}.npz"), **arrays)


def table(keys, values, kinds, default):
    return tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(tf.constant(keys, kinds[0]), tf.constant(values, kinds[1])), default)


def main():
    out = sys.argv[1]
    if len(sys.argv) > 2:
        make_others(sys.argv[2])
    rows, weights, names = tf.constant(rnd(12, 4)), tf.constant(rnd(6, 2)), tf.constant(rnd(5, 9))

    ids = table(WORDS, range(1, 8), (S, I64), 0)

    def embed(s):
        i = ids.lookup(s)
        return i, tf.reduce_mean(tf.gather(rows, i), 0) * 2.0 + 1.0, ids.size()
    make(out, "table", embed, {"s": (["film", "x", "good", "fun"], [None], S)}, [ids])

    words = table(range(7), WORDS, (I64, S), "unknown")
    make(out, "names", lambda x: words.lookup(tf.argmax(tf.matmul(x, names), 1)), {"x": (rnd(3, 5), [3, 5], F32)}, [words])

    make(out, "strings", lambda s, i: (
        tf.gather(s, i), tf.reshape(s, [2, 2]), tf.equal(s, "a"), tf.expand_dims(s, 1), s[1:3], s[::2], tf.shape(s), tf.concat([s, s[:1]], 0),
        tf.stack([s, s], 1), tf.tile(s, [2]), tf.transpose(tf.reshape(s, [2, 2])), tf.fill([3], s[3]), tf.not_equal(s, s[::-1]),
        tf.gather_nd(s, [[3], [1]]), tf.split(s, 2)[1], tf.unstack(s)[3]),
         {"s": (["a", "bb", "", "d\u00e9"], [4], S), "i": ([3, 0, 1], [3], I32)})

    vectorize = tf.keras.layers.TextVectorization(max_tokens=20, output_sequence_length=6, vocabulary=WORDS)
    make(out, "text", lambda s: (vectorize(s), tf.matmul(tf.cast(vectorize(s), F32), weights)),
         {"s": (["The film was good!", "a dull, dull thing"], [None], S)}, [vectorize])
    make(out, "split", lambda s: (tf.strings.split(s).to_tensor("-"), tf.cast(tf.strings.length(s), F32) * 0.5),
         {"s": (["a b c", "x", ""], [None], S)})
    make(out, "numbers", lambda s: tf.nn.relu(tf.strings.to_number(s) + 1.5), {"s": (["1.5", "-3"], [2], S)})
    # sizes that nodes make: where compiled code cannot follow them, its operators become nodes as well
    make(out, "sizes", lambda s, t, x: (tf.reshape(x, tf.strings.to_number(s, I32)) + 1.0, tf.zeros([tf.size(t) * 2, 3]) + x[:3]),
         {"s": (["2", "3"], [2], S), "t": (["a", "b", "c"], [None], S), "x": (rnd(6), [6], F32)})
    wide, narrow = tf.constant(rnd(12, 4)), tf.constant(rnd(4, 3))

    def classify(s):
        i = ids.lookup(tf.strings.split(tf.strings.regex_replace(tf.strings.lower(s), "[^a-z ]", "")).to_tensor("", shape=[None, 6]))
        known = tf.cast(i > 0, F32)[..., None]
        mean = tf.reduce_sum(tf.gather(wide, i) * known, 1) / tf.maximum(tf.reduce_sum(known, 1), 1.0)
        return i, tf.nn.softmax(tf.matmul(tf.nn.relu(mean), narrow))
    make(out, "classifier", classify, {"s": (["The film was good!", "a dull, dull thing", ""], [None], S)}, [ids])
    make(out, "ctc", lambda x: tf.sparse.to_dense(tf.nn.ctc_beam_search_decoder(tf.nn.relu(x), tf.constant([5, 5]), 4, 1)[0][0]),
         {"x": (rnd(5, 2, 4), [5, 2, 4], F32)})
    make(out, "boxes", lambda b, s: tuple(tf.image.combined_non_max_suppression(tf.nn.sigmoid(b), tf.nn.sigmoid(s), 3, 5)),
         {"b": (rnd(1, 6, 1, 4), [1, 6, 1, 4], F32), "s": (rnd(1, 6, 2), [1, 6, 2], F32)})
    def spread(x, s):
        n = tf.strings.length(s)
        return (tf.image.resize(x, n) * 0.5, tf.image.resize(x, n + 1, "nearest") + 1.0, tf.pad(x * 2.0, [[0, 0], [n[0] - 2, 1], [1, n[1] - 3], [0, 0]], "REFLECT"),
                tf.space_to_batch(x[:, :, :2] + 0.5, n - 1, [[n[1] - 3, 0], [0, n[1] - 3]]), tf.transpose(x, tf.concat([n - 2, [3, 0]], 0)) * 3.0,
                tf.expand_dims(x - 1.0, n[0]), tf.reverse(x, n[1:] - 1) + 2.0)
    make(out, "spread", spread, {"x": (rnd(1, 3, 4, 2), [1, 3, 4, 2], F32), "s": (["abc", "abcd"], [2], S)})
    # lengths that are numbers of an input
    make(out, "lengths", lambda x, n: (tf.cast(tf.range(1, n * 2, n - 1), F32) * 0.5, tf.pad(x * 2.0, [[n - 2, n]]), tf.pad(x, [[0, n]], constant_values=7.0),
                                       tf.one_hot(tf.range(n), n + 1) + 1.0, *tf.math.top_k(x + 0.5, n - 1)),
         {"x": (rnd(6), [6], F32), "n": (3, [], I32)})


main()
