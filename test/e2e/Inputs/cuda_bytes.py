"""cuda_bytes.py OUT: OUT.pbtxt, a BatchMatMulV3 of signed bytes with sums of int32, and OUT.npz, values for it."""
import sys

import numpy as np
from cuda_graph import feeds, node, random, shape, write

for name, dims in ("a", [2, 40, 144]), ("b", [2, 36, 144]):
    feeds[name] = random.integers(-128, 128, dims, dtype=np.int8)
    node(name, "Placeholder", dtype="type: DT_INT8", shape=shape(dims))
node("y", "BatchMatMulV3", ["a", "b"], Ta="type: DT_INT8", Tb="type: DT_INT8", Tout="type: DT_INT32", adj_x="b: false", adj_y="b: true")
write(sys.argv[1])
