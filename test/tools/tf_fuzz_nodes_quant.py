"""Nodes of tf_fuzz_nodes.py that round to few bits, or take what was rounded."""
import numpy as np
import tensorflow as tf

from tf_fuzz_nodes import bounded, call, filled, ints, node, raw, some

STORED = {tf.quint8: tf.uint8, tf.qint8: tf.int8, tf.quint16: tf.uint16, tf.qint16: tf.int16, tf.qint32: tf.int32}


@node('QuantizeAndDequantizeV2 QuantizeAndDequantizeV3 QuantizeAndDequantizeV4 QuantizeAndDequantizeV4Grad')
def quantize_dequantize(g, d, op):
    shape = some(g, 1, 4)
    axis = g.pick([-1, g.int(0, len(shape) - 1)])
    if not np.prod(shape):
        axis = -1
    edge = [] if axis < 0 else [shape[axis]]
    args = dict(input=bounded(g, shape, d, -4, 4), input_min=bounded(g, edge, d, -3, -1), input_max=bounded(g, edge, d, 1, 3), axis=axis)
    if op.endswith('Grad'):
        return call(op, gradients=g.free(shape, d), **args)
    bits = g.int(2, 16)
    args.update(range_given=g.coin(), narrow_range=g.coin(), signed_input=True, num_bits=ints(bits) if op.endswith('V3') else bits)
    if not op.endswith('V3'):
        args['round_mode'] = g.pick(['HALF_TO_EVEN', 'HALF_UP'])
    return call(op, **args)


@node('Dequantize')
def dequantize(g, d, op):
    shape, kind = filled(some(g, 0, 4)), g.pick(list(STORED))  # TensorFlow ends the process where there is no element
    mode = g.pick(['MIN_COMBINED', 'MIN_FIRST', 'SCALED']) if d == tf.float32 else 'MIN_COMBINED'
    axis = g.int(0, len(shape) - 1) if mode == 'SCALED' and shape and g.coin() else -1
    edge = [] if axis < 0 else [shape[axis]]
    # operands in the type that holds the bits: what is fed has a type of numpy's
    return call(op, input=raw.Bitcast(input=g.free(shape, STORED[kind]), type=kind), min_range=bounded(g, edge, tf.float32, -3, -1),
                max_range=bounded(g, edge, tf.float32, 1, 3), mode=mode, axis=axis, dtype=d)


@node('QuantizedResizeBilinear')
def quantized_resize(g, d, op):
    shape = [g.int(1, 3), g.int(1, 9), g.int(1, 9), g.pick([1, 2, 3, 8, 17])]
    corners = g.coin()
    return call(op, images=g.free(shape, d), size=ints([g.int(1, 12), g.int(1, 12)]), min=bounded(g, [], tf.float32, -3, -1),
                max=bounded(g, [], tf.float32, 1, 3), align_corners=corners, half_pixel_centers=not corners and g.coin())


def steps_of(g, n, zeros=(-9, 9)):
    """Scales, and the numbers that zero is stored as; of each channel where n is given."""
    edge = [] if n is None else [n]
    return bounded(g, edge, tf.float32, .02, .3), bounded(g, edge, tf.int32, *zeros)


@node('UniformQuantize')
def uniform_quantize(g, d, op):
    shape, kind = filled(some(g, 1, 4)), g.pick([tf.qint8, tf.quint8, tf.qint32])
    axis = g.pick([-1, g.int(0, len(shape) - 1)])
    scales, zeros = steps_of(g, None if axis < 0 else shape[axis], (0, 9))
    low, high = {tf.qint8: (-128, 127), tf.quint8: (0, 255), tf.qint32: (-2 ** 31, 2 ** 31 - 1)}[kind]
    q = call(op, input=bounded(g, shape, d, -40, 40), scales=scales, zero_points=zeros, Tout=kind, quantization_axis=axis,
             quantization_min_val=low + g.int(0, 1), quantization_max_val=high)
    return raw.Bitcast(input=q, type=STORED[kind])


def hybrid(g, d, op, left, right, axis, **more):
    """Floats, which the operation rounds to bytes row by row, and bytes."""
    axis = g.pick([-1, axis])
    scales, zeros = steps_of(g, None if axis < 0 else right[axis], (0, 0) if axis >= 0 else (-9, 9))
    bytes_ = raw.Bitcast(input=bounded(g, right, tf.int8, -127, 127), type=tf.qint8)
    return call(op, lhs=bounded(g, left, d, -4, 4), rhs=bytes_, rhs_scales=scales, rhs_zero_points=zeros, Tout=tf.float32,
                rhs_quantization_axis=axis, rhs_quantization_min_val=-128, rhs_quantization_max_val=127, **more)


@node('UniformQuantizedDotHybrid')
def uniform_dot(g, d, op):
    m, k, n = (g.pick([1, 2, 3, 7, 8, 17, 33]) for _ in range(3))
    return hybrid(g, d, op, [m, k], [k, n], 1)


@node('UniformQuantizedConvolutionHybrid')
def uniform_conv(g, d, op):
    c, o, kernel = g.int(1, 5), g.int(1, 6), [g.int(1, 3), g.int(1, 3)]
    return hybrid(g, d, op, [g.int(1, 2), c, g.int(3, 9), g.int(3, 9)], [o, c, *kernel], 0, padding=g.pick(['VALID', 'SAME']),
                  window_strides=[g.int(1, 2), g.int(1, 2)])
