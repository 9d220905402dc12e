"""Forward graphs for test/tools/gradients.py: for each op, functions of TensorFlow tensors with their arguments as arrays."""
import numpy as np
import tensorflow as tf

R = tf.raw_ops
rng = np.random.RandomState(7)


def u(*shape, lo=-1.0, hi=1.0, dtype=np.float64):
    return rng.uniform(lo, hi, shape).astype(dtype)


def f(*shape, lo=-1.0, hi=1.0):
    return u(*shape, lo=lo, hi=hi, dtype=np.float32)


def c(*shape):
    return u(*shape) + 1j * u(*shape)


def i(*values):
    return np.array(values, np.int32)


def spd(n, batch=2):
    a = u(batch, n, n)
    return a @ a.transpose(0, 2, 1) + n * np.eye(n)


CASES = []


def case(op, fn, *args, **options):
    """One case: `fn` of tensors for `args`; options: second=False leaves out second derivatives, constant=[...] makes those positions
    constants, tol, v1=True has TensorFlow's control flow of the first kind, numeric=True compares with differences instead of
    TensorFlow's gradient, where TensorFlow has none or a wrong one, handles=True: fn returns results and handles of variables,
    lathe=False where TensorFlow's formula depends on what kernels may choose (the phase of a vector)."""
    CASES.append((op, fn, args, options))


def unary():
    everywhere = "Abs Cos Cosh Erf Erfc Exp Expm1 Neg Sigmoid Sign Sin Sinh Square Tan Tanh Asinh Atan Dawsn BesselI0e BesselI1e Softplus".split()
    positive = "Log Log1p Lgamma Digamma Rsqrt Sqrt Inv Reciprocal Expint FresnelCos FresnelSin Spence BesselI0 BesselI1 BesselJ0 BesselJ1 BesselK0 BesselK0e BesselK1 BesselK1e BesselY0 BesselY1".split()
    inside = "Acos Asin Atanh Erfinv".split()
    for op in everywhere:
        fn = getattr(R, op)
        case(op, lambda x, fn=fn, op=op: fn(**{"features" if op == "Softplus" else "x": x}), u(3, 4, lo=-2, hi=2))
    for op in positive:
        case(op, lambda x, fn=getattr(R, op): fn(x=x), u(3, 4, lo=0.3, hi=2))
    for op in inside:
        case(op, lambda x, fn=getattr(R, op): fn(x=x), u(3, 4, lo=-0.9, hi=0.9))
    case("Ndtri", lambda x: R.Ndtri(x=x), u(3, 4, lo=0.1, hi=0.9))
    case("Acosh", lambda x: R.Acosh(x=x), u(3, 4, lo=1.2, hi=3))
    for op in "Floor Ceil Round Rint".split():
        case(op, lambda x, fn=getattr(R, op): fn(x=x) * 1.0 + x, u(5, lo=-3, hi=3))
    for op in "Sin Cos Exp Expm1 Log Log1p Sqrt Rsqrt Tanh Sigmoid Square Neg Inv Reciprocal Sinh Cosh Tan Asin Acos Atan Asinh Atanh Acosh".split():
        case(op, lambda x, fn=getattr(R, op): fn(x=x), c(3, 2) * 0.4 + 0.5, second=False)
    for op in "BesselI0 BesselI1 BesselI0e BesselI1e BesselJ0 BesselJ1 Abs Sign".split():
        case(op, lambda x, fn=getattr(R, op): fn(x=x), np.array([0.0, 1.0]), second=False)
    case("ComplexAbs", lambda x: R.ComplexAbs(x=x, Tout=tf.float64), c(4), second=False)
    case("Angle", lambda x: R.Angle(input=x, Tout=tf.float64), c(4), second=False)
    case("Conj", lambda x: R.Conj(input=x), c(4))
    case("Real", lambda x: R.Real(input=x, Tout=tf.float64), c(4))
    case("Imag", lambda x: R.Imag(input=x, Tout=tf.float64), c(4))
    case("Complex", lambda x, y: R.Complex(real=x, imag=y, Tout=tf.complex128), u(3, 4), u(4))
    case("Cast", lambda x: R.Cast(x=x, DstT=tf.float32), u(4))
    case("Cast", lambda x: R.Cast(x=x, DstT=tf.complex128), u(4))
    for op in "SqrtGrad RsqrtGrad SigmoidGrad TanhGrad InvGrad ReciprocalGrad".split():
        case(op, lambda y, dy, fn=getattr(R, op): fn(y=y, dy=dy), u(3, lo=0.2), u(3))
        case(op, lambda y, dy, fn=getattr(R, op): fn(y=y, dy=dy), c(3) + 1, c(3), second=False)


def binary():
    shapes = [((3, 4), (3, 4)), ((2, 3, 4), (4,)), ((3, 1), (1, 4)), ((), (2, 2))]
    for op in "Add AddV2 Sub Mul MulNoNan SquaredDifference Maximum Minimum Div RealDiv DivNoNan Pow Atan2 Xlogy Xlog1py Xdivy FloorMod NextAfter".split():
        fn = getattr(R, op)
        for a, b in shapes:
            call = (lambda x, y: R.Atan2(y=x, x=y)) if op == "Atan2" else \
                (lambda x, y: R.NextAfter(x1=x, x2=y)) if op == "NextAfter" else (lambda x, y, fn=fn: fn(x=x, y=y))
            case(op, call, u(*a, lo=0.3, hi=2), u(*b, lo=0.3, hi=2))
    for op in "Add Sub Mul MulNoNan Div RealDiv DivNoNan Pow SquaredDifference Xdivy Xlogy Xlog1py".split():
        case(op, lambda x, y, fn=getattr(R, op): fn(x=x, y=y), c(3, 2) + 2, c(2) + 2, second=False)
    case("Pow", lambda x, y: R.Pow(x=x, y=y), np.array([0.0, -2.0, 3.0]), np.array([2.0, 3.0, 2.0]), second=False)
    case("DivNoNan", lambda x, y: R.DivNoNan(x=x, y=y), u(3), np.array([0.0, 1.0, 2.0]), second=False)
    case("Maximum", lambda x, y: R.Maximum(x=x, y=y), np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0]))
    case("Xlogy", lambda x, y: R.Xlogy(x=x, y=y), np.array([0.0, 2.0]), np.array([0.5, 3.0]), second=False)
    for op in "Igamma Igammac".split():
        case(op, lambda a, x, fn=getattr(R, op): fn(a=a, x=x), u(3, 2, lo=0.5, hi=3), u(2, lo=0.5, hi=3), second=False)
    case("Betainc", lambda a, b, x: R.Betainc(a=a, b=b, x=x), u(4, lo=1, hi=3), u(4, lo=1, hi=3), u(4, lo=0.1, hi=0.9), second=False)
    case("Zeta", lambda x, q: R.Zeta(x=x, q=q), u(4, lo=2, hi=4), u(4, lo=1, hi=3))
    case("Polygamma", lambda a, x: R.Polygamma(a=a, x=x), np.array([1.0, 2.0, 3.0]), u(3, lo=1, hi=3))
    case("Cross", lambda a, b: R.Cross(a=a, b=b), u(4, 3), u(4, 3))
    case("L2Loss", lambda x: R.L2Loss(t=x), u(3, 2))
    case("AddN", lambda *x: R.AddN(inputs=list(x)), u(3), u(3), u(3))
    case("AccumulateNV2", lambda *x: R.AccumulateNV2(inputs=list(x), shape=[3]), u(3), u(3))
    case("Select", lambda m, x, y: R.Select(condition=m, x=x, y=y), np.array([True, False]), u(2), u(2))
    case("SelectV2", lambda m, x, y: R.SelectV2(condition=m, t=x, e=y), np.array([[True], [False]]), u(3), u(2, 1))
    case("ClipByValue", lambda x, a, b: R.ClipByValue(t=x, clip_value_min=a, clip_value_max=b), u(3, 4, lo=-2, hi=2), np.float64(-0.5), np.float64(0.7))


