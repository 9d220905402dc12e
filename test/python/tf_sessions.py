"""tf_sessions.py [PROGRAM...]: what tf.compat.v1.Session is asked for, of TensorFlow's and of Lathe's."""
import collections
import os

import numpy as np
import tensorflow as tf

from tf_programs import main, program, raised, tf1

Pair = collections.namedtuple("Pair", "x y")


@program
def fetches(Session, folder):
    a, b = tf.constant(1.0), tf.constant([1, 2])
    v = tf1.get_variable("v", initializer=3.0)
    sparse = tf.SparseTensor([[0, 1]], [2.0], [2, 2])
    slices = tf.IndexedSlices(a[None], tf.constant([0]), tf.constant([3]))
    ragged = tf.ragged.constant([[1, 2], [], [3]])
    with Session() as s:
        s.run(v.initializer)
        nested = s.run({"list": [a, (b, [v])], "pair": Pair(a, b), "ordered": collections.OrderedDict([("z", a), ("b", b)]), "op": v.initializer,
                        "nothing": [], "none": (), "sparse": sparse, "name": v.value().name})
        got = s.run(slices)
        rows = s.run(ragged)
        return [nested, type(got).__name__, list(got), type(rows).__name__, rows.to_list(), s.run([a, a, a]), s.run([]), s.run({}), s.run(b"Const:0"),
                s.run(tf.constant("x")), s.run(tf.constant(["x", "y"])), s.run(tf.constant(True)), s.run(tf.constant(7, tf.int64)),
                s.run(tf.constant(7, tf.uint64)), raised(s.run, None), raised(s.run, 3), raised(s.run, "no:0"), raised(s.run, "Const:7"),
                raised(s.run, a, {3: 4}), raised(s.run, a, [1]), raised(s.run, a, {a: None}), raised(s.run, a, {a: tf.constant(1.)}),
                raised(s.run, [None]), raised(s.run, a, {b: "text"})]


@program
def feeds(Session, folder):
    f = tf1.placeholder(tf.float32, [None, 2])
    i = tf1.placeholder(tf.int64)
    text = tf1.placeholder(tf.string, [None])
    d = tf1.placeholder_with_default(tf.constant(5.0), [])
    half = tf1.placeholder(tf.bfloat16, [2])
    c, flag = tf1.placeholder(tf.complex64, []), tf1.placeholder(tf.bool, [])
    sparse = tf1.sparse_placeholder(tf.float32)
    ragged, inner = tf1.ragged.placeholder(tf.int32, 2), tf1.ragged.placeholder(tf.int32, 1, [2])
    v = tf1.get_variable("v", initializer=3.0, use_resource=False)
    r = tf1.get_variable("r", initializer=3.0, use_resource=True)
    rows = tf1.ragged.constant_value([[[1, 2], []], [[3]]], dtype=np.int32)
    pairs = tf1.ragged.constant_value([[[1, 2]], []], dtype=np.int32, ragged_rank=1, inner_shape=(2,))
    value = tf1.SparseTensorValue([[0, 1]], [2.0], [2, 2])
    with Session() as s:
        s.run(tf1.global_variables_initializer())
        return [s.run(f * 2, {f: [[1, 2], [3, 4]]}), s.run(f * 2, {f: np.ones((1, 2))}), s.run(i + 1, {i: 3}), s.run(i + 1, {i: np.int32(3)}),
                s.run(text + "!", {text: ["a", b"b"]}), s.run(text + "!", {text: np.array(["a", "bc"])}), s.run(d), s.run(d + 0, {d: 7}), s.run([d, d + 0, [i]], {d: 7, i: np.int64(2)}),
                s.run(tf.cast(half, tf.float32), {half: [1.5, 2]}), s.run(c * 2, {c: 1 + 2j}), s.run(tf.logical_not(flag), {flag: True}),
                s.run(tf1.sparse_tensor_to_dense(sparse), {sparse: value}), s.run(tf1.sparse_tensor_to_dense(sparse), {sparse: tuple(value)}),
                s.run(tf.reduce_sum(ragged.to_tensor()), {ragged: rows}), s.run(ragged, {ragged: rows}).to_list(),
                s.run(inner.row_lengths(), {inner: pairs}), s.run(v + 1, {v: 9.0}), s.run(d + v, {"v:0": 1.0, d.name: 2}),
                s.run(r.value() + 1, {r.value(): 5.0}), raised(s.run, f), raised(s.run, f, {f: [1, 2, 3]}), raised(s.run, i, {i: "x"}),
                raised(s.run, i, {i: [[1], [2, 3]]}), raised(s.run, i, {f: [[1, 2]]}), raised(s.run, i, {None: [[1, 2]]})]


