//===- AlgebraReduce.cpp - reductions and windows ---------------------------===//

#include "passes/simplify/Algebra.h"
#include "passes/simplify/Match.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/TypeUtilities.h"

#include <cmath>

using namespace mlir;
using namespace lathe;

namespace {

/// True when combining with the start value changes nothing (signs of zero apart).
bool isNeutral(Operation *combiner, Value init) {
  std::optional<double> number = splatNumber(init);
  if (!number)
    return false;
  auto integer = dyn_cast<IntegerType>(getElementTypeOrSelf(init.getType()));
  bool isBool = integer && integer.getWidth() == 1;
  if (isa<hlo::AddOp, hlo::OrOp>(combiner))
    return *number == 0;
  if (isa<hlo::MulOp>(combiner) || (isa<hlo::AndOp>(combiner) && isBool))
    return *number == 1;
  if (!isa<hlo::MaxOp, hlo::MinOp>(combiner))
    return false;
  bool max = isa<hlo::MaxOp>(combiner);
  if (!integer)
    return std::isinf(*number) && (*number < 0) == max;
  auto element = dyn_cast_or_null<IntegerAttr>(splatElement(init));
  if (!element)
    return false;
  APInt value = element.getValue();
  if (integer.isUnsigned() || isBool)
    return max ? value.isMinValue() : value.isMaxValue();
  return max ? value.isMinSignedValue() : value.isMaxSignedValue();
}

/// The reduction once more over other inputs.
hlo::ReduceOp remake(PatternRewriter &r, hlo::ReduceOp op, ValueRange inputs, ArrayRef<int64_t> dims, TypeRange types) {
  SmallVector<Value> operands(inputs);
  llvm::append_range(operands, op.getInitValues());
  OperationState state(op.getLoc(), hlo::ReduceOp::getOperationName());
  state.addOperands(operands);
  state.addTypes(types);
  state.addAttribute("dimensions", r.getDenseI64ArrayAttr(dims));
  Region *body = state.addRegion();
  IRMapping map;
  op.getBody().cloneInto(body, map);
  return cast<hlo::ReduceOp>(r.create(state));
}

LogicalResult simplifyReduce(hlo::ReduceOp op, PatternRewriter &r) {
  auto from = cast<RankedTensorType>(op.getInputs().front().getType());
  if (op.getDimensions().empty() && op.getInputs().size() == 1) {
    Operation *combiner = simpleCombiner(op.getBody());
    if (!combiner || !isNeutral(combiner, op.getInitValues().front()))
      return failure();
    r.replaceOp(op, op.getInputs().front());
    return success();
  }
  // Reduced ones, and ones between what is reduced, keep it from being the trailing dimensions: leave them out. Other ones
  // stay, since the ops around the reduction have them too.
  SmallVector<int64_t> large = largeDims(from);
  int64_t first = op.getDimensions().empty() ? from.getRank() : *llvm::min_element(op.getDimensions());
  bool obstructs = false;
  for (int64_t i = 0; i < from.getRank(); ++i)
    obstructs |= isOne(from, i) && (i > first || llvm::is_contained(op.getDimensions(), i));
  if (obstructs && op.getInputs().size() == 1) {
    SmallVector<int64_t> dims;
    for (auto [i, d] : llvm::enumerate(large))
      if (llvm::is_contained(op.getDimensions(), d))
        dims.push_back(i);
    Value input = op.getInputs().front();
    auto type = cast<RankedTensorType>(op.getResult(0).getType());
    if (dims.empty()) {
      Operation *combiner = simpleCombiner(op.getBody());
      if (!combiner || !isNeutral(combiner, op.getInitValues().front()))
        return failure();
      r.replaceOpWithNewOp<hlo::ReshapeOp>(op, type, input);
      return success();
    }
    SmallVector<AffineExpr> sizes, resultSizes;
    for (auto [i, d] : llvm::enumerate(large)) {
      sizes.push_back(hlo::getDim(from, d));
      if (!llvm::is_contained(dims, static_cast<int64_t>(i)))
        resultSizes.push_back(sizes.back());
    }
    Value squeezed =
        hlo::ReshapeOp::create(r, op.getLoc(), hlo::makeType(sizes, from.getElementType()), input);
    auto made = remake(r, op, squeezed, dims, {Type(hlo::makeType(resultSizes, type.getElementType()))});
    r.replaceOpWithNewOp<hlo::ReshapeOp>(op, type, made.getResult(0));
    return success();
  }
  // The order of dimensions does not matter to a reduction, as long as what stays keeps its order.
  if (op.getInputs().size() == 1)
    if (auto transpose = op.getInputs().front().getDefiningOp<hlo::TransposeOp>()) {
      SmallVector<int64_t> dims, rest;
      for (auto [i, d] : llvm::enumerate(transpose.getPermutation()))
        (llvm::is_contained(op.getDimensions(), static_cast<int64_t>(i)) ? dims : rest).push_back(d);
      if (!llvm::is_sorted(rest))
        return failure();
      llvm::sort(dims);
      auto made = remake(r, op, transpose.getOperand(), dims, op->getResultTypes());
      r.replaceOp(op, made->getResults());
      return success();
    }
  return failure();
}

/// A window of one element is a copy.
LogicalResult simplifyWindow(hlo::ReduceWindowOp op, PatternRewriter &r) {
  if (op.getInputs().size() != 1 || op.getInputs().front().getType() != op.getResult(0).getType() ||
      !llvm::all_of(op.getWindowDimensions(), [](int64_t v) { return v == 1; }))
    return failure();
  int64_t rank = op.getWindowDimensions().size();
  for (auto [low, high] : hlo::getPadding(op.getPaddingAttr(), rank))
    if (low || high)
      return failure();
  for (int64_t v : hlo::getListOr(op.getBaseDilations(), rank, 1))
    if (v != 1)
      return failure();
  for (int64_t v : hlo::getListOr(op.getWindowStrides(), rank, 1))
    if (v != 1)
      return failure();
  Operation *combiner = simpleCombiner(op.getBody());
  if (!combiner || !isNeutral(combiner, op.getInitValues().front()))
    return failure();
  r.replaceOp(op, op.getInputs().front());
  return success();
}

} // namespace

void lathe::populateReducePatterns(RewritePatternSet &patterns) {
  patterns.add(simplifyReduce);
  patterns.add(simplifyWindow);
}
