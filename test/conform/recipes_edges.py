"""What TensorFlow makes of operands at the edge of what an operation takes: no elements, indices that nothing reads, NaN.

Recipes as in recipes.py; several of one operation have a label each.
"""
import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.framework import function

from recipes import FLOATS, Feeds, raw, recipe


def edge(op, label, types=("float32",)):
    """A recipe whose case is called OP.LABEL.TYPE."""
    def add(build):
        build.label = label
        return recipe(op, types)(build)
    return add


def gather_of_nothing(label, shape, indices, axis, batch=0, types=("float32",)):
    """Indices out of range where none would copy anything; fed with and without known sizes."""
    @edge("GatherV2", label, types)
    def build(dtype):
        feeds, fetches = Feeds(), []
        for known in (True, False):
            params = feeds.add(np.zeros(shape, tf.as_dtype(dtype).as_numpy_dtype), known=known)
            at = feeds.add(np.array(indices, np.int32), known=known)
            fetches.append(raw.GatherV2(params=params, indices=at, axis=axis, batch_dims=batch))
        return [{"feeds": feeds, "fetches": fetches}]


gather_of_nothing("slices_of_nothing", (7, 0, 0), [100], 0, types=("float32", "string"))
gather_of_nothing("no_slices", (0, 7), [100], 1)
gather_of_nothing("no_slices_of_a_batch", (2, 0, 7), [[100], [-1]], 2, 1)
gather_of_nothing("batches_of_nothing", (2, 7, 0), [[100], [1]], 1, 1)
gather_of_nothing("no_rows_of_nothing", (0, 0), [1], 0)


@edge("Gather", "slices_of_nothing")
def gather_v1(dtype):
    feeds = Feeds()
    fetches = [raw.Gather(params=feeds.add(np.zeros((7, 0, 0), dtype), known=known), indices=feeds.add(np.array([100], np.int32)))
               for known in (True, False)]
    return [{"feeds": feeds, "fetches": fetches}]


@edge("GatherNd", "no_tuples")
def gather_no_tuples(dtype):
    feeds = Feeds()
    return [{"feeds": feeds, "fetches": [raw.GatherNd(params=feeds.add(np.zeros((3, 0), dtype)),
                                                      indices=feeds.add(np.zeros((0, 1), np.int32)))]}]


@edge("CumulativeLogsumexp", "nan", ["float32", "float64", "float16", "bfloat16"])
def logsumexp_of_nan(dtype):
    n, i = np.nan, np.inf
    rows = [[1, n, 2, 3, 4], [n, 1, 2, n, n], [n, n, 1, n, 2], [1, i, 2, 3, 1], [i, n, 2, 1, 1], [-i, n, 2, n, -i], [n, -i, 1, n, 1],
            [1, -i, n, 2, n], [1, i, i, 2, n], [i, -i, 1, 1, 1], [1, 2, n, n, n]]
    long = np.tile(np.array(rows[0] + rows[1] + rows[6]), 5)[None]
    feeds = Feeds()
    fetches = []
    for x in (np.array(rows), np.array(rows).T, long):
        x = feeds.add(x.astype(tf.as_dtype(dtype).as_numpy_dtype))
        for axis, exclusive, reverse in ((0, False, False), (1, False, False), (1, True, False), (1, False, True)):
            fetches.append(raw.CumulativeLogsumexp(x=x, axis=axis, exclusive=exclusive, reverse=reverse))
    return [{"feeds": feeds, "fetches": fetches}]


NAN_ROWS = [[1, np.nan, 2, -np.inf, np.nan], [np.nan, 3, np.nan, -np.inf, np.nan], [0, np.nan, 5, -np.inf, 1]]


