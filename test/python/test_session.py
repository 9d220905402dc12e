"""lathe.Session: structures of feeds and fetches, state, parts, callables, errors, threads."""
import collections
import dataclasses
import gc
import pickle
import sys
import threading
import time
import unittest

import numpy as np

import lathe
from graphs import attr, binary, constant, graph, node, placeholder, type_attr, unary, variable

sys.argv[1:] = []
F = np.float32


def simple():
    return graph(placeholder("x", "float", [-1, 2]), constant("two", F(2)), binary("y", "Mul", "x", "two"), unary("z", "Neg", "y"),
                 node("nothing", "NoOp", ["^z"]))


class Named:
    def __init__(self, name):
        self.name = name


@dataclasses.dataclass
class Pair:
    first: object
    second: object


class Structures(unittest.TestCase):
    def setUp(self):
        self.session = lathe.Session(simple())
        self.x = np.array([[1, 2], [3, 4]], F)

    def tearDown(self):
        self.session.close()

    def run_(self, fetches):
        return self.session.run(fetches, {"x:0": self.x})

    def test_names(self):
        np.testing.assert_array_equal(self.run_("y:0"), 2 * self.x)
        self.assertIsNone(self.run_("z"))
        self.assertIsNone(self.run_("nothing"))
        np.testing.assert_array_equal(self.run_(Named("z:0")), -2 * self.x)
        self.assertIsNone(self.run_(Named("y")))

    def test_nested(self):
        Point = collections.namedtuple("Point", "a b")
        got = self.run_({"list": ["y:0", ("z:0", "nothing")], "point": Point("z:0", ["y:0"]), "none": []})
        self.assertEqual(list(got), ["list", "point", "none"])
        self.assertIsInstance(got["list"][1], tuple)
        self.assertIsNone(got["list"][1][1])
        self.assertIsInstance(got["point"], Point)
        np.testing.assert_array_equal(got["point"].b[0], 2 * self.x)
        self.assertEqual(got["none"], [])
        ordered = self.run_(collections.OrderedDict([("q", "y:0"), ("a", "z:0")]))
        self.assertIsInstance(ordered, collections.OrderedDict)
        self.assertEqual(list(ordered), ["q", "a"])
        default = self.run_(collections.defaultdict(list, k="y:0"))
        self.assertIs(default.default_factory, list)
        pair = self.run_(Pair("y:0", "z"))
        np.testing.assert_array_equal(pair.first, 2 * self.x)
        self.assertIsNone(pair.second)
        self.assertEqual(self.session.run([]), [])

    def test_results_of_one_tensor_are_apart_or_equal(self):
        a, b = self.run_(["y:0", "y:0"])
        np.testing.assert_array_equal(a, b)

    def test_feeds(self):
        for key in ("x:0", "x", Named("x:0"), Named("x")):
            np.testing.assert_array_equal(self.session.run("y:0", {key: [[1, 2]]}), [[2, 4]])
        np.testing.assert_array_equal(self.session.run("z:0", {"y:0": self.x}), -self.x)  # inside of the graph
        np.testing.assert_array_equal(self.session.run("x:0", {"x:0": self.x}), self.x)
        a, b = self.session.run(["y:0", "z:0"], {("x:0", "y:0"): (self.x, self.x + 1)})
        np.testing.assert_array_equal(b, -self.x - 1)
        np.testing.assert_array_equal(a, self.x + 1)
        np.testing.assert_array_equal(self.session.run("y:0", {"x": np.arange(4).reshape(2, 2)}), [[0, 2], [4, 6]])  # cast, as TensorFlow

    def test_wrong_use(self):
        for fetch in (None, 3, 2.5, object()):
            with self.assertRaises(TypeError):
                self.session.run(fetch)
        for fetch in ("absent", "absent:0", "y:1", "y:-1", "y:a", ["y:0", "gone:0"]):
            with self.assertRaises(ValueError, msg=fetch):
                self.run_(fetch)
        with self.assertRaises(ValueError):
            self.session.run("y:0", {"absent:0": 1})
        with self.assertRaisesRegex(ValueError, r"shape \(2, 3\) for tensor 'x:0', which has shape \(\?, 2\)"):
            self.session.run("y:0", {"x:0": np.zeros((2, 3))})
        with self.assertRaisesRegex(ValueError, "twice"):
            self.session.run("y:0", {"x:0": self.x, "x": self.x})
        with self.assertRaisesRegex((TypeError, ValueError), "cannot feed 'x:0' .float32."):
            self.session.run("y:0", {"x:0": [["a", "b"]]})
        with self.assertRaises(TypeError):
            self.session.run("y:0", [("x:0", 1)])
        with self.assertRaises(lathe.errors.InvalidArgumentError) as caught:
            self.session.run("y:0")  # the placeholder is not fed
        self.assertEqual((caught.exception.code, caught.exception.node, caught.exception.node_op), (3, "x", "Placeholder"))
        with self.assertRaises(lathe.errors.InvalidArgumentError):
            self.session.extend(graph(placeholder("x")))  # there already

    def test_callable(self):
        f = self.session.make_callable({"y": "y:0", "op": "nothing"}, ["x:0"])
        for i in range(3):
            np.testing.assert_array_equal(f(self.x + i)["y"], 2 * (self.x + i))
        with self.assertRaises(lathe.errors.InvalidArgumentError):  # nothing is fed
            f()
        g = self.session.make_callable("y:0", ["x"], accept_options=True)
        metadata = lathe.RunMetadata()
        g(self.x, options=lathe.RunOptions(trace_level=lathe.RunOptions.FULL_TRACE), run_metadata=metadata)
        self.assertTrue(metadata.step_stats)
        self.assertTrue(all(s.elapsed_nanos >= 0 for s in metadata.step_stats))

    def test_partial(self):
        handle = self.session.partial_run_setup(["y:0", "z:0"], ["x:0", "two:0"])
        np.testing.assert_array_equal(self.session.partial_run(handle, ["y:0"], {"x:0": self.x, "two:0": F(3)})[0], 3 * self.x)
        np.testing.assert_array_equal(self.session.partial_run(handle, "z:0"), -3 * self.x)
        with self.assertRaises(lathe.errors.InvalidArgumentError):
            self.session.partial_run("no such handle", "z:0")

    def test_devices_and_graph(self):
        device, = self.session.list_devices()
        self.assertEqual((device.name, device.device_type), ("/job:localhost/replica:0/task:0/device:CPU:0", "CPU"))
        self.assertIn(("y", "Mul"), self.session.graph.operations)
        with lathe.Session(graph=self.session.graph) as other:
            np.testing.assert_array_equal(other.run("y:0", {"x:0": self.x}), 2 * self.x)
        with lathe.Session(self.session.graph_def) as other:
            self.assertEqual(other.graph.operations, self.session.graph.operations)
        self.session.extend(graph(unary("more", "Abs", "z")))
        np.testing.assert_array_equal(self.run_("more:0"), 2 * self.x)
        self.assertIn("lathe.Session", repr(self.session))
        self.assertIn("<td>x:0</td><td>float32</td><td>[?, 2]</td>", self.session._repr_html_())


