"""Loops of autograph and of v1 graphs over tensors, arrays and ragged rows, nested, with breaks; their gradients."""
import numpy as np
import tensorflow as tf
from cases import case, ints, rnd

f32, i32, i64 = tf.float32, tf.int32, tf.int64

@case([([None], f32)], [[rnd(5)], [rnd(3)], [rnd(0)]])
def ag_while_sum(x):
    s = tf.constant(0.0); i = 0
    while i < tf.shape(x)[0]:
        s += x[i]; i += 1
    return s

@case([([None, 4], f32)], [[rnd(5, 4)], [rnd(1, 4)], [rnd(0, 4)]])
def ag_for_tensor(x):
    ta = tf.TensorArray(f32, 0, dynamic_size=True)
    k = 0
    for row in x:
        ta = ta.write(k, row * 2.0); k += 1
    return ta.stack()

@case([([None, None], f32)], [[rnd(5, 4)], [rnd(2, 3)], [rnd(3, 1)]])
def ag_nested_for(x):
    s = 0.0
    for row in x:
        for v in row:
            if v > 0.0:
                s += v
            else:
                s -= 2.0 * v
    return s

@case([([None, None], f32)], [[rnd(5, 4)], [rnd(2, 3)]])
def ag_nested_ta(x):
    n = tf.shape(x)[0]; m = tf.shape(x)[1]
    outer = tf.TensorArray(f32, n)
    for i in tf.range(n):
        inner = tf.TensorArray(f32, m)
        for j in tf.range(m):
            inner = inner.write(j, x[i, j] * tf.cast(i + j, f32))
        outer = outer.write(i, inner.stack())
    return outer.stack()

@case([([None, 3], f32)], [[rnd(5, 3)], [rnd(2, 3)]])
def ag_nested_ta_static_inner(x):
    n = tf.shape(x)[0]
    outer = tf.TensorArray(f32, n)
    for i in tf.range(n):
        inner = tf.TensorArray(f32, 3)
        for j in tf.range(3):
            inner = inner.write(j, x[i, j] * tf.cast(i + j, f32))
        outer = outer.write(i, inner.stack())
    return outer.stack()

@case([([None], i32)], [[ints(6)], [ints(3)], [np.zeros(0)]])
def ag_break(x):
    s = 0
    for v in x:
        if v > 7:
            break
        s += v
    return s

@case([([None], i32)], [[ints(6)], [ints(30)]])
def ag_continue_break(x):
    s = 0
    for v in x:
        if v % 2 == 0:
            continue
        if s > 20:
            break
        s += v
    return s

@case([([], i32)], [[np.int32(5)], [np.int32(0)], [np.int32(12)]])
def ag_dynamic_size(n):
    ta = tf.TensorArray(i32, size=0, dynamic_size=True)
    i = 0
    while i < n:
        ta = ta.write(i, i * i); i += 1
    return ta.stack(), ta.size()

@case([([], i32)], [[np.int32(5)], [np.int32(1)], [np.int32(12)]])
def ag_dynamic_size_sparse_write(n):
    ta = tf.TensorArray(i32, size=1, dynamic_size=True, element_shape=[])
    i = 0
    while i < n:
        ta = ta.write(2 * i, i * i); i += 1
    return ta.size()

@case([([None], f32)], [[rnd(5)], [rnd(3)]])
def ag_growing_concat(x):
    y = x[:1]
    for i in tf.range(3):
        tf.autograph.experimental.set_loop_options(shape_invariants=[(y, tf.TensorShape([None]))])
        y = tf.concat([y, x], 0)
    return y, tf.shape(y)

@case([([], i32)], [[np.int32(5)], [np.int32(0)], [np.int32(9)]])
def ag_growing_concat_n(n):
    y = tf.zeros([1], i32)
    for i in tf.range(n):
        tf.autograph.experimental.set_loop_options(shape_invariants=[(y, tf.TensorShape([None]))])
        y = tf.concat([y, [i]], 0)
    return y

@case([([None], f32)], [[rnd(8)], [rnd(5)], [rnd(1)]])
def ag_shrinking(x):
    y = x
    while tf.size(y) > 1:
        tf.autograph.experimental.set_loop_options(shape_invariants=[(y, tf.TensorShape([None]))])
        h = tf.size(y) // 2
        y = y[:h] + y[h:2 * h]
    return y

@case([([None, 2], f32)], [[rnd(4, 2)], [rnd(1, 2)]])
def ag_list_append(x):
    ta = tf.TensorArray(f32, 0, dynamic_size=True, infer_shape=False)
    for i in tf.range(tf.shape(x)[0]):
        ta = ta.write(i, tf.reduce_sum(x[:i + 1], 0))
    return ta.stack()

