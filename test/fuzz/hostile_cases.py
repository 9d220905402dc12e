"""Writes conformance-like cases whose run-time inputs are hostile: indices out of range, NaN, huge sizes.
hostile_cases.py FOLDER. Nothing is expected of the results but that there is one: a value or an error."""
import json
import os
import sys

import numpy as np

F, I32, I64, B = "float32", "int32", "int64", "bool"
TYPE = {F: 1, "float64": 2, I32: 3, I64: 9, B: 10}
MIN32, MAX32 = -2**31, 2**31 - 1
MAX64 = 2**63 - 1


def varint(v):
    v &= 2**64 - 1
    out = b""
    while v >= 128:
        out += bytes([v & 127 | 128])
        v >>= 7
    return out + bytes([v])


def field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def attr(value):
    if isinstance(value, bool):
        return varint(5 << 3) + varint(value)
    if isinstance(value, int):
        return varint(3 << 3) + varint(value)
    if isinstance(value, float):
        return varint(4 << 3 | 5) + np.float32(value).tobytes()
    if isinstance(value, bytes):
        return field(2, value)
    if isinstance(value, list):  # of ints
        return field(1, b"".join(varint(3 << 3) + varint(v) for v in value))
    return varint(6 << 3) + varint(TYPE[value])


def node(name, op, inputs, attrs):
    body = field(1, name.encode()) + field(2, op.encode())
    body += b"".join(field(3, i.encode()) for i in inputs)
    for key, value in sorted(attrs.items()):
        body += field(5, field(1, key.encode()) + field(2, attr(value)))
    return field(1, body)


x = np.arange(24, dtype=F).reshape(4, 6)
nan = np.full((4, 6), np.nan, dtype=F)
wild = [[-1], [4], [MIN32], [MAX32], [0, 3, -5, 100]]
ids = [[-1, 0, 1, 9], [MAX32, 0, 0, 0], [3, 2, 1, 0], [MIN32, MAX32, -1, 4]]

# op, number of results, attributes, lists of inputs
cases = []


def case(op, inputs, results=1, **attrs):
    cases.append((op, results, attrs, [np.asarray(i) for i in inputs]))


def i32(v):
    return np.array(v, dtype=I32)


def i64(v):
    return np.array(v, dtype=I64)


for w in wild:
    case("GatherV2", [x, i32(w), i32(0)], Tparams=F, Tindices=I32, Taxis=I32)
    case("GatherNd", [x, i32(w).reshape(-1, 1)], Tparams=F, Tindices=I32)
    case("ScatterNd", [i32(w).reshape(-1, 1), np.ones((len(w), 6), F), i32([4, 6])], T=F, Tindices=I32)
    case("TensorScatterUpdate", [x, i32(w).reshape(-1, 1), np.ones((len(w), 6), F)], T=F, Tindices=I32)
    case("TensorScatterAdd", [x, i32(w).reshape(-1, 1), np.ones((len(w), 6), F)], T=F, Tindices=I32)
    case("OneHot", [i32(w), i32(5), np.float32(1), np.float32(0)], T=F, TI=I32, axis=-1)
    case("Bincount", [i32(w), i32(6), np.ones(len(w), F)], T=F)
    case("SparseToDense", [i32(w), i32([4]), np.ones(len(w), F), np.float32(0)], T=F, Tindices=I32, validate_indices=False)
for w in ids:
    case("SegmentSum", [x, i32(w)], T=F, Tindices=I32)
    case("SegmentMax", [x, i32(sorted(w))], T=F, Tindices=I32)
    case("UnsortedSegmentSum", [x, i32(w), i32(4)], T=F, Tindices=I32, Tnumsegments=I32)
    case("UnsortedSegmentMax", [x, i32(w), i32(4)], T=F, Tindices=I32, Tnumsegments=I32)
    case("SparseSegmentSum", [x, i32(w), i32([0, 0, 1, 1])], T=F, Tidx=I32)
    case("DynamicStitch", [i32(w), x], T=F, N=1)
    case("DynamicPartition", [x, i32(w)], 2, T=F, num_partitions=2)
    case("InvertPermutation", [i32(w)], T=I32)
    case("InTopKV2", [x, i32(w), i32(2)], T=I32)
    case("SparseSoftmaxCrossEntropyWithLogits", [x, i32(w)], 2, T=F, Tlabels=I32)
    case("ReverseSequence", [x, i32(w)], T=F, Tlen=I32, seq_dim=1, batch_dim=0)
    case("MatrixDiagPartV3", [x, i32(w[0]), np.float32(0)], T=F, align=b"RIGHT_LEFT")
    case("BatchGatherV2" if False else "Gather", [x, i32(w)], Tparams=F, Tindices=I32)