def products():
    for ta in (False, True):
        for tb in (False, True):
            a, b = (u(4, 3) if ta else u(3, 4)), (u(5, 4) if tb else u(4, 5))
            case("MatMul", lambda x, y, ta=ta, tb=tb: R.MatMul(a=x, b=y, transpose_a=ta, transpose_b=tb), a, b)
            case("SparseMatMul", lambda x, y, ta=ta, tb=tb: R.SparseMatMul(a=x, b=y, transpose_a=ta, transpose_b=tb), a.astype(np.float32), b.astype(np.float32))
            ca, cb = (c(2, 4, 3) if ta else c(2, 3, 4)), (c(5, 4) if tb else c(4, 5))
            case("BatchMatMulV2", lambda x, y, ta=ta, tb=tb: R.BatchMatMulV2(x=x, y=y, adj_x=ta, adj_y=tb), ca, cb, second=False)
            case("BatchMatMulV2", lambda x, y, ta=ta, tb=tb: R.BatchMatMulV2(x=x, y=y, adj_x=ta, adj_y=tb), ca.real, np.stack([cb.real]))
            case("BatchMatMul", lambda x, y, ta=ta, tb=tb: R.BatchMatMul(x=x, y=y, adj_x=ta, adj_y=tb), ca.real, np.stack([cb.real] * 2))
            case("BatchMatMulV3", lambda x, y, ta=ta, tb=tb: R.BatchMatMulV3(x=x, y=y, Tout=tf.float64, adj_x=ta, adj_y=tb), ca.real, np.stack([cb.real] * 2))
    for eq, sa, sb in [("ij,jk->ik", (2, 3), (3, 4)), ("bij,bjk->bik", (2, 2, 3), (2, 3, 4)), ("...ij,...jk->...ik", (2, 2, 3), (3, 4)),
                       ("i,j->ij", (3,), (4,)), ("abc,cd->ad", (2, 3, 4), (4, 5)), ("ab...,b->a...", (2, 3, 4), (3,)), ("...a,...a->...", (2, 1, 3), (4, 3)),
                       ("i...,i...->...", (3, 2, 1), (3, 2))]:
        case("Einsum", lambda x, y, eq=eq: R.Einsum(inputs=[x, y], equation=eq), u(*sa), u(*sb))
    case("Einsum", lambda x, y: R.Einsum(inputs=[x, y], equation="ij,jk->ik"), c(2, 3), c(3, 2), second=False)
    for eq, s in [("ij->ji", (2, 3)), ("ii->i", (3, 3)), ("ijk->k", (2, 3, 4)), ("aab->b", (2, 2, 3)), ("...ij->...i", (2, 3, 4)), ("abc->ca", (2, 3, 4)), ("ab->", (2, 3))]:
        case("Einsum", lambda x, eq=eq: R.Einsum(inputs=[x], equation=eq), u(*s))


def reductions():
    for op in "Sum Mean Max Min Prod EuclideanNorm".split():
        fn = getattr(R, op)
        for axes, keep in [(i(0), False), (i(1), True), (i(-1, 0), False), (np.int32(1), False), (i(), False)]:
            case(op, lambda x, fn=fn, axes=axes, keep=keep: fn(input=x, axis=axes, keep_dims=keep), u(3, 4, 2, lo=0.2), second=op != "Prod" or None)
    case("Max", lambda x: R.Max(input=x, axis=[0]), np.array([1.0, 3.0, 3.0]), second=False)
    case("Prod", lambda x: R.Prod(input=x, axis=[0]), np.array([[0.0, 2.0], [3.0, 0.0], [0.0, 5.0]]), second=False)
    for ex in (False, True):
        for rev in (False, True):
            k = dict(exclusive=ex, reverse=rev)
            case("Cumsum", lambda x, k=k: R.Cumsum(x=x, axis=1, **k), u(3, 4))
            case("Cumprod", lambda x, k=k: R.Cumprod(x=x, axis=1, **k), u(3, 4, lo=0.3))
            if not ex:
                case("CumulativeLogsumexp", lambda x, k=k: R.CumulativeLogsumexp(x=x, axis=0, **k), u(4, 3), second=False)
    ids = i(0, 0, 1, 3, 3)
    for op in "SegmentSum SegmentMean SegmentMax SegmentMin SegmentProd".split():
        case(op, lambda x, fn=getattr(R, op): fn(data=x, segment_ids=ids), u(5, 2), second=False)
    for op in "UnsortedSegmentSum UnsortedSegmentMax UnsortedSegmentMin UnsortedSegmentProd".split():
        case(op, lambda x, fn=getattr(R, op): fn(data=x, segment_ids=i(2, -1, 0, 2, 2), num_segments=4), u(5, 2), second=False)
        case(op, lambda x, fn=getattr(R, op): fn(data=x, segment_ids=np.array([[0, 1], [1, 0]], np.int32), num_segments=3), u(2, 2, 3), second=False)
    case("SegmentProd", lambda x: R.SegmentProd(data=x, segment_ids=i(0, 0, 1, 1, 2)), np.array([0.0, 2, 0, 0, 3]), second=False)
    case("UnsortedSegmentProd", lambda x: R.UnsortedSegmentProd(data=x, segment_ids=i(0, 0, 1, 1, 2), num_segments=3), np.array([0.0, 2, 0, 0, 3]), second=False)
    for op in "Sum Mean SqrtN".split():
        case("SparseSegment" + op, lambda x, fn=getattr(R, "SparseSegment" + op): fn(data=x, indices=i(0, 2, 4, 2), segment_ids=i(0, 0, 1, 2)), u(5, 2), second=False)
        case("SparseSegment%sWithNumSegments" % op, lambda x, fn=getattr(R, "SparseSegment%sWithNumSegments" % op):
             fn(data=x, indices=i(0, 2, 4, 2), segment_ids=i(0, 0, 1, 3), num_segments=5), u(5, 2), second=False)


def arrays():
    case("Identity", lambda x: R.Identity(input=x), u(3))
    case("IdentityN", lambda x, y: R.IdentityN(input=[x, y]), u(3), u(2))
    case("EnsureShape", lambda x: R.EnsureShape(input=x, shape=[None, 2]), u(3, 2))
    case("CheckNumerics", lambda x: R.CheckNumerics(tensor=x, message="m"), u(3))
    case("CheckNumericsV2", lambda x: R.CheckNumericsV2(tensor=x, message="m"), u(3))
    case("PlaceholderWithDefault", lambda x: R.PlaceholderWithDefault(input=x, shape=[3]), u(3))
    case("Reshape", lambda x: R.Reshape(tensor=x, shape=[2, 6]), u(3, 4))
    case("ExpandDims", lambda x: R.ExpandDims(input=x, axis=1), u(3, 4))
    case("Squeeze", lambda x: R.Squeeze(input=x, axis=[1]), u(3, 1, 4))
    case("Fill", lambda x: R.Fill(dims=[2, 3], value=x), np.float64(2))
    case("Concat", lambda x, y: R.Concat(concat_dim=1, values=[x, y]), u(2, 3), u(2, 1))
    case("ConcatV2", lambda x, y, z: R.ConcatV2(values=[x, y, z], axis=-1), u(2, 3), u(2, 1), u(2, 2))
    case("Split", lambda x: R.Split(axis=1, value=x, num_split=3)[:2], u(2, 6))
    case("SplitV", lambda x: R.SplitV(value=x, size_splits=[1, 3, 2], axis=1, num_split=3), u(2, 6))
    case("Pack", lambda x, y: R.Pack(values=[x, y], axis=1), u(2, 3), u(2, 3))
    case("Unpack", lambda x: R.Unpack(value=x, num=3, axis=1)[1:], u(2, 3))
    case("Transpose", lambda x: R.Transpose(x=x, perm=[2, 0, 1]), u(2, 3, 4))
    case("ConjugateTranspose", lambda x: R.ConjugateTranspose(x=x, perm=[2, 0, 1]), c(2, 3, 4))
    case("Reverse", lambda x: R.Reverse(tensor=x, dims=[True, False]), u(2, 3))
    case("ReverseV2", lambda x: R.ReverseV2(tensor=x, axis=[0, -1]), u(2, 3))
    case("ReverseSequence", lambda x: R.ReverseSequence(input=x, seq_lengths=[1, 3], seq_dim=1, batch_dim=0), u(2, 3))
    case("Roll", lambda x: R.Roll(input=x, shift=[1, -2], axis=[0, 1]), u(3, 4))
    case("SpaceToDepth", lambda x: R.SpaceToDepth(input=x, block_size=2), u(1, 4, 4, 2))
    case("DepthToSpace", lambda x: R.DepthToSpace(input=x, block_size=2), u(1, 2, 2, 8))
    case("SpaceToBatch", lambda x: R.SpaceToBatch(input=x, paddings=[[1, 1], [0, 0]], block_size=2), u(1, 4, 4, 2))
    case("BatchToSpace", lambda x: R.BatchToSpace(input=x, crops=[[0, 1], [0, 0]], block_size=2), u(4, 2, 2, 2))
    case("SpaceToBatchND", lambda x: R.SpaceToBatchND(input=x, block_shape=[2, 1], paddings=[[1, 1], [0, 0]]), u(1, 4, 4, 2))
    case("BatchToSpaceND", lambda x: R.BatchToSpaceND(input=x, block_shape=[2, 2], crops=[[0, 1], [0, 0]]), u(4, 2, 2, 2))
    case("BroadcastTo", lambda x: R.BroadcastTo(input=x, shape=[2, 3, 4]), u(3, 1))
    case("BroadcastTo", lambda x: R.BroadcastTo(input=x, shape=tf.constant([2, 3], tf.int64)), u(1))
    case("Tile", lambda x: R.Tile(input=x, multiples=[2, 3]), u(3, 2))
    case("Pad", lambda x: R.Pad(input=x, paddings=[[1, 0], [2, 1]]), u(2, 3))
    case("PadV2", lambda x, v: R.PadV2(input=x, paddings=tf.constant([[1, 0], [2, 1]], tf.int64), constant_values=v), u(2, 3), np.float64(1))
    for mode in ("REFLECT", "SYMMETRIC"):
        case("MirrorPad", lambda x, m=mode: R.MirrorPad(input=x, paddings=[[1, 1], [2, 1]], mode=m), u(3, 4))
        case("MirrorPadGrad", lambda x, m=mode: R.MirrorPadGrad(input=x, paddings=[[1, 1], [1, 1]], mode=m), u(6, 7))
    for pad in ("SAME", "VALID"):
        case("ExtractImagePatches", lambda x, p=pad: R.ExtractImagePatches(images=x, ksizes=[1, 2, 3, 1], strides=[1, 2, 1, 1], rates=[1, 1, 2, 1], padding=p), u(2, 5, 6, 2))
        case("ExtractVolumePatches", lambda x, p=pad: R.ExtractVolumePatches(input=x, ksizes=[1, 2, 2, 1, 1], strides=[1, 1, 2, 1, 1], padding=p), u(2, 3, 4, 2, 2))
    case("Slice", lambda x: R.Slice(input=x, begin=[1, 0], size=[2, -1]), u(4, 3))
    case("StridedSlice", lambda x: x[1:, ::-2, tf.newaxis, ..., 0], u(3, 4, 2, 2))
    case("StridedSlice", lambda x: R.StridedSlice(input=x, begin=tf.constant([0], tf.int64), end=tf.constant([3], tf.int64), strides=tf.constant([2], tf.int64)), u(4, 2))
    case("StridedSliceGrad", lambda d: R.StridedSliceGrad(shape=[4, 3], begin=[1, 0], end=[4, 3], strides=[2, 1], dy=d), u(2, 3))
    case("TensorStridedSliceUpdate", lambda x, v: R.TensorStridedSliceUpdate(input=x, begin=[1, 0], end=[3, 2], strides=[1, 1], value=v), u(4, 3), u(2, 2))
    case("DynamicPartition", lambda x: R.DynamicPartition(data=x, partitions=i(1, 0, 1, 2), num_partitions=3), u(4, 2))
    for op in ("DynamicStitch", "ParallelDynamicStitch"):
        case(op, lambda x, y, fn=getattr(R, op): fn(indices=[i(0, 2), i(1, 3)], data=[x, y]), u(2, 3), u(2, 3))
    case("StopGradient", lambda x: R.StopGradient(input=x) * x, u(3))


