"""Nodes of tf_fuzz_nodes.py that move elements: arrays, gathers, scatters, segments, sparse and ragged tensors."""
import numpy as np
import tensorflow as tf

from tf_fuzz_nodes import (bounded, call, dims, filled, INDEX, indices, ints, node, part_of, raw, reading, REAL, rows_of, some, tensors,
                           variable, with_resource)


# --- arrays

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


# --- gathers, scatters, segments

@node('Gather')
def gather(g, d, op):
    shape = rows_of(g)
    return call(op, params=g.free(shape, d), indices=indices(g, some(g, 0, 2, 100), shape[0]))


@node('GatherV2')
def gather_v2(g, d, op):
    shape = some(g, 1)
    axis = g.int(0, len(shape) - 1)
    shape[axis] = max(1, shape[axis])
    batch = g.int(0, axis) if g.coin() else 0
    return call(op, params=g.free(shape, d), indices=indices(g, shape[:batch] + some(g, 0, 2, 60), shape[axis]),
                axis=ints(axis - len(shape) if g.coin() else axis, g.pick(INDEX)), batch_dims=batch)


def tuples(g, shape, lead, depth, t=None):
    """Indices of `depth` dimensions each."""
    a = np.zeros(lead + [depth], np.int64)
    for i in range(depth):
        a[..., i] = g.rng.integers(0, max(1, shape[i]), lead)
    return g.feed(a.astype((t or g.pick(INDEX)).as_numpy_dtype))


def tuple_shapes(g):
    """The sizes of what is scattered to, and a depth of indices with something to point at."""
    shape = rows_of(g)
    depth = g.int(1, len(shape))
    for i in range(depth):
        shape[i] = max(1, shape[i])
    return shape, depth, g.pick([[g.int(1, 8)], [2, 3], [0], []])


@node('GatherNd')
def gather_nd(g, d, op):
    shape, depth, lead = tuple_shapes(g)
    return call(op, params=g.free(shape, d), indices=tuples(g, shape, lead, depth))


@node('ScatterNd')
def scatter_nd(g, d, op):
    shape, depth, lead = tuple_shapes(g)
    t = g.pick(INDEX)
    return call(op, indices=tuples(g, shape, lead, depth, t), updates=g.free(lead + shape[depth:], d), shape=ints(np.array(shape,
                                                                                                                           np.int64), t))


@node('TensorScatterAdd TensorScatterSub TensorScatterMax TensorScatterMin TensorScatterUpdate ScatterNdNonAliasingAdd')
def tensor_scatter(g, d, op):
    shape, depth, lead = tuple_shapes(g)
    name = 'input' if op.startswith('ScatterNd') else 'tensor'
    return call(op, **{name: g.free(shape, d)}, indices=tuples(g, shape, lead, depth), updates=g.free(lead + shape[depth:], d))


@node('ScatterNdAdd ScatterNdSub ScatterNdMax ScatterNdMin ScatterNdUpdate')
def ref_scatter_nd(g, d, op):
    shape, depth, lead = tuple_shapes(g)
    v = variable(g, g.free(shape, d))
    return tf.identity(call(op, ref=v, indices=tuples(g, shape, lead, depth), updates=g.free(lead + shape[depth:], d)))


@node('ResourceScatterNdAdd ResourceScatterNdSub ResourceScatterNdMax ResourceScatterNdMin ResourceScatterNdUpdate')
def resource_scatter_nd(g, d, op):
    shape, depth, lead = tuple_shapes(g)
    at, updates = tuples(g, shape, lead, depth), g.free(lead + shape[depth:], d)
    return with_resource(g, g.free(shape, d), lambda h: call(op, ref=h, indices=at, updates=updates))


def scattered(g, d, op):
    shape, lead = rows_of(g), g.pick([[], [g.int(1, 8)], [2, 3], [0]])
    updates = [] if g.rng.random() < .15 else lead + shape[1:]
    values = bounded(g, updates, d, 1, 5) if op.endswith('Div') else g.free(updates, d)
    return shape, indices(g, lead, shape[0]), values


