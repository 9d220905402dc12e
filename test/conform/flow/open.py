"""Sizes that are open when compiling and that the run chooses: the larger of two, one by a condition, what is left of another."""
import numpy as np
import tensorflow as tf
from cases import case, rnd

f32, i32 = tf.float32, tf.int32
PAIR = [([None, 4], f32), ([None, 4], f32)]
ROWS = [[rnd(3, 4), rnd(5, 4)], [rnd(5, 4), rnd(3, 4)], [rnd(1, 4), rnd(2, 4)], [rnd(0, 4), rnd(3, 4)], [rnd(4, 4), rnd(4, 4)]]
SQUARES = [[rnd(4, 4)], [rnd(3, 5)], [rnd(5, 3)], [rnd(2, 2)]]
MASKS = [[rnd(8, 4), np.zeros(8, bool)], [rnd(8, 4), np.ones(8, bool)], [rnd(8, 4), np.arange(8) > 2]]
IMAGES = [[rnd(2, 8, 6, 3)], [rnd(1, 5, 7, 3)], [rnd(1, 1, 2, 3)]]

def rows(x):
    return tf.shape(x)[0]

@case(PAIR, ROWS)
def size_by_condition(x, y):
    s = tf.where(rows(x) > 2, tf.shape(x), tf.shape(y))
    n = tf.where(rows(x) > 2, rows(x), rows(y))
    return tf.zeros(s) + 1.0, s, tf.range(n), tf.reshape(tf.ones(tf.concat([[3], s], 0)), tf.concat([[-1], s[1:]], 0))

@case(PAIR, ROWS)
def larger_size(x, y):
    n = tf.maximum(rows(x), rows(y))
    pad = lambda v: tf.pad(v, [[0, n - rows(v)], [0, 0]])
    return pad(x) + pad(y), tf.ones([n, n]), tf.range(n)

@case(PAIR, ROWS)
def smaller_size(x, y):
    n = tf.minimum(rows(x), rows(y))
    return x[:n] + y[:n], tf.matmul(x[:n], y[:n], transpose_a=True), tf.zeros([n + 1, 2])