def nan_of_scatter(op):
    """A NaN that is there stays, one that comes is left out."""
    @edge(op, "nan", FLOATS)
    def build(dtype):
        feeds = Feeds()
        add = lambda a: feeds.add(np.array(a).astype(tf.as_dtype(dtype).as_numpy_dtype))
        at = [[0], [1], [1], [0]] if "Nd" in op or op.startswith("Tensor") else [0, 1, 1, 0]
        updates = add(NAN_ROWS[::-1] + NAN_ROWS[:1])
        if op.startswith("Tensor"):
            return [{"feeds": feeds, "fetches": [getattr(raw, op)(tensor=add(NAN_ROWS), indices=at, updates=updates)]}]
        v = raw.Assign(ref=raw.VariableV2(shape=[3, 5], dtype=dtype), value=add(NAN_ROWS))
        return [{"feeds": feeds, "fetches": [tf.identity(getattr(raw, op)(ref=v, indices=at, updates=updates))]}]


def nan_of_segments(op):
    """A NaN stands until the next number; the least number stands before an infinity."""
    @edge(op, "nan", FLOATS)
    def build(dtype):
        feeds = Feeds()
        data = feeds.add(np.array(NAN_ROWS + NAN_ROWS[:2]).astype(tf.as_dtype(dtype).as_numpy_dtype))
        fetches = [getattr(raw, op)(data=data, segment_ids=ids, num_segments=4) for ids in ([0, 0, 0, 1, 2], [2, 1, 0, 1, 2])]
        return [{"feeds": feeds, "fetches": fetches}]


for kind in ("Max", "Min"):
    for family in ("TensorScatter", "Scatter", "ScatterNd"):
        nan_of_scatter(family + kind)
    nan_of_segments("UnsortedSegment" + kind)


@edge("ResourceScatterNdSub", "bool", ["bool"])
def scatter_of_bool(dtype):
    feeds, fetches = Feeds(), []
    updates = feeds.add(np.array([True, True, False, False]))
    for k, op in enumerate((raw.ResourceScatterNdAdd, raw.ResourceScatterNdSub)):
        handle = raw.VarHandleOp(dtype=dtype, shape=[4], shared_name="bool%d" % k)
        with tf.control_dependencies([raw.AssignVariableOp(resource=handle, value=feeds.add(np.array([True, False, True, False])))]):
            done = op(ref=handle, indices=[[0], [1], [2], [3]], updates=updates)
        with tf.control_dependencies([done]):
            fetches.append(raw.ReadVariableOp(resource=handle, dtype=dtype))
    return [{"feeds": feeds, "fetches": fetches}]


@edge("Bucketize", "nan", ["float32", "float64"])
def buckets_of_nan(dtype):
    feeds = Feeds()
    x = feeds.add(np.array([np.nan, 0, 5, -np.inf, np.inf], dtype))
    return [{"feeds": feeds, "fetches": [raw.Bucketize(input=x, boundaries=[0.0, 5.0, 9.0])]}]


for name in ("LowerBound", "UpperBound"):
    @edge(name, "nan", ["float32", "float64"])
    def bounds_of_nan(dtype, name=name):
        feeds = Feeds()
        rows, values = (feeds.add(np.array([a], dtype)) for a in ([0, 5, 9], [np.nan, 5, -np.inf, np.inf]))
        return [{"feeds": feeds, "fetches": [getattr(raw, name)(sorted_inputs=rows, values=values)]}]


@edge("ClipByValue", "parts", ["complex64", "complex128"])
def clip_of_parts(dtype):
    feeds = Feeds()
    x, low, high = (feeds.add(np.array(a, dtype)) for a in ([[1 + 5j, -4 - 1j], [3 - 7j, 0]], -2 - 1j, 2 + 1j))
    return [{"feeds": feeds, "fetches": [raw.ClipByValue(t=x, clip_value_min=low, clip_value_max=high)]}]


@edge("DenseCountSparseOutput", "wide", ["int32", "int64"])
def counts_of_wide_weights(dtype):
    """Sums of integers that no double holds, and that wrap."""
    feeds = Feeds()
    most = np.iinfo(dtype).max
    values, weights = feeds.add(np.array([0, 1, 1, 2, 2], np.int64)), feeds.add(np.array([most - 3, most - 5, 2, most, 5], dtype))
    made = raw.DenseCountSparseOutput(values=values, weights=weights, binary_output=False)
    return [{"feeds": feeds, "fetches": list(made)}]


