"""test_lite.py DATA: lathe.lite.Interpreter on the files that test/e2e/make_tflite.py made, against their results."""
import base64
import json
import os
import sys

import numpy as np

from lathe import lite

DATA = sys.argv[1]


def load(name):
    return os.path.join(DATA, name + ".tflite"), np.load(os.path.join(DATA, name + ".npz"))


def fails(kind, f, *args, **more):
    try:
        f(*args, **more)
    except kind as e:
        return str(e)
    raise AssertionError(f"no {kind.__name__}")


# One input and one output, by index; sizes of the input that the file leaves open.
path, data = load("cnn_int8_io")
image, want = data["image"], data[[k for k in data.files if k.startswith("want/")][0]]
it = lite.Interpreter(model_path=path, num_threads=2)
i, o = it.get_input_details()[0], it.get_output_details()[0]
assert i["dtype"] == np.int8 and o["dtype"] == np.int8 and i["shape_signature"][0] == -1, (i, o)
scale, zero = i["quantization"]
assert scale > 0 and i["quantization_parameters"]["scales"].tolist() == [scale] and i["quantization_parameters"]["zero_points"].tolist() == [zero]
fails(RuntimeError, it.invoke)
fails(ValueError, it.get_tensor, o["index"])
fails(ValueError, it.resize_tensor_input, i["index"], [2, 5, 5, 3], strict=True)
it.resize_tensor_input(i["index"], image.shape, strict=True)
it.allocate_tensors()
assert it.get_output_details()[0]["shape"].tolist() == list(want.shape)
assert "int8" in fails(ValueError, it.set_tensor, i["index"], image.astype(np.float32))
assert "expected shape (2, 12, 12, 3), found (1, 12, 12, 3)" in fails(ValueError, it.set_tensor, i["index"], image[:1])
fails(ValueError, it.set_tensor, o["index"], want)
fails(ValueError, it.get_tensor, 10 ** 6)
it.set_tensor(i["index"], image)
it.invoke()
assert np.array_equal(it.get_tensor(o["index"]), want)
it.tensor(i["index"])()[...] = 0  # the tensor's own memory
it.invoke()
assert not np.array_equal(it.get_tensor(o["index"]), want)
assert {d["index"] for d in it.get_tensor_details()} == {i["index"], o["index"]}

# Signatures: names of inputs and outputs, a variable that both see.
with open(os.path.join(DATA, "..", "..", "tflite_api", "signatures.tflite"), "rb") as f:
    content = f.read()
it = lite.Interpreter(model_content=content)
assert it.get_signature_list() == {"add": {"inputs": ["x"], "outputs": ["sum"]}, "scaled": {"inputs": ["factor"], "outputs": ["scaled"]}}
assert "2 signatures" in fails(ValueError, it.get_signature_runner)
add, scaled = it.get_signature_runner("add"), it.get_signature_runner("scaled")
assert add.get_input_details()["x"]["dtype"] == np.float32
assert add(x=np.array([1, 2], np.float32))["sum"].tolist() == [11, 22]
assert scaled(factor=2.0)["scaled"].tolist() == [22, 44]
assert add(x=np.array([1, 2], np.float32))["sum"].tolist() == [12, 24]
fails(ValueError, add, y=np.zeros(2, np.float32))
fails(ValueError, it.get_signature_runner, "other")

# Several operators at once; what does not compile says why.
path, data = load("ops_reduce")
it = lite.Interpreter(path)
it.allocate_tensors()
for d in it.get_input_details():
    it.set_tensor(d["index"], data[d["name"]])
it.invoke()
for d in it.get_output_details():
    got, want = it.get_tensor(d["index"]), data["want/" + d["name"]]
    assert got.dtype == want.dtype and got.shape == want.shape and np.allclose(got, want, rtol=1e-5), d["name"]
fails(ValueError, lite.Interpreter, model_content=b"no model at all")
fails(ValueError, lite.Interpreter)
it = lite.Interpreter(os.path.join(DATA, "..", "..", "tflite_api", "custom.tflite"))
assert "RowSums" in fails(RuntimeError, it.allocate_tensors)

# Strings in and out, tables and sizes that only the run knows; a table is filled once.
def strings(packed):
    packed = json.loads(str(packed))
    return np.array([base64.b64decode(v) for v in packed["values"]], object).reshape(packed["shape"])


