"""cuda_large.py OUT: OUT.pbtxt, products with tiles of 8x8 and 8x4 sums a thread."""
import sys

from cuda_graph import node, shape, write


def plain(name, m, k, n):
    for side, dims in (("a", [m, k]), ("b", [k, n])):
        node(f"{name}_{side}", "Placeholder", dtype="type: DT_FLOAT", shape=shape(dims))
    node(name, "MatMul", [name + "_a", name + "_b"], T="type: DT_FLOAT", transpose_a="b: false", transpose_b="b: false")


plain("square", 2048, 2048, 2048)
plain("flat", 384, 768, 3072)
plain("middle", 1024, 512, 768)
write(sys.argv[1])