class State(unittest.TestCase):
    def test_variables_do_not_alias_arrays(self):
        with lathe.Session(graph(variable("v", [3]), variable("w", [3]))) as session:
            start = np.array([1, 2, 3], F)
            session.run("v_assign", {"v_start:0": start})
            start[:] = 9
            value = session.run("v_value:0")
            np.testing.assert_array_equal(value, [1, 2, 3])
            value[:] = 7  # arrays are the caller's
            np.testing.assert_array_equal(session.run("v_value:0"), [1, 2, 3])
            tensor = session.run("v_value:0", as_tensors=True)
            self.assertFalse(tensor.numpy().flags.writeable)
            session.run("v_assign", {"v_start:0": start})
            np.testing.assert_array_equal(tensor.numpy(), [1, 2, 3])
            with self.assertRaises(lathe.errors.FailedPreconditionError):
                session.run("w_value:0")

    def test_what_may_keep_a_feed(self):
        def function(name, body, output):
            return ('function { signature { name: "%s" input_arg { name: "a" type: DT_FLOAT } output_arg { name: "b" type: DT_FLOAT } }'
                    " %s ret { key: \"b\" value: \"%s\" } } " % (name, body.replace("node {", "node_def {"), output))

        def call(name, f, x):
            return node(name, "StatefulPartitionedCall", [x], attr("f", f'func {{ name: "{f}" }}') + attr("Tin", "list { type: DT_FLOAT }") +
                        attr("Tout", "list { type: DT_FLOAT }"))

        pure = function("pure", unary("n", "Neg", "a"), "n:y:0")
        handle = node("v", "VarHandleOp", (), type_attr("dtype", "float") + attr("shape", "shape { unknown_rank: true }"))
        keeping = function("keeping", handle + node("s", "AssignVariableOp", ["v:resource:0", "a"], type_attr("dtype", "float")) +
                           unary("n", "Identity", "a"), "n:output:0")
        nested = function("nested", call("c", "keeping", "a"), "c:output:0")
        text = "library { " + pure + keeping + nested + "} "
        g = graph(placeholder("x"), placeholder("y"), placeholder("z"), unary("direct", "Neg", "x"), call("p", "pure", "direct"),
                  call("q", "nested", "y"), variable("w", [2]), text)
        with lathe.Session(g) as session:
            kept = {n: session._native.may_keep(n + ":0") for n in ("x", "y", "z", "w_start", "p")}
            self.assertEqual(kept, {"x": False, "y": True, "z": False, "w_start": True, "p": False})
            session.extend(graph(node("w_add", "AssignAddVariableOp", ["w", "p"], type_attr("dtype", "float"))))
            self.assertTrue(session._native.may_keep("x:0"))

    def test_sessions_are_apart(self):
        bytes_ = graph(variable("v", []))
        with lathe.Session(bytes_) as one, lathe.Session(bytes_) as two:
            one.run("v_assign", {"v_start:0": 1})
            two.run("v_assign", {"v_start:0": 2})
            self.assertEqual((one.run("v_value:0"), two.run("v_value:0")), (1, 2))
            self.assertIsInstance(one.run("v_value:0"), np.float32)

    def test_order_of_arguments(self):
        bytes_ = simple()
        for session in (lathe.Session(bytes_), lathe.Session("", bytes_), lathe.Session("", graph=bytes_), lathe.Session(graph=bytes_, target=""),
                        lathe.Session("local", bytes_, None)):
            self.assertEqual(session.run("two:0"), 2)
            session.close()
        with self.assertRaises(lathe.errors.NotFoundError):
            lathe.Session("grpc://elsewhere:2222")
        with self.assertRaises(TypeError):
            lathe.Session(3)
        with self.assertRaises(lathe.errors.InvalidArgumentError):
            lathe.Session(b"\x01\x02no graph")
        with self.assertRaises(lathe.errors.NotFoundError):
            lathe.Session("/nowhere/graph.pb")

    def test_close(self):
        session = lathe.Session(simple())
        f = session.make_callable("two:0")
        session.close()
        session.close()
        for use in (lambda: session.run("two:0"), f, session.list_devices, lambda: session.graph):
            with self.assertRaisesRegex(RuntimeError, "closed"):
                use()
        self.assertIn("closed", repr(session))