@program
def callables(Session, folder):
    x, y = tf1.placeholder(tf.float32, [None]), tf1.placeholder(tf.float32, [])
    sparse = tf1.sparse_placeholder(tf.float32, [2, 2])
    v = tf1.get_variable("v", initializer=1.0)
    add = v.assign_add(y)
    with Session() as s:
        s.run(v.initializer)
        nested = s.make_callable({"a": x * y, "b": [y + 1, tf.no_op()]}, [x, y])
        traced = s.make_callable([x * 2], [x, y], accept_options=True)
        step, read = s.make_callable(add.op, [y]), s.make_callable(v)
        dense = s.make_callable(tf1.sparse_tensor_to_dense(sparse), [sparse])
        metadata = tf1.RunMetadata()
        results = [nested([1, 2], 3), nested([3], np.float64(2)), traced([1], 2, options=tf1.RunOptions(trace_level=3), run_metadata=metadata),
                   traced([1], 2), step(2.0), read(), raised(s.make_callable(add)), len(metadata.step_stats.dev_stats) > 0]
        results.append(dense(tf1.SparseTensorValue([[0, 1]], [2.0], [2, 2])))
        results.append(s.run(tf.constant(2.0) * v))  # the graph has grown
        results.append(read())
    return results + [raised(nested, [1, 2], 3)]


@program
def prevented(Session, folder):
    x, y = tf.constant(1.0, name="x"), tf.constant(2.0, name="y")
    tf1.get_default_graph().prevent_feeding(x)
    tf1.get_default_graph().prevent_fetching(y.op)

    def refused(function, *args):
        try:
            function(*args)
        except ValueError:  # TensorFlow has subclasses of it
            return True
        return False

    with Session() as s:
        return [s.run(x), s.run(x + y), s.run(x + y, {y: 5.0}), refused(s.run, x + y, {x: 3.0}), refused(s.run, y), refused(s.run, y.op),
                refused(s.run, "y:0"), refused(s.run, [x, {"y": y}]), refused(s.run, x + y)]


@program
def errors_of_runs(Session, folder):
    a, b, n = tf1.placeholder(tf.float32), tf1.placeholder(tf.float32), tf1.placeholder(tf.int32, [])
    product, quotient = tf.linalg.matmul(a, b, name="product"), tf.math.floordiv(3, n, name="quotient")
    picked = tf.gather([1, 2], n, name="picked")
    shaped = tf.reshape(tf.constant([1, 2, 3]), n[None], name="shaped")
    checked = tf1.check_numerics(1.0 / tf.cast(n, tf.float32), "inf", name="checked")

    def about(fetch, feeds):
        with Session() as s:
            try:
                return s.run(fetch, feeds)
            except tf.errors.OpError as e:
                return int(e.error_code), e.op and e.op.name, isinstance(e, tf.errors.InvalidArgumentError)

    wide = np.ones((2, 3))
    with Session() as s:
        calls = s.make_callable(n + 1, [n]), s.make_callable(n + 1, [n], accept_options=True)
        counts = [c(4) for c in calls] + [c(4, 5) for c in calls] + [raised(c) for c in calls]
    return counts + [about(product, {a: wide, b: wide}), about(quotient, {n: 0}), about(picked, {n: 7}), about(shaped, {n: 2}),
                     about(checked, {n: 0}), raised(about, n, {n: 1 << 40}), about(n + 1, {n: 1.5})]


