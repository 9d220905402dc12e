//===- Raiser.h - what turning one op into operators sees -------*- C++ -*-===//
//
// Handlers go from the last op of a block to the first, so that one sees its operands as hlo still, and what an earlier
// handler has taken in has no users left. A handler replaces its op (Raiser::replace) or returns failure; where no later one
// takes the op, the reason that was given last becomes the error.
//
//===----------------------------------------------------------------------===//
#ifndef LATHE_COMPILER_EXPORT_TFLITE_RAISER_H
#define LATHE_COMPILER_EXPORT_TFLITE_RAISER_H

#include "base/Tensor.h"
#include "compiler/export/tflite/Operators.h"
#include "passes/simplify/MatchResize.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

namespace lathe::tflwrite {

using mlir::ArrayRef;
using mlir::LogicalResult;
using mlir::Operation;
using mlir::RankedTensorType;
using mlir::SmallVector;
using mlir::Type;
using mlir::Value;
using mlir::ValueRange;
using mlir::AffineExpr;
using mlir::failure;
using mlir::failed;
using mlir::success;
using mlir::succeeded;

class Raiser {
public:
  explicit Raiser(mlir::ModuleOp module) : b(module.getContext()), loc(b.getUnknownLoc()), module(module) {}

  mlir::OpBuilder b;
  mlir::Location loc; ///< of the op at hand

  void startFunction(mlir::func::FuncOp function);
  /// Makes `b` build before `op`, at its place.
  void start(Operation *op);
  /// The reason is kept for the error; always failure.
  LogicalResult refuse(const llvm::Twine &why);
  std::string takeReason() { return std::exchange(reason, std::string()); }
  LogicalResult replace(Operation *op, ValueRange values);

  using Option = std::pair<llvm::StringRef, mlir::Attribute>;
  /// An operator with one result. Its options are attributes of any kind.
  Value make(llvm::StringRef name, ValueRange operands, RankedTensorType type, ArrayRef<Option> options = {});
  mlir::Operation *makeMany(llvm::StringRef name, ValueRange operands, ArrayRef<Type> types, ArrayRef<Option> options = {});
  mlir::Attribute number(int64_t v) { return b.getI64IntegerAttr(v); }
  mlir::Attribute flag(bool v) { return b.getBoolAttr(v); }
  mlir::Attribute text(llvm::StringRef v) { return b.getStringAttr(v); }
  mlir::Attribute real(double v) { return b.getF32FloatAttr(v); }

  /// Constants.
  Value numbers(ArrayRef<int64_t> values);     ///< a vector of i32
  Value scalar(double value, Type elementType);
  Value quantized(const Tensor &values, Type element); ///< integers that stand for the element type's numbers
  Value scaled(Value constant, ArrayRef<double> scales, int64_t dimension); ///< integers with one scale an index of a dimension
  AffineExpr expr(int64_t v) { return hlo::constantExpr(b.getContext(), v); }
  Value emptyOperand() { return {}; }

  /// A vector of one i32: the value of a size. Null (with a reason) if nothing gives it.
  Value size(AffineExpr dim);
  /// Sizes as a vector of i32, as RESHAPE (then one may become -1), BROADCAST_TO and SLICE read them.
  Value sizes(ArrayRef<AffineExpr> dims, bool forReshape = false);
  /// The value under another shape; a constant becomes another constant.
  Value reshape(Value v, ArrayRef<AffineExpr> dims);
  Value reshape(Value v, RankedTensorType type) { return reshape(v, hlo::getDims(type)); }
  Value transpose(Value v, ArrayRef<int64_t> permutation);
  Value reverse(Value v, ArrayRef<int64_t> dims);
  /// Elements of `value` (0 without it) around a tensor; negative numbers take elements away.
  Value pad(Value v, ArrayRef<int64_t> low, ArrayRef<int64_t> high, Value value = {});
  /// What lies from `start` on, `dims` elements, every `strides`-th.
  Value slice(Value v, ArrayRef<AffineExpr> start, RankedTensorType type, ArrayRef<int64_t> strides = {});
  Value cast(Value v, Type elementType);
  /// An elementwise operator on values that broadcasting brings to one shape.
  Value binary(llvm::StringRef name, Value x, Value y, RankedTensorType type) { return make(name, {x, y}, type); }

  /// `v` in a form that NumPy's broadcasting brings back to its shape: the source of broadcasts, one element of splats.
  Value narrow(Value v);
  /// The operands of an elementwise op with broadcasts left out as far as `limit` dimensions and the result's shape allow.
  SmallVector<Value> narrowOperands(ValueRange operands, RankedTensorType result, int64_t limit);

  /// Whether a run-time check of the model looks at a value: an index out of range is an error there, as in the kernels.
  bool isChecked(Value v) const { return checked.contains(v); }

  /// The function at hand, whose start is where values of sizes are made.
  mlir::func::FuncOp function;
  mlir::ModuleOp module;

private:
  Value symbol(unsigned position);
  Value makeSize(AffineExpr dim);

  std::string reason;
  llvm::DenseSet<Value> checked;
  llvm::MapVector<AffineExpr, Value> knownSizes; ///< made at the function's start, seen everywhere
};

using Handler = LogicalResult (*)(Operation *op, Raiser &r);
/// Handlers by the name of the op without "hlo.", first to last.
using HandlerTable = llvm::StringMap<SmallVector<Handler, 2>>;

// By family, each in its file. Those that take several ops at once come before those that take one.
void addSoftmaxHandlers(HandlerTable &table);
void addResizeHandlers(HandlerTable &table);
void addActivationHandlers(HandlerTable &table);
void addElementwiseHandlers(HandlerTable &table);
void addConvHandlers(HandlerTable &table);
void addProductHandlers(HandlerTable &table);
void addReduceHandlers(HandlerTable &table);
void addWindowHandlers(HandlerTable &table);
void addShapeHandlers(HandlerTable &table);
void addIndexHandlers(HandlerTable &table);

/// Replaces an op by what the first handler that takes it makes; failure with a reason where none does.
LogicalResult raiseOp(Operation *op, Raiser &r);

/// The bias of an addition: a constant vector along the last dimension, broadcast. Null for anything else.
Value matchBias(Value v, RankedTensorType type);
/// A convolution or product as its operator with a bias, which may be null; `result` replaces its type. Null with a reason.
Value raiseConvolution(hlo::ConvolutionOp op, Value bias, Raiser &r);
Value raiseDot(hlo::DotGeneralOp op, Value bias, Raiser &r);
/// A window over a tensor; `average`: a sum divided by the number of elements of the window. Null with a reason.
Value raisePool(hlo::ReduceWindowOp op, bool average, Raiser &r);

/// A bilinear resize of `image`, which stands for the one of the match.
Value raiseResize(const BilinearResize &resize, Value image, RankedTensorType type, Raiser &r);

/// The conversion to f32 that gives weights stored in f16; null for anything else. The file keeps them as they are stored.
hlo::ConvertOp widenedWeights(Value v);
/// A tensor of the file as it stands, or widened weights.
bool isWeights(Value v);

/// The op of a value if it has one of this kind, a broadcast or reshape-free definition.
template <typename Op>
Op definedBy(Value v) {
  return v ? v.getDefiningOp<Op>() : Op();
}

} // namespace lathe::tflwrite

#endif
