// Kernels that run strip by strip so that what is between them stays in the cache.
#ifndef LATHE_PASSES_CODEGEN_CPU_CHAIN_H
#define LATHE_PASSES_CODEGEN_CPU_CHAIN_H

#include "dialects/kernel/Kernel.h"
#include "passes/codegen/cpu/Window.h"

namespace lathe::cpu {

/// An image's rows of pixels through a product, a strip of tiles at a time, and the rows of the convolution's
/// result that are complete with each.
struct Strips {
  int64_t height, width, outHeight, stride, padLow, reach;
  RowTiles tiles; ///< over the pixels of an image
  int64_t count, tilesEach;

  Strips(kernel::DepthwiseConvOp conv, const RowTiles &tiles, int64_t count);
  /// The tile and the pixel that a strip begins with.
  mlir::Value firstTile(KernelBuilder &b, mlir::Value strip) const;
  mlir::Value firstPixel(KernelBuilder &b, mlir::Value strip) const {
    return tiles.rowAt(b, firstTile(b, strip));
  }
  /// The first row of the result that the strips before do not complete, and the first row of pixels that it
  /// reads.
  mlir::Value firstResult(KernelBuilder &b, mlir::Value strip) const;
  mlir::Value firstRead(KernelBuilder &b, mlir::Value strip) const;
  /// Pixels before those of a strip that it may read.
  int64_t keptPixels() const { return count > 1 ? reach * width : 0; }
};

/// Columns of the product that are done at a time: a panel of its right operand, or all of them.
int64_t chunkColumns(kernel::DotOp dot);

/// kernel.chain (KernelChain.cpp).
mlir::LogicalResult emitChain(kernel::ChainOp op, KernelBuilder &b);

/// The rows [b.begin, b.end) of all images of a depthwise convolution whose input's pointer points to a slice
/// (KernelWindow.cpp). Sets the attributes of the function for the whole of it.
mlir::LogicalResult emitDepthwiseRows(kernel::DepthwiseConvOp conv, KernelBuilder &b,
                                      const ChannelSlice &slice);

} // namespace lathe::cpu

#endif
