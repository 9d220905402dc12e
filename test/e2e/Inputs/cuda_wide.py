"""cuda_wide.py OUT SEED [known]: OUT.pbtxt, random gathers, slices, joins, poolings and depthwise convolutions of all types whose rows are of whole
vectors or not, and OUT.npz, values for their inputs. Leading sizes are known at run time only, so that few elements are enough; what is
named `exact_` has the same bits on all backends. OUT.wide: how many of them a kernel of several neighbours a thread should be made for.
With `known` all sizes are known, most of them too few for such kernels."""
import sys

import numpy as np
from cuda_graph import axes, feeds, node, shape, write

random = np.random.default_rng(int(sys.argv[2]))
TYPES = {"DT_FLOAT": np.float32, "DT_DOUBLE": np.float64, "DT_HALF": np.float16, "DT_INT8": np.int8, "DT_UINT8": np.uint8, "DT_INT16": np.int16,
         "DT_UINT16": np.uint16, "DT_INT32": np.int32, "DT_INT64": np.int64, "DT_UINT32": np.uint32, "DT_UINT64": np.uint64, "DT_BOOL": np.bool_}  # fmt: skip
known = sys.argv[3:] == ["known"]
wide = 0


def given(name, dims, dtype, low=-100, high=100, free=True):
    kind = TYPES[dtype]
    if np.issubdtype(kind, np.floating):
        value = random.standard_normal(dims)
        value.flat[:: 7 + value.size // 50] = random.choice([0.0, -0.0, np.inf, -np.inf, 1e-5])  # what max must not mix up
    else:
        info = (0, 2) if kind == np.bool_ else (max(low, np.iinfo(kind).min), min(high, np.iinfo(kind).max))
        value = random.integers(*info, dims)
    feeds[name] = value.astype(kind)
    return node(name, "Placeholder", dtype=f"type: {dtype}", shape=shape([-1, *dims[1:]] if free and not known else dims))


def scalar(name, value):
    return node(name, "Const", dtype="type: DT_INT32", value=f"tensor {{ dtype: DT_INT32 tensor_shape {{}} int_val: {value} }}")


def expect(dtype, row, computes=False):
    """Whether a thread gets several neighbours of such rows."""
    size = np.dtype(TYPES[dtype]).itemsize
    lanes = 4 if computes else max(2, 16 // size)
    while not computes and lanes > 2 and row % lanes:
        lanes //= 2
    return dtype != "DT_BOOL" and row % lanes == 0 and not (computes and size > 4)


def case(name, op, inputs, dtype, row, computes=False, **attrs):
    global wide
    wide += not known and expect(dtype, row, computes)
    node(name, op, inputs, **attrs)


def row_size():
    return int(random.choice([1, 2, 4, 6, 7, 8, 12, 16, 20, 24, 32, 48]))


for dtype in TYPES:
    t = {"T": f"type: {dtype}"}
    name = f"exact_{dtype[3:].lower()}"
    row = row_size()
    dims = [int(random.integers(2, 9)), int(random.integers(2, 6)), row]
    x = given(name + "_x", dims, dtype)
    index = random.choice(["DT_INT32", "DT_INT64"])
    at = given(name + "_at", [int(random.integers(1, 12))], index, 0, dims[0])
    case(name + "_gather", "GatherV2", [x, at, scalar(name + "_zero", 0)],
         dtype, row, Tparams=t["T"], Tindices=f"type: {index}", Taxis="type: DT_INT32")  # fmt: skip
    pairs = given(name + "_pairs", [int(random.integers(1, 7)), 2], index, 0, 2)
    case(name + "_gather_nd", "GatherNd", [x, pairs], dtype, row, Tparams=t["T"], Tindices=f"type: {index}")
    case(name + "_slice", "Slice", [x, axes(name + "_from", [0, 1, 0]), axes(name + "_size", [-1, dims[1] - 1, -1])], dtype, row, Index="type: DT_INT32", **t)
    case(name + "_join", "ConcatV2", [x, given(name + "_y", [dims[0], 3, row], dtype), scalar(name + "_one", 1)],
         dtype, row, N="i: 2", Tidx="type: DT_INT32", **t)  # fmt: skip
    case(name + "_reverse", "ReverseV2", [x, axes(name + "_reversed", [1])], dtype, row, Tidx="type: DT_INT32", **t)
    case(name + "_swap", "Transpose", [x, axes(name + "_order", [1, 0, 2])], dtype, row, Tperm="type: DT_INT32", **t)

four = lambda *v: "list { " + " ".join(f"i: {i}" for i in v) + " }"
for dtype in ("DT_FLOAT", "DT_HALF", "DT_DOUBLE", "DT_INT32", "DT_UINT8", "DT_INT8", "DT_INT16", "DT_UINT16"):
    name, row = f"exact_pool_{dtype[3:].lower()}", row_size()
    image = [int(random.integers(1, 4)), int(random.integers(5, 9)), int(random.integers(5, 9)), row]
    window, stride, padding = int(random.integers(2, 4)), int(random.integers(1, 3)), random.choice(["SAME", "VALID"])
    case(name, "MaxPool", [given(name + "_x", image, dtype)], dtype, row, True, T=f"type: {dtype}", ksize=four(1, window, window, 1),
         strides=four(1, stride, stride, 1), padding=f's: "{padding}"')  # fmt: skip
for dtype in ("DT_FLOAT", "DT_HALF", "DT_DOUBLE"):
    name, row = f"sum_{dtype[3:].lower()}", row_size()
    t = {"T": f"type: {dtype}"}
    image = [int(random.integers(1, 4)), int(random.integers(5, 9)), int(random.integers(5, 9)), row]
    x = node(name + "_small", "Tanh", [given(name + "_x", image, dtype)], **t)
    case(name + "_mean", "AvgPool", [x], dtype, row, True, ksize=four(1, 3, 3, 1), strides=four(1, 2, 2, 1), padding='s: "SAME"', **t)
    taps, many = int(random.integers(1, 6)), int(random.choice([1, 1, 2, 3, 4, 6]))
    w = given(name + "_w", [taps, 3, row, many], dtype, free=False)
    w = node(name + "_filter", "Tanh", [w], **t)
    stride = int(random.integers(1, 3))
    y = node(name + "_deep", "DepthwiseConv2dNative", [x, w], strides=four(1, stride, stride, 1), padding='s: "SAME"', **t)
    y = node(name + "_biased", "BiasAdd", [y, node(name + "_b", "Tanh", [given(name + "_bias", [row * many], dtype, free=False)], **t)], **t)
    case(name + "_out", "Relu", [y], dtype, row * many, True, **t)

if known:
    x, at = given("exact_many_x", [512, 64], "DT_FLOAT"), given("exact_many_at", [1024], "DT_INT32", 0, 512)
    node("exact_many_gather", "GatherV2", [x, at, scalar("zero", 0)], Tparams="type: DT_FLOAT", Tindices="type: DT_INT32", Taxis="type: DT_INT32")
    image = given("exact_many_image", [2, 41, 39, 32], "DT_HALF")
    node("exact_many_pool", "MaxPool", [image], T="type: DT_HALF", ksize=four(1, 3, 3, 1), strides=four(1, 1, 1, 1), padding='s: "SAME"')
    image, taps = given("sum_many_image", [1, 40, 33, 48], "DT_FLOAT"), given("sum_many_taps", [3, 3, 48, 1], "DT_FLOAT")
    feeds["sum_many_image"], feeds["sum_many_taps"] = (np.where(np.isfinite(feeds[v]), feeds[v], 0) for v in ("sum_many_image", "sum_many_taps"))
    node("sum_many_out", "DepthwiseConv2dNative", [image, taps], T="type: DT_FLOAT", strides=four(1, 1, 1, 1), padding='s: "SAME"')
    wide = 3
write(sys.argv[1])
with open(sys.argv[1] + ".wide", "w", encoding="utf-8") as f:
    f.write(f"{wide}\n")
