"""Small graphs for operations that the corpus has no case for; record.py runs them on TensorFlow.

A recipe is a function of a type that builds nodes in the default graph and returns the steps of a case:
{"feeds": {placeholder: value}, "fetches": [tensors], "targets": [operations]}.
"""
import numpy as np
import tensorflow.compat.v1 as tf

raw = tf.raw_ops
FLOATS = ["float32", "float64", "float16", "bfloat16"]
WIDE = ["float32", "float64"]
INTEGERS = ["int32", "int64", "int8", "int16", "uint8", "uint16"]
COMPLEX = ["complex64", "complex128"]
RECIPES = []


def all():  # pylint: disable=redefined-builtin
    return RECIPES


def recipe(op, types=("float32",)):
    def add(build):
        RECIPES.append((op, list(types), build))
        return build
    return add


def values(shape, dtype, seed=0, low=-2.0, high=2.0):
    """Numbers between low and high; whole ones for integers."""
    rng = np.random.default_rng(seed + 1000 * len(shape) + sum(shape))
    kind = tf.as_dtype(dtype)
    if kind.is_integer:
        low = max(low, kind.min)
        return rng.integers(int(np.floor(low)), int(np.ceil(high)) + 1, shape).astype(kind.as_numpy_dtype)
    if kind.is_bool:
        return rng.integers(0, 2, shape).astype(bool)
    data = rng.uniform(low, high, shape)
    if kind.is_complex:
        data = data + 1j * rng.uniform(low, high, shape)
    return data.astype(kind.as_numpy_dtype)


class Feeds(dict):
    """Placeholders by the values that are fed; `known` False leaves the sizes out."""

    def add(self, value, dtype=None, known=True):
        value = np.asarray(value)
        tensor = tf.placeholder(dtype or value.dtype, value.shape if known else [None] * value.ndim)
        self[tensor] = value
        return tensor


def outputs_of(result):
    """The tensors of a raw op's result: one, a list, or a named tuple of these."""
    if isinstance(result, (list, tuple)):
        return [t for part in result for t in outputs_of(part)]
    return [result] if isinstance(result, tf.Tensor) else []


def simple(op, types, *inputs, **attrs):
    """op(NAME=(shape, low, high) or a fixed value, ...): one node, its tensors fed."""
    names = inputs

    @recipe(op, types)
    def build(dtype):
        feeds, kwargs = Feeds(), {}
        for seed, (name, what) in enumerate(names):
            if isinstance(what, tuple):
                shape, *bounds = what
                kwargs[name] = feeds.add(values(shape, dtype, seed, *bounds))
            else:
                kwargs[name] = what(dtype) if callable(what) else tf.constant(what)
        more = {k: (v(dtype) if callable(v) else v) for k, v in attrs.items()}
        return [{"feeds": feeds, "fetches": outputs_of(getattr(raw, op)(**kwargs, **more))}]


# elementwise operations
for name, low, high in [
        ("BesselI0", -3, 3), ("BesselI1", -3, 3), ("BesselI1e", -3, 3), ("BesselK0e", 0.1, 4), ("BesselK1e", 0.1, 4),
        ("Erfinv", -0.95, 0.95), ("Ndtri", 0.05, 0.95), ("Expint", 0.1, 3), ("FresnelCos", -3, 3), ("FresnelSin", -3, 3),
        ("Spence", 0.1, 3)]:
    simple(name, FLOATS, ("x", ((3, 7), low, high)))
