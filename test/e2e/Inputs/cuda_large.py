"""cuda_large.py OUT: OUT.pbtxt, products with tiles of 8x8 and 8x4 sums a thread, and convolutions whose taps lie outside of images."""
import sys

from cuda_graph import node, shape, write


def plain(name, m, k, n):
    for side, dims in (("a", [m, k]), ("b", [k, n])):
        node(f"{name}_{side}", "Placeholder", dtype="type: DT_FLOAT", shape=shape(dims))
    node(name, "MatMul", [name + "_a", name + "_b"], T="type: DT_FLOAT", transpose_a="b: false", transpose_b="b: false")


def conv(name, image, taps, channels, stride=1):
    for side, dims in (("x", image), ("w", [*taps, image[-1], channels])):
        node(f"{name}_{side}", "Placeholder", dtype="type: DT_FLOAT", shape=shape(dims))
    strides = f"list {{ i: 1 i: {stride} i: {stride} i: 1 }}"
    node(name, "Conv2D", [name + "_x", name + "_w"], T="type: DT_FLOAT", strides=strides, padding='s: "SAME"')


plain("square", 2048, 2048, 2048)
plain("flat", 384, 768, 3072)
plain("middle", 1024, 512, 768)
conv("taps_together", [1, 28, 28, 128], [3, 3], 128)
conv("taps_of_vectors", [1, 28, 28, 36], [5, 5], 128)
conv("taps_of_elements", [1, 224, 224, 3], [7, 7], 64, 2)
conv("taps_of_large_tiles", [8, 56, 56, 64], [3, 3], 256)
write(sys.argv[1])