@case([([None, 2], f32)], [[rnd(4, 2)], [rnd(1, 2)]])
def ag_ta_ragged_concat(x):
    ta = tf.TensorArray(f32, 0, dynamic_size=True, infer_shape=False)
    for i in tf.range(tf.shape(x)[0]):
        ta = ta.write(i, x[:i + 1])
    return ta.concat()

@case([([None, None, 2], f32)], [[rnd(4, 3, 2)], [rnd(1, 5, 2)]])
def map_fn_nested(x):
    return tf.map_fn(lambda r: tf.map_fn(lambda v: tf.reduce_sum(v) * 2.0, r), x)

@case([([None, 3], f32)], [[rnd(4, 3)], [rnd(1, 3)], [rnd(7, 3)]])
def map_fn_two_outputs(x):
    return tf.map_fn(lambda r: (tf.reduce_sum(r), r * 2.0), x, fn_output_signature=(f32, f32))

@case([([None, 3], f32)], [[rnd(4, 3)], [rnd(1, 3)]])
def map_fn_ragged_out(x):
    n = tf.shape(x)[0]
    r = tf.map_fn(lambda i: tf.range(i), tf.range(n), fn_output_signature=tf.RaggedTensorSpec([None], i32))
    return r.values, r.row_splits

@case([([None], i32)], [[[2, 0, 3]], [[1]], [[0, 0]]])
def map_fn_over_ragged(x):
    r = tf.RaggedTensor.from_row_lengths(tf.range(tf.reduce_sum(x)), x)
    return tf.map_fn(lambda v: tf.reduce_sum(v), r, fn_output_signature=i32)

@case([([None], i32)], [[[2, 0, 3]], [[1]], [[0, 4]]])
def map_fn_ragged_to_ragged(x):
    r = tf.RaggedTensor.from_row_lengths(tf.range(tf.reduce_sum(x)), x)
    o = tf.map_fn(lambda v: tf.concat([v, v], 0), r, fn_output_signature=tf.RaggedTensorSpec([None], i32))
    return o.values, o.row_splits

@case([([None, 3], f32)], [[rnd(4, 3)], [rnd(1, 3)]])
def scan_cumsum(x):
    return tf.scan(lambda a, v: a + v, x)

@case([([None, 3], f32)], [[rnd(4, 3)], [rnd(1, 3)]])
def scan_init_reverse(x):
    return tf.scan(lambda a, v: a * 0.5 + tf.reduce_sum(v), x, initializer=tf.constant(1.0), reverse=True)

@case([([None, 3], f32)], [[rnd(4, 3)], [rnd(1, 3)]])
def foldl_foldr(x):
    return tf.foldl(lambda a, v: a * 0.5 + v, x), tf.foldr(lambda a, v: a * 0.5 + v, x)

@case([([None, 3], f32)], [[rnd(4, 3)], [rnd(2, 3)]])
def scan_grad(x):
    y = tf.scan(lambda a, v: tf.tanh(a + v), x)
    return tf.gradients(tf.reduce_sum(y * y), x)

@case([([None, 3], f32)], [[rnd(4, 3)], [rnd(2, 3)]])
def map_fn_grad(x):
    y = tf.map_fn(lambda v: tf.reduce_prod(v), x)
    return tf.gradients(tf.reduce_sum(y * y), x)

@case([([None, 3], f32)], [[rnd(4, 3)], [rnd(2, 3)]])
def ag_while_grad(x):
    y = x
    i = 0
    while i < 3:
        y = tf.sin(y) * x; i += 1
    return tf.gradients(tf.reduce_sum(y), x)

@case([([None, 3], f32)], [[rnd(4, 3)], [rnd(2, 3)]])
def ag_nested_while_grad(x):
    y = x
    for i in tf.range(tf.shape(x)[0]):
        z = y
        for j in tf.range(i):
            z = tf.sin(z) * x
        y = y + z
    return tf.gradients(tf.reduce_sum(y), x)

@case([([None], i32)], [[ints(6)], [ints(3)]])
def ag_if_in_loop_ta(x):
    ta = tf.TensorArray(i32, 0, dynamic_size=True)
    for v in x:
        if v > 4:
            ta = ta.write(ta.size(), v)
    return ta.stack(), ta.size()

@case([([None], i32)], [[ints(6)], [ints(3)]])
def ag_if_in_loop_two_ta(x):
    ta = tf.TensorArray(i32, 0, dynamic_size=True, element_shape=[])
    tb = tf.TensorArray(i32, 0, dynamic_size=True, element_shape=[])
    for v in x:
        if v > 4:
            ta = ta.write(ta.size(), v)
        else:
            tb = tb.write(tb.size(), -v)
    return ta.stack(), tb.stack()

@case([([], i32), ([], i32)], [[np.int32(48), np.int32(18)], [np.int32(7), np.int32(0)], [np.int32(0), np.int32(0)]])
def ag_gcd(a, b):
    while b != 0:
        a, b = b, a % b
    return a

