"""Operations on quantized tensors: ranges of their own, saturation, empty tensors, ranges for each channel.

Recipes as in recipes.py; several of one operation have a label each.
"""
import numpy as np
import tensorflow.compat.v1 as tf

from recipes import Feeds, raw
from recipes_edges import edge

CARRIER = {"qint8": np.int8, "quint8": np.uint8, "qint16": np.int16, "quint16": np.uint16, "qint32": np.int32}
UNSIGNED = ["quint8"]


def integers(feeds, shape, dtype, seed=0, low=None, high=None, known=True):
    """A fed tensor of a quantized type; some elements at the ends of the type."""
    carrier = CARRIER[dtype]
    r = np.random.default_rng(seed)
    info = np.iinfo(carrier)
    low, high = info.min if low is None else low, info.max if high is None else high
    data = r.integers(low, high, shape, endpoint=True, dtype=np.int64).astype(carrier)
    if data.size > 1:
        data.flat[0], data.flat[-1] = low, high
    fed = feeds.add(data, known=known)
    return tf.bitcast(fed, tf.as_dtype(dtype))


def numbers(results):
    """Quantized results as integers, which cases can hold."""
    plain = {tf.qint8: tf.int8, tf.quint8: tf.uint8, tf.qint16: tf.int16, tf.quint16: tf.uint16, tf.qint32: tf.int32}
    results = results if isinstance(results, (list, tuple)) else [results]
    return [tf.bitcast(t, plain[t.dtype]) if t.dtype in plain else t for t in results]


def scalars(feeds, *values):
    return [feeds.add(np.float32(v)) for v in values]


RANGES = [(-1.0, 1.0), (0.0, 6.0), (-3.7, 11.3), (-128.0, 127.0), (2.0, 5.0), (-9.0, -1.0)]


def over_ranges(op, label, types, build_one, ranges=RANGES):
    @edge(op, label, types)
    def build(dtype):
        feeds, fetches = Feeds(), []
        for i, (low, high) in enumerate(ranges):
            fetches += numbers(build_one(feeds, dtype, i, low, high))
        return [{"feeds": feeds, "fetches": fetches}]


# ---- one operand

over_ranges("QuantizedRelu", "ranges", ["quint8", "qint32"], lambda f, t, i, low, high: raw.QuantizedRelu(
    features=integers(f, (3, 7), t, i, known=i % 2 == 0), min_features=low, max_features=high, out_type=tf.as_dtype(t)))
over_ranges("QuantizedRelu6", "ranges", ["quint8", "qint32"], lambda f, t, i, low, high: raw.QuantizedRelu6(
    features=integers(f, (3, 7), t, i), min_features=low, max_features=high, out_type=tf.as_dtype(t)))
over_ranges("QuantizedReshape", "ranges", ["quint8", "qint32"], lambda f, t, i, low, high: raw.QuantizedReshape(
    tensor=integers(f, (4, 6), t, i), shape=[3, -1], input_min=low, input_max=high), RANGES[:2])
over_ranges("QuantizeDownAndShrinkRange", "ranges", ["qint32"], lambda f, t, i, low, high: raw.QuantizeDownAndShrinkRange(
    input=integers(f, (5, 9), t, i, -2**(20 + i), 2**(26 + i % 4), known=i % 2 == 0), input_min=low * 1e4, input_max=high * 1e4, out_type=tf.quint8))
over_ranges("QuantizeDownAndShrinkRange", "positive", ["qint32"], lambda f, t, i, low, high: raw.QuantizeDownAndShrinkRange(
    input=integers(f, (5, 9), t, i, 2**20, 2**30), input_min=low, input_max=high, out_type=tf.quint8))
over_ranges("RequantizationRange", "ranges", ["qint32"], lambda f, t, i, low, high: raw.RequantizationRange(
    input=integers(f, (5, 9), t, i, -2**(20 + i), 2**(26 + i % 4)), input_min=low, input_max=high))
over_ranges("Requantize", "ranges", ["qint32"], lambda f, t, i, low, high: raw.Requantize(
    input=integers(f, (5, 9), t, i), input_min=low, input_max=high, requested_output_min=[-0.5, 0.0][i % 2], requested_output_max=0.5 + i,
    out_type=tf.quint8))


