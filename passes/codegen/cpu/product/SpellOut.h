// Products of narrow integers in plain operations, so that tests run the kernels of processors that their machine is not.
#ifndef LATHE_PASSES_CODEGEN_CPU_PRODUCT_SPELLOUT_H
#define LATHE_PASSES_CODEGEN_CPU_PRODUCT_SPELLOUT_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace lathe::cpu {

/// Replaces the instructions that multiply groups of integers (Format.h) by what they compute.
void spellOutDots(mlir::func::FuncOp function);

} // namespace lathe::cpu

#endif