def gathers():
    case("Gather", lambda x: R.Gather(params=x, indices=np.array([[0, 2], [2, 1]], np.int32)), u(3, 2, 2), second=False)
    for axis, batch, idx in [(0, 0, [1, 1, 0]), (1, 0, [[0, 2], [2, 2]]), (-1, 0, [1, 0]), (1, 1, [[0, 2], [1, 1], [2, 0]]), (2, 1, [[0, 1], [1, 1], [1, 0]])]:
        case("GatherV2", lambda x, a=axis, b=batch, idx=idx: R.GatherV2(params=x, indices=tf.constant(idx, tf.int32), axis=a, batch_dims=b), u(3, 3, 2), second=False)
    case("GatherV2", lambda x: R.GatherV2(params=x, indices=tf.constant(1, tf.int64), axis=0), u(3, 2), second=False)
    case("GatherNd", lambda x: R.GatherNd(params=x, indices=[[0, 1], [2, 0], [0, 1]]), u(3, 2, 2))
    case("ScatterNd", lambda x: R.ScatterNd(indices=[[0], [2], [0]], updates=x, shape=[4, 2]), u(3, 2))
    case("ScatterNdNonAliasingAdd", lambda x, y: R.ScatterNdNonAliasingAdd(input=x, indices=[[0], [2], [0]], updates=y), u(4, 2), u(3, 2))
    for op in "TensorScatterUpdate TensorScatterAdd TensorScatterSub TensorScatterMax TensorScatterMin".split():
        case(op, lambda x, y, fn=getattr(R, op): fn(tensor=x, indices=[[0], [2]], updates=y), u(4, 2), u(2, 2), second=op[13:] not in ("Max", "Min"))
    case("TopKV2", lambda x: R.TopKV2(input=x, k=2)[0], u(2, 3, 5))
    case("NthElement", lambda x: R.NthElement(input=x, n=1), u(3, 5), second=False)


def diagonals():
    case("Diag", lambda x: R.Diag(diagonal=x), u(3))
    case("DiagPart", lambda x: R.DiagPart(input=x), u(3, 3))
    case("MatrixDiag", lambda x: R.MatrixDiag(diagonal=x), u(2, 3))
    case("MatrixDiagPart", lambda x: R.MatrixDiagPart(input=x), u(2, 3, 4))
    case("MatrixSetDiag", lambda x, d: R.MatrixSetDiag(input=x, diagonal=d), u(2, 3, 4), u(2, 3))
    case("MatrixDiagV2", lambda x: R.MatrixDiagV2(diagonal=x, k=1, num_rows=-1, num_cols=-1, padding_value=np.float64(0)), u(2, 3))
    case("MatrixDiagPartV2", lambda x: R.MatrixDiagPartV2(input=x, k=[-1, 1], padding_value=np.float64(0)), u(2, 3, 4))
    case("MatrixSetDiagV2", lambda x, d: R.MatrixSetDiagV2(input=x, diagonal=d, k=[-1, 0]), u(2, 3, 4), u(2, 2, 3))
    for align in ("LEFT_RIGHT", "RIGHT_LEFT"):
        case("MatrixDiagV3", lambda x, a=align: R.MatrixDiagV3(diagonal=x, k=[-1, 1], num_rows=3, num_cols=4, padding_value=np.float64(0), align=a), u(2, 3, 3))
        case("MatrixDiagPartV3", lambda x, a=align: R.MatrixDiagPartV3(input=x, k=[-1, 1], padding_value=np.float64(0), align=a), u(2, 3, 4))
        case("MatrixSetDiagV3", lambda x, d, a=align: R.MatrixSetDiagV3(input=x, diagonal=d, k=[-1, 0], align=a), u(2, 3, 4), u(2, 2, 3))
    case("MatrixBandPart", lambda x: R.MatrixBandPart(input=x, num_lower=1, num_upper=0), u(2, 3, 4))