@node('ScatterAdd ScatterSub ScatterMul ScatterDiv ScatterMax ScatterMin ScatterUpdate')
def ref_scatter(g, d, op):
    shape, at, updates = scattered(g, d, op)
    return tf.identity(call(op, ref=variable(g, g.free(shape, d)), indices=at, updates=updates))


@node(' '.join('ResourceScatter' + kind for kind in ('Add', 'Sub', 'Mul', 'Div', 'Max', 'Min', 'Update')))
def resource_scatter(g, d, op):
    shape, at, updates = scattered(g, d, op)
    return with_resource(g, g.free(shape, d), lambda h: call(op, resource=h, indices=at, updates=updates))


@node('ResourceGather ResourceGatherNd')
def resource_gather(g, d, op):
    shape, depth, lead = tuple_shapes(g)
    if op == 'ResourceGather':
        at, more = indices(g, lead, shape[0]), {}
    else:
        at, more = tuples(g, shape, lead, depth), {}
    return reading(g, g.free(shape, d), lambda h: call(op, resource=h, indices=at, dtype=d, **more))


@node('SegmentSum SegmentMean SegmentProd SegmentMax SegmentMin')
def segment(g, d, op):
    shape = rows_of(g)
    ids = np.sort(g.rng.integers(0, 5, shape[:1]))
    return call(op, data=g.free(shape, d), segment_ids=g.feed(ids.astype(g.pick([np.int32, np.int64]))))


@node('UnsortedSegmentSum UnsortedSegmentProd UnsortedSegmentMax UnsortedSegmentMin')
def unsorted_segment(g, d, op):
    shape, n = rows_of(g), g.int(1, 9)
    ids = np.asarray(g.rng.integers(-1, n, shape[:g.int(0, len(shape))])).astype(g.pick([np.int32, np.int64]))
    return call(op, data=g.free(shape, d), segment_ids=g.feed(ids), num_segments=ints(n, g.pick(INDEX)))


@node(' '.join('SparseSegment' + k + n for k in ('Sum', 'Mean', 'SqrtN') for n in ('', 'WithNumSegments')))
def sparse_segment(g, d, op):
    shape, n = rows_of(g), g.pick([0, 1, 3, 8, 17])
    ids = np.sort(g.rng.integers(0, 5, [n])).astype(g.pick([np.int32, np.int64]))
    more = {'num_segments': ints(5 + g.int(0, 2), g.pick(INDEX))} if op.endswith('NumSegments') else {}
    return call(op, data=g.free(shape, d), indices=indices(g, [n], shape[0]), segment_ids=g.feed(ids), **more)


@node(' '.join('SparseSegment' + k + n for k in ('Sum', 'Mean', 'SqrtN') for n in ('Grad', 'GradV2')))
def sparse_segment_grad(g, d, op):
    shape, n, rows_there = rows_of(g), g.pick([1, 3, 8, 17]), g.int(1, 9)
    ids = np.sort(g.rng.integers(0, shape[0], [n])).astype(g.pick([np.int32, np.int64]))
    name = 'dense_output_dim0' if op.endswith('V2') else 'output_dim0'
    return call(op, grad=g.free(shape, d), indices=indices(g, [n], rows_there), segment_ids=g.feed(ids), **{name: ints(rows_there)})


@node('DynamicPartition')
def partition(g, d, op):
    shape, n = some(g, 1, 3), g.int(1, 4)
    return call(op, data=g.free(shape, d), partitions=indices(g, shape[:g.int(1, len(shape))], n, tf.int32), num_partitions=n)


@node('DynamicStitch ParallelDynamicStitch')
def stitch(g, d, op):
    count, shape = [g.int(0, 5) for _ in range(g.int(1, 3))], some(g, 0, 2, 60)
    order, at, data = g.rng.permutation(sum(count)).astype(np.int32), [], []
    for n in count:
        at.append(g.feed(order[:n]))
        order = order[n:]
        data.append(g.free([n] + shape, d))
    return call(op, indices=at, data=data)