path, data = load("nodes_text")
it = lite.Interpreter(path)
runner = it.get_signature_runner()
assert runner.get_input_details()["s"]["dtype"] == np.bytes_
for _ in range(2):
    got = runner(s=strings(data["s"]))
    assert got["output_0"].tolist() == data["want/output_0"].tolist() and np.allclose(got["output_1"], data["want/output_1"], atol=1e-5), got
assert runner(s=["dull", "\u00e9 fun"])["output_0"].tolist() == [[7, 0, 0, 0, 0, 0], [1, 8, 0, 0, 0, 0]], runner(s=["dull", "\u00e9 fun"])
path, data = load("nodes_strings")
it = lite.Interpreter(path)
d = {d["name"]: d for d in it.get_input_details()}
it.allocate_tensors()
fails(RuntimeError, it.invoke)  # strings that nobody gave
i = next(v for k, v in d.items() if v["dtype"] == np.bytes_)
it.set_tensor(i["index"], strings(data["s"]))
it.set_tensor(next(v for v in d.values() if v["dtype"] == np.int32)["index"], data["i"])
it.invoke()
assert it.get_tensor(i["index"]).tolist() == strings(data["s"]).tolist()
assert "shape" in fails(ValueError, it.set_tensor, i["index"], np.array(["a"]))
assert "strings" in fails(ValueError, it.set_tensor, i["index"], np.zeros(4))
outputs = [it.get_tensor(d["index"]) for d in it.get_output_details()]
assert any(o.dtype == object and o.ravel().tolist() == [b"d\xc3\xa9", b"a", b"bb"] for o in outputs), outputs

# Three signatures of one interpreter, of which two share tables; the third has a variable on both sides of nodes.
path = os.path.join(sys.argv[1], "../../cli/Inputs/nodes_signatures.tflite")
it = lite.Interpreter(path)
encode, decode, count = (it.get_signature_runner(key) for key in ("encode", "decode", "count"))
for words, ids in ((["the", "x", "film"], [1, 0, 2]), (["the"], [1])):
    got = encode(text=words)
    assert got["ids"].tolist() == ids and got["sum"] == sum(ids) * 0.5, got
    assert decode(numbers=np.arange(4))["words"].tolist() == [b"?", b"the", b"was", b"bad"]
for amounts, whole, total in ((["1", "2"], [b"6", b"11"], [67, 123]), (["1", "2"], [b"34", b"62"], [375.5, 684.5])):
    got = count(amounts=amounts)
    assert got["whole"].tolist() == whole and got["total"].tolist() == total, got
assert "StringToNumber" in fails(RuntimeError, count, amounts=["x", "1"])  # after the first assignment
assert count(amounts=["0", "0"])["whole"].tolist() == [b"95", b"172"]
assert lite.Interpreter(path).get_signature_runner("count")(amounts=["1", "2"])["total"].tolist() == [67, 123]

# Axes and sizes that are inputs: code is compiled for their values, again where they are others. What ran before a part did not compile runs
# again: random numbers are still the first, and go on from run to run.
path, data = load("grid_fed_1")
it = lite.Interpreter(path)
it.allocate_tensors()
inputs, outputs = ({d["name"]: d["index"] for d in list_} for list_ in (it.get_input_details(), it.get_output_details()))
for name, index in inputs.items():
    it.set_tensor(index, data[name])
it.invoke()
for name, index in outputs.items():
    got, want = it.get_tensor(index), data["want/" + name]
    assert got.dtype == want.dtype and got.shape == want.shape and np.allclose(got, want, rtol=1e-5, atol=1e-5), name
x = data["sum_1_i32_in0"]
for axis in (0, 2, 1, 0, -1):
    it.set_tensor(inputs["sum_1_i32_in1"], np.array([axis], np.int32))
    it.invoke()
    got = it.get_tensor(outputs["sum_1_i32_out0"])
    assert np.array_equal(got, x.sum(axis, keepdims=True)), (axis, got)
assert not np.array_equal(it.get_tensor(outputs["multinomial_out0"]), data["want/multinomial_out0"])
it.set_tensor(inputs["sum_1_i32_in1"], np.array([7], np.int32))
assert "axis 7 is out of range" in fails(RuntimeError, it.invoke)
print("ok")
