"""Arrays and tensors: dtypes, zero copies, DLPack, strings."""
import importlib.util
import sys
import unittest

import numpy as np

import lathe
from graphs import attr, binary, graph, node, placeholder, type_attr, unary

sys.argv[1:] = []
HAVE_ML = importlib.util.find_spec("ml_dtypes") is not None
NUMPY_TYPES = ["float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
               "complex64", "complex128"]


def pointer(a):
    return a.__array_interface__["data"][0]


class Tensors(unittest.TestCase):
    def test_shares_with_numpy(self):
        for dtype in NUMPY_TYPES:
            for shape in ((), (3,), (2, 3), (0, 4), (2, 1, 2)):
                a = np.ones(shape, dtype)
                t = lathe.Tensor(a)
                self.assertEqual((t.dtype, t.shape), (dtype, shape))
                if a.size:
                    self.assertEqual(t.data_ptr, pointer(a), (dtype, shape))
                    self.assertEqual(pointer(t.numpy()), pointer(a))
                self.assertEqual(t.numpy().dtype, a.dtype)
                np.testing.assert_array_equal(np.asarray(t), a)
                self.assertFalse(t.numpy().flags.writeable)  # the array's owner has it too
                self.assertNotEqual(lathe.Tensor(a, copy=True).data_ptr, pointer(a))

    def test_copies_what_it_must(self):
        a = np.arange(12, dtype=np.float32).reshape(3, 4)
        for odd in (a.T, a[:, ::2], a[::-1], a.astype(">f4"), np.frombuffer(b"\0" + a.tobytes(), np.float32, offset=0, count=0)):
            np.testing.assert_array_equal(lathe.Tensor(odd).numpy(), odd)
        unaligned = np.frombuffer(b"\0" + a.tobytes() + b"\0\0\0", np.uint8)[1:49].view(np.float32)
        t = lathe.Tensor(unaligned)
        self.assertNotEqual(t.data_ptr, pointer(unaligned))
        self.assertEqual(t.data_ptr % 64, 0)
        np.testing.assert_array_equal(t.numpy(), unaligned)

    def test_keeps_memory_alive(self):
        t = lathe.Tensor(np.arange(100000))
        view = t.numpy()
        del t
        np.testing.assert_array_equal(view, np.arange(100000))

    def test_strings(self):
        t = lathe.Tensor([["a", b"\xff\0b"], ["ü", ""]])
        self.assertEqual((t.dtype, t.shape), ("string", (2, 2)))
        self.assertEqual(t.numpy().tolist(), [[b"a", b"\xff\0b"], ["ü".encode(), b""]])
        self.assertEqual(lathe.Tensor("one").shape, ())
        self.assertEqual(lathe.Tensor(np.array(["x", "yz"])).numpy().tolist(), [b"x", b"yz"])
        with self.assertRaises(TypeError):
            lathe.Tensor(["a", 3])

    def test_wrong(self):
        with self.assertRaises(TypeError):
            lathe.Tensor(np.zeros(2, "datetime64[s]"))
        with self.assertRaises(TypeError):
            lathe.Tensor([1], dtype="nothing")
        self.assertIn("float32 [2]", repr(lathe.Tensor(np.zeros(2, np.float32))))


class Outside:
    """A tensor of version 0 of DLPack, as older libraries make them."""

    def __init__(self, a):
        self.a = a

    def __dlpack__(self, stream=None):
        return self.a.__dlpack__()

    def __dlpack_device__(self):
        return self.a.__dlpack_device__()


