"""cuda_scatter.py OUT SEED: OUT.pbtxt, random scatters, sums over segments and gradients of poolings, with places that repeat and places outside,
and OUT.npz, values for their inputs. OUT.owned: how many kernels of such an op should be there."""
import sys

import numpy as np
from cuda_graph import feeds, node, shape, write

random = np.random.default_rng(int(sys.argv[2]))
TYPES = {"DT_FLOAT": np.float32, "DT_DOUBLE": np.float64, "DT_HALF": np.float16, "DT_INT32": np.int32, "DT_INT64": np.int64,
         "DT_INT8": np.int8, "DT_COMPLEX64": np.complex64, "DT_BOOL": np.bool_}  # fmt: skip
owned = 0


def given(name, value, dtype, free=()):
    feeds[name] = value.astype(TYPES[dtype])
    return node(name, "Placeholder", dtype=f"type: {dtype}", shape=shape([-1 if i in free else d for i, d in enumerate(value.shape)]))


def values(name, dims, dtype, free=()):
    v = random.standard_normal(dims) * (100 if dtype.startswith("DT_INT") else 1)
    return given(name, v > 0 if dtype == "DT_BOOL" else v + 1j * v[::-1] if dtype == "DT_COMPLEX64" else v, dtype, free)


def pick(*of):
    return of[int(random.integers(len(of)))]


def case(name, op, inputs, **attrs):
    global owned
    owned += 1
    node(name, op, inputs, **attrs)


def scalar(name, value):
    return node(name, "Const", dtype="type: DT_INT32", value=f"tensor {{ dtype: DT_INT32 tensor_shape {{}} int_val: {value} }}")


def row():
    """What a place has: nothing more, rows of whole vectors or not, of fewer than a warp's threads and of more."""
    return pick([], [1], [3], [4], [12], [5, 8], [31], [64], [129], [260], [2, 132])


for i, (op, dtype) in enumerate([("TensorScatterAdd", "DT_FLOAT"), ("TensorScatterUpdate", "DT_FLOAT"), ("TensorScatterAdd", "DT_HALF"),
                                 ("TensorScatterSub", "DT_DOUBLE"), ("TensorScatterMax", "DT_INT32"), ("TensorScatterAdd", "DT_INT64"),
                                 ("TensorScatterUpdate", "DT_INT8"), ("TensorScatterAdd", "DT_COMPLEX64"), ("TensorScatterUpdate", "DT_BOOL"),
                                 ("TensorScatterMin", "DT_FLOAT"), ("ScatterNd", "DT_FLOAT")]):  # fmt: skip
    name, inner, free = f"nd_{i}", row(), (0,) if random.integers(2) else ()
    places = [int(random.integers(1, 40)) for _ in range(pick(1, 1, 2, 3))]
    count = pick(1, 7, 32, 33, 100)
    index = np.stack([random.integers(0, n, count) for n in places], 1)
    at, part = given(name + "_at", index, "DT_INT32", free), values(name + "_part", [count, *inner], dtype, free)
    if op == "ScatterNd":
        dims = node(name + "_dims", "Const", dtype="type: DT_INT32", value="tensor { dtype: DT_INT32 tensor_shape { dim { size: "
                    + f"{len(places) + len(inner)} }} }} " + " ".join(f"int_val: {d}" for d in places + inner) + " }")  # fmt: skip
        case(name, op, [at, part, dims], T=f"type: {dtype}", Tindices="type: DT_INT32")
    else:
        case(name, op, [values(name + "_x", places + inner, dtype), at, part], T=f"type: {dtype}", Tindices="type: DT_INT32")

for i, (op, dtype) in enumerate([("UnsortedSegmentSum", "DT_FLOAT"), ("UnsortedSegmentSum", "DT_HALF"), ("UnsortedSegmentMax", "DT_FLOAT"),
                                 ("UnsortedSegmentProd", "DT_DOUBLE"), ("UnsortedSegmentMin", "DT_INT32")]):  # fmt: skip
    name, inner, count, segments = f"segment_{i}", row(), pick(1, 31, 90, 200), pick(1, 5, 70, 5000)
    free = (0,) if random.integers(2) else ()
    ids = given(name + "_at", random.integers(-1, segments, count), "DT_INT64", free)  # one below is dropped
    case(name, op, [values(name + "_x", [count, *inner], dtype, free), ids, scalar(name + "_n", segments)], T=f"type: {dtype}",
         Tindices="type: DT_INT64", Tnumsegments="type: DT_INT32")  # fmt: skip

four = lambda *v: "list { " + " ".join(f"i: {i}" for i in v) + " }"
for i, padding in enumerate(["SAME", "VALID", "SAME"]):
    name, size, stride = f"pool_{i}", int(random.integers(1, 5)), int(random.integers(1, 4))
    image = [2, int(random.integers(5, 12)), int(random.integers(5, 12)), pick(1, 3, 8)]
    x = np.round(random.standard_normal(image) * 2)  # many are alike, and of these the first counts
    x = given(name + "_x", x, "DT_FLOAT", (0,) if i else ())
    t, how = {"T": "type: DT_FLOAT"}, {"ksize": four(1, size, size, 1), "strides": four(1, stride, stride, 1), "padding": f's: "{padding}"'}
    y = node(name + "_y", "MaxPool", [x], **t, **how)
    grad = node(name + "_grad", "Sin", [node(name + "_shifted", "AddV2", [y, given(name + "_one", np.ones([1]), "DT_FLOAT")], **t)], **t)
    case(name, "MaxPoolGrad", [x, y, grad], **t, **how)
write(sys.argv[1])
with open(sys.argv[1] + ".owned", "w", encoding="utf-8") as f:
    f.write(f"{owned}\n")
