// Generators of the hlo ops that stay outside kernels, one function an op, each of its own units. Plain loops, correct for
// every element type; vectors where the target has lanes.
#ifndef LATHE_PASSES_CODEGEN_LIBRARY_LIBRARY_H
#define LATHE_PASSES_CODEGEN_LIBRARY_LIBRARY_H

#include "passes/codegen/element/KernelBuilder.h"

namespace lathe::codegen {

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
/// Bytes of a tensor.
mlir::Value bytesOf(KernelBuilder &b, mlir::Value tensor);
/// Where the module's symbol is kept.
mlir::Value symbolAddress(KernelBuilder &b, int64_t symbol);
/// An index element (any integer type) as i64.
mlir::Value loadIndex(KernelBuilder &b, mlir::Type elem, mlir::Value base, mlir::Value at);

} // namespace lathe::codegen

#endif // LATHE_PASSES_CODEGEN_LIBRARY_LIBRARY_H
