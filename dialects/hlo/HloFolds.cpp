// Cheap, local folds: identities and constants of a few elements.
#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Evaluator.h"
#include "dialects/hlo/Infer.h"
#include "dialects/hlo/Quant.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace lathe::hlo {

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

OpFoldResult SizeOp::fold(FoldAdaptor) {
  auto type = cast<RankedTensorType>(getType());
  SmallVector<APInt> values;
  unsigned width = type.getElementType().getIntOrFloatBitWidth();
  for (AffineExpr expr : getMap().getResults()) {
    auto value = constantValue(simplify(expr));
    if (!value)
      return {};
    values.push_back(APInt(64, *value, true).sextOrTrunc(width));
  }
  if (values.size() > 64)
    return {};
  return DenseElementsAttr::get(type, values);
}

// The op's value on constants of few elements; what is bigger is folded by the simplification passes.
static OpFoldResult foldSmall(Operation *op, ArrayRef<Attribute> operands) {
  auto isSmall = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.hasStaticShape() && tensor.getNumElements() <= maxInlineElements;
  };
  if (op->getNumResults() != 1 || !isSmall(op->getResult(0).getType()))
    return {};
  SmallVector<Tensor> tensors;
  for (Attribute operand : operands) {
    auto elements = dyn_cast_if_present<ElementsAttr>(operand);
    if (!elements || !isSmall(elements.getType()))
      return {};
    auto tensor = readConstant(elements);
    if (failed(tensor))
      return {};
    tensors.push_back(*tensor);
  }
  EvalOptions options;
  options.silent = true;
  options.maxBytes = 1 << 16;
  auto results = evaluateOp(op, tensors, options);
  if (failed(results) || typeOfTensor(op->getContext(), results->front()) != op->getResult(0).getType())
    return {};
  return makeElements(op->getContext(), results->front());
}

// An operand of the result's type stands for it.
static OpFoldResult sameType(Operation *op, Value operand) {
  return operand.getType() == op->getResult(0).getType() ? OpFoldResult(operand) : OpFoldResult();
}

// The bits of a small constant that casts and quantizing hide: quantized numbers are no attributes.
static FailureOr<Tensor> smallBits(Value value) {
  SmallVector<Operation *> steps;
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<BitcastConvertOp, UniformQuantizeOp, UniformDequantizeOp>(op))
      break;
    steps.push_back(op);
    value = op->getOperand(0);
    if (steps.size() > 4)
      return failure();
  }
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || !type.hasStaticShape() || type.getNumElements() > maxInlineElements)
    return failure();
  auto tensor = readConstant(value);
  EvalOptions options;
  options.silent = true;
  options.maxBytes = 1 << 16;
  for (Operation *op : llvm::reverse(steps)) {
    if (failed(tensor))
      return failure();
    auto results = evaluateOp(op, *tensor, options);
    if (failed(results))
      return failure();
    tensor = results->front();
  }
  return tensor;
}
static OpFoldResult foldBits(Operation *op) {
  auto bits = smallBits(op->getResult(0));
  if (failed(bits) || bits->numElements() > maxInlineElements || typeOfTensor(op->getContext(), *bits) != op->getResult(0).getType())
    return {};
  return makeElements(op->getContext(), *bits);
}

OpFoldResult BitcastConvertOp::fold(FoldAdaptor) {
  if (OpFoldResult same = sameType(*this, getOperand()))
    return same;
  if (auto inner = getOperand().getDefiningOp<BitcastConvertOp>())
    if (OpFoldResult same = sameType(*this, inner.getOperand()))
      return same;
  // of other types what is computed in bits stays what it is
  return isQuantized(elementType(getOperand())) ? foldBits(*this) : OpFoldResult();
}
OpFoldResult UniformQuantizeOp::fold(FoldAdaptor) {
  if (!roundTrips(elementType(getResult()), getRounding()))
    return {};
  if (auto inner = getOperand().getDefiningOp<UniformDequantizeOp>())
    if (OpFoldResult same = sameType(*this, inner.getOperand()))
      return same;
  return sameType(*this, getOperand());
}
OpFoldResult UniformDequantizeOp::fold(FoldAdaptor) { return foldBits(*this); }

OpFoldResult AssumeShapeOp::fold(FoldAdaptor) { return sameType(*this, getOperand()); }
OpFoldResult ConvertOp::fold(FoldAdaptor adaptor) {
  if (OpFoldResult same = sameType(*this, getOperand()))
    return same;
  return foldSmall(*this, adaptor.getOperands());
}

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  if (OpFoldResult same = sameType(*this, getOperand()))
    return same;
  if (auto inner = getOperand().getDefiningOp<ReshapeOp>()) {
    setOperand(inner.getOperand());
    return getResult();
  }
  return foldSmall(*this, adaptor.getOperands());
}

OpFoldResult BroadcastInDimOp::fold(FoldAdaptor adaptor) {
  if (OpFoldResult folded = foldSmall(*this, adaptor.getOperands()))
    return folded;
  for (auto [i, dim] : llvm::enumerate(getBroadcastDimensions()))
    if (dim != static_cast<int64_t>(i))
      return {};
  return sameType(*this, getOperand());
}

OpFoldResult TransposeOp::fold(FoldAdaptor adaptor) {
  ArrayRef<int64_t> permutation = getPermutation();
  bool identity = true;
  for (auto [i, dim] : llvm::enumerate(permutation))
    identity &= dim == static_cast<int64_t>(i);
  if (identity)
    return sameType(*this, getOperand());
  if (auto inner = getOperand().getDefiningOp<TransposeOp>()) {
    SmallVector<int64_t> combined;
    for (int64_t dim : permutation)
      combined.push_back(inner.getPermutation()[dim]);
    setPermutation(combined);
    setOperand(inner.getOperand());
    return getResult();
  }
  return foldSmall(*this, adaptor.getOperands());
}

