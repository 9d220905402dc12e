"""cuda_wgmma.py OUT: OUT.pbtxt, products whose tiles are those of warpgroups on sm_90a (64x64, 128x128 and 128x256), and OUT.npz, values for
their inputs."""
import sys

from cuda_graph import cast, given, node, product, write

# 128x256: 120 tiles and more, a column of which not all have; 128x128; 64x64
for name, m, k, n, batch in (("wide", 96, 72, 248, 120), ("square", 104, 40, 120, 96), ("small", 72, 40, 120, 24)):
    for ta in False, True:
        for tb in False, True:
            product(f"halves_{name}_{ta:d}{tb:d}", m, k, n, ta, tb, batch=(batch,), dtype="DT_HALF")
# whole turns of all stages, and fewer steps than one has
product("halves_whole", 64, 320, 256, batch=(120,), dtype="DT_HALF")
product("halves_short", 100, 8, 128, batch=(96,), dtype="DT_HALF")
# pieces of eight bytes; a batch that shares an operand; an epilogue; a size known at run time
product("halves_narrow", 128, 36, 132, batch=(48,), dtype="DT_HALF")
product("halves_epilogue", 1280, 16, 1280, dtype="DT_HALF", bias=True)
product("halves_free", 1152, 16, 1280, dtype="DT_HALF", free=0)
sides = [cast(f"bfloats_{side}_cast", given(f"bfloats_{side}", dims), "DT_FLOAT", "DT_BFLOAT16")
         for side, dims in (("p", [1408, 72]), ("q", [72, 2816]))]
cast("bfloats_out", node("bfloats", "MatMul", sides, T="type: DT_BFLOAT16", transpose_a="b: false", transpose_b="b: false"), "DT_BFLOAT16", "DT_FLOAT")

write(sys.argv[1])
