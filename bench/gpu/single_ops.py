"""Models of one product, convolution or pass through memory each, that `pack` puts into an archive beside real ones: what cuBLASLt, cuDNN
and the bandwidth of memory are compared on."""
import json
import os

import numpy as np

# name: rows, depth, columns, batch, element type, precision
PRODUCTS = {
    "product_bf16_4096": (4096, 4096, 4096, 1, "bf16", "f32"),
    "product_f16_4096": (4096, 4096, 4096, 1, "f16", "f32"),
    "product_tf32_4096": (4096, 4096, 4096, 1, "f32", "tf32"),
    "product_f32_2048": (2048, 2048, 2048, 1, "f32", "f32"),
    "product_i8_4096": (4096, 4096, 4096, 1, "i8", "f32"),
    "product_bf16_768": (768, 1024, 768, 1, "bf16", "f32"),
    "product_f32_384x768x3072": (384, 768, 3072, 1, "f32", "f32"),
    "product_f32_1x4096x4096": (1, 4096, 4096, 1, "f32", "f32"),
    "product_f32_batch_96x128x64x128": (128, 64, 128, 96, "f32", "f32"),
}
# name: images, edge, channels, window, stride, channels of the result, precision, groups of channels
CONVOLUTIONS = {
    "conv_f32_16x56x64_3x3x64": (16, 56, 64, 3, 1, 64, "f32", 1),
    "conv_tf32_16x56x64_3x3x64": (16, 56, 64, 3, 1, 64, "tf32", 1),
    "conv_f32_1x56x64_3x3x64": (1, 56, 64, 3, 1, 64, "f32", 1),
    "conv_f32_16x14x1024_1x1x256": (16, 14, 1024, 1, 1, 256, "f32", 1),
    "conv_f32_8x224x3_7x7x64": (8, 224, 3, 7, 2, 64, "f32", 1),
    "conv_f32_16x28x256_3x3x256_32": (16, 28, 256, 3, 1, 256, "f32", 32),
}
# What moves memory: name, operands as name: dims, nodes behind them. Each reads or writes 64 MB and more.
def memory_passes():
    const = lambda name, values: (name, "Const", (), {"dtype": "type: DT_INT32", "value": "tensor { dtype: DT_INT32 tensor_shape { "
                                                      + (f"dim {{ size: {len(values)} }}" if len(values) > 1 else "") + " } "
                                                      + " ".join(f"int_val: {v}" for v in values) + " }"})
    scalar = lambda name, v: (name, "Const", (), {"dtype": "type: DT_FLOAT", "value": f"tensor {{ dtype: DT_FLOAT tensor_shape {{ }} float_val: {v} }}"})
    t, i = {"T": "type: DT_FLOAT"}, {"T": "type: DT_FLOAT", "Tidx": "type: DT_INT32"}
    kept = {**i, "keep_dims": "b: true"}
    return {
        "add_16m": ({"x": [4096, 4096], "y_": [4096, 4096]}, [("y", "AddV2", ("x", "y_"), t)]),
        "tanh_16m": ({"x": [4096, 4096]}, [("y", "Tanh", ("x",), t)]),
        "bias_relu_16m": ({"x": [16384, 1024], "c": [1024]}, [("s", "AddV2", ("x", "c"), t), ("y", "Relu", ("s",), t)]),
        "transpose_4096x8192": ({"x": [4096, 8192]}, [const("p", [1, 0]), ("y", "Transpose", ("x", "p"), {**t, "Tperm": "type: DT_INT32"})]),
        "sum_rows_4096x8192": ({"x": [4096, 8192]}, [const("a", [1]), ("y", "Sum", ("x", "a"), i)]),
        "sum_columns_4096x8192": ({"x": [4096, 8192]}, [const("a", [0]), ("y", "Sum", ("x", "a"), i)]),
        "softmax_8192x4096": ({"x": [8192, 4096]}, [("y", "Softmax", ("x",), t)]),
        "layer_norm_16384x1024": ({"x": [16384, 1024], "g": [1024]}, [
            const("a", [1]), scalar("e", 1e-6), ("m", "Mean", ("x", "a"), kept), ("d", "SquaredDifference", ("x", "m"), t),
            ("v", "Mean", ("d", "a"), kept), ("ve", "AddV2", ("v", "e"), t), ("r", "Rsqrt", ("ve",), t), ("c", "Sub", ("x", "m"), t),
            ("n", "Mul", ("c", "r"), t), ("y", "Mul", ("n", "g"), t)]),
        "max_pool_64x112x64": ({"x": [64, 112, 112, 64]}, [
            ("y", "MaxPool", ("x",), {**t, "ksize": "list { i: 1 i: 3 i: 3 i: 1 }", "strides": "list { i: 1 i: 2 i: 2 i: 1 }",
                                      "padding": 's: "SAME"'})]),
        "depthwise_64x56x128": ({"x": [64, 56, 56, 128], "w": [3, 3, 128, 1]}, [
            ("y", "DepthwiseConv2dNative", ("x", "w"), {**t, "strides": "list { i: 1 i: 1 i: 1 i: 1 }", "padding": 's: "SAME"'})]),
    }


# of these, those that PyTorch has a call for
PEERS = {"add_16m", "tanh_16m", "transpose_4096x8192", "sum_rows_4096x8192", "sum_columns_4096x8192", "softmax_8192x4096",
         "layer_norm_16384x1024", "max_pool_64x112x64", "depthwise_64x56x128"}