@case([([], i32)], [[np.int32(30)], [np.int32(2)], [np.int32(1)]])
def ag_primes(n):
    ta = tf.TensorArray(i32, 0, dynamic_size=True, element_shape=[])
    k = 2
    while k <= n:
        prime = True
        d = 2
        while d * d <= k:
            if k % d == 0:
                prime = False
                break
            d += 1
        if prime:
            ta = ta.write(ta.size(), k)
        k += 1
    return ta.stack()

@case([([None], i32)], [[ints(6)], [ints(9)], [np.zeros(0)]])
def ag_bubble(x):
    n = tf.size(x)
    for i in tf.range(n):
        for j in tf.range(n - i - 1):
            if x[j] > x[j + 1]:
                x = tf.tensor_scatter_nd_update(x, [[j], [j + 1]], [x[j + 1], x[j]])
    return x

@case([([None], i32)], [[[2, 0, 3]], [[1]], [[0, 4, 1]]])
def ag_ragged_loop(x):
    r = tf.RaggedTensor.from_row_lengths(tf.range(tf.reduce_sum(x)), x)
    s = 0
    for i in tf.range(r.nrows()):
        for v in r[i]:
            s = s * 2 + v
    return s

@case([([None], i32)], [[[2, 0, 3]], [[1]], [[0, 4, 1]]])
def ag_ragged_loop_ta(x):
    r = tf.RaggedTensor.from_row_lengths(tf.range(tf.reduce_sum(x)), x)
    ta = tf.TensorArray(i32, tf.cast(r.nrows(), i32))
    for i in tf.range(tf.cast(r.nrows(), i32)):
        inner = tf.TensorArray(i32, tf.size(r[i]), element_shape=[])
        for j in tf.range(tf.size(r[i])):
            inner = inner.write(j, r[i][j] + i)
        ta = ta.write(i, tf.reduce_sum(inner.stack()))
    return ta.stack()

@case([([None, 3], f32), ([], i32)], [[rnd(4, 3), np.int32(2)], [rnd(2, 3), np.int32(5)]])
def while_loop_max_iter(x, n):
    return tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * 1.5), (0, x), maximum_iterations=3)

@case([([None, 3], f32)], [[rnd(4, 3)], [rnd(2, 3)]])
def seeded_random_in_map(x):
    return tf.map_fn(lambda v: v + tf.random.stateless_uniform([3], seed=[1, 2]), x)

@case([([None, 3], f32), ([], i32)], [[rnd(4, 3), np.int32(2)], [rnd(2, 3), np.int32(5)]])
def stateless_in_loop(x, n):
    for i in tf.range(n):
        x += tf.random.stateless_normal(tf.shape(x), seed=tf.stack([i, 7]))
    return x

@case([([2, None, 4], f32), ([2], i32)], [[rnd(2, 5, 4), [3, 5]], [rnd(2, 1, 4), [1, 0]]])
def dynamic_rnn_like(x, lens):
    s = tf.zeros([2, 4])
    ta = tf.TensorArray(f32, tf.shape(x)[1])
    xt = tf.transpose(x, [1, 0, 2])
    for t in tf.range(tf.shape(x)[1]):
        new = tf.tanh(xt[t] + s)
        alive = tf.expand_dims(t < lens, 1)
        s = tf.where(alive, new, s)
        ta = ta.write(t, tf.where(alive, new, tf.zeros_like(new)))
    return tf.transpose(ta.stack(), [1, 0, 2]), s

@case([([None, 2], f32)], [[rnd(5, 2)], [rnd(3, 2)]])
def ta_unstack_scatter(x):
    n = tf.shape(x)[0]
    ta = tf.TensorArray(f32, n).unstack(x)
    tb = tf.TensorArray(f32, n)
    for i in tf.range(n):
        tb = tb.write(n - 1 - i, ta.read(i) + tf.cast(i, f32))
    return tb.gather(tf.range(0, n, 2)), tb.stack()

@case([([None, 2], f32)], [[rnd(5, 2)], [rnd(3, 2)]])
def ta_partial(x):
    n = tf.shape(x)[0]
    ta = tf.TensorArray(f32, n + 2, element_shape=[2])
    for i in tf.range(n):
        ta = ta.write(i + 1, x[i])
    return ta.stack()

@case([([None, 3], f32)], [[rnd(4, 3)], [rnd(1, 3)]])
def vectorized(x):
    return tf.vectorized_map(lambda r: tf.reduce_sum(r) + r[0], x)

@case([([None], i32)], [[[3, 1, 2]], [[1]], [[0]]])
def ag_list_of_sizes(x):
    # element size changes between iterations; only a sum is read
    ta = tf.TensorArray(f32, 1, clear_after_read=False, infer_shape=False)
    ta = ta.write(0, tf.ones([1]))
    s = 0.0
    for v in x:
        ta = ta.write(0, tf.ones([v]) * 2.0)
        s += tf.reduce_sum(ta.read(0))
    return s

