"""What the families of models share: builders that write a model in the zoo's format, and layers.

A model is a function of a builder: it asks for inputs and returns the output, or outputs by name. Its docstring becomes the notes.
"""
import json
import math
import os

import make_zoo  # first: it sets the environment that TensorFlow reads
import numpy as np
import tensorflow as tf

L = tf.keras.layers
v1 = tf.compat.v1
# TensorFlow has no code for convolutions with groups that are fused with what follows them, but fuses them all the same.
tf.config.optimizer.set_experimental_options({"remapping": False})
ACTIVATIONS = {
    None: lambda x: x,
    "relu": tf.nn.relu,
    "relu6": tf.nn.relu6,
    "leaky": lambda x: tf.nn.leaky_relu(x, 0.1),
    "swish": tf.nn.swish,
    "tanh": tf.tanh,
    "sigmoid": tf.sigmoid,
    "gelu": lambda x: tf.nn.gelu(x, approximate=False),
    "gelu_tanh": lambda x: tf.nn.gelu(x, approximate=True),
}


class Builder:
    def __init__(self, name):
        self.name, self.feeds = name, {}
        self.random = np.random.default_rng(1)

    def input(self, *shape, name="input"):
        """Floats in [-1, 1)."""
        return self.feed(name, self.random.uniform(-1, 1, shape).astype(np.float32))

    def tokens(self, *shape, vocab, name="tokens"):
        return self.feed(name, self.random.integers(0, vocab, shape).astype(np.int32))

    def weights(self, *shape, scale=1.0):
        """A constant with normally distributed values."""
        return tf.constant(self.random.normal(0, scale, shape).astype(np.float32))


class Keras(Builder):
    """A model of Keras layers and operations on their outputs."""

    def __init__(self, name):
        super().__init__(name)
        self.inputs = []
        tf.keras.utils.set_random_seed(1)

    def feed(self, name, value):
        self.feeds[name] = value
        self.inputs.append(tf.keras.Input(value.shape[1:], batch_size=value.shape[0], dtype=value.dtype, name=name))
        return self.inputs[-1]

    def write(self, define, out):
        outputs = define(self)
        model = tf.keras.Model(self.inputs, outputs if isinstance(outputs, dict) else {"output": outputs})
        make_zoo.randomize(model.variables)
        self.adapt(model)
        specs = [tf.TensorSpec(v.shape, v.dtype, name=k) for k, v in self.feeds.items()]
        make_zoo.emit(out, self.name, lambda *x: model(list(x), training=False), specs, self.feeds, define.__doc__, saved_model=False)

    def adapt(self, model):
        """Batch norms get the statistics of the input, so that activations neither die nor explode in deep models."""
        norms = [layer for layer in model.layers if isinstance(layer, L.BatchNormalization)]
        # Of a few pixels each is all but the mean: what is left of their difference would be noise.
        norms = [layer for layer in norms if np.prod(layer.input_shape[:-1]) >= 8]
        if not norms:
            return
        for layer in norms:
            layer.momentum = 0.0
        model([tf.constant(v) for v in self.feeds.values()], training=True)
        for layer in norms:  # channels that hardly vary are not blown up
            variance = layer.moving_variance.numpy()
            layer.moving_variance.assign(np.maximum(variance, 0.1 * variance.mean() + 1e-3))


class Frozen(Builder):
    """A graph of placeholders and variables, frozen as TensorFlow 1 did it."""

    def feed(self, name, value):
        self.feeds[name] = value
        return v1.placeholder(tf.as_dtype(value.dtype), value.shape, name=name)

    def variable(self, name, shape, low=None, high=None):
        """He's initial values for weights; for vectors those of biases, or the range given."""
        if low is not None:
            initial = v1.random_uniform_initializer(low, high)
        else:
            initial = v1.random_normal_initializer(0, 0.05 if len(shape) == 1 else math.sqrt(2 / np.prod(shape[:-1])))
        return v1.get_variable(name, shape, tf.float32, initial, use_resource=False)

    def conv(self, x, filters, k, stride=1, padding="SAME", act=tf.nn.relu, bn=False, name="conv"):
        kernel = (k, k) if isinstance(k, int) else k
        with v1.variable_scope(None, name):
            x = tf.nn.conv2d(x, self.variable("weights", [*kernel, x.shape[-1], filters]), stride, padding)
            return act(self.norm(x) if bn else tf.nn.bias_add(x, self.variable("biases", [filters])))

    def depthwise(self, x, k, stride=1):
        with v1.variable_scope(None, "depthwise"):
            w = v1.get_variable("weights", [k, k, x.shape[-1], 1], tf.float32, v1.random_normal_initializer(0, math.sqrt(2) / k),
                                use_resource=False)
            return tf.nn.relu(self.norm(tf.nn.depthwise_conv2d(x, w, [1, stride, stride, 1], "SAME")))

    def dense(self, x, units, act=tf.nn.relu, name="dense"):
        with v1.variable_scope(None, name):
            return act(tf.matmul(x, self.variable("weights", [x.shape[-1], units])) + self.variable("biases", [units]))

    def norm(self, x):
        c = [x.shape[-1]]
        with v1.variable_scope("BatchNorm"):
            gamma, beta = self.variable("gamma", c, 0.8, 1.2), self.variable("beta", c, -0.1, 0.1)
            mean, variance = self.variable("moving_mean", c, -0.1, 0.1), self.variable("moving_variance", c, 0.5, 1.5)
        if len(x.shape) == 4:
            return v1.nn.fused_batch_norm(x, gamma, beta, mean, variance, is_training=False)[0]
        return tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-3)

    def write(self, define, out):
        folder = os.path.join(out, self.name)
        os.makedirs(folder)
        with tf.Graph().as_default():
            v1.set_random_seed(1)
            output = tf.identity(define(self), name="output")
            with v1.Session() as session:
                session.run(v1.global_variables_initializer())
                graph = v1.graph_util.convert_variables_to_constants(session, output.graph.as_graph_def(), ["output"])
                expected = session.run(output, {k + ":0": v for k, v in self.feeds.items()})
        with open(os.path.join(folder, "graph.pb"), "wb") as f:
            f.write(graph.SerializeToString())
        np.savez(os.path.join(folder, "inputs.npz"), **self.feeds)
        np.savez(os.path.join(folder, "expected.npz"), output=expected)

        def describe(arrays):
            return {k: {"tensor": k + ":0", "dtype": str(v.dtype), "shape": list(v.shape)} for k, v in arrays.items()}
        info = {"name": self.name, "notes": define.__doc__, "feeds": describe(self.feeds), "fetches": describe({"output": expected}),
                "tensorflow": tf.__version__}
        with open(os.path.join(folder, "model.json"), "w") as f:
            json.dump(info, f, indent=1)


