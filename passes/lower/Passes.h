// The lower room: the memory plan, and entries in the LLVM dialect.
#ifndef LATHE_PASSES_LOWER_PASSES_H
#define LATHE_PASSES_LOWER_PASSES_H

#include "passes/lower/KernelTimes.h"

#include "mlir/Pass/Pass.h"
#include <memory>

namespace lathe::lower {

#define GEN_PASS_DECL
#include "passes/lower/Passes.h.inc"

/// kernel-to-llvm, which adds what the backend takes for each group of kernels to `times`; they must outlive it.
std::unique_ptr<mlir::Pass> createTimedKernelToLlvm(const KernelToLlvmOptions &options, KernelTimes &times);

/// Registers the passes.
void registerLowerPhase();

} // namespace lathe::lower

#endif