@edge("RequantizationRange", "empty", ["qint32"])
def range_of_nothing(dtype):
    feeds = Feeds()
    x = integers(feeds, (0, 3), dtype)
    return [{"feeds": feeds, "fetches": numbers(raw.RequantizationRange(input=x, input_min=-1.0, input_max=1.0)) + numbers(
        raw.QuantizeDownAndShrinkRange(input=x, input_min=-1.0, input_max=1.0, out_type=tf.quint8))}]


def pools(op):
    for padding in ("SAME", "VALID"):
        over_ranges(op, padding.lower(), UNSIGNED + ["qint8"], lambda f, t, i, low, high, p=padding: getattr(raw, op)(
            input=integers(f, (2, 7, 6, 5), t, i), min_input=low, max_input=high, ksize=[1, 2 + i, 3, 1], strides=[1, 2, 1 + i, 1],
            padding=p), RANGES[:2])


pools("QuantizedAvgPool")
pools("QuantizedMaxPool")


@edge("QuantizedInstanceNorm", "ranges", UNSIGNED)
def instance_norm(dtype):
    feeds, fetches = Feeds(), []
    for i, more in enumerate([{}, dict(output_range_given=True, given_y_min=-2.0, given_y_max=1.5), dict(min_separation=100.0)]):
        x = integers(feeds, (2, 5, 4, 3), dtype, i)
        fetches += numbers(raw.QuantizedInstanceNorm(x=x, x_min=-3.0, x_max=2.0, **more))
    return [{"feeds": feeds, "fetches": fetches}]


@edge("QuantizedBatchNormWithGlobalNormalization", "ranges", UNSIGNED)
def batch_norm(dtype):
    feeds, fetches = Feeds(), []
    for i, scaled in enumerate([True, False]):
        def vector(seed):
            return integers(feeds, (6,), dtype, seed)
        fetches += numbers(raw.QuantizedBatchNormWithGlobalNormalization(
            t=integers(feeds, (2, 3, 4, 6), dtype, i), t_min=-2.0, t_max=3.0, m=vector(1), m_min=-1.0, m_max=1.0, v=vector(2), v_min=0.0,
            v_max=2.0, beta=vector(3), beta_min=-1.0, beta_max=2.0, gamma=vector(4), gamma_min=0.0, gamma_max=1.5, out_type=tf.qint32,
            variance_epsilon=0.01, scale_after_normalization=scaled))
    return [{"feeds": feeds, "fetches": fetches}]


@edge("QuantizedResizeBilinear", "sizes", ["quint8", "qint32"])
def resize(dtype):
    feeds, fetches = Feeds(), []
    for i, (shape, size, more) in enumerate([((1, 4, 5, 1), (8, 9), {}), ((2, 3, 3, 3), (7, 4), dict(align_corners=True)),
                                             ((1, 9, 8, 2), (4, 5), dict(half_pixel_centers=True)), ((1, 4, 4, 8), (16, 16), {})]):
        x = integers(feeds, shape, dtype, i, *((-2**20, 2**20) if dtype == "qint32" else ()))
        fetches += numbers(raw.QuantizedResizeBilinear(images=x, size=list(size), min=-1.0, max=2.0, **more))
    return [{"feeds": feeds, "fetches": fetches}]


# ---- several operands

@edge("QuantizedAdd", "shapes", UNSIGNED)
def add(dtype):
    feeds, fetches = Feeds(), []
    for i, (a, b) in enumerate([((2, 3), (2, 3)), ((4, 5), ()), ((), (7,)), ((2, 3, 4), (4,)), ((4,), (2, 4))]):
        low, high = RANGES[i]
        fetches += numbers(raw.QuantizedAdd(x=integers(feeds, a, dtype, i), y=integers(feeds, b, dtype, i + 9), min_x=low, max_x=high,
                                            min_y=-2.5, max_y=3.0, Toutput=tf.qint32))
    return [{"feeds": feeds, "fetches": fetches}]