def queue():
    types = attr("component_types", "list { type: DT_FLOAT }")
    return graph(node("q", "FIFOQueueV2", (), types + attr("shapes", "list { shape { } }") + attr("capacity", "i: 4")),
                 placeholder("x", "float", []), node("put", "QueueEnqueueV2", ["q", "x"], attr("Tcomponents", "list { type: DT_FLOAT }")),
                 node("take", "QueueDequeueV2", ["q"], types), node("shut", "QueueCloseV2", ["q"]))


class Concurrency(unittest.TestCase):
    def test_threads_meet_in_a_queue(self):
        with lathe.Session(queue()) as session:
            taken = []

            def produce(i):
                for k in range(25):
                    session.run("put", {"x:0": 100 * i + k})

            def consume():
                for _ in range(25):
                    taken.append(float(session.run("take:0")))

            threads = [threading.Thread(target=produce, args=(i,)) for i in range(4)] + [threading.Thread(target=consume) for _ in range(4)]
            for t in threads:
                t.start()
            for t in threads:
                t.join(60)
            self.assertEqual(sorted(taken), sorted(float(100 * i + k) for i in range(4) for k in range(25)))

    def test_the_lock_is_released(self):
        with lathe.Session(queue()) as session:
            waiter = threading.Thread(target=lambda: session.run("take:0"))
            waiter.start()
            time.sleep(0.05)
            self.assertTrue(waiter.is_alive())  # and this thread runs
            session.run("put", {"x:0": 1})
            waiter.join(60)
            self.assertFalse(waiter.is_alive())

    def test_close_wakes_who_waits(self):
        session = lathe.Session(queue())
        errors = []

        def wait():
            try:
                session.run("take:0")
            except lathe.errors.CancelledError as e:
                errors.append(e)

        waiter = threading.Thread(target=wait)
        waiter.start()
        time.sleep(0.05)
        session.close()
        waiter.join(60)
        self.assertEqual([e.code for e in errors], [lathe.errors.CANCELLED])

    def test_timeout_and_end(self):
        with lathe.Session(queue()) as session:
            with self.assertRaises(lathe.errors.DeadlineExceededError):
                session.run("take:0", options=lathe.RunOptions(timeout_in_ms=50))
            session.run("shut")
            with self.assertRaises(lathe.errors.OutOfRangeError) as caught:
                session.run("take:0")
            self.assertEqual((caught.exception.node, caught.exception.node_op), ("take", "QueueDequeueV2"))
            again = pickle.loads(pickle.dumps(caught.exception))
            self.assertEqual((type(again), str(again), again.node), (type(caught.exception), str(caught.exception), "take"))

    def test_one_session_many_threads(self):
        with lathe.Session(simple()) as session:
            wrong = []

            def work(i):
                x = np.full((3, 2), i, F)
                for _ in range(50):
                    if not (session.run("z:0", {"x:0": x}) == -2 * x).all():
                        wrong.append(i)

            threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
            for t in threads:
                t.start()
            for t in threads:
                t.join(120)
            self.assertEqual(wrong, [])
        gc.collect()


class Errors(unittest.TestCase):
    def test_classes(self):
        for code in range(1, 17):
            cls = lathe.errors.exception_type_from_error_code(code)
            self.assertTrue(issubclass(cls, lathe.errors.OpError))
            self.assertEqual(lathe.errors.error_code_from_exception_type(cls), code)
        with self.assertRaises(lathe.errors.OpError):
            lathe.Session(graph(node("a", "NoSuchOpAtAll")))

    def test_all_of_a_kernels_error(self):
        g = graph(placeholder("i", "int32", [-1]), constant("table", np.arange(4, dtype=F)), constant("axis", np.int32(0)),
                  node("pick", "GatherV2", ["table", "i", "axis"], type_attr("Tparams", "float") + type_attr("Tindices", "int32") +
                       type_attr("Taxis", "int32")))
        with lathe.Session(g) as session:
            np.testing.assert_array_equal(session.run("pick:0", {"i:0": [3, 1]}), [3, 1])
            with self.assertRaises(lathe.errors.InvalidArgumentError) as caught:
                session.run("pick:0", {"i:0": [7]})
            self.assertIn("pick", str(caught.exception))
            self.assertEqual(caught.exception.node, "pick")


if __name__ == "__main__":
    unittest.main()
