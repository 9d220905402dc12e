// Kernels that run strip by strip so that what is between them stays in the cache.
#ifndef LATHE_PASSES_CODEGEN_CPU_PASSES_CHAIN_H
#define LATHE_PASSES_CODEGEN_CPU_PASSES_CHAIN_H

#include "dialects/kernel/Kernel.h"
#include "passes/codegen/cpu/conv/Window.h"

namespace lathe::cpu {

/// Rows of the image from the first to the last that a row of the result reads.
int64_t reachOfRows(kernel::DepthwiseConvOp conv);

/// Columns of the product that are done at a time: a panel of its right operand, or all of them.
int64_t chunkColumns(kernel::DotOp dot);

/// kernel.chain (EmitChain.cpp).
mlir::LogicalResult emitChain(kernel::ChainOp op, KernelBuilder &b);

/// The rows [b.begin, b.end) of all images of a depthwise convolution whose input's pointer points to a slice
/// (EmitDepthwise.cpp). Sets the attributes of the function for the whole of it.
mlir::LogicalResult emitDepthwiseRows(kernel::DepthwiseConvOp conv, KernelBuilder &b,
                                      const ChannelSlice &slice);

} // namespace lathe::cpu

#endif
