"""Tensors shared with other libraries by DLPack: the same memory on both sides. Libraries that are not installed are skipped by name."""
import importlib.util
import unittest

import numpy as np

import lathe


def needs(name):
    return unittest.skipUnless(importlib.util.find_spec(name), name + " is not installed")


class DLPack(unittest.TestCase):
    def graph(self):
        # x + x, of any shape
        session = lathe.Session(b"".join(self.nodes()))
        return lambda x: session.run("sum:0", {"x:0": x})

    @staticmethod
    def nodes():
        def field(number, data):
            return bytes([number << 3 | 2, len(data)]) + data

        def node(name, op, inputs, attr):
            text = field(1, name) + field(2, op) + b"".join(field(3, i) for i in inputs)
            return field(1, text + field(5, field(1, attr) + field(2, b"\x30\x01")))
        yield node(b"x", b"Placeholder", [], b"dtype")
        yield node(b"sum", b"AddV2", [b"x", b"x"], b"T")

    @needs("jax")
    def test_jax(self):
        import jax
        import jax.numpy as jnp
        cpu = jax.devices("cpu")[0]
        x = jax.device_put(jnp.arange(64, dtype=jnp.float32).reshape(8, 8), cpu)
        t = lathe.from_dlpack(x)
        self.assertEqual(t.data_ptr, x.unsafe_buffer_pointer())
        np.testing.assert_array_equal(self.graph()(t), np.asarray(x) * 2)
        # jax shares what is aligned to 64 bytes
        room = np.zeros(128, np.float32)
        first = -room.ctypes.data % 64 // 4
        array = room[first:first + 64].reshape(8, 8)
        owner = lathe.Tensor(array)
        back = jnp.from_dlpack(owner)
        self.assertEqual(back.unsafe_buffer_pointer(), owner.data_ptr)
        self.assertEqual(back.unsafe_buffer_pointer(), array.ctypes.data)
        np.testing.assert_array_equal(np.asarray(back), array)

    @needs("torch")
    def test_torch(self):
        import torch
        x = torch.arange(64, dtype=torch.float32).reshape(8, 8)
        t = lathe.from_dlpack(x)
        self.assertEqual(t.data_ptr, x.data_ptr())
        np.testing.assert_array_equal(self.graph()(t), x.numpy() * 2)
        x[0, 0] = 7
        self.assertEqual(t.numpy()[0, 0], 7)
        # a result is its caller's own
        session = lathe.Session(b"".join(self.nodes()))
        result = session.run("sum:0", {"x:0": t}, as_tensors=True)
        self.assertEqual(torch.from_dlpack(result).data_ptr(), result.data_ptr)
        owner = lathe.Tensor(np.arange(64, dtype=np.float32).reshape(8, 8))
        self.assertEqual(torch.from_dlpack(owner).data_ptr(), owner.data_ptr)
        half = torch.ones(4, dtype=torch.bfloat16)
        self.assertEqual(lathe.from_dlpack(half).data_ptr, half.data_ptr())

    @needs("tensorflow")
    def test_tensorflow(self):
        import tensorflow as tf
        x = tf.reshape(tf.range(64, dtype=tf.float32), [8, 8])
        t = lathe.from_dlpack(x)
        np.testing.assert_array_equal(self.graph()(t), x.numpy() * 2)


if __name__ == "__main__":
    unittest.main()