def nn():
    for op in "Relu Relu6 Elu Selu Softsign".split():
        case(op, lambda x, fn=getattr(R, op): fn(features=x), u(3, 4, lo=-8, hi=8), second=op != "Softsign")
    case("LeakyRelu", lambda x: R.LeakyRelu(features=x, alpha=0.3), u(3, 4))
    for op in "ReluGrad Relu6Grad SoftplusGrad".split():
        case(op, lambda d, x, fn=getattr(R, op): fn(gradients=d, features=x), u(3, 4), u(3, 4))
    case("LeakyReluGrad", lambda d, x: R.LeakyReluGrad(gradients=d, features=x, alpha=0.3), u(3, 4), u(3, 4))
    for op in "EluGrad SeluGrad".split():
        case(op, lambda d, x, fn=getattr(R, op): fn(gradients=d, outputs=x), u(3, 4), u(3, 4, lo=-0.9))
    case("Softmax", lambda x: R.Softmax(logits=x), u(2, 3, 4))
    case("LogSoftmax", lambda x: R.LogSoftmax(logits=x), u(3, 4))
    case("BiasAdd", lambda x, b: R.BiasAdd(value=x, bias=b), u(2, 3, 4), u(4))
    case("BiasAdd", lambda x, b: R.BiasAdd(value=x, bias=b, data_format="NCHW"), f(2, 3, 4, 2), f(3))
    case("BiasAddV1", lambda x, b: R.BiasAddV1(value=x, bias=b), u(2, 3, 4), u(4))
    case("BiasAddGrad", lambda x: R.BiasAddGrad(out_backprop=x), u(2, 3, 4))
    case("BiasAddGrad", lambda x: R.BiasAddGrad(out_backprop=x, data_format="NCHW"), u(2, 3, 4, 2))
    conv = dict(strides=[1, 2, 1, 1], padding="SAME")
    case("Conv2D", lambda x, w: R.Conv2D(input=x, filter=w, **conv), u(2, 5, 6, 3), u(3, 2, 3, 4))
    case("Conv2D", lambda x, w: R.Conv2D(input=x, filter=w, strides=[1, 1, 1, 1], padding="EXPLICIT", explicit_paddings=[0, 0, 1, 2, 0, 1, 0, 0]), u(2, 5, 6, 3), u(3, 2, 3, 4))
    case("Conv2DBackpropInput", lambda w, d: R.Conv2DBackpropInput(input_sizes=[2, 5, 6, 3], filter=w, out_backprop=d, **conv), u(3, 2, 3, 4), u(2, 3, 6, 4))
    case("Conv2DBackpropFilter", lambda x, d: R.Conv2DBackpropFilter(input=x, filter_sizes=[3, 2, 3, 4], out_backprop=d, **conv), u(2, 5, 6, 3), u(2, 3, 6, 4))
    conv3 = dict(strides=[1, 1, 2, 1, 1], padding="SAME")
    case("Conv3D", lambda x, w: R.Conv3D(input=x, filter=w, **conv3), u(1, 3, 4, 5, 2), u(2, 2, 3, 2, 3))
    case("Conv3DBackpropInputV2", lambda w, d: R.Conv3DBackpropInputV2(input_sizes=[1, 3, 4, 5, 2], filter=w, out_backprop=d, **conv3), u(2, 2, 3, 2, 3), u(1, 3, 2, 5, 3))
    case("Conv3DBackpropFilterV2", lambda x, d: R.Conv3DBackpropFilterV2(input=x, filter_sizes=[2, 2, 3, 2, 3], out_backprop=d, **conv3), u(1, 3, 4, 5, 2), u(1, 3, 2, 5, 3))
    dw = dict(strides=[1, 2, 2, 1], padding="SAME")
    case("DepthwiseConv2dNative", lambda x, w: R.DepthwiseConv2dNative(input=x, filter=w, **dw), u(2, 5, 6, 3), u(3, 2, 3, 2))
    case("DepthwiseConv2dNativeBackpropInput", lambda w, d: R.DepthwiseConv2dNativeBackpropInput(input_sizes=[2, 5, 6, 3], filter=w, out_backprop=d, **dw), u(3, 2, 3, 2), u(2, 3, 3, 6))
    case("DepthwiseConv2dNativeBackpropFilter", lambda x, d: R.DepthwiseConv2dNativeBackpropFilter(input=x, filter_sizes=[3, 2, 3, 2], out_backprop=d, **dw), u(2, 5, 6, 3), u(2, 3, 3, 6))
    case("Dilation2D", lambda x, w: R.Dilation2D(input=x, filter=w, strides=[1, 1, 1, 1], rates=[1, 2, 1, 1], padding="SAME"), u(2, 5, 6, 3), u(2, 2, 3), second=False)
    pool = dict(ksize=[1, 2, 3, 1], strides=[1, 2, 1, 1], padding="SAME")
    case("AvgPool", lambda x: R.AvgPool(value=x, **pool), u(2, 5, 6, 3))
    case("AvgPoolGrad", lambda d: R.AvgPoolGrad(orig_input_shape=[2, 5, 6, 3], grad=d, **pool), u(2, 3, 6, 3))
    case("MaxPool", lambda x: R.MaxPool(input=x, **pool), u(2, 5, 6, 3))
    case("MaxPoolV2", lambda x: R.MaxPoolV2(input=x, **pool), u(2, 5, 6, 3))
    case("MaxPoolGrad", lambda x, d: R.MaxPoolGrad(orig_input=x, orig_output=R.MaxPool(input=x, **pool), grad=d, **pool), u(2, 5, 6, 3), u(2, 3, 6, 3))
    case("MaxPoolGradV2", lambda x, d: R.MaxPoolGradV2(orig_input=x, orig_output=R.MaxPool(input=x, **pool), grad=d, **pool), u(2, 5, 6, 3), u(2, 3, 6, 3))
    case("MaxPoolGradGrad", lambda x, d: R.MaxPoolGradGrad(orig_input=x, orig_output=R.MaxPool(input=x, **pool), grad=d, **pool), u(2, 5, 6, 3), u(2, 5, 6, 3), second=False)
    case("MaxPoolWithArgmax", lambda x: R.MaxPoolWithArgmax(input=x, **pool)[0], f(2, 5, 6, 3), second=False)
    pool3 = dict(ksize=[1, 2, 2, 2, 1], strides=[1, 1, 2, 1, 1], padding="VALID")
    case("AvgPool3D", lambda x: R.AvgPool3D(input=x, **pool3), f(1, 3, 4, 4, 2))
    case("AvgPool3DGrad", lambda d: R.AvgPool3DGrad(orig_input_shape=[1, 3, 4, 4, 2], grad=d, **pool3), f(1, 2, 2, 3, 2))
    case("MaxPool3D", lambda x: R.MaxPool3D(input=x, **pool3), f(1, 3, 4, 4, 2))
    case("MaxPool3DGrad", lambda x, d: R.MaxPool3DGrad(orig_input=x, orig_output=R.MaxPool3D(input=x, **pool3), grad=d, **pool3), f(1, 3, 4, 4, 2), f(1, 2, 2, 3, 2))
    case("MaxPool3DGradGrad", lambda x, d: R.MaxPool3DGradGrad(orig_input=x, orig_output=R.MaxPool3D(input=x, **pool3), grad=d, **pool3), f(1, 3, 4, 4, 2), f(1, 3, 4, 4, 2), second=False)
    for op in "FractionalAvgPool FractionalMaxPool".split():
        case(op, lambda x, fn=getattr(R, op): fn(value=x, pooling_ratio=[1.0, 1.44, 1.73, 1.0], deterministic=True, seed=5, seed2=3)[0], u(1, 7, 8, 2), second=False)
    case("LRN", lambda x: R.LRN(input=x, depth_radius=2, bias=1.0, alpha=0.5, beta=0.75), f(2, 3, 3, 6), second=False, tol=1e-4)
    for op in "FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3".split():
        case(op, lambda x, s, o, fn=getattr(R, op): fn(x=x, scale=s, offset=o, mean=[], variance=[], epsilon=0.1, is_training=True)[0], f(2, 3, 4, 2), f(2), f(2), tol=2e-4)
        case(op, lambda x, s, o, m, v, fn=getattr(R, op): fn(x=x, scale=s, offset=o, mean=m, variance=v, epsilon=0.1, is_training=False)[0],
             f(2, 3, 4, 2), f(2), f(2), f(2), f(2, lo=0.5, hi=1), constant=[3, 4], tol=2e-4)
    case("SoftmaxCrossEntropyWithLogits", lambda x, l: R.SoftmaxCrossEntropyWithLogits(features=x, labels=l)[0], u(3, 4), u(3, 4, lo=0.1), second=False)
    case("SoftmaxCrossEntropyWithLogits", lambda x: R.SoftmaxCrossEntropyWithLogits(features=x, labels=tf.constant(LABELS))[0], u(3, 4))
    case("SparseSoftmaxCrossEntropyWithLogits", lambda x: R.SparseSoftmaxCrossEntropyWithLogits(features=x, labels=i(1, 3, 0))[0], u(3, 4))
    for op in ("CTCLoss",):
        case(op, lambda x, fn=getattr(R, op): fn(inputs=x, labels_indices=tf.constant([[0, 0], [0, 1], [1, 0]], tf.int64), labels_values=i(0, 1, 2), sequence_length=i(5, 4))[0], f(5, 2, 4), second=False, tol=1e-4)
    def lstm(fn, forget, x, cs, h, w, wci, wcf, wco, b):
        extra = dict(forget_bias=1.0, cell_clip=3.0) if forget else dict(cell_clip=0.0)
        return fn(seq_len_max=tf.constant(3, tf.int64), x=x, cs_prev=cs, h_prev=h, w=w, wci=wci, wcf=wcf, wco=wco, b=b, use_peephole=True, **extra)[6]
    for op, forget in (("BlockLSTM", True), ("BlockLSTMV2", False)):
        case(op, lambda *a, fn=getattr(R, op), forget=forget: lstm(fn, forget, *a), f(3, 2, 4), f(2, 3), f(2, 3), f(7, 12), f(3), f(3), f(3), f(12), second=False, tol=1e-4 if forget else 2e-2, numeric=not forget)


LABELS = np.array([[0.2, 0.3, 0.1, 0.4], [0.7, 0.1, 0.1, 0.1], [0.25] * 4])