simple("IsInf", FLOATS, ("x", lambda d: tf.constant([0.0, np.inf, -np.inf, np.nan, 1.0], d)))
simple("Inv", FLOATS + COMPLEX, ("x", ((5, 3), 0.5, 2)))
simple("InvGrad", FLOATS + COMPLEX, ("y", ((5, 3),)), ("dy", ((5, 3),)))
simple("Div", FLOATS + COMPLEX + INTEGERS, ("x", ((4, 5), -50, 50)), ("y", ((5,), 1, 9)))
simple("Mod", WIDE + ["int32", "int64"], ("x", ((4, 5), -50, 50)), ("y", ((5,), 1, 9)))
simple("OnesLike", FLOATS + INTEGERS + COMPLEX + ["bool"], ("x", ((2, 0, 3),)))
simple("Snapshot", FLOATS + ["int32"], ("input", ((3, 2),)))
simple("PreventGradient", FLOATS + ["int32"], ("input", ((3, 2),)))
simple("Copy", FLOATS + ["int32"], ("input", ((3, 2),)))
simple("CopyHost", FLOATS + ["int32"], ("input", ((3, 2),)))
simple("CheckNumericsV2", FLOATS, ("tensor", ((3, 2),)), message="checked")
simple("BiasAddV1", FLOATS + ["int32"], ("value", ((2, 3, 4),)), ("bias", ((4,),)))
simple("AccumulateNV2", FLOATS + ["int32"], ("inputs", lambda d: [tf.constant(values((2, 3), d, s)) for s in range(3)]), shape=[2, 3])
simple("LinSpace", WIDE + ["bfloat16"], ("start", ((),)), ("stop", ((), 3, 9)), ("num", 7))
simple("UnravelIndex", ["int32", "int64"], ("indices", ((5,), 0, 23)), ("dims", lambda d: tf.constant([2, 3, 4], d)))
simple("Bincount", ["float32", "float64", "int32", "int64"], ("arr", [1, 3, 3, 0, 7]), ("size", 6), ("weights", ((5,),)))

# arrays
simple("Concat", FLOATS + INTEGERS, ("concat_dim", 1),
       ("values", lambda d: [tf.constant(values((2, 3), d)), tf.constant(values((2, 1), d))]))
simple("Gather", FLOATS + INTEGERS, ("params", ((5, 3),)), ("indices", [[4, 0], [2, 2]]))
simple("InTopK", ["float32"], ("predictions", ((4, 9),)), ("targets", [0, 8, 3, 3]), k=3)
simple("TensorStridedSliceUpdate", FLOATS + INTEGERS, ("input", ((4, 5),)), ("begin", [1, 0]), ("end", [3, 5]), ("strides", [1, 2]),
       ("value", ((2, 3),)))
simple("TensorScatterMin", FLOATS + ["int32", "int64"], ("tensor", ((4, 3),)), ("indices", [[1], [3], [1]]), ("updates", ((3, 3),)))
simple("SparseReduceMax", FLOATS + INTEGERS, ("input_indices", np.array([[0, 0], [0, 2], [2, 1]], np.int64)), ("input_values", ((3,),)),
       ("input_shape", np.array([3, 4], np.int64)), ("reduction_axes", [1]))
simple("SparseDenseCwiseDiv", FLOATS + ["int32"], ("sp_indices", np.array([[0, 0], [0, 2], [2, 1]], np.int64)), ("sp_values", ((3,),)),
       ("sp_shape", np.array([3, 4], np.int64)), ("dense", ((3, 4), 1, 4)))
simple("SparseSparseMinimum", FLOATS + ["int32"], ("a_indices", np.array([[0, 0], [0, 2]], np.int64)), ("a_values", ((2,),)),
       ("a_shape", np.array([3, 4], np.int64)), ("b_indices", np.array([[0, 2], [2, 1]], np.int64)), ("b_values", ((2,),)),
       ("b_shape", np.array([3, 4], np.int64)))
for name in ("SparseSegmentSqrtN", "SparseSegmentMeanWithNumSegments", "SparseSegmentSqrtNWithNumSegments"):
    more = {"num_segments": lambda d: tf.constant(5)} if name.endswith("NumSegments") else {}
    simple(name, FLOATS, ("data", ((5, 3),)), ("indices", [4, 0, 1, 1]), ("segment_ids", [0, 0, 1, 3]), **more)
simple("SparseSegmentSqrtNGrad", FLOATS, ("grad", ((4, 3),)), ("indices", [4, 0, 1, 1]), ("segment_ids", [0, 0, 1, 3]), ("output_dim0", 6))
simple("SparseSegmentSqrtNGradV2", FLOATS, ("grad", ((4, 3),)), ("indices", [4, 0, 1, 1]), ("segment_ids", [0, 0, 1, 3]),
       ("dense_output_dim0", 6))
