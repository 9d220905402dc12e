#!/usr/bin/env python3
"""Writes test/data/import with TensorFlow: python3 test/tools/make_import_models.py OUT_DIR

tf1_ref, tf1_resource: TF1 signatures over reference and resource variables, with a v1 conditional;
tf2: captured variables, nested functions, While, If, an assignment; checkpoint: a MetaGraph beside its checkpoint.
"""
import os
import sys

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1


def write_tf1(out, name, use_resource, checkpoint=False):
    (tf1.enable_resource_variables if use_resource else tf1.disable_resource_variables)()
    with tf1.Graph().as_default() as graph, tf1.Session() as session:
        x = tf1.placeholder(tf.float32, [None, 3], name="x")
        w = tf1.get_variable("w", initializer=np.arange(6, dtype=np.float32).reshape(3, 2))
        b = tf1.get_variable("scope/b", initializer=np.array([1, 2], np.float32))
        y = tf.identity(tf.matmul(x, w) + b, name="y")
        z = tf.identity(tf1.cond(tf.reduce_sum(y) > 0, lambda: y * w[0], lambda: y - b, name="c"), name="z")
        tf1.assign_add(b, [1.0, 1.0], name="bump")
        session.run(tf1.global_variables_initializer())
        if checkpoint:
            folder = os.path.join(out, name)
            os.makedirs(folder, exist_ok=True)
            tf1.train.Saver().save(session, os.path.join(folder, "model"))
            tf.io.write_graph(graph.as_graph_def(), folder, "graph.pbtxt", as_text=True)
            return
        predict = tf1.saved_model.signature_def_utils.predict_signature_def
        builder = tf1.saved_model.Builder(os.path.join(out, name))
        builder.add_meta_graph_and_variables(
            session, ["serve"],
            {"serving_default": predict({"in": x}, {"out": y, "cond": z}), "other": predict({"in": x}, {"out": z})})
        builder.save()


class Model(tf.Module):
    def __init__(self):
        self.w = tf.Variable(np.arange(4, dtype=np.float32).reshape(2, 2), name="w")
        self.n = tf.Variable(0, name="n")
        self.e = tf.Variable(np.arange(10, dtype=np.float32).reshape(5, 2), name="emb")

    @tf.function
    def inner(self, x):
        return tf.matmul(x, self.w)

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32), tf.TensorSpec([None], tf.int32)])
    def f(self, x, ids):
        y = self.inner(x)
        for _ in tf.range(3):
            y = tf.tanh(tf.matmul(y, self.w)) + self.inner(y)
        if tf.reduce_sum(y) > 0:
            y = y + self.w[0]
        else:
            y = y - self.w[1]
        return {"y": y, "e": tf.gather(self.e, ids)}

    @tf.function(input_signature=[tf.TensorSpec([2], tf.float32)])
    def count(self, v):
        self.n.assign_add(1)
        return {"n": self.n.read_value(), "v": v + self.w[0]}


def main():
    out = sys.argv[1]
    model = Model()
    tf.saved_model.save(model, os.path.join(out, "tf2"), signatures={"serving_default": model.f, "count": model.count})
    tf1.disable_eager_execution()
    write_tf1(out, "checkpoint", False, checkpoint=True)
    tf1.disable_control_flow_v2()
    write_tf1(out, "tf1_ref", False)
    write_tf1(out, "tf1_resource", True)


if __name__ == "__main__":
    main()
