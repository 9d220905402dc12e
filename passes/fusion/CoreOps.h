//===- CoreOps.h - products, convolutions, pooling and reductions as kernels ===//
//
// Which hlo ops have the form of a kernel with a core, and how they are made.
//
//===----------------------------------------------------------------------===//

#ifndef LATHE_PASSES_FUSION_COREOPS_H
#define LATHE_PASSES_FUSION_COREOPS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/Operation.h"

namespace lathe {

/// A reduce whose region combines two values and captures nothing.
bool isReduceForKernel(mlir::Operation *op);

/// A dot_general, convolution or reduce_window that a kernel op with a core can express.
bool isCoreForKernel(mlir::Operation *op);

/// Fills the epilogue; receives the core's result (of the hlo op's own type) and the region arguments of the extras.
using EpilogueBuilder = llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::OpBuilder &, mlir::Value core,
                                                                         mlir::ValueRange extras)>;

/// Whether the kernel of a core op can read what `operand` reads, in its stead: a transpose under a product, narrow integers made wider
/// under sums of windows.
bool readsThrough(mlir::Operation *core, mlir::Operation *operand);

/// Operands of a core op as the kernel reads them, with those of `mayLookThrough` left out.
struct CoreOperands {
  llvm::SmallVector<mlir::Value> values;
  llvm::SmallVector<llvm::SmallVector<int64_t>> permutations; ///< one per value; empty: as it lies
};
CoreOperands coreOperands(mlir::Operation *op, llvm::function_ref<bool(mlir::Operation *)> mayLookThrough);

/// Makes the kernel op for `op` before the builder's position. `resultPermutation` (may be empty) is the transpose that
/// the result passes through at once.
mlir::Operation *buildCoreKernel(mlir::OpBuilder &b, mlir::Location loc, mlir::Operation *op, const CoreOperands &operands,
                                 llvm::ArrayRef<int64_t> resultPermutation, mlir::TypeRange results,
                                 mlir::ValueRange extras, EpilogueBuilder epilogue);

} // namespace lathe

#endif