simple("RaggedFillEmptyRowsGrad", FLOATS, ("reverse_index_map", np.array([2, 0, 1], np.int64)), ("grad_values", ((5,),)))

# matrices
simple("BatchMatMul", FLOATS + COMPLEX + ["int32", "int64"], ("x", ((2, 3, 4),)), ("y", ((2, 5, 4),)), adj_y=True)
simple("MatrixDiagPart", FLOATS + ["int32"], ("input", ((2, 4, 3),)))
simple("MatrixDiagPartV2", FLOATS + ["int32"], ("input", ((2, 4, 3),)), ("k", [-1, 1]), ("padding_value", ((),)))
simple("MatrixDiagV2", FLOATS + ["int32"], ("diagonal", ((2, 3),)), ("k", 1), ("num_rows", 5), ("num_cols", -1), ("padding_value", ((),)))
simple("MatrixSetDiagV2", FLOATS + ["int32"], ("input", ((2, 3, 4),)), ("diagonal", ((2, 3),)), ("k", 1))


def well_conditioned(dtype):
    return tf.constant((values((2, 3, 3), dtype, 5, -0.3, 0.3) + 2 * np.eye(3)).astype(tf.as_dtype(dtype).as_numpy_dtype))


simple("MatrixSquareRoot", WIDE + COMPLEX, ("input", well_conditioned))
simple("RFFT3D", ["float32", "float64"], ("input", ((2, 4, 3, 6),)), ("fft_length", [4, 3, 6]),
       Tcomplex=lambda d: tf.complex64 if d == "float32" else tf.complex128)
simple("IRFFT3D", COMPLEX, ("input", ((2, 4, 3, 4),)), ("fft_length", [4, 3, 6]),
       Treal=lambda d: tf.float32 if d == "complex64" else tf.float64)

# networks
for name in ("FusedBatchNorm", "FusedBatchNormV2"):
    simple(name, ["float32"], ("x", ((2, 3, 3, 4),)), ("scale", ((4,),)), ("offset", ((4,),)), ("mean", ((0,),)), ("variance", ((0,),)))
simple("FusedBatchNormGradV2", ["float32"], ("y_backprop", ((2, 3, 3, 4),)), ("x", ((2, 3, 3, 4),)), ("scale", ((4,),)),
       ("reserve_space_1", ((4,),)), ("reserve_space_2", ((4,), 0.5, 2)), is_training=True)
