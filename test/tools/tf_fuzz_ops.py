"""The operations of tf_fuzz.py: each takes the generator and a tensor, and gives what it makes of it.

An operation draws its own attributes and further operands (fed, or constants). What TensorFlow refuses raises; the generator
then draws again. `kinds` says which element types are worth trying: f (real floats), c (complex), i (signed integers), u
(unsigned ones), b (bool).
"""
import numpy as np
import tensorflow as tf

raw = tf.raw_ops
OPS = []  # (name, kinds, function)


def op(kinds, name=None):
    def add(f):
        OPS.append((name or f.__name__, kinds, f))
        return f
    return add


def one_operand(name):
    from tensorflow.python.framework import op_def_registry
    return op_def_registry.get(name).input_arg[0].name


def add_unary(kinds, names):
    for name in names.split():
        OPS.append((name, kinds, lambda g, x, name=name, arg=one_operand(name): getattr(raw, name)(**{arg: x})))


def add_binary(kinds, names):
    for name in names.split():
        def f(g, x, name=name):
            y = g.like(x)
            return getattr(raw, name)(x=x, y=y) if g.rng.random() < .7 else getattr(raw, name)(x=y, y=x)
        OPS.append((name, kinds, f))


add_unary('fciu', 'Neg Square Sign')
add_unary('fc', 'Exp Log Log1p Expm1 Sin Cos Tan Sinh Cosh Tanh Asin Acos Atan Asinh Acosh Atanh Sqrt Rsqrt Reciprocal Sigmoid')
add_unary('fiu', 'Abs Relu Relu6')
add_unary('f', 'Floor Ceil Round Rint Erf Erfc Lgamma Digamma Elu Selu Softplus Softsign IsNan IsInf IsFinite Erfinv '
          'LeakyRelu BesselI0e BesselI1e Ndtri')
add_unary('iu', 'Invert PopulationCount')
add_unary('b', 'LogicalNot')
add_unary('c', 'ComplexAbs Angle Conj Real Imag')
add_binary('fciu', 'AddV2 Sub Mul Equal NotEqual SquaredDifference')
add_binary('fc', 'Div RealDiv DivNoNan MulNoNan Pow Xlogy Xdivy Xlog1py')
add_binary('fiu', 'Maximum Minimum Less LessEqual Greater GreaterEqual')
add_binary('f', 'Atan2 FloorDiv FloorMod Mod NextAfter Igamma Igammac Zeta')
add_binary('iu', 'BitwiseAnd BitwiseOr BitwiseXor LeftShift RightShift')
add_binary('b', 'LogicalAnd LogicalOr Equal NotEqual')


@op('iu')
def IntegerDivision(g, x):
    y = g.like(x)
    y = tf.where(tf.equal(y, tf.zeros_like(y)), tf.ones_like(y), y)
    return g.pick([raw.FloorDiv, raw.FloorMod, raw.TruncateDiv, raw.TruncateMod])(x=x, y=y)


@op('fciub')
def Cast(g, x):
    return tf.cast(x, g.dtype(g.pick('fciub')))


@op('fciub')
def SelectV2(g, x):
    return tf.where(g.fresh(x.shape.as_list(), tf.bool), x, g.like(x))


@op('fiu')
def ClipByValue(g, x):
    return tf.clip_by_value(x, tf.cast(g.int(0, 3), x.dtype), tf.cast(g.int(4, 9), x.dtype))


@op('f')
def Complex(g, x):
    return tf.complex(x, g.fresh(x.shape.as_list(), x.dtype))


def axes_of(g, x, least=0):
    n = x.shape.rank
    count = g.int(min(least, n), n)
    return sorted(g.rng.choice(n, count, replace=False).tolist()) if n else []


def add_reductions(kinds, names):
    for name in names.split():
        def f(g, x, name=name):
            if name == 'EuclideanNorm' and x.dtype.is_integer:
                x = x % 16  # the root of a sum that has wrapped is what the processor makes of it
            return getattr(raw, name)(input=x, axis=tf.constant(axes_of(g, x), tf.int32), keep_dims=g.coin())
        OPS.append((name, kinds, f))


