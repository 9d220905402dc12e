// Control flow and random numbers: inference and verification.
#include "dialects/hlo/Infer.h"

using namespace mlir;

namespace lathe::hlo {

// The block of a region and what it returns must fit.
static LogicalResult verifyBranch(Operation *op, Region &region, StringRef what, TypeRange arguments,
                                  TypeRange results) {
  if (region.empty())
    return op->emitOpError() << what << ": expected a block";
  Block &block = region.front();
  if (!areCompatible(arguments, block.getArgumentTypes()))
    return op->emitOpError() << what << ": expected arguments " << arguments << ", found "
                             << TypeRange(block.getArgumentTypes());
  auto terminator = block.empty() ? ReturnOp() : dyn_cast<ReturnOp>(block.back());
  if (!terminator)
    return op->emitOpError() << what << ": expected hlo.return at the end";
  if (!areCompatible(results, terminator.getResults().getTypes()))
    return op->emitOpError() << what << ": expected to return " << results << ", found "
                             << TypeRange(terminator.getResults().getTypes());
  return success();
}

LogicalResult IfOp::verifyRegions() {
  if (typeOf(getPred()).getRank() != 0)
    return emitOpError("expected a scalar predicate, found ") << getPred().getType();
  if (failed(verifyBranch(*this, getTrueBranch(), "true branch", {}, getResultTypes())))
    return failure();
  return verifyBranch(*this, getFalseBranch(), "false branch", {}, getResultTypes());
}

LogicalResult CaseOp::verifyRegions() {
  if (typeOf(getIndex()).getRank() != 0)
    return emitOpError("expected a scalar index, found ") << getIndex().getType();
  if (getBranches().empty())
    return emitOpError("C1: expected at least one branch");
  for (Region &branch : getBranches())
    if (failed(verifyBranch(*this, branch, "branch", {}, getResultTypes())))
      return failure();
  return success();
}

static LogicalResult inferTypes(WhileOp::Adaptor adaptor, MaybeLocation, TypeList &types) {
  llvm::append_range(types, adaptor.getOperand().getTypes());
  return success();
}
LogicalResult WhileOp::verifyRegions() {
  Type pred = RankedTensorType::get({}, IntegerType::get(getContext(), 1));
  if (failed(verifyBranch(*this, getCond(), "cond", getOperandTypes(), pred)))
    return failure();
  return verifyBranch(*this, getBody(), "body", getOperandTypes(), getResultTypes());
}

static LogicalResult inferTypes(OptimizationBarrierOp::Adaptor adaptor, MaybeLocation, TypeList &types) {
  llvm::append_range(types, adaptor.getOperand().getTypes());
  return success();
}

LogicalResult RngOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  if (typeOf(getA()).getRank() != 0 || typeOf(getB()).getRank() != 0 || elementType(getA()) != type.getElementType() ||
      elementType(getB()) != type.getElementType())
    return emitOpError("expected scalar parameters of ") << type.getElementType();
  auto shape = typeOf(getShape());
  if (shape.getRank() != 1 || (!shape.isDynamicDim(0) && shape.getDimSize(0) != type.getRank()))
    return emitOpError("expected a shape of ") << type.getRank() << " elements, found " << shape;
  if (getRngDistribution() == RngDistribution::NORMAL && !isa<FloatType>(type.getElementType()))
    return emitOpError("C2: normal distribution needs floats");
  return success();
}

LogicalResult RngBitGeneratorOp::verify() {
  auto state = typeOf(getInitialState());
  if (state.getRank() != 1 || !state.hasStaticShape() || !state.getElementType().isInteger(64) ||
      state.getDimSize(0) < 2 || state.getDimSize(0) > 3)
    return emitOpError("expected a state of 2 or 3 64-bit integers, found ") << state;
  if (!areCompatible(state, getOutputState().getType()))
    return emitOpError("C1: the state must keep its type");
  if (getRngAlgorithm() == RngAlgorithm::THREE_FRY && state.getDimSize(0) != 2)
    return emitOpError("THREE_FRY needs a state of 2 integers");
  Type element = elementType(getOutput());
  if (!element.isIntOrFloat() || element.isInteger(1))
    return emitOpError("expected an output of integers or floats");
  return success();
}

} // namespace lathe::hlo

using namespace lathe::hlo;
#define GET_OP_CLASSES
#include "dialects/hlo/HloControl.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/hlo/HloRandom.cpp.inc"