OpFoldResult ReverseOp::fold(FoldAdaptor adaptor) {
  return getDimensions().empty() ? sameType(*this, getOperand()) : foldSmall(*this, adaptor.getOperands());
}

OpFoldResult ConcatenateOp::fold(FoldAdaptor adaptor) {
  return getInputs().size() == 1 ? sameType(*this, getInputs().front()) : foldSmall(*this, adaptor.getOperands());
}

OpFoldResult SliceOp::fold(FoldAdaptor adaptor) {
  // equal sizes and strides of one leave no room for another start
  if (OpFoldResult folded = foldSmall(*this, adaptor.getOperands()))
    return folded;
  for (int64_t stride : getStrides())
    if (stride != 1)
      return {};
  for (int64_t start : getStartIndices())
    if (start != 0)
      return {};
  return sameType(*this, getOperand());
}

OpFoldResult PadOp::fold(FoldAdaptor adaptor) {
  auto zero = [](int64_t value) { return value == 0; };
  if (llvm::all_of(getEdgePaddingLow(), zero) && llvm::all_of(getEdgePaddingHigh(), zero) &&
      llvm::all_of(getInteriorPadding(), zero))
    return sameType(*this, getOperand());
  return foldSmall(*this, adaptor.getOperands());
}

OpFoldResult GetDimensionSizeOp::fold(FoldAdaptor) {
  auto size = constantValue(getDim(typeOf(getOperand()), getDimension()));
  if (!size)
    return {};
  return DenseElementsAttr::get(cast<RankedTensorType>(getType()), static_cast<int32_t>(*size));
}

// The value all elements of a constant have.
static std::optional<APInt> splatInt(Attribute attr) {
  auto splat = dyn_cast_if_present<SplatElementsAttr>(attr);
  if (splat && isa<IntegerType>(splat.getElementType()))
    return splat.getSplatValue<APInt>();
  return std::nullopt;
}
static std::optional<APFloat> splatFloat(Attribute attr) {
  auto splat = dyn_cast_if_present<SplatElementsAttr>(attr);
  if (splat && isa<FloatType>(splat.getElementType()))
    return splat.getSplatValue<APFloat>();
  return std::nullopt;
}

OpFoldResult AddOp::fold(FoldAdaptor adaptor) {
  // x + 0.0 is not x for -0.0; x + -0.0 is
  if (auto value = splatInt(adaptor.getRhs()); value && value->isZero())
    return sameType(*this, getLhs());
  if (auto value = splatFloat(adaptor.getRhs()); value && value->isNegZero())
    return sameType(*this, getLhs());
  return foldSmall(*this, adaptor.getOperands());
}
OpFoldResult SubtractOp::fold(FoldAdaptor adaptor) {
  if (auto value = splatInt(adaptor.getRhs()); value && value->isZero())
    return sameType(*this, getLhs());
  if (auto value = splatFloat(adaptor.getRhs()); value && value->isPosZero())
    return sameType(*this, getLhs());
  return foldSmall(*this, adaptor.getOperands());
}
static bool isOne(Attribute attr) {
  if (auto value = splatInt(attr))
    return value->isOne();
  auto value = splatFloat(attr);
  return value && value->isExactlyValue(1.0);
}
OpFoldResult MulOp::fold(FoldAdaptor adaptor) {
  return isOne(adaptor.getRhs()) ? sameType(*this, getLhs()) : foldSmall(*this, adaptor.getOperands());
}
OpFoldResult DivOp::fold(FoldAdaptor adaptor) {
  return isOne(adaptor.getRhs()) ? sameType(*this, getLhs()) : foldSmall(*this, adaptor.getOperands());
}
OpFoldResult AndOp::fold(FoldAdaptor adaptor) {
  if (getLhs() == getRhs())
    return sameType(*this, getLhs());
  if (auto value = splatInt(adaptor.getRhs()); value && value->isAllOnes())
    return sameType(*this, getLhs());
  return foldSmall(*this, adaptor.getOperands());
}
OpFoldResult OrOp::fold(FoldAdaptor adaptor) {
  if (getLhs() == getRhs())
    return sameType(*this, getLhs());
  if (auto value = splatInt(adaptor.getRhs()); value && value->isZero())
    return sameType(*this, getLhs());
  return foldSmall(*this, adaptor.getOperands());
}
OpFoldResult NegOp::fold(FoldAdaptor adaptor) {
  if (auto inner = getOperand().getDefiningOp<NegOp>())
    return sameType(*this, inner.getOperand());
  return foldSmall(*this, adaptor.getOperands());
}
OpFoldResult NotOp::fold(FoldAdaptor adaptor) {
  if (auto inner = getOperand().getDefiningOp<NotOp>())
    return sameType(*this, inner.getOperand());
  return foldSmall(*this, adaptor.getOperands());
}
OpFoldResult CompareOp::fold(FoldAdaptor adaptor) { return foldSmall(*this, adaptor.getOperands()); }
OpFoldResult SelectOp::fold(FoldAdaptor adaptor) {
  if (getOnTrue() == getOnFalse())
    return sameType(*this, getOnTrue());
  if (auto pred = splatInt(adaptor.getPred()))
    return sameType(*this, pred->isZero() ? getOnFalse() : getOnTrue());
  return foldSmall(*this, adaptor.getOperands());
}

} // namespace lathe::hlo
