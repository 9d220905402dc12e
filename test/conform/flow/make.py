"""make.py FOLDER: writes flow_*.zip, the cases of this folder's modules and those that keep state from step to step."""
import contextlib
import os
import sys
import zipfile

import numpy as np
import tensorflow as tf

import cases

tf1 = tf.compat.v1


@contextlib.contextmanager
def graph_of(v1):
    """A graph that loops and conditions are added to as Enter, Switch and Merge, or as While and If."""
    (tf1.disable_control_flow_v2 if v1 else tf1.enable_control_flow_v2)()
    graph = tf.Graph()
    with graph.as_default():
        yield graph
    tf1.enable_control_flow_v2()


def loop_from_variable(archive):
    """A loop whose state starts as a variable leaves the variable as it is, run by run."""
    graph = tf.Graph()
    with graph.as_default():
        state = tf1.get_variable("state", initializer=np.ones([2, 3], np.float32), use_resource=True)
        weights = tf1.get_variable("weights", initializer=cases.rnd(3, 3), use_resource=True)
        x = tf1.placeholder(tf.float32, [4, 2, 3], name="x")
        _, last = tf.while_loop(lambda i, _: i < 4, lambda i, s: (i + 1, tf.tanh(tf.matmul(s, weights) + x[i])), (0, state))
        tf.identity(last, name="last")
        tf1.global_variables_initializer()
    feed = {"x:0": cases.rnd(4, 2, 3)}
    cases.run(archive, "loop_from_variable", graph,
              [({}, [], ["init"]), (feed, ["last:0"], []), (feed, ["last:0"], []), ({}, ["state/Read/ReadVariableOp:0"], [])])


def call_waits_for_assignment(archive):
    """What a call waits for runs although nothing in the function has to wait for it."""
    graph = tf.Graph()
    with graph.as_default():
        v = tf1.get_variable("v", initializer=np.float32(1), use_resource=True)
        with tf.control_dependencies([tf1.assign_add(v, 1.0)]):
            y = tf.function(lambda: tf.constant(3.0))()
        tf.identity(y, name="y")
        tf1.global_variables_initializer()
    cases.run(archive, "call_waits_for_assignment", graph,
              [({}, [], ["init"]), ({}, ["y:0"], []), ({}, ["v/Read/ReadVariableOp:0"], [])])


def generators_of_one_name(archive):
    """Seeded nodes of one name in the graph and in a loop's body are two generators."""
    graph = tf.Graph()
    with graph.as_default():
        tf1.set_random_seed(5)
        outside = tf1.random_normal([3], seed=1, name="noise")
        _, inside = tf.while_loop(lambda i, _: i < 3, lambda i, s: (i + 1, s + tf1.random_normal([3], seed=2, name="noise")),
                                  (0, outside))
        tf.identity(inside, name="y")
    cases.run(archive, "generators_of_one_name", graph, [({}, ["y:0"], [])] * 2)


def tables(archive):
    """Exports have TensorFlow's order and shapes."""
    graph = tf.Graph()
    with graph.as_default():
        keys = tf.constant([684, 559, 629, 192, 835, 763, 707, 359, 9, 723], tf.int64)
        table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, -1)
        dense = tf.lookup.experimental.DenseHashTable(tf.int64, tf.float32, [0.0, 0.0], -1, -2, initial_num_buckets=8)
        fill = tf.group(table.insert(keys, keys * 2), dense.insert(keys[:3], cases.rnd(3, 2)), name="fill")
        names = [t.name for t in table.export()] + [t.name for t in dense.export()]
    cases.run(archive, "tables", graph, [({}, [], [fill.name]), ({}, names, [])])


