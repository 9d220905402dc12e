"""cuda_wgmma.py OUT: products and convolutions whose tiles are those of warpgroups on sm_90a (64x64, 128x64, 128x128
and 128x256). OUT.pbtxt: of halves and bytes; OUT_f32.pbtxt: of f32, for --precision. OUT.npz and OUT_f32.npz: values for their inputs."""
import sys

from cuda_graph import cast, conv, feeds, given, node, nodes, product, product_of_bytes, write

# operands across and along; 128x256 takes 120 tiles, a column of which not all have
product("halves_wide", 96, 72, 248, batch=(120,), dtype="DT_HALF")
product("halves_wide_11", 64, 24, 256, True, True, batch=(120,), dtype="DT_HALF")
product("halves_square_01", 104, 40, 120, False, True, batch=(48, 2), dtype="DT_HALF")
product("halves_square_10", 72, 72, 120, True, False, batch=(96,), dtype="DT_HALF")
for ta in False, True:
    for tb in False, True:
        product(f"halves_small_{ta:d}{tb:d}", 72, 40, 120, ta, tb, batch=(24,), dtype="DT_HALF")
        product_of_bytes(f"bytes_small_{ta:d}{tb:d}", 72, 48, 112, ta, tb, 24)
# turns of all stages; fewer steps than one has; pieces of eight bytes; an epilogue; a size known at run time
product("halves_turns", 64, 320, 64, batch=(96,), dtype="DT_HALF")
product("halves_short", 100, 8, 128, batch=(96,), dtype="DT_HALF")
product("halves_narrow", 64, 36, 132, batch=(48,), dtype="DT_HALF")
product("halves_epilogue", 1280, 16, 1280, dtype="DT_HALF", bias=True)
product("halves_free", 1152, 16, 1280, dtype="DT_HALF", free=0)
product_of_bytes("bytes_wide", 128, 144, 256, False, True, 120)
product_of_bytes("bytes_square", 104, 144, 112, False, False, 96)
product_of_bytes("bytes_turned", 124, 132, 252, True, False, 120)
product("halves_thin", 12288, 264, 56, dtype="DT_HALF")
sides = [cast(f"bfloats_{side}_cast", given(f"bfloats_{side}", dims), "DT_FLOAT", "DT_BFLOAT16")
         for side, dims in (("p", [1408, 72]), ("q", [72, 2816]))]
cast("bfloats_out", node("bfloats", "MatMul", sides, T="type: DT_BFLOAT16", transpose_a="b: false", transpose_b="b: false"), "DT_BFLOAT16", "DT_FLOAT")
write(sys.argv[1])

nodes.clear()
feeds.clear()
product("square", 104, 72, 120, batch=(96,))
product("wide", 64, 40, 248, batch=(120,))
product("square_11", 104, 40, 120, True, True, batch=(96,))
product("small_01", 72, 40, 120, False, True, batch=(24,))
product("small_10", 72, 136, 120, True, False, batch=(24,))
product("wide_11", 64, 72, 256, True, True, batch=(120,))
product("thin_10", 12288, 36, 44, True)
conv("thin_conv", [1, 96, 128, 8], [3, 3], 64)
product("depth_at_run_time", 1152, 24, 1280, free=1)
conv("square_conv", [1, 110, 112, 8], [3, 3], 128)
conv("small_conv", [2, 60, 60, 8], [3, 3], 64, stride=2)
conv("groups", [1, 40, 41, 32], [3, 3], 256, groups=4)
conv("points", [1, 112, 112, 36], [1, 1], 128)
write(sys.argv[1] + "_f32")