@edge("QuantizedMul", "shapes", UNSIGNED)
def mul(dtype):
    feeds, fetches = Feeds(), []
    for i, (a, b) in enumerate([((2, 3), (2, 3)), ((4, 5), ()), ((), (7,)), ((2, 3, 4), (4,)), ((4,), (2, 4))]):
        low, high = RANGES[i]
        fetches += numbers(raw.QuantizedMul(x=integers(feeds, a, dtype, i), y=integers(feeds, b, dtype, i + 9), min_x=low, max_x=high,
                                            min_y=-2.5, max_y=3.0, Toutput=tf.qint32))
    return [{"feeds": feeds, "fetches": fetches}]


@edge("QuantizedBiasAdd", "ranges", ["quint8", "qint8"])
def bias_add(dtype):
    feeds, fetches = Feeds(), []
    for i, (low, high) in enumerate(RANGES):
        fetches += numbers(raw.QuantizedBiasAdd(input=integers(feeds, (3, 2, 5), dtype, i), bias=integers(feeds, (5,), dtype, i + 9),
                                                min_input=low, max_input=high, min_bias=-0.5 * i - 0.1, max_bias=1.5, out_type=tf.qint32))
    return [{"feeds": feeds, "fetches": fetches}]


def concats(op):
    @edge(op, "ranges", ["quint8", "qint32"] if op == "QuantizedConcat" else ["quint8", "qint8"])
    def build(dtype):
        feeds, fetches = Feeds(), []
        for axis in (0, 1):
            mins, maxes = scalars(feeds, -1, -1, 0.5), scalars(feeds, 1, 3, 2)
            parts = [integers(feeds, (2, 3), dtype, i) for i in range(3)]
            more = dict(concat_dim=axis) if op == "QuantizedConcat" else dict(axis=axis)
            fetches += numbers(getattr(raw, op)(values=parts, input_mins=mins, input_maxes=maxes, **more))
        return [{"feeds": feeds, "fetches": fetches}]


concats("QuantizedConcat")


@edge("QuantizedConcat", "ends", ["quint8", "qint32"])
def concat_of_ends(dtype):
    """Ends that are no numbers, infinite, or on one side of 0."""
    n, inf, feeds, fetches = np.nan, np.inf, Feeds(), []
    for ranges in ([(n, 1), (-2, 3)], [(-1, n), (-2, 3)], [(n, n), (n, n)], [(n, 1), (-2, 1)], [(-2, 3), (-2, n)], [(-1, 3), (n, n), (-2, 2)],
                   [(1, 2), (1, 3)], [(-2, -1), (-3, -1)], [(-inf, 1), (-2, 3)], [(-1, inf), (-1, inf)]):
        mins, maxes = (scalars(feeds, *ends) for ends in zip(*ranges))
        parts = [integers(feeds, (3, 2), dtype, i) for i in range(len(ranges))]
        fetches += numbers(raw.QuantizedConcat(concat_dim=0, values=parts, input_mins=mins, input_maxes=maxes))
    return [{"feeds": feeds, "fetches": fetches}]


@edge("Dequantize", "bfloat16", ["qint8", "quint8", "qint16", "quint16", "qint32"])
def dequantize_to_bfloat16(dtype):
    """TensorFlow has this type for one mode."""
    feeds = Feeds()
    return [{"feeds": feeds, "fetches": [
        raw.Dequantize(input=integers(feeds, (3, 5), dtype), min_range=low, max_range=high, mode="MIN_COMBINED", dtype=tf.bfloat16)
        for low, high in [(-1.7, 2.3), (0.0, 6.0)]]}]


@edge("QuantizedMatMul", "transposed", UNSIGNED)
def matmul(dtype):
    feeds, fetches = Feeds(), []
    for i, (ta, tb) in enumerate([(False, False), (True, False), (False, True), (True, True)]):
        low, high = RANGES[i]
        fetches += numbers(raw.QuantizedMatMul(
            a=integers(feeds, (9, 4) if ta else (4, 9), dtype, i, known=i != 3), b=integers(feeds, (5, 9) if tb else (9, 5), dtype, i + 9),
            min_a=low, max_a=high, min_b=-1.0, max_b=0.7, Toutput=tf.qint32, transpose_a=ta, transpose_b=tb))
    return [{"feeds": feeds, "fetches": fetches}]


