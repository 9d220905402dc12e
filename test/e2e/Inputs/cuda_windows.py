"""cuda_windows.py OUT SEED: OUT.npz, random values for cuda_windows.tflite: scatters whose windows begin within rows, outside as
well, and overlap. With --model OUT.tflite is that file, written anew, which needs ai-edge-litert."""
import os
import sys

import numpy as np

# type, operand, indices and the bounds of what they say, updates, dimensions
WINDOWS = [
    ("f32", (100, 64), (60, 2), 100, (60, 8), dict(updateWindowDims=[1], insertedWindowDims=[0], scatterDimsToOperandDims=[0, 1], indexVectorDim=1)),
    ("i64", (7, 9, 5), (40, 2), 10, (40, 3, 2), dict(updateWindowDims=[1, 2], insertedWindowDims=[0], scatterDimsToOperandDims=[1, 2], indexVectorDim=1)),
    ("f32", (300,), (50, 1), 310, (50, 17), dict(updateWindowDims=[1], insertedWindowDims=[], scatterDimsToOperandDims=[0], indexVectorDim=1)),
    ("i8", (40, 12), (33, 1), 40, (33, 5, 12), dict(updateWindowDims=[1, 2], insertedWindowDims=[], scatterDimsToOperandDims=[0], indexVectorDim=1)),
    ("f16", (4, 33, 6), (9, 3, 1), 36, (9, 3, 2, 4, 6),
     dict(updateWindowDims=[2, 3, 4], insertedWindowDims=[], scatterDimsToOperandDims=[1], indexVectorDim=2)),
]  # fmt: skip
KINDS = {"f32": np.float32, "f16": np.float16, "i64": np.int64, "i8": np.int8}
random, feeds = np.random.default_rng(int(sys.argv[2])), []
for kind, operand, indices, bound, updates, _ in WINDOWS:
    for _ in range(2):
        feeds += [(random.standard_normal(operand) * 9).astype(KINDS[kind]), random.integers(-5, bound, indices),
                  (random.standard_normal(updates) * 9).astype(KINDS[kind])]  # fmt: skip

if "--model" in sys.argv:
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    import tflite_more
    import tflite_ops

    f, at = tflite_ops.File(), 0
    f.wants = {}
    for kind, operand, _, _, _, dims in WINDOWS:
        bodies = [tflite_more.scalar_body("STABLEHLO_ADD", kind)(f), f.subgraph([kind, kind], lambda f, a: [a[1]])]
        for body in bodies:
            o = tflite_ops.options("StablehloScatter", uniqueIndices=False, indicesAreSorted=False, updateComputationSubgraphIndex=body, **dims)
            inputs = [f.input(v, k) for v, k in zip(feeds[at : at + 3], (kind, "i64", kind))]
            f.op("STABLEHLO_SCATTER", inputs, [tflite_more.out(f, operand, kind)], o)
            at += 3
    with open(sys.argv[1] + ".tflite", "wb") as to:
        to.write(f.bytes())
np.savez(sys.argv[1] + ".npz", **{f"in{i}": v for i, v in enumerate(feeds)})
