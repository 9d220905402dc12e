//===- OpInfo.cpp - what fusion knows about each operation ------------------===//

#include "passes/fusion/OpInfo.h"

#include "dialects/hlo/Hlo.h"
#include "passes/fusion/CoreOps.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace lathe;

/// What one element of the usual elementwise ops costs; the rest of them are dear.
static const llvm::StringMap<unsigned> &elementwiseCosts() {
  static const llvm::StringMap<unsigned> table = {
      {"conj", 1},
      {"convert", 0},
      {"bitcast_convert", 0},
      {"abs", 1},
      {"add", 1},
      {"and", 1},
      {"ceil", 1},
      {"clamp", 1},
      {"compare", 1},
      {"complex", 1},
      {"count_leading_zeros", 1},
      {"floor", 1},
      {"imag", 1},
      {"is_finite", 1},
      {"is_inf", 1},
      {"is_nan", 1},
      {"is_neg_inf", 1},
      {"is_pos_inf", 1},
      {"maximum", 1},
      {"minimum", 1},
      {"multiply", 1},
      {"negate", 1},
      {"next_after", 1},
      {"not", 1},
      {"or", 1},
      {"popcnt", 1},
      {"real", 1},
      {"reduce_precision", 1},
      {"round_nearest_afz", 1},
      {"round_nearest_even", 1},
      {"select", 1},
      {"shift_left", 1},
      {"shift_right_arithmetic", 1},
      {"shift_right_logical", 1},
      {"sign", 1},
      {"subtract", 1},
      {"xor", 1},
      {"divide", 4},
      {"remainder", 8},
      {"rsqrt", 4},
      {"sqrt", 4},
      {"acos", 20},
      {"acosh", 20},
      {"asin", 20},
      {"asinh", 20},
      {"atan", 20},
      {"atan2", 20},
      {"atanh", 20},
      {"cbrt", 20},
      {"cosh", 20},
      {"cosine", 20},
      {"erf", 15},
      {"erf_inv", 30},
      {"erfc", 20},
      {"exponential", 10},
      {"exponential_minus_one", 12},
      {"log", 12},
      {"log_plus_one", 12},
      {"logistic", 14},
      {"power", 25},
      {"sine", 20},
      {"sinh", 20},
      {"square", 1},
      {"tan", 25},
      {"tanh", 14},
  };
  return table;
}

/// Whether a gather picks slices along one dimension by constant places and leaves the last dimension whole: an element
/// costs a look at a table that the elements beside it share.
static bool picksByConstant(hlo::GatherOp op) {
  auto d = op.getDimensionNumbers();
  auto in = dyn_cast<RankedTensorType>(op.getOperand().getType()), out = dyn_cast<RankedTensorType>(op.getResult().getType());
  return in && out && op.getStartIndices().getDefiningOp<hlo::ConstantOp>() && d.getOperandBatchingDims().empty() &&
         d.getStartIndexMap().size() == 1 && d.getCollapsedSliceDims() == d.getStartIndexMap() &&
         d.getCollapsedSliceDims().front() + 1 < in.getRank() && !d.getOffsetDims().empty() &&
         d.getOffsetDims().back() + 1 == out.getRank();
}

OpClass lathe::classify(Operation *op) {
  if (!isa_and_nonnull<hlo::HloDialect>(op->getDialect()))
    return OpClass::Opaque;
  if (auto constant = dyn_cast<hlo::ConstantOp>(op))
    return isa<SplatElementsAttr>(constant.getValue()) ? OpClass::Generator : OpClass::Constant;
  if (isa<hlo::ReshapeOp>(op))
    return OpClass::View;
  if (op->getNumResults() != 1)
    return isReduceForKernel(op) ? OpClass::Reduce : OpClass::Opaque;
  if (isa<hlo::IotaOp>(op))
    return OpClass::Generator;
  if (auto broadcast = dyn_cast<hlo::BroadcastInDimOp>(op)) {
    // a splat with run-time sizes
    Operation *def = broadcast.getOperand().getDefiningOp();
    return def && classify(def) == OpClass::Generator && isa<hlo::ConstantOp>(def) ? OpClass::Generator
                                                                                   : OpClass::Broadcast;
  }
  if (isa<hlo::TransposeOp, hlo::SliceOp, hlo::PadOp, hlo::ReverseOp>(op))
    return OpClass::Index;
  if (auto gather = dyn_cast<hlo::GatherOp>(op); gather && picksByConstant(gather))
    return OpClass::Index;
  if (isReduceForKernel(op))
    return OpClass::Reduce;
  if (isCoreForKernel(op))
    return OpClass::Core;
  if (op->hasTrait<hlo::HloElementwise>())
    return OpClass::Elementwise;
  // the same bits under a type of the same width is elementwise too
  if (auto cast = dyn_cast<hlo::BitcastConvertOp>(op); cast && sameShape(cast.getOperand().getType(), cast.getType()))
    return OpClass::Elementwise;
  return OpClass::Opaque;
}

unsigned lathe::elementCost(Operation *op) {
  auto it = elementwiseCosts().find(op->getName().stripDialect());
  unsigned cost = it != elementwiseCosts().end() ? it->second : op->hasTrait<hlo::HloElementwise>() ? 40 : 0;
  // integer division is slow everywhere
  if (isa<hlo::DivOp, hlo::RemOp>(op) && getElementTypeOrSelf(op->getResult(0)).isInteger())
    cost = 12;
  return cost;
}

bool lathe::sameShape(Type a, Type b) {
  auto x = dyn_cast<RankedTensorType>(a), y = dyn_cast<RankedTensorType>(b);
  return x && y && x.getShape() == y.getShape() && x.getEncoding() == y.getEncoding();
}

bool lathe::replicatesOperand(Operation *op, Value operand) {
  auto from = dyn_cast<RankedTensorType>(operand.getType());
  if (!from || isa<hlo::GatherOp>(op))
    return true;
  if (isa<hlo::PadOp>(op))
    return op->getOperand(0) != operand;
  auto to = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (!to)
    return true;
  if (auto broadcast = dyn_cast<hlo::BroadcastInDimOp>(op)) {
    // a broadcast that only adds dimensions of size one repeats nothing
    return !(from.hasStaticShape() && to.hasStaticShape() && from.getNumElements() == to.getNumElements());
  }
  if (isa<hlo::TransposeOp, hlo::SliceOp, hlo::ReverseOp, hlo::ReduceOp>(op))
    return false;
  return !sameShape(from, to);
}