# ---- scales and zero points

def uniform(low, high, channels=None, seed=0):
    r = np.random.default_rng(seed)
    shape = () if channels is None else (channels,)
    return np.asarray(r.uniform(0.01, 0.2, shape), np.float32), np.asarray(r.integers(low, high, shape), np.int32)


ENDS = {"qint8": (-128, 127), "quint8": (0, 255), "qint32": (-2**31, 2**31 - 1)}


@edge("UniformQuantize", "axes", list(ENDS))
def uniform_quantize(dtype):
    feeds, fetches = Feeds(), []
    x = np.random.default_rng(0).normal(0, 9, (3, 4, 5)).astype(np.float32)
    x.flat[:8] = [0, 0.05, -0.05, 1e6, -1e6, 0.15, 1e3, -0.25]
    for axis in (-1, 0, 2):
        scale, zero = uniform(-20, 30, None if axis < 0 else x.shape[axis])
        low, high = ENDS[dtype]
        fetches += numbers(raw.UniformQuantize(input=feeds.add(x, known=axis != 2), scales=feeds.add(scale), zero_points=feeds.add(zero),
                                               Tout=tf.as_dtype(dtype), quantization_axis=axis, quantization_min_val=low + (axis == 0),
                                               quantization_max_val=high))
    return [{"feeds": feeds, "fetches": fetches}]


@edge("UniformDequantize", "axes", list(ENDS))
def uniform_dequantize(dtype):
    feeds, fetches = Feeds(), []
    for axis in (-1, 0, 2):
        scale, zero = uniform(-20, 30, None if axis < 0 else (3, 4, 5)[axis])
        low, high = ENDS[dtype]
        fetches.append(raw.UniformDequantize(input=integers(feeds, (3, 4, 5), dtype, axis + 1), scales=feeds.add(scale),
                                             zero_points=feeds.add(zero), Tout=tf.float32, quantization_axis=axis, quantization_min_val=low,
                                             quantization_max_val=high))
    return [{"feeds": feeds, "fetches": fetches}]


@edge("UniformRequantize", "axes", ["qint8", "qint32"])
def uniform_requantize(dtype):
    feeds, fetches = Feeds(), []
    for i, (a, b) in enumerate([(-1, -1), (-1, 1), (1, -1), (1, 1), (0, 0)]):
        (sa, za), (sb, zb) = (uniform(-20, 30, None if axis < 0 else (3, 4)[axis], i + k) for k, axis in enumerate((a, b)))
        low, high = ENDS[dtype]
        if dtype == "qint32":
            sa = sa / 1000
        fetches += numbers(raw.UniformRequantize(
            input=integers(feeds, (3, 4), dtype, i, *((-30000, 30000) if dtype == "qint32" else ())), input_scales=feeds.add(sa),
            input_zero_points=feeds.add(za), output_scales=feeds.add(sb), output_zero_points=feeds.add(zb), Tout=tf.qint8,
            input_quantization_axis=a, output_quantization_axis=b, input_quantization_min_val=low, input_quantization_max_val=high,
            output_quantization_min_val=-128 + i, output_quantization_max_val=127))
    return [{"feeds": feeds, "fetches": fetches}]


@edge("UniformQuantizedAdd", "axes", ["qint32"])
def uniform_add(dtype):
    feeds, fetches = Feeds(), []
    low, high = ENDS[dtype]
    for i, (shape, axes) in enumerate([((3, 4), (-1, -1, -1)), ((4,), (1, 0, 1)), ((3, 4), (1, 1, 1)), ((3, 1), (-1, -1, -1))]):
        args = []
        for k, axis in enumerate(axes):
            size = None if axis < 0 else (3, 4)[axis] if k != 1 or len(shape) == 2 else shape[axis]
            args += [feeds.add(v) for v in uniform(-20, 30, size, 3 * i + k)]
        fetches += numbers(raw.UniformQuantizedAdd(
            lhs=integers(feeds, (3, 4), dtype, i, -9000, 9000), rhs=integers(feeds, shape, dtype, i + 9, -9000, 9000), lhs_scales=args[0],
            lhs_zero_points=args[1], rhs_scales=args[2], rhs_zero_points=args[3], output_scales=args[4], output_zero_points=args[5],
            lhs_quantization_axis=axes[0], rhs_quantization_axis=axes[1], output_quantization_axis=axes[2], lhs_quantization_min_val=low,
            lhs_quantization_max_val=high, rhs_quantization_min_val=low, rhs_quantization_max_val=high, output_quantization_min_val=-7000,
            output_quantization_max_val=7000))
    return [{"feeds": feeds, "fetches": fetches}]


