"""Nodes of tf_fuzz_nodes.py for images, networks and matrices."""
import numpy as np
import tensorflow as tf
from tensorflow.python.framework import op_def_library

from tf_fuzz_nodes import (bounded, call, COMPLEX, dims, filled, INDEX, indices, ints, node, part_of, raw, REAL, some)


# --- images and networks

def out_size(n, k, s, padding, rate=1):
    k = (k - 1) * rate + 1
    return -(-n // s) if padding == 'SAME' else max(0, -(-(n - k + 1) // s))


def picture(g, most=4000):
    shape = [g.pick([1, 1, 2, 3]), g.pick([1, 3, 5, 7, 8, 15, 17]), g.pick([1, 3, 5, 7, 8, 16, 31]), g.pick([1, 2, 3, 4, 7, 8, 16])]
    while np.prod(shape) > most:
        shape[g.int(1, 3)] = g.pick([1, 2, 3])
    if g.rng.random() < .04:
        shape[0] = 0
    return shape


def window(g, shape, most=3):
    """A window in an image of this shape that has room for it: sizes, strides, padding, and the shape of what comes out."""
    k = [g.int(1, max(1, min(most, n))) for n in shape[1:-1]]
    s = [g.int(1, 3) for _ in k]
    padding = g.pick(['SAME', 'VALID'])
    out = [shape[0], *(out_size(n, a, b, padding) for n, a, b in zip(shape[1:-1], k, s)), shape[-1]]
    return dict(ksize=[1, *k, 1], strides=[1, *s, 1], padding=padding), out


def volume(g):
    return [g.pick([1, 1, 2]), *(g.pick([1, 2, 3, 5, 7]) for _ in range(3)), g.pick([1, 2, 3, 8])]


@node('AvgPool MaxPool')
def pool(g, d, op):
    shape = picture(g)
    w, _ = window(g, shape)
    return call(op, **{'value' if op == 'AvgPool' else 'input': g.free(shape, d)}, **w)


@node('AvgPool3D MaxPool3D')
def pool3(g, d, op):
    shape = volume(g)
    w, _ = window(g, shape)
    return call(op, input=g.free(shape, d), **w)


@node('AvgPoolGrad AvgPool3DGrad')
def average_grad(g, d, op):
    shape = volume(g) if '3D' in op else picture(g)
    w, out = window(g, shape)
    return call(op, orig_input_shape=ints(shape), grad=g.free(out, d), **w)


@node('MaxPoolV2')
def pool_v2(g, d, op):
    shape = picture(g)
    w, _ = window(g, shape)
    return call(op, input=g.free(shape, d), ksize=ints(w['ksize']), strides=ints(w['strides']), padding=w['padding'])


@node('MaxPoolGrad MaxPoolGradGrad MaxPoolGradV2 MaxPoolGradGradV2 MaxPool3DGrad MaxPool3DGradGrad')
def max_grad(g, d, op):
    shape = volume(g) if '3D' in op else picture(g)
    w, out = window(g, shape)
    x = bounded(g, shape, d, -50, 50)
    y = call('MaxPool3D' if '3D' in op else 'MaxPool', input=x, **w)
    # TensorFlow zeroes the second gradient's result in the memory of its operand before it reads it, where no other node needs that
    grad = g.operand(shape, d) if 'GradGrad' in op else g.free(out, d)
    if op.endswith('V2'):
        w = dict(ksize=ints(w['ksize']), strides=ints(w['strides']), padding=w['padding'])
    return call(op, orig_input=x, orig_output=y, grad=grad, **w)


@node('MaxPoolWithArgmax MaxPoolGradWithArgmax')
def argmax_pool(g, d, op):
    shape = filled(picture(g))
    w, out = window(g, shape)
    batch, x = g.coin(), bounded(g, shape, d, -50, 50)
    y = raw.MaxPoolWithArgmax(input=x, Targmax=g.pick(INDEX) if op == 'MaxPoolWithArgmax' else tf.int64, include_batch_in_index=batch, **w)
    if op == 'MaxPoolWithArgmax':
        return y
    return call(op, input=x, grad=g.free(out, d), argmax=y.argmax, include_batch_in_index=batch, **w)


def convolution(g, spatial, depthwise=False):
    shape = picture(g, 2000) if spatial == 2 else [g.pick([1, 2]), *(g.pick([1, 2, 3, 5, 7]) for _ in range(spatial)), g.pick([1, 2, 3, 8])]
    k = [g.int(1, min(3, n)) for n in shape[1:-1]]
    s, rate = g.pick([1, 1, 2]), g.pick([1, 1, 1, 2])
    if depthwise or spatial == 3:
        rate = 1
    padding = g.pick(['SAME', 'VALID'])
    if padding == 'VALID' and any((a - 1) * rate + 1 > n for a, n in zip(k, shape[1:-1])):
        rate = 1
    c = shape[-1]
    groups = g.pick([1, 1, c]) if spatial == 2 and not depthwise else 1
    channels = g.pick([1, 2, 3]) if depthwise else groups * g.small()
    filters = [*k, c // groups, channels]
    out = [shape[0], *(out_size(n, a, s, padding, rate) for n, a in zip(shape[1:-1], k)), c * channels if depthwise else channels]
    attrs = dict(strides=[1, *[s] * spatial, 1], padding=padding, dilations=[1, *[rate] * spatial, 1])
    return shape, filters, out, attrs


@node('Conv2D Conv3D DepthwiseConv2dNative Conv')
def conv(g, d, op):
    shape, filters, _, attrs = convolution(g, 3 if '3D' in op else 2, 'Depthwise' in op)
    if op == 'Conv':
        spatial = g.int(2, 3)
        shape, filters, _, attrs = convolution(g, spatial)
        if shape[-1] != filters[-2]:
            attrs['groups'] = shape[-1] // filters[-2]
    return call(op, input=g.free(shape, d), filter=g.free(filters, d), **attrs)


@node('Conv2DBackpropInput Conv3DBackpropInputV2 DepthwiseConv2dNativeBackpropInput')
def conv_input(g, d, op):
    shape, filters, out, attrs = convolution(g, 3 if '3D' in op else 2, 'Depthwise' in op)
    return call(op, input_sizes=ints(shape), filter=g.free(filters, d), out_backprop=g.free(out, d), **attrs)


@node('Conv2DBackpropFilter Conv3DBackpropFilterV2 DepthwiseConv2dNativeBackpropFilter')
def conv_filter(g, d, op):
    shape, filters, out, attrs = convolution(g, 3 if '3D' in op else 2, 'Depthwise' in op)
    return call(op, input=g.free(shape, d), filter_sizes=ints(filters), out_backprop=g.free(out, d), **attrs)


@node('Conv3DBackpropInput Conv3DBackpropFilter')
def conv_old(g, d, op):
    shape, filters, out, attrs = convolution(g, 3)
    del attrs['dilations']
    return call(op, input=g.free(shape, d), filter=g.free(filters, d), out_backprop=g.free(out, d), **attrs)


@node('Dilation2D Dilation2DBackpropInput Dilation2DBackpropFilter')
def dilation(g, d, op):
    shape = filled(picture(g))
    k, s, rate, padding = [g.int(1, min(3, n)) for n in shape[1:3]], g.int(1, 2), g.pick([1, 1, 2]), g.pick(['SAME', 'VALID'])
    if any((a - 1) * rate + 1 > n for a, n in zip(k, shape[1:3])):
        rate = 1
    args = dict(input=bounded(g, shape, d, -50, 50), filter=bounded(g, [*k, shape[3]], d, -5, 5), strides=[1, s, s, 1],
                rates=[1, rate, rate, 1], padding=padding)
    if op != 'Dilation2D':
        args['out_backprop'] = g.free([shape[0], *(out_size(n, a, s, padding, rate) for n, a in zip(shape[1:3], k)), shape[3]], d)
    return call(op, **args)


@node('ExtractImagePatches')
def patches(g, d, op):
    shape = picture(g, 1000)
    w, _ = window(g, shape)
    return call(op, images=g.free(shape, d), ksizes=w['ksize'], strides=w['strides'], rates=[1, 1, 1, 1], padding=w['padding'])


@node('ExtractVolumePatches')
def volume_patches(g, d, op):
    shape = volume(g)
    w, _ = window(g, shape)
    return call(op, input=g.free(shape, d), ksizes=w['ksize'], strides=w['strides'], padding=w['padding'])


@node('FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3')
def batch_norm(g, d, op):
    shape, u = filled(picture(g)), d if op == 'FusedBatchNorm' else tf.float32
    c, train = shape[3:], g.coin()
    mean, var = ([], []) if train else (bounded(g, c, u, -1, 1), bounded(g, c, u, .5, 2))
    if train:
        mean = var = tf.constant([], u)
    return call(op, x=g.free(shape, d), scale=bounded(g, c, u, -2, 2), offset=bounded(g, c, u, -2, 2), mean=mean, variance=var,
                is_training=train,
                epsilon=g.pick([.001, .1]))[:3]


@node('FusedBatchNormGrad FusedBatchNormGradV2 FusedBatchNormGradV3')
def batch_norm_grad(g, d, op):
    shape, u = filled(picture(g)), d if op == 'FusedBatchNormGrad' else tf.float32
    c = shape[3:]
    more = {'reserve_space_3': tf.constant([], u)} if op.endswith('V3') else {}
    return call(op, y_backprop=g.free(shape, d), x=g.free(shape, d), scale=bounded(g, c, u, -2, 2), reserve_space_1=bounded(g, c, u, -1, 1),
                reserve_space_2=bounded(g, c, u, .5, 2), is_training=g.coin(), epsilon=.01, **more)[:3]


@node('BatchNormWithGlobalNormalization BatchNormWithGlobalNormalizationGrad')
def global_norm(g, d, op):
    shape = filled(picture(g))
    args = dict(t=g.free(shape, d), m=bounded(g, shape[3:], d, -1, 1), v=bounded(g, shape[3:], d, .5, 2), gamma=bounded(g, shape[3:], d,
                                                                                                                        -2, 2))
    args.update({'backprop': g.free(shape, d)} if op.endswith('Grad') else {'beta': bounded(g, shape[3:], d, -2, 2)})
    return op_def_library.apply_op(op, variance_epsilon=.01, scale_after_normalization=g.coin(), **args)


@node('LRN LRNGrad')
def lrn(g, d, op):
    shape, attrs = picture(g), dict(depth_radius=g.int(1, 3), bias=1.5, alpha=.1, beta=.5)
    x = bounded(g, shape, d, -2, 2)
    if op == 'LRN':
        return raw.LRN(input=x, **attrs)
    return call(op, input_grads=g.free(shape, d), input_image=x, output_image=raw.LRN(input=x, **attrs), **attrs)


@node('BiasAdd BiasAddV1')
def bias(g, d, op):
    shape = some(g, 2, 5)
    nchw = op == 'BiasAdd' and len(shape) > 2 and g.coin()
    more = {'data_format': 'NCHW'} if nchw else {}
    return call(op, value=g.free(shape, d), bias=g.free([shape[1 if nchw else -1]], d), **more)


@node('BiasAddGrad')
def bias_grad(g, d, op):
    shape = some(g, 2, 5)
    return call(op, out_backprop=g.free(shape, d), data_format='NCHW' if len(shape) > 2 and g.coin() else 'NHWC')


@node('GRUBlockCell GRUBlockCellGrad')
def gru(g, d, op):
    b, n, m = g.pick([1, 2, 5]), g.pick([1, 3, 8]), g.pick([1, 4, 8])
    args = dict(x=[b, n], h_prev=[b, m], w_ru=[n + m, 2 * m], w_c=[n + m, m], b_ru=[2 * m], b_c=[m])
    if op.endswith('Grad'):
        args.update(r=[b, m], u=[b, m], c=[b, m], d_h=[b, m])
    return call(op, **{k: bounded(g, s, d, 0 if k in 'ru' else -.7, .7) for k, s in args.items()})


@node('LSTMBlockCell LSTMBlockCellGrad')
def lstm_cell(g, d, op):
    b, n, m = g.pick([1, 2, 5]), g.pick([1, 3, 8]), g.pick([1, 4, 8])
    args = dict(x=[b, n], cs_prev=[b, m], h_prev=[b, m], w=[n + m, 4 * m], wci=[m], wcf=[m], wco=[m], b=[4 * m])
    if op.endswith('Grad'):
        args.update({k: [b, m] for k in 'i cs f o ci co cs_grad h_grad'.split()})
    return call(op, use_peephole=g.coin(), **{k: bounded(g, s, d, -.7, .7) for k, s in args.items()})


@node('BlockLSTM BlockLSTMV2 BlockLSTMGrad BlockLSTMGradV2')
def block_lstm(g, d, op):
    t, b, n, m = g.int(1, 4), g.pick([1, 2, 5]), g.pick([1, 3, 8]), g.pick([1, 4, 8])
    args = dict(x=[t, b, n], cs_prev=[b, m], h_prev=[b, m], w=[n + m, 4 * m], wci=[m], wcf=[m], wco=[m], b=[4 * m])
    args = {k: bounded(g, s, d, -.7, .7) for k, s in args.items()}
    # behind a shorter sequence TensorFlow leaves some results as it finds them
    args.update(seq_len_max=tf.constant(t, tf.int64), use_peephole=g.coin())
    if 'Grad' not in op:
        return call(op, **args)
    made = call(op.replace('Grad', ''), **args)
    return call(op, cs_grad=bounded(g, [t, b, m], d, -1, 1), h_grad=bounded(g, [t, b, m], d, -1, 1), **args, **made._asdict())


@node('AdjustContrastv2 AdjustHue AdjustSaturation')
def adjust(g, d, op):
    name = {'AdjustContrastv2': 'contrast_factor', 'AdjustHue': 'delta', 'AdjustSaturation': 'scale'}[op]
    shape = some(g, 2, 3, 2000) + [3]
    return call(op, images=bounded(g, shape, d, 0, 1), **{name: bounded(g, [], tf.float32, -.9 if op == 'AdjustHue' else .1, .9)})


@node('AdjustContrast')
def adjust_old(g, d, op):
    limits = sorted(g.rng.uniform(-50, 150, 2))
    return call(op, images=bounded(g, some(g, 2, 3, 2000) + [3], d, 0, 100), contrast_factor=bounded(g, [], tf.float32, .1, 2.),
                min_value=tf.constant(limits[0], tf.float32), max_value=tf.constant(limits[1], tf.float32))


@node('FusedPadConv2D FusedResizeAndPadConv2D')
def fused_conv(g, d, op):
    # TensorFlow reads the border of the first image for all of a batch
    h, w, c = g.int(3, 9), g.int(3, 9), g.int(1, 4)
    x, k = g.free([1, h, w, c], d), [g.int(1, 3), g.int(1, 3)]
    resized = dict(size=ints([g.int(3, 9), g.int(3, 9)]), resize_align_corners=g.coin()) if 'Resize' in op else {}
    pads = [[0, 0], [g.int(0, 2), g.int(0, 2)], [g.int(0, 2), g.int(0, 2)], [0, 0]]
    return call(op, input=x, paddings=ints(pads), filter=g.free([*k, c, g.int(1, 5)], d), mode=g.pick(['REFLECT', 'SYMMETRIC']),
                strides=[1, *[g.int(1, 2)] * 2, 1], padding=g.pick(['SAME', 'VALID']), **resized)


@node('AudioSpectrogram')
def spectrogram(g, d, op):
    return call(op, input=bounded(g, [g.int(1, 200), g.int(1, 3)], d, -1, 1), window_size=g.int(2, 70), stride=g.int(1, 40),
                magnitude_squared=g.coin())


@node('Mfcc')
def mfcc(g, d, op):
    filters, lowest = g.int(1, 40), g.pick([0., 20., 300.])
    return call(op, spectrogram=bounded(g, [g.int(1, 2), g.int(1, 4), g.pick([9, 33, 129])], d, 0, 3),
                sample_rate=g.feed(np.int32(g.pick([8000, 16000]))), lower_frequency_limit=lowest, upper_frequency_limit=g.pick([1000., 3500.]),
                filterbank_channel_count=filters, dct_coefficient_count=g.int(1, filters))


@node('RGBToHSV HSVToRGB')
def colours(g, d, op):
    return call(op, images=bounded(g, some(g, 0, 3, 2000) + [3], d, 0, 1))


@node('ResizeArea ResizeBicubic ResizeBilinear ResizeNearestNeighbor')
def resize(g, d, op):
    align = g.coin()
    half = {} if op == 'ResizeArea' or align else {'half_pixel_centers': g.coin()}
    return call(op, images=bounded(g, filled(picture(g, 1500)), d, 0, 100), size=ints([g.small(), g.small()]), align_corners=align, **half)


@node('ResizeBicubicGrad ResizeBilinearGrad')
def resize_grad(g, d, op):
    shape, align = filled(picture(g, 1500)), g.coin()
    grads = [shape[0], g.small(), g.small(), shape[3]]
    return call(op, grads=g.free(grads, tf.float32), original_image=g.free(shape, d), align_corners=align,
                half_pixel_centers=not align and g.coin())


@node('ResizeNearestNeighborGrad')
def nearest_grad(g, d, op):
    align = g.coin()
    return call(op, grads=g.free(filled(picture(g, 1500)), d), size=ints([g.small(), g.small()]), align_corners=align,
                half_pixel_centers=not align and g.coin())


def boxes_of(g, m):
    return bounded(g, [m, 4], tf.float32, -.2, 1.2)


@node('CropAndResize')
def crop(g, d, op):
    shape, m = filled(picture(g, 1500)), g.int(1, 5)
    return call(op, image=bounded(g, shape, d, 0, 100), boxes=boxes_of(g, m), box_ind=indices(g, [m], shape[0], tf.int32),
                crop_size=ints([g.int(1, 6), g.int(1, 6)]), method=g.pick(['bilinear', 'nearest']), extrapolation_value=g.pick([0., 2.5]))


@node('CropAndResizeGradBoxes CropAndResizeGradImage')
def crop_grad(g, d, op):
    shape, m = filled(picture(g, 1500)), g.int(1, 5)
    grads = g.free([m, g.int(1, 6), g.int(1, 6), shape[3]], tf.float32)
    args = dict(grads=grads, boxes=boxes_of(g, m), box_ind=indices(g, [m], shape[0], tf.int32))
    if op.endswith('Boxes'):
        return call(op, image=bounded(g, shape, d, 0, 100), **args)
    return call(op, image_size=ints(shape), T=d, method=g.pick(['bilinear', 'nearest']), **args)


@node('DrawBoundingBoxes DrawBoundingBoxesV2')
def draw(g, d, op):
    n, channels = g.int(1, 3), g.pick([1, 3, 4])
    more = {'colors': bounded(g, [g.int(1, 3), channels], tf.float32, 0, 1)} if op.endswith('V2') else {}
    return call(op, images=bounded(g, [n, g.int(3, 17), g.int(3, 17), channels], d, 0, 1), boxes=bounded(g, [n, g.int(0, 3), 4],
                                                                                                         tf.float32, 0, 1),
                **more)


@node('ScaleAndTranslate ScaleAndTranslateGrad')
def scale_translate(g, d, op):
    shape = filled(picture(g, 800))
    args = dict(scale=bounded(g, [2], tf.float32, .4, 2.5), translation=bounded(g, [2], tf.float32, -2, 2), antialias=g.coin(),
                kernel_type=g.pick(['lanczos1', 'lanczos3', 'lanczos5', 'gaussian', 'box', 'triangle', 'keyscubic', 'mitchellcubic']))
    if op.endswith('Grad'):
        return call(op, grads=g.free([shape[0], g.int(1, 9), g.int(1, 9), shape[3]], d), original_image=g.free(shape, d), **args)
    return call(op, images=bounded(g, shape, d, 0, 50), size=ints([g.int(1, 9), g.int(1, 9)]), **args)


@node('NonMaxSuppressionV2 NonMaxSuppressionV3 NonMaxSuppressionV4')
def suppression(g, d, op):
    n = g.pick([0, 1, 5, 17, 33])
    corner, size = g.rng.uniform(0, 1, [n, 2]), g.rng.uniform(.1, .6, [n, 2])
    boxes = np.concatenate([corner, corner + size], 1).astype(d.as_numpy_dtype)
    scores = (g.rng.permutation(n) / max(1, n)).astype(d.as_numpy_dtype)
    more = {} if op.endswith('V2') else {'score_threshold': bounded(g, [], d, 0, .5)}
    if op.endswith('V4'):
        more['pad_to_max_output_size'] = g.coin()
    return call(op, boxes=g.feed(boxes), scores=g.feed(scores), max_output_size=ints(g.int(0, 9)), iou_threshold=bounded(g, [], d, .1,
                                                                                                                         .9), **more)


# --- matrices

def product_shapes(g, batch=False):
    m, k, n = dims(g, 3, 30000)
    lead = some(g, 0, 2, 12) if batch else []
    return lead + [m, k], lead + [k, n]


def flipped(shape, flip):
    return shape[:-2] + shape[:-3:-1] if flip else shape


@node('MatMul SparseMatMul')
def matmul(g, d, op):
    (a, b), ta, tb = product_shapes(g), g.coin(), g.coin()
    more = {'a_is_sparse': g.coin(), 'b_is_sparse': g.coin()} if op == 'SparseMatMul' else {}
    second = g.pick([tf.float32, tf.bfloat16]) if op == 'SparseMatMul' else d
    return call(op, a=g.free(flipped(a, ta), d), b=g.free(flipped(b, tb), second), transpose_a=ta, transpose_b=tb, **more)


@node('BatchMatMul BatchMatMulV2 BatchMatMulV3')
def batch_matmul(g, d, op):
    (a, b), ta, tb = product_shapes(g, True), g.coin(), g.coin()
    if op != 'BatchMatMul':
        b = part_of(g, b[:-2]) + b[-2:]
    more = {'Tout': tf.int32 if d in (tf.int8, tf.uint8) else d} if op.endswith('V3') else {}
    return call(op, x=g.free(flipped(a, ta), d), y=g.free(flipped(b, tb), d), adj_x=ta, adj_y=tb, **more)


EQUATIONS = [('ab,bc->ac', 'ab', 'bc'), ('abc,cd->abd', 'abc', 'cd'), ('abc,acd->abd', 'abc', 'acd'), ('abc,abc->a', 'abc', 'abc'),
             ('ab,ab->', 'ab', 'ab'), ('abc,bd->adc', 'abc', 'bd'), ('a,b->ab', 'a', 'b'), ('ab,b->ab', 'ab', 'b'), ('ab,bc->ca', 'ab',
                                                                                                                     'bc')]


@node('Einsum XlaEinsum')
def einsum(g, d, op):
    size = dict(zip('abcd', dims(g, 4, 8000)))
    if op == 'Einsum' and g.rng.random() < .3:
        equation, a = g.pick([('abc->cb', 'abc'), ('ab->ba', 'ab'), ('aab->b', 'aab'), ('abc->', 'abc'), ('aa->a', 'aa')])
        return call(op, inputs=[g.free([size[x] for x in a], d)], equation=equation)
    equation, a, b = g.pick(EQUATIONS)
    a, b = (g.free([size[x] for x in s], d) for s in (a, b))
    return call(op, a=a, b=b, equation=equation) if op == 'XlaEinsum' else call(op, inputs=[a, b], equation=equation)


def well_conditioned(g, d, symmetric=False, n=None):
    """Square matrices with a strong diagonal."""
    n = n or g.pick([1, 2, 3, 4, 5, 7, 8, 16])
    lead = g.pick([[], [], [1], [3], [2, 2], [0]])
    a = g.rng.uniform(-.5, .5, lead + [n, n])
    if d.is_complex:
        a = a + 1j * g.rng.uniform(-.5, .5, lead + [n, n])
    if symmetric:
        a = (a + np.conj(np.swapaxes(a, -1, -2))) / 2
    a = a + np.diag(np.arange(1, n + 1) + .6 * n)
    return np.asarray(a).astype(d.as_numpy_dtype), lead, n


@node('CholeskyGrad BatchCholeskyGrad')
def cholesky_grad(g, d, op):
    n, batch = g.int(1, 6), some(g, 0, 1, 4)
    l = np.tril(g.rng.uniform(-1, 1, [*batch, n, n])) + 2 * np.eye(n)
    return call(op, l=g.feed(l.astype(d.as_numpy_dtype)), grad=bounded(g, [*batch, n, n], d, -2, 2))


@node('MatrixExponential')
def exponential(g, d, op):
    n = g.int(1, 6)
    return call(op, input=bounded(g, [*some(g, 0, 1, 4), n, n], d, -2, 2))


@node('Cholesky BatchCholesky')
def cholesky(g, d, op):
    return call(op, input=g.feed(well_conditioned(g, d, True)[0]))


@node('MatrixDeterminant BatchMatrixDeterminant LogMatrixDeterminant MatrixInverse BatchMatrixInverse MatrixSquareRoot MatrixLogarithm '
      'Lu Qr')
def matrix(g, d, op):
    a = well_conditioned(g, d)[0]
    more = {'adjoint': g.coin()} if op.endswith('MatrixInverse') else {'full_matrices': g.coin()} if op == 'Qr' else {}
    if op == 'Lu':
        more['output_idx_type'] = g.pick(INDEX)
    return call(op, input=g.feed(a), **more)


@node('SelfAdjointEigV2 BatchSelfAdjointEigV2')
def eigenvalues(g, d, op):
    made = call(op, input=g.feed(well_conditioned(g, d, True)[0]), compute_v=g.coin())
    return made.e  # vectors are right up to a factor


@node('SelfAdjointEig BatchSelfAdjointEig')
def eigenvalues_first(g, d, op):
    return call(op, input=g.feed(well_conditioned(g, d, True)[0]))[..., 0, :]  # the vectors follow


@node('Eig')
def eig(g, d, op):
    e = call(op, input=g.feed(well_conditioned(g, d)[0]), compute_v=False, Tout=d if d.is_complex else COMPLEX[d]).e
    return tf.reduce_sum(e, -1), tf.reduce_sum(e * e, -1)  # their order is that of the algorithm


@node('Svd BatchSvd')
def svd(g, d, op):
    lead, m, n = g.pick([[], [2]]), g.int(1, 9), g.int(1, 9)
    return call(op, input=bounded(g, lead + [m, n], d, -2, 2), compute_uv=g.coin(), full_matrices=g.coin()).s


@node('MatrixSolve BatchMatrixSolve MatrixTriangularSolve BatchMatrixTriangularSolve MatrixSolveLs BatchMatrixSolveLs')
def solve(g, d, op):
    a, lead, n = well_conditioned(g, d)
    args = dict(matrix=g.feed(a), rhs=bounded(g, lead + [n, g.int(1, 5)], d, -2, 2))
    if op.endswith('MatrixSolveLs'):
        return call(op, l2_regularizer=tf.constant(g.pick([0., .1]), tf.float64), fast=g.coin(), **args)
    if op.endswith('TriangularSolve'):
        args['lower'] = g.coin()
    return call(op, adjoint=g.coin(), **args)


@node('BandedTriangularSolve')
def banded(g, d, op):
    n, lead = g.int(1, 9), g.pick([[], [2]])
    bands = g.int(1, min(3, n))
    a = g.rng.uniform(1, 2, lead + [bands, n]) * (g.rng.random(lead + [bands, n]) < .8)
    lower = g.coin()
    a[..., 0 if lower else -1, :] += 2
    return call(op, matrix=g.feed(a.astype(d.as_numpy_dtype)), rhs=bounded(g, lead + [n, g.int(1, 4)], d, -2, 2), lower=lower,
                adjoint=g.coin())


@node('TridiagonalMatMul TridiagonalSolve')
def tridiagonal(g, d, op):
    lead, n, k = g.pick([[], [2], [2, 3]]), g.int(1, 17), g.int(1, 4)
    rhs = bounded(g, lead + [n, k], d, -2, 2)
    if op == 'TridiagonalMatMul':
        return call(op, **{x: bounded(g, lead + [1, n], d, -2, 2) for x in ('superdiag', 'maindiag', 'subdiag')}, rhs=rhs)
    a = g.rng.uniform(-.5, .5, lead + [3, n])
    a[..., 1, :] += 2
    return call(op, diagonals=g.feed(a.astype(d.as_numpy_dtype)), rhs=rhs, partial_pivoting=g.coin())


@node('MatrixBandPart BatchMatrixBandPart')
def band_part(g, d, op):
    t = tf.int64 if op.startswith('Batch') else g.pick(INDEX)
    shape = some(g, 2, 4)
    return call(op, input=g.free(shape, d), num_lower=ints(g.int(-1, max(0, shape[-2])), t), num_upper=ints(g.int(-1, max(0, shape[-1])),
                                                                                                            t))


@node('Diag')
def diag(g, d, op):
    return call(op, diagonal=g.free(some(g, 1, 2, 40), d))


@node('DiagPart')
def diag_part(g, d, op):
    shape = some(g, 1, 2, 60)
    return call(op, input=g.free(shape + shape, d))


@node('MatrixDiag BatchMatrixDiag')
def matrix_diag(g, d, op):
    return call(op, diagonal=g.free(some(g, 1, 3, 600), d))


@node('MatrixDiagPart BatchMatrixDiagPart')
def matrix_diag_part(g, d, op):
    return call(op, input=g.free(some(g, 2, 4), d))


@node('MatrixSetDiag BatchMatrixSetDiag')
def matrix_set_diag(g, d, op):
    shape = some(g, 2, 4)
    return call(op, input=g.free(shape, d), diagonal=g.free(shape[:-2] + [min(shape[-2:])], d))


def diagonals(g):
    """A matrix' sizes, a range of its diagonals, and the sizes of a tensor that holds them."""
    m, n = g.pick([1, 2, 3, 5, 8, 17]), g.pick([1, 2, 3, 5, 8, 17])
    low, high = sorted((g.int(1 - m, n - 1), g.int(1 - m, n - 1)))
    if g.coin():
        low = high
    longest = min(m + min(high, 0), n - max(low, 0))
    k = ints([low, high]) if low != high or g.coin() else ints(low)
    return m, n, k, ([] if low == high else [high - low + 1]) + [longest]


ALIGN = ['LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT']


@node('MatrixDiagPartV2 MatrixDiagPartV3 MatrixDiagV2 MatrixDiagV3 MatrixSetDiagV2 MatrixSetDiagV3')
def diagonals_v2(g, d, op):
    (m, n, k, shape), lead = diagonals(g), some(g, 0, 2, 40)
    more = {'align': g.pick(ALIGN)} if op.endswith('V3') else {}
    if 'Part' in op:
        return call(op, input=g.free(lead + [m, n], d), k=k, padding_value=g.free([], d), **more)
    diagonal = g.free(lead + shape, d)
    if 'Set' in op:
        return call(op, input=g.free(lead + [m, n], d), diagonal=diagonal, k=k, **more)
    return call(op, diagonal=diagonal, k=k, num_rows=ints(m), num_cols=ints(n), padding_value=g.free([], d), **more)


@node('FFT IFFT FFT2D IFFT2D FFT3D IFFT3D')
def fft(g, d, op):
    rank = int(op[op.index('T') + 1]) if op[-1] == 'D' else 1
    return call(op, input=bounded(g, filled(some(g, rank, rank + 1, 3000)), d, -2, 2))


@node('RFFT RFFT2D RFFT3D IRFFT IRFFT2D IRFFT3D')
def rfft(g, d, op):
    rank = int(op[op.index('T') + 1]) if op[-1] == 'D' else 1
    shape = filled(some(g, rank, rank + 1, 3000))
    length = [g.pick([n, n, n + 1, max(1, n - 1)]) for n in shape[-rank:]]
    if op.startswith('I'):
        length = [min(a, n) for a, n in zip(length, shape[-rank:])]
        length[-1] = max(1, 2 * (shape[-1] - 1) + g.int(0, 1))
        return call(op, input=bounded(g, shape, d, -2, 2), fft_length=ints(length), Treal=REAL[d])
    return call(op, input=bounded(g, shape, d, -2, 2), fft_length=ints(length), Tcomplex=COMPLEX[d])
