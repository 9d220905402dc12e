"""Sizes that only the run knows: slices, masks, branches, segments, sparse and ragged tensors."""
import numpy as np
import tensorflow as tf
from cases import case, ints, rnd

f32, i32, i64 = tf.float32, tf.int32, tf.int64

@case([([None], f32)], [[rnd(8)], [rnd(3)], [rnd(1)]])
def cond_slices(x):
    return tf.cond(tf.size(x) > 4, lambda: x[:3], lambda: x[1:])

@case([([None, 4], f32), ([], i32)], [[rnd(8, 4), 3], [rnd(3, 4), 9], [rnd(3, 4), 0], [rnd(3,4), -1]])
def cond_slices_runtime(x, n):
    return tf.cond(n > 2, lambda: x[:n], lambda: x[n:])

@case([([None, 4], f32), ([], i32)], [[rnd(8, 4), 3], [rnd(3, 4), 1], [rnd(3, 4), 0]])
def case_slices(x, n):
    return tf.switch_case(n, [lambda: x[:1], lambda: x, lambda: tf.concat([x, x], 0), lambda: tf.zeros([0, 4])])

@case([([None, 4], f32), ([], i32)], [[rnd(8, 4), 3], [rnd(3, 4), 1], [rnd(3, 4), 0]])
def case_slices_then_use(x, n):
    y = tf.switch_case(n, [lambda: x[:1], lambda: x, lambda: tf.concat([x, x], 0), lambda: tf.zeros([0, 4])])
    return tf.reduce_sum(y * 2.0, 1), tf.shape(y), tf.matmul(y, tf.ones([4, 3]))

@case([([None, 4], f32)], [[rnd(8, 4)], [-np.abs(rnd(3, 4))], [rnd(0, 4)]])
def mask_rows(x):
    return tf.boolean_mask(x, x[:, 0] > 0.0)

@case([([None, 4], f32)], [[rnd(8, 4)], [-np.abs(rnd(3, 4))], [rnd(0, 4)]])
def mask_rows_matmul(x):
    y = tf.boolean_mask(x, x[:, 0] > 0.0)
    return tf.matmul(y, tf.ones([4, 2])), tf.reduce_sum(y, 0), tf.reduce_max(y, 1)

@case([([4, 4], f32)], [[rnd(4, 4)], [-np.abs(rnd(4, 4))]])
def mask_rows_static(x):
    return tf.boolean_mask(x, x[:, 0] > 0.0), tf.where(x > 1.0), tf.gather(x, tf.where(x[:, 0] > 1.0)[:, 0])

@case([([None, None], f32)], [[rnd(8, 4)], [-np.abs(rnd(3, 4))], [rnd(0, 4)], [rnd(3, 0)]])
def mask_any(x):
    m = x > 0.5
    return tf.boolean_mask(x, m), tf.where(m), tf.reduce_sum(tf.cast(m, i32))

@case([([None], i32)], [[ints(8)], [[]], [[4]]])
def unique_all(x):
    y, i = tf.unique(x)
    a, b, c = tf.unique_with_counts(x)
    return y, i, a, b, c, tf.size(y), tf.sort(y), tf.one_hot(y, 5), tf.reduce_max(tf.concat([y, [0]], 0))

@case([([None], i32)], [[ints(8)], [[]], [[4]]])
def unique_segments(x):
    y, i = tf.unique(x)
    n = tf.size(y)
    v = tf.cast(x, f32)
    return tf.math.unsorted_segment_sum(v, i, n), tf.math.unsorted_segment_prod(v, i, n), tf.math.unsorted_segment_max(v, i, n)

@case([([None, 3], f32), ([None], i32)], [[rnd(5, 3), [0, 0, 1, 3, 3]], [rnd(2, 3), [0, 2]], [rnd(1, 3), [0]]])
def segments(x, s):
    return tf.math.segment_sum(x, s), tf.math.segment_prod(x, s), tf.math.segment_max(x, s), tf.math.segment_min(x, s), tf.math.segment_mean(x, s)

