// What nvptx-split-sorts and the kernels of sorts (Sort.cpp) have in common.
#ifndef LATHE_PASSES_CODEGEN_NVPTX_SORT_H
#define LATHE_PASSES_CODEGEN_NVPTX_SORT_H

#include "dialects/hlo/Hlo.h"

namespace lathe::nvptx {

/// Unit attribute of an hlo.sort: both halves of each line, of an even length, are sorted already.
constexpr llvm::StringLiteral halvesAttribute = "kernel.sorted_halves";
/// Unit attribute of an hlo.sort of lines of any length: the second half of its operands are those of the first once more, which its
/// comparator does not look at, so that a kernel may use their results for what it has in between.
constexpr llvm::StringLiteral spaceAttribute = "kernel.sort_space";
/// Elements of a line that a block sorts in shared memory.
constexpr int64_t longestBlockSort = 2048;
/// The dimension along which lines are sorted; there must be one.
int64_t sortedDim(hlo::SortOp s);

} // namespace lathe::nvptx

#endif
