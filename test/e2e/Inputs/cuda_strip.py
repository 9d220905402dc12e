"""cuda_strip.py OUT: OUT.pbtxt, poolings and depthwise convolutions that are made in strips of one or several pixels, at the edges of strips and bands, and
OUT.npz, values for their inputs, infinities and zeros of both signs among them. OUT.strips: how many of them a kernel of strips is made for."""
import sys

import numpy as np
from cuda_graph import feeds, node, random, shape, write

ENOUGH, FEW = 132 * 1024, 96 * 128  # strips of several pixels, and of one
count = 0
four = lambda a: f"list {{ i: 1 i: {a} i: {a} i: 1 }}"


def given(name, dims, odd=True, free=False):
    value = random.standard_normal(dims).astype(np.float32)
    if odd:  # what is left out at an edge must not be replaced by a product with zero
        value.flat[:: 1 + value.size // 400] = random.choice(np.array([0.0, -0.0, np.inf, -np.inf, 1e-30, -1e-30], np.float32), 1)
    feeds[name] = value
    return node(name, "Placeholder", dtype="type: DT_FLOAT", shape=shape([-1, *dims[1:]] if free else dims))


def cast(name, x, dtype):
    return x if dtype == "DT_FLOAT" else node(name, "Cast", [x], SrcT="type: DT_FLOAT", DstT=f"type: {dtype}", Truncate="b: false")


def strips(name, op, image, window, stride=1, padding="SAME", dilation=1, dtype="DT_FLOAT", pixels=4, free=False, epilogue="", many=1):
    """`pixels`: of a strip, so that there are just enough; `image`: height, width and channels; `many`: results of each."""
    global count
    count += 1
    t = {"T": f"type: {dtype}"}
    height, width, channels = image
    reach = [(k - 1) * dilation + 1 for k in window]
    pads = padding if isinstance(padding, list) else [0] * 4
    out = [-(-n // stride) if padding == "SAME" else (n + pads[2 * i] + pads[2 * i + 1] - reach[i]) // stride + 1
           for i, n in enumerate((height, width))]  # fmt: skip
    images = 2 if free else -(-(ENOUGH if pixels > 1 else FEW) // (out[0] * -(-out[1] // pixels) * channels * many // 4))
    x = cast(name + "_in", given(name + "_x", [images, *image], free=free), dtype)
    attrs = {"strides": four(stride), "padding": f's: "{padding if isinstance(padding, str) else "EXPLICIT"}"', **t}
    if isinstance(padding, list):
        attrs["explicit_paddings"] = "list { " + " ".join(f"i: {p}" for p in [0, 0, *padding, 0, 0]) + " }"
    if op == "DepthwiseConv2dNative":
        w = cast(name + "_filter", given(name + "_w", [*window, channels, many], False), dtype)
        y = node(name, op, [x, w], dilations=four(dilation), **attrs)
    else:
        y = node(name, op, [x], ksize=f"list {{ i: 1 i: {window[0]} i: {window[1]} i: 1 }}", **attrs)
    if epilogue:
        y = node(name + "_biased", "BiasAdd", [y, cast(name + "_b", given(name + "_bias", [channels * many], False), dtype)], **t)
    if epilogue == "relu6":
        y = node(name + "_relu6", "Relu6", [y], **t)
    if epilogue == "add":
        y = node(name + "_sum", "AddV2", [y, cast(name + "_more", given(name + "_rest", [images, *out, channels * many], False), dtype)], **t)


conv = "DepthwiseConv2dNative"
strips("usual", conv, [12, 16, 64], [3, 3], epilogue="relu6")
strips("left_over", conv, [13, 14, 96], [3, 3], epilogue="add")
strips("halved", conv, [15, 19, 32], [3, 3], 2, dtype="DT_HALF")
strips("explicit", conv, [9, 11, 24], [2, 5], padding=[1, 0, 4, 1], pixels=3)
strips("dilated", conv, [12, 21, 40], [2, 3], padding="VALID", dilation=2, epilogue="bias")
strips("free", conv, [98, 97, 228], [1, 2], free=True)
strips("most", "MaxPool", [17, 26, 32], [3, 3], 2)
strips("mean", "AvgPool", [10, 13, 20], [3, 2], dtype="DT_HALF")
strips("alone", conv, [14, 14, 48], [3, 3], pixels=1, epilogue="add")
strips("alone_halved", conv, [13, 9, 20], [5, 5], 2, dtype="DT_HALF", pixels=1)
strips("alone_long", conv, [11, 7, 64], [7, 2], padding=[2, 3, 1, 0], pixels=1)
strips("alone_most", "MaxPool", [12, 17, 24], [3, 3], 2, pixels=1)
strips("two_each", conv, [13, 14, 10], [3, 3], epilogue="relu6", many=2)
strips("three_each", conv, [12, 13, 12], [3, 3], 2, epilogue="add", many=3, pixels=3)
strips("four_each", conv, [9, 16, 3], [2, 3], dtype="DT_HALF", many=4)
strips("six_each", conv, [14, 12, 6], [3, 3], many=6, pixels=1)
strips("eight_each", conv, [7, 9, 16], [3, 2], epilogue="bias", many=8, pixels=1)
strips("alone_mean", "AvgPool", [9, 16, 32], [6, 4], pixels=1)
write(sys.argv[1])
with open(sys.argv[1] + ".strips", "w", encoding="utf-8") as f:
    f.write(f"{count}\n")
