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
