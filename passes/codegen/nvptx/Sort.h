// What nvptx-split-sorts and the kernels of sorts (Sort.cpp) have in common.
#ifndef LATHE_PASSES_CODEGEN_NVPTX_SORT_H
#define LATHE_PASSES_CODEGEN_NVPTX_SORT_H

#include "dialects/hlo/Hlo.h"

namespace lathe::nvptx {

/// Unit attribute of an hlo.sort: both halves of each line, of an even length, are sorted already.
constexpr llvm::StringLiteral halvesAttribute = "kernel.sorted_halves";
/// Elements of a line that a block sorts.
constexpr int64_t longestBlockSort = 2048;
/// The dimension along which lines are sorted; there must be one.
int64_t sortedDim(hlo::SortOp s);

} // namespace lathe::nvptx

#endif
