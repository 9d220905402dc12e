"""cuda_conv.py OUT: OUT.pbtxt, convolutions in tiles whose taps are looked up in tables, and some that have none, at the edges of images,
tiles and the depth, and OUT.npz, whole numbers for their inputs, so small that sums are exact in any order."""
import sys

import numpy as np
from cuda_graph import feeds, node, random, shape, write

TYPES = {"DT_FLOAT": np.float32, "DT_HALF": np.float16}


def given(name, dims, dtype, free=False):
    feeds[name] = random.integers(-3, 4, dims).astype(TYPES[dtype])
    return node(name, "Placeholder", dtype=f"type: {dtype}", shape=shape([-1, *dims[1:]] if free else dims))


def conv(name, image, taps, channels, stride=1, padding="SAME", dilation=1, groups=1, dtype="DT_FLOAT", free=False, bias=False):
    around = lambda v: "list { i: 1 " + f"i: {v} " * len(taps) + "i: 1 }"
    x = given(name + "_x", image, dtype, free)
    w = given(name + "_w", [*taps, image[-1] // groups, channels], dtype)
    t = {"T": f"type: {dtype}"}
    how = padding if isinstance(padding, str) else "EXPLICIT"
    attrs = {"strides": around(stride), "dilations": around(dilation), "padding": f's: "{how}"', **t}
    if how == "EXPLICIT":
        attrs["explicit_paddings"] = "list { " + " ".join(f"i: {p}" for p in [0, 0, *padding, 0, 0]) + " }"
    y = node(name, f"Conv{len(taps)}D", [x, w], **attrs)
    if bias:
        y = node(name + "_biased", "BiasAdd", [y, given(name + "_b", [channels], dtype)], **t)
        node(name + "_relu", "Relu", [y], **t)


conv("usual", [1, 10, 11, 64], [3, 3], 40, bias=True)
conv("usual_of_images", [2, 7, 9, 64], [3, 3], 36, free=True)
conv("deep", [1, 7, 7, 128], [3, 3], 33)
conv("strided", [2, 13, 14, 48], [3, 3], 32, stride=2)
conv("dilated", [1, 15, 14, 64], [3, 3], 32, dilation=2)
conv("dilated_widely", [1, 8, 7, 64], [3, 3], 16, dilation=5)
conv("tall", [1, 12, 9, 96], [5, 1], 24)
conv("vectors", [1, 9, 9, 20], [5, 5], 24, bias=True)
conv("singles", [1, 21, 22, 3], [7, 7], 40, stride=2)
conv("singles_deep", [1, 9, 10, 11], [7, 5], 32)
conv("groups", [1, 9, 9, 128], [3, 3], 40, groups=2)
conv("inside", [1, 12, 12, 64], [3, 3], 32, padding="VALID")
conv("inside_and_odd", [1, 11, 9, 36], [5, 3], 20, padding="VALID")
conv("across_only", [1, 9, 12, 64], [3, 3], 32, padding=[0, 0, 2, 1])
conv("far_outside", [1, 6, 5, 64], [3, 3], 32, padding=[5, 4, 3, 7])
conv("far_outside_dilated", [1, 6, 5, 64], [2, 3], 16, padding=[6, 5, 9, 8], dilation=4)
conv("volume", [1, 5, 6, 7, 16], [3, 3, 3], 32)
conv("halves", [1, 9, 9, 64], [3, 3], 32, dtype="DT_HALF")
conv("middle", [1, 48, 44, 24], [3, 3], 160)
conv("large", [1, 70, 64, 16], [3, 3], 192)
conv("few_turns", [1, 9, 9, 8], [3, 3], 16)
conv("many_taps", [1, 20, 21, 4], [17, 16], 8)
conv("long_table", [1, 9, 9, 20], [13, 11], 16)
write(sys.argv[1])