@node('Bincount')
def bincount(g, d, op):
    n = g.size()
    return call(op, arr=indices(g, [n], 12, tf.int32), size=ints(g.int(0, 12)), weights=g.free([n] if g.coin() else [0], d))


def counted(g, d, shape):
    t = g.pick(INDEX)
    binary = g.coin()
    return t, binary, g.free([0] if binary or g.coin() else shape, d)


@node('DenseBincount')
def dense_bincount(g, d, op):
    shape = dims(g, g.int(1, 2), 600)
    t, binary, weights = counted(g, d, shape)
    return call(op, input=indices(g, shape, 12, t), size=ints(g.int(0, 12), t), weights=weights, binary_output=binary)


@node('RaggedBincount')
def ragged_bincount(g, d, op):
    splits, n = ragged(g)
    t, binary, weights = counted(g, d, [n])
    return call(op, splits=splits, values=indices(g, [n], 12, t), size=ints(g.int(1, 12), t), weights=weights, binary_output=binary)


@node('SparseBincount')
def sparse_bincount(g, d, op):
    shape = [g.int(1, 9) for _ in range(g.int(1, 2))]
    at = coordinates(g, shape)
    t, binary, weights = counted(g, d, [len(at)])
    return call(op, indices=g.feed(at), values=indices(g, [len(at)], 12, t), dense_shape=ints(np.array(shape, np.int64), tf.int64),
                size=ints(g.int(1, 12), t), weights=weights, binary_output=binary)


@node('DenseCountSparseOutput')
def dense_count(g, d, op):
    shape = dims(g, g.int(1, 2), 300)
    weights = g.free([0] if g.coin() else shape, g.pick([tf.float32, tf.float64, tf.int32, tf.int64]))
    return call(op, values=indices(g, shape, 12, d), weights=weights, binary_output=False, minlength=g.pick([-1, 3]),
                maxlength=g.pick([-1, 9]))


# --- sparse tensors

def coordinates(g, shape, share=.4):
    """Sorted coordinates of some elements."""
    there = g.rng.random(shape) < share
    return np.argwhere(there).astype(np.int64).reshape(-1, len(shape))


def sparse(g, d, shape=None, values=None):
    """Coordinates, values and sizes of a sparse tensor."""
    shape = shape if shape is not None else [g.int(1, 9) for _ in range(g.int(1, 3))]
    at = coordinates(g, shape)
    return g.feed(at), (values or g.free)([len(at)], d), ints(np.array(shape, np.int64), tf.int64), shape, at


@node('SparseReorder')
def sparse_reorder(g, d, op):
    shape = [g.int(1, 9) for _ in range(g.int(1, 3))]
    at = g.rng.permutation(coordinates(g, shape))
    return call(op, input_indices=g.feed(at), input_values=g.free([len(at)], d), input_shape=ints(np.array(shape, np.int64), tf.int64))


@node('SparseReduceSum SparseReduceMax')
def sparse_reduce(g, d, op):
    at, v, s, shape, _ = sparse(g, d)
    axes = [i for i in range(len(shape)) if g.coin()]
    return call(op, input_indices=at, input_values=v, input_shape=s, reduction_axes=ints(np.array(axes, np.int64)), keep_dims=g.coin())


@node('SparseDenseCwiseAdd SparseDenseCwiseMul SparseDenseCwiseDiv')
def sparse_dense(g, d, op):
    at, v, s, shape, _ = sparse(g, d)
    dense = [1 if g.rng.random() < .3 else n for n in shape]
    return call(op, sp_indices=at, sp_values=v, sp_shape=s, dense=bounded(g, dense, d, 1, 5) if op.endswith('Div') else g.free(dense, d))


