// Generators that are not written yet.
#include "passes/codegen/cpu/Bare.h"

using namespace mlir;

namespace lathe::cpu {

static LogicalResult pending(Operation *op) { return op->emitError() << "no CPU code for " << op->getName() << " yet"; }
LogicalResult emitRngBits(Operation *op, KernelBuilder &) { return pending(op); }
LogicalResult emitFft(Operation *op, KernelBuilder &) { return pending(op); }
LogicalResult emitCholesky(Operation *op, KernelBuilder &) { return pending(op); }
LogicalResult emitTriangularSolve(Operation *op, KernelBuilder &) { return pending(op); }
LogicalResult emitLu(Operation *op, KernelBuilder &) { return pending(op); }
LogicalResult emitQr(Operation *op, KernelBuilder &) { return pending(op); }
LogicalResult emitEigh(Operation *op, KernelBuilder &) { return pending(op); }
LogicalResult emitSvd(Operation *op, KernelBuilder &) { return pending(op); }

} // namespace lathe::cpu
