// Which generator makes the function of which op.
#include "dialects/hlo/Shape.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/Backend.h"
#include "passes/codegen/cpu/layout/Layout.h"
#include "passes/codegen/cpu/passes/Attention.h"
#include "passes/codegen/cpu/passes/Chain.h"
#include "passes/codegen/cpu/product/Amx.h"
#include "passes/codegen/cpu/Emit.h"
#include "passes/codegen/element/Special.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace lathe::cpu {

FailureOr<func::FuncOp> emitKernel(Operation *op, ModuleOp module, llvm::StringRef name, const KernelTarget &target) {
  SmallVector<Value> values(op->getOperands());
  values.append(op->result_begin(), op->result_end());
  for (Region &region : op->getRegions())
    region.walk([&](Operation *o) { values.append(o->result_begin(), o->result_end()); });
  for (Value v : values) {
    auto t = dyn_cast<RankedTensorType>(v.getType());
    if (!t || !hlo::hasKnownDims(t))
      return op->emitError() << "code generation needs ranked tensors of known sizes, found " << v.getType();
  }
  KernelTarget own = target;
  if (isa<kernel::ChainOp, kernel::AttentionOp>(op)) // what is inside of a unit is for one thread
    own.threads = 1;
  KernelBuilder b(op, module, name, own);
  if (Attribute noted = op->getAttr(codegen::fallbackAttribute))
    b.func->setAttr(codegen::fallbackAttribute, noted);
  if (inTileRegisters(op, target))
    chooseSpecial(b, isa<kernel::DotOp>(op) ? "tiles-product" : "tiles-conv", WhyNot::none());
  LogicalResult ok =
      llvm::TypeSwitch<Operation *, LogicalResult>(op)
          .Case<kernel::LoopOp>([&](auto) { return emitLoopKernel(op, b); })
          .Case<kernel::ReduceOp>([&](auto) { return emitReduceKernel(op, b); })
          .Case<kernel::RowsOp>([&](auto) { return emitRowsKernel(op, b); })
          .Case<kernel::DotOp>([&](auto dot) { return inTileRegisters(op, target) ? emitAmxDot(dot, b) : emitDot(op, b); })
          .Case<kernel::ConvOp>([&](auto conv) {
            return inTileRegisters(op, target) ? emitAmxConv(conv, b) : emitConv(op, b);
          })
          .Case<kernel::DepthwiseConvOp>([&](auto) { return emitDepthwiseConv(op, b); })
          .Case<kernel::ChainOp>([&](auto chain) { return emitChain(chain, b); })
          .Case<kernel::AttentionOp>([&](auto attention) { return emitAttention(attention, b); })
          .Case<kernel::PoolOp>([&](auto) { return emitPool(op, b); })
          .Default([&](auto) { return emitBareOp(op, b); });
  if (failed(ok)) {
    b.func.erase();
    return failure();
  }
  return b.func;
}

} // namespace lathe::cpu
