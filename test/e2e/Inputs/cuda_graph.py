"""Graphs that meet the edges of the cuda backend's kernels: what their scripts are written in. Placeholders get random values in `feeds`."""
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
    types = {"DT_FLOAT": np.float32, "DT_DOUBLE": np.float64, "DT_HALF": np.float16}
    feeds[name] = value.astype(types[dtype])
    return node(name, "Placeholder", dtype=f"type: {dtype}", shape=shape([-1 if i == free else d for i, d in enumerate(dims)]))


def cast(name, x, source, target):
    return node(name, "Cast", [x], SrcT=f"type: {source}", DstT=f"type: {target}", Truncate="b: false")


def product(name, m, k, n, ta=False, tb=False, batch=(), free=None, dtype="DT_FLOAT", bias=False):
    a = given(name + "_a", [*batch, k, m] if ta else [*batch, m, k], dtype, free)
    b = given(name + "_b", [*batch, n, k] if tb else [*batch, k, n], dtype)
    t = {"T": f"type: {dtype}"}
    y = node(name, "BatchMatMulV2", [a, b], adj_x=f"b: {str(ta).lower()}", adj_y=f"b: {str(tb).lower()}", **t)
    if bias:
        y = node(name + "_biased", "AddV2", [y, given(name + "_c", [n], dtype)], **t)
        node(name + "_out", "Relu", [y], **t)


def integers(name, dims, low, high, dtype="DT_INT32"):
    types = {"DT_INT32": np.int32, "DT_INT8": np.int8}
    feeds[name] = random.integers(low, high, dims).astype(types[dtype])
    return node(name, "Placeholder", dtype=f"type: {dtype}", shape=shape(dims))


def product_of_bytes(name, m, k, n, ta, tb, batch):
    """A product of signed bytes with sums of int32."""
    a = integers(name + "_a", [batch, k, m] if ta else [batch, m, k], -128, 128, "DT_INT8")
    b = integers(name + "_b", [batch, n, k] if tb else [batch, k, n], -128, 128, "DT_INT8")
    node(name, "BatchMatMulV3", [a, b], Ta="type: DT_INT8", Tb="type: DT_INT8", Tout="type: DT_INT32", adj_x=f"b: {str(ta).lower()}",
         adj_y=f"b: {str(tb).lower()}")


def constant(name, values):
    dims = " ".join(f"dim {{ size: {d} }}" for d in values.shape)
    text = "".join(f"\\{byte:03o}" for byte in values.astype(np.float32).tobytes())
    return node(name, "Const", dtype="type: DT_FLOAT",
                value=f'tensor {{ dtype: DT_FLOAT tensor_shape {{ {dims} }} tensor_content: "{text}" }}')