for begin, size in [([-1, 0], [1, 1]), ([3, 0], [2, 6]), ([0, 0], [-2, 1]), ([MAX32, 0], [MAX32, 1]), ([0, MIN32], [1, MAX32])]:
    case("Slice", [x, i32(begin), i32(size)], T=F, Index=I32)
    case("StridedSlice", [x, i32(begin), i32(size), i32([1, -1])], T=F, Index=I32, begin_mask=0, end_mask=0, ellipsis_mask=0,
         new_axis_mask=0, shrink_axis_mask=1)
for v in (-1, 2**20, MAX32, MIN32):
    case("Fill", [i32([v, 4]), np.float32(1)], T=F, index_type=I32)
    case("Tile", [x, i32([v, 2])], T=F, Tmultiples=I32)
    case("BroadcastTo", [np.float32(1), i32([v, 100000])], T=F, Tidx=I32)
    case("Pad", [x, i32([[v, 0], [0, v]])], T=F, Tpaddings=I32)
    case("Reshape", [x, i32([v, -1])], T=F, Tshape=I32)
    case("Range", [i32(0), i32(v), i32(1)], Tidx=I32)
    case("Range", [i32(0), i32(5), i32(v if v != 2**20 else 0)], Tidx=I32)
    case("LinSpace", [np.float32(0), np.float32(1), i32(v)], T=F, Tidx=I32)
    case("TopKV2", [x, i32(v)], 2, T=F, sorted=True)
    case("Roll", [x, i32(v), i32(v % 3)], T=F, Tshift=I32, Taxis=I32)
    case("Split", [i32(v), x], 2, T=F, num_split=2)
    case("ArgMax", [x, i32(v)], T=F, Tidx=I32, output_type=I64)
    case("Cumsum", [x, i32(v)], T=F, Tidx=I32, exclusive=False, reverse=False)
    case("ResizeBilinear", [x.reshape(1, 4, 6, 1), i32([v, 3])], T=F, align_corners=False, half_pixel_centers=False)
    case("MatrixBandPart", [x, i32(v), i32(v)], T=F, Tindex=I32)
for data in (nan, np.full((4, 6), np.inf, F), x * np.float32(1e38)):
    case("TopKV2", [data, i32(3)], 2, T=F, sorted=True)
    case("ArgMax", [data, i32(1)], T=F, Tidx=I32, output_type=I64)
    case("Cast", [data], SrcT=F, DstT=I32)
    case("Bucketize", [data], T=F)
    case("Unique", [data.reshape(-1)], 2, T=F, out_idx=I32)
    case("Where", [data], T=F)
    case("HistogramFixedWidth", [data, np.array([0, 1], F), i32(5)], T=F, dtype=I32)
    case("CropAndResize", [x.reshape(1, 4, 6, 1), data[:, :4], i32([0, 0, 0, 0]), i32([2, 2])], T=F, method=b"bilinear",
         extrapolation_value=0.0)
    case("CropAndResize", [x.reshape(1, 4, 6, 1), x[:, :4] / 9, i32([0, -1, 1, MAX32]), i32([2, 2])], T=F, method=b"nearest",
         extrapolation_value=0.0)
    case("NonMaxSuppressionV3", [data[:, :4], data[:, 0], i32(3), np.float32(0.5), np.float32(0)])
    case("ResizeNearestNeighbor", [data.reshape(1, 4, 6, 1), i32([7, 3])], T=F, align_corners=True, half_pixel_centers=False)
    case("MatrixInverse", [np.array(data[:4, :4])], T=F, adjoint=False)
    case("Qr", [np.array(data)], 2, T=F, full_matrices=False)
    case("Svd", [np.array(data)], 3, T=F, compute_uv=True, full_matrices=False)
    case("SelfAdjointEigV2", [np.array(data[:4, :4])], 2, T=F, compute_v=True)
    case("Multinomial", [data, i32(5)], T=F, seed=1, seed2=2, output_dtype=I64)

folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
for k, (op, results, attrs, inputs) in enumerate(cases):
    name = "%03d_%s" % (k, op)
    path = os.path.join(folder, name)
    os.makedirs(path, exist_ok=True)
    graph, feeds, dtypes, names = b"", {}, {}, []
    for i, value in enumerate(inputs):
        value = np.asarray(value)
        names.append("in%d" % i)
        graph += node(names[-1], "Placeholder", [], {"dtype": value.dtype.name})
        # one file a tensor; see the conformance README
        np.save(os.path.join(path, "f%d.npy" % i), value)
        feeds["in%d:0" % i] = "f%d.npy" % i
        dtypes["f%d.npy" % i] = value.dtype.name
    graph += node("op", op, names, attrs)
    with open(os.path.join(path, "graph.pb"), "wb") as f:
        f.write(graph)
    with open(os.path.join(path, "case.json"), "w") as f:
        json.dump({"name": name, "steps": [{"feeds": feeds, "fetches": ["op:%d" % r for r in range(results)]}],
                   "dtypes": dtypes}, f)
print(len(cases))