@node('SparseSoftmax')
def sparse_softmax(g, d, op):
    at, v, s, _, _ = sparse(g, d, [g.int(1, 9) for _ in range(g.int(2, 3))], lambda n, t: bounded(g, n, t, -3, 3))
    return call(op, sp_indices=at, sp_values=v, sp_shape=s)


@node('SparseAdd')
def sparse_add(g, d, op):
    a, av, s, shape, _ = sparse(g, d)
    b, bv, _, _, _ = sparse(g, d, shape)
    return call(op, a_indices=a, a_values=av, a_shape=s, b_indices=b, b_values=bv, b_shape=s, thresh=tf.cast(g.pick([0, 0, 1]),
                                                                                                             REAL.get(d, d)))


@node('SparseAddGrad')
def sparse_add_grad(g, d, op):
    shape = [g.int(1, 9) for _ in range(g.int(1, 3))]
    a, b = coordinates(g, shape), coordinates(g, shape)
    both = np.array(sorted({tuple(x) for x in np.concatenate([a, b])}), np.int64).reshape(-1, len(shape))
    return call(op, backprop_val_grad=g.free([len(both)], d), a_indices=g.feed(a), b_indices=g.feed(b), sum_indices=g.feed(both))


@node('SparseSparseMaximum SparseSparseMinimum')
def sparse_sparse(g, d, op):
    a, av, s, shape, _ = sparse(g, d)
    b, bv, _, _, _ = sparse(g, d, shape)
    return call(op, a_indices=a, a_values=av, a_shape=s, b_indices=b, b_values=bv, b_shape=s)


@node('SparseConcat')
def sparse_concat(g, d, op):
    shape = [g.int(1, 7) for _ in range(g.int(1, 3))]
    axis = g.int(0, len(shape) - 1)
    parts = [sparse(g, d, shape[:axis] + [g.int(1, 7)] + shape[axis + 1:]) for _ in range(g.int(2, 3))]
    return call(op, indices=[p[0] for p in parts], values=[p[1] for p in parts], shapes=[p[2] for p in parts], concat_dim=axis)


@node('SparseSplit')
def sparse_split(g, d, op):
    at, v, s, shape, _ = sparse(g, d)
    axis = g.int(0, len(shape) - 1)
    return call(op, split_dim=tf.constant(axis, tf.int64), indices=at, values=v, shape=s, num_split=g.int(1, min(3, shape[axis])))


@node('SparseSlice')
def sparse_slice(g, d, op):
    at, v, s, shape, _ = sparse(g, d)
    start = [g.int(0, n - 1) for n in shape]
    return call(op, indices=at, values=v, shape=s, start=ints(np.array(start, np.int64), tf.int64),
                size=ints(np.array([g.int(0, n) for n in shape], np.int64), tf.int64))


@node('SparseSliceGrad')
def sparse_slice_grad(g, d, op):
    shape = [g.int(1, 9) for _ in range(g.int(1, 3))]
    at, start = coordinates(g, shape), np.array([g.int(0, n - 1) for n in shape], np.int64)
    kept = at[np.all(at >= start, axis=1)] - start
    return call(op, backprop_val_grad=g.free([len(kept)], d), input_indices=g.feed(at), input_start=g.feed(start),
                output_indices=g.feed(kept))


@node('SparseFillEmptyRows')
def fill_empty(g, d, op):
    at, v, s, _, _ = sparse(g, d, [g.int(1, 9), g.int(1, 5)])
    return call(op, indices=at, values=v, dense_shape=s, default_value=g.free([], d))


@node('SparseFillEmptyRowsGrad RaggedFillEmptyRowsGrad')
def fill_empty_grad(g, d, op):
    n, more = g.int(0, 9), g.int(0, 5)
    at = np.sort(g.rng.choice(n + more, n, replace=False)).astype(np.int64)
    return call(op, reverse_index_map=g.feed(at), grad_values=g.free([n + more], d))


