"""Operations under their first names, and those that TensorFlow has no kernel of its own for.

Recipes as in recipes.py. What has no kernel is held against operations that give the same.
"""
import numpy as np
import tensorflow.compat.v1 as tf

from recipes import WIDE, Feeds, raw, recipe, values
from recipes_old import old


def positive(n, dtype, batch=()):
    x = values((*batch, n, n), "float64", n)
    return (x @ np.swapaxes(x, -1, -2) + n * np.eye(n)).astype(dtype)


def first(op, *inputs, types=WIDE, see=lambda *results: results, **attrs):
    """A recipe of one node, whose operands are made by functions of a type; `see` says what of the results tells something."""
    @old(op, types)
    def build(dtype):
        feeds = Feeds()
        results = getattr(raw, op)(**{name: feeds.add(make(dtype)) for name, make in inputs}, **attrs)
        return [{"feeds": feeds, "fetches": list(see(*(results if isinstance(results, tuple) else (results,))))}]


def matrices(dtype):
    return positive(4, dtype, (2, 3))


def sides(dtype):
    return values((2, 3, 4, 2), dtype, 3)


def signless(values_, *vectors):
    return (values_, *(tf.abs(v) for v in vectors))


first("BatchCholesky", ("input", matrices))
first("BatchMatrixDeterminant", ("input", matrices))
first("BatchMatrixInverse", ("input", matrices), adjoint=True)
first("BatchMatrixSolve", ("matrix", matrices), ("rhs", sides), adjoint=True)
first("BatchMatrixSolveLs", ("matrix", lambda t: values((2, 3, 6, 4), t, 5)), ("rhs", lambda t: values((2, 3, 6, 2), t, 6)),
      ("l2_regularizer", lambda t: np.float64(0.1)))
first("BatchSelfAdjointEigV2", ("input", matrices), see=signless)
first("BatchSvd", ("input", lambda t: values((2, 3, 5, 4), t, 5)), see=signless)
for name in ("SelfAdjointEig", "BatchSelfAdjointEig"):
    first(name, ("input", (lambda t: positive(4, t)) if name == "SelfAdjointEig" else matrices), see=lambda both: (tf.abs(both),))
for name in ("BatchFFT", "BatchFFT2D", "BatchFFT3D", "BatchIFFT", "BatchIFFT2D", "BatchIFFT3D"):
    @old(name, ["complex64"])
    def transform(dtype, op=name):
        feeds = Feeds()
        x = feeds.add(values((2, 3, 4, 6), dtype, 5))
        return [{"feeds": feeds, "fetches": [getattr(raw, op)(input=x)], "expected": [getattr(raw, op[len("Batch"):])(input=x)]}]


first("Conv3DBackpropFilter", ("input", lambda t: values((2, 4, 5, 6, 3), t, 1)), ("filter", lambda t: values((2, 3, 2, 3, 4), t, 2)),
      ("out_backprop", lambda t: values((2, 4, 3, 3, 4), t, 3)), strides=[1, 1, 2, 2, 1], padding="SAME")


@recipe("MaxPoolGradGradWithArgmax", WIDE)
def second_gradient(dtype):
    feeds = Feeds()
    x, grad = feeds.add(values((2, 5, 6, 3), dtype, 1)), feeds.add(values((2, 5, 6, 3), dtype, 2))
    kind = dict(ksize=[1, 2, 3, 1], strides=[1, 2, 2, 1], padding="SAME")
    pooled, at = raw.MaxPoolWithArgmax(input=x, **kind)
    return [{"feeds": feeds, "fetches": [raw.MaxPoolGradGradWithArgmax(input=x, grad=grad, argmax=at, **kind)],
             "expected": [raw.MaxPoolGradGrad(orig_input=x, orig_output=pooled, grad=grad, **kind)]}]


@recipe("QuantizedReluX", ["quint8"])
def quantized_cut(dtype):
    feeds = Feeds()
    x = raw.QuantizeV2(input=feeds.add(np.linspace(-1, 9, 50, dtype=np.float32)), min_range=-1.0, max_range=9.0, T=tf.as_dtype(dtype))[0]
    ends = dict(min_features=feeds.add(np.float32(-1)), max_features=feeds.add(np.float32(9)))
    return [{"feeds": feeds, "fetches": list(raw.QuantizedReluX(features=x, max_value=feeds.add(np.float32(6)), **ends)),
             "expected": list(raw.QuantizedRelu6(features=x, **ends))}]


for name in ("SegmentSumV2", "SegmentProdV2", "SegmentMaxV2", "SegmentMinV2"):
    @recipe(name, WIDE + ["int32", "float16"])
    def segments(dtype, op=name):
        feeds, ids = Feeds(), tf.constant([0, 0, 1, 2, 2, 2])
        data = feeds.add(values((6, 5), dtype, 3))
        return [{"feeds": feeds, "fetches": [getattr(raw, op)(data=data, segment_ids=ids, num_segments=3)],
                 "expected": [getattr(raw, op[:-2])(data=data, segment_ids=ids)]}]


