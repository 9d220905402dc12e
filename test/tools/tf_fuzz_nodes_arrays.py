"""Nodes of tf_fuzz_nodes.py that move elements of one tensor or some: shapes, slices, pads, blocks, sets."""
import numpy as np
import tensorflow as tf

from tf_fuzz_nodes import bounded, call, filled, INDEX, indices, ints, node, part_of, raw, rows_of, some, variable, with_resource


@node('Shape Size')
def shape_of(g, d, op):
    return call(op, input=g.free(some(g), d), out_type=g.pick(INDEX))


@node('ShapeN')
def shapes_of(g, d, op):
    return call(op, input=[g.free(some(g), d) for _ in range(g.int(1, 3))], out_type=g.pick(INDEX))


@node('Reshape')
def reshape(g, d, op):
    shape = some(g)
    to = list(g.rng.permutation(shape)) if shape else [1] * g.int(0, 3)
    if to and g.coin() and np.prod(shape):
        to[g.int(0, len(to) - 1)] = -1
    return call(op, tensor=g.free(shape, d), shape=ints(np.array(to, np.int64), g.pick(INDEX)))


@node('ExpandDims')
def expand(g, d, op):
    shape = some(g)
    return call(op, input=g.free(shape, d), axis=ints(g.int(-len(shape) - 1, len(shape)), g.pick(INDEX)))


@node('Squeeze')
def squeeze(g, d, op):
    shape = some(g)
    for _ in range(g.int(0, 2)):
        shape.insert(g.int(0, len(shape)), 1)
    ones = [i for i, n in enumerate(shape) if n == 1]
    return call(op, input=g.free(shape, d), axis=[i for i in ones if g.coin()] if g.coin() else [])


@node('Transpose ConjugateTranspose')
def transpose(g, d, op):
    shape = some(g, 1 if op.startswith('Conj') else 0, 5)  # TensorFlow ends the process at a conjugate of a scalar
    return call(op, x=g.free(shape, d), perm=ints(g.rng.permutation(len(shape)), g.pick(INDEX)))


@node('Fill')
def fill(g, d, op):
    return call(op, dims=ints(np.array(some(g), np.int64), g.pick(INDEX)), value=g.free([], d))


@node('BroadcastTo')
def broadcast(g, d, op):
    shape = some(g)
    return call(op, input=g.free(part_of(g, shape), d), shape=ints(np.array(shape, np.int64), g.pick(INDEX)))


@node('Tile')
def tile(g, d, op):
    shape = some(g)
    return call(op, input=g.free(shape, d), multiples=ints(np.array([g.int(0, 3) for _ in shape], np.int64), g.pick(INDEX)))


@node('TileGrad')
def tile_grad(g, d, op):
    shape = some(g, 1, 4, 1500)
    times = [g.int(1, 3) for _ in shape]
    return call(op, input=g.free([n * t for n, t in zip(shape, times)], d), multiples=ints(times))


@node('Pack')
def pack(g, d, op):
    shape = some(g)
    return call(op, values=[g.free(shape, d) for _ in range(g.int(1, 4))], axis=g.int(-len(shape) - 1, len(shape)))


@node('Unpack')
def unpack(g, d, op):
    shape = some(g, 1)
    axis = g.int(0, len(shape) - 1)
    shape[axis] = g.int(1, 6)
    return call(op, value=g.free(shape, d), num=shape[axis], axis=axis)


@node('ParallelConcat')
def parallel_concat(g, d, op):
    shape, n = some(g, 0, 3), g.int(1, 4)
    return call(op, values=[g.free([1] + shape, d) for _ in range(n)], shape=[n] + shape)


@node('Concat ConcatV2')
def concat(g, d, op):
    shape = some(g, 1)
    axis = g.int(0, len(shape) - 1)
    parts = [g.free(shape[:axis] + [g.pick([0, 1, 3, 8, 17])] + shape[axis + 1:], d) for _ in range(g.int(2, 4))]
    if op == 'Concat':
        return call(op, concat_dim=ints(axis), values=parts)
    return call(op, values=parts, axis=ints(axis - len(shape) if g.coin() else axis, g.pick(INDEX)))


