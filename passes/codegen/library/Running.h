// reduce_window whose windows begin or end where the tensor does: each result continues the one before.
#ifndef LATHE_PASSES_CODEGEN_LIBRARY_RUNNING_H
#define LATHE_PASSES_CODEGEN_LIBRARY_RUNNING_H

#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Running.h"
#include "passes/codegen/element/KernelBuilder.h"

namespace lathe::codegen {

/// One pass along `window.dim`; sums of floats in blocks (LongSums.h). Sets extent and work.
mlir::LogicalResult emitRunning(KernelBuilder &b, hlo::ReduceWindowOp op, hlo::RunningWindow window);

} // namespace lathe::codegen

#endif