class Dlpack(unittest.TestCase):
    def test_in(self):
        for dtype in ("float32", "int64", "uint8", "complex64", "float16"):
            a = np.arange(6).astype(dtype).reshape(2, 3)
            for source in (a, Outside(a), lathe.Tensor(a)):
                t = lathe.from_dlpack(source)
                self.assertEqual((t.data_ptr, t.dtype, t.shape), (pointer(a), dtype, (2, 3)))
                np.testing.assert_array_equal(t.numpy(), a)
        a = np.arange(12, dtype=np.float32).reshape(3, 4)
        t = lathe.from_dlpack(a.T)
        self.assertNotEqual(t.data_ptr, pointer(a))
        np.testing.assert_array_equal(t.numpy(), a.T)
        np.testing.assert_array_equal(lathe.from_dlpack(np.zeros((0, 3))).numpy(), np.zeros((0, 3)))

    def test_out(self):
        with lathe.Session(graph(placeholder("x", "float", [-1]), unary("y", "Neg", "x"))) as session:
            y = session.run("y:0", {"x:0": [1, 2, 3]}, as_tensors=True)
        self.assertEqual(y.__dlpack_device__(), (1, 0))
        back = np.from_dlpack(y)
        self.assertEqual(pointer(back), y.data_ptr)
        pointer_before = y.data_ptr
        del y
        np.testing.assert_array_equal(back, [-1, -2, -3])
        self.assertEqual(pointer(back), pointer_before)

    def test_capsules_are_used_once(self):
        t = lathe.Tensor(np.ones(3), copy=True)
        capsule = t.__dlpack__()

        class Once:
            def __dlpack__(self, **kwargs):
                return capsule

        self.assertEqual(lathe.from_dlpack(Once()).data_ptr, t.data_ptr)
        with self.assertRaises(TypeError):
            lathe.from_dlpack(Once())
        del capsule
        t.__dlpack__(max_version=(1, 0))  # dropped unused

    def test_copies_and_devices(self):
        shared = lathe.Tensor(np.ones(3))  # read-only: numpy has it
        self.assertEqual(lathe.from_dlpack(shared).data_ptr, shared.data_ptr)
        # version 0 cannot say read-only, and need not where the array's owner may write
        def through(capsule):
            return lathe.from_dlpack(type("Held", (), {"__dlpack__": lambda self, **kwargs: capsule})())
        self.assertEqual(through(shared.__dlpack__(copy=False)).data_ptr, shared.data_ptr)
        constant = np.ones(3)
        constant.flags.writeable = False
        constant = lathe.Tensor(constant)
        with self.assertRaises(BufferError):
            constant.__dlpack__(copy=False)
        self.assertNotEqual(through(constant.__dlpack__()).data_ptr, constant.data_ptr)
        with self.assertRaises(BufferError):
            shared.__dlpack__(dl_device=(2, 0))
        with self.assertRaises(BufferError):
            lathe.Tensor("text").__dlpack__()

        class Copied:
            def __dlpack__(self, **kwargs):
                return shared.__dlpack__(max_version=(1, 0), copy=True)

        self.assertNotEqual(lathe.from_dlpack(Copied()).data_ptr, shared.data_ptr)

    def test_bfloat16_keeps_its_type(self):
        t = lathe.Tensor.from_bits(np.array([0x3F80, 0x4000], np.uint16), "bfloat16")
        self.assertEqual((lathe.from_dlpack(t).dtype, lathe.from_dlpack(t).data_ptr), ("bfloat16", t.data_ptr))