@node('ConcatOffset')
def concat_offset(g, d, op):
    shape = some(g, 1)
    axis = g.int(0, len(shape) - 1)
    parts = [shape[:axis] + [g.size()] + shape[axis + 1:] for _ in range(g.int(2, 4))]
    return call(op, concat_dim=ints(axis), shape=[g.feed(np.array(p, d.as_numpy_dtype)) for p in parts])


@node('Split')
def split(g, d, op):
    shape, n = some(g, 1), g.int(1, 4)
    axis = g.int(0, len(shape) - 1)
    shape[axis] = n * g.int(0, 8)
    return call(op, axis=ints(axis), value=g.free(shape, d), num_split=n)


@node('SplitV')
def split_v(g, d, op):
    shape, sizes = some(g, 1), [g.int(0, 8) for _ in range(g.int(1, 4))]
    axis, t = g.int(0, len(shape) - 1), g.pick(INDEX)
    shape[axis] = sum(sizes)
    if g.coin():
        sizes[0] = -1
    return call(op, value=g.free(shape, d), size_splits=ints(np.array(sizes, np.int64), t), axis=ints(axis), num_split=len(sizes))


@node('Slice')
def slice_(g, d, op):
    shape, t = some(g), g.pick(INDEX)
    begin = [g.int(0, n) for n in shape]
    size = [-1 if g.rng.random() < .2 else g.int(0, n - b) for n, b in zip(shape, begin)]
    return call(op, input=g.free(shape, d), begin=ints(np.array(begin, np.int64), t), size=ints(np.array(size, np.int64), t))


def stride(g, shape, t, positive=False):
    """Attributes of a strided slice of a tensor of this shape, and the shape of what it takes."""
    begin, end, steps, out, masks = [], [], [], [], dict(begin_mask=0, end_mask=0, shrink_axis_mask=0)
    for i, n in enumerate(shape):
        lo, hi = sorted((g.int(0, n), g.int(0, n)))
        step = g.pick([1, 1, 2, 3] + ([] if positive else [-1, -2]))
        if n and g.rng.random() < .15:
            lo, hi, step = g.int(0, n - 1), 0, 1
            hi = lo + 1
            masks['shrink_axis_mask'] |= 1 << i
        else:
            if step < 0:
                lo, hi = hi - 1, lo - 1
                if hi < 0:
                    masks['end_mask'] |= 1 << i
                if lo < 0:
                    masks['begin_mask'] |= 1 << i
                    lo = 0
            elif g.rng.random() < .2:
                masks['end_mask'] |= 1 << i
            taken = slice(None if masks['begin_mask'] >> i & 1 else lo, None if masks['end_mask'] >> i & 1 else hi, step)
            out.append(len(range(*taken.indices(n))))
        begin.append(lo)
        end.append(hi)
        steps.append(step)
    return dict(begin=ints(np.array(begin, np.int64), t), end=ints(np.array(end, np.int64), t), strides=ints(np.array(steps, np.int64),
                                                                                                             t), **masks), out


@node('StridedSlice')
def strided_slice(g, d, op):
    shape = some(g, 1)
    attrs, _ = stride(g, shape, g.pick(INDEX))
    return call(op, input=g.free(shape, d), **attrs)


@node('StridedSliceGrad')
def strided_slice_grad(g, d, op):
    shape, t = some(g, 1), g.pick(INDEX)
    attrs, out = stride(g, shape, t)
    return call(op, shape=ints(np.array(shape, np.int64), t), dy=g.free(out, d), **attrs)


@node('TensorStridedSliceUpdate')
def strided_update(g, d, op):
    shape = some(g, 1)
    attrs, out = stride(g, shape, g.pick(INDEX))
    return call(op, input=g.free(shape, d), value=g.free(out, d), **attrs)


@node('StridedSliceAssign')
def strided_assign(g, d, op):
    shape = some(g, 1)
    attrs, out = stride(g, shape, g.pick(INDEX))
    return tf.identity(call(op, ref=variable(g, g.free(shape, d)), value=g.free(out, d), **attrs))


