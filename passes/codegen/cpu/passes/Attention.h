// Attention as one kernel: scores, what their rows become, and the product with the values.
#ifndef LATHE_PASSES_CODEGEN_CPU_PASSES_ATTENTION_H
#define LATHE_PASSES_CODEGEN_CPU_PASSES_ATTENTION_H

#include "dialects/kernel/Kernel.h"
#include "passes/codegen/cpu/Emit.h"

namespace lathe::cpu {

/// Elements from a row of scores in scratch to the next one: an odd number of cache lines, so that the rows
/// of a register tile fall in different sets of the first cache.
int64_t scoreStride(int64_t columns);

/// kernel.attention (EmitAttention.cpp).
mlir::LogicalResult emitAttention(kernel::AttentionOp op, KernelBuilder &b);

} // namespace lathe::cpu

#endif
