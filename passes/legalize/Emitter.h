// Short forms for making hlo: what legalizations are written in. Sizes are AffineExprs throughout; binary forms broadcast
// as TensorFlow does and make sizes agree where they have to.
#ifndef LATHE_PASSES_LEGALIZE_EMITTER_H
#define LATHE_PASSES_LEGALIZE_EMITTER_H

#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Shape.h"
#include "passes/legalize/HloContext.h"

namespace lathe::legalize {

using mlir::AffineExpr;
using mlir::ArrayRef;
using mlir::failed;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::OpBuilder;
using mlir::RankedTensorType;
using mlir::SmallVector;
using mlir::StringRef;
using mlir::succeeded;
using mlir::Type;
using mlir::Value;
using mlir::ValueRange;

using Compare = hlo::ComparisonDirection;
/// Makes the result of a reduction from two values.
using Combine = llvm::function_ref<Value(OpBuilder &, mlir::Location, Value, Value)>;

/// Makes hlo ops at the context's insertion point. Null values (a failure that
/// has been reported) are passed through by the elementwise forms.
class Emitter {
public:
  Emitter(HloContext &context, mlir::Location loc, StringRef nodeName)
      : ctx(context), b(context.builder), loc(loc), nodeName(nodeName) {}

  HloContext &ctx;
  OpBuilder &b;
  mlir::Location loc;
  StringRef nodeName;

  /// What stands for a value once an error was reported: as what failed inference leaves, of element type index. So the rest
  /// of a handler goes on without a check at each step.
  Value poison();
  /// The same with an error that is collected for the node.
  Value poison(const llvm::Twine &why);

  template <typename Op, typename... Args>
  Value make(Args &&...args) {
    return Op::create(b, loc, std::forward<Args>(args)...)->getResult(0);
  }

  //===--- types and sizes -------------------------------------------------===//
  static RankedTensorType type(Value v) { return mlir::cast<RankedTensorType>(v.getType()); }
  static Type elementType(Value v) { return type(v).getElementType(); }
  static int64_t rank(Value v) { return type(v).getRank(); }
  Dims dims(Value v);
  /// An error, collected for the node, when `v` has no such dimension.
  AffineExpr dim(Value v, int64_t i);
  AffineExpr size(int64_t n) { return ctx.constant(n); }
  Dims sizes(ArrayRef<int64_t> values);
  RankedTensorType typeOf(ArrayRef<AffineExpr> dims, Type element) { return hlo::makeType(dims, element); }
  bool isStatic(Value v) { return type(v).hasStaticShape(); }
  static bool isFloat(Value v) { return mlir::isa<mlir::FloatType>(elementType(v)); }
  static bool isComplex(Value v) { return mlir::isa<mlir::ComplexType>(elementType(v)); }
  static bool isInteger(Value v) { return mlir::isa<mlir::IntegerType>(elementType(v)) && !isBool(v); }
  static bool isUnsigned(Value v) { return elementType(v).isUnsignedInteger(); }
  static bool isBool(Value v) { return elementType(v).isInteger(1); }

  //===--- constants -------------------------------------------------------===//
  /// A constant of one value everywhere. Integers are truncated to the type, complex types get a real value.
  Value splat(double value, ArrayRef<AffineExpr> dims, Type element);
  Value splatInt(int64_t value, ArrayRef<AffineExpr> dims, Type element);
  Value scalar(double value, Type element) { return splat(value, {}, element); }
  Value scalarInt(int64_t value, Type element) { return splatInt(value, {}, element); }
  /// A constant of the shape and type of `v`.
  Value like(Value v, double value) { return v ? splat(value, dims(v), elementType(v)) : v; }
  Value likeInt(Value v, int64_t value) { return v ? splatInt(value, dims(v), elementType(v)) : v; }
  Value constant(const Tensor &tensor);
  /// Integers as a vector.
  Value constantInts(ArrayRef<int64_t> values, Type element);
  /// The value of a size as an integer scalar.
  Value sizeValue(AffineExpr expr, Type element);
  /// Lowest and highest value of a type (infinities for floats): identities of max and min.
  Value lowest(Type element);
  Value highest(Type element);