add_reductions('fciu', 'Sum Mean Prod EuclideanNorm')
add_reductions('fiu', 'Max Min')
add_reductions('b', 'All Any')


@op('fiub')
def ArgMax(g, x):
    return raw.ArgMax(input=x, dimension=g.axis(x), output_type=g.pick([tf.int32, tf.int64]))


@op('fiub')
def ArgMin(g, x):
    return raw.ArgMin(input=x, dimension=g.axis(x), output_type=g.pick([tf.int32, tf.int64]))


@op('f')
def Moments(g, x):
    mean, var = tf.nn.moments(x, axes_of(g, x, 1), keepdims=True)
    return (x - mean) * tf.math.rsqrt(var + tf.cast(1e-2, x.dtype))


@op('fc')
def L2Normalize(g, x):
    return tf.math.l2_normalize(x, g.axis(x))


@op('f')
def Softmax(g, x):
    return tf.nn.softmax(x, axis=g.axis(x))


@op('f')
def LogSoftmax(g, x):
    return tf.nn.log_softmax(x, axis=g.axis(x))


@op('f')
def LogSumExp(g, x):
    return tf.reduce_logsumexp(x, axis=axes_of(g, x, 1), keepdims=g.coin())


@op('fc')
def OuterReduce(g, x):
    """A broadcast product summed up: what linear operators make."""
    n = x.shape.rank
    y = g.fresh(x.shape.as_list(), x.dtype)
    return tf.reduce_sum(tf.expand_dims(x, n) * tf.expand_dims(y, n - 1 if n else 0), axis=g.int(0, n))


@op('fciu')
def Cumsum(g, x):
    return raw.Cumsum(x=x, axis=g.axis(x), exclusive=g.coin(), reverse=g.coin())


@op('fciu')
def Cumprod(g, x):
    return raw.Cumprod(x=x, axis=g.axis(x), exclusive=g.coin(), reverse=g.coin())


@op('f')
def CumulativeLogsumexp(g, x):
    return raw.CumulativeLogsumexp(x=x, axis=g.axis(x), exclusive=g.coin(), reverse=g.coin())


@op('fciu')
def MatMul(g, x):
    x = g.to_rank(x, g.int(2, 4) if g.coin() else 2)
    shape, ta, tb = x.shape.as_list(), g.coin(), g.coin()
    k, n = shape[-2 if ta else -1], g.size()
    lead = shape[:-2] if g.coin() else [1] * g.int(0, len(shape) - 2)
    if len(shape) == 2:
        lead = []
    y = g.operand(lead + ([n, k] if tb else [k, n]), x.dtype)
    if len(shape) == 2 and g.coin():
        return raw.MatMul(a=x, b=y, transpose_a=ta, transpose_b=tb)
    return raw.BatchMatMulV2(x=x, y=y, adj_x=ta, adj_y=tb)


@op('fciu')
def MatVec(g, x):
    x = g.to_rank(x, 2)
    return raw.MatMul(a=x, b=g.operand([x.shape[1], 1], x.dtype)) if g.coin() else \
        raw.MatMul(a=g.operand([1, x.shape[0]], x.dtype), b=x)


@op('fc')
def Einsum(g, x):
    x = g.to_rank(x, 3)
    a, b, c = x.shape.as_list()
    eq, shape = g.pick([('abc,cd->abd', [c, g.size()]), ('abc,bd->adc', [b, g.size()]), ('abc,abc->a', [a, b, c]),
                        ('abc,ad->bcd', [a, g.size()]), ('abc,adc->abd', [a, g.size(), c]), ('abc,dcb->ad', [g.size(), c, b]),
                        ('abc,b->ac', [b]), ('abc,abd->acd', [a, b, g.size()])])
    return tf.einsum(eq, x, g.operand(shape, x.dtype))


