// What generators for CPUs are told about the processor of a module.
#ifndef LATHE_PASSES_CODEGEN_CPU_TARGET_CPUTARGET_H
#define LATHE_PASSES_CODEGEN_CPU_TARGET_CPUTARGET_H

#include "passes/codegen/Backend.h"
#include "passes/codegen/element/KernelBuilder.h"

namespace lathe::cpu {

/// Whether the instructions that multiply groups are written out in plain operations, for tests on machines that lack them.
bool spellsOutDots(const codegen::Processor &processor);
codegen::KernelTarget cpuTarget(const codegen::Processor &processor);
/// The same for the module's target (passes/codegen/Target.h), with `exact` beside it.
struct ModuleTarget {
  codegen::KernelTarget kernels;
  codegen::Processor processor;
};
/// Diagnoses a target that cannot be read.
mlir::FailureOr<ModuleTarget> cpuTargetOf(mlir::ModuleOp module);

} // namespace lathe::cpu

#endif
