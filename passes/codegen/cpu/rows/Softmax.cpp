// See Softmax.h.
#include "passes/codegen/cpu/rows/Softmax.h"

using namespace mlir;

namespace lathe::cpu {

/// The reduction of one value by `Op` alone that `v` is the result of.
template <typename Op>
static hlo::ReduceOp reductionBy(Value v) {
  auto r = v.getDefiningOp<hlo::ReduceOp>();
  if (!r || r.getInputs().size() != 1)
    return {};
  Block &body = r.getBody().front();
  auto ops = body.without_terminator();
  if (!llvm::hasSingleElement(ops) || !isa<Op>(*ops.begin()) || body.getTerminator()->getOperand(0) != ops.begin()->getResult(0))
    return {};
  SmallVector<Value> both(ops.begin()->getOperands());
  return llvm::is_contained(both, body.getArgument(0)) && llvm::is_contained(both, body.getArgument(1)) ? r : hlo::ReduceOp();
}

/// What `v` repeats along the dimensions of `r`, the reduction that gave it.
template <typename Op>
static hlo::ReduceOp spreadReduction(Value v) {
  auto spread = v.getDefiningOp<hlo::BroadcastInDimOp>();
  hlo::ReduceOp r = spread ? reductionBy<Op>(spread.getOperand()) : hlo::ReduceOp();
  if (!r || spread.getType() != r.getInputs()[0].getType())
    return {};
  // the dimensions that are left keep their places
  auto kept = spread.getBroadcastDimensions();
  for (int64_t d : r.getDimensions())
    if (llvm::is_contained(kept, d))
      return {};
  return llvm::is_sorted(kept) ? r : hlo::ReduceOp();
}

hlo::ReduceOp softmaxSum(hlo::DivOp op) {
  hlo::ReduceOp sum = spreadReduction<hlo::AddOp>(op->getOperand(1));
  if (!sum || sum.getInputs()[0] != op->getOperand(0) || !hlo::elementType(op->getOperand(0)).isF32())
    return {};
  auto exponential = op->getOperand(0).getDefiningOp<hlo::ExpOp>();
  auto difference = exponential ? exponential->getOperand(0).getDefiningOp<hlo::SubtractOp>() : hlo::SubtractOp();
  hlo::ReduceOp max = difference ? spreadReduction<hlo::MaxOp>(difference->getOperand(1)) : hlo::ReduceOp();
  bool same = max && max.getInputs()[0] == difference->getOperand(0) && max.getDimensions() == sum.getDimensions();
  return same ? sum : hlo::ReduceOp();
}

bool leavesNanToOthers(hlo::ReduceOp r, ArrayRef<Value> roots) {
  hlo::ReduceOp max = r.getNumResults() == 1 ? reductionBy<hlo::MaxOp>(r.getResult(0)) : hlo::ReduceOp();
  if (!max || !isa<FloatType>(hlo::elementType(r.getInputs()[0])))
    return false;
  // Which values a NaN among the inputs of `r` is sure to reach: at its own place, or everywhere in its row.
  enum Reach { Nowhere, Place, Row };
  llvm::DenseMap<Value, Reach> reach{{r.getInputs()[0], Place}};
  for (Operation &op : *r->getBlock()) {
    if (op.getNumResults() != 1 || reach.contains(op.getResult(0)) || &op == r)
      continue;
    Reach most = Nowhere;
    for (Value v : op.getOperands())
      most = std::max(most, reach.lookup(v));
    if (isa<hlo::AddOp, hlo::SubtractOp, hlo::MulOp, hlo::DivOp, hlo::ExpOp, hlo::LogOp, hlo::NegOp>(op) ||
        (most == Row && isa<hlo::BroadcastInDimOp>(op)))
      reach[op.getResult(0)] = most;
    else if (hlo::ReduceOp sum = reductionBy<hlo::AddOp>(op.getResult(0)))
      if (reach.lookup(sum.getInputs()[0]) != Nowhere && sum.getDimensions() == r.getDimensions())
        reach[op.getResult(0)] = Row;
  }
  return llvm::all_of(roots, [&](Value v) { return reach.lookup(v) == Row; });
}

} // namespace lathe::cpu
