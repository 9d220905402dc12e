// Which generator makes the function of which op.
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/cpu/KernelCodegen.h"

using namespace mlir;

namespace lathe::cpu {

FailureOr<func::FuncOp> emitKernel(Operation *op, ModuleOp module, llvm::StringRef name, const CpuTarget &target) {
  KernelBuilder b(op, module, name, target);
  LogicalResult done = failure();
  if (isa<kernel::DotOp>(op))
    done = emitDot(op, b);
  else if (isa<kernel::ConvOp>(op))
    done = emitConv(op, b);
  else
    op->emitOpError("has no generator for CPUs");
  if (failed(done)) {
    b.func.erase();
    return failure();
  }
  return b.func;
}

} // namespace lathe::cpu