@node('SparseTensorDenseAdd')
def sparse_tensor_add(g, d, op):
    shape, t = [g.int(1, 9) for _ in range(g.int(1, 4))], g.pick(INDEX)
    at = coordinates(g, shape).astype(t.as_numpy_dtype)
    return call(op, a_indices=g.feed(at), a_values=g.free([len(at)], d), a_shape=ints(np.array(shape, np.int64), t), b=g.free(shape, d))


@node('SparseTensorDenseMatMul')
def sparse_matmul(g, d, op):
    m, k, n, ta, tb = g.int(1, 9), g.int(1, 9), g.pick([1, 3, 8, 17]), g.coin(), g.coin()
    at, v, s, _, _ = sparse(g, d, [k, m] if ta else [m, k])
    return call(op, a_indices=at, a_values=v, a_shape=s, b=g.free([n, k] if tb else [k, n], d), adjoint_a=ta, adjoint_b=tb)


@node('SparseToDense')
def sparse_to_dense(g, d, op):
    shape, t = [g.int(1, 9) for _ in range(g.int(1, 3))], g.pick(INDEX)
    at = coordinates(g, shape).astype(t.as_numpy_dtype)
    values = [] if g.rng.random() < .2 else [len(at)]
    return call(op, sparse_indices=g.feed(at), output_shape=ints(np.array(shape, np.int64), t), sparse_values=g.free(values, d),
                default_value=g.free([], d))


# --- ragged tensors

def ragged(g, t=tf.int64, rows_there=None):
    """Row splits, and how many values they hold."""
    length = [g.pick([0, 1, 2, 3, 5, 8]) for _ in range(rows_there or g.int(1, 6))]
    return g.feed(np.concatenate([[0], np.cumsum(length)]).astype(t.as_numpy_dtype)), int(sum(length))


@node('RaggedGather')
def ragged_gather(g, d, op):
    t, n = g.pick(INDEX), g.int(1, 6)
    splits, count = ragged(g, t, n)
    return call(op, params_nested_splits=[splits], params_dense_values=g.free([count] + some(g, 0, 1, 9), d),
                indices=indices(g, [g.int(0, 5)], n), OUTPUT_RAGGED_RANK=1)


@node('RaggedRange')
def ragged_range(g, d, op):
    n = [g.int(0, 6)]
    return call(op, starts=bounded(g, n, d, 0, 5), limits=bounded(g, n, d, 0, 20), deltas=bounded(g, n, d, 1, 3), Tsplits=g.pick(INDEX))


@node('RaggedTensorToSparse')
def ragged_sparse(g, d, op):
    splits, count = ragged(g, g.pick(INDEX))
    return call(op, rt_nested_splits=[splits], rt_dense_values=g.free([count] + some(g, 0, 1, 9), d))


@node('RaggedTensorToTensor')
def ragged_tensor(g, d, op):
    t, n = g.pick(INDEX), g.int(1, 6)
    splits, count = ragged(g, t, n)
    shape, inner = g.pick([[-1, -1], [n, 4], [n + 1, -1], [-1, 2]]), g.pick([[], [], [3]])
    shape = ints(np.array(shape + inner, np.int64), t)
    values, default = g.free([count] + inner, d), g.free([], d)
    if g.coin():
        return call(op, shape=shape, values=values, default_value=default, row_partition_tensors=[splits],
                    row_partition_types=['ROW_SPLITS'])
    ids = np.sort(g.rng.integers(0, n, [count])).astype(t.as_numpy_dtype)
    return call(op, shape=shape, values=values, default_value=default, row_partition_tensors=[ints(n, t), g.feed(ids)],
                row_partition_types=['FIRST_DIM_SIZE', 'VALUE_ROWIDS'])


@node('RaggedFillEmptyRows')
def ragged_fill(g, d, op):
    n, count = g.int(1, 6), g.int(0, 9)
    ids = np.sort(g.rng.integers(0, n, [count])).astype(np.int64)
    return call(op, value_rowids=g.feed(ids), values=g.free([count], d), nrows=tf.constant(n, tf.int64), default_value=g.free([], d))