def image(g, x, rank):
    """x as a tensor of this rank that is no pathological image."""
    return g.to_rank(x, rank)


@op('fi')
def Conv2D(g, x):
    x = image(g, x, 4)
    c = x.shape[3]
    groups = g.pick([1, 1, 1, c, 2]) if c else 1
    if c and c % groups:
        groups = 1
    k = [g.pick([1, 1, 2, 3, 3, 5, 7]), g.pick([1, 1, 2, 3, 3, 5])]
    s, d = g.pick([1, 1, 2, 3]), g.pick([1, 1, 1, 2])
    w = g.operand([k[0], k[1], c // groups if groups else c, groups * g.small()], x.dtype)
    return raw.Conv2D(input=x, filter=w, strides=[1, s, s, 1], dilations=[1, d, d, 1], padding=g.pick(['SAME', 'VALID']))


@op('f')
def DepthwiseConv2D(g, x):
    x = image(g, x, 4)
    s, d = g.pick([1, 1, 2]), g.pick([1, 1, 2])
    w = g.operand([g.pick([1, 3, 3, 5]), g.pick([1, 3, 3, 2]), x.shape[3], g.pick([1, 1, 2, 3])], x.dtype)
    return raw.DepthwiseConv2dNative(input=x, filter=w, strides=[1, s, s, 1], dilations=[1, d, d, 1],
                                     padding=g.pick(['SAME', 'VALID']))


@op('f')
def Conv1D(g, x):
    x = image(g, x, 3)
    w = g.operand([g.pick([1, 2, 3, 5, 7]), x.shape[2], g.small()], x.dtype)
    return tf.nn.conv1d(x, w, stride=g.pick([1, 2]), padding=g.pick(['SAME', 'VALID']), dilations=g.pick([1, 1, 2]))


@op('f')
def Conv3D(g, x):
    x = image(g, x, 5)
    w = g.operand([g.pick([1, 2, 3]), g.pick([1, 3]), g.pick([1, 3]), x.shape[4], g.small()], x.dtype)
    s = g.pick([1, 1, 2])
    return raw.Conv3D(input=x, filter=w, strides=[1, s, s, s, 1], padding=g.pick(['SAME', 'VALID']))


@op('f')
def Conv2DTranspose(g, x):
    x = image(g, x, 4)
    n, h, w, c = x.shape.as_list()
    s, k, pad = g.pick([1, 2, 3]), g.pick([1, 2, 3, 4]), g.pick(['SAME', 'VALID'])
    size = [v * s if pad == 'SAME' else (v - 1) * s + k for v in (h, w)]
    out = g.small()
    return raw.Conv2DBackpropInput(input_sizes=[n, size[0], size[1], out], filter=g.operand([k, k, out, c], x.dtype),
                                   out_backprop=x, strides=[1, s, s, 1], padding=pad)


@op('f')
def ConvGradients(g, x):
    x = image(g, x, 4)
    w = g.operand([g.pick([1, 2, 3]), g.pick([1, 3]), x.shape[3], g.small()], x.dtype)
    y = tf.nn.conv2d(x, w, g.pick([1, 2]), g.pick(['SAME', 'VALID']))
    return g.pick(tf.gradients(tf.reduce_sum(y * y), [x, w]))


@op('fi')
def MaxPool(g, x):
    x = image(g, x, 4)
    k, s = [1, g.int(1, 4), g.int(1, 4), 1], [1, g.int(1, 3), g.int(1, 3), 1]
    return raw.MaxPool(input=x, ksize=k, strides=s, padding=g.pick(['SAME', 'VALID']))


@op('f')
def AvgPool(g, x):
    x = image(g, x, 4)
    k, s = [1, g.int(1, 4), g.int(1, 4), 1], [1, g.int(1, 3), g.int(1, 3), 1]
    return raw.AvgPool(value=x, ksize=k, strides=s, padding=g.pick(['SAME', 'VALID']))


@op('f')
def Pool3D(g, x):
    x = image(g, x, 5)
    k, s = [1, g.int(1, 3), g.int(1, 3), g.int(1, 3), 1], [1, g.int(1, 2), g.int(1, 2), g.int(1, 2), 1]
    return g.pick([raw.MaxPool3D, raw.AvgPool3D])(input=x, ksize=k, strides=s, padding=g.pick(['SAME', 'VALID']))


@op('f')
def PoolGradients(g, x):
    x = image(g, x, 4)
    f = g.pick([tf.nn.max_pool2d, tf.nn.avg_pool2d])
    y = f(x, g.int(1, 3), g.int(1, 2), g.pick(['SAME', 'VALID']))
    return tf.gradients(tf.reduce_sum(y * y), [x])[0]


@op('f')
def FusedBatchNorm(g, x):
    x = image(g, x, 4)
    c = [x.shape[3]]
    train = g.coin()
    mean, var = ([], []) if train else (c, c)
    p = [g.fresh(s, tf.float32) for s in (c, c, mean)] + [tf.abs(g.fresh(var, tf.float32)) + .5]
    if train:
        p[2:] = [tf.constant([], tf.float32)] * 2
    return raw.FusedBatchNormV3(x=x, scale=p[0], offset=p[1], mean=p[2], variance=p[3], is_training=train, epsilon=.01)[0]


@op('f')
def LayerNorm(g, x):
    mean = tf.reduce_mean(x, -1, keepdims=True)
    var = tf.reduce_mean(tf.math.squared_difference(x, mean), -1, keepdims=True)
    d = [x.shape[-1]]
    return (x - mean) * tf.math.rsqrt(var + tf.cast(.01, x.dtype)) * g.operand(d, x.dtype) + g.operand(d, x.dtype)


@op('f')
def InstanceNorm(g, x):
    x = image(g, x, 4)
    mean, var = tf.nn.moments(x, [1, 2], keepdims=True)
    return (x - mean) / tf.sqrt(var + tf.cast(.01, x.dtype))


@op('f')
def Attention(g, x):
    q = g.to_rank(x, g.int(3, 4))
    shape = q.shape.as_list()
    n = g.size()
    k, v = g.fresh(shape[:-2] + [n, shape[-1]], x.dtype), g.fresh(shape[:-2] + [n, g.size()], x.dtype)
    return tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True) * tf.cast(.25, x.dtype)), v)