class GroupedConv(L.Layer):
    """tf.nn.conv2d with groups; Keras's own layer asks for XLA on a CPU."""

    def __init__(self, filters, k, stride, groups):
        super().__init__()
        self.filters, self.k, self.stride, self.groups = filters, k, stride, groups

    def build(self, shape):
        self.kernel = self.add_weight("kernel", [self.k, self.k, shape[-1] // self.groups, self.filters], initializer="he_normal")

    def call(self, x):
        return tf.nn.conv2d(x, self.kernel, self.stride, "SAME")


def conv(x, filters, k=1, stride=1, act="relu", bn=True, groups=1, dilation=1, padding="same"):
    if groups > 1:
        x = GroupedConv(filters, k, stride, groups)(x)
    else:
        x = L.Conv2D(filters, k, stride, padding, dilation_rate=dilation, use_bias=not bn, kernel_initializer="he_normal")(x)
    return ACTIVATIONS[act](L.BatchNormalization()(x) if bn else x)


def depthwise(x, k=3, stride=1, act="relu", dilation=1):
    initial = tf.keras.initializers.RandomNormal(0, math.sqrt(2) / k)
    x = L.DepthwiseConv2D(k, stride, "same", use_bias=False, dilation_rate=dilation, depthwise_initializer=initial)(x)
    return ACTIVATIONS[act](L.BatchNormalization()(x))


def separable(x, filters, stride=1, act="relu", k=3, dilation=1):
    return conv(depthwise(x, k, stride, act, dilation), filters, 1, act=act)


def deconv(x, filters, k, stride, act="relu", bn=True):
    x = L.Conv2DTranspose(filters, k, stride, "same", use_bias=not bn, kernel_initializer="he_normal")(x)
    return ACTIVATIONS[act](L.BatchNormalization()(x) if bn else x)


def prelu(x):
    """With a slope for each channel."""
    shared = list(range(1, len(x.shape) - 1))
    return L.PReLU(shared_axes=shared, alpha_initializer=tf.keras.initializers.RandomUniform(0.1, 0.3))(x)


def dense(x, units, act=None, bias=True):
    return ACTIVATIONS[act](L.Dense(units, use_bias=bias, kernel_initializer="he_normal" if act else "glorot_uniform")(x))


def classify(x, classes=1000):
    """Global average, one dense layer and softmax."""
    return tf.nn.softmax(dense(L.GlobalAveragePooling2D()(x), classes))


def layer_norm(x, epsilon=1e-6):
    return L.LayerNormalization(epsilon=epsilon)(x)


def squeeze_excite(x, channels, act="relu", gate="sigmoid"):
    s = tf.reduce_mean(x, [1, 2], keepdims=True)
    return x * conv(conv(s, channels, act=act, bn=False), x.shape[-1], act=gate, bn=False)


def upsample(x, factor, how="bilinear"):
    return L.UpSampling2D(factor, interpolation=how)(x)


def resize(x, like):
    return tf.image.resize(x, like.shape[1:3])


def mobilenet_v1(x, alpha=1.0, act="relu6", blocks=((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1), (512, 1), (512, 1),
                                                    (512, 1), (512, 1), (1024, 2), (1024, 1))):
    """The results of all blocks, the stem's first."""
    results = [conv(x, int(32 * alpha), 3, 2, act)]
    for filters, stride in blocks:
        results.append(separable(results[-1], int(filters * alpha), stride, act))
    return results


def inverted_residual(x, filters, stride, expand, act="relu6", k=3, dilation=1):
    y = conv(x, x.shape[-1] * expand, act=act) if expand > 1 else x
    y = conv(depthwise(y, k, stride, act, dilation), filters, act=None)
    return x + y if stride == 1 and x.shape[-1] == filters else y


def mobilenet_v2(x, alpha=1.0, output_stride=32):
    """All blocks' results; strides beyond output_stride become dilations."""
    def width(c):
        return max(8, int(c * alpha + 4) // 8 * 8)
    results, stride_now, dilation = [conv(x, width(32), 3, 2, "relu6")], 2, 1
    for expand, c, n, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        if stride_now * stride > output_stride:
            stride, dilation = 1, dilation * stride
        stride_now *= stride
        for i in range(n):
            results.append(inverted_residual(results[-1], width(c), stride if i == 0 else 1, expand, dilation=dilation))
    return results


def basic_block(x, filters, stride):
    y = conv(conv(x, filters, 3, stride), filters, 3, act=None)
    return tf.nn.relu(y + (conv(x, filters, 1, stride, None) if stride > 1 or x.shape[-1] != filters else x))
