"""unet_accuracy.py --lathe build/bin/lathe [--size 256] [--within 2e-5]: a U-Net of instance norms, against TensorFlow and f64.

Seven blocks of two 3x3 convolutions, each with an instance norm and a Relu; the means and variances are sums over all pixels. Prints how
far the answers of Lathe and TensorFlow are from the same graph in f64, and from each other, as shares of the largest magnitude. Fails
where Lathe, with Winograd's algorithm or by --exact without, is further than --within from TensorFlow or f64.
Needs TensorFlow, which makes the graph.
"""
import argparse
import os
import subprocess
import sys
import tempfile

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ.setdefault('CUDA_VISIBLE_DEVICES', '')
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
CHANNELS = [32, 64, 128, 256]


class Weights:
    """The same numbers for each type."""

    def __init__(self, dtype):
        self.dtype, self.rng = dtype, np.random.default_rng(3)

    def __call__(self, *shape):
        scale = np.sqrt(2 / np.prod(shape[:-1])) if len(shape) > 1 else .1
        return tf.constant((self.rng.standard_normal(shape) * scale).astype(np.float32).astype(self.dtype))


def norm(x, w):
    mean, variance = tf.nn.moments(x, [1, 2], keepdims=True)
    n = x.shape[-1]
    return (x - mean) * tf.math.rsqrt(variance + np.asarray(1e-5, w.dtype)) * (1 + w(n)) + w(n)


def block(x, n, w):
    for _ in range(2):
        x = tf.nn.relu(norm(tf.nn.conv2d(x, w(3, 3, x.shape[-1], n), 1, 'SAME'), w))
    return x


def unet(x, w):
    skips = []
    for n in CHANNELS[:-1]:
        skips.append(block(x, n, w))
        x = tf.nn.max_pool2d(skips[-1], 2, 2, 'SAME')
    x = block(x, CHANNELS[-1], w)
    for n in reversed(CHANNELS[:-1]):
        side = x.shape[1] * 2
        x = tf.reshape(tf.tile(x[:, :, None, :, None], [1, 1, 2, 1, 2, 1]), [1, side, side, x.shape[-1]])
        x = block(tf.concat([x, skips.pop()], -1), n, w)
    return tf.nn.conv2d(x, w(1, 1, x.shape[-1], 3), 1, 'SAME')


def build(dtype, size, image):
    """The graph, from x to y, and its answer."""
    graph = tf.Graph()
    with graph.as_default():
        x = tf1.placeholder(dtype, image.shape, name='x')
        y = tf.identity(unet(x, Weights(dtype)), name='y')
        config = tf1.ConfigProto(intra_op_parallelism_threads=1)
        with tf1.Session(config=config) as s:
            return graph.as_graph_def().SerializeToString(), s.run(y, {x: image.astype(dtype)})


def ours(lathe, folder, options):
    """What lathe makes of folder/graph.pb and folder/x.npy."""
    out = os.path.join(folder, 'out.npz')
    subprocess.run([lathe, 'run', os.path.join(folder, 'graph.pb'), '--feed', 'x=' + os.path.join(folder, 'x.npy'), '--output', 'y',
                    '--out', out, *options], check=True, stdout=subprocess.DEVNULL)
    (answer,) = np.load(out).values()
    return answer


def main():
    p = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    p.add_argument('--lathe', default='build/bin/lathe')
    p.add_argument('--size', type=int, default=256)
    p.add_argument('--within', type=float, default=2e-5)
    a = p.parse_args()
    image = np.random.default_rng(1).random((1, a.size, a.size, 3)).astype(np.float32)
    (graph, theirs), (_, want) = build(np.float32, a.size, image), build(np.float64, a.size, image)
    largest = np.max(np.abs(want))

    def off(x, y):
        return float(np.max(np.abs(x.astype(np.float64) - y)) / largest)
    print('| | from f64 | from TensorFlow |')
    print('| TensorFlow | %.2e | |' % off(theirs, want))
    bad = False
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, 'graph.pb'), 'wb') as file:
            file.write(graph)
        np.save(os.path.join(folder, 'x.npy'), image)
        for options in [], ['--cpu', 'x86-64-v3'], ['--exact'], ['--exact', '--threads', '2'], ['--exact', '--cpu', 'x86-64-v2']:
            got = ours(a.lathe, folder, options)
            far = off(got, want), off(got, theirs)
            print('| Lathe %s | %.2e | %.2e |' % (' '.join(options), *far), flush=True)
            bad |= max(far) > a.within
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