@program
def partial_runs(Session, folder):
    a, b, c = (tf1.placeholder(tf.float32, []) for _ in range(3))
    first = a + b
    second = first * c
    sparse = tf1.sparse_placeholder(tf.float32, [2, 2])
    dense = tf1.sparse_tensor_to_dense(sparse)
    with Session() as s:
        h = s.partial_run_setup([first, second], [a, b, c])
        results = [s.partial_run(h, first, {a: 1, b: 2})]
        results.append(s.partial_run(h, second, {c: float(results[0]) * 10}))
        h = s.partial_run_setup([first, second], [a, b, c])
        results += [s.partial_run(h, {"x": [first]}, {a: 1, b: 2}), raised(s.partial_run, h, first), s.partial_run(h, [second], {c: 1.0}),
                    raised(s.partial_run, h, second, {c: 1.0})]
        h = s.partial_run_setup([second, first], [a, b, c])
        results.append(raised(s.partial_run, h, second, {a: 1}))
        h = s.partial_run_setup([first], [a, b])
        results += [s.partial_run(h, [], {a: 1}), s.partial_run(h, [first], {b: 1})]
        h = s.partial_run_setup([dense], [sparse])
        results.append(s.partial_run(h, dense, {sparse: tf1.SparseTensorValue([[0, 1]], [2.0], [2, 2])}))
    return results


@program
def life(Session, folder):
    g, a = tf1.get_default_graph(), tf.constant(1.)
    config = tf1.ConfigProto(allow_soft_placement=True, gpu_options=tf1.GPUOptions(allow_growth=True), device_count={"CPU": 2})
    s = Session(graph=g, config=config)
    results = [s.graph is g, [d.name for d in s.list_devices()][:2], a.eval(session=s)]
    with s.as_default():
        results += [tf1.get_default_session() is s, a.eval()]
    results.append(s.run(a))
    with s:
        results.append(a.eval())
    results.append(raised(s.run, a))
    s.close()
    with Session(graph=tf1.Graph()) as empty:
        results += [raised(empty.run, []), raised(empty.run, a)]
    t = Session("", g)
    results.append(t.run(a))
    with t.graph.as_default():
        results.append(t.run(a + 1))
    t.close()
    return results + [type(s.graph_def).__name__, raised(lambda: Session(graph=3)), raised(lambda: Session(config=3)), raised(lambda: Session(3))]


@program
def interactive(Session, folder):
    import lathe

    kind = tf1.InteractiveSession if Session is tf1.Session else lathe.InteractiveSession
    x, before = tf.constant([1.0, 2.0]), tf1.get_default_session()
    s = kind()
    results = [tf1.get_default_session() is s, (x * 2).eval()]
    s.close()
    return results + [tf1.get_default_session() is before, raised(s.run, x)]


@program
def subclasses(Session, folder):
    class Counting(Session):
        count = 0

        def run(self, *args, **kwargs):
            self.count += 1
            return super().run(*args, **kwargs)

    v = tf1.get_variable("v", initializer=1.0)
    with Counting() as s:
        s.run(v.initializer)
        tf1.train.Saver().save(s, folder + "/model")
        return s.run(v), isinstance(s, Counting), s.count > 2


@program
def tensors_that_stay(Session, folder):
    x = tf1.placeholder(tf.float32, [2])
    keep = tf1.get_session_handle(x * 2)
    with Session() as s:
        handle = s.run(keep, {x: [1, 2]})
        holder, value = tf1.get_session_tensor(handle.handle, tf.float32)
        results = [type(handle).__name__, s.run(value + 1, {holder: handle.handle}), handle.eval()]
        name = handle.handle
        handle.delete()
        results.append(raised(s.run, value, {holder: name}))
        names = []
        for i in range(25):  # what nobody holds any more is deleted some at a time
            handle = s.run(keep, {x: [i, i]})
            names.append(handle.handle)
        results.append(handle.eval())
        return results + [raised(s.run, value, {holder: names[0]})]


