"""TensorFlow's side of session_overhead: the same graph through tf.compat.v1.Session, Run and a callable. Prints JSON."""
import json
import os
import statistics
import time

os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
import numpy as np
import tensorflow as tf


def median_nanos(run):
    for _ in range(200):
        run()
    rounds = []
    for _ in range(31):
        start = time.perf_counter_ns()
        for _ in range(200):
            run()
        rounds.append((time.perf_counter_ns() - start) / 200)
    return statistics.median(rounds)


with tf.Graph().as_default():
    x = tf.compat.v1.placeholder(tf.float32, name='x')
    y = tf.add(x * x, x, name='y')
    config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    with tf.compat.v1.Session(config=config) as session:
        value = np.zeros(16, np.float32)
        call = session.make_callable(y, [x])
        print(json.dumps({'run_ns': round(median_nanos(lambda: session.run(y, {x: value}))),
                          'callable_ns': round(median_nanos(lambda: call(value)))}))
