// Transposes that move runs of a few elements: pixels of a depth_to_space, shuffled channels, images whose channels come
// first or last. Vectors of one side are loaded, permuted in registers, and stored as vectors of the other.
#ifndef LATHE_PASSES_CODEGEN_CPU_ROWS_INTERLEAVE_H
#define LATHE_PASSES_CODEGEN_CPU_ROWS_INTERLEAVE_H

#include "dialects/hlo/Hlo.h"
#include "passes/codegen/cpu/Emit.h"
#include "passes/codegen/element/ElementEmitter.h"
#include "passes/codegen/element/Special.h"

namespace lathe::cpu {

/// in[..., u, v, run] -> out[..., v, u, run] where either v follows u in memory of the input or u follows v in that of
/// the result, and that pair of dimensions holds a few vectors at most for each element of the other dimension.
struct Interleave {
  mlir::Value leaf;     ///< what is read
  hlo::TransposeOp op;  ///< nothing but elementwise ops of it and of splats before and after it
  bool deals = false;   ///< a vector of u with all of v, consecutive in the input; else a vector of v with all of u
  int64_t u = 0, v = 0; ///< sizes
  int64_t run = 1;
  mlir::AffineExpr inU, outV;                 ///< strides of u in the input and of v in the result
  mlir::SmallVector<mlir::AffineExpr> others; ///< sizes of the other dimensions, outermost of the result first
  mlir::SmallVector<mlir::AffineExpr> inOthers, outOthers; ///< their strides
  unsigned lanes = 1;
};

/// A vector of the elements `from` of some vectors, counted through all of them.
mlir::Value pickElements(KernelBuilder &b, mlir::ArrayRef<mlir::Value> vectors, mlir::ArrayRef<int64_t> from);

/// Vectors that are a sequence of groups of as many elements: the first elements of all groups, the second ones, and so on.
mlir::SmallVector<mlir::Value> dealElements(KernelBuilder &b, mlir::ArrayRef<mlir::Value> vectors);
/// The way back.
mlir::SmallVector<mlir::Value> weaveElements(KernelBuilder &b, mlir::ArrayRef<mlir::Value> vectors);

/// What keeps the form from these results; `how` is filled in where nothing does.
WhyNot whyNotInterleave(mlir::ArrayRef<mlir::Value> roots, mlir::ArrayRef<mlir::Value> leaves, const KernelTarget &target,
                        Interleave &how);

/// Stores all elements of `root`, what becomes of the transpose, to `output`; sets extent and cost.
mlir::LogicalResult emitInterleave(KernelBuilder &b, Interleave how, mlir::Value root, mlir::Value output,
                                   mlir::Value buffer);

} // namespace lathe::cpu

#endif // LATHE_PASSES_CODEGEN_CPU_ROWS_INTERLEAVE_H