  //===--- shapes ----------------------------------------------------------===//
  Value reshape(Value v, ArrayRef<AffineExpr> dims);
  Value reshape(Value v, ArrayRef<int64_t> dims) { return reshape(v, sizes(dims)); }
  /// hlo.broadcast_in_dim: dimension i of `v` becomes dimension map[i] of the result.
  Value broadcastInDim(Value v, ArrayRef<AffineExpr> dims, ArrayRef<int64_t> map);
  /// numpy's broadcasting to the given sizes (trailing dimensions aligned); null and an error if it does not fit.
  Value broadcastTo(Value v, ArrayRef<AffineExpr> dims);
  /// The common sizes of several shapes, unifying sizes that have to be equal; false and an error if there is none.
  bool broadcastDims(ArrayRef<Dims> shapes, Dims &result);
  bool broadcastTogether(llvm::MutableArrayRef<Value> values);
  Value transpose(Value v, ArrayRef<int64_t> permutation);
  Value concat(ArrayRef<Value> values, int64_t axis);
  Value slice(Value v, ArrayRef<AffineExpr> starts, ArrayRef<AffineExpr> limits, ArrayRef<int64_t> strides = {});
  /// Part of one dimension, the others whole.
  Value sliceDim(Value v, int64_t axis, AffineExpr start, AffineExpr limit, int64_t stride = 1);
  /// Pads with a scalar; amounts may be negative.
  Value pad(Value v, Value with, ArrayRef<int64_t> low, ArrayRef<int64_t> high, ArrayRef<int64_t> interior = {});
  Value reverse(Value v, ArrayRef<int64_t> axes);
  /// Slices of `v` at places of one dimension (a vector of integers, not checked), which they take the place of.
  Value takeSlices(Value v, Value places, int64_t axis);
  Value iota(ArrayRef<AffineExpr> dims, int64_t axis, Type element);
  /// buffer[index] and buffer with [index] replaced, index along dimension 0 (an integer scalar).
  Value takeRow(Value buffer, Value index);
  Value putRow(Value buffer, Value row, Value index);

  //===--- elementwise -----------------------------------------------------===//
  template <typename Op>
  Value unary(Value x) {
    return x ? make<Op>(x) : poison();
  }
  /// Broadcasts, then makes Op; null if the shapes do not fit (reported).
  template <typename Op>
  Value binary(Value x, Value y) {
    Value v[2] = {x, y};
    if (!x || !y || !broadcastTogether(v))
      return poison();
    return make<Op>(v[0], v[1]);
  }
  Value add(Value x, Value y) { return binary<hlo::AddOp>(x, y); }
  Value sub(Value x, Value y) { return binary<hlo::SubtractOp>(x, y); }
  Value mul(Value x, Value y) { return binary<hlo::MulOp>(x, y); }
  Value div(Value x, Value y) { return binary<hlo::DivOp>(x, y); }
  Value max(Value x, Value y) { return binary<hlo::MaxOp>(x, y); }
  Value min(Value x, Value y) { return binary<hlo::MinOp>(x, y); }
  Value logicalAnd(Value x, Value y) { return binary<hlo::AndOp>(x, y); }
  Value logicalOr(Value x, Value y) { return binary<hlo::OrOp>(x, y); }
  Value logicalNot(Value x) { return unary<hlo::NotOp>(x); }
  Value neg(Value x) { return unary<hlo::NegOp>(x); }
  Value compare(Compare direction, Value x, Value y);
  Value select(Value condition, Value onTrue, Value onFalse);
  /// Element type conversion with TensorFlow's rules; the value itself if it has the type.
  Value convert(Value x, Type element);

  //===--- reductions ------------------------------------------------------===//
  Value reduce(Value v, Value init, ArrayRef<int64_t> axes, Combine combine);
  Value reduceSum(Value v, ArrayRef<int64_t> axes);
  Value reduceMax(Value v, ArrayRef<int64_t> axes);
  Value reduceMin(Value v, ArrayRef<int64_t> axes);
  Value reduceProd(Value v, ArrayRef<int64_t> axes);
  Value reduceAnd(Value v, ArrayRef<int64_t> axes);
  Value reduceOr(Value v, ArrayRef<int64_t> axes);
  /// A reduced value with its dimensions back as size 1 (`axes` as given to the reduction of something of `rank`).
  Value keepDims(Value reduced, ArrayRef<int64_t> axes, int64_t rank);
  /// General product; dimensions as in hlo.dot_general.
  Value dot(Value x, Value y, ArrayRef<int64_t> xBatch, ArrayRef<int64_t> yBatch, ArrayRef<int64_t> xContract,
            ArrayRef<int64_t> yContract);
  /// A run-time check of a condition (all elements must be true).
  void check(Value condition, StringRef message);

  /// Reports `node 'name' (Op): text`.
  virtual LogicalResult error(const llvm::Twine &text);
  virtual ~Emitter() = default;
};

} // namespace lathe::legalize

#endif
