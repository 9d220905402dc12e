"""tflite_more.py --out DIR [NAME ...]: operators with subgraphs, StableHLO's operators and random ones as TensorFlow Lite files.

Results are those of LiteRT's reference kernels; where it has none for an operator (most of StableHLO's), of numpy. Each group of cases is a
file with feeds and results beside it, as run_tflite.py reads them; wrong.tflite has operators that are errors. Needs ai-edge-litert, not tensorflow."""
import argparse
import os
import zlib

import numpy as np
from flatbuffers import flexbuffers

import tflite_ops as T
from tflite_ops import S, options

CASES = {}


def case(f):
    CASES[f.__name__] = f
    return f


def out(f, value_or_shape, kind):
    """An output of the file: its tensor; the value, if given, is the result."""
    known = isinstance(value_or_shape, np.ndarray)
    i = f.output(value_or_shape.shape if known else value_or_shape, kind)
    f.wants[f.graph.tensors[i].name] = np.asarray(value_or_shape, T.TYPES[kind][1]) if known else None
    return i


def const(f, values, kind, **more):
    return f.tensor(np.shape(values), kind, values, **more)


def scalar_body(op, kind, swap=False):
    """A subgraph that computes one operator of two numbers."""
    def body(f, args):
        result = f.tensor((), kind)
        f.op(op, args[::-1] if swap else args, [result])
        return [result]
    return lambda f: f.subgraph([kind, kind], body)


def real(r, *shape, low=-3, high=3):
    return r.uniform(low, high, shape).astype(np.float32)


# ---- elementwise

UNARY = {"ABS": np.abs, "CBRT": np.cbrt, "COSINE": np.cos, "EXPONENTIAL": np.exp, "FLOOR": np.floor, "NEGATE": np.negative, "TANH": np.tanh,
         "LOG": np.log, "RSQRT": lambda x: 1 / np.sqrt(x), "LOGISTIC": lambda x: 1 / (1 + np.exp(-x))}
BINARY = {"SUBTRACT": np.subtract, "DIVIDE": np.divide, "POWER": np.power, "REMAINDER": np.fmod, "ADD": None, "MULTIPLY": None, "MAXIMUM": None,
          "MINIMUM": None}


@case
def elementwise(f, r):
    for op, compute in UNARY.items():
        x = real(r, 3, 5, low=0.1 if op in ("LOG", "RSQRT") else -3)
        f.op("STABLEHLO_" + op, [f.input(x, "f32")], [out(f, compute(x).astype(np.float32), "f32")])
    for op, compute in BINARY.items():
        x, y = real(r, 4, 3, low=0.1), real(r, 4, 3, low=0.5)
        f.op("STABLEHLO_" + op, [f.input(x, "f32"), f.input(y, "f32")], [out(f, compute(x, y) if compute else x.shape, "f32")])
    for op, compute in (("AND", np.bitwise_and), ("OR", np.bitwise_or), ("SHIFT_LEFT", np.left_shift), ("REMAINDER", np.fmod), ("SUBTRACT", np.subtract)):
        x, y = r.integers(-90, 90, (7,)), r.integers(1, 9, (7,))
        f.op("STABLEHLO_" + op, [f.input(x, "i32"), f.input(y, "i32")], [out(f, compute(x, y), "i32")])
    x, y = r.integers(0, 2, (6,)).astype(bool), r.integers(0, 2, (6,)).astype(bool)
    f.op("STABLEHLO_AND", [f.input(x, "bool"), f.input(y, "bool")], [out(f, x & y, "bool")])
    x, y = real(r, 6), real(r, 6)
    f.op("STABLEHLO_SELECT", [f.input(x > y, "bool"), f.input(x, "f32"), f.input(y, "f32")], [out(f, np.maximum(x, y), "f32")])
    f.op("STABLEHLO_CLAMP", [const(f, -1, "f32"), f.input(x, "f32"), const(f, 1.5, "f32")], [out(f, np.clip(x, -1, 1.5), "f32")])
    f.op("STABLEHLO_CONVERT", [f.input(x, "f32")], [out(f, x.astype(np.int32), "i32")])
    for n, compute in enumerate((np.equal, np.not_equal, np.greater_equal, np.greater, np.less_equal, np.less)):
        x, y = r.integers(0, 3, (9,)), r.integers(0, 3, (9,))
        f.op("STABLEHLO_COMPARE", [f.input(x, "i32"), f.input(y, "i32")], [out(f, compute(x, y), "bool")],
             options("StablehloCompare", comparisonDirection=n, compareType=0))


# ---- moves

