"""Runs seeded random ops three times each on TensorFlow (needs tensorflow-cpu from PyPI) and writes what they gave to
goldens/random_streams.json."""
import base64
import json
import os

os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_eager_execution()
R = tf.raw_ops
SEEDS = dict(seed=7, seed2=11)
cases = []


def add(name, make):
    with tf.Graph().as_default() as graph:
        out = make()
        config = tf1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
        with tf1.Session(graph=graph, config=config) as session:
            runs = [np.asarray(session.run(out)).astype(np.float64).reshape(-1).tolist() for _ in range(3)]
        text = base64.b64encode(graph.as_graph_def().SerializeToString()).decode()
        cases.append({'name': name, 'graph': text, 'fetch': out.name, 'runs': runs})


for dtype in (tf.float32, tf.float64, tf.float16, tf.bfloat16):
    for op in (R.RandomUniform, R.RandomStandardNormal, R.TruncatedNormal):
        add(op.__name__ + '_' + dtype.name, lambda: op(shape=[5], dtype=dtype, **SEEDS))
    logits = [[0., 1., 2.], [2., 1., -1.]]
    add('Multinomial_' + dtype.name, lambda: R.Multinomial(logits=tf.constant(logits, dtype), num_samples=5, **SEEDS))
for dtype in (tf.int32, tf.int64):
    add('RandomUniformInt_' + dtype.name,
        lambda: R.RandomUniformInt(shape=[5], minval=tf.constant(-3, dtype), maxval=tf.constant(1000, dtype), **SEEDS))
add('RandomShuffle', lambda: R.RandomShuffle(value=tf.range(7.), **SEEDS))
add('RandomGamma', lambda: R.RandomGamma(shape=[3], alpha=tf.constant([0.5, 3.]), **SEEDS))
add('RandomPoissonV2', lambda: R.RandomPoissonV2(shape=[3], rate=tf.constant([0.5, 30.]), dtype=tf.float32, **SEEDS))
for i, (mean, deviation, low, high) in enumerate([(0., 1., -2., 2.), (0., 1., 3., 4.), (1., 2., 6., float('inf')),
                                                  (0., 1., 0.2, 0.4)]):
    add('ParameterizedTruncatedNormal_%d' % i,
        lambda: R.ParameterizedTruncatedNormal(shape=[5], means=tf.constant(mean), stdevs=tf.constant(deviation),
                                               minvals=tf.constant(low), maxvals=tf.constant(high), **SEEDS))
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'goldens', 'random_streams.json')
with open(path, 'w') as f:
    f.write('[\n' + ',\n'.join(json.dumps(case) for case in cases) + '\n]\n')
