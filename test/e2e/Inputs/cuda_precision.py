"""cuda_precision.py OUT: OUT.pbtxt, products and convolutions whose sizes meet the edges of the kernels for tensor cores, OUT.npz, values for
its inputs, and OUT_tf32.npz and OUT_bf16.npz, where the operands are rounded as `--precision` says."""
import sys

import numpy as np
from cuda_graph import cast, conv, feeds, given, node, product, write

# f32 operands: rounded on their way to shared memory
product("one_tile", 33, 17, 31)
product("several_stages", 40, 129, 67, bias=True)
product("whole_stages", 64, 96, 48)
product("left_across", 36, 20, 45, ta=True)
product("right_across", 35, 24, 40, tb=True)
product("both_across", 36, 19, 32, ta=True, tb=True)
product("rows_at_run_time", 41, 16, 64, free=0)
product("depth_at_run_time", 32, 37, 32, free=1)
product("batches", 16, 12, 20, batch=(2, 3))
product("middle", 640, 136, 640, ta=True)
product("middle_short", 640, 40, 640, ta=True)
product("deep", 36, 333, 40, ta=True)
product("shared_by_blocks", 40, 2048, 36, bias=True)
product("large", 1100, 20, 1284, tb=True)
conv("plain_conv", [1, 9, 11, 3], [3, 3], 16)
conv("strided", [2, 12, 9, 8], [3, 5], 33, stride=2, padding="VALID")
conv("dilated", [1, 13, 13, 4], [3, 3], 8, dilation=2)
conv("one_tap", [1, 5, 5, 32], [3, 3], 40)
conv("points", [1, 7, 7, 32], [1, 1], 64)
conv("groups", [2, 9, 9, 32], [3, 3], 80, groups=2)
conv("middle_conv", [2, 40, 40, 16], [3, 3], 128)

# operands that are multiplied as they are: copied to shared memory
for name, source in ("halves", "DT_HALF"), ("bfloats", "DT_BFLOAT16"):
    for case, m, k, n, ta, tb in (
        ("plain", 40, 200, 72, False, False), ("left_across", 72, 56, 40, True, False), ("right_across", 33, 64, 35, False, True),
        ("both_across", 64, 40, 70, True, True), ("short", 36, 16, 33, False, False), ("odd", 35, 37, 33, False, False),
        ("middle", 648, 136, 640, False, False), ("deep", 40, 328, 72, False, False), ("deep_across", 40, 264, 72, True, True)):  # fmt: skip
        label = f"{name}_{case}"
        # values of bfloat16 come from f32, as npz has none
        sides = [given(f"{label}_{side}", dims, "DT_HALF" if source == "DT_HALF" else "DT_FLOAT")
                 for side, dims in (("p", [k, m] if ta else [m, k]), ("q", [n, k] if tb else [k, n]))]
        if source != "DT_HALF":
            sides = [cast(side + "_cast", side, "DT_FLOAT", source) for side in sides]
        node(label, "MatMul", sides, T=f"type: {source}", transpose_a=f"b: {str(ta).lower()}", transpose_b=f"b: {str(tb).lower()}")
        cast(label + "_out", label, source, "DT_FLOAT")


def rounded(value, dropped, ties_away):
    """f32 without so many bits at the end."""
    bits = value.view(np.uint32).astype(np.uint64)
    half = np.uint64(1 << (dropped - 1))
    up = half if ties_away else half - np.uint64(1) + (bits >> np.uint64(dropped) & np.uint64(1))
    return ((bits + up) >> np.uint64(dropped) << np.uint64(dropped)).astype(np.uint32).view(np.float32)


write(sys.argv[1])
for kind, dropped in ("tf32", 13), ("bf16", 16):
    operand = lambda name: name[-2:] in ("_a", "_b", "_x", "_w")
    np.savez(f"{sys.argv[1]}_{kind}.npz", **{name: rounded(v, dropped, kind == "tf32") if operand(name) else v for name, v in feeds.items()})
