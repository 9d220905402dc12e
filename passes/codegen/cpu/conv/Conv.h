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

/// What keeps a convolution from having the taps of a row as columns of its tiles, as one with few output channels has; else sets
/// `share`, of the time that it would take otherwise.
WhyNot whyNotSpread(kernel::ConvOp op, const KernelTarget &target, double &share);

/// What keeps the vectors of a convolution from holding channels of several groups: see EmitGroupedConv.cpp. Its filter stays as it is.
WhyNot whyNotNarrowGroups(kernel::ConvOp op, const KernelTarget &target);
inline bool hasNarrowGroups(kernel::ConvOp op, const KernelTarget &target) { return whyNotNarrowGroups(op, target).takes(); }
mlir::LogicalResult emitGroupedConv(kernel::ConvOp op, KernelBuilder &b);

/// What keeps a depthwise convolution from being done as windows over images, as in Window.h: images without zeros
/// between the pixels.
WhyNot whyNotWindows(kernel::DepthwiseConvOp conv);
inline bool hasWindows(kernel::DepthwiseConvOp conv) { return whyNotWindows(conv).takes(); }

/// What keeps a depthwise convolution from multiplying several bytes of a row at once: see EmitByteWindows.cpp.
WhyNot whyNotByteWindows(kernel::DepthwiseConvOp conv, const KernelTarget &target);
/// On such a convolution, and on one that `takesBorder`, an i64: the number outside of its images, where that is not 0.
constexpr const char *padValueAttr = "kernel.pad_value";
int64_t padValueOf(mlir::Operation *conv);
/// Whether a dense convolution with padding, packed, copies rows of an image of bytes, with a border of any number around them.
bool takesBorder(kernel::ConvOp conv, const KernelTarget &target);
mlir::LogicalResult emitByteWindows(kernel::DepthwiseConvOp conv, KernelBuilder &b);

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