@case([([None, 3], f32), ([None], i32), ([], i32)], [[rnd(5, 3), [0, 0, 1, 3, 3], 5], [rnd(2, 3), [0, -1], 0+1], [rnd(0, 3), [], 2]])
def unsorted_segments(x, s, n):
    return tf.math.unsorted_segment_sum(x, s, n), tf.math.unsorted_segment_prod(x, s, n), tf.math.unsorted_segment_mean(x, s, n), tf.math.unsorted_segment_sqrt_n(x, s, n)

@case([([None, 3], f32), ([None], i32), ([None], i32)], [[rnd(5, 3), [0, 4, 1], [0, 0, 1]], [rnd(2, 3), [1], [0]], [rnd(2, 3), [1, 1], [0, 2]]])
def sparse_segments(x, i, s):
    return tf.sparse.segment_sum(x, i, s), tf.sparse.segment_mean(x, i, s), tf.sparse.segment_sqrt_n(x, i, s), tf.sparse.segment_sum(x, i, s, num_segments=4)

@case([([None], f32), ([], i32), ([], i32), ([], i32)], [[rnd(8), 1, 6, 2], [rnd(8), -3, 20, 1], [rnd(8), 6, 1, -2], [rnd(8), 5, 2, 1], [rnd(8), -1, -100, -3]])
def strided_all(x, b, e, s):
    return x[b:e:s], x[b:], x[:e], x[::s], tf.size(x[b:e])

@case([([None, None], f32), ([], i32), ([], i32)], [[rnd(8, 5), 1, 3], [rnd(8, 5), -3, 20], [rnd(2, 1), 0, 1], [rnd(3, 2), 5, 9]])
def strided_2d(x, b, e):
    return x[b:e, ::-1], x[::-1, b:e], x[..., b:e], x[b:e, tf.newaxis], x[::-2, :-1]

@case([([None, None], f32), ([], i32)], [[rnd(8, 5), 2], [rnd(3, 5), 1]])
def strided_shrink(x, b):
    return x[b], x[:, b], x[b, b:], x[-1], x[:, -1], x[b:b + 1, b]

@case([([None, 4], f32), ([2], i32), ([2], i32)], [[rnd(8, 4), [1, 0], [3, 4]], [rnd(8, 4), [7, 2], [1, 2]], [rnd(8, 4), [2, 1], [-1, -1]], [rnd(8, 4), [8, 4], [0, 0]]])
def slice_runtime(x, b, s):
    return tf.slice(x, b, s)

@case([([None, 4], f32), ([], i32)], [[rnd(8, 4), 3], [rnd(3, 4), 0], [rnd(3, 4), 3]])
def split_runtime(x, n):
    a, b = tf.split(x, [n, tf.shape(x)[0] - n], 0)
    return a, b, tf.reduce_sum(a, 0), tf.concat([b, a], 0)

@case([([None, 4], f32), ([], i32)], [[rnd(8, 4), 3], [rnd(3, 4), 0], [rnd(3, 4), 2]])
def repeat_tile(x, n):
    return tf.tile(x, [n, 1]), tf.tile(x, tf.stack([1, n])), tf.repeat(x, n, axis=0), tf.repeat(x, n, axis=1)

@case([([None], f32), ([None], i32)], [[rnd(3), [1, 0, 2]], [rnd(1), [0]], [rnd(2), [3, 1]]])
def repeat_vec(x, n):
    return tf.repeat(x, n), tf.size(tf.repeat(x, n))

@case([([], i32), ([], i32), ([], i32)], [[0, 5, 1], [5, 0, -2], [3, 3, 1]])
def ranges(a, b, c):
    r = tf.range(a, b, c)
    return r, tf.reduce_sum(r), tf.cast(r, f32) * 2.0, tf.size(r)

@case([([], f32), ([], f32), ([], f32)], [[0, 5, 1.5], [5, 0, -0.7], [3, 3, 1]])
def ranges_f(a, b, c):
    return tf.range(a, b, c)

@case([([2], i32), ([], f32)], [[[2, 3], 1.5], [[0, 3], 1.5], [[2, 0], 1.5]])
def fills(s, v):
    return tf.fill(s, v), tf.zeros(s), tf.reduce_sum(tf.ones(s)), tf.eye(s[0], s[1]), tf.broadcast_to(v, s)