@old("TopK", WIDE + ["int32", "uint8", "bfloat16"], producer=6)
def largest(dtype):
    feeds = Feeds()
    x = feeds.add(values((3, 17), dtype, 3, -50, 50))
    return [{"feeds": feeds, "fetches": list(raw.TopK(input=x, k=5)), "expected": list(raw.TopKV2(input=x, k=tf.constant(5)))}]


for name in ("TensorArraySize", "TensorArrayClose", "TensorArrayGrad", "TensorArraySizeV2", "TensorArrayCloseV2", "TensorArrayGradV2"):
    @old(name, ["float32", "int32", "complex64"], producer=15)
    def arrays(dtype, op=name):
        end = "V2" if op.endswith("V2") else ""
        run = lambda what: getattr(raw, what + end)
        feeds = Feeds()
        x = feeds.add(values((4, 3), dtype, 1))
        handle = run("TensorArray")(size=4, dtype=tf.as_dtype(dtype), clear_after_read=False)
        kept = 0.0
        for index in range(4):
            kept = run("TensorArrayWrite")(handle=handle, index=index, value=x[index], flow_in=kept)
        if op.startswith("TensorArrayGrad"):
            other = run("TensorArrayGrad")(handle=handle, flow_in=kept, source="gradients")
            flow = 0.0
            for index, row in ((2, x[0]), (1, x[3]), (2, x[1])):
                flow = run("TensorArrayWrite")(handle=other, index=index, value=row, flow_in=flow)
            return [{"feeds": feeds, "fetches": [run("TensorArrayRead")(handle=other, index=k, flow_in=flow, dtype=x.dtype) for k in (2, 1)]}]
        rows = [run("TensorArrayRead")(handle=handle, index=k, flow_in=kept, dtype=x.dtype) for k in (3, 0)]
        if op.startswith("TensorArraySize"):
            return [{"feeds": feeds, "fetches": rows + [run("TensorArraySize")(handle=handle, flow_in=kept)]}]
        with tf.control_dependencies(rows):
            closed = run("TensorArrayClose")(handle=handle)
        return [{"feeds": feeds, "fetches": rows, "targets": [closed]}]


# of these the corpus has some types in large cases alone
@recipe("BesselK0", ["float32"])
def bessel(dtype):
    feeds = Feeds()
    return [{"feeds": feeds, "fetches": [raw.BesselK0(x=feeds.add(values((3, 7), dtype, 1, 0.01, high))) for high in (1, 9, 60)]}]


@recipe("DepthwiseConv2dNativeBackpropInput", WIDE)
def depthwise(dtype):
    feeds, sizes = Feeds(), tf.constant([2, 7, 6, 3])
    weights, grad = feeds.add(values((3, 2, 3, 2), dtype, 1)), feeds.add(values((2, 4, 3, 6), dtype, 2))
    return [{"feeds": feeds, "fetches": [raw.DepthwiseConv2dNativeBackpropInput(
        input_sizes=sizes, filter=weights, out_backprop=grad, strides=[1, 2, 2, 1], padding="SAME")]}]


@recipe("ReverseSequence", ["float32", "complex64", "uint8"])
def reversed_rows(dtype):
    feeds = Feeds()
    return [{"feeds": feeds, "fetches": [raw.ReverseSequence(input=feeds.add(values((3, 5, 2), dtype, 1)), seq_dim=1,
                                                             seq_lengths=feeds.add(np.array([0, 5, 3], np.int64)))]}]


@recipe("Min", ["float64", "bfloat16"])
def least(dtype):
    feeds = Feeds()
    x = feeds.add(values((3, 5, 2), dtype, 1))
    return [{"feeds": feeds, "fetches": [raw.Min(input=x, axis=axis, keep_dims=len(axis) == 2) for axis in ([0], [1, 2], [2])]}]


@recipe("Slice", ["string"])
def text_parts(_):
    feeds = Feeds()
    x = feeds.add(np.array([[b"a", b"bc", b""], [b"d", b"efg", b"h"]], object), dtype=tf.string)
    return [{"feeds": feeds, "fetches": [raw.Slice(input=x, begin=[0, 1], size=[-1, 2])]}]


for name in ("AssignSubVariableOp", "ResourceScatterAdd"):
    @recipe(name, WIDE + ["float16"])
    def updated(dtype, op=name):
        feeds, kind = Feeds(), tf.as_dtype(dtype)
        handle = raw.VarHandleOp(dtype=kind, shape=[4, 3], shared_name=op)
        start = raw.AssignVariableOp(resource=handle, value=feeds.add(values((4, 3), dtype, 1)))
        if op == "AssignSubVariableOp":
            step = raw.AssignSubVariableOp(resource=handle, value=feeds.add(values((4, 3), dtype, 2)))
        else:
            step = raw.ResourceScatterAdd(resource=handle, indices=[3, 0, 3], updates=feeds.add(values((3, 3), dtype, 2)))
        first_feeds, second_feeds = dict(list(feeds.items())[:1]), dict(list(feeds.items())[1:])
        read = raw.ReadVariableOp(resource=handle, dtype=kind)
        return [{"feeds": first_feeds, "targets": [start]}, {"feeds": second_feeds, "targets": [step]}, {"fetches": [read]}]
