"""tf_training.py [PROGRAM...]: training as programs for tf.compat.v1 write it: optimizers, embeddings, loops, conditionals, normalisation, metrics."""
import threading

import numpy as np
import tensorflow as tf

from tf_programs import main, program, raised, tf1

RNG = np.random.default_rng(0)
X = RNG.normal(size=(64, 20)).astype(np.float32)
Y = (X.sum(1) > 0).astype(np.int32)
STEPS = RNG.normal(size=(3, 6, 3)).astype(np.float32)
IMAGES = RNG.normal(size=(5, 6, 6, 3)).astype(np.float32)
glorot = tf1.glorot_uniform_initializer


def classifier(make):
    def train(Session, folder):
        x, y = tf1.placeholder(tf.float32, [None, 20]), tf1.placeholder(tf.int32, [None])
        w, b = tf1.get_variable("w", [20, 8], initializer=glorot(1)), tf1.get_variable("b", [8], initializer=tf1.zeros_initializer())
        out = tf1.get_variable("out", [8, 2], initializer=glorot(2))
        loss = tf1.losses.sparse_softmax_cross_entropy(y, tf.matmul(tf.nn.relu(tf.matmul(x, w) + b), out)) + 1e-3 * tf.nn.l2_loss(w)
        step = tf1.train.get_or_create_global_step()
        rate = tf1.train.exponential_decay(0.1, step, 5, 0.9, staircase=True)
        optimizer = make(rate)
        pairs = optimizer.compute_gradients(loss)
        clipped, _ = tf.clip_by_global_norm([g for g, _ in pairs], 1.0)
        update = optimizer.apply_gradients(zip(clipped, [v for _, v in pairs]), global_step=step)
        average = tf1.train.ExponentialMovingAverage(0.9, step)
        with tf1.control_dependencies([update]):
            update = average.apply(tf1.trainable_variables())
        with Session() as s:
            s.run(tf1.global_variables_initializer())
            losses = [s.run([loss, update], {x: X, y: Y})[0] for _ in range(12)]
            slots = [optimizer.get_slot(w, name) for name in optimizer.get_slot_names()]
            return np.array(losses), s.run(step), s.run(average.average(w)).sum(), s.run(rate), s.run(slots)
    return train


for name, optimizer in {
        "descent": tf1.train.GradientDescentOptimizer, "momentum": lambda r: tf1.train.MomentumOptimizer(r, 0.9),
        "nesterov": lambda r: tf1.train.MomentumOptimizer(r, 0.9, use_nesterov=True), "adam": tf1.train.AdamOptimizer,
        "rmsprop": tf1.train.RMSPropOptimizer, "centered": lambda r: tf1.train.RMSPropOptimizer(r, centered=True),
        "adagrad": tf1.train.AdagradOptimizer, "adadelta": tf1.train.AdadeltaOptimizer, "ftrl": tf1.train.FtrlOptimizer,
        "proximal": tf1.train.ProximalGradientDescentOptimizer}.items():
    train = classifier(optimizer)
    train.__name__ = "classifier_" + name
    program(train)


@program
def embeddings(Session, folder):
    ids, sparse = tf1.placeholder(tf.int32, [None]), tf1.sparse_placeholder(tf.int64, [3, 5])
    normal = tf1.random_normal_initializer(seed=1)
    e, r = tf1.get_variable("e", [50, 4], initializer=normal), tf1.get_variable("r", [50, 4], initializer=normal, use_resource=False)
    rows = tf.nn.embedding_lookup(e, ids) + tf.nn.embedding_lookup(r, ids)
    means = tf1.nn.embedding_lookup_sparse(e, sparse, None, combiner="mean")
    loss = tf.reduce_sum(rows ** 2) + tf.reduce_sum(means)
    steps = [o.minimize(loss) for o in (tf1.train.AdamOptimizer(0.1), tf1.train.MomentumOptimizer(0.1, .9), tf1.train.AdagradOptimizer(0.1))]
    fed = {ids: [1, 2, 2, 7], sparse: tf1.SparseTensorValue([[0, 0], [0, 1], [1, 0], [2, 4]], [1, 4, 9, 9], [3, 5])}
    with Session() as s:
        s.run(tf1.global_variables_initializer())
        for step in steps:
            s.run(step, fed)
        return s.run([loss, e, r, rows, means], fed)


def recurrent(Session):
    x, length = tf1.placeholder(tf.float32, [None, 6, 3]), tf1.placeholder(tf.int32, [None])
    w = tf1.get_variable("w", [7, 16], initializer=glorot(1))

    def step(t, c, h, array):
        i, f, o, g = tf.split(tf.matmul(tf.concat([x[:, t], h], 1), w), 4, 1)
        later = c * tf.sigmoid(f) + tf.sigmoid(i) * tf.tanh(g)
        on = tf.broadcast_to((t < length)[:, None], tf.shape(c))
        h = tf.where(on, tf.sigmoid(o) * tf.tanh(later), h)
        return t + 1, tf.where(on, later, c), h, array.write(t, h)

    zero = tf.zeros([tf.shape(x)[0], 4])
    _, _, h, array = tf1.while_loop(lambda t, *_: t < 6, step, [0, zero, zero, tf.TensorArray(tf.float32, 6)], parallel_iterations=4)
    loss = tf.reduce_sum(h ** 2) + tf.reduce_mean(array.stack())
    gradient, = tf1.gradients(loss, w)
    update = tf1.train.GradientDescentOptimizer(.1).minimize(loss)
    fed = {x: STEPS, length: [6, 2, 4]}
    with Session() as s:
        s.run(tf1.global_variables_initializer())
        first = s.run([loss, gradient, h], fed)
        for _ in range(5):
            s.run(update, fed)
        return first, s.run(loss, fed)


