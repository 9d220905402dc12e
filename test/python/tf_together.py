"""tf_together.py first|last: lathe and TensorFlow in one process, TensorFlow imported first or last."""
import os
import sys
import tempfile
import unittest

if sys.argv.pop(1) == "first":
    import tensorflow as tf
    import lathe
else:
    import lathe
    import tensorflow as tf

import numpy as np

tf1 = tf.compat.v1


class Together(unittest.TestCase):
    def test_both_run(self):
        a = np.arange(6, dtype=np.float32).reshape(2, 3)
        theirs = tf.nn.softmax(a @ a.T).numpy()
        g = tf1.Graph()
        with g.as_default():
            x = tf1.placeholder(tf.float32, [None, 3], name="x")
            y = tf.nn.softmax(tf.matmul(x, x, transpose_b=True))
        with lathe.Session(graph=g) as session, tf1.Session(graph=g) as other:
            np.testing.assert_allclose(session.run(y, {x: a}), theirs, rtol=1e-6)
            np.testing.assert_allclose(other.run(y, {x: a}), theirs, rtol=1e-6)
        with lathe.Session(g.as_graph_def()) as session:
            np.testing.assert_allclose(session.run(y.name, {x.name: a}), theirs, rtol=1e-6)

    def test_graphs_grow(self):
        g = tf1.Graph()
        with g.as_default():
            v = tf1.get_variable("v", initializer=np.ones(2, np.float32), use_resource=True)
            ref = tf1.get_variable("ref", initializer=np.ones(3, np.float32), use_resource=False)
            start = tf1.global_variables_initializer()
        with lathe.Session(graph=g) as session:
            with self.assertRaises(tf.errors.FailedPreconditionError) as caught:
                session.run(v)
            self.assertIsInstance(caught.exception, lathe.errors.FailedPreconditionError)
            session.run(start)
            values = session.run({"v": v, "ref": [ref]})
            np.testing.assert_array_equal(values["v"], [1, 1])
            np.testing.assert_array_equal(v.eval(), [1, 1])
            self.assertIs(tf1.get_default_session(), session)
            up = tf1.assign_add(v, [1.0, 2.0])
            np.testing.assert_array_equal(session.run(up), [2, 3])
            up.op.run()
            np.testing.assert_array_equal(session.run(v), [3, 5])
        self.assertIsNone(tf1.get_default_session())

    def test_errors_know_their_operation(self):
        g = tf1.Graph()
        with g.as_default():
            i = tf1.placeholder(tf.int32, [None])
            pick = tf.gather(tf.constant([1.0, 2.0]), i, name="pick")
            q = tf1.FIFOQueue(2, [tf.float32])
            take, shut = q.dequeue(name="take"), q.close()
        with lathe.Session(graph=g) as session:
            with self.assertRaises(tf.errors.InvalidArgumentError) as caught:
                session.run(pick, {i: [5]})
            self.assertEqual((caught.exception.op.name, caught.exception.node_def.op), ("pick", "GatherV2"))
            with self.assertRaises(tf.errors.DeadlineExceededError):
                session.run(take, options=tf1.RunOptions(timeout_in_ms=50))
            session.run(shut)
            with self.assertRaises(tf.errors.OutOfRangeError):
                session.run(take)

    def test_composite_tensors(self):
        g = tf1.Graph()
        with g.as_default():
            sparse = tf1.sparse_placeholder(tf.float32, [4, 4])
            dense, ordered = tf.sparse.to_dense(sparse), tf.sparse.reorder(sparse)
            ragged = tf.RaggedTensor.from_row_splits(tf.constant([1, 2, 3]), [0, 2, 3])
        value = tf1.SparseTensorValue(np.array([[0, 1], [2, 3]]), np.array([5, 6], np.float32), [4, 4])
        with lathe.Session(graph=g) as session:
            got = session.run(dense, {sparse: value})
            self.assertEqual((got[0, 1], got[2, 3], got.sum()), (5, 6, 11))
            back = session.run(ordered, {sparse: value})
            self.assertIsInstance(back, tf1.SparseTensorValue)
            np.testing.assert_array_equal(back.values, [5, 6])
            rows = session.run(ragged)
            self.assertEqual(rows.to_list(), [[1, 2], [3]])

    def test_savers(self):
        g = tf1.Graph()
        with g.as_default(), tempfile.TemporaryDirectory() as folder:
            v = tf1.get_variable("v", initializer=np.arange(4, dtype=np.float32))
            start, saver = tf1.global_variables_initializer(), tf1.train.Saver()
            with lathe.Session(graph=g) as session:
                session.run(start)
                path = saver.save(session, os.path.join(folder, "model"))
            with lathe.Session(graph=g) as session:
                saver.restore(session, path)
                np.testing.assert_array_equal(session.run(v), np.arange(4))
            with lathe.Session(path + ".meta") as session:
                session.restore()
                np.testing.assert_array_equal(session.run("v/Read/ReadVariableOp:0"), np.arange(4))

    def test_keras_models(self):
        model = tf.keras.Sequential([tf.keras.layers.Input((3,), name="x"), tf.keras.layers.Dense(4, activation="relu"), tf.keras.layers.Dense(2)])
        x = np.random.default_rng(1).normal(size=(5, 3)).astype(np.float32)
        expected = model(x).numpy()
        with lathe.load_saved_model(model) as loaded:
            got, = loaded.signatures["serving_default"](x).values()
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
        with tempfile.TemporaryDirectory() as folder:
            lathe.compile(model, os.path.join(folder, "keras"), emit="so", cpu="host")
            got, = lathe.load(os.path.join(folder, "keras.so"))(x).values()
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)

    def test_eager_tensors_are_feeds(self):
        g, eager = tf1.Graph(), tf.constant([1.5, 2.0], tf.bfloat16)
        with g.as_default():
            x = tf1.placeholder(tf.bfloat16, [None])
            y = tf.identity(x)
        with lathe.Session(graph=g) as session:
            got = session.run(y, {x: eager})
            self.assertEqual(got.dtype, tf.bfloat16.as_numpy_dtype)
            self.assertEqual(got.astype(np.float32).tolist(), [1.5, 2.0])
            with self.assertRaises(TypeError):
                session.run(y, {x: y})
            with self.assertRaises(ValueError):
                session.run(tf1.Graph().create_op("NoOp", [], []))

    def test_traces(self):
        g = tf1.Graph()
        with g.as_default():
            y = tf.strings.join([tf.constant(["a"]), tf.constant("b")])
        metadata = tf1.RunMetadata()
        with lathe.Session(graph=g) as session:
            session.run(y, options=tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE), run_metadata=metadata)
        self.assertTrue(metadata.step_stats.dev_stats[0].node_stats)


if __name__ == "__main__":
    unittest.main()