@node('ResourceStridedSliceAssign')
def resource_strided_assign(g, d, op):
    shape = some(g, 1)
    attrs, out = stride(g, shape, g.pick(INDEX))
    value = g.free(out, d)
    return with_resource(g, g.free(shape, d), lambda h: call(op, ref=h, value=value, **attrs))


@node('Pad PadV2')
def pad(g, d, op):
    shape = some(g)
    paddings = tf.reshape(ints(np.array([[g.int(0, 2), g.int(0, 3)] for _ in shape], np.int64), g.pick(INDEX)), [-1, 2])
    more = {'constant_values': g.free([], d)} if op == 'PadV2' else {}
    return call(op, input=g.free(shape, d), paddings=paddings, **more)


@node('MirrorPad MirrorPadGrad')
def mirror(g, d, op):
    shape, mode = [max(1, n) for n in some(g, 1, 4, 2000)], g.pick(['REFLECT', 'SYMMETRIC'])
    pads = [[g.int(0, min(3, n - (mode == 'REFLECT'))) for _ in range(2)] for n in shape]
    if op == 'MirrorPadGrad':
        shape = [n + a + b for n, (a, b) in zip(shape, pads)]
    return call(op, input=g.free(shape, d), paddings=ints(np.array(pads, np.int64), g.pick(INDEX)), mode=mode)


@node('Roll')
def roll(g, d, op):
    shape = some(g, 1)
    axes, t = [g.int(0, len(shape) - 1) for _ in range(g.int(1, 2))], g.pick(INDEX)
    return call(op, input=g.free(shape, d), shift=ints(np.array([g.int(-9, 9) for _ in axes], np.int64), t),
                axis=ints(np.array(axes, np.int64), g.pick(INDEX)))


@node('ReverseV2')
def reverse(g, d, op):
    shape = some(g)
    axes = np.array([i for i in range(len(shape)) if g.coin()], np.int64)
    return call(op, tensor=g.free(shape, d), axis=ints(axes, g.pick(INDEX)))


@node('ReverseSequence')
def reverse_sequence(g, d, op):
    shape = some(g, 2)
    a, b = g.rng.choice(len(shape), 2, replace=False).tolist()
    return call(op, input=g.free(shape, d), seq_lengths=indices(g, [shape[b]], shape[a] + 1), seq_dim=a, batch_dim=b)


@node('OneHot')
def one_hot(g, d, op):
    shape = some(g, 0, 3, 600)
    return call(op, indices=g.feed(g.rng.integers(-1, 6, shape).astype(g.pick([np.int32, np.int64, np.uint8]))), depth=ints(g.int(0, 8)),
                on_value=g.free([], d), off_value=g.free([], d), axis=g.int(-1, len(shape)))


@node('Range')
def range_(g, d, op):
    return call(op, start=bounded(g, [], d, 0, 9), limit=bounded(g, [], d, 9, 60), delta=bounded(g, [], d, 1, 3))


@node('LinSpace')
def linspace(g, d, op):
    return call(op, start=bounded(g, [], d, -5, 0), stop=bounded(g, [], d, 0, 9), num=ints(g.int(1, 40), g.pick(INDEX)))


@node('InvertPermutation')
def invert(g, d, op):
    return call(op, x=g.feed(g.rng.permutation(g.size()).astype(d.as_numpy_dtype)))


@node('BroadcastArgs BroadcastGradientArgs')
def broadcast_args(g, d, op):
    shape = some(g)
    return call(op, **{k: g.feed(np.array(part_of(g, shape), d.as_numpy_dtype)) for k in ('s0', 's1')})


@node('DataFormatDimMap')
def dim_map(g, d, op):
    return call(op, x=g.feed(g.rng.integers(-4, 4, some(g, 0, 2)).astype(d.as_numpy_dtype)), src_format=g.pick(['NHWC', 'NCHW']),
                dst_format=g.pick(['NHWC', 'NCHW', 'CHWN'][:2]))


@node('DataFormatVecPermute')
def vec_permute(g, d, op):
    return call(op, x=g.free(g.pick([[4], [4, 2]]), d), src_format=g.pick(['NHWC', 'NCHW']), dst_format=g.pick(['NHWC', 'NCHW']))


