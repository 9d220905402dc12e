"""tf_softmax_queue.py DIGITS: softmax regression fed by queue runners, a program for tf.compat.v1. Runs with TensorFlow's session, then with
Lathe's in its place; the losses agree."""
import sys

import numpy as np
import tensorflow as tf

import lathe

tf1 = tf.compat.v1
tf1.disable_eager_execution()
digits = np.load(sys.argv[1])
images = digits["train_images"].reshape(len(digits["train_images"]), -1).astype(np.float32)
labels = digits["train_labels"].reshape(len(images), -1)
classes = (labels.argmax(1) if labels.shape[1] > 1 else labels[:, 0]).astype(np.int64)


def train(session_class):
    with tf1.Graph().as_default():
        tf1.set_random_seed(1)
        row = tf1.train.range_input_producer(1280, shuffle=False).dequeue()
        image, label = tf1.train.batch([tf.gather(tf.constant(images), row), tf.gather(tf.constant(classes), row)], batch_size=64,
                                       num_threads=1, capacity=256)
        w = tf1.get_variable("w", [images.shape[1], 10], initializer=tf1.zeros_initializer())
        b = tf1.get_variable("b", [10], initializer=tf1.zeros_initializer())
        logits = tf.matmul(image, w) + b
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=label, logits=logits))
        step = tf1.train.GradientDescentOptimizer(0.5).minimize(loss)
        x = tf1.placeholder(tf.float32, [None, images.shape[1]])
        predicted = tf.argmax(tf.matmul(x, w) + b, 1)
        losses = []
        with session_class() as session:
            session.run([tf1.global_variables_initializer(), tf1.local_variables_initializer()])
            coordinator = tf1.train.Coordinator()
            threads = tf1.train.start_queue_runners(sess=session, coord=coordinator)
            try:
                for _ in range(100):
                    losses.append(session.run([loss, step])[0])
            finally:
                coordinator.request_stop()
                coordinator.join(threads, stop_grace_period_secs=20)
            accuracy = (session.run(predicted, feed_dict={x: images}) == classes).mean()
    return np.array(losses), accuracy


expected, accuracy = train(tf1.Session)
got, ours = train(lathe.Session)
np.testing.assert_allclose(got, expected, rtol=1e-3)
assert ours > 0.9 and abs(ours - accuracy) < 0.01, (ours, accuracy)
print(f"loss {got[0]:.4f} to {got[-1]:.4f}, accuracy {ours:.4f}; TensorFlow's {accuracy:.4f}")