@case([([None, None], f32), ([2], i32)], [[rnd(4, 6), [3, 8]], [rnd(4, 6), [24, 1]], [rnd(4, 6), [-1, 2]], [rnd(0, 6), [0, 4]], [rnd(0, 6), [6, 0]]])
def reshape_runtime(x, s):
    return tf.reshape(x, s)

@case([([None, None], f32)], [[rnd(4, 6)], [rnd(0, 6)], [rnd(4, 0)]])
def reshape_mix(x):
    n = tf.shape(x)[0]
    return tf.reshape(x, [-1]), tf.reshape(x, [tf.shape(x)[1], n]), tf.expand_dims(x, 0), tf.transpose(x)

@case([([None, None], f32), ([2, 2], i32)], [[rnd(4, 6), [[1, 2], [0, 1]]], [rnd(1, 2), [[0, 0], [0, 3]]]])
def pad_runtime(x, p):
    return tf.pad(x, p), tf.pad(x, p, constant_values=2.0)

@case([([None, 6], f32), ([2, 2], i32)], [[rnd(4, 6), [[1, 2], [0, 1]]], [rnd(4, 6), [[0, 0], [2, 3]]]])
def mirror_pad_runtime(x, p):
    return tf.pad(x, p, mode='REFLECT'), tf.pad(x, p, mode='SYMMETRIC')

@case([([None, 4], f32), ([], i32)], [[rnd(8, 4), 3], [rnd(3, 4), 1], [rnd(3, 4), 0]])
def topk_runtime(x, k):
    return tf.math.top_k(x, k)

@case([([None], f32), ([], i32)], [[rnd(8), 3], [rnd(3), 1], [rnd(3), 3]])
def topk_vec(x, k):
    v, i = tf.math.top_k(x, k)
    return v, i, tf.gather(x, i), tf.one_hot(i, tf.size(x))

@case([([None], i32), ([], i32)], [[[0, 2, 5], 4], [[1], 1], [[], 3]])
def one_hot_runtime(x, n):
    return tf.one_hot(x, n), tf.sequence_mask(x, n), tf.sequence_mask(x)

@case([([None], i32)], [[[0, 2, 5]], [[1]], [[1, 1]]])
def bincounts(x):
    return tf.math.bincount(x), tf.math.bincount(x, minlength=4, maxlength=5), tf.math.bincount(x, weights=tf.cast(x, f32))

@case([([None], i32), ([None], i32)], [[[1, 3, 5], [3]], [[1], [1]], [[2, 2], []]])
def set_diffs(x, y):
    a, b = tf.raw_ops.ListDiff(x=x, y=y)
    return a, b

@case([([None, None], f32)], [[rnd(4, 6)], [rnd(0, 6)], [rnd(4, 1)]])
def reduce_empty(x):
    m = tf.boolean_mask(x, tf.reduce_any(x > 1.2, 1))
    return m, tf.reduce_sum(m, 0), tf.reduce_sum(m, 1), tf.reduce_prod(m, 0), tf.shape(m), tf.reduce_sum(m), tf.transpose(m), tf.concat([m, m], 1)

@case([([None, None], f32)], [[rnd(4, 6)], [np.zeros((3, 6))], [rnd(2, 1)]])
def sparse_from_dense(x):
    s = tf.sparse.from_dense(tf.maximum(x, 0.0))
    return s.indices, s.values, s.dense_shape, tf.sparse.to_dense(s), tf.sparse.reduce_sum(s, 1)

@case([([None, 4], f32)], [[rnd(4, 4)], [np.zeros((3, 4))], [rnd(2, 4)]])
def sparse_matmul(x):
    s = tf.sparse.from_dense(tf.maximum(x, 0.0))
    return tf.sparse.sparse_dense_matmul(s, tf.ones([4, 3])), tf.sparse.to_dense(tf.sparse.transpose(s)), tf.sparse.to_dense(tf.sparse.reorder(s))