def images():
    case("ResizeBilinear", lambda x: R.ResizeBilinear(images=x, size=[5, 7], half_pixel_centers=True), f(1, 3, 4, 2), second=False)
    case("ResizeBicubic", lambda x: R.ResizeBicubic(images=x, size=[5, 7], half_pixel_centers=True), f(1, 3, 4, 2), second=False, tol=1e-4)
    case("ResizeNearestNeighbor", lambda x: R.ResizeNearestNeighbor(images=x, size=[5, 7]), f(1, 3, 4, 2), second=False)
    case("ScaleAndTranslate", lambda x: R.ScaleAndTranslate(images=x, size=[5, 6], scale=[1.5, 1.2], translation=[0.5, 0.1], kernel_type="triangle", antialias=True), f(1, 3, 4, 2), second=False, tol=1e-4)
    for method in ("bilinear", "nearest"):
        case("CropAndResize", lambda x, b, m=method: R.CropAndResize(image=x, boxes=b, box_ind=i(0, 1, 0), crop_size=i(3, 2), method=m),
             f(2, 4, 5, 2), np.array([[0.1, 0.2, 0.7, 0.8], [0.0, 0.1, 0.9, 0.6], [0.3, 0.3, 0.5, 0.9]], np.float32), second=False, tol=1e-4)
    case("ImageProjectiveTransformV2", lambda x: R.ImageProjectiveTransformV2(images=x, transforms=[[1.0, 0.1, 0.2, 0.0, 0.9, 0.5, 0.01, 0.0]], output_shape=[5, 6], interpolation="BILINEAR"), f(1, 5, 6, 2), second=False, tol=1e-4)
    case("ImageProjectiveTransformV3", lambda x: R.ImageProjectiveTransformV3(images=x, transforms=[[1.0, 0.1, 0.2, 0.0, 0.9, 0.5, 0.0, 0.0]], output_shape=[5, 6], fill_value=0.0, interpolation="NEAREST"), f(1, 5, 6, 2), second=False, tol=1e-4)
    case("RGBToHSV", lambda x: R.RGBToHSV(images=x), f(4, 5, 3, lo=0.05, hi=1), second=False, tol=1e-4)
    case("RGBToHSV", lambda x: R.RGBToHSV(images=x), np.array([[0.5, 0.5, 0.5], [0.7, 0.7, 0.2], [0.0, 0.0, 0.0], [0.1, 0.9, 0.1]], np.float32), second=False, tol=1e-4)


def linalg():
    case("Cholesky", lambda x: R.Cholesky(input=(x + tf.linalg.adjoint(x)) * 0.5), spd(3))
    case("MatrixInverse", lambda x: R.MatrixInverse(input=x), spd(3))
    case("MatrixInverse", lambda x: R.MatrixInverse(input=x, adjoint=True), c(2, 3, 3) + 3 * np.eye(3), second=False)
    case("MatrixDeterminant", lambda x: R.MatrixDeterminant(input=x), spd(3))
    case("LogMatrixDeterminant", lambda x: R.LogMatrixDeterminant(input=x)[1], spd(3))
    for adj in (False, True):
        case("MatrixSolve", lambda a, b, adj=adj: R.MatrixSolve(matrix=a, rhs=b, adjoint=adj), spd(3), u(2, 3, 2))
        for low in (False, True):
            case("MatrixTriangularSolve", lambda a, b, adj=adj, low=low: R.MatrixTriangularSolve(matrix=a, rhs=b, adjoint=adj, lower=low), spd(3), u(2, 3, 2))
            case("BandedTriangularSolve", lambda a, b, adj=adj, low=low: R.BandedTriangularSolve(matrix=a, rhs=b, adjoint=adj, lower=low), u(2, 2, 4, lo=1, hi=2), u(2, 4, 3), second=False)
    case("MatrixTriangularSolve", lambda a, b: R.MatrixTriangularSolve(matrix=a, rhs=b), spd(3), u(3, 2))
    case("MatrixSquareRoot", lambda x: R.MatrixSquareRoot(input=x), spd(3), second=False)
    case("MatrixSquareRoot", lambda x: R.MatrixSquareRoot(input=x), u(2, 3, 3) * 0.2 + 2 * np.eye(3), second=False)
    case("TridiagonalMatMul", lambda a, b, d, x: R.TridiagonalMatMul(superdiag=a, maindiag=b, subdiag=d, rhs=x), u(2, 1, 4), u(2, 1, 4), u(2, 1, 4), u(2, 4, 3))
    case("TridiagonalSolve", lambda a, b: R.TridiagonalSolve(diagonals=a, rhs=b), u(2, 3, 4) + np.array([[0], [3], [0]]), u(2, 4, 2), second=False)
    case("SelfAdjointEigV2", lambda x: R.SelfAdjointEigV2(input=(x + tf.linalg.adjoint(x)) * 0.5, compute_v=False)[0], spd(3))
    case("SelfAdjointEigV2", lambda x: tf.square(R.SelfAdjointEigV2(input=x)[1]), spd(3), second=False)
    case("SelfAdjointEigV2", lambda x: R.SelfAdjointEigV2(input=x)[0], spd(3) + 0j, second=False)
    case("Eig", lambda x: R.Eig(input=x, compute_v=False, Tout=tf.complex128)[0], u(2, 3, 3) + np.diag([1.0, 3, 6]), second=False)
    case("Eig", lambda x: [o if k == 0 else tf.square(tf.abs(o)) for k, o in enumerate(R.Eig(input=x, compute_v=True, Tout=tf.complex128))], u(2, 3, 3) + np.diag([1.0, 3, 6]), second=False, lathe=False)
    for shape in ((2, 3, 3), (2, 4, 3), (2, 3, 5)):
        case("Qr", lambda x: list(R.Qr(input=x, full_matrices=False)), u(*shape) + np.eye(shape[1], shape[2]), second=False)
        case("Svd", lambda x: R.Svd(input=x, compute_uv=False)[0], u(*shape), second=False)
        case("Svd", lambda x: [o if k == 0 else tf.square(o) for k, o in enumerate(R.Svd(input=x, compute_uv=True, full_matrices=False))], u(*shape), second=False)
    case("Qr", lambda x: list(R.Qr(input=x, full_matrices=False)), c(2, 4, 3), second=False)
    case("Svd", lambda x: [o if k == 0 else tf.square(tf.abs(o)) for k, o in enumerate(R.Svd(input=x, compute_uv=True, full_matrices=False))], c(2, 3, 4), second=False)
    for shape in ((2, 4, 3), (2, 3, 4), (2, 3, 3)):
        case("Svd", lambda x: [o if k == 0 else tf.square(o) for k, o in enumerate(R.Svd(input=x, compute_uv=True, full_matrices=True))], u(*shape), second=False)
    case("MatrixSolveLs", lambda a, b: R.MatrixSolveLs(matrix=a, rhs=b, l2_regularizer=tf.constant(0.1, tf.float64)), u(2, 5, 3), u(2, 5, 2), second=False)
    case("MatrixSolveLs", lambda a, b: R.MatrixSolveLs(matrix=a, rhs=b, l2_regularizer=tf.constant(0.1, tf.float64)), u(2, 3, 5), u(2, 3, 2), second=False)
    case("MatrixSolveLs", lambda a, b: R.MatrixSolveLs(matrix=a, rhs=b, l2_regularizer=tf.constant(0.0, tf.float64)), u(2, 3, 5), u(2, 3, 2), second=False)


def ffts():
    for op in "FFT FFT2D FFT3D IFFT IFFT2D IFFT3D".split():
        case(op, lambda x, fn=getattr(R, op): fn(input=x), c(2, 3, 4, 5))
    for n, numeric in (([6], False), ([5], True), ([4], True)):
        case("RFFT", lambda x, n=n: R.RFFT(input=x, fft_length=n, Tcomplex=tf.complex128), u(2, 6), second=False, numeric=numeric, tol=1e-6)
        case("IRFFT", lambda x, n=n: R.IRFFT(input=x, fft_length=n, Treal=tf.float64), c(2, 4), second=False, numeric=numeric, tol=1e-6)
    for n, numeric in (([4, 6], False), ([3, 5], True)):
        case("RFFT2D", lambda x, n=n: R.RFFT2D(input=x, fft_length=n, Tcomplex=tf.complex128), u(2, 4, 6), second=False, numeric=numeric, tol=1e-6)
        case("IRFFT2D", lambda x, n=n: R.IRFFT2D(input=x, fft_length=n, Treal=tf.float64), c(2, 4, 4), second=False, numeric=numeric, tol=1e-6)
    case("RFFT3D", lambda x: R.RFFT3D(input=x, fft_length=[2, 3, 4], Tcomplex=tf.complex128), u(2, 3, 4), second=False, numeric=True, tol=1e-6)
    case("IRFFT3D", lambda x: R.IRFFT3D(input=x, fft_length=[2, 3, 4], Treal=tf.float64), c(2, 3, 3), second=False, numeric=True, tol=1e-6)


