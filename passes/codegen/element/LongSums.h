// Long sums in blocks: what all kernels that add up many numbers have in common. A sum of n numbers one after the other
// loses up to n roundings; here a few dozen go to one accumulator, a few of these to the next, and what those hold is
// added up two by two, as a binary counter carries: some ten and log2(n) roundings more. The order depends on the sizes
// alone.
#ifndef LATHE_PASSES_CODEGEN_ELEMENT_LONGSUMS_H
#define LATHE_PASSES_CODEGEN_ELEMENT_LONGSUMS_H

#include "passes/codegen/element/KernelBuilder.h"

namespace lathe::codegen {

/// How a loop that adds up is cut.
struct SumBlocks {
  int64_t inRow = 64;   ///< additions to one accumulator, one after the other
  int64_t perStep = 1;  ///< those of one step of the loop
  bool inMemory = false; ///< sums of blocks: where the accumulators of one take all registers
  llvm::function_ref<void(mlir::ValueRange)> onLoop = {}; ///< is told what each innermost loop gives
};

/// As KernelBuilder::loop, for accumulators (floats, vectors of them, complex numbers) that each step adds to: `inits` and what the steps
/// add to zero. A loop that is known to be short is emitted as it is.
mlir::SmallVector<mlir::Value>
sumLoop(KernelBuilder &b, mlir::Value lo, mlir::Value hi, int64_t step, mlir::ValueRange inits, const SumBlocks &how,
        llvm::function_ref<mlir::SmallVector<mlir::Value>(mlir::Value, mlir::ValueRange)> body);

/// Running sums in the same order: [lo, hi) in blocks of `span`, one after the other. `block` is told the sum of what comes before one,
/// beginning with `start`, and gives its own. Returns the sum of all.
mlir::SmallVector<mlir::Value>
runningBlocks(KernelBuilder &b, mlir::Value lo, mlir::Value hi, int64_t span, mlir::ValueRange start,
              llvm::function_ref<mlir::SmallVector<mlir::Value>(mlir::Value from, mlir::Value to, mlir::ValueRange before)>
                  block);

/// Whether a reduction's body adds two floats or complex numbers and does nothing else.
bool isFloatSum(mlir::Block &body);

/// Additions to an accumulator in loops of these trip counts, one in the other, as far as they matter to SumBlocks.
int64_t additionsIn(mlir::ValueRange trips);

/// x + y for each accumulator.
mlir::SmallVector<mlir::Value> addAll(KernelBuilder &b, mlir::ValueRange x, mlir::ValueRange y);

} // namespace lathe::codegen

#endif // LATHE_PASSES_CODEGEN_ELEMENT_LONGSUMS_H
