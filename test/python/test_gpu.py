"""lathe.Session with `gpus=` and with the devices of a ConfigProto."""
import sys
import types
import unittest

import numpy as np

import lathe
from graphs import binary, graph, placeholder, variable

sys.argv[1:] = []
X = np.arange(6, dtype=np.float32)


def on(device, node):
    return node.replace("input:", f'device: "{device}" input:', 1)


def config(count, visible="", soft=False):
    return types.SimpleNamespace(intra_op_parallelism_threads=1, inter_op_parallelism_threads=0, device_count=count, allow_soft_placement=soft,
                                 gpu_options=types.SimpleNamespace(visible_device_list=visible), operation_timeout_in_ms=0)


def squares(*devices):
    return graph(placeholder("x"), *(on(d, binary(f"y{i}", "Mul", "x", "x")) for i, d in enumerate(devices)))


class Gpus(unittest.TestCase):
    def check(self, count, devices, **options):
        with lathe.Session(squares(*devices), **options) as session:
            for got in session.run([f"y{i}:0" for i in range(len(devices))], {"x:0": X}):
                np.testing.assert_array_equal(got, X * X)

    def test_by_number(self):
        for gpus, devices in (([1], ["/gpu:0", "/cpu:0"]), ([0, 1], ["/gpu:0", "/gpu:1"]), (range(1), ["/device:GPU:0"])):
            self.check(2, devices, gpus=gpus, config=config({}))

    def test_by_configuration(self):
        self.check(2, ["/gpu:0", "/gpu:1"], config=config({"GPU": 2}))
        self.check(1, ["/gpu:0"], config=config({"GPU": 1, "CPU": 2}, "1"))

    def test_without(self):
        for options in (config({}), config({"GPU": 0}), config({}, "0"), config({"GPU": -1}, "0,1")):
            with self.assertRaises(lathe.errors.InvalidArgumentError) as raised:
                self.check(0, ["/gpu:0"], config=options)
            self.assertIn("there is no such device", str(raised.exception))
        self.check(0, ["/gpu:0"], config=config({}, soft=True))

    def test_more_than_there_are(self):
        for options in ({"gpus": [2]}, {"gpus": [-1]}, {"config": config({"GPU": 3})}):
            with self.assertRaises(lathe.errors.InvalidArgumentError) as raised:
                lathe.Session(squares("/gpu:0"), **options)
            self.assertIn("the CUDA driver has 2 devices", str(raised.exception))

    def test_state_stays_there(self):
        text = graph(variable("v", [6]), placeholder("x"), binary("sum", "AddV2", "v_value", "x"))
        with lathe.Session(text, gpus=[1]) as session:
            session.run("v_assign", {"v_start:0": X})
            np.testing.assert_array_equal(session.run("sum:0", {"x:0": X}), 2 * X)


if __name__ == "__main__":
    unittest.main()
