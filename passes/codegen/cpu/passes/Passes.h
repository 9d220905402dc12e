// Passes of the CPU code generator.
#ifndef LATHE_PASSES_CODEGEN_CPU_PASSES_PASSES_H
#define LATHE_PASSES_CODEGEN_CPU_PASSES_PASSES_H

#include "passes/codegen/cpu/conv/Winograd.h"
#include "passes/codegen/cpu/Emit.h"

#include "mlir/Pass/Pass.h"

#include <memory>
#include <string>

namespace lathe::cpu {

#define GEN_PASS_DECL
#include "passes/codegen/cpu/passes/Passes.h.inc"

struct PackOptions {
  bool exact = false;   ///< no Winograd, no Strassen
  bool explain = false; ///< a remark at each convolution that Winograd does not compute: why not
  bool release = false; ///< free constants that only exist packed from then on; no other module may use them
};

struct PackStatistics {
  unsigned packed = 0, winograd = 0, strassen = 0;
  unsigned refused[numWinogradRefusals] = {};
};

/// What the pass kernel-pack-weights does, for a target.
mlir::FailureOr<PackStatistics> packWeights(mlir::ModuleOp module, const KernelTarget &target, const PackOptions &options = {});

/// What the pass kernel-chain does, for a target: returns how many chains it made.
unsigned chainKernels(mlir::ModuleOp module, const KernelTarget &target);

/// What the pass kernel-attention does, for a target: returns how many it made.
unsigned fuseAttention(mlir::ModuleOp module, const KernelTarget &target);

/// Registers the passes.
void registerCodegenCpuPhase();

} // namespace lathe::cpu

#endif