# the same code, in little
SMALL = ({"product_bf16_small": (64, 64, 64, 1, "bf16", "f32"), "product_tf32_small": (40, 64, 48, 1, "f32", "tf32")},
         {"conv_f32_small": (1, 12, 8, 3, 1, 16, "f32", 1)})
TYPES = {"f32": "DT_FLOAT", "f16": "DT_HALF", "bf16": "DT_BFLOAT16", "i8": "DT_INT8"}
PERIOD = 61  # rows after which random ones come again, so that they take little room when packed; of images whole ones do


def bfloats(x):
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def values(dims, kind, seed, period=0):
    count = int(np.prod(dims))
    some = np.random.default_rng(seed).standard_normal(min(count, period or PERIOD * dims[-1])).astype(np.float32)
    x = np.resize(some, count).reshape(dims)
    if kind == "bf16":  # npz has no such type: f32 that bf16 holds
        return (bfloats(x).astype(np.uint32) << 16).view(np.float32).reshape(dims)
    if kind == "i8":
        return (x * 40).clip(-128, 127).astype(np.int8)
    return x.astype({"f32": np.float32, "f16": np.float16}[kind])


def node(name, op, inputs=(), **attrs):
    return (f'node {{ name: "{name}" op: "{op}"' + "".join(f' input: "{i}"' for i in inputs)
            + "".join(f' attr {{ key: "{k}" value {{ {v} }} }}' for k, v in attrs.items()) + " }")


def placeholder(name, dims, dtype):
    return node(name, "Placeholder", dtype=f"type: {dtype}", shape="shape { " + " ".join(f"dim {{ size: {d} }}" for d in dims) + " }")


def write(folder, name, nodes, inputs, peer, tolerance, flags=""):
    os.makedirs(os.path.join(folder, name))
    text = "\n".join(nodes) + "\n"
    with open(os.path.join(folder, name, "graph.pbtxt"), "w") as f:
        f.write(text)
    if TYPES["bf16"] in text:  # what CPU code computes results of, in f32
        with open(os.path.join(folder, name, "graph_f32.pbtxt"), "w") as f:
            f.write(text.replace(TYPES["bf16"], TYPES["f32"]))
    np.savez(os.path.join(folder, name, "inputs.npz"), **inputs)
    with open(os.path.join(folder, name, "model.json"), "w") as f:
        json.dump({"fetches": {"y": {"tensor": "y:0"}}, "peer": peer, "tolerance": tolerance, "flags": flags}, f)


def make(folder, which):
    """Writes the models; their names."""
    products, convolutions = {"standard": (PRODUCTS, CONVOLUTIONS), "small": SMALL, "none": ({}, {})}[which]
    flags = lambda precision: "" if precision == "f32" else f"--precision {precision}"
    loose = {"bf16": 1e-2, "f16": 2e-3, "f32": 1e-5, "i8": 0}
    for name, (m, k, n, batch, kind, precision) in products.items():
        lead = [batch] if batch > 1 else []
        dims, t = {"a": lead + [m, k], "b": lead + [k, n]}, TYPES[kind]
        nodes = [placeholder(x, d, t) for x, d in dims.items()]
        if kind == "i8":
            nodes.append(node("y", "BatchMatMulV3", ["a", "b"], Ta=f"type: {t}", Tb=f"type: {t}", Tout="type: DT_INT32", adj_x="b: false",
                              adj_y="b: false"))
        else:
            nodes.append(node("y", "BatchMatMulV2", ["a", "b"], T=f"type: {t}", adj_x="b: false", adj_y="b: false"))
        write(folder, name, nodes, {x: values(d, kind, i) for i, (x, d) in enumerate(dims.items())},
              {"kind": "product", "dims": dims, "type": kind, "precision": precision}, 2e-2 if precision == "tf32" else loose[kind], flags(precision))
    for name, (images, edge, channels, window, stride, out, precision, groups) in convolutions.items():
        dims = {"x": [images, edge, edge, channels], "w": [window, window, channels // groups, out]}
        nodes = [placeholder(x, d, "DT_FLOAT") for x, d in dims.items()]
        four = f"list {{ i: 1 i: {stride} i: {stride} i: 1 }}"
        nodes.append(node("y", "Conv2D", ["x", "w"], T="type: DT_FLOAT", strides=four, padding='s: "SAME"'))
        write(folder, name, nodes, {"x": values(dims["x"], "f32", 0, edge * edge * channels), "w": values(dims["w"], "f32", 1)},
              {"kind": "convolution", "dims": dims, "stride": stride, "groups": groups, "type": "f32", "precision": precision}, 2e-2 if precision == "tf32" else 1e-5, flags(precision))
    passes = memory_passes() if which == "standard" else {}
    for name, (dims, nodes) in passes.items():
        written = [placeholder(x, d, "DT_FLOAT") for x, d in dims.items()] + [node(n, op, ins, **a) for n, op, ins, a in nodes]
        write(folder, name, written, {x: values(d, "f32", i, 61 * 1024) for i, (x, d) in enumerate(dims.items())},
              {"kind": "pass", "pass": name.rsplit("_", 1)[0], "type": "f32", "precision": "f32"} if name in PEERS else None, 1e-5)
    # next to nothing: what a run costs beside its kernels
    write(folder, "nothing", [placeholder("x", [8], "DT_FLOAT"), node("y", "Neg", ["x"], T="type: DT_FLOAT")], {"x": values([8], "f32", 0)}, None, 0)
    return [*products, *convolutions, *passes, "nothing"]
