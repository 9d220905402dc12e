// Which convolutions take which form, and how their sums are cut: what packing and the generators agree on.
#ifndef LATHE_PASSES_CODEGEN_CPU_CONV_CONV_H
#define LATHE_PASSES_CODEGEN_CPU_CONV_CONV_H

#include "passes/codegen/cpu/product/Format.h"

namespace lathe::cpu {

/// Rows of pixels no longer, and no fewer output channels, make a product of gathered windows.
constexpr int64_t gatheredWidth = 10, gatheredChannels = 64;

/// Whether the windows of a convolution with this result are copied to the rows of a product: images with short rows
/// would make low register tiles, and with many output channels the copy costs next to nothing.
bool gathersWindows(mlir::RankedTensorType acc, mlir::ArrayRef<int64_t> taps, int64_t allGroups);

/// The rows from which the tiles of a convolution, not packed yet, are cut, if known: the pixels of one image row, or all of them where the
/// convolution becomes a product.
std::optional<int64_t> rowsOfTiles(kernel::ConvOp op);

/// Where a convolution with few output channels has the taps of a row as columns of its tiles: the share of
/// the time that it would take otherwise.
std::optional<double> spreadShare(kernel::ConvOp op, const KernelTarget &target);

/// Whether the vectors of a convolution hold channels of several groups: see EmitGroupedConv.cpp. Its filter stays as it is.
bool hasNarrowGroups(kernel::ConvOp op, const KernelTarget &target);
mlir::LogicalResult emitGroupedConv(kernel::ConvOp op, KernelBuilder &b);

/// Whether a depthwise convolution is done as windows over images, as in Window.h: images without zeros
/// between the pixels.
bool hasWindows(kernel::DepthwiseConvOp conv);

/// How the sum of a convolution is cut into runs of elements that lie together in the input. In panels of groups each run is padded
/// by zeros. `isStatic`: whether all of that is known.
struct ConvRuns {
  bool isStatic = false;
  bool merged = false; ///< a run is a row of taps, otherwise the channels of one
  int64_t run = 0, runs = 0;
  int64_t depth(const OperandFormat &format) const { return runs * format.paddedDepth(run); }
};
ConvRuns convRuns(kernel::ConvOp op);

/// Whether a convolution of bf16 in pairs is a product of rows, one for each window, copied: where `gathersWindows`, or where pairs
/// would end in the middle of a run (what lies behind it may be no number, and 0 times that is none).
bool gathersPairs(kernel::ConvOp op);

} // namespace lathe::cpu

#endif