def lists():
    def roundtrip(x):
        l = R.TensorListFromTensor(tensor=x, element_shape=[2])
        l = R.TensorListSetItem(input_handle=l, index=1, item=x[0] * x[2])
        l = R.TensorListPushBack(input_handle=l, tensor=x[1] * 3.0)
        l, last = R.TensorListPopBack(input_handle=l, element_shape=[2], element_dtype=tf.float64)
        item = R.TensorListGetItem(input_handle=l, index=0, element_shape=[2], element_dtype=tf.float64)
        return R.TensorListStack(input_handle=l, element_shape=[2], element_dtype=tf.float64) * last, tf.square(item)
    case("TensorListStack", roundtrip, u(3, 2), second=False)
    for op in "TensorListFromTensor TensorListSetItem TensorListPushBack TensorListPopBack TensorListGetItem".split():
        case(op, roundtrip, u(3, 2), second=False)
    case("TensorListGather", lambda x: R.TensorListGather(input_handle=R.TensorListFromTensor(tensor=x, element_shape=[2]), indices=i(2, 0), element_shape=[2], element_dtype=tf.float64), u(3, 2), second=False)
    case("TensorListScatterV2", lambda x: R.TensorListStack(input_handle=R.TensorListScatterV2(tensor=x, indices=i(2, 0), element_shape=[2], num_elements=3), element_shape=[2], element_dtype=tf.float64), u(2, 2), second=False)
    case("TensorListScatter", lambda x: R.TensorListStack(input_handle=R.TensorListScatter(tensor=x, indices=i(1, 0), element_shape=[2]), element_shape=[2], element_dtype=tf.float64), u(2, 2), second=False)
    case("TensorListScatterIntoExistingList", lambda x, y: R.TensorListStack(input_handle=R.TensorListScatterIntoExistingList(
        input_handle=R.TensorListFromTensor(tensor=x, element_shape=[2]), tensor=y, indices=i(2, 0)), element_shape=[2], element_dtype=tf.float64), u(3, 2), u(2, 2), second=False)
    case("TensorListConcatV2", lambda x: R.TensorListConcatV2(input_handle=R.TensorListFromTensor(tensor=x, element_shape=[2, 2]), element_shape=[2, 2], leading_dims=tf.constant([], tf.int64), element_dtype=tf.float64)[0], u(3, 2, 2), second=False)
    case("TensorListSplit", lambda x: R.TensorListGetItem(input_handle=R.TensorListSplit(tensor=x, element_shape=[-1, 2], lengths=tf.constant([1, 2], tf.int64)), index=1, element_shape=[2, 2], element_dtype=tf.float64), u(3, 2), second=False)
    case("TensorListResize", lambda x: R.TensorListStack(input_handle=R.TensorListResize(input_handle=R.TensorListFromTensor(tensor=x, element_shape=[2]), size=2), element_shape=[2], element_dtype=tf.float64), u(3, 2), second=False)

    def array(x):
        h, flow = R.TensorArrayV3(size=3, dtype=tf.float64, clear_after_read=False)
        flow = R.TensorArrayWriteV3(handle=h, index=0, value=x[0] * 2.0, flow_in=flow)
        flow = R.TensorArrayScatterV3(handle=h, indices=i(2, 1), value=x[1:], flow_in=flow)
        read = R.TensorArrayReadV3(handle=h, index=2, flow_in=flow, dtype=tf.float64)
        return R.TensorArrayGatherV3(handle=h, indices=i(0, 1), flow_in=flow, dtype=tf.float64) * read
    for op in "TensorArrayWriteV3 TensorArrayReadV3 TensorArrayScatterV3 TensorArrayGatherV3".split():
        case(op, array, u(3, 2), second=False, v1=True)

    def concats(x):
        h, flow = R.TensorArrayV3(size=2, dtype=tf.float64, clear_after_read=False)
        flow = R.TensorArraySplitV3(handle=h, value=x, lengths=tf.constant([1, 2], tf.int64), flow_in=flow)
        return R.TensorArrayConcatV3(handle=h, flow_in=flow, dtype=tf.float64)[0]
    for op in "TensorArrayConcatV3 TensorArraySplitV3".split():
        case(op, concats, u(3, 2), second=False, v1=True)


def sparse():
    idx = tf.constant
    I = np.array([[0, 0], [0, 2], [1, 1], [2, 0]], np.int64)
    shape = np.array([3, 4], np.int64)
    case("SparseReorder", lambda v: R.SparseReorder(input_indices=I[::-1].copy(), input_values=v, input_shape=shape)[1], u(4), second=False)
    case("SparseAdd", lambda a, b: R.SparseAdd(a_indices=I, a_values=a, a_shape=shape, b_indices=I[1:3], b_values=b, b_shape=shape, thresh=np.float64(0))[1], u(4), u(2), second=False)
    case("SparseTensorDenseAdd", lambda v, d: R.SparseTensorDenseAdd(a_indices=I, a_values=v, a_shape=shape, b=d), u(4), u(3, 4))
    case("SparseReduceSum", lambda v: R.SparseReduceSum(input_indices=I, input_values=v, input_shape=shape, reduction_axes=i(1), keep_dims=False), u(4), second=False)
    case("SparseSlice", lambda v: R.SparseSlice(indices=I, values=v, shape=shape, start=np.array([0, 1]), size=np.array([2, 3]))[1], u(4), second=False)
    for adja in (False, True):
        for adjb in (False, True):
            d = (u(2, 3) if adja else u(2, 4)) if adjb else (u(3, 2) if adja else u(4, 2))
            case("SparseTensorDenseMatMul", lambda v, b, x=adja, y=adjb: R.SparseTensorDenseMatMul(a_indices=I, a_values=v, a_shape=shape, b=b, adjoint_a=x, adjoint_b=y), u(4), d, second=False)
            case("SparseTensorDenseMatMul", lambda v, b, x=adja, y=adjb: R.SparseTensorDenseMatMul(a_indices=I, a_values=v, a_shape=shape, b=b, adjoint_a=x, adjoint_b=y), c(4), d + 1j * d[::-1], second=False)
    case("SparseDenseCwiseMul", lambda v, d: R.SparseDenseCwiseMul(sp_indices=I, sp_values=v, sp_shape=shape, dense=d), u(4), u(3, 1), second=False)
    case("SparseDenseCwiseDiv", lambda v, d: R.SparseDenseCwiseDiv(sp_indices=I, sp_values=v, sp_shape=shape, dense=d), u(4), u(4, lo=1, hi=2), second=False)
    case("SparseSoftmax", lambda v: R.SparseSoftmax(sp_indices=I, sp_values=v, sp_shape=shape), u(4), second=False)
    case("SparseFillEmptyRows", lambda v, d: R.SparseFillEmptyRows(indices=I[:3], values=v, dense_shape=shape, default_value=d)[1], u(3), np.float64(2), second=False)
    case("SparseToDense", lambda v, d: R.SparseToDense(sparse_indices=I, output_shape=shape, sparse_values=v, default_value=d), u(4), np.float64(0.5), second=False)
    case("RaggedTensorToTensor", lambda v, d: R.RaggedTensorToTensor(shape=np.array([3, 3]), values=v, default_value=d, row_partition_tensors=[np.array([0, 2, 2, 5])], row_partition_types=["ROW_SPLITS"]), u(5), np.float64(0.5), second=False)
    case("RaggedTensorToTensor", lambda v, d: R.RaggedTensorToTensor(shape=np.array([3, 2, 2]), values=v, default_value=d, row_partition_tensors=[np.array([0, 2, 2, 5])], row_partition_types=["ROW_SPLITS"]), u(5, 2), np.float64(0.5), second=False)
    case("RaggedGather", lambda v: R.RaggedGather(params_nested_splits=[np.array([0, 2, 2, 5])], params_dense_values=v, indices=i(2, 0, 2), OUTPUT_RAGGED_RANK=1)[1], u(5, 2), second=False)
    case("RaggedTensorToSparse", lambda v: R.RaggedTensorToSparse(rt_nested_splits=[np.array([0, 2, 2, 5])], rt_dense_values=v)[1], u(5), second=False)


