"""Recurrent layers with masks and unknown lengths, attention, decoding."""
import numpy as np
import tensorflow as tf
from cases import case, ints, rnd

f32, i32, i64 = tf.float32, tf.int32, tf.int64
tf.random.set_seed(1)
K = tf.keras
_keep = []
def model(layer_fn, *shape):
    tf.random.set_seed(3)
    l = layer_fn()
    l(tf.zeros((1,) + tuple(2 if s is None else s for s in shape)))
    _keep.append(l)
    return l
mask = [np.array([[1, 1, 1, 0], [1, 0, 1, 1]], bool), np.array([[0, 0], [1, 1]], bool)]
xs = [rnd(2, 4, 3), rnd(2, 2, 3)]
feeds = [[x, m] for x, m in zip(xs, mask)]
for name, fn in dict(
    simple=lambda: K.layers.SimpleRNN(4, return_sequences=True, return_state=True),
    lstm=lambda: K.layers.LSTM(4, return_sequences=True, return_state=True),
    gru=lambda: K.layers.GRU(4, return_sequences=True, return_state=True),
    gru_nr=lambda: K.layers.GRU(4, reset_after=False),
    lstm_back=lambda: K.layers.LSTM(4, go_backwards=True, return_sequences=True),
    lstm_unroll=lambda: K.layers.LSTM(4, return_state=True),
    bidir=lambda: K.layers.Bidirectional(K.layers.LSTM(4, return_sequences=True)),
    stacked=lambda: K.layers.RNN([K.layers.LSTMCell(4), K.layers.GRUCell(3)], return_sequences=True),
    zero_out=lambda: K.layers.SimpleRNN(4, return_sequences=True),
    time_dist=lambda: K.layers.TimeDistributed(K.layers.Dense(2)),
).items():
    l = model(fn, None, 3)
    def f(x, m, l=l):
        return l(x, mask=m)
    case([([2, None, 3], f32), ([2, None], tf.bool)], feeds, name='rnn_mask_' + name)(f)
    def g(x, l=l):
        return l(x)
    case([([None, None, 3], f32)], [[xs[0]], [xs[1]], [rnd(1, 1, 3)]], name='rnn_' + name)(g)

l = model(lambda: K.layers.ConvLSTM1D(2, 3, padding='same', return_sequences=True), None, 5, 3)
case([([None, None, 5, 3], f32)], [[rnd(2, 3, 5, 3)], [rnd(1, 2, 5, 3)]], name='convlstm')(lambda x, l=l: l(x))

@case([([2, None, 3], f32), ([2, None], tf.bool)], feeds)
def backend_rnn(x, m):
    w = tf.constant(rnd(3, 3))
    def step(inp, states):
        o = tf.matmul(inp, w) + states[0]
        return o, [o]
    last, outs, st = tf.compat.v1.keras.backend.rnn(step, x, [tf.zeros([2, 3])], mask=m, unroll=False)
    return last, outs, st

@case([([2, None, 3], f32), ([2, None], tf.bool)], feeds)
def backend_rnn_zero(x, m):
    w = tf.constant(rnd(3, 3))
    def step(inp, states):
        o = tf.matmul(inp, w) + states[0]
        return o, [o]
    last, outs, st = tf.compat.v1.keras.backend.rnn(step, x, [tf.zeros([2, 3])], mask=m, zero_output_for_mask=True, go_backwards=True, time_major=False)
    return last, outs, st

emb = K.layers.Embedding(10, 3, mask_zero=True)
lst = K.layers.LSTM(4)
emb(tf.zeros([1, 2], i32)); lst(tf.zeros([1, 2, 3]))
@case([([None, None], i32)], [[[[1, 2, 0], [3, 0, 0]]], [[[4]]], [[[0, 0]]]])
def embedding_lstm(x):
    e = emb(x)
    return lst(e, mask=emb.compute_mask(x))

def v1cell(x, n):
    cell = tf.compat.v1.nn.rnn_cell.BasicRNNCell(3)
    return cell

@case([([2, None, 3], f32), ([2], i32)], [[rnd(2, 4, 3), [2, 4]], [rnd(2, 2, 3), [0, 1]]])
def ctc(x, n):
    return tf.nn.ctc_greedy_decoder(tf.transpose(x, [1, 0, 2]), n)[0][0].values

@case([([None, None, 4], f32)], [[rnd(2, 3, 4)], [rnd(1, 5, 4)]])
def attention_causal(x):
    q = x; s = tf.shape(x)[1]
    a = tf.matmul(q, q, transpose_b=True)
    m = tf.linalg.band_part(tf.ones([s, s]), -1, 0)
    a = tf.where(m > 0, a, -1e9)
    return tf.matmul(tf.nn.softmax(a), x), tf.argmax(a, -1)

@case([([None, None], i32)], [[ints(2, 3, hi=20)], [ints(1, 7, hi=20)]])
def bert_positions(ids):
    table = tf.constant(rnd(20, 4)); pos = tf.constant(rnd(16, 4))
    n = tf.shape(ids)[1]
    e = tf.gather(table, ids) + pos[tf.newaxis, :n]
    return e, e[:, 0], e[:, -1], e[:, 1:] - e[:, :-1]

@case([([None, None], i32), ([], i32)], [[ints(2, 3, hi=5), 4], [ints(1, 1, hi=5), 2]])
def greedy_decode(ids, steps):
    table = tf.constant(rnd(5, 5))
    for _ in tf.range(steps):
        tf.autograph.experimental.set_loop_options(shape_invariants=[(ids, tf.TensorShape([None, None]))])
        logits = tf.gather(table, ids[:, -1])
        ids = tf.concat([ids, tf.argmax(logits, -1, output_type=i32)[:, None]], 1)
    return ids

@case([([None], i32), ([], i32)], [[[1, 2], 4], [[3], 2]])
def sliding_queue(x, n):
    q = tf.concat([tf.zeros_like(x), x], 0)
    s = 0
    for i in tf.range(n):
        q = tf.concat([q[1:], [i]], 0)
        s += tf.reduce_sum(q)
    return q, s
