"""training.py FOLDER: what TensorFlow's training of a small transformer and of an LSTM gives, for test/e2e/training.test.

For each model FOLDER/NAME has forward.pb (a graph up to its loss, first weights included), forward.txt (the loss, and the variables
with what reads them) and expected.npz: the gradients of the first step, and the losses of 100 steps of gradient descent and of Adam."""
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf

from training_data import batches

tf1 = tf.compat.v1
STEPS, SGD_RATE, ADAM_RATE = 100, 0.5, 0.003


class Variables:
    """Variables whose value is read once, so that gradients are taken by it."""

    def __init__(self):
        self.random, self.all = np.random.RandomState(3), []

    def __call__(self, name, *shape, first=None):
        if first is None:
            first = self.random.normal(0, 1 / np.sqrt(shape[0]), shape)
        handle = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=shape, shared_name=name, name=name)
        init = tf.raw_ops.AssignVariableOp(resource=handle, value=np.asarray(first, np.float32), name=name + "/Assign")
        value = tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32, name=name + "/Read")
        value.set_shape(shape)
        self.all.append((handle, init, value))
        return value


def layer_norm(x, v, name, size):
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    return (x - mean) * tf1.rsqrt(variance + 1e-5) * v(name + "_gain", size, first=np.ones(size)) + v(name + "_bias", size, first=np.zeros(size))


def transformer(v):
    """Two layers of causal attention over words of 17 kinds."""
    length, size, heads, kinds = 16, 32, 2, 17
    words = tf1.placeholder(tf.int32, [None, length], name="words")
    x = tf.gather(v("embedding", kinds, size), words) + v("positions", length, size) * 0.1
    mask = tf.constant(np.triu(np.full((length, length), -1e9, np.float32), 1))
    for k in range(2):
        n = "layer%d_" % k
        y = layer_norm(x, v, n + "norm1", size)
        qkv = tf.reshape(tf.matmul(tf.reshape(y, [-1, size]), v(n + "qkv", size, 3 * size)), [-1, length, 3, heads, size // heads])
        q, key, value = tf.unstack(tf.transpose(qkv, [2, 0, 3, 1, 4]))
        scores = tf.matmul(q, key, transpose_b=True) * (heads / size) ** 0.5 + mask
        mixed = tf.transpose(tf.matmul(tf.nn.softmax(scores), value), [0, 2, 1, 3])
        x += tf.reshape(tf.matmul(tf.reshape(mixed, [-1, size]), v(n + "out", size, size)), [-1, length, size])
        y = layer_norm(x, v, n + "norm2", size)
        hidden = tf.nn.gelu(tf.tensordot(y, v(n + "up", size, 2 * size), 1) + v(n + "up_bias", 2 * size, first=np.zeros(2 * size)))
        x += tf.tensordot(hidden, v(n + "down", 2 * size, size), 1)
    logits = tf.einsum("bld,dk->blk", layer_norm(x, v, "norm", size), v("logits", size, kinds))
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=words[:, 1:], logits=logits[:, :-1]), name="loss")


def lstm(v):
    """A loop over the eight rows of a digit."""
    size = 32
    rows = tf1.placeholder(tf.float32, [None, 8, 8], name="rows")
    labels = tf1.placeholder(tf.int32, [None], name="labels")
    weights, bias = v("weights", 8 + size, 4 * size), v("bias", 4 * size, first=np.zeros(4 * size))
    steps = tf.transpose(rows, [1, 0, 2])

    def step(t, c, h):
        i, g, f, o = tf.split(tf.matmul(tf.concat([tf.gather(steps, t), h], 1), weights) + bias, 4, 1)
        c = tf.sigmoid(f + 1.0) * c + tf.sigmoid(i) * tf.tanh(g)
        return t + 1, c, tf.sigmoid(o) * tf.tanh(c)
    zeros = tf.zeros([tf.shape(rows)[0], size])
    h = tf.while_loop(lambda t, c, h: t < 8, step, [0, zeros, zeros], shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, size]), tf.TensorShape([None, size])])[2]
    logits = tf.matmul(h, v("logits", size, 10)) + v("logits_bias", 10, first=np.zeros(10))
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits), name="loss")


def train(session, loss, step, name, digits):
    return [session.run([loss, step], feeds)[0] for feeds in batches(digits, name, STEPS)]


def adam_step(v, grads, power):
    """tf.compat.v1.train.AdamOptimizer on handles."""
    inits, updates = [], []
    for (handle, _, value), g in zip(v.all, grads):
        m, n = (tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=value.shape, shared_name=handle.op.name + s) for s in ("/m", "/v"))
        inits += [tf.raw_ops.AssignVariableOp(resource=s, value=tf.zeros(value.shape)) for s in (m, n)]
        updates.append(tf.raw_ops.ResourceApplyAdam(var=handle, m=m, v=n, beta1_power=0.9 ** power, beta2_power=0.999 ** power, lr=ADAM_RATE,
                                                    beta1=0.9, beta2=0.999, epsilon=1e-8, grad=g))
    return tf.group(inits), tf.group(updates)


def record(name, make, folder, digits):
    with tf.Graph().as_default() as graph:
        v = Variables()
        loss = make(v)
        os.makedirs(folder, exist_ok=True)
        open(os.path.join(folder, "forward.pb"), "wb").write(graph.as_graph_def().SerializeToString())
        with open(os.path.join(folder, "forward.txt"), "w") as out:
            out.write("loss %s\n" % loss.name)
            for handle, init, value in v.all:
                out.write("variable %s %s %s\n" % (handle.name, init.name, value.name))
        grads = [tf.convert_to_tensor(g) for g in tf1.gradients(loss, [value for _, _, value in v.all])]
        descend = tf.group([tf.raw_ops.ResourceApplyGradientDescent(var=h, alpha=SGD_RATE, delta=g) for (h, _, _), g in zip(v.all, grads)])
        power = tf1.placeholder(tf.float32, [])
        adam_init, adam = adam_step(v, grads, power)
        init = tf.group([i for _, i, _ in v.all])
        with tf1.Session() as session:
            session.run(init)
            expected = {"grad_%d" % k: g for k, g in enumerate(session.run(grads, next(batches(digits, name, 1))))}
            expected["sgd"] = np.array(train(session, loss, descend, name, digits))
            session.run([init, adam_init])
            expected["adam"] = np.array([session.run([loss, adam], {**feeds, power: k + 1})[0] for k, feeds in enumerate(batches(digits, name, STEPS))])
        np.savez_compressed(os.path.join(folder, "expected.npz"), **expected)
        print("%s: SGD %.4f to %.4f, Adam to %.4f" % (name, expected["sgd"][0], expected["sgd"][-1], expected["adam"][-1]))


def main():
    digits = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/digits/data")
    for name, make in (("transformer", transformer), ("lstm", lstm)):
        record(name, make, os.path.join(sys.argv[1], name), digits)


if __name__ == "__main__":
    main()
