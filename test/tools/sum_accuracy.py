"""sum_accuracy.py --lathe build/bin/lathe [--elements 100,10000,1000000]: how exact long sums are.

For each kind of reduction the largest error against f64, as a multiple of eps sum|x|, beside what (2 log2(n) + 8) allows, and
beside TensorFlow's own. Numbers of three kinds: all 0.1, uniform in [0, 1), normal.  Needs TensorFlow, which makes the graphs.
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


def values(kind, shape):
    rng = np.random.default_rng(1)
    x = {'0.1': lambda: np.full(shape, .1), 'uniform': lambda: rng.random(shape), 'normal': lambda: rng.standard_normal(shape)}[kind]()
    return x.astype(np.float32)


def main():
    p = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    p.add_argument('--lathe', default='build/bin/lathe')
    p.add_argument('--elements', default='100,10000,1000000')
    p.add_argument('--modes', default='plain')
    a = p.parse_args()
    bad = 0
    for n in [int(v) for v in a.elements.split(',')]:
        for name, shape, make, exact, terms in kinds(n):
            cells, allowed = [], 2 * np.log2(max(terms, 2)) + 8
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
                    root = tempfile.mkdtemp()
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