def variants():
    I = np.array([[0, 0], [0, 2], [1, 1], [2, 0]], np.int64)
    shape = np.array([3, 4], np.int64)
    csr = lambda v: R.SparseTensorToCSRSparseMatrix(indices=I, values=v, dense_shape=shape)
    for op in ("SparseTensorToCSRSparseMatrix", "CSRSparseMatrixToDense"):
        case(op, lambda v: R.CSRSparseMatrixToDense(sparse_input=csr(v), type=tf.float64), u(4), second=False)
    case("CSRSparseMatrixToSparseTensor", lambda v: R.CSRSparseMatrixToSparseTensor(sparse_matrix=csr(v), type=tf.float64)[1], u(4), second=False)
    case("DenseToCSRSparseMatrix", lambda d: R.CSRSparseMatrixToDense(sparse_input=R.DenseToCSRSparseMatrix(dense_input=d, indices=I), type=tf.float64), u(3, 4), second=False)
    case("SparseMatrixTranspose", lambda v: R.CSRSparseMatrixToDense(sparse_input=R.SparseMatrixTranspose(input=csr(v), type=tf.float64), type=tf.float64), u(4), second=False)
    square = np.array([3, 3], np.int64)
    J = np.array([[0, 1], [1, 0], [1, 2], [2, 2]], np.int64)
    flat = lambda m, t=tf.float64: R.CSRSparseMatrixToDense(sparse_input=m, type=t)
    csr3 = lambda v, at=I: R.SparseTensorToCSRSparseMatrix(indices=at, values=v, dense_shape=square)
    turn = lambda x, t: np.swapaxes(x, -1, -2) if t else x
    for ta, tb, aa, ab in [(0, 0, 0, 0), (1, 0, 0, 0), (0, 1, 0, 0), (1, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1), (0, 0, 1, 1), (1, 0, 0, 1), (0, 1, 1, 0)]:
        how = dict(transpose_a=bool(ta), transpose_b=bool(tb), adjoint_a=bool(aa), adjoint_b=bool(ab))
        rows, inner = (4, 3) if ta or aa else (3, 4)
        for tc in (False, True):
            case("SparseMatrixMatMul", lambda v, d, how=how, tc=tc: R.SparseMatrixMatMul(a=csr(v), b=d, transpose_output=tc, **how), u(4), turn(u(inner, 2), tb or ab), second=False)
        case("SparseMatrixSparseMatMul", lambda v, w, how=how: flat(R.SparseMatrixSparseMatMul(a=csr3(v), b=csr3(w, J), type=tf.float64, **how)), u(4), u(4), second=False)
        for c in (False, True):
            case("SparseMatrixMatMul", lambda v, x, d, e, how=how, c=c: tf.math.abs(R.SparseMatrixMatMul(a=csr3(tf.complex(v, x)), b=tf.complex(d, e), conjugate_output=c, **how)) ** 2, u(4), u(4), u(3, 3), u(3, 3), second=False)
        case("SparseMatrixSparseMatMul", lambda v, x, d, e, how=how: tf.math.abs(flat(R.SparseMatrixSparseMatMul(a=csr3(tf.complex(v, x)), b=csr3(tf.complex(d, e), J), type=tf.complex128, **how), tf.complex128)) ** 2, u(4), u(4), u(4), u(4), second=False)
    batch = np.array([[0, 0, 1], [0, 2, 0], [1, 1, 1], [1, 2, 0]], np.int64)
    many = lambda v: R.SparseTensorToCSRSparseMatrix(indices=batch, values=v, dense_shape=np.array([2, 3, 3], np.int64))
    case("SparseMatrixMatMul", lambda v, d: R.SparseMatrixMatMul(a=many(v), b=d), u(4), u(2, 3, 2), second=False)
    for op in ("OptionalFromValue", "OptionalGetValue"):
        case(op, lambda x, y: R.OptionalGetValue(optional=R.OptionalFromValue(components=[x, y]), output_types=[tf.float64] * 2, output_shapes=[[3], [2]]), u(3), u(2), second=False)
    case("IsotonicRegression", lambda x: R.IsotonicRegression(input=x, output_dtype=tf.float64)[0], u(3, 6), second=False)
    for op in ("RaggedTensorToVariant", "RaggedTensorFromVariant"):
        case(op, lambda v: R.RaggedTensorFromVariant(encoded_ragged=R.RaggedTensorToVariant(rt_nested_splits=[np.array([0, 2, 2, 5])], rt_dense_values=v, batched_input=True),
                                                     input_ragged_rank=0, output_ragged_rank=1, Tvalues=tf.float64)[1], u(5), second=False)


def quants():
    case("FakeQuantWithMinMaxArgs", lambda x: R.FakeQuantWithMinMaxArgs(inputs=x, min=-0.6, max=0.7), f(20), second=False)
    case("FakeQuantWithMinMaxVars", lambda x, a, b: R.FakeQuantWithMinMaxVars(inputs=x, min=a, max=b), f(20), np.float32(-0.6), np.float32(0.7), second=False)
    case("FakeQuantWithMinMaxVarsPerChannel", lambda x, a, b: R.FakeQuantWithMinMaxVarsPerChannel(inputs=x, min=a, max=b), f(10, 2), np.array([-0.6, -0.5], np.float32), np.array([0.7, 0.6], np.float32), second=False)
    case("QuantizeAndDequantizeV2", lambda x: R.QuantizeAndDequantizeV2(input=x, input_min=-1.0, input_max=1.0), f(5), second=False)
    case("QuantizeAndDequantizeV3", lambda x: R.QuantizeAndDequantizeV3(input=x, input_min=-1.0, input_max=1.0, num_bits=8), f(5), second=False)
    case("QuantizeAndDequantizeV4", lambda x, a, b: R.QuantizeAndDequantizeV4(input=x, input_min=a, input_max=b, range_given=True), f(9), np.float32(-0.5), np.float32(0.5), second=False)
    case("RandomGamma", lambda a: R.RandomGamma(shape=[3], alpha=a, seed=3, seed2=5), u(2, 2, lo=1, hi=3), second=False, stateful=True)
    case("StatelessRandomGammaV2", lambda a: R.StatelessRandomGammaV2(shape=[3, 2], seed=[3, 5], alpha=a), u(2, lo=1, hi=3), second=False)
    case("StatelessRandomGammaV3", lambda a: R.StatelessRandomGammaV3(shape=[3, 2], key=tf.constant([3], tf.uint64), counter=tf.constant([5, 6], tf.uint64), alg=1, alpha=a), u(2, lo=1, hi=3), second=False)


def functions():
    @tf.function(autograph=False)
    def inner(x, y):
        return tf.sin(x) * y, tf.exp(y) + tf.reduce_sum(x)
    case("PartitionedCall", lambda x, y: inner(x, y), u(3), u(3))
    case("PartitionedCall", lambda x, y: inner(*inner(x, y)), u(3), u(3))

    def branches(p):
        return lambda x, y: tf.cond(tf.constant(p, tf.float64) > tf.reduce_sum(x) * 0.0, lambda: (tf.sin(x) * y, x * y), lambda: (x + y, tf.square(x) * 2.0))
    case("If", branches(1.0), u(3), u(3))
    case("If", branches(-1.0), u(3), u(3))
    case("If", lambda x, y: tf.cond(tf.reduce_sum(x) > 100.0, lambda: tf.sin(x), lambda: tf.square(y)), u(3), u(3))
    for k in range(3):
        case("Case", lambda x, y, k=k: tf.switch_case(tf.cast(tf.reduce_sum(x) * 0.0, tf.int32) + k, [lambda: x * y, lambda: tf.sin(x), lambda: y * y]), u(3), u(3))

    def loop(x, w):
        def body(k, h):
            return k + 1, tf.tanh(tf.linalg.matvec(w, h)) + x
        return tf.while_loop(lambda k, h: k < 4, body, [tf.constant(0), x])[1]
    case("While", loop, u(3), u(3, 3))

    def nested(x):
        def body(k, h):
            inner = tf.while_loop(lambda j, v: j < k + 1, lambda j, v: (j + 1, tf.sin(v) * x), [tf.constant(0), h])[1]
            return k + 1, tf.cond(tf.equal(k % 2, 0), lambda: inner * 2.0, lambda: tf.square(inner) + h)
        return tf.while_loop(lambda k, h: k < 3, body, [tf.constant(0), x])[1]
    case("While", nested, u(3, lo=0.3), second=False)

    def sequence(xs, w):
        ta = tf.TensorArray(tf.float64, 4, element_shape=[2]).unstack(xs)
        out = tf.TensorArray(tf.float64, 4, element_shape=[2])
        def body(k, h, out):
            h = tf.tanh(ta.read(k) + tf.linalg.matvec(w, h))
            return k + 1, h, out.write(k, h)
        _, h, out = tf.while_loop(lambda k, h, o: k < 4, body, [tf.constant(0), tf.zeros([2], tf.float64), out])
        return h, out.stack()
    case("While", sequence, u(4, 2), u(2, 2), second=False)