@case([([None, 3], i64), ([None], i64), ([3], i64)], [[[[0, 0, 0], [0, 1, 1], [1, 0, 0]], [3, 1, 2], [2, 2, 2]], [np.zeros((0, 3)), [], [1, 2, 3]]])
def sparse_reshape(i, v, s):
    sp = tf.SparseTensor(i, v, s)
    r = tf.sparse.reshape(sp, [-1, sp.dense_shape[2]])
    r2 = tf.sparse.reshape(sp, tf.stack([sp.dense_shape[0], -1]))
    return r.indices, r.values, r.dense_shape, r2.indices, r2.dense_shape, tf.sparse.to_dense(r)

@case([([None, 2], i64), ([None], i64), ([2], i64)], [[[[0, 0], [0, 1], [2, 0]], [3, 1, 2], [4, 3]], [np.zeros((0, 2)), [], [2, 3]]])
def emb_sparse(i, v, s):
    sp = tf.SparseTensor(i, v, s)
    w = tf.constant(np.arange(20, dtype=np.float32).reshape(10, 2))
    return tf.nn.safe_embedding_lookup_sparse(w, sp, combiner='mean'), tf.nn.safe_embedding_lookup_sparse(w, sp, combiner='sum', default_id=0)

@case([([None, 2], i64), ([None], f32), ([2], i64)], [[[[0, 0], [0, 1], [2, 0]], [3, 1, 2], [4, 3]], [np.zeros((0, 2)), [], [2, 3]]])
def sparse_ops(i, v, s):
    sp = tf.SparseTensor(i, v, s)
    a = tf.sparse.slice(sp, [0, 0], [2, 2])
    b = tf.sparse.concat(0, [sp, sp])
    c = tf.sparse.retain(sp, v > 1.5)
    d, e = tf.sparse.fill_empty_rows(sp, 7.0)
    return a.indices, a.values, a.dense_shape, b.indices, b.dense_shape, c.indices, c.values, d.indices, d.values, e, tf.sparse.softmax(sp).values

@case([([None], i32)], [[[2, 0, 3]], [[1]], [[0, 0]]])
def ragged_ops(x):
    r = tf.RaggedTensor.from_row_lengths(tf.cast(tf.range(tf.reduce_sum(x)), f32), x)
    return r.to_tensor(), tf.reduce_sum(r, 1), tf.reduce_max(r, 1), r.row_lengths(), tf.concat([r, r], 0).values, tf.concat([r, r], 1).values, r.bounding_shape()

@case([([None], i32)], [[[2, 0, 3]], [[1]], [[1, 4]]])
def ragged_ops2(x):
    r = tf.RaggedTensor.from_row_lengths(tf.cast(tf.range(tf.reduce_sum(x)), f32), x)
    m = tf.ragged.boolean_mask(r, r > 1.0)
    return (r * 2.0).values, m.values, m.row_splits, r[:, :1].values, r[:, :1].row_splits, r[1:].values, tf.ragged.range(x).values, tf.gather(r, [0]).values

@case([([None, None], f32)], [[rnd(4, 3)], [rnd(2, 2)]])
def ragged_from_tensor(x):
    r = tf.RaggedTensor.from_tensor(x, lengths=tf.range(tf.shape(x)[0]) % 3)
    return r.values, r.row_splits, r.to_tensor(0.0, shape=[None, 5]), r.to_sparse().indices, tf.RaggedTensor.from_tensor(x, padding=0.0).values

@case([([None, 2], f32), ([None], f32)], [[np.abs(rnd(6, 2)), rnd(6)], [np.abs(rnd(1, 2)), rnd(1)]])
def nms(b, s):
    boxes = tf.concat([b, b + 1.0], 1)
    i = tf.image.non_max_suppression(boxes, s, 4, 0.3)
    return i, tf.gather(boxes, i), tf.size(i)

@case([([None, None, None, 3], f32), ([2], i32)], [[rnd(1, 4, 5, 3), [8, 3]], [rnd(2, 3, 3, 3), [1, 7]]])
def resize_runtime(x, s):
    return tf.image.resize(x, s), tf.image.resize(x, s, method='nearest')