@edge("UniformQuantizedClipByValue", "axes", ["qint32"])
def uniform_clip(dtype):
    feeds, fetches = Feeds(), []
    low, high = ENDS[dtype]
    for axis in (-1, 1):
        scale, zero = uniform(-20, 30, None if axis < 0 else 4)
        ends = [integers(feeds, scale.shape, dtype, 5 + k, *((-900, 0) if k == 0 else (0, 900))) for k in range(2)]
        fetches += numbers(raw.UniformQuantizedClipByValue(
            operand=integers(feeds, (3, 4, 2), dtype, axis + 1, -1500, 1500), min=ends[0], max=ends[1], scales=feeds.add(scale),
            zero_points=feeds.add(zero), quantization_axis=axis, quantization_min_val=low, quantization_max_val=high))
    return [{"feeds": feeds, "fetches": fetches}]


def rights(i):
    """Channels of the right operand's and of the result's scales."""
    return [(None, None), (5, None), (5, 5)][i]


@edge("UniformQuantizedDot", "channels", ["qint8"])
def uniform_dot(dtype):
    feeds, fetches = Feeds(), []
    for i in range(3):
        right, out = rights(i)
        (sa, za), (sb, zb), (so, zo) = uniform(-9, 9, None, 0), uniform(-9, 9, right, 1), uniform(-90, 90, out, 2)
        fetches += numbers(raw.UniformQuantizedDot(
            lhs=integers(feeds, (4, 9), dtype, i), rhs=integers(feeds, (9, 5), dtype, i + 9), lhs_scales=feeds.add(sa),
            lhs_zero_points=feeds.add(za), rhs_scales=feeds.add(sb), rhs_zero_points=feeds.add(zb), output_scales=feeds.add(so),
            output_zero_points=feeds.add(zo), Tout=tf.qint32, lhs_quantization_min_val=-128, lhs_quantization_max_val=127,
            rhs_quantization_min_val=-128, rhs_quantization_max_val=127, output_quantization_min_val=-2**31,
            output_quantization_max_val=2**31 - 1, rhs_quantization_axis=-1 if right is None else 1,
            output_quantization_axis=-1 if out is None else 1))
    return [{"feeds": feeds, "fetches": fetches}]


@edge("UniformQuantizedDotHybrid", "channels", ["qint8"])
def uniform_dot_hybrid(dtype):
    feeds, fetches = Feeds(), []
    for i in range(2):
        right, _ = rights(i)
        sb, zb = uniform(-9, 9, right, 1)
        x = np.random.default_rng(i).normal(0, 2, (4, 9)).astype(np.float32)
        x[1] = abs(x[1])
        x[2] = 0
        fetches.append(raw.UniformQuantizedDotHybrid(
            lhs=feeds.add(x), rhs=integers(feeds, (9, 5), dtype, i + 9), rhs_scales=feeds.add(sb), rhs_zero_points=feeds.add(zb),
            Tout=tf.float32, rhs_quantization_min_val=-128, rhs_quantization_max_val=127, rhs_quantization_axis=-1 if right is None else 1))
    return [{"feeds": feeds, "fetches": fetches}]


def dimension_numbers(fields):
    """The serialized message: plain fields, and lists one element after the other."""
    raw_bytes = b""
    for field, value in fields:
        for v in value if isinstance(value, tuple) else (value,):
            raw_bytes += bytes([field << 3, v])
    return raw_bytes