@edge("ExtractVolumePatches", "between", ["float32", "int32"])
def patches_between(dtype):
    """Strides beyond the window: as much is left out before the first as behind the last."""
    feeds = Feeds()
    x = feeds.add(np.arange(1 * 4 * 5 * 7 * 2).reshape(1, 4, 5, 7, 2).astype(dtype))
    sizes = [((2, 1, 2), (3, 3, 3)), ((1, 1, 1), (4, 2, 3)), ((1, 2, 3), (3, 5, 4))]
    fetches = [raw.ExtractVolumePatches(input=x, ksizes=[1, *k, 1], strides=[1, *s, 1], padding=p)
               for k, s in sizes for p in ("SAME", "VALID")]
    return [{"feeds": feeds, "fetches": fetches}]


@edge("ResizeNearestNeighborGrad", "wraps", ["int8", "uint8", "int32"])
def gradient_of_integers(dtype):
    """Sums of the gradients of one pixel leave the type."""
    feeds = Feeds()
    grads = feeds.add(np.full((1, 6, 4, 2), np.iinfo(dtype).max - 3, dtype))
    fetches = [raw.ResizeNearestNeighborGrad(grads=grads, size=size, align_corners=align)
               for size, align in (([2, 2], False), ([3, 1], True))]
    return [{"feeds": feeds, "fetches": fetches}]


@edge("SparseReduceMax", "nan", ["float32", "float64"])
def sparse_reduce_of_nan(dtype):
    """In rows too short for vectors a NaN stands until the next number."""
    feeds = Feeds()
    at = [[0, 0], [1, 0], [1, 1], [2, 0], [2, 1], [3, 1], [3, 2]]
    v = feeds.add(np.array([np.nan, np.nan, 1, 2, np.nan, -np.inf, np.nan], dtype))
    made = raw.SparseReduceMax(input_indices=np.array(at, np.int64), input_values=v, input_shape=np.array([5, 3], np.int64),
                               reduction_axes=[1])
    return [{"feeds": feeds, "fetches": [made]}]


@edge("CountUpTo", "read_after", ["int32"])
def count_read_after(dtype):
    """What reads a variable behind an update finds it, where one is compiled and the other is not."""
    feeds = Feeds()
    start = feeds.add(np.array([1], dtype))
    v = raw.VariableV2(shape=[], dtype=dtype, shared_name="v")
    assigned = raw.Assign(ref=v, value=start[0])
    counted = raw.CountUpTo(ref=assigned, limit=9)
    with tf.control_dependencies([counted]):
        read = tf.identity(assigned)
    return [{"feeds": feeds, "fetches": [counted, read, raw.AsString(input=start)]}]


for name in ("ScatterMax", "ScatterNdAdd", "ApplyGradientDescent"):
    @edge(name, "beside", ["float32"])
    def update_beside(dtype, name=name):
        """An update of a variable beside what does not compile: elements of several sizes."""
        feeds = Feeds()
        x = feeds.add(np.array([4, 5, 6], dtype))
        at = feeds.add(np.array([[1]], np.int32))
        v = raw.Assign(ref=raw.VariableV2(shape=[3], dtype=dtype, shared_name="v"), value=np.array([1, 9, 3], dtype))
        update = (raw.ApplyGradientDescent(var=v, alpha=np.array(.5, dtype), delta=x) if name.startswith("Apply") else
                  raw.ScatterMax(ref=v, indices=at[0], updates=x[:1]) if name == "ScatterMax" else
                  raw.ScatterNdAdd(ref=v, indices=at, updates=x[:1]))
        grown = raw.EmptyTensorList(element_shape=[-1], max_num_elements=4, element_dtype=dtype)
        for part in (x, x[:2]):
            grown = raw.TensorListPushBack(input_handle=grown, tensor=part)
        joined = raw.TensorListConcatV2(input_handle=grown, element_shape=[-1], leading_dims=np.zeros(0, np.int64), element_dtype=dtype)
        return [{"feeds": feeds, "fetches": [tf.identity(update), *joined]}]


