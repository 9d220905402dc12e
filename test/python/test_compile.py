"""lathe.compile and lathe.load: the whole way from a graph to a function of arrays."""
import inspect
import os
import re
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import lathe
import lathe.lite
from graphs import attr, binary, constant, graph, node, placeholder, type_attr, unary, variable

SAMPLES = sys.argv.pop(1)
F = np.float32


class Compile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = cls.folder.name

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_shared_object(self):
        model = graph(placeholder("x", "float", [-1, 2]), constant("w", np.array([[1, 2, 3], [4, 5, 6]], F)),
                      node("y", "MatMul", ["x", "w"], type_attr("T", "float")), unary("z", "Relu", "y"))
        compiled = lathe.compile(model, f"{self.path}/small", emit=["so", "obj", "header"], outputs=["y:0", "z"], cpu="host", threads=2)
        self.assertEqual(sorted(os.path.basename(f) for f in compiled.files.values()), ["small.h", "small.o", "small.so"])
        for file in compiled.files.values():
            self.assertGreater(os.path.getsize(file), 0)
        self.assertGreater(compiled.kernels, 0)
        self.assertIn("small.so", repr(compiled))
        module = lathe.load(f"{self.path}/small.so", threads=2)
        self.assertEqual(repr(module.inputs["x"]), "x: float32 [?, 2]")
        for rows in (1, 5, 2):
            x = np.arange(2 * rows, dtype=F).reshape(rows, 2) - 3
            expected = x @ np.array([[1, 2, 3], [4, 5, 6]], F)
            for got in (module(x=x), module(x), module(x=x.astype(np.float64)), module(x=lathe.Tensor(x), as_tensors=True)):
                first, second = got.values()
                np.testing.assert_allclose(np.asarray(first), expected, rtol=1e-6)
                np.testing.assert_allclose(np.asarray(second), np.maximum(expected, 0), rtol=1e-6)
        out = module(x=x, as_tensors=True)
        tensor = next(iter(out.values()))
        self.assertEqual(np.from_dlpack(tensor).__array_interface__["data"][0], tensor.data_ptr)
        with self.assertRaises(lathe.errors.InvalidArgumentError):
            module(x=np.zeros((2, 3)))
        with self.assertRaises(TypeError):
            module(y=x)
        with self.assertRaises(TypeError):
            module()
        self.assertIn("<td>input</td><td>x</td>", module._repr_html_())
        self.assertIn("lathe.Module", repr(module))

    def test_state_and_entries(self):
        model = graph(variable("v", [2]), placeholder("d", "float", [2]), node("add", "AssignAddVariableOp", ["v", "d"], type_attr("dtype", "float")))
        lathe.compile(model, f"{self.path}/state", emit="so", entries={"Set": "/v_assign", "Add": ([], ["add"]), "Get": (["v_value:0"], [])})
        module = lathe.load(f"{self.path}/state.so")
        self.assertEqual(list(module.entries), ["Set", "Add", "Get"])
        self.assertEqual(list(module.variables), ["v"])
        module["Set"](np.array([1, 2], F))
        for _ in range(3):
            module["Add"](d=[1, 10])
        got, = module["Get"]().values()
        np.testing.assert_array_equal(got, [4, 32])
        with self.assertRaisesRegex(TypeError, "several entries"):
            module(1)

    def test_run_time_errors_name_the_node(self):
        model = graph(placeholder("i", "int32", [-1]), constant("table", np.arange(4, dtype=F)), constant("axis", np.int32(0)),
                      node("pick", "GatherV2", ["table", "i", "axis"], type_attr("Tparams", "float") + type_attr("Tindices", "int32") +
                           type_attr("Taxis", "int32")))
        lathe.compile(model, f"{self.path}/pick", emit="so")
        module = lathe.load(f"{self.path}/pick.so")
        with self.assertRaises(lathe.errors.InvalidArgumentError) as caught:
            module(i=[9])
        self.assertEqual((caught.exception.node, caught.exception.node_op), ("pick", "GatherV2"))

    def test_weights_apart(self):
        model = graph(placeholder("x", "float", [64]), constant("w", np.arange(64, dtype=F)), binary("y", "Mul", "x", "w"))
        compiled = lathe.compile(model, f"{self.path}/apart", emit="so", weights=f"{self.path}/apart.weights")
        self.assertTrue(os.path.exists(compiled.files["weights"]))
        with self.assertRaises(lathe.errors.FailedPreconditionError):
            lathe.load(f"{self.path}/apart.so")
        for _ in range(2):
            module = lathe.load(f"{self.path}/apart.so", weights=f"{self.path}/apart.weights")
            got, = module(x=np.full(64, 2, F)).values()
            np.testing.assert_array_equal(got, 2 * np.arange(64, dtype=F))

    def test_shapes_of_inputs(self):
        model = graph(placeholder("x", "float"), unary("y", "Neg", "x"))
        lathe.compile(model, f"{self.path}/shape", emit="so", inputs={"x": (None, 3)})
        self.assertEqual(lathe.load(f"{self.path}/shape.so").inputs["x"].shape, (-1, 3))
        lathe.compile(model, f"{self.path}/shape2", emit="so", inputs=["x=2x2"])
        self.assertEqual(lathe.load(f"{self.path}/shape2.so").inputs["x"].shape, (2, 2))

    def test_all_that_is_wrong(self):
        model = graph(placeholder("s", "string", [-1]), node("up", "StringUpper", ["s"]), node("low", "StringLower", ["up"]))
        with self.assertRaises(lathe.errors.UnimplementedError) as caught:
            lathe.compile(model, f"{self.path}/no")
        for name in ("'up' (StringUpper)", "'low' (StringLower)"):
            self.assertIn(name, str(caught.exception))
        self.assertFalse(os.path.exists(f"{self.path}/no.o"))
        small = graph(placeholder("x", "float", [2]), unary("y", "Neg", "x"))
        for wrong in ({"emit": "exe"}, {"cpu": "no-such-cpu"}, {"threads": 0}, {"precision": "f8"}, {"backend": "none"}, {"outputs": ["gone"]}, {"inputs": "x=a"},
                      {"inputs": ["absent=2"]}):
            with self.assertRaises(lathe.errors.InvalidArgumentError, msg=wrong):
                lathe.compile(small, f"{self.path}/no", **wrong)
        with self.assertRaises(lathe.errors.InvalidArgumentError):
            lathe.compile(small, f"{self.path}/absent/folder/no")
        with self.assertRaises(TypeError):
            lathe.compile(3, f"{self.path}/no")
        with self.assertRaises(lathe.errors.NotFoundError):
            lathe.load(f"{self.path}/absent.so")
        with open(f"{self.path}/text.so", "w") as f:
            f.write("no library")
        with self.assertRaises(lathe.errors.InvalidArgumentError):
            lathe.load(f"{self.path}/text.so")

    def test_quantized_inputs_and_outputs(self):
        rng = np.random.default_rng(2)
        weights = rng.normal(size=(8, 3)).astype(F)
        model = graph(placeholder("x", "float", [-1, 8]), constant("w", weights), node("y", "MatMul", ["x", "w"], type_attr("T", "float")))
        feeds = rng.uniform(-2, 5, (64, 8)).astype(F)
        np.savez(f"{self.path}/feeds.npz", x=feeds)
        options = {"emit": "so", "quantize": "int8", "io": "int8", "max_error": 0.1, "quantize_report": f"{self.path}/report.json"}
        written = []
        for calibrate in (f"{self.path}/feeds.npz", [f"{self.path}/feeds.npz"], {"x": feeds}):
            lathe.compile(model, f"{self.path}/bytes", calibrate=calibrate, **options)
            with open(f"{self.path}/bytes.so", "rb") as f:
                written.append(f.read())
        self.assertEqual([w == written[0] for w in written], [True] * 3)
        lathe.compile(model, f"{self.path}/bytes", calibrate=[{"x": feeds}, {"x": feeds}], **options)
        self.assertGreater(os.path.getsize(f"{self.path}/report.json"), 0)
        module = lathe.load(f"{self.path}/bytes.so")
        x, y = module.inputs["x"], module.outputs["y"]
        self.assertEqual((x.dtype, y.dtype, len(x.quantization.scales)), ("int8", "int8", 1))
        scale, zero = x.quantization.scales[0], x.quantization.zero_points[0]
        self.assertAlmostEqual(scale, 7 / 255, 3)
        values = feeds[:5]
        got = y.dequantize(module(x=x.quantize(values))["y"])
        self.assertEqual(got.dtype, F)
        np.testing.assert_allclose(got, values @ weights, atol=y.quantization.scales[0] + 0.05 * np.ptp(values @ weights))
        # and as a file for TensorFlow Lite
        compiled = lathe.compile(model, f"{self.path}/lite", calibrate={"x": feeds}, **{**options, "emit": "tflite"})
        self.assertEqual(compiled.files, {"tflite": f"{self.path}/lite.tflite"})
        self.assertEqual(compiled.quantized["integer_share"], 1)
        self.assertIn("MB", repr(compiled))
        interpreter = lathe.lite.Interpreter(compiled.files["tflite"])
        interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], [5, 8])
        interpreter.allocate_tensors()
        self.assertAlmostEqual(interpreter.get_input_details()[0]["quantization"][0], scale, 6)
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x.quantize(values))
        interpreter.invoke()
        lite = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
        np.testing.assert_array_equal(lite, module(x=x.quantize(values))["y"])
        for wrong in ({"io": "int8"}, {"calibrate": {"x": feeds}}, {"quantize": "dynamic", "keep_faster": True}, {"emit": ["tflite", "obj"]},
                      {"emit": "ptx"}, {"quantize": "int8", "calibrate": {"z": feeds}}, {"quantize": "int4"}):
            with self.subTest(wrong), self.assertRaises(lathe.errors.InvalidArgumentError):
                lathe.compile(model, f"{self.path}/wrong", **wrong)
        # what lathe_quantize gives: ends, ties away from the zero point, NaN
        edges = np.array([1e30, -np.inf, np.nan, 0, 2.5 * scale, -2.5 * scale, 0.49 * scale], F)
        expected = [127, -128, zero, zero, min(zero + 3, 127), max(zero - 3, -128), zero]
        np.testing.assert_array_equal(x.quantize(edges), np.array(expected, np.int8))
        for floats in (values, values.tolist(), values.astype(np.float64)):
            with self.assertRaisesRegex(TypeError, "takes int8 of a scale, and these are floats"):
                module(x=floats)
        plain = lathe.TensorSpec("p", "p:0", "float32", (2,))
        with self.assertRaisesRegex(TypeError, "'p' is not quantized"):
            plain.quantize([1.0])
        rows = lathe.TensorSpec("r", "r:0", "int8", (2, 2), lathe.Quantization((0.5, 2.0), (0, 1), 1))
        np.testing.assert_array_equal(rows.quantize([[1, 1], [-3, 7]]), [[2, 2], [-6, 5]])
        np.testing.assert_array_equal(rows.dequantize(np.array([[2, 2], [-6, 5]], np.int8)), [[1, 2], [-3, 8]])

    def test_the_same_bytes_as_the_command(self):
        model = f"{SAMPLES}/digits_cnn/graph.pb"
        lathe.compile(model, f"{self.path}/digits", outputs=["Identity_2"], class_name="demo::Digits")
        subprocess.run(["lathe", "compile", model, "-o", f"{self.path}/command", "--output", "Identity_2", "--class", "demo::Digits"],
                       check=True, stderr=subprocess.DEVNULL)
        for suffix in (".o", ".h"):
            with open(f"{self.path}/digits{suffix}", "rb") as a, open(f"{self.path}/command{suffix}", "rb") as b:
                self.assertEqual(a.read(), b.read().replace(b"command.o", b"digits.o") if suffix == ".h" else b.read(), suffix)

    def test_the_same_bytes_for_other_machines(self):
        # the library may have an LLVM of its own, with fewer machines than the command's
        model = f"{SAMPLES}/digits_cnn/graph.pb"
        x86, arm = b"\1\0\x3e\0", b"\1\0\xb7\0"  # an object file's type and machine
        for name, options, mark in (("arm", {"triple": "aarch64-linux-gnu"}, arm), ("old", {"cpu": "v2"}, x86),
                                    ("amx", {"cpu": "sapphirerapids", "precision": "bf16"}, x86), ("gpu", {"backend": "cuda"}, b".target sm_")):
            with self.subTest(name):
                lathe.compile(model, f"{self.path}/{name}", outputs=["Identity_2"], emit="obj", **options)
                command = ["lathe", "compile", model, "-o", f"{self.path}/command/{name}", "--output", "Identity_2", "--emit", "obj"]
                os.makedirs(f"{self.path}/command", exist_ok=True)
                subprocess.run(command + [text for option, value in options.items() for text in (f"--{option}", value)], check=True,
                               stderr=subprocess.DEVNULL)
                with open(f"{self.path}/{name}.o", "rb") as a, open(f"{self.path}/command/{name}.o", "rb") as b:
                    ours = a.read()
                    self.assertEqual(ours, b.read())
                self.assertIn(mark, ours)

    def test_every_option_of_the_command(self):
        text = subprocess.run(["lathe", "compile", "--help"], check=True, capture_output=True, text=True).stdout
        options = set(re.findall(r"^ +(?:-\w, *)?(--[\w-]+)", text, re.M))
        self.assertIn("--precision", options)
        not_here = {"--help", "--out", "--emit", "--json", "--timeout", "--compile-to", "--timing", "--tune"}
        # options by other names, and those for debugging
        keywords = {option[2:].replace("-", "_") for option in options - not_here - {"--sanitize", "--dump-dir"}}
        names = {"input": "inputs", "output": "outputs", "entry": "entries", "class": "class_name", "no_fuse": "fuse"}
        self.assertEqual({names.get(k, k) for k in keywords} - set(inspect.signature(lathe.compile).parameters), set())
        small = graph(placeholder("x", "float", [2]), unary("y", "Neg", "x"))
        for option in sorted(options - not_here):
            with self.subTest(option):
                try:
                    lathe._lathe.compile_files(small, f"{self.path}/option", "obj", [(option[2:], f"{self.path}/?")])
                except lathe.errors.OpError as e:
                    self.assertNotIn("there is no option", str(e))


if __name__ == "__main__":
    unittest.main()