@op('f')
def LRN(g, x):
    return raw.LRN(input=image(g, x, 4), depth_radius=g.int(1, 3), bias=1.5, alpha=.1, beta=.5)


@op('fciu')
def BiasAdd(g, x):
    x = g.to_rank(x, max(2, x.shape.rank))
    return raw.BiasAdd(value=x, bias=g.operand([x.shape[-1]], x.dtype))


@op('fciub')
def Transpose(g, x):
    return tf.transpose(x, g.rng.permutation(x.shape.rank).astype(np.int32) if x.shape.rank else None,
                        conjugate=x.dtype.is_complex and g.coin())


@op('fciub')
def Reverse(g, x):
    return tf.reverse(x, axes_of(g, x))


@op('fciub')
def Concat(g, x):
    a = g.axis(x)
    parts = [x]
    for _ in range(g.int(1, 3)):
        shape = x.shape.as_list()
        shape[a] = g.small()
        parts.insert(g.int(0, len(parts)), g.fresh(shape, x.dtype))
    return tf.concat(parts, a)


@op('fciub')
def Pack(g, x):
    return tf.stack([x, g.like(x, broadcast=False), x][:g.int(1, 3)], axis=g.int(0, x.shape.rank))


@op('fciub')
def Unpack(g, x):
    return g.pick(tf.unstack(x, axis=g.axis(x)))


