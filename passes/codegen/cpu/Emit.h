// The generators of kernel ops for CPUs, one a family.
#ifndef LATHE_PASSES_CODEGEN_CPU_EMIT_H
#define LATHE_PASSES_CODEGEN_CPU_EMIT_H

#include "passes/codegen/element/KernelBuilder.h"

namespace lathe::cpu {

using namespace codegen; // the element code and the library, of which all generators are made

/// Emits `func.func private @name` for one kernel op or bare hlo op into `module`. Diagnoses what it cannot.
mlir::FailureOr<mlir::func::FuncOp> emitKernel(mlir::Operation *op, mlir::ModuleOp module, llvm::StringRef name,
                                               const KernelTarget &target);

// All take a builder whose function has been created.
mlir::LogicalResult emitDot(mlir::Operation *op, KernelBuilder &b);
mlir::LogicalResult emitConv(mlir::Operation *op, KernelBuilder &b);
mlir::LogicalResult emitDepthwiseConv(mlir::Operation *op, KernelBuilder &b);
mlir::LogicalResult emitPool(mlir::Operation *op, KernelBuilder &b);
mlir::LogicalResult emitLoopKernel(mlir::Operation *op, KernelBuilder &b);
mlir::LogicalResult emitReduceKernel(mlir::Operation *op, KernelBuilder &b);
mlir::LogicalResult emitRowsKernel(mlir::Operation *op, KernelBuilder &b);
mlir::LogicalResult emitBareOp(mlir::Operation *op, KernelBuilder &b);

} // namespace lathe::cpu

#endif