class InSessions(unittest.TestCase):
    def test_every_numpy_type(self):
        names = {"float32": "float", "float64": "double", "float16": "half", "int32": "int32", "int64": "int64", "uint8": "uint8", "bool": "bool",
                 "complex64": "complex64"}
        for dtype, name in names.items():
            a = np.array([[0, 1], [1, 0]], dtype)
            with lathe.Session(graph(placeholder("x", name), unary("y", "Identity", "x", name))) as session:
                got = session.run("y:0", {"x:0": a})
                self.assertEqual(got.dtype, a.dtype)
                np.testing.assert_array_equal(got, a)
                self.assertNotEqual(pointer(got), pointer(a))  # results are the caller's own
                self.assertTrue(got.flags.writeable)
                shared = session.run("y:0", {"x:0": a}, as_tensors=True)
                self.assertEqual(shared.data_ptr, pointer(a))  # and the feed went in as it is

    def test_results_are_not_copied(self):
        with lathe.Session(graph(placeholder("x", "float", [-1]), unary("y", "Neg", "x"))) as session:
            y = session.run("y:0", {"x:0": np.ones(1000, np.float32)})
            self.assertTrue(y.flags.writeable)
            self.assertFalse(y.flags.owndata)  # the session's buffer

    def test_strings(self):
        g = graph(placeholder("s", "string"), node("up", "StringUpper", ["s"]))
        with lathe.Session(g) as session:
            got = session.run("up:0", {"s:0": ["ab", b"c\0d"]})
            self.assertEqual(got.dtype, object)
            self.assertEqual(got.tolist(), [b"AB", b"C\0D"])
            self.assertEqual(session.run("up:0", {"s:0": "x"}), b"X")
            with self.assertRaises(TypeError):
                session.run("up:0", {"s:0": [1.5]})

    def test_dlpack_feeds(self):
        with lathe.Session(graph(placeholder("x", "float"), unary("y", "Identity", "x"))) as session:
            a = np.arange(4, dtype=np.float32)
            self.assertEqual(session.run("y:0", {"x:0": Outside(a)}, as_tensors=True).data_ptr, pointer(a))
            np.testing.assert_array_equal(session.run("y:0", {"x:0": lathe.Tensor(np.arange(4))}), a)  # cast

    def test_handles_pass_through(self):
        g = graph(node("v", "VarHandleOp", (), type_attr("dtype", "float") + attr("shape", "shape { }") + attr("shared_name", 's: "v"')))
        with lathe.Session(g) as session:
            handle = session.run("v:0")
            self.assertEqual(handle.dtype, "resource")
            with self.assertRaises(BufferError):
                memoryview(handle._t)
            with self.assertRaises(TypeError):
                np.asarray(handle)
            self.assertIn("resource", repr(handle))

    def test_types_without_numpy(self):
        g = graph(placeholder("x", "bfloat16"), unary("y", "Identity", "x", "bfloat16"))
        with lathe.Session(g) as session:
            values = np.array([1, -2.5, 3.140625, np.inf, 1.001], np.float32)
            got = session.run("y:0", {"x:0": values})
            expected = np.array([1, -2.5, 3.140625, np.inf, 1], np.float32)
            if HAVE_ML:
                import ml_dtypes
                self.assertEqual(got.dtype, np.dtype(ml_dtypes.bfloat16))
                np.testing.assert_array_equal(got.astype(np.float32), expected)
                t = lathe.Tensor(got)
                self.assertEqual(t.data_ptr, pointer(got))
            else:
                self.assertEqual((type(got), got.dtype), (lathe.Tensor, "bfloat16"))
                bits = got.numpy()
                np.testing.assert_array_equal((bits.astype(np.uint32) << 16).view(np.float32), expected)
            again = session.run("y:0", {"x:0": session.run("y:0", {"x:0": values}, as_tensors=True)}, as_tensors=True)
            self.assertEqual(again.dtype, "bfloat16")

    def test_small_integers(self):
        g = graph(placeholder("x", "int4"), unary("y", "Identity", "x", "int4"))
        with lathe.Session(g) as session:
            got = session.run("y:0", {"x:0": [-8, -1, 0, 7]})
            self.assertEqual(np.asarray(got).astype(np.int8).tolist(), [-8, -1, 0, 7])
            if HAVE_ML:
                self.assertEqual(session.run("y:0", {"x:0": got}).astype(int).tolist(), [-8, -1, 0, 7])
                self.assertEqual(lathe.Tensor(got).numpy().astype(int).tolist(), [-8, -1, 0, 7])
            else:
                with self.assertRaises(OverflowError):
                    session.run("y:0", {"x:0": [8]})

    def test_quantized(self):
        g = graph(placeholder("x", "qint8"), unary("y", "Identity", "x", "qint8"))
        with lathe.Session(g) as session:
            got = session.run("y:0", {"x:0": np.array([-3, 5], np.int8)})
            self.assertEqual(got.dtype, np.dtype([("qint8", np.int8)]))
            self.assertEqual(got["qint8"].tolist(), [-3, 5])
            self.assertEqual(session.run("y:0", {"x:0": got})["qint8"].tolist(), [-3, 5])


if __name__ == "__main__":
    unittest.main()