simple("MaxPoolGradWithArgmax", FLOATS, ("input", ((1, 4, 4, 2),)), ("grad", ((1, 2, 2, 2),)),
       ("argmax", np.arange(0, 32, 4, dtype=np.int64).reshape(1, 2, 2, 2)), ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
simple("ResizeArea", ["float32", "float64", "float16", "uint8", "int32"], ("images", ((1, 5, 7, 2), 0, 9)), ("size", [3, 4]))
BOXES = np.array([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [0, 10.1, 1, 11.1]], np.float32)
SCORES = np.array([0.9, 0.75, 0.6, 0.95, 0.5], np.float32)
simple("NonMaxSuppression", ["float32"], ("boxes", BOXES), ("scores", SCORES), ("max_output_size", 3))
simple("NonMaxSuppressionV2", ["float32"], ("boxes", BOXES), ("scores", SCORES), ("max_output_size", 3), ("iou_threshold", np.float32(0.4)))
simple("NonMaxSuppressionV4", ["float32"], ("boxes", BOXES), ("scores", SCORES), ("max_output_size", 4), ("iou_threshold", np.float32(0.4)),
       ("score_threshold", np.float32(0.1)), pad_to_max_output_size=True)
CELL = [("x", ((2, 3),)), ("h_prev", ((2, 4),)), ("w_ru", ((7, 8),)), ("w_c", ((7, 4),)), ("b_ru", ((8,),)), ("b_c", ((4,),))]
simple("GRUBlockCell", ["float32"], *CELL)
simple("GRUBlockCellGrad", ["float32"], *CELL, ("r", ((2, 4), 0, 1)), ("u", ((2, 4), 0, 1)), ("c", ((2, 4),)), ("d_h", ((2, 4),)))


def block_lstm(op, **more):
    @recipe(op, ["float32"])
    def build(dtype):
        feeds = Feeds()
        add = lambda shape, seed: feeds.add(values(shape, dtype, seed, -0.7, 0.7))
        lstm = dict(seq_len_max=tf.constant(3, tf.int64), x=add((3, 2, 3), 1), cs_prev=add((2, 4), 2), h_prev=add((2, 4), 3),
                    w=add((7, 16), 4), wci=add((4,), 5), wcf=add((4,), 6), wco=add((4,), 7), b=add((16,), 8))
        forward = (raw.BlockLSTMV2 if op.endswith("V2") else raw.BlockLSTM)(use_peephole=False, **lstm)
        grads = getattr(raw, op)(use_peephole=False, cs_grad=add((3, 2, 4), 9), h_grad=add((3, 2, 4), 10), **lstm, **forward._asdict())
        return [{"feeds": feeds, "fetches": outputs_of(grads)}]


block_lstm("BlockLSTMGrad")
block_lstm("BlockLSTMGradV2")

# random numbers
for name in ("StatelessRandomNormal", "StatelessRandomUniform", "StatelessTruncatedNormal"):
    simple(name, FLOATS, ("shape", [3, 5]), ("seed", [7, 11]), dtype=lambda d: d)
simple("StatelessRandomUniformFullInt", ["int32", "int64"], ("shape", [3, 5]), ("seed", [7, 11]), dtype=lambda d: d)
simple("StatelessRandomUniformInt", ["int32", "int64"], ("shape", [3, 5]), ("seed", [7, 11]), ("minval", lambda d: tf.constant(-3, d)),
       ("maxval", lambda d: tf.constant(90, d)))
simple("StatelessRandomGetKeyCounterAlg", ["int32", "int64"], ("seed", lambda d: tf.constant([7, 11], d)))

# tensor lists
def tensor_list(dtype, shapes=((2, 3), (2, 3))):
    handle = raw.EmptyTensorList(element_shape=tf.constant([-1, 3]), max_num_elements=tf.constant(9), element_dtype=dtype)
    for seed, shape in enumerate(shapes):
        handle = raw.TensorListPushBack(input_handle=handle, tensor=tf.constant(values(shape, dtype, seed)))
    return handle


@recipe("TensorListConcat", FLOATS + ["int32"])
def list_concat(dtype):
    made = raw.TensorListConcat(input_handle=tensor_list(dtype, ((2, 3), (1, 3))), element_dtype=dtype, element_shape=[None, 3])
    return [{"fetches": outputs_of(made)}]


@recipe("TensorListConcatLists", FLOATS + ["int32"])
def list_concat_lists(dtype):
    both = raw.TensorListConcatLists(input_a=tensor_list(dtype), input_b=tensor_list(dtype), element_dtype=dtype)
    return [{"fetches": [raw.TensorListStack(input_handle=both, element_shape=tf.constant([2, 3]), element_dtype=dtype)]}]


@recipe("TensorListResize", FLOATS + ["int32"])
def list_resize(dtype):
    size = tf.placeholder(tf.int32, [])
    made = raw.TensorListResize(input_handle=tensor_list(dtype), size=size)
    return [{"feeds": {size: 4}, "fetches": [raw.TensorListLength(input_handle=made)]}]


@recipe("TensorListScatter", FLOATS + ["int32"])
def list_scatter(dtype):
    feeds = Feeds()
    made = raw.TensorListScatter(tensor=feeds.add(values((3, 2), dtype)), indices=tf.constant([2, 0, 1]), element_shape=tf.constant([2]))
    return [{"feeds": feeds, "fetches": [raw.TensorListStack(input_handle=made, element_shape=tf.constant([2]), element_dtype=dtype)]}]


@recipe("TensorListScatterV2", FLOATS + ["int32"])
def list_scatter2(dtype):
    feeds = Feeds()
    made = raw.TensorListScatterV2(tensor=feeds.add(values((3, 2), dtype)), indices=tf.constant([4, 0, 1]), element_shape=tf.constant([2]),
                                   num_elements=tf.constant(5))
    return [{"feeds": feeds, "fetches": [raw.TensorListStack(input_handle=made, element_shape=tf.constant([2]), element_dtype=dtype)]}]