@op('fciub')
def StridedSlice(g, x):
    index = []
    for d in x.shape.as_list():
        step = g.pick([1, 1, 2, 3, -1, -2])
        lo, hi = sorted((g.int(0, d), g.int(0, d)))
        index.append(slice(lo, hi, step) if step > 0 else slice(None, None, step))
        if d and g.rng.random() < .15:
            index[-1] = g.int(0, d - 1)
    if g.rng.random() < .2:
        index.insert(g.int(0, len(index)), tf.newaxis)
    return x[tuple(index)] if index else x


@op('fciub')
def Pad(g, x):
    p = [[g.int(0, 2), g.int(0, 3)] for _ in range(x.shape.rank)]
    if x.dtype == tf.bool or g.coin():
        return raw.Pad(input=x, paddings=tf.reshape(tf.constant(p, tf.int32), [-1, 2]))
    if g.coin():
        return raw.PadV2(input=x, paddings=tf.reshape(tf.constant(p, tf.int32), [-1, 2]), constant_values=g.fresh([], x.dtype))
    return raw.MirrorPad(input=x, paddings=[[min(v, d - 1) for v in q] for q, d in zip(p, x.shape.as_list())], mode='REFLECT')


@op('fciub')
def Tile(g, x):
    return tf.tile(x, [g.int(1, 3) for _ in range(x.shape.rank)])


@op('fciub')
def BroadcastTo(g, x):
    return tf.broadcast_to(x, [g.small()] + x.shape.as_list())


@op('fciub')
def GatherV2(g, x):
    a = g.axis(x)
    d = x.shape[a]
    index = g.feed(g.rng.integers(0, max(d, 1), g.shape(2)).astype(g.pick([np.int32, np.int64])))
    return tf.gather(x, index, axis=a)


@op('fciub')
def GatherNd(g, x):
    n = g.int(1, max(1, x.shape.rank))
    lead = g.shape(2)
    index = np.stack([g.rng.integers(0, max(1, d), lead) for d in x.shape.as_list()[:n]], -1).astype(np.int32)
    return tf.gather_nd(x, g.feed(index))


@op('fciu')
def ScatterNd(g, x):
    n = g.small() + 1
    if x.shape.rank == 0:
        raise ValueError('a row at least')
    index = g.feed(g.rng.integers(0, n, [x.shape[0], 1]).astype(np.int32))
    return tf.scatter_nd(index, x, [n] + x.shape.as_list()[1:])


@op('fciu')
def TensorScatter(g, x):
    if x.shape.rank == 0:
        raise ValueError('a row at least')
    m = g.small()
    index = g.feed(g.rng.integers(0, x.shape[0], [m, 1]).astype(np.int32))
    f = g.pick([tf.tensor_scatter_nd_add, tf.tensor_scatter_nd_sub, tf.tensor_scatter_nd_max, tf.tensor_scatter_nd_min])
    return f(x, index, g.fresh([m] + x.shape.as_list()[1:], x.dtype))


@op('fciu')
def UnsortedSegment(g, x):
    if x.shape.rank == 0:
        raise ValueError('a row at least')
    n = g.small() + 1
    ids = g.feed(g.rng.integers(-1, n, [x.shape[0]]).astype(np.int32))
    f = g.pick([tf.math.unsorted_segment_sum, tf.math.unsorted_segment_prod, tf.math.unsorted_segment_max,
                tf.math.unsorted_segment_min])
    return f(x, ids, n)


@op('fciu')
def Segment(g, x):
    if x.shape.rank == 0 or not x.shape[0]:
        raise ValueError('a row at least')
    ids = g.feed(np.sort(g.rng.integers(0, 5, [x.shape[0]])).astype(np.int32))
    f = g.pick([tf.math.segment_sum, tf.math.segment_mean, tf.math.segment_prod, tf.math.segment_max, tf.math.segment_min])
    return f(x, ids)


def orderly(x):
    """Without NaN, which TensorFlow leaves wherever its algorithm finds it."""
    return tf.where(tf.math.is_nan(x), tf.zeros_like(x), x) if x.dtype.is_floating else x


