// Passes of the CPU code generator.
#ifndef LATHE_PASSES_CODEGEN_CPU_PASSES_H
#define LATHE_PASSES_CODEGEN_CPU_PASSES_H

#include "passes/codegen/cpu/KernelCodegen.h"

#include "mlir/Pass/Pass.h"

#include <memory>
#include <string>

namespace lathe::cpu {

#define GEN_PASS_DECL
#include "passes/codegen/cpu/Passes.h.inc"

/// What the pass kernel-pack-weights does, for a target. Returns the number of operands packed.
mlir::FailureOr<unsigned> packWeights(mlir::ModuleOp module, const CpuTarget &target);

/// Registers the passes.
void registerCodegenCpuPhase();

} // namespace lathe::cpu

#endif
