// Kernels that run strip by strip so that what is between them stays in the cache.
#ifndef LATHE_PASSES_CODEGEN_CPU_CHAIN_H
#define LATHE_PASSES_CODEGEN_CPU_CHAIN_H

#include "dialects/kernel/Kernel.h"
#include "passes/codegen/cpu/KernelCodegen.h"

namespace lathe::cpu {

/// Rows of the input [n, h, w, c] that `rows` rows of the convolution's result need.
int64_t inputRows(kernel::DepthwiseConvOp conv, int64_t rows);

/// kernel.chain (KernelChain.cpp).
mlir::LogicalResult emitChain(kernel::ChainOp op, KernelBuilder &b);

/// The rows [b.begin, b.end) of all images of a depthwise convolution whose input's pointer points to element `first`
/// (KernelWindow.cpp). Sets the attributes of the function for the whole of it.
mlir::LogicalResult emitDepthwiseRows(kernel::DepthwiseConvOp conv, KernelBuilder &b, mlir::Value first);

} // namespace lathe::cpu

#endif
