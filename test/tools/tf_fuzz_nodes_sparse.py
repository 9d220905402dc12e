"""Nodes of tf_fuzz_nodes.py for sparse and ragged tensors, and counts."""
import numpy as np
import tensorflow as tf

from tf_fuzz_nodes import bounded, call, dims, INDEX, indices, ints, node, REAL, some


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


# --- counts

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