def counting_condition(archive, v1):
    """A loop's condition counts how often it is asked, and what it decides depends on it; so does a condition of a function's loop."""
    with graph_of(v1) as graph:
        asked = tf1.get_variable("asked", initializer=np.int32(0), use_resource=True)
        total = tf1.get_variable("total", initializer=np.float32(0), use_resource=True)
        x = tf1.placeholder(tf.float32, [3], name="x")

        def condition(i, y):
            with tf.control_dependencies([total.assign_add(tf.reduce_sum(y)), asked.assign_add(1)]):
                return tf.logical_and(total.read_value() < 10.0, i < asked.read_value() + 3)

        def body(i, y):
            with tf.control_dependencies([asked.assign_add(2)]):
                return i + 2, y * 1.25

        i, y = tf.while_loop(condition, body, (0, x))

        @tf.function
        def collect(y):
            items = tf.TensorArray(tf.float32, 0, dynamic_size=True)
            while asked.assign_add(3, read_value=True) < 40:
                items = items.write(items.size(), tf.reduce_sum(y) * tf.cast(asked, tf.float32))
            return items.stack()

        tf.identity(i, name="i"), tf.identity(y, name="y"), tf.identity(collect(x), name="items")
        tf1.global_variables_initializer()
    reads = ["asked/Read/ReadVariableOp:0", "total/Read/ReadVariableOp:0"]
    feed = {"x:0": np.array([0.1, 0.2, 0.3], np.float32)}
    cases.run(archive, "counting_condition" + ("_v1" if v1 else ""), graph,
              [({}, [], ["init"]), (feed, ["i:0", "y:0"], []), ({}, reads, []), (feed, ["items:0"], []), ({}, reads, []), (feed, ["i:0", "y:0"], []),
               (feed, ["items:0"], []), ({}, reads, [])])


def assigned_first_in_loop(archive, v1):
    """A variable that nothing initializes is assigned in a loop before the loop reads it."""
    with graph_of(v1) as graph:
        v = tf1.get_variable("v", shape=[8], dtype=tf.float32, initializer=tf1.zeros_initializer(), use_resource=True)
        x = tf1.placeholder(tf.float32, [8], name="x")
        n = tf1.placeholder(tf.int32, [], name="n")

        def body(i, y):
            with tf.control_dependencies([v.assign(tf.sin(y) * 2.0)]):
                return i + 1, tf.cos(y) + v.read_value()

        tf.identity(tf.while_loop(lambda i, _: i < n, body, (0, x))[1], name="y")
    cases.run(archive, "assigned_first_in_loop" + ("_v1" if v1 else ""), graph,
              [({"x:0": cases.rnd(8), "n:0": np.int32(k)}, ["y:0"], []) for k in (0, 3)] + [({}, ["v/Read/ReadVariableOp:0"], [])])


def conditions_in_loop(archive, v1):
    """Conditions in a loop, and in each other, that nothing needs but for what they assign; the loop is on one side of a condition."""
    with graph_of(v1) as graph:
        v = tf1.get_variable("v", initializer=np.float32(1), use_resource=True)
        w = tf1.get_variable("w", initializer=np.float32(0), use_resource=True)
        p = tf1.placeholder(tf.bool, [], name="p")
        x = tf1.placeholder(tf.float32, [4], name="x")

        def add(variable, much):
            return lambda: tf.identity(variable.assign_add(much))

        def body(i, s):
            def positive():
                with tf.control_dependencies([tf.cond(x[i] > 1.0, add(w, 1.0), add(w, 0.25))]):
                    return tf.identity(v.assign_add(w.read_value()))

            with tf.control_dependencies([tf.cond(x[i] > 0.0, positive, add(v, -1.0))]):
                last = tf.cond(v.read_value() > 1.0, lambda: tf.identity(w.assign(w.read_value() * 2.0)), lambda: tf.identity(w.read_value()))
            with tf.control_dependencies([last]):
                return i + 1, s * 1.5

        def loop():
            with tf.control_dependencies(tf.while_loop(lambda i, _: i < 4, body, (0, 1.0), parallel_iterations=1)[1:]):
                return tf.identity(v.read_value())

        with tf.control_dependencies([tf.cond(p, loop, add(v, 10.0))]):
            tf.identity(v.read_value() + 1.0, name="y")
        tf1.global_variables_initializer()
    runs = [({"x:0": 2 * cases.rnd(4, seed=k), "p:0": np.bool_(k != 1)}, ["y:0"], []) for k in range(3)]
    cases.run(archive, "conditions_in_loop" + ("_v1" if v1 else ""), graph,
              [({}, [], ["init"])] + runs + [({}, ["v/Read/ReadVariableOp:0", "w/Read/ReadVariableOp:0"], [])])


def main():
    folder = sys.argv[1]
    for module in ("loops", "sizes", "rnn", "open"):
        __import__(module)
        cases.write(os.path.join(folder, f"flow_{module}.zip"))
    tf1.disable_eager_execution()
    with zipfile.ZipFile(os.path.join(folder, "flow_state.zip"), "w", zipfile.ZIP_DEFLATED) as archive:
        for make in (loop_from_variable, call_waits_for_assignment, generators_of_one_name, tables):
            make(archive)
        for make in (counting_condition, assigned_first_in_loop, conditions_in_loop):
            for v1 in (True, False):
                make(archive, v1)


if __name__ == "__main__":
    main()
