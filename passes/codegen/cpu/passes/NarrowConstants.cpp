// Constants of 64 bits that kernels multiply with, as ones of 32 bits where all numbers fit.
//
// Processors multiply vectors of 64-bit integers in one instruction only where both come from 32 bits, which shows in a kernel when
// the constant is loaded so: the factors of requantized sums.
#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Hlo.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/cpu/passes/NarrowConstants.h"

#include <map>

using namespace mlir;

namespace lathe::cpu {

/// Whether all that reads a value multiplies with it, as it is or broadcast.
static bool isOnlyFactor(Value v) {
  return !v.use_empty() && llvm::all_of(v.getUsers(), [](Operation *user) {
    return isa<hlo::MulOp>(user) || (isa<hlo::BroadcastInDimOp>(user) && isOnlyFactor(user->getResult(0)));
  });
}

/// The constant in 32 bits, or null where a number does not fit.
static Value narrowed(hlo::ConstantOp constant) {
  FailureOr<Tensor> wide = hlo::readConstant(constant.getValue());
  if (failed(wide))
    return {};
  Tensor narrow = Tensor::allocate(DType::Int32, wide->dims());
  for (int64_t i = 0; i < wide->numElements(); ++i) {
    const int64_t v = wide->data<int64_t>()[i];
    if (v != static_cast<int32_t>(v))
      return {};
    narrow.data<int32_t>()[i] = static_cast<int32_t>(v);
  }
  OpBuilder b(constant);
  return hlo::makeConstant(b, constant.getLoc(), narrow);
}

unsigned narrowConstants(ModuleOp module) {
  unsigned count = 0;
  std::map<Operation *, Value> done; // null: stays
  module.walk([&](Operation *op) {
    if (!isa<kernel::DotOp, kernel::ConvOp, kernel::DepthwiseConvOp, kernel::PoolOp, kernel::LoopOp>(op))
      return;
    Block &body = op->getRegion(0).front();
    const unsigned offset = op->getNumOperands() - body.getNumArguments();
    for (unsigned i = isa<kernel::LoopOp>(op) ? 0 : 1; i < body.getNumArguments(); ++i) { // the first of the others is the sum
      BlockArgument arg = body.getArgument(i);
      auto constant = op->getOperand(i + offset).getDefiningOp<hlo::ConstantOp>();
      auto type = cast<RankedTensorType>(arg.getType());
      if (!constant || !type.getElementType().isSignlessInteger(64) || type.getRank() == 0 || !isOnlyFactor(arg))
        continue;
      auto [it, isNew] = done.try_emplace(constant, Value());
      if (isNew)
        it->second = narrowed(constant);
      if (!it->second)
        continue;
      op->setOperand(i + offset, it->second);
      arg.setType(it->second.getType());
      OpBuilder b(&body, body.begin());
      auto wide = hlo::ConvertOp::create(b, constant.getLoc(), type, arg);
      arg.replaceAllUsesExcept(wide, wide);
      ++count;
    }
  });
  return count;
}

} // namespace lathe::cpu
