"""sum_accuracy.py --lathe build/bin/lathe [--elements 100,10000,1000000]: how exact long sums are.

For each kind of reduction the largest error against f64, as a multiple of eps sum|x|, beside TensorFlow's own, and what (2 log2(n) + 8)
allows; fails above that. Numbers of three kinds: all 0.1, uniform in [0, 1), normal.  Needs TensorFlow, which makes the graphs.
"""
import argparse
import os
import sys
import tempfile

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ.setdefault('CUDA_VISIBLE_DEVICES', '')
import numpy as np
import tensorflow as tf

import tf_fuzz

tf1 = tf.compat.v1
EPS = 2.0 ** -23


def kinds(n):
    """(name, shape, graph of x, exact value and sum of magnitudes in f64, number of terms)."""
    r = max(1, n)

    def of(f):
        return lambda x: (f(x), f(np.abs(x)))
    yield 'sum of a row', [r], lambda x: tf.reduce_sum(x), of(np.sum), r
    yield 'sum along columns', [r, 5], lambda x: tf.reduce_sum(x, 0), of(lambda x: x.sum(0)), r
    yield 'sum of rows', [3, r], lambda x: tf.reduce_sum(x, 1), of(lambda x: x.sum(1)), r
    side = max(1, int(r ** .5))
    yield 'mean of an image', [1, side, side, 3], lambda x: tf.reduce_mean(x, [1, 2]), of(lambda x: x.mean((1, 2))), side * side
    yield 'sum of squares', [r], lambda x: tf.reduce_sum(x * x), of(lambda x: (x * x).sum()), r
    yield 'product, one column', [2, r], lambda x: tf.matmul(x, x[:1], transpose_b=True), \
        lambda x: (x @ x[:1].T, np.abs(x) @ np.abs(x[:1].T)), r
    yield 'product, 17 columns', [17, r], lambda x: tf.matmul(x, x, transpose_b=True), \
        lambda x: (x @ x.T, np.abs(x) @ np.abs(x.T)), r
    yield 'running sum of a row', [r], lambda x: tf.cumsum(x), of(np.cumsum), r
    yield 'running sum along columns', [r, 5], lambda x: tf.cumsum(x, 0), of(lambda x: np.cumsum(x, 0)), r
    yield 'average pool', [1, side, side, 3], lambda x: tf.nn.avg_pool2d(x, side, 1, 'VALID'), \
        of(lambda x: x.mean((1, 2), keepdims=True)), side * side
    yield 'sum of the middle', [3, r, 7], lambda x: tf.reduce_sum(x, 1), of(lambda x: x.sum(1)), r
    yield 'gradient of a bias', [r, 5], lambda x: tf.raw_ops.BiasAddGrad(out_backprop=x), of(lambda x: x.sum(0)), r
    # what follows from sums of squares is held against the squares, or against itself
    yield 'variance of a row', [r], lambda x: tf.nn.moments(x, [0])[1], lambda x: (x.var(), (x * x).mean()), r
    yield 'variance of an image', [1, side, side, 3], lambda x: tf.nn.moments(x, [1, 2])[1], \
        lambda x: (x.var((1, 2)), (x * x).mean((1, 2))), side * side
    yield 'batch norm, mean', [1, side, side, 3], lambda x: batch_norm(x)[1], of(lambda x: x.mean((0, 1, 2))), side * side
    yield 'batch norm, variance', [1, side, side, 3], lambda x: batch_norm(x)[2], \
        lambda x: (x.var((0, 1, 2)) * side * side / max(1, side * side - 1), (x * x).mean((0, 1, 2))), side * side
    yield 'Euclidean norm', [r], lambda x: tf.norm(x), lambda x: (np.linalg.norm(x),) * 2, r
    yield 'L2 loss', [r], lambda x: tf.nn.l2_loss(x), lambda x: ((x * x).sum() / 2,) * 2, r
    yield 'log of summed exponentials', [r], lambda x: tf.reduce_logsumexp(x), lambda x: (log_sum(x),) * 2, r
    yield 'softmax of a row', [2, r], lambda x: tf.nn.softmax(x), \
        lambda x: (np.exp(x - np.array([[log_sum(row)] for row in x])),) * 2, r
    depth = max(1, r // 9)
    yield '3x3 convolution', [1, 3, 3, depth], lambda x: tf.nn.conv2d(x, tf.reshape(x, [3, 3, depth, 1]), 1, 'VALID'), \
        lambda x: ((x * x).sum(),) * 2, 9 * depth
    yield 'gradient of a filter', [1, side, side, 2], lambda x: tf.raw_ops.Conv2DBackpropFilter(
        input=x, filter_sizes=[1, 1, 2, 2], out_backprop=x, strides=[1] * 4, padding='VALID'), \
        lambda x: (np.einsum('nhwi,nhwo->io', x, x)[None, None], np.einsum('nhwi,nhwo->io', np.abs(x), np.abs(x))[None, None]), side * side
    yield 'sum of a segment', [r, 3], lambda x: tf.math.segment_sum(x, np.zeros(r, np.int32)), of(lambda x: x.sum(0, keepdims=True)), r
    yield 'sum of an unsorted segment', [r, 3], lambda x: tf.math.unsorted_segment_sum(x, np.zeros(r, np.int32), 2), \
        lambda x: (np.stack([x.sum(0), 0 * x[0]]), np.stack([np.abs(x).sum(0), 1 + 0 * x[0]])), r


def batch_norm(x):
    ones, zeros = tf.ones(x.shape[-1:]), tf.zeros(x.shape[-1:])
    return tf1.nn.fused_batch_norm(x, ones, zeros)


def log_sum(x):
    return np.max(x) + np.log(np.exp(x - np.max(x)).sum())


def values(kind, shape):
    rng = np.random.default_rng(1)
    x = {'0.1': lambda: np.full(shape, .1), 'uniform': lambda: rng.random(shape), 'normal': lambda: rng.standard_normal(shape)}[kind]()
    return x.astype(np.float32)


def main():
    p = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    p.add_argument('--lathe', default='build/bin/lathe')
    p.add_argument('--elements', default='100,10000,1000000')
    p.add_argument('--modes', default='plain')
    p.add_argument('--kinds', default='', help='only kinds whose names hold this')
    a = p.parse_args()
    tf_fuzz.SECONDS, tf_fuzz.MEMORY, tf_fuzz.RESIDENT = 600, 24 << 30, 12 << 30  # 10^7 of something are no small graph
    bad = 0
    for n in [int(v) for v in a.elements.split(',')]:
        for name, shape, make, exact, terms in kinds(n):
            if a.kinds not in name:
                continue
            # segments are added up in order, row by row, as TensorFlow does
            cells, allowed = [], terms if name.endswith('segment') else 2 * np.log2(max(terms, 2)) + 8
            for kind in ('0.1', 'uniform', 'normal'):
                x = values(kind, shape)
                graph = tf.Graph()
                with graph.as_default():
                    p_x = tf1.placeholder(tf.float32, shape)
                    y = tf.identity(make(p_x))
                    with tf1.Session() as s:
                        theirs = s.run(y, {p_x: x})
                want, size = exact(x.astype(np.float64))
                case = tf_fuzz.Case('case', graph.as_graph_def().SerializeToString(), {p_x.name: x}, [y.name], [theirs], [0.], {'Sum'})
                row = []
                for mode in a.modes.split(','):
                    with tempfile.TemporaryDirectory() as root:
                        case.write(os.path.join(root, 'case'))
                        status = tf_fuzz.run_batch(a.lathe, mode, root, ['case'])['case']
                        if status[0] != 'ok':
                            print(name, status)
                            bad += 1
                            continue
                        got = np.load(os.path.join(root, 'case', 'actual_0_0.npy'))
                    row.append(float(np.max(np.abs(got - want) / (EPS * size))))
                bad += max(row, default=0) > allowed
                cells.append('%.2f | %.2f' % (max(row, default=np.nan), np.max(np.abs(theirs - want) / (EPS * size))))
            print('| %s | %d | %s | %.0f |' % (name, n, ' | '.join(cells), allowed), flush=True)
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