def variables():
    def made(value, use):
        def fn():
            h = R.VarHandleOp(dtype=tf.float64, shape=value.shape, shared_name="v%d" % len(CASES))
            with tf.control_dependencies([R.AssignVariableOp(resource=h, value=tf.constant(value))]):
                h = tf.identity(h)  # what asks for the variable's shape comes after its value
                return use(h), [h]
        return fn
    read = lambda h: R.ReadVariableOp(resource=h, dtype=tf.float64)
    options = dict(second=False, handles=True)
    case("ReadVariableOp", made(u(3), lambda h: tf.square(read(h)) + read(h)), **options)
    case("ResourceGather", made(u(4, 2), lambda h: R.ResourceGather(resource=h, indices=i(1, 3, 1), dtype=tf.float64)), **options)
    case("ResourceGatherNd", made(u(4, 2), lambda h: R.ResourceGatherNd(resource=h, indices=[[1, 1], [3, 0]], dtype=tf.float64)), **options)
    case("While", made(u(2, 2), lambda h: tf.while_loop(lambda k, v: k < 3, lambda k, v: (k + 1, tf.tanh(tf.linalg.matvec(read(h), v))), [tf.constant(0), tf.constant([0.3, 0.4], tf.float64)])[1]), **options)
    case("If", made(u(2), lambda h: tf.cond(tf.reduce_sum(read(h)) > 100.0, lambda: tf.sin(read(h)), lambda: tf.square(read(h)))), **options)
    case("If", made(u(2), lambda h: tf.cond(tf.reduce_sum(read(h)) > 100.0, lambda: tf.sin(read(h)), lambda: tf.constant([1.0, 2.0], tf.float64))), **options)


def flow_v1():
    def cond(p):
        def fn(x, y):
            tf.compat.v1.disable_control_flow_v2()
            try:
                return tf.compat.v1.cond(tf.constant(p, tf.float64) > tf.reduce_sum(x) * 0.0, lambda: tf.sin(x) * y, lambda: tf.square(x) + y)
            finally:
                tf.compat.v1.enable_control_flow_v2()
        return fn
    for op in ("Switch", "Merge"):
        case(op, cond(1.0), u(3), u(3), second=False)
        case(op, cond(-1.0), u(3), u(3), second=False)

    def first_kind(fn):
        def made(*xs):
            tf.compat.v1.disable_control_flow_v2()
            try:
                return fn(*xs)
            finally:
                tf.compat.v1.enable_control_flow_v2()
        return made

    def nested(x, w):
        inner = lambda v: tf.while_loop(lambda j, u: j < 2, lambda j, u: (j + 1, tf.tanh(u * w)), [0, v])[1]
        return tf.while_loop(lambda k, v: k < 3, lambda k, v: (k + 1, inner(v) + v), [0, x])[1]
    options = dict(second=False, numeric=True, tol=1e-6)
    # TensorFlow differentiates its own loops alone, not those of a GraphDef
    case("Enter", first_kind(lambda x, w: tf.while_loop(lambda k, v: k < 3, lambda k, v: (k + 1, tf.tanh(tf.linalg.matvec(w, v))), [0, x])[1]), u(3), u(3, 3), **options)
    case("Exit", first_kind(lambda x, y: tf.while_loop(lambda v, u: tf.reduce_sum(v * v) < 20.0, lambda v, u: (v * 1.5 + u, u * v), [x, y])), u(3, lo=0.5), u(3, lo=0.5), **options)
    case("NextIteration", first_kind(lambda x: tf.while_loop(lambda k, a, b: k < 3, lambda k, a, b: (k + 1, b, tf.sin(a) * b), [0, x, x + 1.0])[1:]), u(3), **options)
    case("LoopCond", first_kind(nested), u(3), u(3), **options)
    case("TensorArrayV3", first_kind(lambda x, w: tf.map_fn(lambda row: tf.tanh(tf.linalg.matvec(w, row)), x)), u(4, 3), u(3, 3), **options)
    case("TensorArrayGradV3", first_kind(lambda x, w: tf.scan(lambda a, row: tf.tanh(tf.linalg.matvec(w, a) + row), x)), u(4, 3), u(3, 3), **options)
    conditionals_in_bodies(first_kind, options)


def conditionals_in_bodies(first_kind, options):
    """Conditionals of the first kind within loops and functions, whose values exist in some iterations only."""
    cond = tf.compat.v1.cond

    def alternate(x, w):
        body = lambda k, v: (k + 1, cond(tf.equal(k % 2, 0), lambda: tf.sin(tf.linalg.matvec(w, v)), lambda: v * v + x))
        return tf.while_loop(lambda k, v: k < 5, body, [0, x])[1]

    def within_each_other(x, w):
        inner = lambda k, v: cond(k > 1, lambda: tf.tanh(tf.reduce_sum(v * v) * w), lambda: tf.exp(v * 0.5))
        body = lambda k, v: (k + 1, cond(k < 3, lambda: inner(k, v) * v, lambda: tf.cos(v) * v))
        return tf.while_loop(lambda k, v: k < 5, body, [0, x])[1]

    def loop_in_branch(x, w):
        inner = lambda v, n: tf.while_loop(lambda j, u: j < n, lambda j, u: (j + 1, tf.tanh(u * w)), [0, v])[1]
        body = lambda k, v: (k + 1, cond(tf.equal(k, 1), lambda: v * v, lambda: inner(v, k + 1) + v))
        return tf.while_loop(lambda k, v: k < 3, body, [0, x])[1]

    def one_side_passes(x, w):
        body = lambda k, v: (k + 1, cond(tf.reduce_sum(v) < 4.0, lambda: v + tf.square(w), lambda: v))
        return tf.while_loop(lambda k, v: k < 4, body, [0, x])[1]
    for k, fn in enumerate((alternate, within_each_other, loop_in_branch, one_side_passes)):
        case("Switch in a loop, %d" % k, first_kind(fn), u(3, lo=0.3), u(3, 3) if fn is alternate else u(3, lo=0.5), **options)

    def called(p):
        from tensorflow.python.framework import function

        @function.Defun(tf.float64, tf.float64)
        def branch(x, w):
            return cond(tf.reduce_sum(x) * 0.0 < p, lambda: tf.sin(x) * tf.exp(w), lambda: tf.square(x) * w)
        return first_kind(lambda x, w: branch(x, w) * 2.0)
    for p in (1.0, -1.0):
        case("Switch in a function, %g" % p, called(p), u(3, lo=0.3), u(3), **options)


def rows():
    """Gradients that TensorFlow has as IndexedSlices, and their sums."""
    indices = np.array([[0, 2], [2, 1]], np.int32)
    options = dict(second=False)
    case("GatherV2, batches from the end", lambda x: R.GatherV2(params=x, indices=indices, axis=1, batch_dims=-1), u(2, 3, 2), **options)
    case("GatherV2 beside Gather", lambda x: [R.GatherV2(params=x, indices=indices, axis=0), R.Gather(params=x, indices=np.array([1, 2], np.int64))], u(3, 2), **options)
    case("GatherV2 beside a tensor", lambda x: R.GatherV2(params=tf.identity(x), indices=indices, axis=0) + tf.reduce_sum(x * x), u(3, 2), **options)
    for op in "SparseSegmentSum SparseSegmentMean SparseSegmentSqrtN".split():
        case(op + ", rows", lambda x, op=op: getattr(R, op)(data=x, indices=i(3, 1, 3, 0), segment_ids=i(0, 0, 1, 2), sparse_gradient=True), u(4, 2), **options)

    case("StatelessParameterizedTruncatedNormal", lambda m, s, a, b: R.StatelessParameterizedTruncatedNormal(
        shape=i(4, 2, 3), seed=i(1, 2), means=m, stddevs=s, minvals=a, maxvals=b), u(2, 3), u(3, lo=0.5, hi=2.0), u(2, 1, lo=-3.0, hi=-1.0),
        u(3, lo=1.0, hi=3.0), **options)

    def called(x):
        from tensorflow.python.framework import function

        @function.Defun(tf.float64)
        def look_up(p):
            return tf.exp(R.GatherV2(params=p, indices=indices, axis=0))
        return look_up(x)
    case("GatherV2 in a function", called, u(3, 2), numeric=True, **options)


for group in (unary, binary, products, reductions, arrays, gathers, diagonals, nn, images, linalg, ffts, lists, sparse, variants, quants, functions, variables, flow_v1, rows):
    group()