for name in ("DenseBincount", "RaggedBincount", "SparseBincount"):
    @edge(name, "sizes", ["float32"])
    def count_of_sizes(dtype, name=name):
        """Nothing is known of the sizes when compiling, not even whether there are weights."""
        feeds, fetches = Feeds(), []
        for weights in ([], [2, 3, 4, 5]):
            for binary in (False, True):
                values = feeds.add(np.array([1, 3, 1, 9], np.int32), known=False)
                args = dict(weights=feeds.add(np.array(weights, dtype), known=False), size=5, binary_output=binary)
                if name == "SparseBincount":
                    at = feeds.add(np.array([[0, 1], [0, 2], [2, 0], [2, 1]], np.int64), known=False)
                    fetches.append(raw.SparseBincount(indices=at, values=values, dense_shape=[3, 4], **args))
                elif name == "RaggedBincount":
                    splits = feeds.add(np.array([0, 2, 2, 4], np.int64), known=False)
                    fetches.append(raw.RaggedBincount(splits=splits, values=values, **args))
                elif not (weights and binary):
                    fetches.append(raw.DenseBincount(input=values, **args))
        return [{"feeds": feeds, "fetches": fetches}]


for name in ("BesselI0", "BesselI1"):
    @edge(name, "large", ["float16"])
    def bessel_of_large(dtype, name=name):
        """Its factors leave the range of the type where it does not."""
        feeds = Feeds()
        x = feeds.add(np.array([11, 11.5, -12, 12.5, 13, 40, 80], tf.as_dtype(dtype).as_numpy_dtype))
        return [{"feeds": feeds, "fetches": [getattr(raw, name)(x=x)]}]


@edge("QuantizeAndDequantizeV4Grad", "not_finite")
def gradient_not_finite(dtype):
    """TensorFlow multiplies by 0 outside the range."""
    feeds, n, i = Feeds(), np.nan, np.inf
    g = feeds.add(np.array([n, n, n, 1, i, -i, i, 2, n, 1], dtype))
    x = feeds.add(np.array([0, 5, -5, 5, 5, -5, 0, 0, n, n], dtype))
    made = raw.QuantizeAndDequantizeV4Grad(gradients=g, input=x, input_min=np.array(-1, dtype), input_max=np.array(1, dtype), axis=-1)
    return [{"feeds": feeds, "fetches": list(made)}]


@edge("SymbolicGradient", "integers", ["int32"])
def gradient_of_integer_function(dtype):
    @function.Defun(dtype, dtype)
    def body(x, y):
        return x * y + x - y
    feeds = Feeds()
    x, y, dy = (feeds.add(np.array(v, dtype)) for v in ([1, -2, 3], [4, 5, -6], [7, 8, 9]))
    return [{"feeds": feeds, "fetches": list(raw.SymbolicGradient(input=[x, y, dy], Tout=[dtype, dtype], f=body))}]


@edge("SymbolicGradient", "own", ["float32"])
def gradient_of_its_own(dtype):
    """A function that names its gradient, where a session compiles a part."""
    @function.Defun(dtype, dtype)
    def seven(x, dy):
        return 7 * dy + x
    @function.Defun(dtype, grad_func=seven)
    def body(x):
        return tf.exp(x) - x
    feeds = Feeds()
    x, dy = (feeds.add(np.array(v, dtype)) for v in ([1, -2, 3], [4, 5, -6]))
    y = body(x)
    return [{"feeds": feeds, "fetches": [*tf.gradients(y, x, dy), raw.AsString(input=tf.cast(x, tf.int32))]}]


for name in ("DenseCountSparseOutput", "RaggedCountSparseOutput"):
    @edge(name, "no_values", ["float32"])
    def counts_of_nothing(dtype, name=name):
        """The shape has room for a 0, but where another size is asked for."""
        feeds, fetches = Feeds(), []
        values, weights = feeds.add(np.zeros(0, np.int32)), feeds.add(np.zeros(0, dtype))
        more = {"splits": np.array([0, 0, 0], np.int64)} if name.startswith("Ragged") else {}
        for least, most in ((-1, -1), (3, -1), (-1, 4), (-1, 0)):
            fetches += getattr(raw, name)(values=values, weights=weights, binary_output=False, minlength=least, maxlength=most, **more)
        return [{"feeds": feeds, "fetches": fetches}]


