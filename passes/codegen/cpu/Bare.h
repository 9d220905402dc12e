// Generators of the hlo ops that stay outside kernels, one function an op. Plain loops: correct for every element type.
#ifndef LATHE_PASSES_CODEGEN_CPU_BARE_H
#define LATHE_PASSES_CODEGEN_CPU_BARE_H

#include "passes/codegen/cpu/KernelCodegen.h"

namespace lathe::cpu {

/// The one for `op`; diagnoses ops that have none.
mlir::LogicalResult emitLibraryOp(mlir::Operation *op, KernelBuilder &b);

mlir::LogicalResult emitBitcastConvert(mlir::Operation *op, KernelBuilder &b);
mlir::LogicalResult emitConcatenate(mlir::Operation *op, KernelBuilder &b);
mlir::LogicalResult emitAssumeShape(mlir::Operation *op, KernelBuilder &b);
mlir::LogicalResult emitSetSize(mlir::Operation *op, KernelBuilder &b);
mlir::LogicalResult emitCheck(mlir::Operation *op, KernelBuilder &b);
mlir::LogicalResult emitDynamicUpdateSlice(mlir::Operation *op, KernelBuilder &b);
mlir::LogicalResult emitScatter(mlir::Operation *op, KernelBuilder &b);
mlir::LogicalResult emitSort(mlir::Operation *op, KernelBuilder &b);
mlir::LogicalResult emitTopK(mlir::Operation *op, KernelBuilder &b);
mlir::LogicalResult emitUnique(mlir::Operation *op, KernelBuilder &b);
mlir::LogicalResult emitWhere(mlir::Operation *op, KernelBuilder &b);
mlir::LogicalResult emitReduceWindow(mlir::Operation *op, KernelBuilder &b);
mlir::LogicalResult emitSelectAndScatter(mlir::Operation *op, KernelBuilder &b);
mlir::LogicalResult emitDotGeneral(mlir::Operation *op, KernelBuilder &b);
mlir::LogicalResult emitConvolution(mlir::Operation *op, KernelBuilder &b);
mlir::LogicalResult emitRngBits(mlir::Operation *op, KernelBuilder &b);
mlir::LogicalResult emitFft(mlir::Operation *op, KernelBuilder &b);
mlir::LogicalResult emitCholesky(mlir::Operation *op, KernelBuilder &b);
mlir::LogicalResult emitTriangularSolve(mlir::Operation *op, KernelBuilder &b);
mlir::LogicalResult emitLu(mlir::Operation *op, KernelBuilder &b);
mlir::LogicalResult emitQr(mlir::Operation *op, KernelBuilder &b);
mlir::LogicalResult emitEigh(mlir::Operation *op, KernelBuilder &b);
mlir::LogicalResult emitEig(mlir::Operation *op, KernelBuilder &b);
mlir::LogicalResult emitSvd(mlir::Operation *op, KernelBuilder &b);

/// Copies `bytes` bytes; the areas do not overlap.
void emitCopy(KernelBuilder &b, mlir::Value to, mlir::Value from, mlir::Value bytes);
/// An index element (any integer type) as i64.
mlir::Value loadIndex(KernelBuilder &b, mlir::Type elem, mlir::Value base, mlir::Value at);

} // namespace lathe::cpu

#endif // LATHE_PASSES_CODEGEN_CPU_BARE_H
