"""optimizers.py FILE: what TensorFlow's optimizers, averages, limits of gradients and schedules give, for test/graph/OptimizerTest.cpp.

A line is a name and numbers. NAME/KIND@T is the variable of start() after step T, by the gradients of whole(T) or, of kind "rows",
rows(T); kinds of SHAPES are whole gradients of another shape. The test has the same formulas."""
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras
import numpy as np
import tensorflow as tf
import tf_keras

tf1 = tf.compat.v1
STEPS, SEEN, SHAPE = 25, (0, 4, 24), (6, 2)
SHAPES = {"whole": (6, 2), "flat": (12,), "wide": (2, 6), "cube": (2, 3, 2)}
SCALES = []  # before each step
AT = (0, 1, 5, 10, 25, 37, 60, 99, 130)


def numbers(count, by, over, offset, scale):
    return np.array([((i * by + offset) % over - over // 2) / scale for i in range(count)], np.float32)


def start():
    return numbers(12, 7, 11, 0, 10).reshape(SHAPE)


def whole(t):
    return numbers(12, 5, 13, 3 * t, 8).reshape(SHAPE)


def rows(t):
    """Values and indices, of which the first and the last are equal."""
    return numbers(6, 5, 13, 3 * t + 1, 8).reshape(3, 2), np.array([t % 6, (3 * t + 1) % 6, t % 6], np.int32)


def scaled(t, scale):
    """What a scaled loss gives; every seventh step overflows."""
    SCALES.append(scale)
    return np.full(SHAPE, np.inf, np.float32) if t % 7 == 3 else whole(t) * np.float32(scale)


def summed(t):
    values, indices = rows(t)
    total = np.zeros(SHAPE, np.float32)
    np.add.at(total, indices, values)
    return total


def first_version(make, kind):
    """An optimizer of tf.compat.v1.train; `make` takes the number of the step."""
    with tf.Graph().as_default():
        w = tf1.get_variable("w", initializer=start(), use_resource=True)
        count = tf1.train.get_or_create_global_step()
        values, indices = tf1.placeholder(tf.float32, [None, 2]), tf1.placeholder(tf.int32, [None])
        gradient = values if kind == "whole" else tf.IndexedSlices(values, indices, tf.constant(SHAPE))
        optimizer = make(count)
        step = optimizer.apply_gradients([(gradient, w)], global_step=count)
        with tf1.Session() as s:
            s.run(tf1.global_variables_initializer())
            for t in range(STEPS):
                s.run(step, {values: whole(t)} if kind == "whole" else dict(zip((values, indices), rows(t))))
                yield t, s.run(w)


def of_keras(make, kind):
    """One of Keras, where rows are made whole."""
    shape = SHAPES.get(kind, SHAPE)
    w = keras.Variable(start().reshape(shape), name="w")
    optimizer = make()
    for t in range(STEPS):
        gradient = summed(t) if kind == "rows" else whole(t)
        if "scaled" in kind:
            gradient = scaled(t, optimizer.dynamic_scale.numpy() if optimizer.built else 1024)
        optimizer.apply([tf.constant(gradient.reshape(shape))], [w])
        yield t, w.numpy()


def of_old_keras(make, kind):
    w = tf.Variable(start())
    optimizer = make()
    for t in range(STEPS):
        values, indices = rows(t)
        optimizer.apply_gradients([(tf.constant(whole(t)) if kind == "whole" else tf.IndexedSlices(tf.constant(values), indices, SHAPE), w)])
        yield t, w.numpy()


def schedule_free(kind, rate=0.01, decay=0.1, warmup=4, beta1=0.9, beta2=0.999, epsilon=1e-8):
    """By its formulas: Keras 3.15 over TensorFlow takes the weights after their move for those before it."""
    y = start().astype(np.float64)
    z, s = y, np.zeros(SHAPE)
    for t in range(STEPS):
        g, n = whole(t) if kind == "whole" else summed(t), t + 1
        y = y * (1 - decay * rate)
        s = s + (g * g - s) * (1 - beta2)
        moved = z - rate * min(n / warmup, 1) * g / (np.sqrt(s / (1 - beta2 ** n)) + epsilon)
        average = (1 - 1 / n) * (y - (1 - beta1) * z) / beta1 + moved / n
        z, y = moved, (1 - beta1) * moved + beta1 * average
        yield t, y


def lazy_adam(kind, rate=0.01, beta1=0.9, beta2=0.999, epsilon=1e-8):
    """TensorFlow has none: Adam by its formulas, of rows with a gradient alone."""
    w, m, v = start().astype(np.float64), np.zeros(SHAPE), np.zeros(SHAPE)
    for t in range(STEPS):
        g = whole(t) if kind == "whole" else summed(t)
        touched = range(6) if kind == "whole" else sorted(set(rows(t)[1]))
        for i in touched:
            m[i] = beta1 * m[i] + (1 - beta1) * g[i]
            v[i] = beta2 * v[i] + (1 - beta2) * g[i] ** 2
            w[i] -= rate * np.sqrt(1 - beta2 ** (t + 1)) / (1 - beta1 ** (t + 1)) * m[i] / (np.sqrt(v[i]) + epsilon)
        yield t, w


def optimizers():
    t = tf1.train
    for name, make in {
            "descent": lambda n: t.GradientDescentOptimizer(0.1), "momentum": lambda n: t.MomentumOptimizer(0.1, 0.9),
            "nesterov": lambda n: t.MomentumOptimizer(0.1, 0.9, use_nesterov=True), "adagrad": lambda n: t.AdagradOptimizer(0.1),
            "adagrad_da": lambda n: t.AdagradDAOptimizer(0.1, n, l1_regularization_strength=0.01, l2_regularization_strength=0.02),
            "adadelta": lambda n: t.AdadeltaOptimizer(0.5), "rmsprop": lambda n: t.RMSPropOptimizer(0.01, momentum=0.5),
            "rmsprop_centered": lambda n: t.RMSPropOptimizer(0.01, momentum=0.5, centered=True),
            "ftrl": lambda n: t.FtrlOptimizer(0.1, l1_regularization_strength=0.01, l2_regularization_strength=0.02),
            "ftrl_shrinkage": lambda n: t.FtrlOptimizer(0.1, l1_regularization_strength=0.01, l2_regularization_strength=0.02,
                                                        l2_shrinkage_regularization_strength=0.03),
            "proximal_descent": lambda n: t.ProximalGradientDescentOptimizer(0.1, 0.01, 0.02),
            "proximal_adagrad": lambda n: t.ProximalAdagradOptimizer(0.1, 0.1, 0.01, 0.02), "adam": lambda n: t.AdamOptimizer(0.01),
            "decaying": lambda n: t.GradientDescentOptimizer(t.exponential_decay(0.1, n, 2, 0.5))}.items():
        yield name, first_version, make
    k = keras.optimizers
    decaying = lambda: k.schedules.ExponentialDecay(0.1, 2, 0.8)
    for name, make in {"adamw": lambda: k.AdamW(0.01, weight_decay=0.1), "nadam": lambda: k.Nadam(0.01), "lamb": lambda: k.Lamb(0.01),
                       "lion": lambda: k.Lion(0.01), "amsgrad": lambda: k.Adam(0.01, amsgrad=True),
                       "adamw_amsgrad": lambda: k.AdamW(0.01, weight_decay=0.1, amsgrad=True), "sgd": lambda: k.SGD(decaying(), 0.9),
                       "sgd_nesterov": lambda: k.SGD(decaying(), 0.9, nesterov=True), "sgd_decay": lambda: k.SGD(0.1, weight_decay=0.02),
                       "keras_rmsprop": lambda: k.RMSprop(0.01, momentum=0.5, centered=True), "keras_adagrad": lambda: k.Adagrad(0.1),
                       "keras_adadelta": lambda: k.Adadelta(0.5, epsilon=1e-6), "keras_adam": lambda: k.Adam(0.01),
                       "keras_adamax": lambda: k.Adamax(0.01),
                       "keras_ftrl": lambda: k.Ftrl(0.1, l1_regularization_strength=0.01, l2_regularization_strength=0.02,
                                                    l2_shrinkage_regularization_strength=0.03, beta=0.04),
                       "adafactor": lambda: k.Adafactor(0.1), "muon": lambda: k.Muon(0.01, weight_decay=0.1, adam_weight_decay=0.2),
                       "accumulated": lambda: k.Adam(0.01, weight_decay=0.1, gradient_accumulation_steps=3)}.items():
        yield name, of_keras, make
    yield "loss_scale", of_keras, lambda: k.LossScaleOptimizer(k.Adam(0.01, weight_decay=0.1), initial_scale=1024, dynamic_growth_steps=3)
    yield "adamax", of_old_keras, lambda: tf_keras.optimizers.legacy.Adamax(0.01)
    yield "schedule_free", lambda make, kind: schedule_free(kind), None
    yield "lazy_adam", lambda make, kind: lazy_adam(kind), None


def kinds(name):
    if name == "loss_scale":
        return ["scaled"]
    if name.startswith("keras_"):  # whose rows are TensorFlow's, not made whole
        return ["whole"]
    return ["whole", "rows"] + {"adafactor": ["flat", "cube"], "muon": ["flat", "wide"]}.get(name, [])


def averages(with_steps):
    with tf.Graph().as_default():
        w = tf1.get_variable("w", initializer=start(), use_resource=True)
        count = tf1.train.get_or_create_global_step()
        g = tf1.placeholder(tf.float32, SHAPE)
        step = tf1.train.GradientDescentOptimizer(0.1).apply_gradients([(g, w)], global_step=count)
        average = tf1.train.ExponentialMovingAverage(0.9, count if with_steps else None)
        with tf.control_dependencies([step]):
            step = average.apply([w])
        with tf1.Session() as s:
            s.run(tf1.global_variables_initializer())
            for t in range(STEPS):
                s.run(step, {g: whole(t)})
            return s.run(average.average(w))


def limits():
    g = whole(1)
    values, indices = rows(2)
    sparse = tf.IndexedSlices(tf.constant(values), indices, SHAPE)
    yield "clip/value", tf.clip_by_value(g, -0.3, 0.4)
    yield "clip/value_rows", tf.clip_by_value(sparse, -0.3, 0.4).values
    yield "clip/norm", tf.clip_by_norm(g, 1.0)
    yield "clip/norm_axes", tf.clip_by_norm(g, 0.5, [1])
    yield "clip/norm_above", tf.clip_by_norm(g, 100.0)
    yield "clip/norm_rows", tf.clip_by_norm(sparse, 1.0).values
    yield "clip/average", tf1.clip_by_average_norm(g, 0.05)
    clipped, norm = tf.clip_by_global_norm([g, None, sparse], 1.5)
    yield "clip/global", norm
    yield "clip/global_0", clipped[0]
    yield "clip/global_2", clipped[2].values


def schedules():
    t, k = tf1.train, keras.optimizers.schedules
    first = lambda f, *a, **b: lambda n: f(0.1, n, *a, **b)()
    return {"exponential": first(t.exponential_decay, 20, 0.7), "exponential_stairs": first(t.exponential_decay, 20, 0.7, staircase=True),
            "natural": first(t.natural_exp_decay, 20, 0.7), "natural_stairs": first(t.natural_exp_decay, 20, 0.7, staircase=True),
            "inverse": first(t.inverse_time_decay, 20, 0.7), "inverse_stairs": first(t.inverse_time_decay, 20, 0.7, staircase=True),
            "piecewise": lambda n: t.piecewise_constant(n, [5, 37, 60], [0.5, 0.25, 0.1, 0.05])(),
            "polynomial": first(t.polynomial_decay, 50, 0.01, 2.0), "polynomial_cycle": first(t.polynomial_decay, 30, 0.01, 2.0, cycle=True),
            "cosine": first(t.cosine_decay, 50, 0.1), "restarts": first(t.cosine_decay_restarts, 22, 2.0, 0.8, 0.1),
            "restarts_even": first(t.cosine_decay_restarts, 22, 1.0, 0.8, 0.1), "linear_cosine": first(t.linear_cosine_decay, 50, 1.5, 0.1, 0.02),
            "warmup": k.CosineDecay(0.01, 50, 0.1, warmup_target=0.1, warmup_steps=10)}


def noisy():
    """A schedule with noise, and the seeds that its random operation got."""
    with tf.Graph().as_default() as graph:
        tf1.set_random_seed(3)
        n = tf1.placeholder(tf.int64, [])
        rate = tf1.train.noisy_linear_cosine_decay(0.1, n, 50, 0.5, 0.4, 1.5, 0.1, 0.02)
        random = [op for op in graph.get_operations() if op.type == "RandomStandardNormal"][0]
        with tf1.Session() as s:
            return [random.get_attr("seed"), random.get_attr("seed2")], [s.run(rate, {n: at}) for at in AT]


def main():
    with open(sys.argv[1], "w") as out:
        def write(name, value):
            out.write(" ".join([name] + ["%.9g" % x for x in np.asarray(value, np.float64).reshape(-1)]) + "\n")
        for name, run, make in optimizers():
            for kind in kinds(name):
                for t, w in run(make, kind):
                    if t in SEEN:
                        write("%s/%s@%d" % (name, kind, t), w)
        write("loss_scale/scales", SCALES)
        write("average", averages(False))
        write("average_by_steps", averages(True))
        for name, value in limits():
            write(name, value)
        seeds, rates = noisy()
        write("seeds/noisy", seeds)
        write("rate/noisy", rates)
        for name, rate in schedules().items():
            write("rate/" + name, [float(rate(tf.constant(n, tf.int32 if name == "piecewise" else tf.int64))) for n in AT])


if __name__ == "__main__":
    main()