@case
def moves(f, r):
    x = real(r, 2, 3, 4)
    f.op("STABLEHLO_RESHAPE", [f.input(x, "f32")], [out(f, x.reshape(4, 6), "f32")])
    f.op("STABLEHLO_TRANSPOSE", [f.input(x, "f32")], [out(f, x.transpose(2, 0, 1), "f32")], options("StablehloTranspose", permutation=[2, 0, 1]))
    y = real(r, 2, 1, 4)
    f.op("STABLEHLO_CONCATENATE", [f.input(x, "f32"), f.input(y, "f32")], [out(f, np.concatenate([x, y], 1), "f32")],
         options("StablehloConcatenate", dimension=1))
    f.op("STABLEHLO_BROADCAST_IN_DIM", [f.input(y[0], "f32")], [out(f, np.broadcast_to(y[0][:, None], (1, 5, 4)).copy(), "f32")],
         options("StablehloBroadcastInDim", broadcastDimensions=[0, 2]))
    f.op("STABLEHLO_SLICE", [f.input(x, "f32")], [out(f, x[:, 1:3, 0:4:2].copy(), "f32")],
         options("StablehloSlice", startIndices=[0, 1, 0], limitIndices=[2, 3, 4], strides=[1, 1, 2]))
    f.op("STABLEHLO_PAD", [f.input(y[0], "f32"), const(f, 7, "f32")], [out(f, (3, 9), "f32")],
         options("StablehloPad", edgePaddingLow=[1, -1], edgePaddingHigh=[1, 3], interiorPadding=[0, 1]))
    starts = [f.input(np.int32(v), "i32") for v in (1, 5, 1)]
    f.op("STABLEHLO_DYNAMIC_SLICE", [f.input(x, "f32")] + starts, [out(f, x[1:2, 1:3, 1:4].copy(), "f32")],
         options("StablehloDynamicSlice", sliceSizes=[1, 2, 3]))
    new = x.copy()
    new[1:2, 1:3, 1:4] = 9
    f.op("STABLEHLO_DYNAMIC_UPDATE_SLICE", [f.input(x, "f32"), f.input(np.full((1, 2, 3), 9, np.float32), "f32")] + starts, [out(f, new, "f32")])
    f.op("STABLEHLO_IOTA", [], [out(f, np.broadcast_to(np.arange(5, dtype=np.float32)[:, None], (5, 2)).copy(), "f32")], options("StablehloIota", iotaDimension=0))


@case
def gathers(f, r):
    x, indices = r.integers(-99, 99, (3, 4, 2)), np.array([[[0, 0], [1, 0], [2, 1]], [[0, 1], [1, 1], [0, 9]]])
    f.op("STABLEHLO_GATHER", [f.input(x, "i64"), f.input(indices, "i64")], [out(f, (2, 3, 2, 2), "i64")],
         options("StablehloGather", offsetDims=[2, 3], collapsedSliceDims=[0], startIndexMap=[1, 0], indexVectorDim=2, sliceSizes=[1, 2, 2], indicesAreSorted=False))
    add, replace = scalar_body("STABLEHLO_ADD", "i64")(f), f.subgraph(["i64", "i64"], lambda f, a: [a[1]])
    for body in (add, replace):
        o = options("StablehloScatter", updateWindowDims=[2, 3], insertedWindowDims=[0], scatterDimsToOperandDims=[1, 0], indexVectorDim=2,
                    uniqueIndices=False, indicesAreSorted=False, updateComputationSubgraphIndex=body)
        places = np.array([[[0, 2], [1, 0], [2, 1]], [[0, 1], [1, 0], [0, 2]]])
        f.op("STABLEHLO_SCATTER", [f.input(x, "i64"), f.input(places, "i64"), f.input(r.integers(1, 9, (2, 3, 2, 2)), "i64")], [out(f, x.shape, "i64")], o)


# ---- products