@program
def loops(Session, folder):
    return recurrent(Session)


@program
def loops_of_the_first_kind(Session, folder):
    tf1.disable_control_flow_v2()
    try:
        return recurrent(Session)
    finally:
        tf1.enable_control_flow_v2()


@program
def conditionals_of_the_first_kind(Session, folder):
    tf1.disable_control_flow_v2()
    try:
        p = tf1.placeholder(tf.bool, [])
        v, w = tf1.get_variable("v", initializer=2.0), tf1.get_variable("w", initializer=1.0, use_resource=False)
        either = tf1.cond(p, lambda: tf1.assign_add(w, 1.0) * v, lambda: v - 1)
        slope, = tf1.gradients(tf1.cond(p, lambda: v * v, lambda: v * 3), v)
        chosen = tf1.case([(p, lambda: tf.constant(1)), (v > 5, lambda: tf.constant(2))], default=lambda: tf.constant(3))
        counted = tf1.while_loop(lambda i, a: i < 5, lambda i, a: (i + 1, tf1.cond(i % 2 > 0, lambda: a * v, lambda: a + 1)), [0, tf.constant(1.0)])
        with Session() as s:
            s.run(tf1.global_variables_initializer())
            return [s.run([either, slope, chosen, counted], {p: value}) for value in (True, False)], s.run(w)
    finally:
        tf1.enable_control_flow_v2()


@program
def normalisation(Session, folder):
    x = tf1.placeholder(tf.float32, [None, 6, 6, 3])
    kernel = tf1.get_variable("kernel", [3, 3, 3, 4], initializer=glorot(3))
    hidden = tf.nn.conv2d(x, kernel, 1, "SAME")
    one, zero = tf1.ones_initializer(), tf1.zeros_initializer()
    scale, offset = tf1.get_variable("scale", [4], initializer=one), tf1.get_variable("offset", [4], initializer=zero)
    mean, variance = (tf1.get_variable(n, [4], initializer=i, trainable=False) for n, i in (("mean", zero), ("variance", one)))
    y, batch_mean, batch_variance = tf1.nn.fused_batch_norm(hidden, scale, offset, is_training=True)
    inference = tf1.nn.fused_batch_norm(hidden, scale, offset, mean, variance, is_training=False)[0]
    for v, value in ((mean, batch_mean), (variance, batch_variance)):
        tf1.add_to_collection(tf1.GraphKeys.UPDATE_OPS, tf1.assign(v, v * .9 + value * .1))
    loss = tf.reduce_mean((tf.nn.max_pool2d(y, 2, 2, "VALID") - 1) ** 2)
    with tf1.control_dependencies(tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)):
        step = tf1.train.AdamOptimizer(.01).minimize(loss)
    with Session() as s:
        s.run(tf1.global_variables_initializer())
        losses = [s.run([loss, step], {x: IMAGES})[0] for _ in range(6)]
        return np.array(losses), s.run([mean, variance, inference], {x: IMAGES})


@program
def metrics(Session, folder):
    label, guess, score = tf1.placeholder(tf.int32, [None]), tf1.placeholder(tf.int32, [None]), tf1.placeholder(tf.float32, [None])
    m = tf1.metrics
    pairs = [m.accuracy(label, guess), m.mean(score), m.precision(label, guess), m.recall(label, guess), m.auc(label, score),
             m.mean_iou(label, guess, 2), m.mean_squared_error(score, score * 2)]
    with Session() as s:
        s.run(tf1.local_variables_initializer())
        for i in range(3):
            s.run([u for _, u in pairs], {label: [0, 1, 1, 0], guess: [0, 1, 0, i % 2], score: [.1, .9, .4, .2 * i]})
        return s.run([v for v, _ in pairs])


@program
def threads_on_a_growing_graph(Session, folder):
    x, v = tf1.placeholder(tf.float32, []), tf1.get_variable("v", initializer=0.0)
    add = tf1.assign_add(v, x, use_locking=True)
    failed = []
    with Session() as s:
        s.run(v.initializer)

        def work():
            try:
                with s.graph.as_default():
                    y = tf.identity(x) * 2
                for _ in range(50):
                    s.run([add.op, y], {x: 1.0})
            except Exception as e:
                failed.append(repr(e))

        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return s.run(v), failed


@program
def checks_and_maps(Session, folder):
    x = tf1.placeholder(tf.float32, [None])
    with tf1.control_dependencies([tf1.assert_positive(x), tf1.assert_rank(x, 1)]):
        checked = tf.identity(x)
    part = tf1.scatter_nd_update(tf1.get_variable("part", [4], initializer=tf1.zeros_initializer(), use_resource=False), [[1]], [5.0])
    mapped = tf.map_fn(lambda v: v * v, x)
    slopes = tf1.gradients(mapped, x)  # changes the loop, so it comes before the first run
    with Session() as s:
        s.run(tf1.global_variables_initializer())
        fed = {x: [1, 2, 3]}
        return [s.run(checked, {x: [1, 2]}), raised(s.run, checked, {x: [-1.]}), s.run(part), s.run(tf1.report_uninitialized_variables()).tolist(),
                s.run(mapped, fed), s.run(tf.foldl(lambda a, v: a + v, x), fed), s.run(tf.scan(lambda a, v: a + v, x), fed),
                s.run(slopes, fed), s.run(tf1.hessians(tf.reduce_sum(x ** 3), x), fed),
                list(s.run(tf.nn.top_k(x, 2), fed)), list(s.run(tf.unique(tf.constant([1, 1, 2]))))]


if __name__ == "__main__":
    main()