@edge("UnsortedSegmentJoin", "empty_first", ["string"])
def joined_after_empty(dtype):
    """Nothing stands between an empty start and what follows."""
    feeds = Feeds()
    x = feeds.add(np.array([b"", b"", b"a", b"", b"", b"b", b"c", b""], object), dtype)
    pairs = feeds.add(np.array([[b"", b"a"], [b"x", b""], [b"", b"b"]], object), dtype)
    return [{"feeds": feeds, "fetches": [
        raw.UnsortedSegmentJoin(inputs=x, segment_ids=[0, 0, 0, 1, 1, 1, 2, 2], num_segments=5, separator="-"),
        raw.UnsortedSegmentJoin(inputs=pairs, segment_ids=[0, 0, 0], num_segments=2, separator="-")]}]


@edge("StringFormat", "empty", ["float32"])
def format_of_nothing(dtype):
    feeds, fetches = Feeds(), []
    for shape in ([0], [2, 0], [0, 2], [2, 0, 3], [2, 3], []):
        x = feeds.add(np.ones(shape, dtype))
        fetches += [raw.StringFormat(inputs=[x], template="{}", placeholder="{}", summarize=n) for n in (0, 1, 3, -1)]
    return [{"feeds": feeds, "fetches": fetches}]


@edge("GRUBlockCellGrad", "sizes")
def gru_of_sizes(dtype):
    """Sizes of what is fed are not known when compiling, those of constants are."""
    rng, feeds = np.random.default_rng(1), Feeds()
    of = lambda *shape: rng.random(shape).astype(dtype)
    fed = lambda *shape: feeds.add(of(*shape), known=False)
    made = raw.GRUBlockCellGrad(x=fed(1, 1), h_prev=of(1, 4), w_ru=fed(5, 8), w_c=fed(5, 4), b_ru=of(8), b_c=of(4), r=fed(1, 4), u=of(1, 4),
                                c=of(1, 4), d_h=of(1, 4))
    return [{"feeds": feeds, "fetches": list(made)}]


@edge("StridedSliceAssign", "beside")
def slice_assigned_beside(dtype):
    """Its bounds are constants, also where it is compiled by itself, since the rest is not."""
    feeds = Feeds()
    x, start = feeds.add(np.array([4, 5, 6], dtype)), feeds.add(np.array([1], np.int32))
    v, n = (raw.VariableV2(shape=s, dtype=t, shared_name=name) for s, t, name in (([7], dtype, "v"), ([], "int32", "n")))
    assigned = raw.Assign(ref=v, value=np.zeros(7, dtype))
    update = raw.StridedSliceAssign(ref=assigned, begin=[1], end=[6], strides=[2], value=x)
    grown = raw.EmptyTensorList(element_shape=[-1], max_num_elements=4, element_dtype=dtype)
    for part in (x, x[:2]):
        grown = raw.TensorListPushBack(input_handle=grown, tensor=part)
    joined = raw.TensorListConcatV2(input_handle=grown, element_shape=[-1], leading_dims=np.zeros(0, np.int64), element_dtype=dtype)
    counted = raw.CountUpTo(ref=raw.Assign(ref=n, value=start[0]), limit=9)
    return [{"feeds": feeds, "fetches": [tf.identity(update), *joined, counted]}]


SLICES = [  # bounds and strides of a tensor of 7 x 6
    ([1, 5], [7, 0], [2, -2]), ([-1, 0], [-8, 6], [-3, 4]), ([3, 2], [3, 2], [2, 1]), ([6, -9], [0, 9], [-1, 5]), ([0, 1], [100, -1], [3, 2]),
    ([5, 5], [2, 2], [2, 2]), ([6, 1], [6, 4], [-3, -7])]


