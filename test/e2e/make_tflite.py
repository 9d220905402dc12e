"""Writes test/data/tflite: models that TensorFlow's converter makes and single operators (tflite_ops.py), each with feeds and what
LiteRT's reference kernels give in NAME.npz (feeds under their names, results under "want/NAME").

Needs tensorflow and ai-edge-litert; the files are committed, so that tests need neither."""
import os
import sys
import numpy as np
import tensorflow as tf
from tensorflow import keras
import tflite_ops
from ai_edge_litert.interpreter import Interpreter, OpResolverType

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "tflite")
R = np.random.default_rng(11)
# what the reference resolver does not have or does in a way of its own (its SUM takes int8 for uint8, its response normalization leaves
# out the last channel of the window): the other kernels, without XNNPACK
NO_REFERENCE = ("ceil", "round", "elu", "sum_i8", "lrn")
UNSUPPORTED = ("atan2_f32_1", "atan2_f32_2", "atan2_f32_3")  # LiteRT does not broadcast there


def outputs_of(model, feeds, signature=None, resolver=OpResolverType.BUILTIN_REF):
    it = Interpreter(model_content=model, experimental_op_resolver_type=resolver)
    if signature:
        runner = it.get_signature_runner(signature)
        return runner(**feeds)
    return tflite_ops.reference(model, feeds, resolver)


def write(name, model, feeds, want):
    with open(os.path.join(OUT, name + ".tflite"), "wb") as f:
        f.write(model)
    np.savez_compressed(os.path.join(OUT, name + ".npz"), **feeds, **{"want/" + k: v for k, v in want.items()})
    print(f"{name}: {len(model)} bytes, results {[(k, v.dtype.name, v.shape) for k, v in want.items()][:3]}")


def small_cnn(how):
    keras.utils.set_random_seed(3)
    i = keras.Input((12, 12, 3), name="image")
    x = keras.layers.Conv2D(8, 3, padding="same", use_bias=False)(i)
    x = keras.layers.BatchNormalization()(x)
    x = keras.layers.ReLU(6.0)(x)
    y = keras.layers.DepthwiseConv2D(3, padding="same")(x)
    x = keras.layers.Add()([x, keras.layers.ReLU()(y)])
    x = keras.layers.Conv2D(24, 3, strides=2, activation=None if how == "int16x8" else "hard_swish")(x)
    x = keras.layers.MaxPooling2D(2)(x)
    x = keras.layers.Concatenate()([x, keras.layers.Activation("sigmoid")(x)])
    x = keras.layers.GlobalAveragePooling2D()(x)
    x = keras.layers.Dense(10, activation="tanh")(x)
    return keras.Model(i, keras.layers.Dense(5, activation="softmax")(x))


def convert(model, how, io=None):
    c = tf.lite.TFLiteConverter.from_keras_model(model)
    shape = model.input_shape[1:]
    if how != "float":
        c.optimizations = [tf.lite.Optimize.DEFAULT]
    if how == "float16":
        c.target_spec.supported_types = [tf.float16]
    if how in ("int8", "int16x8"):
        c.representative_dataset = lambda: ([R.normal(size=(1,) + shape).astype(np.float32)] for _ in range(20))
        builtins = tf.lite.OpsSet
        c.target_spec.supported_ops = [builtins.TFLITE_BUILTINS_INT8 if how == "int8" else
                                       builtins.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8]
    if io:
        c.inference_input_type = c.inference_output_type = io
    return c.convert()


ALL = [("float", None), ("dynamic", None), ("float16", None), ("int8", None), ("int8", tf.int8), ("int16x8", None)]


