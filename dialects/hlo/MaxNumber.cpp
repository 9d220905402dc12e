// See MaxNumber.h.
#include "dialects/hlo/MaxNumber.h"

#include "dialects/hlo/Hlo.h"

using namespace mlir;

namespace lathe {

Value hlo::makeMaxNumber(OpBuilder &b, Location loc, Value best, Value next) {
  Value more = CompareOp::create(b, loc, next, best, ComparisonDirection::GT);
  return SelectOp::create(b, loc, more, next, best);
}

bool hlo::isMaxNumber(Region &body) {
  if (!llvm::hasSingleElement(body))
    return false;
  Block &block = body.front();
  if (block.getNumArguments() != 2 || block.getOperations().size() != 3)
    return false;
  Value best = block.getArgument(0), next = block.getArgument(1);
  auto compare = dyn_cast<CompareOp>(block.front());
  auto select = dyn_cast<SelectOp>(*std::next(block.begin()));
  return compare && select && compare.getComparisonDirection() == ComparisonDirection::GT && compare.getLhs() == next &&
         compare.getRhs() == best && select.getPred() == compare.getResult() && select.getOnTrue() == next &&
         select.getOnFalse() == best && block.back().getNumOperands() == 1 &&
         block.back().getOperand(0) == select.getResult();
}

} // namespace lathe
