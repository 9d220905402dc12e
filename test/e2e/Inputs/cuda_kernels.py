"""cuda_kernels.py OUT: OUT.pbtxt, one graph of products, convolutions, reductions and rows whose sizes meet every edge of the kernels that
the cuda backend has of its own (odd, prime, one, several tiles), and OUT.npz, values for its inputs."""
import sys

import numpy as np

nodes, feeds, random = [], {}, np.random.default_rng(7)


def node(name, op, inputs=(), **attrs):
    text = f'node {{ name: "{name}" op: "{op}"' + "".join(f' input: "{i}"' for i in inputs)
    nodes.append(text + "".join(f' attr {{ key: "{k}" value {{ {v} }} }}' for k, v in attrs.items()) + " }")
    return name


def shape(dims):
    return "shape { " + " ".join(f"dim {{ size: {d} }}" for d in dims) + " }"


def given(name, dims, dtype="DT_FLOAT", free=None):
    """A placeholder of these sizes; the one at `free` is known at run time only."""
    value = random.standard_normal(dims)
    feeds[name] = value.astype(np.float32 if dtype == "DT_FLOAT" else np.float64)
    return node(name, "Placeholder", dtype=f"type: {dtype}", shape=shape([-1 if i == free else d for i, d in enumerate(dims)]))


def product(name, m, k, n, ta=False, tb=False, batch=(), free=None, dtype="DT_FLOAT", bias=False):
    a = given(name + "_a", [*batch, k, m] if ta else [*batch, m, k], dtype, free)
    b = given(name + "_b", [*batch, n, k] if tb else [*batch, k, n], dtype)
    t = {"T": f"type: {dtype}"}
    y = node(name, "BatchMatMulV2", [a, b], adj_x=f"b: {str(ta).lower()}", adj_y=f"b: {str(tb).lower()}", **t)
    if bias:
        y = node(name + "_biased", "AddV2", [y, given(name + "_c", [n], dtype)], **t)
        node(name + "_out", "Relu", [y], **t)


def conv(name, image, taps, channels, stride=1, padding="SAME", dilation=1):
    x, w = given(name + "_x", image), given(name + "_w", [*taps, image[-1], channels])
    four = lambda v: f"list {{ i: 1 i: {v} i: {v} i: 1 }}"
    node(name, "Conv2D", [x, w], T="type: DT_FLOAT", strides=four(stride), dilations=four(dilation), padding=f's: "{padding}"')


def axes(name, values):
    return node(name, "Const", dtype="type: DT_INT32", value=f"tensor {{ dtype: DT_INT32 tensor_shape {{ dim {{ size: {len(values)} }} }} "
                + " ".join(f"int_val: {v}" for v in values) + " }")


def reduce(name, op, dims, over, free=None):
    x = given(name + "_x", dims, free=free)
    feeds[x] = np.abs(feeds[x])  # sums that do not cancel have a bound in terms of themselves
    node(name, op, [x, axes(name + "_over", over)], T="type: DT_FLOAT", Tidx="type: DT_INT32", keep_dims="b: false")


def softmax(name, dims, free=None):
    node(name, "Softmax", [given(name + "_x", dims, free=free)], T="type: DT_FLOAT")


product("one_tile", 33, 17, 31)
product("deep", 40, 129, 67, bias=True)
product("left_across", 36, 20, 45, ta=True)
product("right_across", 35, 24, 40, tb=True)
product("both_across", 34, 19, 33, ta=True, tb=True)
product("rows_at_run_time", 41, 16, 64, free=0)
product("depth_at_run_time", 32, 37, 32, free=1)
product("batches", 16, 12, 20, batch=(2, 3))
product("doubles", 37, 18, 35, dtype="DT_DOUBLE")
product("many", 770, 10, 1026, batch=(2,))
product("middle", 700, 9, 600)
product("shared_depth", 40, 600, 50)
product("shared_depth_doubles", 20, 257, 33, ta=True, dtype="DT_DOUBLE")
product("one_row", 1, 515, 100, bias=True)
product("one_row_across", 1, 516, 131, tb=True)
product("three_rows", 3, 65, 33)
product("one_column", 50, 300, 1)
product("few_columns", 40, 65, 5, ta=True)
product("long_lines", 1, 4096, 40, tb=True)
conv("plain_conv", [1, 9, 11, 3], [3, 3], 16)
conv("strided", [2, 12, 9, 8], [3, 5], 33, stride=2, padding="VALID")
conv("dilated", [1, 13, 13, 4], [3, 3], 8, dilation=2)
conv("shared_taps", [1, 5, 5, 32], [3, 3], 40)
conv("points", [1, 7, 7, 32], [1, 1], 64)
reduce("all", "Sum", [20011], [0])
reduce("rows_sum", "Sum", [5, 33], [1])
reduce("rows_long", "Mean", [3, 2000], [1])
reduce("rows_max", "Max", [7, 100], [1], free=1)
reduce("columns", "Sum", [100, 70], [0])
reduce("columns_long", "Max", [1500, 33], [0], free=0)
reduce("middle_out", "Sum", [3, 70, 40], [1])
reduce("outer_and_inner", "Sum", [9, 5, 50], [0, 2])
softmax("short_rows", [9, 33])
softmax("long_rows", [3, 1500])
softmax("rows_of_any_size", [4, 129], free=1)

out = sys.argv[1]
with open(out + ".pbtxt", "w", encoding="utf-8") as f:
    f.write("\n".join(nodes) + "\n")
np.savez(out + ".npz", **feeds)