def converted(name, make, batch=2, ways=ALL):
    for how, io in ways:
        try:
            content = convert(make(how), how, io)
        except Exception as e:
            print(name, how, "is not converted:", str(e).splitlines()[0])
            continue
        it = Interpreter(model_content=content)
        d = it.get_input_details()[0]
        shape = [n if n > 0 else batch for n in d["shape_signature"]]
        x = R.normal(size=shape).astype(np.float32)
        if io:
            x = R.integers(-128, 128, shape).astype(np.int8)
        key = list(it.get_signature_list())[0]
        inputs = it.get_signature_list()[key]["inputs"]
        runner_feeds = {inputs[0]: x}
        # signature runners keep the size of the file: resize by hand
        feeds = {d["name"]: x}
        want = tflite_ops.reference(content, feeds)
        names = it.get_signature_list()[key]["outputs"]
        want = {n: v for n, v in zip(names, want.values())}
        write(f"{name}_{how}{'_io' if io else ''}", content, runner_feeds, want)


class Stateful(tf.Module):
    def __init__(self):
        self.total = tf.Variable(tf.constant([1.0, 2.0, 3.0]), name="total")

    @tf.function(input_signature=[tf.TensorSpec([3], tf.float32, name="x")])
    def accumulate(self, x):
        self.total.assign_add(x)
        return {"total": self.total.read_value()}

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, name="x"), tf.TensorSpec([], tf.int32, name="n")])
    def control(self, x, n):
        y = tf.while_loop(lambda i, v: i < n, lambda i, v: (i + 1, v * 1.5 + tf.cast(i, tf.float32)), [tf.constant(0), x])[1]
        z = tf.cond(tf.reduce_sum(y) > 10.0, lambda: y - 1.0, lambda: tf.sin(y))
        return {"looped": z, "size": tf.shape(z)}


def functions():
    m = Stateful()
    c = tf.lite.TFLiteConverter.from_concrete_functions([m.control.get_concrete_function()], m)
    content = c.convert()
    feeds = {"x": R.normal(size=(4, 3)).astype(np.float32), "n": np.int32(5)}
    it = Interpreter(model_content=content)
    by_name = {d["name"]: feeds["n" if d["shape"].size == 0 else "x"] for d in it.get_input_details()}
    want = tflite_ops.reference(content, by_name, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    names = tflite_ops.signature_names(content)[1]
    write("control", content, by_name, {names.get(k, k): v for k, v in want.items()})
    import tempfile
    with tempfile.TemporaryDirectory() as d:
        tf.saved_model.save(m, d, signatures={"accumulate": m.accumulate.get_concrete_function()})
        c = tf.lite.TFLiteConverter.from_saved_model(d, signature_keys=["accumulate"])
        c.experimental_enable_resource_variables = True
        content = c.convert()
    x = R.normal(size=3).astype(np.float32)
    write("variable", content, {"x": x}, outputs_of(content, {"x": x}, "accumulate", OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES))


class Counter(tf.Module):
    def __init__(self):
        self.total = tf.Variable(tf.constant([10.0, 20.0]), name="total")

    @tf.function(input_signature=[tf.TensorSpec([2], tf.float32, name="x")])
    def add(self, x):
        return {"sum": self.total.assign_add(x)}

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32, name="factor")])
    def scaled(self, factor):
        return {"scaled": self.total * factor}


def signatures():
    """Two entries over one variable."""
    import tempfile
    m = Counter()
    with tempfile.TemporaryDirectory() as d:
        tf.saved_model.save(m, d, signatures={"add": m.add.get_concrete_function(), "scaled": m.scaled.get_concrete_function()})
        c = tf.lite.TFLiteConverter.from_saved_model(d, signature_keys=["add", "scaled"])
        c.experimental_enable_resource_variables = True
        with open(os.path.join(OUT, "..", "..", "tflite_api", "signatures.tflite"), "wb") as f:
            f.write(c.convert())


def served(f, **settings):
    """The file of a function, with a signature of its names; TensorFlow's own operators where there are no others."""
    import tempfile
    m = tf.Module()
    m.f = f
    with tempfile.TemporaryDirectory() as d:
        tf.saved_model.save(m, d, signatures={"serving_default": f.get_concrete_function()})
        c = tf.lite.TFLiteConverter.from_saved_model(d)
        c.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS, tf.lite.OpsSet.SELECT_TF_OPS]
        for name, value in settings.items():
            setattr(c, name, value)
        return c.convert()


