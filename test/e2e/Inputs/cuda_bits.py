"""cuda_bits.py OUT: OUT.pbtxt, functions of each element and random numbers, and OUT.npz, inputs: ordinary values and the corners of each type."""
import sys

import numpy as np
from cuda_graph import axes, feeds, node, shape, write

random = np.random.default_rng(11)
UNARY = """Abs Neg Sign Square Reciprocal Sqrt Rsqrt Exp Expm1 Log Log1p Sin Cos Tan Asin Acos Atan Sinh Cosh Tanh Asinh Acosh Atanh Erf Erfc Lgamma
Digamma Sigmoid Softplus Softsign Elu Selu Relu Relu6 Floor Ceil Round Rint IsNan IsFinite""".split()
BINARY = "Add Sub Mul Div RealDiv DivNoNan Maximum Minimum Pow Atan2 FloorDiv FloorMod Mod SquaredDifference Xlogy Xdivy Xlog1py".split()
TYPES = {"DT_FLOAT": np.float32, "DT_HALF": np.float16, "DT_DOUBLE": np.float64}


def placeholder(name, value, dtype):
    feeds[name] = value
    return node(name, "Placeholder", dtype=f"type: {dtype}", shape=shape(value.shape))


for dtype, kind in TYPES.items():
    info = np.finfo(kind)
    corners = np.array([0, -0.0, 1, -1, 0.5, 2, 3, np.pi, info.max, info.min, info.tiny, -info.tiny, info.tiny / 4, np.inf, -np.inf, np.nan, info.eps], kind)
    ordinary = random.standard_normal(1500) * random.choice([0.01, 1, 20, 300], 1500)
    x = np.concatenate([np.repeat(corners, len(corners)), ordinary.astype(kind)])
    y = np.concatenate([np.tile(corners, len(corners)), random.permutation(ordinary).astype(kind)])
    exact = "double" if kind == np.float64 else "exact"
    t = {"T": f"type: {dtype}"}
    one, two = placeholder(f"x_{dtype}", x, dtype), placeholder(f"y_{dtype}", y, dtype)
    for op in UNARY:
        kept = "exact" if op.startswith("Is") else exact
        node(f"{kept}_{op}_{dtype}", op, [one], **t)
    for op in BINARY:
        node(f"{exact}_{op}_{dtype}", op, [one, two], **t)

of, seed = axes("of", [3, 1001], "DT_INT32"), axes("seed", [7, 1 << 40], "DT_INT64")
key = node("key", "StatelessRandomGetKeyCounter", [seed], Tseed="type: DT_INT64")
algorithm = node("algorithm", "Const", dtype="type: DT_INT32", value="tensor { dtype: DT_INT32 tensor_shape {} int_val: 1 }")
for dtype, kind in TYPES.items():
    exact = "double" if kind == np.float64 else "exact"
    for op in "StatelessRandomUniformV2", "StatelessRandomNormalV2", "StatelessTruncatedNormalV2":
        node(f"{exact}_{op}_{dtype}", op, [of, "key:0", "key:1", algorithm], dtype=f"type: {dtype}", Tshape="type: DT_INT32")
for dtype in "DT_INT32", "DT_INT64", "DT_UINT32":
    node(f"exact_full_{dtype}", "StatelessRandomUniformFullIntV2", [of, "key:0", "key:1", algorithm], dtype=f"type: {dtype}", Tshape="type: DT_INT32")
write(sys.argv[1])
