// Part of kernel-pack-weights: factors of 64 bits kept in 32.
#ifndef LATHE_PASSES_CODEGEN_CPU_PASSES_NARROWCONSTANTS_H
#define LATHE_PASSES_CODEGEN_CPU_PASSES_NARROWCONSTANTS_H

#include "mlir/IR/BuiltinOps.h"

namespace lathe::cpu {

/// Narrows the constants that kernels only multiply with, and widens them in their regions. Returns how many operands.
unsigned narrowConstants(mlir::ModuleOp module);

} // namespace lathe::cpu

#endif