def flex():
    """TensorFlow's own operators in a file, which LiteRT alone does not run: results are TensorFlow's."""
    @tf.function(input_signature=[tf.TensorSpec([None, 6], tf.float32, name="x"), tf.TensorSpec([4], tf.int32, name="ids")])
    def f(x, ids):
        y = tf.math.erf(x) + tf.raw_ops.Softsign(features=x)
        z = tf.linalg.band_part(tf.matmul(y, y, transpose_a=True), 1, 2)
        s = tf.math.unsorted_segment_sum(x[:4], ids, 3)
        return {"y": tf.nn.relu(y), "band": z, "sums": s, "bits": tf.bitwise.bitwise_and(ids, 5)}
    feeds = {"x": R.normal(size=(5, 6)).astype(np.float32), "ids": np.array([2, 0, 2, 1], np.int32)}
    write("flex", served(f), feeds, {k: v.numpy() for k, v in f(**feeds).items()})


def lists():
    """Lists that loops carry: with elements of a size that only the run knows, of a known one, and stacks that one loop fills and another
    empties (a gradient). LiteRT alone does not run them: results are TensorFlow's. And numbers of 16 bits between."""
    @tf.function(input_signature=[tf.TensorSpec([None, None, 3], tf.float32, name="x"), tf.TensorSpec([4, 3], tf.float32, name="w")])
    def f(x, w):
        steps = tf.transpose(x, [1, 0, 2])
        sums = tf.scan(lambda total, now: tf.tanh(total + 2 * now), steps, tf.zeros_like(steps[0]))
        rows = tf.TensorArray(tf.float32, size=4, element_shape=[3])
        rows = tf.while_loop(lambda i, r: i < 4, lambda i, r: (i + 1, r.write(3 - i, w[i] * tf.cast(i, tf.float32))), [0, rows])[1]
        with tf.GradientTape() as tape:
            tape.watch(w)
            y = tf.while_loop(lambda i, v: i < 5, lambda i, v: (i + 1, tf.sin(v * w) + v), [0, w], maximum_iterations=5)[1]
        narrow = tf.cast(tf.cast(w, tf.bfloat16), tf.float32)
        return {"sums": sums, "rows": rows.stack(), "slope": tape.gradient(y, w), "narrow": narrow}
    feeds = {"x": R.normal(size=(2, 6, 3)).astype(np.float32), "w": R.normal(size=(4, 3)).astype(np.float32)}
    content = served(f, _experimental_lower_tensor_list_ops=False)
    write("lists", content, feeds, {k: v.numpy() for k, v in f(**feeds).items()})


def mapped():
    """Lists as the converter's own operators: numbers that a loop puts into them."""
    @tf.function(input_signature=[tf.TensorSpec([4, 3], tf.float32, name="x")])
    def f(x):
        numbers = tf.map_fn(lambda v: tf.sin(v) * 2.0, x[:, 1])
        places = tf.map_fn(lambda row: tf.argmax(row, output_type=tf.int32), x, fn_output_signature=tf.int32)
        return {"numbers": numbers + 1.0, "places": places}
    feeds = {"x": R.normal(size=(4, 3)).astype(np.float32)}
    write("mapped", served(f), feeds, {k: v.numpy() for k, v in f(**feeds).items()})