@case([([None, None, None, 2], f32)], [[rnd(1, 8, 7, 2)], [rnd(2, 5, 5, 2)]])
def conv_same_dyn(x):
    w = tf.constant(rnd(3, 3, 2, 4))
    y = tf.nn.conv2d(x, w, 2, 'SAME')
    return y, tf.nn.max_pool2d(y, 2, 2, 'SAME'), tf.reduce_mean(y, [1, 2]), tf.nn.conv2d(x, w, 1, 'VALID')

@case([([None, None], f32)], [[rnd(4, 3)], [rnd(2, 5)], [rnd(0, 5)]])
def clamps(x):
    return x[:10], x[2:], x[:, 3:], x[-3:], x[:, :2], x[100:]

@case([([None, 6], f32)], [[rnd(4, 6)], [rnd(1, 6)], [rnd(0, 6)]])
def clamps_fixed(x):
    y = x[:2]
    z = x[2:]
    return tf.matmul(y, tf.ones([6, 2])), tf.concat([z, y], 0), tf.shape(y), tf.shape(z), tf.reduce_sum(y, 0)

@case([([None], i32)], [[[3, 1, 2]], [[0]], [[]]])
def cond_empty(x):
    return tf.cond(tf.size(x) > 0, lambda: tf.reduce_max(x), lambda: -1), tf.cond(tf.size(x) > 1, lambda: tf.unique(x)[0], lambda: tf.zeros([0], i32))

@case([([None, 3], f32), ([], tf.bool)], [[rnd(4, 3), True], [rnd(4, 3), False]])
def cond_mask(x, p):
    y = tf.cond(p, lambda: tf.boolean_mask(x, x[:, 0] > 0.0), lambda: x)
    return y, tf.reduce_sum(y, 0), tf.shape(y)[0]

@case([([None, 3], f32), ([], tf.bool), ([], tf.bool)], [[rnd(4, 3), True, True], [rnd(4, 3), False, True], [rnd(4, 3), True, False], [rnd(2, 3), False, False]])
def cond_nested(x, p, q):
    return tf.cond(p, lambda: tf.cond(q, lambda: x[:1], lambda: x[1:]), lambda: tf.cond(q, lambda: x, lambda: tf.concat([x, x], 0)))

@case([([None, 3], f32), ([], tf.bool)], [[rnd(4, 3), True], [rnd(5, 3), False]])
def cond_grad(x, p):
    y = tf.cond(p, lambda: tf.reduce_sum(x[:2] ** 2), lambda: tf.reduce_sum(tf.sin(x[1:])))
    return tf.gradients(y, x)

@case([([None, None], f32)], [[rnd(4, 6)], [rnd(2, 3)]])
def transpose_reverse(x):
    return tf.reverse(x, [0]), tf.reverse(x, [1]), tf.reverse_sequence(x, tf.range(tf.shape(x)[0]) % (tf.shape(x)[1] + 1), seq_axis=1), tf.roll(x, 1, 0), tf.cumsum(x, 1), tf.sort(x, 1), tf.argsort(x, 1), tf.argmax(x, 1)

