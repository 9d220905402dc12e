"""Writes test/data/pipelines/NAME.pb and NAME.npz: input pipelines as TensorFlow's Python front end builds them, and the
elements that TensorFlow got out of them. usage: make_pipelines.py   (needs tensorflow-cpu from PyPI)"""
import os

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'data', 'pipelines')


def write(name, build, runs):
    """`build` gives the fetches and an initialiser or None; fetched `runs` times, or until the end if that is None."""
    with tf.Graph().as_default() as graph:
        fetches, init = build()
        fetches = [tf.identity(f, 'out%d' % i) for i, f in enumerate(fetches)]
        if init is not None:
            tf.group(init, name='init')
        found = {}
        with tf1.Session() as session:
            if init is not None:
                session.run(init)
            count = 0
            while runs is None or count < runs:
                try:
                    values = session.run(fetches)
                except tf.errors.OutOfRangeError:
                    break
                for i, v in enumerate(values):
                    v = np.asarray(v)
                    found['%d/%d' % (count, i)] = v.astype('S') if v.dtype == object else v
                count += 1
        with open(os.path.join(OUT, name + '.pb'), 'wb') as f:
            f.write(graph.as_graph_def().SerializeToString(deterministic=True))
        found['count'] = np.int64(count)
        np.savez(os.path.join(OUT, name + '.npz'), **found)


def mapped():
    tf1.set_random_seed(4)
    x = np.arange(40, dtype=np.float32).reshape(20, 2)
    captured = tf.constant([10.0, 20.0])
    data = tf1.data.Dataset.from_tensor_slices((x, np.arange(20)))
    data = data.shuffle(8, seed=5).map(lambda a, i: (a * 2 + captured, i % 3), num_parallel_calls=2)
    data = data.filter(lambda a, i: i < 2).batch(3).repeat(2).prefetch(2)
    iterator = tf1.data.make_initializable_iterator(data)
    return iterator.get_next(), iterator.initializer


def nested():
    data = tf1.data.Dataset.range(6)
    data = data.interleave(lambda i: tf1.data.Dataset.range(i).map(lambda j: i * 10 + j), cycle_length=3, block_length=2)
    data = data.map(lambda v: tf.range(v % 4)).padded_batch(4, padded_shapes=[None], padding_values=tf.constant(-1, tf.int64))
    return [tf1.data.make_one_shot_iterator(data).get_next()], None


def windows():
    data = tf1.data.Dataset.range(11).window(3, shift=2, drop_remainder=True).flat_map(lambda w: w.batch(3))
    data = data.take(4).concatenate(tf1.data.Dataset.from_tensors(np.int64([7, 7, 7]))).cache()
    data = tf1.data.Dataset.zip((data, data.repeat()))
    return tf1.data.make_one_shot_iterator(data).get_next(), None


def reduced():
    data = tf1.data.Dataset.range(10)
    total = data.reduce(np.int64(5), lambda s, v: s * 2 + v)
    text = tf1.data.Dataset.from_tensor_slices(['b', 'a', 'c']).map(lambda s: tf.strings.join([s, '!']))
    single = tf1.data.experimental.get_single_element(text.batch(3))
    scan = data.apply(tf1.data.experimental.scan(np.int64(0), lambda s, v: (s + v, s + v))).skip(2).shard(2, 1)
    return [total, single] + [tf1.data.experimental.get_single_element(scan.batch(10))], None


if __name__ == '__main__':
    os.makedirs(OUT, exist_ok=True)
    write('mapped', mapped, None)
    write('nested', nested, None)
    write('windows', windows, None)
    write('reduced', reduced, 1)