@op('fiu')
def TopK(g, x):
    x = orderly(x)
    n = x.shape[-1]
    return g.pick(list(raw.TopKV2(input=x, k=tf.constant(g.int(0, n), tf.int32), sorted=True)))


@op('fiu')
def Sort(g, x):
    return g.pick([tf.sort, tf.argsort])(orderly(x), axis=-1, direction=g.pick(['ASCENDING', 'DESCENDING']), **{})


@op('fiu')
def SearchSorted(g, x):
    x = orderly(g.to_rank(x, 2))
    return tf.searchsorted(tf.sort(x), g.fresh([x.shape[0], g.small()], x.dtype), side=g.pick(['left', 'right']))


def transformable(x):
    """TensorFlow ends the process at a transform of no numbers."""
    if not all(x.shape):
        raise ValueError('a number at least')


@op('c')
def Fft(g, x):
    transformable(x)
    return g.pick([tf.signal.fft, tf.signal.ifft, tf.signal.fft2d, tf.signal.ifft2d, tf.signal.fft3d])(x)


@op('f')
def Rfft(g, x):
    transformable(x)
    if g.coin():
        return tf.signal.rfft(x)
    return tf.signal.rfft2d(x)


@op('c')
def Irfft(g, x):
    transformable(x)
    if x.shape[-1] < 2:
        raise ValueError('two numbers at least: one makes none')
    return tf.signal.irfft(x)


@op('fc')
def LinearAlgebra(g, x):
    n = g.pick([1, 2, 3, 4, 5, 7, 8, 16, 17])
    a = g.fresh([g.small(), n, n], x.dtype) + tf.cast(2 * n, x.dtype) * tf.eye(n, dtype=x.dtype)
    kind = g.int(0, 5)
    if kind == 0:
        return tf.linalg.cholesky(tf.matmul(a, a, adjoint_b=True))
    if kind == 1:
        return tf.linalg.inv(a, adjoint=g.coin())
    if kind == 2:
        return tf.linalg.solve(a, g.fresh([a.shape[0], n, g.small()], x.dtype), adjoint=g.coin())
    if kind == 3:
        return tf.linalg.triangular_solve(a, g.fresh([a.shape[0], n, g.small()], x.dtype), lower=g.coin(), adjoint=g.coin())
    if kind == 4:
        return tf.linalg.det(a)
    q, r = tf.linalg.qr(a, full_matrices=g.coin())
    return tf.matmul(q, r)


@op('fciub')
def MatrixParts(g, x):
    x = g.to_rank(x, g.int(2, 3))
    kind = g.int(0, 3)
    if kind == 0:
        return tf.linalg.band_part(x, g.int(-1, 3), g.int(-1, 3))
    if kind == 1:
        return tf.linalg.diag_part(x)
    if kind == 2:
        return tf.linalg.diag(x[0])
    return tf.linalg.set_diag(x, g.fresh(x.shape.as_list()[:-2] + [min(x.shape[-2], x.shape[-1])], x.dtype))


@op('fc')
def LinearOperators(g, x):
    """What found the first of these crashes."""
    n = g.pick([1, 2, 3, 4, 6])
    make = tf.linalg.LinearOperatorFullMatrix(g.fresh([n, n], x.dtype))
    lead = g.pick([[], [2], [2, 1]])
    kind = g.int(0, 4)
    if kind == 0:
        o = tf.linalg.LinearOperatorKronecker([make, tf.linalg.LinearOperatorFullMatrix(g.fresh([2, 2], x.dtype))])
    elif kind == 1:
        o = tf.linalg.LinearOperatorToeplitz(g.fresh(lead + [n], x.dtype), g.fresh(lead + [n], x.dtype))
    elif kind == 2:
        o = tf.linalg.LinearOperatorHouseholder(g.fresh(lead + [n], x.dtype))
    elif kind == 3:
        o = tf.linalg.LinearOperatorBlockDiag([make, tf.linalg.LinearOperatorFullMatrix(g.fresh([3, 3], x.dtype))])
    else:
        o = tf.linalg.LinearOperatorComposition([make, tf.linalg.LinearOperatorDiag(g.fresh(lead + [n], x.dtype))])
    if g.coin():
        return o.to_dense()
    d = int(o.range_dimension)
    return o.matmul(g.fresh(lead + [d, g.small()], x.dtype), adjoint=g.coin())