def slices_of(op, label, update):
    """Bounds and a stride that only the run knows; of what is updated the sizes are known, and then not."""
    @edge(op, label, ["float32", "int16", "bool"])
    def build(dtype):
        feeds, fetches = Feeds(), []
        base = np.arange(42).reshape(7, 6) % 5
        for k, (begin, end, strides) in enumerate(SLICES):
            index = tuple(slice(b if b >= 0 else max(b + n, 0), max(e + n, 0) if -n <= e < 0 else None if e < -n else e, s)
                          for b, e, s, n in zip(begin, end, strides, base.shape))
            part = base[index].shape
            x = feeds.add(base.astype(dtype), known=k % 2 == 0)
            value = feeds.add((np.arange(np.prod(part)).reshape(part) % 7 + 1).astype(dtype), known=k % 3 == 0)
            bounds = [feeds.add(np.array(b, np.int32)) for b in (begin, end)]
            fetches.append(update(x, value, *bounds, strides, dtype, k))
        return [{"feeds": feeds, "fetches": fetches}]


def assigned_slice(x, value, begin, end, strides, dtype, k):
    v = raw.VariableV2(shape=[7, 6], dtype=dtype, shared_name="v%d" % k)
    return tf.identity(raw.StridedSliceAssign(ref=raw.Assign(ref=v, value=x), begin=begin, end=end, strides=strides, value=value))


def assigned_slice_of_resource(x, value, begin, end, strides, dtype, k):
    v = raw.VarHandleOp(dtype=dtype, shape=[7, 6], shared_name="v%d" % k)
    with tf.control_dependencies([raw.AssignVariableOp(resource=v, value=x)]):
        step = raw.ResourceStridedSliceAssign(ref=v, begin=begin, end=end, strides=strides, value=value)
    with tf.control_dependencies([step]):
        return raw.ReadVariableOp(resource=v, dtype=dtype)


slices_of("StridedSliceAssign", "bounds_of_the_run", assigned_slice)
slices_of("ResourceStridedSliceAssign", "bounds_of_the_run", assigned_slice_of_resource)
slices_of("TensorStridedSliceUpdate", "bounds_of_the_run", lambda x, value, begin, end, strides, *_: raw.TensorStridedSliceUpdate(
    input=x, begin=begin, end=end, strides=strides, value=value))
slices_of("StridedSliceGrad", "bounds_of_the_run", lambda x, value, begin, end, strides, *_: raw.StridedSliceGrad(
    shape=tf.shape(x), begin=begin, end=end, strides=strides, dy=value))


@edge("SegmentMean", "many_rows", ["int8", "uint8"])
def segment_mean_of_many(dtype):
    """TensorFlow counts in the type of the data, where more than 127 rows wrap; of 255 the mean is the sum, negated: -128 stays."""
    feeds, rng = Feeds(), np.random.default_rng(3)
    counts = [100, 127, 128, 192, 255, 0, 257, 300]
    ids = np.repeat(np.arange(len(counts)), counts).astype(np.int32)
    x = rng.integers(-50, 70, (len(ids), 2)).astype(dtype)
    x[ids == 4, 1] = 0
    x[np.flatnonzero(ids == 4)[0], 1] = np.array(-128).astype(dtype)
    return [{"feeds": feeds, "fetches": [raw.SegmentMean(data=feeds.add(x, known=known), segment_ids=ids) for known in (True, False)]}]


@edge("RsqrtGrad", "beyond_the_cube", ["float16", "float32", "float64"])
def rsqrt_grad_beyond_the_cube(dtype):
    """The cube of y overflows, or the square, where the gradient need not."""
    feeds = Feeds()
    largest = float(np.finfo(dtype).max)
    y = np.array([0.5, largest ** 0.34, -(largest ** 0.4), largest ** 0.49, largest ** 0.6, np.inf, np.inf, 0], dtype)
    dy = np.array([2, largest ** -0.3, largest ** -0.3, largest ** -0.5, largest ** -0.3, 0, 1, np.inf], dtype)
    return [{"feeds": feeds, "fetches": [raw.RsqrtGrad(y=feeds.add(y), dy=feeds.add(dy))]}]