NHWC = [(1, 0), (2, 3), (3, (1, 2)), (4, 2), (5, 3), (6, (0, 1)), (7, 0), (8, 3), (9, (1, 2))]
CONVS = [  # image, filter, attributes, channel axis of filter and result
    ((2, 3, 6, 5), (4, 3, 3, 2), dict(padding="VALID"), 0, 1),
    ((2, 6, 5, 3), (3, 2, 3, 4), dict(padding="SAME", window_strides=[2, 1], dimension_numbers=dimension_numbers(NHWC)), 3, 3),
    ((1, 4, 5, 5), (6, 2, 3, 3), dict(padding="EXPLICIT", explicit_padding=[1, 2, 0, 1], feature_group_count=2, rhs_dilation=[1, 2]), 0, 1),
    ((1, 2, 4, 3), (2, 2, 2, 2), dict(padding="SAME", lhs_dilation=[2, 1]), 0, 1),
    ((2, 3, 7), (4, 3, 3), dict(padding="SAME"), 0, 1)]


@edge("UniformQuantizedConvolution", "windows", ["qint8"])
def uniform_conv(dtype):
    feeds, fetches = Feeds(), []
    for i, (x, w, more, axis, out_axis) in enumerate(CONVS):
        right = None if i % 2 == 0 else w[axis]
        out = None if i != 3 else w[axis]
        (sa, za), (sb, zb), (so, zo) = uniform(-9, 9, None, 0), uniform(-9, 9, right, 1), uniform(-90, 90, out, 2)
        fetches += numbers(raw.UniformQuantizedConvolution(
            lhs=integers(feeds, x, dtype, i), rhs=integers(feeds, w, dtype, i + 9), lhs_scales=feeds.add(sa), lhs_zero_points=feeds.add(za),
            rhs_scales=feeds.add(sb), rhs_zero_points=feeds.add(zb), output_scales=feeds.add(so), output_zero_points=feeds.add(zo),
            Tout=tf.qint32, lhs_quantization_min_val=-128, lhs_quantization_max_val=127, rhs_quantization_min_val=-128,
            rhs_quantization_max_val=127, output_quantization_min_val=-2**31, output_quantization_max_val=2**31 - 1,
            rhs_quantization_axis=-1 if right is None else axis, output_quantization_axis=-1 if out is None else out_axis, **more))
    return [{"feeds": feeds, "fetches": fetches}]


@edge("UniformQuantizedConvolutionHybrid", "windows", ["qint8"])
def uniform_conv_hybrid(dtype):
    feeds, fetches = Feeds(), []
    for i, (x, w, more, axis, _) in enumerate(CONVS):
        right = None if i % 2 == 0 else w[axis]
        sb, zb = uniform(-9, 9, right, 1)
        image = np.random.default_rng(i).normal(0.5, 2, x).astype(np.float32)
        fetches.append(raw.UniformQuantizedConvolutionHybrid(
            lhs=feeds.add(image), rhs=integers(feeds, w, dtype, i + 9), rhs_scales=feeds.add(sb), rhs_zero_points=feeds.add(zb),
            Tout=tf.float32, rhs_quantization_min_val=-128, rhs_quantization_max_val=127,
            rhs_quantization_axis=-1 if right is None else axis, **more))
    return [{"feeds": feeds, "fetches": fetches}]


# ---- products and windows with what follows them (oneDNN's kernels; filters and weights must be constants there)

def constant(shape, dtype="qint8", seed=0, low=-127, high=127):
    data = np.random.default_rng(seed).integers(low, high, shape, endpoint=True).astype(CARRIER[dtype])
    proto = tf.make_tensor_proto(data)
    proto.dtype = tf.as_dtype(dtype).as_datatype_enum
    return tf.get_default_graph().create_op("Const", [], [tf.as_dtype(dtype)], attrs={
        "value": tf.AttrValue(tensor=proto), "dtype": tf.AttrValue(type=proto.dtype)}).outputs[0]


def floats(feeds, shape, seed, scale=3.0, known=True):
    return feeds.add(np.random.default_rng(seed).normal(0, scale, shape).astype(np.float32), known=known)


# image, filter, attributes; windows(…) gives the shape of the result
WINDOWS = [((2, 5, 6, 3), (3, 2, 3, 4), dict(strides=[1, 2, 1, 1], padding="SAME")),
           ((1, 7, 6, 8), (1, 1, 8, 5), dict(strides=[1, 1, 1, 1], padding="VALID")),
           ((1, 9, 8, 6), (3, 3, 6, 16), dict(strides=[1, 2, 2, 1], padding="VALID"))]