@case([([None], f32), ([], i32)], [[rnd(8), 3], [rnd(8), 8], [rnd(8), 1]])
def frames(x, n):
    return tf.signal.frame(x, n, 1), tf.reshape(x[:tf.size(x) // n * n], [-1, n])

@case([([None, 2], i32), ([None], f32), ([2], i32)], [[[[0, 0], [2, 1]], [1., 2.], [3, 2]], [np.zeros((0, 2)), [], [2, 2]]])
def scatter_runtime(i, u, s):
    return tf.scatter_nd(i, u, s), tf.tensor_scatter_nd_add(tf.ones(s), i, u)

@case([([None, None], f32), ([None, None], f32)], [[rnd(3, 4), rnd(4, 2)], [rnd(0, 4), rnd(4, 2)], [rnd(3, 0), rnd(0, 2)]])
def matmul_dyn(x, y):
    return tf.matmul(x, y), tf.matmul(y, x, transpose_a=True, transpose_b=True), tf.einsum('ij,jk->ki', x, y)

@case([([None, 3], f32)], [[rnd(4, 3)], [rnd(1, 3)]])
def where_gather_scatter(x):
    idx = tf.where(x > 0.0)
    vals = tf.gather_nd(x, idx)
    return tf.scatter_nd(idx, vals, tf.shape(x, out_type=i64)), vals, tf.reduce_sum(vals), tf.size(vals)

@case([([None], i32), ([None], i32)], [[[1, 2, 3], [2, 5]], [[1], [1]], [[], []]])
def dyn_partition(x, y):
    a, b = tf.dynamic_partition(x, x % 2, 2)
    s = tf.dynamic_stitch([tf.range(tf.size(x)), tf.range(tf.size(y)) + tf.size(x)], [x, y])
    return a, b, s

@case([([None, 4], f32)], [[rnd(4, 4)], [rnd(0, 4)]])
def stack_unstack(x):
    return tf.stack([x, x], 1), tf.concat(tf.unstack(x, axis=1), 0), tf.stack(tf.unstack(x, axis=1)[:2], 0)

@case([([None, None, None], f32)], [[rnd(2, 3, 4)], [rnd(1, 2, 3)]])
def rank3(x):
    s = tf.shape(x)
    y = tf.reshape(x, [s[0] * s[1], s[2]])
    z = tf.reshape(tf.matmul(y, tf.transpose(y)), [s[0], s[1], s[0], s[1]])
    return y, z, tf.reduce_mean(x, [0, 2]), tf.reshape(x, [s[0], -1]), tf.nn.softmax(x), tf.linalg.band_part(x, 1, 0), tf.linalg.diag_part(x), tf.space_to_batch(tf.expand_dims(x, 3), [1, 1], [[0, 0], [0, 0]])

@case([([None], tf.string), ([None], i32)], [[[b'a b', b'c', b''], [1, 2, 3]], [[b'x'], [1]]])
def strings_split(s, n):
    r = tf.strings.split(s)
    return r.values, r.row_splits, r.to_tensor(b'-'), tf.strings.length(s) + n[0]

@case([([None], i64)], [[[4, 5, 4]], [[]], [[9]]])
def static_table(x):
    k = tf.constant([4, 5, 6], i64); v = tf.constant([1, 2, 3], i64)
    eq = tf.equal(x[:, None], k[None])
    return tf.where(tf.reduce_any(eq, 1), tf.gather(v, tf.argmax(tf.cast(eq, i32), 1)), tf.constant(-1, i64))

@case([([None, None, 3], f32)], [[rnd(2, 37, 3)], [rnd(1, 5, 3)], [rnd(3, 1, 3)]])
def dilated_of_any_length(x):
    w = tf.constant(rnd(3, 3, 4))
    causal = tf.nn.relu(tf.nn.conv1d(tf.pad(x, [[0, 0], [8, 0], [0, 0]]), w, 1, "VALID", dilations=4))
    same = tf.nn.convolution(causal, tf.constant(rnd(2, 4, 2)), padding="SAME", dilations=[3])
    return causal, same

@case([([None, None, None, 2], f32)], [[rnd(2, 9, 14, 2)], [rnd(1, 4, 4, 2)]])
def dilated_of_any_size(x):
    s = tf.shape(x)
    pads = [[0, -s[1] % 2], [1, (-s[2] - 1) % 3]]
    y = tf.space_to_batch_nd(x, [2, 3], pads)
    z = tf.nn.conv2d(y, tf.constant(rnd(1, 1, 2, 3)), 1, "VALID")
    return y, tf.batch_to_space(z, [2, 3], pads), tf.nn.atrous_conv2d(x, tf.constant(rnd(3, 3, 2, 1)), 2, "SAME")

@case([([None, None], f32)], [[rnd(5, 4)], [rnd(1, 2)]])
def sizes_in_matrices(x):
    s = tf.stack([tf.shape(x), tf.shape(x) * 2, tf.constant([1, 7])], 1)
    return tf.zeros(s[1, :2]), tf.zeros(s[::-1, 0]), tf.zeros(s[:, -1]), tf.zeros(s[0, 0:1]), tf.fill(tf.stack([s[0], s[1]])[1, 1:], x[0, 0])
