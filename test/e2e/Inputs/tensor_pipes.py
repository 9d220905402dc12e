"""tensor_pipes.py OUT EDGE: OUT.pbtxt, products and a convolution whose tiles on tensor cores have so many rows and columns: of f32, f16 and
bf16, with operands that lie along the depth and across it."""
import sys

from cuda_graph import node, shape, write

edge = int(sys.argv[2])
# sizes for which the backend chooses such tiles: enough blocks of them, and not of the larger ones
m, k, n, images = {128: (2048, 1024, 2048, 8), 64: (768, 1024, 768, 2), 32: (384, 480, 384, 1)}[edge]


def placeholder(name, dims, dtype):
    return node(name, "Placeholder", dtype=f"type: {dtype}", shape=shape(dims))


def product(name, dtype, ta, tb):
    a, b = placeholder(name + "_a", [k, m] if ta else [m, k], dtype), placeholder(name + "_b", [n, k] if tb else [k, n], dtype)
    node(name, "BatchMatMulV2", [a, b], T=f"type: {dtype}", adj_x=f"b: {str(ta).lower()}", adj_y=f"b: {str(tb).lower()}")


for dtype in "DT_FLOAT", "DT_HALF", "DT_BFLOAT16":
    for ta, tb in (False, False), (False, True), (True, False):
        product(f"{dtype[3:].lower()}_{ta:d}{tb:d}", dtype, ta, tb)
    x = placeholder(f"{dtype}_x", [images, 56 if edge > 32 else 28, 56 if edge > 32 else 28, 64], dtype)
    w = placeholder(f"{dtype}_w", [3, 3, 64, 64], dtype)
    ones = "list { i: 1 i: 1 i: 1 i: 1 }"
    node(f"{dtype}_conv", "Conv2D", [x, w], T=f"type: {dtype}", strides=ones, dilations=ones, padding='s: "SAME"')
write(sys.argv[1])