@case(PAIR, ROWS)
def larger_product(x, y):
    a, b = tf.size(x), tf.size(y)
    n = tf.where(a > b, a, b)
    return tf.reshape(tf.range(n), [-1, 4]), tf.ones([(n + 3) // 8, n % 3])

@case(PAIR, ROWS)
def eyes(x, y):
    n, m = rows(x), rows(y)
    return tf.eye(n, m), tf.eye(n, batch_shape=[m]), tf.eye(4, m), tf.eye(m, 3), tf.eye(n, m, batch_shape=[2, 3], dtype=i32)

@case(PAIR, ROWS)
def main_diagonals(x, y):
    m = tf.matmul(x, y, transpose_b=True)
    d = tf.linalg.diag_part(m)
    return d, tf.linalg.set_diag(m, d * 2.0 + 1.0), tf.linalg.trace(m)

@case([([None, None], f32)], SQUARES)
def side_diagonals(x):
    return (tf.linalg.diag_part(x, k=1), tf.linalg.diag_part(x, k=-1), tf.linalg.diag_part(x, k=(-1, 1)),
            tf.linalg.diag_part(x, k=(-1, 1), align="LEFT_RIGHT", padding_value=7.0),
            tf.linalg.set_diag(x, tf.linalg.diag_part(x, k=1) + 1.0, k=1))

@case([([None], f32)], [[rnd(4)], [rnd(1)], [rnd(0)]])
def diagonals_beside(x):
    return tf.linalg.diag(x, k=1), tf.linalg.diag(x, k=-2, padding_value=3.0), tf.linalg.diag(x, num_rows=tf.size(x) + 2)

@case([([None, None], f32)], SQUARES)
def extremes_of_a_shape(x):
    n, m = tf.reduce_max(tf.shape(x)), tf.reduce_min(tf.shape(x))
    s = tf.cond(rows(x) > 3, lambda: tf.shape(x), lambda: tf.shape(x)[::-1])
    return tf.zeros([n, n]), x[:m, :m], tf.zeros(s)

@case([([None, 4], f32), ([], i32)], [[rnd(5, 4), 3], [rnd(3, 4), 9], [rnd(3, 4), 0]])
def number_of_the_caller(x, k):
    n = tf.minimum(k, rows(x))
    m = tf.clip_by_value(k, 0, 6)
    return tf.zeros([n]), tf.math.top_k(tf.transpose(x), n)[0], tf.one_hot([1, 2], n), tf.tile(x, [m, 1])

@case([([None, 4], f32)], [[rnd(8, 4)], [rnd(5, 4)], [rnd(1, 4)], [rnd(0, 4)]])
def size_of_floats(x):
    n = tf.cast(tf.math.ceil(tf.cast(rows(x), f32) * 0.5), i32)
    return tf.zeros([n, 2]), x[:n], tf.pad(x, [[0, tf.maximum(0, 8 - rows(x))], [0, 0]]), tf.ones([tf.maximum(rows(x) - 3, 0)])

@case([([None, 4], f32), ([None], tf.bool)], MASKS)
def what_a_mask_leaves(x, m):
    y = tf.boolean_mask(x, m)
    left = rows(x) - rows(y)
    return tf.fill([left, 4], 2.0), tf.pad(y, [[0, left], [0, 0]]), tf.cumsum(tf.fill([left, 300], 1.0)), x * 2.0

@case([([None, None, 8], f32), ([None], i32)], [[rnd(2, 6, 8), [6, 3]], [rnd(1, 1, 8), [1]], [rnd(2, 6, 8), [2, 3]]])
def longest_of_a_batch(x, lengths):
    n = tf.minimum(tf.reduce_max(lengths), tf.shape(x)[1])
    return x[:, :n] * tf.cast(tf.sequence_mask(lengths, n), f32)[..., None]

@case([([None, None, 3], f32)], [[rnd(8, 6, 3)], [rnd(5, 7, 3)], [rnd(7, 5, 3)]])
def crop_or_pad(x):
    n = tf.minimum(rows(x), tf.shape(x)[1])
    return tf.image.resize_with_crop_or_pad(x, 6, 6), tf.image.resize_with_crop_or_pad(x, n, n), tf.image.central_crop(x, 0.5)

@case([([None, None, None, 3], f32)], IMAGES)
def resizes(x):
    s = tf.shape(x)[1:3]
    old = tf.compat.v1.image
    return (tf.image.resize(x, s * 2), tf.image.resize(x, s + 1, method="nearest"), tf.image.resize(x, [4, 5]),
            old.resize_bilinear(x, s * 3, align_corners=True), old.resize_nearest_neighbor(x, s + 2, align_corners=True),
            old.resize_bilinear(x, [3, 2]))

@case([([None, None, None, 2], f32)], [[rnd(2, 8, 6, 2)], [rnd(1, 5, 7, 2)]])
def windows(x):
    s = tf.shape(x)
    w = tf.constant(rnd(3, 3, 2, 3))
    return (tf.nn.conv2d(x, w, 2, "SAME"), tf.nn.max_pool2d(x, 2, 2, "SAME"), tf.nn.avg_pool2d(x, 3, 2, "SAME"), tf.nn.max_pool2d(x, 2, 3, "SAME"),
            tf.nn.conv2d_transpose(tf.concat([x, x[..., :1]], 3), w, [s[0], s[1] * 2, s[2] * 2, 2], 2))

@case([([None], f32)], [[rnd(8)], [rnd(5)], [rnd(20)]])
def transforms_of_a_length(x):
    y = tf.signal.rfft(x, [16])
    return tf.math.real(y), tf.math.imag(y), tf.signal.irfft(y[: tf.size(x) // 2], [16])

@case([([None, 10, 4], f32)], [[rnd(3, 10, 4)], [rnd(1, 10, 4)]])
def overlaps(x):
    return tf.signal.overlap_and_add(x, 2), tf.signal.overlap_and_add(x, 3)

@case([([None, 4], f32)], [[rnd(5, 4)], [rnd(1, 4)], [rnd(8, 4)]])
def sizes_of_a_counter(x):
    n = rows(x)

    def body(i, a):
        part = tf.reduce_sum(tf.gather(x, tf.range(i + 1))) + tf.reduce_sum(x[i:] * x[: n - i])
        return i + 1, a + part + tf.reduce_sum(tf.ones([i, 2])) + tf.reduce_sum(tf.eye(i))
    return tf.while_loop(lambda i, a: i < n, body, (0, 0.0))[1]