def conv(name, image, taps, channels, stride=1, padding="SAME", dilation=1, groups=1, frozen=False):
    dims = [*taps, image[-1] // groups, channels]
    x, w = given(name + "_x", image), constant(name + "_w", random.standard_normal(dims)) if frozen else given(name + "_w", dims)
    four = lambda v: f"list {{ i: 1 i: {v} i: {v} i: 1 }}"
    node(name, "Conv2D", [x, w], T="type: DT_FLOAT", strides=four(stride), dilations=four(dilation), padding=f's: "{padding}"')


def axes(name, values, dtype="DT_INT32"):
    kind = {"DT_INT32": "int_val", "DT_INT64": "int64_val"}[dtype]
    return node(name, "Const", dtype=f"type: {dtype}", value=f"tensor {{ dtype: {dtype} tensor_shape {{ dim {{ size: {len(values)} }} }} "
                + " ".join(f"{kind}: {v}" for v in values) + " }")


def scalar(name, value):
    return node(name, "Const", dtype="type: DT_INT32", value=f"tensor {{ dtype: DT_INT32 tensor_shape {{ }} int_val: {value} }}")


def reduce(name, op, dims, over, free=None):
    x = given(name + "_x", dims, free=free)
    feeds[x] = np.abs(feeds[x])  # sums that do not cancel have a bound in terms of themselves
    node(name, op, [x, axes(name + "_over", over)], T="type: DT_FLOAT", Tidx="type: DT_INT32", keep_dims="b: false")


def filter_gradient(name, op, image, filter, stride=1):
    """Of a convolution of these images with padding, by its filter's values: few sums of many products."""
    out = [image[0], *(-(-n // stride) for n in image[1:3]), filter[2] * filter[3] if op.startswith("Depthwise") else filter[3]]
    four = lambda v: f"list {{ i: 1 i: {v} i: {v} i: 1 }}"
    node(name, op, [given(name + "_x", image), axes(name + "_size", filter), given(name + "_y", out)], T="type: DT_FLOAT", strides=four(stride),
         padding='s: "SAME"')


def windows(op, window, stride, padding="SAME", dtype="DT_FLOAT"):
    """The attributes of a pooling or, but for its own, of a convolution."""
    four = lambda v, w: f"list {{ i: 1 i: {v} i: {w} i: 1 }}"
    attrs = {"T": f"type: {dtype}", "strides": four(stride, stride), "padding": f's: "{padding}"'}
    return attrs if op.startswith("Depthwise") else {"ksize": four(*window), **attrs}


def scatter(name, places, row, updates, op="TensorScatterAdd"):
    at = integers(name + "_at", [updates, 1], 0, places)
    node(name, op, [given(name + "_x", [places, *row]), at, given(name + "_y", [updates, *row])], T="type: DT_FLOAT", Tindices="type: DT_INT32")


def softmax(name, dims, free=None):
    node(name, "Softmax", [given(name + "_x", dims, free=free)], T="type: DT_FLOAT")


def norm(name, dims, over, free=None, dtype="DT_FLOAT"):
    """Rows less their mean, over their deviation, times a row; the deviations are results too."""
    t, i = {"T": f"type: {dtype}"}, {"T": f"type: {dtype}", "Tidx": "type: DT_INT32", "keep_dims": "b: true"}
    x, over = given(name + "_x", dims, dtype, free), axes(name + "_over", over)
    apart = node(name + "_apart", "Sub", [x, node(name + "_mean", "Mean", [x, over], **i)], **t)
    variance = node(name + "_variance", "Mean", [node(name + "_square", "Square", [apart], **t), over], **i)
    scaled = node(name + "_scaled", "Mul", [apart, node(name + "_rsqrt", "Rsqrt", [variance], **t)], **t)
    node(name + "_out", "Mul", [scaled, given(name + "_g", [dims[-1]], dtype)], **t)


def concatenate(name, parts, axis, dtype="DT_FLOAT"):
    xs = [given(f"{name}_{i}", dims, dtype) for i, dims in enumerate(parts)]
    node(name, "ConcatV2", [*xs, scalar(name + "_axis", axis)], N=f"i: {len(xs)}", T=f"type: {dtype}", Tidx="type: DT_INT32")


def update(name, dims, part, starts, dtype="DT_FLOAT", free=None):
    x, y = given(name + "_x", dims, dtype, free), given(name + "_y", part, dtype)
    at = given(name + "_at", [len(starts)])
    feeds[at] = np.array(starts, np.float32)
    at = cast(name + "_starts", at, "DT_FLOAT", "DT_INT32")
    node(name, "XlaDynamicUpdateSlice", [x, y, at], T=f"type: {dtype}", Tindices="type: DT_INT32")


def bits(name, dims, dtype, other):
    node(name, "Bitcast", [given(name + "_x", dims, dtype)], T=f"type: {dtype}", type=f"type: {other}")


def transpose(name, dims, order, dtype="DT_FLOAT", free=None, around=False):
    """`around`: with elementwise code before and after it."""
    t = {"T": f"type: {dtype}"}
    x = given(name + "_x", dims, dtype, free)
    x = node(name + "_before", "Square", [x], **t) if around else x
    y = node(name, "Transpose", [x, axes(name + "_order", order)], Tperm="type: DT_INT32", **t)
    if around:
        node(name + "_after", "AddV2", [y, given(name + "_y", [dims[d] for d in order], dtype)], **t)


def elementwise(name, dims, dtype="DT_FLOAT", free=None):
    """Of a tensor, of one row and of one element for each row."""
    t = {"T": f"type: {dtype}"}
    x = given(name + "_x", dims, dtype, free)
    y = node(name + "_row", "Mul", [x, given(name + "_r", [dims[-1]], dtype)], **t)
    y = node(name + "_rows", "Add", [y, given(name + "_c", [dims[-2], 1], dtype)], **t)
    y = node(name + "_tanh", "Tanh", [y], **t)
    node(name + "_relu", "Relu", [y], **t)  # a constant of every element alike
    node(name + "_out", "Maximum", [node(name + "_erf", "Erf", [y], **t), x], **t)
    node(name + "_sign", "Select", [node(name + "_less", "Less", [y, x], **t), y, x], **t)


def write(out):
    """OUT.pbtxt and OUT.npz, values for its inputs."""
    with open(out + ".pbtxt", "w", encoding="utf-8") as f:
        f.write("\n".join(nodes) + "\n")
    np.savez(out + ".npz", **feeds)