@program
def savers(Session, folder):
    v = tf1.get_variable("v", initializer=np.arange(6, dtype=np.float32).reshape(2, 3))
    r = tf1.get_variable("r", [4], initializer=tf1.ones_initializer(), use_resource=False)
    parts = tf1.get_variable("parts", [8, 3], partitioner=tf1.fixed_size_partitioner(2), initializer=tf1.random_normal_initializer(seed=1))
    step = tf1.train.get_or_create_global_step()
    more = tf1.assign_add(step, 1)
    saver, sharded = tf1.train.Saver(max_to_keep=2), tf1.train.Saver({"w": v}, sharded=True)
    base = os.path.basename
    with Session() as s:
        results = [s.run(tf1.report_uninitialized_variables()).tolist()]
        s.run(tf1.global_variables_initializer())
        results.append(tf1.train.global_step(s, step))
        for _ in range(3):
            s.run(more)
            path = saver.save(s, folder + "/m", global_step=step)
        results += [base(path), base(tf1.train.latest_checkpoint(folder)), sorted(map(base, saver.last_checkpoints)), sorted(os.listdir(folder))]
        other = sharded.save(s, folder + "/sharded")
        v.load(np.zeros((2, 3), np.float32), s)
        results.append(s.run(v))
        sharded.restore(s, other)
        results += s.run([v, parts.as_tensor()])
    results.append(sorted(tf1.train.load_checkpoint(path).get_variable_to_shape_map().items()))
    with Session() as s:
        saver.restore(s, path)
        results += [s.run([v, r, step, parts.as_tensor()]), raised(saver.restore, s, folder + "/nothing")]
    with tf1.Graph().as_default():
        imported = tf1.train.import_meta_graph(path + ".meta")
        with Session() as s:
            imported.restore(s, path)
            results.append(s.run(tf1.global_variables())[:2])
    return results


@program
def saved_models(Session, folder):
    x, k = tf1.placeholder(tf.float32, [None, 3], name="x"), tf1.placeholder(tf.string, [None], name="k")
    w = tf1.get_variable("w", [3, 2], initializer=tf1.glorot_uniform_initializer(seed=2))
    y = tf.identity(tf.matmul(x, w), name="y")
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2]), -1)
    z = tf.identity(table.lookup(k), name="z")
    with Session() as s:
        s.run([tf1.global_variables_initializer(), tf1.tables_initializer()])
        tf1.saved_model.simple_save(s, folder + "/one", {"x": x, "k": k}, {"y": y, "z": z}, legacy_init_op=tf1.tables_initializer())
        builder = tf1.saved_model.Builder(folder + "/two")
        builder.add_meta_graph_and_variables(s, ["serve"], {"s": tf1.saved_model.predict_signature_def({"x": x}, {"y": y})})
        builder.save(as_text=True)
        frozen = tf1.graph_util.convert_variables_to_constants(s, s.graph_def, ["y"])
        results = [s.run(y, {x: np.ones((2, 3))})]
    with tf1.Graph().as_default():
        again, = tf1.import_graph_def(frozen, return_elements=["y:0"])
        with Session() as s:
            results.append(s.run(again, {"import/x:0": np.ones((2, 3))}))
    for name in ("one", "two"):
        with tf1.Graph().as_default(), Session() as s:
            meta = tf1.saved_model.load(s, ["serve"], f"{folder}/{name}")
            results += [sorted(meta.signature_def), s.run(["y:0", "z:0"], {"x:0": np.ones((1, 3)), "k:0": ["b", "q"]})]
    return results


if __name__ == "__main__":
    main()