@op('fiu')
def Resize(g, x):
    x = image(g, x, 4)
    f = g.pick([raw.ResizeBilinear, raw.ResizeNearestNeighbor, raw.ResizeBicubic, raw.ResizeArea])
    half = {} if f is raw.ResizeArea else {'half_pixel_centers': g.coin()}
    return f(images=x, size=[g.small(), g.small()], **half)


@op('fciub')
def SpaceDepth(g, x):
    x = image(g, x, 4)
    n = g.int(2, 3)
    if g.coin():
        return tf.nn.space_to_depth(x, n)
    return tf.nn.depth_to_space(x, n)


@op('fciub')
def SpaceBatch(g, x):
    x = image(g, x, 4)
    n, h, w, c = x.shape.as_list()
    p = [[g.int(0, 1), 0], [0, 0]]
    p[0][1] = -(h + p[0][0]) % 2
    p[1][1] = -w % 2
    return tf.space_to_batch(x, [2, 2], p)


@op('fciub')
def OneHot(g, x):
    index = g.feed(g.rng.integers(-1, 6, g.shape(2)).astype(g.pick([np.int32, np.int64])))
    return tf.one_hot(index, g.small(), on_value=g.fresh([], x.dtype), off_value=g.fresh([], x.dtype), axis=-1, dtype=x.dtype)


@op('fiu')
def Range(g, x):
    return raw.Range(start=tf.cast(g.int(0, 5), x.dtype), limit=tf.cast(g.int(0, 40), x.dtype), delta=tf.cast(g.int(1, 3), x.dtype))


@op('f')
def Rows(g, x):
    """Normalised short rows with a broadcast operand and a second result."""
    y = x - tf.reduce_max(x, -1, keepdims=True)
    z = tf.exp(y) / tf.reduce_sum(tf.exp(y), -1, keepdims=True)
    return z * g.operand([x.shape[-1]], x.dtype)


@op('c')
def ComplexRows(g, x):
    y = x * tf.math.conj(x)
    return tf.reduce_sum(y, -1, keepdims=True) * g.like(x)


@op('iu')
def Bitcast(g, x):
    to = {1: [tf.int8, tf.uint8], 2: [tf.int16, tf.uint16, tf.float16, tf.bfloat16], 4: [tf.int32, tf.float32, tf.uint32],
          8: [tf.int64, tf.float64, tf.uint64]}
    return tf.bitcast(x, g.pick(to[g.pick([x.dtype.size, x.dtype.size, 1, 2, 4, 8])]))


@op('f')
def Gradient(g, x):
    """A small net's gradient, made by TensorFlow."""
    x = g.to_rank(x, 2)
    w, v = g.operand([x.shape[1], g.small()], x.dtype), None
    h = g.pick([tf.nn.relu, tf.tanh, tf.nn.sigmoid, tf.nn.elu, tf.nn.softplus])(tf.matmul(x, w))
    v = g.operand([h.shape[1], g.small()], x.dtype)
    y = tf.nn.log_softmax(tf.matmul(h, v))
    return g.pick(tf.gradients(tf.reduce_mean(y * y), [x, w, v]))


@op('fiu')
def Case(g, x):
    """A branch that is not taken divides by zero."""
    zero = g.feed(np.zeros([], x.dtype.as_numpy_dtype))
    return tf.cond(tf.equal(zero, tf.zeros_like(zero)), lambda: x + tf.ones_like(x), lambda: raw.FloorMod(x=x, y=zero))


@op('fiu')
def Loop(g, x):
    y = g.like(x, broadcast=False)
    return tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * tf.ones_like(a) + y), [tf.constant(0), x])[1]