def result_shape(image, window, more):
    if more["padding"] == "SAME":
        space = [-(-image[d] // more["strides"][d]) for d in (1, 2)]
    else:
        space = [(image[d] - window[d - 1]) // more["strides"][d] + 1 for d in (1, 2)]
    return (image[0], *space, window[3])


def fused_conv(op, types, depthwise=False, per_channel=(False, True)):
    """`op` on every window; names say what it takes."""
    requantize, bias, summed = "Requantize" in op, "Bias" in op, "Sum" in op
    biases = ["float32", "qint32"] if bias and requantize else ["float32"]

    @edge(op, "windows", types)
    def build(dtype):
        feeds, fetches = Feeds(), []
        for i, (image, window, more) in enumerate(WINDOWS):
            channels = image[3] if depthwise else window[3]
            if depthwise:
                window = (*window[:2], image[3], 1)
            for bias_type in biases:
                per = per_channel[i % len(per_channel)]
                ends = np.random.default_rng(i).uniform(0.3, 1, (2, channels) if per else (2,)).astype(np.float32)
                args = dict(input=integers(feeds, image, dtype, i, known=i != 1), filter=constant(window, seed=i + 5), min_input=-1.5 + i,
                            max_input=2.5 + i, min_filter=-ends[0], max_filter=ends[1], **more)
                if bias:
                    args["bias"] = floats(feeds, (channels,), i) if bias_type == "float32" else integers(
                        feeds, (channels,), "qint32", i, -9000, 9000)
                if requantize:
                    args.update(min_freezed_output=-7.0, max_freezed_output=11.5 - i,
                                out_type=tf.quint8 if "Relu" in op else tf.qint8)
                else:
                    args["out_type"] = tf.qint32
                shape = result_shape(image, (*window[:3], channels), more)
                if summed and requantize:
                    kind = "qint8" if "Signed" in op else "quint8"
                    plain = feeds.add(np.random.default_rng(i).integers(0, 255, shape, endpoint=True).astype(np.uint8).view(CARRIER[kind]))
                    # TensorFlow writes the result over the summand, which must not be a fed buffer
                    args.update(summand=tf.bitcast(tf.bitwise.invert(plain), tf.as_dtype(kind)), min_summand=-4.0, max_summand=3.0)
                elif summed:
                    args["summand"] = tf.negative(floats(feeds, shape, i + 7))
                fetches += numbers(getattr(raw, op)(**args))
        return [{"feeds": feeds, "fetches": fetches}]


ANY = ["quint8", "qint8"]
fused_conv("QuantizedConv2D", UNSIGNED, per_channel=(False,))
fused_conv("QuantizedConv2DPerChannel", UNSIGNED)
fused_conv("QuantizedConv2DAndRelu", UNSIGNED)
fused_conv("QuantizedConv2DAndRequantize", UNSIGNED, per_channel=(False,))
fused_conv("QuantizedConv2DAndReluAndRequantize", UNSIGNED)
fused_conv("QuantizedConv2DWithBias", ANY)
fused_conv("QuantizedConv2DWithBiasAndRelu", ANY)
fused_conv("QuantizedConv2DWithBiasAndRequantize", ANY)
fused_conv("QuantizedConv2DWithBiasAndReluAndRequantize", ANY)
fused_conv("QuantizedConv2DWithBiasSumAndRelu", UNSIGNED)
fused_conv("QuantizedConv2DWithBiasSumAndReluAndRequantize", UNSIGNED)
fused_conv("QuantizedConv2DWithBiasSignedSumAndReluAndRequantize", UNSIGNED)
fused_conv("QuantizedDepthwiseConv2D", UNSIGNED, depthwise=True)
fused_conv("QuantizedDepthwiseConv2DWithBias", UNSIGNED, depthwise=True)
fused_conv("QuantizedDepthwiseConv2DWithBiasAndRelu", UNSIGNED, depthwise=True)
fused_conv("QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize", UNSIGNED, depthwise=True)


@edge("QuantizedConv2DAndRelu", "padding_list", UNSIGNED)
def conv_padding_list(dtype):
    feeds, fetches = Feeds(), []
    for i, more in enumerate([dict(padding_list=[0, 0, 1, 2, 0, 1, 0, 0], padding="VALID"), dict(dilations=[1, 2, 1, 1], padding="SAME"),
                              dict(dilations=[1, 2, 3, 1], padding="VALID")]):
        fetches += numbers(raw.QuantizedConv2DAndRelu(
            input=integers(feeds, (2, 9, 8, 6), dtype, i), filter=constant((3, 2, 6, 4), seed=i), min_input=-1.0, max_input=1.0,
            min_filter=-1.0, max_filter=0.7, out_type=tf.qint32, strides=[1, 1, 1, 1], **more))
    return [{"feeds": feeds, "fetches": fetches}]


@edge("QuantizedDepthwiseConv2D", "multiplier", UNSIGNED)
def depthwise_multiplier(dtype):
    feeds = Feeds()
    return [{"feeds": feeds, "fetches": numbers(raw.QuantizedDepthwiseConv2D(
        input=integers(feeds, (2, 9, 8, 6), dtype), filter=constant((3, 2, 6, 2)), min_input=0.0, max_input=1.0, min_filter=-1.0,
        max_filter=0.7, out_type=tf.qint32, strides=[1, 1, 1, 1], padding="VALID"))}]


def fused_matmul(op):
    requantize, floating = "Requantize" in op, "Dequantize" in op

    @edge(op, "modes", UNSIGNED)
    def build(dtype):
        feeds, fetches = Feeds(), []
        for i, mode in enumerate(["SCALED", "MIN_FIRST"]):
            for bias_type in ("float32", "qint32") if op != "QuantizedMatMulWithBiasAndRelu" else ("float32",):
                bias = floats(feeds, (8,), i) if bias_type == "float32" else integers(feeds, (8,), "qint32", i, -9000, 9000)
                out = tf.float32 if floating else tf.quint8 if requantize else tf.qint32
                more = dict(min_freezed_output=-7.0, max_freezed_output=11.5) if requantize or floating else {}
                fetches += numbers(getattr(raw, op)(
                    a=integers(feeds, (9, 33), dtype, i), b=constant((33, 8), seed=i), bias=bias, min_a=0.25 * i, max_a=2.5, min_b=-0.7,
                    max_b=0.4, Toutput=out, input_quant_mode=mode, **more))
        return [{"feeds": feeds, "fetches": fetches}]


for name in ("", "AndRelu", "AndRequantize", "AndReluAndRequantize", "AndDequantize"):
    fused_matmul("QuantizedMatMulWithBias" + name)


@edge("RequantizePerChannel", "channels", ["qint32"])
def requantize_per_channel(dtype):
    feeds, fetches = Feeds(), []
    for i, (channels, out) in enumerate([(5, tf.qint8), (5, tf.quint8), (1, tf.qint8), (1, tf.quint8)]):
        ends = np.random.default_rng(i).uniform(10, 20, (2, channels)).astype(np.float32)
        fetches += numbers(raw.RequantizePerChannel(
            input=integers(feeds, (2, 3, 4, 5), dtype, i, -2**28, 2**28, known=i != 1), input_min=feeds.add(-ends[0]), input_max=feeds.add(ends[1]),
            requested_output_min=-1.5, requested_output_max=1.2, out_type=out))
    return [{"feeds": feeds, "fetches": fetches}]


@edge("RequantizationRangePerChannel", "channels", ["qint32"])
def range_per_channel(dtype):
    feeds, fetches = Feeds(), []
    for i, (low, high, clip) in enumerate([(-2**28, 2**28, 6.0), (0, 2**28, 100.0), (-2**30, 2**20, 0.5)]):
        ends = np.random.default_rng(i).uniform(10, 20, (2, 5)).astype(np.float32)
        fetches += raw.RequantizationRangePerChannel(input=integers(feeds, (2, 3, 4, 5), dtype, i, low, high), input_min=feeds.add(-ends[0]),
                                                     input_max=feeds.add(ends[1]), clip_value_max=clip)
    return [{"feeds": feeds, "fetches": fetches}]