def sizes():
    """Arithmetic on sizes that only the run knows: what comes of it gives other tensors their sizes."""
    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.float32, name="x"), tf.TensorSpec([None], tf.int32, name="ids")])
    def f(x, ids):
        n, m = tf.shape(x)[0], tf.shape(x)[1]
        y = tf.nn.relu(x)
        halves = tf.shape(y)[0] // 2
        steps = tf.range(n)
        rows = tf.math.unsorted_segment_sum(tf.gather(x, ids), ids, n)
        far = tf.math.unsorted_segment_max(tf.gather(rows, ids), ids, tf.shape(rows)[0])
        wide = tf.concat([x, tf.zeros(tf.stack([n, 3]))], 1)
        return {"steps": steps, "far": tf.where(far > -1e30, far, tf.zeros_like(far)),
                "flat": tf.reshape(wide, tf.stack([n * tf.shape(wide)[1], 1])), "half": x[:halves], "filled": tf.fill([m, 2], 7),
                "hot": tf.one_hot(ids, n), "tiled": tf.tile(x[:1], [n, 2]), "spread": tf.broadcast_to(x[0], [2, m]),
                "placed": tf.scatter_nd(ids[:, None], tf.gather(x, ids), tf.shape(x)), "odd": tf.range(1, 2 * n + 1, 2),
                "last": tf.slice(x, [n - 1, 0], [1, m - 1]), "fold": tf.reshape(x, tf.concat([[1], tf.shape(x)], 0))}
    feeds = {"x": R.normal(size=(5, 6)).astype(np.float32), "ids": np.array([2, 0, 2, 1], np.int32)}
    write("sizes", served(f), feeds, {k: v.numpy() for k, v in f(**feeds).items()})


def custom():
    """Operators that nobody but the program has, between others: 3 x -> Sum of rows (two values) -> + 1 -> Repeat, whose options say how often."""
    f = tflite_ops.File()
    x = f.input(R.normal(size=(2, 3)), "f32")
    three, one = f.tensor((), "f32", 3), f.tensor((), "f32", 1)
    scaled, sums, moved, largest = f.tensor((2, 3), "f32"), f.tensor((2,), "f32"), f.tensor((2,), "f32"), f.tensor((2,), "f32")
    f.op("MUL", [x, three], [scaled], tflite_ops.options("Mul"))
    f.op("RowSums", [scaled], [sums, largest], b"")
    f.op("ADD", [sums, one], [moved], tflite_ops.options("Add"))
    f.op("Repeat", [moved], [f.output((4,), "f32")], b"\x02", version=2)
    f.op("NEG", [largest], [f.output((2,), "f32")])
    with open(os.path.join(OUT, "..", "..", "tflite_api", "custom.tflite"), "wb") as out:
        out.write(f.bytes())


def operators():
    cases = tflite_ops.Cases()
    plain = tflite_ops.File()
    for family in ("unary", "binary", "conv", "product", "pool", "reduce", "shape", "norm", "recurrent", "narrow", "sparse"):
        merged = tflite_ops.File()
        cases.new = lambda name: plain if name.startswith(NO_REFERENCE) else merged if name not in UNSUPPORTED else tflite_ops.File()
        getattr(cases, family)()
        content = merged.bytes()
        write("ops_" + family, content, merged.feeds, outputs_of(content, merged.feeds))
    content = plain.bytes()
    write("ops_plain", content, plain.feeds, outputs_of(content, plain.feeds, resolver=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES))


def main():
    os.makedirs(OUT, exist_ok=True)
    only = sys.argv[1:]
    if not only or "ops" in only:
        operators()
    if not only or "functions" in only:
        functions()
    if not only or "signatures" in only:
        signatures()
    if not only or "custom" in only:
        custom()
    if not only or "flex" in only:
        flex()
    if not only or "lists" in only:
        lists()
    if not only or "mapped" in only:
        mapped()
    if not only or "sizes" in only:
        sizes()
    if not only or "models" in only:
        converted("cnn", small_cnn)
    if not only or "recurrent" in only:
        # recurrent layers need a known batch
        i = keras.Input(batch_shape=(1, 6, 20), name="steps")
        converted("lstm", lambda how: keras.Model(i, keras.layers.Dense(3)(keras.layers.LSTM(16)(i))), ways=ALL[:4])
        i = keras.Input(batch_shape=(1, 6, 20), name="steps")
        converted("gru", lambda how: keras.Model(i, keras.layers.Dense(3)(keras.layers.GRU(16, return_sequences=True)(i))), ways=ALL[:3])


main()