@case
def products(f, r):
    x, y = real(r, 3, 2, 5), real(r, 3, 5, 4)
    f.op("STABLEHLO_DOT_GENERAL", [f.input(x, "f32"), f.input(y, "f32")], [out(f, x @ y, "f32")],
         options("StablehloDotGeneral", lhsBatchingDimensions=[0], rhsBatchingDimensions=[0], lhsContractingDimensions=[2], rhsContractingDimensions=[1]))
    x, y = r.integers(-128, 128, (3, 8)), r.integers(-128, 128, (4, 8))
    f.op("STABLEHLO_DOT_GENERAL", [f.input(x, "i8"), f.input(y, "i8")], [out(f, x @ y.T, "i32")],
         options("StablehloDotGeneral", lhsContractingDimensions=[1], rhsContractingDimensions=[1]))
    x, w = real(r, 2, 6, 5, 4), real(r, 3, 2, 2, 6)
    padded, want = np.pad(x, ((0, 0), (1, 1), (0, 1), (0, 0))), np.zeros((2, 3, 4, 6), np.float64)
    for i in range(3):
        for j in range(4):
            for g in range(2):
                part = padded[:, 2 * i:2 * i + 3, j:j + 3:2, 2 * g:2 * g + 2].astype(np.float64)
                want[:, i, j, 3 * g:3 * g + 3] = np.einsum("bhwi,hwio->bo", part, w[..., 3 * g:3 * g + 3])
    f.op("STABLEHLO_CONVOLUTION", [f.input(x, "f32"), f.input(w, "f32")], [out(f, want, "f32")],
         options("StablehloConvolution", windowStrides=[2, 1], padding=[1, 1, 0, 1], lhsDilation=[1, 1], rhsDilation=[1, 2], windowReversal=[False, False],
                 inputBatchDimension=0, inputFeatureDimension=3, inputSpatialDimensions=[1, 2], kernelInputFeatureDimension=2, kernelOutputFeatureDimension=3,
                 kernelSpatialDimensions=[0, 1], outputBatchDimension=0, outputFeatureDimension=3, outputSpatialDimensions=[1, 2], featureGroupCount=2,
                 batchGroupCount=1))
    for shape, length in (((2, 6, 10), (4, 16)), ((8, 8), (8, 4))):
        f.op("RFFT2D", [f.input(real(r, *shape), "f32"), const(f, length, "i32")], [out(f, shape[:-2] + (length[0], length[1] // 2 + 1), "c64")])


# ---- bodies

@case
def reductions(f, r):
    x = real(r, 4, 5, 3)
    f.op("STABLEHLO_REDUCE", [f.input(x, "f32"), const(f, 2, "f32")], [out(f, x.sum((0, 2)) + 2, "f32")],
         options("StablehloReduce", dimensions=[0, 2], bodySubgraphIndex=scalar_body("STABLEHLO_ADD", "f32")(f)))

    def argmax(f, a):  # (value, place) pairs: the larger value
        more, value, place = f.tensor((), "bool"), f.tensor((), "f32"), f.tensor((), "i32")
        f.op("STABLEHLO_COMPARE", [a[2], a[0]], [more], options("StablehloCompare", comparisonDirection=S.StablehloComparisonDirection.STABLEHLO_COMPARISON_DIRECTION_GT))
        f.op("STABLEHLO_SELECT", [more, a[2], a[0]], [value])
        f.op("STABLEHLO_SELECT", [more, a[3], a[1]], [place])
        return [value, place]
    places = np.broadcast_to(np.arange(5)[:, None], (4, 5, 3)).copy()
    f.op("STABLEHLO_REDUCE", [f.input(x, "f32"), f.input(places, "i32"), const(f, -9, "f32"), const(f, -1, "i32")],
         [out(f, x.max(1), "f32"), out(f, x.argmax(1), "i32")],
         options("StablehloReduce", dimensions=[1], bodySubgraphIndex=f.subgraph(["f32", "i32", "f32", "i32"], argmax)))
    for op, init in (("ADD", 0.5), ("MAXIMUM", -9), ("MINIMUM", 0.1)):
        f.op("STABLEHLO_REDUCE_WINDOW", [f.input(real(r, 7, 6), "f32"), const(f, init, "f32")], [out(f, (4, 5), "f32")],
             options("StablehloReduceWindow", windowDimensions=[2, 2], windowStrides=[2, 1], baseDilations=[1, 1], windowDilations=[1, 2], padding=[1, 1, 0, 1],
                     bodySubgraphIndex=scalar_body("STABLEHLO_" + op, "f32")(f)))
    for op, init in (("ADD", 0), ("MAXIMUM", -np.inf), ("MULTIPLY", 1)):
        f.op("STABLEHLO_REDUCE_WINDOW", [f.input(real(r, 7, 6, low=0.5), "f32"), const(f, init, "f32")], [out(f, (7, 10), "f32")],
             options("StablehloReduceWindow", windowDimensions=[3, 2], windowStrides=[1, 1], baseDilations=[1, 2], windowDilations=[1, 1], padding=[1, 1, 0, 0],
                     bodySubgraphIndex=scalar_body("STABLEHLO_" + op, "f32")(f)))
    numbers = lambda *v: const(f, v, "i64")
    for function in range(S.ReduceWindowFunction.ADD, S.ReduceWindowFunction.ANY + 1):
        logical = function >= S.ReduceWindowFunction.ALL
        for kind in ("bool",) if logical else ("f32", "i32"):
            x = real(r, 6, 7) if kind == "f32" else r.integers(0, 2 if logical else 9, (6, 7))
            init = {S.ReduceWindowFunction.ALL: 1, S.ReduceWindowFunction.ANY: 0}.get(function, 2)
            f.op("REDUCE_WINDOW", [f.input(x, kind), const(f, init, kind), numbers(2, 3), numbers(2, 1), numbers(1, 2)], [out(f, (3, 3), kind)],
                 options("ReduceWindow", reduceFunction=function))


@case
def sorts(f, r):
    def below(kind):
        def body(f, a):
            result = f.tensor((), "bool")
            f.op("STABLEHLO_COMPARE", a[:2], [result], options("StablehloCompare", comparisonDirection=S.StablehloComparisonDirection.STABLEHLO_COMPARISON_DIRECTION_LT))
            return [result]
        return body
    x, y = real(r, 3, 9), r.integers(0, 99, (3, 9))
    f.op("STABLEHLO_SORT", [f.input(x, "f32")], [out(f, np.sort(x, 1), "f32")],
         options("StablehloSort", dimension=1, isStable=True, comparatorSubgraphIndex=f.subgraph(["f32"] * 2, below("f32"))))
    order = np.argsort(x, 0, kind="stable")
    f.op("STABLEHLO_SORT", [f.input(x, "f32"), f.input(y, "i32")], [out(f, np.take_along_axis(v, order, 0), k) for v, k in ((x, "f32"), (y, "i32"))],
         options("StablehloSort", dimension=0, isStable=True, comparatorSubgraphIndex=f.subgraph(["f32", "f32", "i32", "i32"], below("f32"))))


# ---- control

@case
def control(f, r):
    x = real(r, 5)

    def scaled(by):
        def body(f, a):
            result = f.tensor((5,), "f32")
            f.op("MUL", [a[0], f.tensor((), "f32", by)], [result], options("Mul"))
            return [result]
        return lambda f: f.subgraph(["f32"], body, (5,))
    composite = options("StableHLOComposite", compositeAttributes=np.frombuffer(flexbuffers.Dumps({}), np.uint8), decompositionSubgraphIndex=scaled(0.5)(f), name="odml.half", version=1)
    f.op("STABLEHLO_COMPOSITE", [f.input(x, "f32")], [out(f, (5,), "f32")], composite)
    f.op("CALL", [f.input(x, "f32")], [out(f, x * np.float32(3), "f32")], options("Call", subgraph=scaled(3)(f)))
    branches = [scaled(b)(f) for b in (2, 4, 8)]
    for index, factor in ((0, 2), (1, 4), (7, 8), (-1, 8)):
        f.op("STABLEHLO_CASE", [f.input(np.int32(index), "i32"), f.input(x, "f32")], [out(f, x * np.float32(factor), "f32")],
             options("StablehloCase", branchSubgraphIndices=branches))
        f.op("STABLEHLO_CASE", [const(f, index, "i32"), f.input(x, "f32")], [out(f, x * np.float32(factor), "f32")],
             options("StablehloCase", branchSubgraphIndices=branches))

    def condition(f, a):
        result = f.tensor((), "bool")
        f.op("STABLEHLO_COMPARE", [a[0], f.tensor((), "f32", 100)], [result],
             options("StablehloCompare", comparisonDirection=S.StablehloComparisonDirection.STABLEHLO_COMPARISON_DIRECTION_LT))
        return [result]

    def doubled(f, a):
        sums = [f.tensor((), "f32"), f.tensor((), "f32")]
        f.op("STABLEHLO_ADD", [a[0], a[0]], [sums[0]])
        f.op("STABLEHLO_ADD", [a[1], a[0]], [sums[1]])
        return sums
    f.op("STABLEHLO_WHILE", [f.input(np.float32(3), "f32"), f.input(np.float32(1), "f32")], [out(f, np.array(192), "f32"), out(f, np.array(190), "f32")],
         options("StablehloWhile", condSubgraphIndex=f.subgraph(["f32"] * 2, condition), bodySubgraphIndex=f.subgraph(["f32"] * 2, doubled)))


@case
def valued(f, r):
    """Axes of operators inside of branches and loops, and branches whose results differ in shape: what the run knows alone."""
    x = real(r, 3, 4)

    def body(op, more=()):
        def make(f, a):
            result = f.tensor((3, 4), "f32")
            f.op(op, [a[0], a[1]], [result], *more)
            return [result]
        return lambda f, shapes=((3, 4), (1,)): f.subgraph(["f32", "i32"], make, shapes)

    def choose(then, otherwise, condition, axis, want):
        o = options("If", thenSubgraphIndex=then(f), elseSubgraphIndex=otherwise(f))
        f.op("IF", [f.input(np.bool_(condition), "bool"), f.input(x, "f32"), f.input(np.array([axis]), "i32")], [out(f, want, "f32")], o)
    reversal, sums, largest = body("REVERSE_V2"), body("SUM", [options("Reducer", keepDims=True)]), body("REDUCE_MAX", [options("Reducer", keepDims=False)])
    choose(reversal, body("CUMSUM", [options("Cumsum", exclusive=False, reverse=False)]), True, 1, x[:, ::-1])
    for condition in (True, False):
        choose(sums, largest, condition, 0, x.sum(0, keepdims=True) if condition else x.max(0))

    def below(f, a):
        result = f.tensor((), "bool")
        f.op("LESS", [a[2], f.tensor((), "i32", 3)], [result])
        return [result]

    def grown(f, a):
        sums, total, count = f.tensor((3, 1), "f32"), f.tensor((3, 4), "f32"), f.tensor((), "i32")
        f.op("SUM", [a[0], a[1]], [sums], options("Reducer", keepDims=True))
        f.op("SUB", [a[0], sums], [total], options("Sub"))
        f.op("ADD", [a[2], f.tensor((), "i32", 1)], [count], options("Add"))
        return [total, a[1], count]
    value = x
    for _ in range(3):
        value = value - value.sum(1, keepdims=True)
    kinds, shapes = ["f32", "i32", "i32"], ((3, 4), (1,), ())
    o = options("While", condSubgraphIndex=f.subgraph(kinds, below, shapes), bodySubgraphIndex=f.subgraph(kinds, grown, shapes))
    f.op("WHILE", [f.input(x, "f32"), f.input(np.array([1]), "i32"), f.input(np.int32(0), "i32")],
         [out(f, value, "f32"), out(f, np.array([1]), "i32"), out(f, np.array(3), "i32")], o)


# ---- sizes

@case
def frames(f, r):
    """What comes of a batch of signals when each is cut into frames: parts of a shape that only the run knows."""
    x = real(r, 2, 24)
    signal = f.input(x, "f32")
    f.graph.tensors[signal].shapeSignature = [-1, 24]
    i32 = lambda *shape: f.tensor(shape, "i32")
    axis = const(f, 0, "i32")
    for name, inputs, o in (("SPLIT_V", [const(f, [1, -1], "i32"), axis], options("SplitV", numSplits=2)), ("SPLIT", [], options("Split", numSplits=2))):
        shape, batch, length, count, rest, whole, size = i32(2), i32(1), i32(1), i32(1), i32(1), i32(1), i32(3)
        f.op("SHAPE", [signal], [shape], options("Shape", outType=S.TensorType.INT32))
        f.op(name, [shape] + inputs if inputs else [axis, shape], [batch, length], o)
        f.op("FLOOR_DIV", [length, const(f, [5], "i32")], [count], options("FloorDiv"))
        f.op("MUL", [count, const(f, [5], "i32")], [whole], options("Mul"))
        f.op("CONCATENATION", [batch, count, const(f, [5], "i32")], [size], options("Concatenation", axis=0))
        end, part = i32(2), f.tensor((2, 20), "f32")
        f.op("CONCATENATION", [batch, whole], [end], options("Concatenation", axis=0))
        f.op("STRIDED_SLICE", [signal, const(f, [0, 0], "i32"), end, const(f, [1, 1], "i32")], [part], options("StridedSlice"))
        f.op("RESHAPE", [part, size], [out(f, x[:, :20].reshape(2, 4, 5).copy(), "f32")], options("Reshape"))


# ---- whole integers, several operators in one kernel

@case
def pooled(f, r):
    """Sums of bytes that a window has taken the largest of."""
    q = dict(scale=0.04, zero=3)
    for n, kind in ((64, "i8"), (64, "u8"), (80, "i8")):
        low = 0 if kind == "u8" else -128
        x, y = r.integers(low, low + 256, (1, 9, 7, n)), r.integers(low, low + 256, (1, 5, 4, n))
        most = f.tensor((1, 5, 4, n), kind, **q)
        f.op("MAX_POOL_2D", [f.input(x, kind, **q)], [most], options("Pool2D", filterWidth=3, filterHeight=3, strideW=2, strideH=2), 2)
        result = f.output((1, 5, 4, n), kind, scale=0.07, zero=-5 + low + 128)
        f.wants[f.graph.tensors[result].name] = None
        f.op("ADD", [f.input(y, kind, scale=0.09, zero=1), most], [result], options("Add"), 2)


@case
def moved(f, r):
    """Sums of bytes, whose rounding is tested for several vectors at once, that are read at other places than they are written to."""
    shape, end = (1, 4, 4, 64), dict(scale=0.0571, zero=-65)

    def total():
        sum_ = f.tensor(shape, "i8", **end)
        f.op("ADD", [f.input(r.integers(-128, 128, shape), "i8", scale=0.0683, zero=-75), const(f, r.integers(-128, 128, 64), "i8", scale=0.02, zero=4)],
             [sum_], options("Add"), 2)
        return sum_

    def result(name, inputs, out_shape, how, version=2):
        o = f.output(out_shape, "i8", **end)
        f.wants[f.graph.tensors[o].name] = None
        f.op(name, inputs, [o], how, version)

    ints = lambda *v: const(f, v, "i32")
    pads = lambda: const(f, [[0, 0], [1, 1], [2, 1], [0, 0]], "i32")
    result("PAD", [total(), pads()], (1, 6, 7, 64), options("Pad"))
    result("PAD", [total(), const(f, [[0, 0], [0, 0], [0, 0], [64, 0]], "i32")], (1, 4, 4, 128), options("Pad"))
    result("STRIDED_SLICE", [total(), ints(0, 2, 1, 0), ints(1, 4, 4, 64), ints(1, 1, 1, 1)], (1, 2, 3, 64), options("StridedSlice"))
    result("TRANSPOSE", [total(), ints(0, 2, 1, 3)], shape, options("Transpose"))
    result("REVERSE_V2", [total(), ints(1)], shape, options("ReverseV2"), 3)
    result("CONCATENATION", [total(), total()], (1, 8, 4, 64), options("Concatenation", axis=1))
    both = total()  # once where it is and once moved, in one kernel
    turned = f.tensor(shape, "i8", **end)
    f.op("REVERSE_V2", [both, ints(2)], [turned], options("ReverseV2"), 3)
    result("ADD", [both, turned], shape, options("Add"))
    padded = f.tensor((1, 6, 7, 64), "i8", **end)
    f.op("PAD", [total(), pads()], [padded], options("Pad"), 2)
    filters, n = r.integers(-127, 128, (32, 3, 3, 64)), 0.0571 * 0.003
    o = f.output((1, 4, 5, 32), "i8", scale=0.2, zero=3)
    f.wants[f.graph.tensors[o].name] = None
    f.op("CONV_2D", [padded, const(f, filters, "i8", scale=0.003), const(f, r.integers(-900, 900, 32), "i32", scale=n)], [o],
         options("Conv2D", padding=1, strideW=1, strideH=1), 3)


@case
def means(f, r):
    """Means whose factor has no shift left, or one to the left: the result has a scale much smaller than its elements'."""
    for n, (count, scale) in enumerate(((96, 0.0047 / 32), (96, 0.0047 / 60), (100, 0.0047 / 80), (12, 0.0047 / 30))):
        x = np.where(r.random((1, 40, count)) < 0.9, -128, r.integers(-128, -118, (1, 40, count)))
        f.op("MEAN", [f.input(x, "i8", scale=0.0047, zero=-128), const(f, [2], "i32")], [f.output((1, 40), "i8", scale=scale, zero=-128)], options("Reducer", keepDims=False), 2)
        f.wants[f"out{n}"] = None


# ---- tables and random numbers

@case
def embeddings(f, r):
    for combiner in range(3):
        ids, places = [1, 3, 0, 1, 2], [[0, 0], [0, 1], [2, 0], [3, 0], [3, 1]]
        f.op("EMBEDDING_LOOKUP_SPARSE", [f.input(ids, "i32"), f.input(places, "i32"), const(f, [5, 2], "i32"), f.input(real(r, 5, low=0.5), "f32"),
                                         f.input(real(r, 4, 3, 2), "f32")], [out(f, (5, 3, 2), "f32")], options("EmbeddingLookupSparse", combiner=combiner))


@case
def randoms(f, r):
    shape = lambda *v: const(f, v, "i32")
    f.op("RANDOM_UNIFORM", [shape(3, 7)], [out(f, (3, 7), "f32")], options("Random", seed=5, seed2=9))
    f.op("RANDOM_STANDARD_NORMAL", [shape(5, 3)], [out(f, (5, 3), "f32")], options("Random", seed=-7, seed2=2))
    for kind in ("i32", "i64"):
        f.op("MULTINOMIAL", [f.input(real(r, 3, 6), "f32"), const(f, 11, "i32")], [out(f, (3, 11), kind)], options("Random", seed=3, seed2=4))
    for algorithm, words in (("DEFAULT", 2), ("PHILOX", 3), ("PHILOX", 2), ("THREEFRY", 2)):
        for kind in ("u32", "u64", "i32", "i64"):
            state = [0x123456789abcdef, 2 ** 64 - 2, 77][:words]
            f.op("STABLEHLO_RNG_BIT_GENERATOR", [f.input(state, "u64")], [out(f, (words,), "u64"), out(f, (3, 5), kind)],
                 options("StablehloRngBitGenerator", algorithm=getattr(S.RngAlgorithm, algorithm)))


# ---- MediaPipe's operators

def pool_options(same, strides, window, activation=0):
    return np.array([1 if same else 2, strides[1], strides[0], window[1], window[0], activation, 0, 0, 0, 0], np.int32).tobytes()


@case
def mediapipe(f, r):
    for same in (True, False):
        x, (sy, sx), (wy, wx) = real(r, 2, 7, 6, 3), (2, 1), (3, 2)
        h, w = [-(-n // s) if same else (n - k + s) // s for n, s, k in zip(x.shape[1:3], (sy, sx), (wy, wx))]
        py, px = [max((o - 1) * s + k - n, 0) // 2 if same else 0 for o, s, k, n in zip((h, w), (sy, sx), (wy, wx), x.shape[1:3])]
        values, places = np.zeros((2, h, w, 3), np.float32), np.zeros((2, h, w, 3), np.float32)
        padded = np.pad(x, ((0, 0), (py, wy + sy), (px, wx + sx), (0, 0)), constant_values=-np.inf)
        for i in range(h):
            for j in range(w):
                part = padded[:, i * sy:i * sy + wy, j * sx:j * sx + wx].reshape(2, wy * wx, 3)
                values[:, i, j], places[:, i, j] = part.max(1), part.argmax(1) + np.float32(0.1)
        f.op("MaxPoolingWithArgmax2D", [f.input(x, "f32")], [out(f, np.maximum(values, 0), "f32"), out(f, places, "f32")],
             pool_options(same, (sy, sx), (wy, wx), 1))
    x, places = real(r, 2, 3, 4, 2), r.integers(0, 6, (2, 3, 4, 2))
    want = np.zeros((2, 6, 12, 2), np.float32)
    for b, i, j, k in np.ndindex(x.shape):
        want[b, 2 * i + places[b, i, j, k] // 3, 3 * j + places[b, i, j, k] % 3, k] = x[b, i, j, k]
    f.op("MaxUnpooling2D", [f.input(x, "f32"), f.input(places + 0.1, "f32")], [out(f, want, "f32")], pool_options(True, (2, 3), (2, 3)))
    for same in (True, False):
        x, w, b = real(r, 1, 3, 4, 2), real(r, 5, 3, 4, 2), real(r, 5)
        cut = [max(0, k - (n - 1) % s - 1) if same else 0 for k, n, s in zip((3, 4), (3, 4), (2, 3))]
        want = np.zeros((1, 2 * 2 + 3, 3 * 3 + 4, 5), np.float64)
        for i, j in np.ndindex(3, 4):
            want[:, 2 * i:2 * i + 3, 3 * j:3 * j + 4] += np.einsum("bi,ohwi->bhwo", x[:, i, j], w)
        (top, left), (h, w_) = [c // 2 for c in cut], [n - c for n, c in zip(want.shape[1:3], cut)]
        want = want[:, top:top + h, left:left + w_] + b
        f.op("Convolution2DTransposeBias", [f.input(x, "f32"), const(f, w, "f32"), const(f, b, "f32")], [out(f, want, "f32")],
             np.array([1 if same else 2, 3, 2, 0, 0], np.int32).tobytes())
    crop(f, r)


def crop(f, r):
    """Landmarks to a matrix, landmarks and an image through it."""
    points, subset, size = real(r, 1, 9, 3, low=2, high=20), [1, 4, 2, 7, 8], (5, 6)
    (lx, ly), (rx, ry) = points[0, 3, :2], points[0, 5, :2]
    a = np.float64(0.2) - np.arctan2(ry - ly, rx - lx)
    turn = np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])
    seen = points[0, subset, :2] @ turn.T
    low, high = seen.min(0), seen.max(0)
    scale = np.array([1.5, 1.25]) * (high - low) / np.array([size[1], size[0]])
    m = np.eye(4)
    m[:2, :2] = turn.T * scale
    m[:2, 3] = turn.T @ ((low + high) / 2) - m[:2, :2] @ np.array([size[1] / 2, size[0] / 2])
    given = flexbuffers.Dumps(dict(subset_idxs=subset, left_rotation_idx=3, right_rotation_idx=5, target_rotation_radians=0.2, output_height=size[0],
                                   output_width=size[1], scale_x=1.5, scale_y=1.25))
    f.op("Landmarks2TransformMatrix", [f.input(points, "f32")], [out(f, m[None], "f32")], bytes(given), 2)
    m = m.astype(np.float32)
    moved = points.copy()
    moved[0, :, :2] = points[0, :, :2] @ m[:2, :2].T + m[:2, 3]
    f.op("TransformLandmarks", [f.input(points, "f32"), f.input(m[None], "f32")], [out(f, moved, "f32")], bytes(flexbuffers.Dumps({})), 2)
    image, want = real(r, 1, 20, 21, 3), np.zeros((1, 5, 6, 3), np.float32)
    for i, j in np.ndindex(5, 6):
        x, y = m[:2, :2] @ np.array([j + 0.5, i + 0.5]) + m[:2, 3] - 0.5
        if 0 <= x <= 20 and 0 <= y <= 19:
            pixels = np.pad(image[0], ((0, 1), (0, 1), (0, 0)))[int(y):int(y) + 2, int(x):int(x) + 2]
            fy, fx = y - int(y), x - int(x)
            want[0, i, j] = np.einsum("ijc,i,j->c", pixels, [1 - fy, fy], [1 - fx, fx])
    assert 0.2 < np.mean(want != 0) < 1
    f.op("TransformTensorBilinear", [f.input(image, "f32"), f.input(m[None], "f32")], [out(f, want, "f32")],
         bytes(flexbuffers.Dumps(dict(output_height=5, output_width=6))), 2)


# ---- what a file must not say: one error for each

def wrong(f, r):
    x = f.input(real(r, 2, 3), "f32")
    results = lambda shape=(2, 3): [f.output(shape, "f32")]

    def ranked(f, args):
        result = f.tensor((), "f32")
        f.op("STABLEHLO_REDUCE", [args[0], args[1]], [result], options("StablehloReduce", dimensions=[], bodySubgraphIndex=add))
        return [result]
    add = scalar_body("STABLEHLO_ADD", "f32")(f)
    reduce = lambda body: options("StablehloReduce", dimensions=[0], bodySubgraphIndex=body)
    f.op("STABLEHLO_REDUCE", [x, const(f, 0, "f32")], results((3,)), reduce(99))
    f.op("STABLEHLO_REDUCE", [x, const(f, 0, "f32")], results((3,)), reduce(scalar_body("STABLEHLO_COMPARE", "bool")(f)))
    f.op("STABLEHLO_REDUCE", [x, const(f, 0, "f32")], results((3,)), reduce(f.subgraph(["f32"] * 2, ranked)))
    f.op("STABLEHLO_REDUCE", [x, x], results((3,)), reduce(add))
    f.op("STABLEHLO_TRANSPOSE", [x], results(), options("StablehloTranspose", permutation=[0, 7]))
    f.op("STABLEHLO_SLICE", [x], results(), options("StablehloSlice", startIndices=[-2 ** 63, 0], limitIndices=[2, 3], strides=[1, 1]))
    f.op("STABLEHLO_BROADCAST_IN_DIM", [x], results(), options("StablehloBroadcastInDim", broadcastDimensions=[1, 1]))
    f.op("STABLEHLO_IOTA", [], results(), options("StablehloIota", iotaDimension=5))
    f.op("STABLEHLO_GATHER", [x, const(f, [[0]], "i32")], results(),
         options("StablehloGather", offsetDims=[9], collapsedSliceDims=[0], startIndexMap=[4], indexVectorDim=1, sliceSizes=[1, 3]))
    f.op("STABLEHLO_CASE", [const(f, 0, "i32"), x], results(), options("StablehloCase", branchSubgraphIndices=[]))
    f.op("STABLEHLO_COMPOSITE", [x], results(), options("StableHLOComposite", decompositionSubgraphIndex=-1))
    f.op("STABLEHLO_CUSTOM_CALL", [x], results(), options("StablehloCustomCall", callTargetName="f"))
    f.op("STABLEHLO_RESHAPE", [x], results((7,)))
    f.op("STABLEHLO_RNG_BIT_GENERATOR", [const(f, [1], "u64")], [f.output((1,), "u64"), f.output((4,), "u32")])
    f.op("REDUCE_WINDOW", [x, const(f, 0, "f32")] + [const(f, [2 ** 40, 1], "i64")] * 3, results(), options("ReduceWindow", reduceFunction=1))
    f.op("EMBEDDING_LOOKUP_SPARSE", [const(f, [0], "i32"), const(f, [[0, 0]], "i32"), const(f, [-5, 2], "i32"), const(f, [1], "f32"), x], results())
    f.op("MaxUnpooling2D", [x, x], results(), b"short")
    f.op("TransformLandmarks", [x, x], results(), b"")


def write(name, add, folder):
    f = T.File()
    f.wants = {}
    add(f, np.random.default_rng(zlib.crc32(name.encode())))
    # what LiteRT has no kernels for is left out of the file that it is asked about
    asked = T.File.copy_of(f, [k for k, v in f.wants.items() if v is None])
    if asked:
        f.wants.update(T.reference(asked.bytes(), asked.feeds))
    with open(os.path.join(folder, f"more_{name}.tflite"), "wb") as to:
        to.write(f.bytes())
    np.savez_compressed(os.path.join(folder, f"more_{name}.npz"), **f.feeds, **{"want/" + k: v for k, v in f.wants.items()})
    return len(f.wants)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--out", required=True)
    p.add_argument("names", nargs="*")
    a = p.parse_args()
    os.makedirs(a.out, exist_ok=True)
    print({name: write(name, CASES[name], a.out) for name in a.names or CASES})
    f = T.File()
    wrong(f, np.random.default_rng(1))
    with open(os.path.join(a.out, "wrong.tflite"), "wb") as to:
        to.write(f.bytes())


if __name__ == "__main__":
    main()
