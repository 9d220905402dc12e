// What rows that end in a softmax, or the logarithm of one, leave unsaid: their maxima need not look for NaNs, which reach
// all of the row by the sum, and their sums are at least 1, so that a reciprocal for the row does for its divisions.
#ifndef LATHE_PASSES_CODEGEN_CPU_ROWS_SOFTMAX_H
#define LATHE_PASSES_CODEGEN_CPU_ROWS_SOFTMAX_H

#include "dialects/hlo/Hlo.h"

namespace lathe::cpu {

/// Whether a NaN in a row makes every element that `roots` have of the row a NaN, whatever the maximum `r` makes of it.
bool leavesNanToOthers(hlo::ReduceOp r, llvm::ArrayRef<mlir::Value> roots);

/// If `op` divides e = exp(x - max(x)) by sum(e), in f32 and along the same dimensions: that sum.
hlo::ReduceOp softmaxSum(hlo::DivOp op);

} // namespace lathe::cpu

#endif // LATHE_PASSES_CODEGEN_CPU_ROWS_SOFTMAX_H
