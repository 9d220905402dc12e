// TensorFlow's ops as functions on values, for rules to be written as formulas. Types and counts come from the arguments.
#ifndef LATHE_GRAPH_GRADIENTS_EXPR_H
#define LATHE_GRAPH_GRADIENTS_EXPR_H

#include "graph/Emit.h"

namespace lathe::graphdef {

#define LATHE_UNARY(OP) \
  inline Val OP(Val x) { return call(#OP, {x}); }
#define LATHE_BINARY(OP) \
  inline Val OP(Val x, Val y) { return call(#OP, {x, y}); }

LATHE_UNARY(Abs)
LATHE_UNARY(Cos)
LATHE_UNARY(Cosh)
LATHE_UNARY(Digamma)
LATHE_UNARY(Exp)
LATHE_UNARY(FFT)
LATHE_UNARY(IFFT)
LATHE_UNARY(Identity)
LATHE_UNARY(InvertPermutation)
LATHE_UNARY(Lgamma)
LATHE_UNARY(Log)
LATHE_UNARY(LogicalNot)
LATHE_UNARY(LogSoftmax)
LATHE_UNARY(MatrixDiag)
LATHE_UNARY(MatrixDiagPart)
LATHE_UNARY(Neg)
LATHE_UNARY(OnesLike)
LATHE_UNARY(Rank)
LATHE_UNARY(Reciprocal)
LATHE_UNARY(Sign)
LATHE_UNARY(Sin)
LATHE_UNARY(Sinh)
LATHE_UNARY(Softmax)
LATHE_UNARY(Sqrt)
LATHE_UNARY(Square)
LATHE_UNARY(ZerosLike)
LATHE_BINARY(AddV2)
LATHE_BINARY(BroadcastTo)
LATHE_BINARY(DivNoNan)
LATHE_BINARY(Equal)
LATHE_BINARY(ExpandDims)
LATHE_BINARY(Fill)
LATHE_BINARY(FloorDiv)
LATHE_BINARY(FloorMod)
LATHE_BINARY(GatherNd)
LATHE_BINARY(Greater)
LATHE_BINARY(GreaterEqual)
LATHE_BINARY(Less)
LATHE_BINARY(LessEqual)
LATHE_BINARY(LogicalAnd)
LATHE_BINARY(LogicalOr)
LATHE_BINARY(MatrixSetDiag)
LATHE_BINARY(Maximum)
LATHE_BINARY(Minimum)
LATHE_BINARY(Mul)
LATHE_BINARY(NotEqual)
LATHE_BINARY(Pad)
LATHE_BINARY(Pow)
LATHE_BINARY(RealDiv)
LATHE_BINARY(Reshape)
LATHE_BINARY(ReverseV2)
LATHE_BINARY(Sub)
LATHE_BINARY(Tile)
LATHE_BINARY(Transpose)
#undef LATHE_UNARY
#undef LATHE_BINARY

inline Val operator+(Val x, Val y) { return AddV2(x, y); }
inline Val operator-(Val x, Val y) { return Sub(x, y); }
inline Val operator*(Val x, Val y) { return Mul(x, y); }
inline Val operator/(Val x, Val y) { return RealDiv(x, y); }
inline Val operator-(Val x) { return Neg(x); }
inline Val operator+(Val x, double y) { return x + like(x, y); }
inline Val operator-(Val x, double y) { return x - like(x, y); }
inline Val operator-(double x, Val y) { return like(y, x) - y; }
inline Val operator*(Val x, double y) { return x * like(x, y); }
inline Val operator*(double x, Val y) { return like(y, x) * y; }
inline Val operator/(Val x, double y) { return x / like(x, y); }

/// The conjugate; a real value is its own.
inline Val Conj(Val x) { return isComplex(x.type()) ? call("Conj", {x}) : x; }
/// The same value where it has the type already.
inline Val Cast(Val x, DType type) { return x.type() == type ? x : call("Cast", {x}, {{"DstT", type}}); }
inline Val Real(Val x) { return call("Real", {x}, {{"Tout", x.type() == DType::Complex128 ? DType::Float64 : DType::Float32}}); }
inline Val Imag(Val x) { return call("Imag", {x}, {{"Tout", x.type() == DType::Complex128 ? DType::Float64 : DType::Float32}}); }
inline Val Complex(Val re, Val im) {
  return call("Complex", {re, im}, {{"Tout", re.type() == DType::Float64 ? DType::Complex128 : DType::Complex64}});
}
inline Val Select(Val condition, Val t, Val e) { return call("SelectV2", {condition, t, e}); }
inline Val Sum(Val x, Val axes, bool keep = false) { return call("Sum", {x, axes}, {{"keep_dims", keep}}); }
inline Val Shape(Val x, DType type = DType::Int32) { return call("Shape", {x}, {{"out_type", type}}); }
inline Val Size(Val x, DType type = DType::Int32) { return call("Size", {x}, {{"out_type", type}}); }
inline Val Concat(const std::vector<Val> &values, Val axis) { return call("ConcatV2", {values, axis}); }
inline Val Pack(const std::vector<Val> &values, int axis = 0) { return call("Pack", {values}, {{"axis", axis}}); }
inline Val Range(Val from, Val to, Val step) { return call("Range", {from, to, step}); }
inline Val Slice(Val x, Val begin, Val size) { return call("Slice", {x, begin, size}); }
inline Val ScatterNd(Val indices, Val updates, Val shape) { return call("ScatterNd", {indices, updates, shape}); }

/// A vector of int32 constants, beside x.
inline Val ints(Val x, const std::vector<int32_t> &values) { return x ? x.emitter->int32s(values) : Val(); }
inline Val intOf(Val x, int32_t value) { return x ? x.emitter->int32(value) : Val(); }
inline Val sumAll(Val x) { return Sum(x, Range(intOf(x, 0), Rank(x), intOf(x, 1))); }
/// Sum over one axis, kept or not.
inline Val sumAt(Val x, int axis, bool keep = false) { return Sum(x, ints(x, {axis}), keep); }
inline Val expandAt(Val x, int axis) { return ExpandDims(x, intOf(x, axis)); }
inline Val flat(Val x) { return Reshape(x, ints(x, {-1})); }
inline Val gather(Val params, Val indices, int axis = 0) { return call("GatherV2", {params, indices, intOf(params, axis)}); }
/// x[begin:end] of a vector; end 0 for its end.
Val part(Val vector, int begin, int end = 0);
/// One number of a vector.
Val element(Val vector, int index);
/// x[..., index] along the last dimension.
Val lastAt(Val x, int index);
/// Range(0, n, 1) for a scalar n.
inline Val upTo(Val n) { return Range(like(n, 0), n, like(n, 1)); }
/// Matrices in the last two dimensions, batches broadcast; `adjX` takes the conjugate transpose.
inline Val matmul(Val x, Val y, bool adjX = false, bool adjY = false) {
  return call("BatchMatMulV2", {x, y}, {{"adj_x", adjX}, {"adj_y", adjY}});
}
/// Swaps the last two dimensions, conjugating complex values when asked.
Val matrixTranspose(Val x, bool conjugate = false);
inline Val adjoint(Val x) { return matrixTranspose(x, true); }
/// The shape that a reduction over `axes` with kept dimensions gives.
Val reducedShape(Val shape, Val axes);
/// Sums x over the dimensions that broadcasting it from `shape` to `other`'s common shape added.
Val sumTo(Val x, Val axes, Val shape);
/// Whether both are the same endpoint.
inline bool same(Val x, Val y) { return x.end == y.end; }

} // namespace lathe::graphdef

#endif