@node('DepthToSpace SpaceToDepth')
def depth_space(g, d, op):
    n, b = g.pick([0, 1, 2]), g.int(2, 3)
    h, w, c = g.int(1, 5), g.int(1, 5), g.pick([1, 2, 3, 8])
    shape = [n, h, w, c * b * b] if op == 'DepthToSpace' else [n, h * b, w * b, c]
    return call(op, input=g.free(shape, d), block_size=b)


@node('SpaceToBatch BatchToSpace')
def space_batch(g, d, op):
    n, b, c = g.int(1, 3), g.int(2, 3), g.pick([1, 2, 3, 8])
    pads, t = [[g.int(0, 2), g.int(0, 2)] for _ in range(2)], g.pick(INDEX)
    inner = [g.int(2, 5), g.int(2, 5)]
    if op == 'SpaceToBatch':
        sizes = [i * b - sum(p) for i, p in zip(inner, pads)]
        if min(sizes) < 0:
            raise ValueError('padding alone')
        return call(op, input=g.free([n, *sizes, c], d), paddings=ints(np.array(pads, np.int64), t), block_size=b)
    return call(op, input=g.free([n * b * b, *inner, c], d), crops=ints(np.array(pads, np.int64), t), block_size=b)


@node('SpaceToBatchND BatchToSpaceND')
def space_batch_nd(g, d, op):
    rank, n = g.int(1, 3), g.int(1, 2)
    block, pads = [g.int(1, 3) for _ in range(rank)], [[g.int(0, 1), g.int(0, 1)] for _ in range(rank)]
    inner, rest, t = [g.int(1, 5) for _ in range(rank)], some(g, 0, 2, 30), g.pick(INDEX)
    args = dict(block_shape=ints(np.array(block, np.int64), t))
    pads = ints(np.array(pads, np.int64), t), pads
    if op == 'BatchToSpaceND':
        return call(op, input=g.free([n * int(np.prod(block)), *inner, *rest], d), crops=pads[0], **args)
    sizes = [i * b - sum(p) for i, b, p in zip(inner, block, pads[1])]
    if min(sizes) < 0:
        raise ValueError('padding alone')
    return call(op, input=g.free([n, *sizes, *rest], d), paddings=pads[0], **args)


@node('Where')
def where(g, d, op):
    return call(op, condition=bounded(g, some(g, 1), d, 0, 1))


@node('ListDiff')
def list_diff(g, d, op):
    return call(op, x=bounded(g, [g.size()], d, 0, 20), y=bounded(g, [g.size()], d, 0, 20), out_idx=g.pick(INDEX))


@node('Unique UniqueWithCounts')
def unique(g, d, op):
    return call(op, x=bounded(g, [g.size()], d, -5, 9) if d.is_integer or d.is_bool else g.feed(
        g.rng.integers(-5, 9, [g.size()]).astype(d.as_numpy_dtype)), out_idx=g.pick(INDEX))


@node('UniqueV2 UniqueWithCountsV2')
def unique_v2(g, d, op):
    shape = filled(some(g, 1, 3, 300))
    x = g.feed(g.rng.integers(0, 2, shape).astype(d.as_numpy_dtype))
    axis = [] if len(shape) == 1 and g.coin() else [g.int(0, len(shape) - 1)]
    return call(op, x=x, axis=ints(np.array(axis, np.int64), g.pick(INDEX)), out_idx=g.pick(INDEX))


@node('UnravelIndex')
def unravel(g, d, op):
    sizes = [g.int(1, 5) for _ in range(g.int(1, 4))]
    return call(op, indices=indices(g, g.pick([[], [g.size()]]), int(np.prod(sizes)), d), dims=ints(np.array(sizes, np.int64), d))


@node('InplaceAdd InplaceSub InplaceUpdate')
def inplace(g, d, op):
    shape = rows_of(g)
    at = g.rng.choice(shape[0], g.int(1, min(4, shape[0])), replace=False).astype(np.int32)
    return call(op, x=raw.DeepCopy(x=g.free(shape, d)), i=g.feed(at), v=g.free([len(at)] + shape[1:], d))