@case([([None], i32)], [[[3, 1, 2]], [[1]], [[5]]])
def ag_var_size_carry(x):
    y = tf.zeros([0], i32)
    for v in x:
        tf.autograph.experimental.set_loop_options(shape_invariants=[(y, tf.TensorShape([None]))])
        y = tf.range(v)
    return y

@case([([None], i32)], [[[3, 1, 2]], [[1]], [[5, 6]]])
def ag_while_else(x):
    i = 0
    found = -1
    while i < tf.size(x) and found < 0:
        if x[i] == 2 or x[i] == 6:
            found = i
        i += 1
    return found

@case([([3, 4], f32)], [[rnd(3, 4)]])
def ta_of_ta_static(x):
    outer = tf.TensorArray(f32, 3, element_shape=[4])
    for i in tf.range(3):
        inner = tf.TensorArray(f32, 0, dynamic_size=True, element_shape=[])
        for j in tf.range(4):
            inner = inner.write(j, x[i, j])
        outer = outer.write(i, inner.stack())
    return outer.stack()

@case([([None, None], f32)], [[rnd(3, 4)], [rnd(2, 2)]])
def cumulative_2d_dp(x):
    n = tf.shape(x)[0]; m = tf.shape(x)[1]
    dp = tf.zeros([n + 1, m + 1])
    for i in tf.range(1, n + 1):
        for j in tf.range(1, m + 1):
            v = x[i - 1, j - 1] + tf.maximum(dp[i - 1, j], dp[i, j - 1])
            dp = tf.tensor_scatter_nd_update(dp, [[i, j]], [v])
    return dp

@case([([None, 3], f32)], [[rnd(4, 3)], [rnd(1, 3)]], v1=True)
def v1_map_fn(x):
    return tf.compat.v1.map_fn(lambda r: r * 2.0 + tf.reduce_sum(r), x)

@case([([None, 3], f32)], [[rnd(4, 3)], [rnd(1, 3)]], v1=True)
def v1_scan(x):
    return tf.compat.v1.scan(lambda a, r: a + r * 2.0, x)

@case([([None, 3], f32)], [[rnd(4, 3)], [rnd(2, 3)]], v1=True)
def v1_scan_grad(x):
    y = tf.compat.v1.scan(lambda a, r: tf.tanh(a + r * 2.0), x)
    return tf.gradients(tf.reduce_sum(y * y), x)

@case([([None, 3], f32), ([], i32)], [[rnd(4, 3), np.int32(3)], [rnd(2, 3), np.int32(0)]], v1=True)
def v1_nested_while(x, n):
    def body(i, y):
        _, z = tf.compat.v1.while_loop(lambda j, z: j < i, lambda j, z: (j + 1, tf.sin(z) + x), (0, y))
        return i + 1, z
    return tf.compat.v1.while_loop(lambda i, y: i < n, body, (0, x))

@case([([2, None, 4], f32), ([2], i32)], [[rnd(2, 5, 4), [3, 5]], [rnd(2, 1, 4), [1, 0]]], v1=True)
def v1_cond_in_loop(x, lens):
    def body(i, s, ta):
        y = tf.compat.v1.cond(tf.reduce_any(i < lens), lambda: tf.tanh(x[:, i] + s), lambda: s)
        return i + 1, y, ta.write(i, y)
    n = tf.shape(x)[1]
    _, s, ta = tf.compat.v1.while_loop(lambda i, *_: i < n, body, (0, tf.zeros([2, 4]), tf.TensorArray(f32, n)))
    return s, ta.stack()

@case([([None], i32)], [[ints(6)], [ints(4)]], v1=True)
def v1_cond_slices(x):
    return tf.compat.v1.cond(tf.reduce_sum(x) > 20, lambda: x[:2], lambda: x[1:])

@case([([], i32)], [[np.int32(4)], [np.int32(1)]], v1=True)
def v1_ta_dynamic(n):
    ta = tf.TensorArray(f32, 0, dynamic_size=True, infer_shape=False)
    def body(i, t):
        return i + 1, t.write(i, tf.cast(tf.range(i + 1), f32))
    _, ta = tf.compat.v1.while_loop(lambda i, t: i < n, body, (0, ta))
    return ta.concat(), ta.size()

@case([([3], f32)], [[rnd(3)]])
def while_second_grad(x):
    """A list leaves one loop with a size that is known, and the next one with another."""
    y = tf.while_loop(lambda i, a: i < 2, lambda i, a: (i + 1, tf.sin(a) * x), (0, x))[1]
    return tf.gradients(tf.gradients(y, x)[0], x)[0]
