"""Nodes of tf_fuzz_nodes.py that index: gathers, scatters, segments, partitions."""
import numpy as np
import tensorflow as tf

from tf_fuzz_nodes import bounded, call, INDEX, indices, ints, node, reading, rows_of, some, variable, with_resource


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
