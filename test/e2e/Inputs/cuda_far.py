"""cuda_far.py OUT [free]: OUT.pbtxt, kernels that read a tensor of bytes beyond 2^31, of known sizes or of a number of rows that is known at run time
only, and OUT.npz, its values."""
import sys

import numpy as np
from cuda_graph import axes, feeds, node, scalar, shape, write

ROWS, WIDTH = 34_000_000, 66  # 2244 million
LAST = ROWS - 1
free = "free" in sys.argv[2:]
values = np.arange(WIDTH, dtype=np.int8)[None, :] + np.zeros((ROWS, 1), np.int8)
values[::100_003] += 7
values[LAST - 5 :] = np.random.default_rng(3).integers(-128, 128, (6, WIDTH))
feeds["x"] = values
T, I = {"T": "type: DT_INT8"}, {"Tidx": "type: DT_INT32"}
x = node("x", "Placeholder", dtype="type: DT_INT8", shape=shape([-1 if free else ROWS, WIDTH]))
at = axes("at", [0, LAST, 32_537_631, 32_537_632, LAST - 3])
node("gathered", "GatherV2", [x, at, scalar("zero", 0)], Tparams="type: DT_INT8", Tindices="type: DT_INT32", Taxis="type: DT_INT32")
# rows of whole vectors
wide = node("wide", "Reshape", [x, axes("wide_shape", [-1, 4 * WIDTH])], Tshape="type: DT_INT32", **T)
node("gathered_wide", "GatherV2", [wide, axes("wide_at", [0, ROWS // 4 - 1, 8_134_407, 8_134_408]), "zero"], Tparams="type: DT_INT8",
     Tindices="type: DT_INT32", Taxis="type: DT_INT32")  # fmt: skip
node("sliced", "StridedSlice", [x, axes("from", [LAST - 2, 1]), axes("to", [ROWS, WIDTH - 1]), axes("steps", [1, 3])], Index="type: DT_INT32",
     begin_mask="i: 0", end_mask="i: 0", ellipsis_mask="i: 0", new_axis_mask="i: 0", shrink_axis_mask="i: 0", **T)  # fmt: skip
node("stepped", "StridedSlice", [x, axes("first", [0, 0]), axes("last", [0, WIDTH]), axes("step", [1_000_001, 1])], Index="type: DT_INT32",
     begin_mask="i: 1", end_mask="i: 1", ellipsis_mask="i: 0", new_axis_mask="i: 0", shrink_axis_mask="i: 0", **T)  # fmt: skip
node("rows", "Max", [node("long", "Reshape", [x, axes("long_shape", [-1, 1_000_000])], Tshape="type: DT_INT32", **T), axes("over", [1])],
     keep_dims="b: false", **T, **I)  # fmt: skip
write(sys.argv[1])
