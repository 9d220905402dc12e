// Windows over images with the lanes along the channels: what depthwise convolutions (EmitDepthwise.cpp) and pooling
// (EmitPool.cpp) share. A unit is one row of result pixels. Taps outside of the image are left out by the bounds of
// the loops over the window, so that no padded copy is needed.
#ifndef LATHE_PASSES_CODEGEN_CPU_CONV_WINDOW_H
#define LATHE_PASSES_CODEGEN_CPU_CONV_WINDOW_H

#include "dialects/kernel/Kernel.h"
#include "passes/codegen/cpu/product/Tile.h"

namespace lathe::cpu {

struct WindowDim : WindowSteps {
  mlir::AffineExpr inExpr, outExpr;
  mlir::Value in, out, taps, inStep;
  std::optional<int64_t> inSize, outSize, tapSize;
  Position position; // of the result being computed
};

/// Some channels of images, in memory by themselves: `count` of them from `first` on, from row `firstRow` of an image on.
struct ChannelSlice {
  mlir::Value firstRow, first;
  int64_t count;
};

class WindowKernel {
protected:
  WindowKernel(mlir::Operation *op, KernelBuilder &b) : op(op), b(b), epilogue(b, op) {}

  /// Input, dimensions and sizes of a convolution; returns the type of its filter.
  mlir::RankedTensorType readDepthwise(kernel::DepthwiseConvOp conv);
  /// Sizes of the dimensions, whose taps and steps are set, from the types of the input and the accumulators.
  void readTypes(int64_t multiplier);
  void setPosition(WindowDim &d, mlir::Value result) { d.position = d.at(b, result, d.taps, d.in); }
  /// The number of units, their work, and what setRow needs.
  void prepareRows();
  void setRow(mlir::Value unit);
  /// Sets of L1 that the lines of one vector of channels fall into.
  int64_t setsUsed() const;
  /// Vectors of the result's channels, up to `maxVecs` at a time, then narrower ones, then single channels.
  void forEachChannel(unsigned maxVecs,
                      mlir::function_ref<void(mlir::Value channel, unsigned vecs, unsigned lanes)> emit);
  using TileOfPixels = mlir::function_ref<void(mlir::Value x, unsigned height, int64_t known)>;
  /// The tiles of a row of pixels of static size. `known`: x if static, else -1 and all taps are inside.
  void forEachTile(const RowTiles &tiles, TileOfPixels emit);
  /// Rows whose input half of L2 has room for. Static sizes.
  int64_t rowsInL2() const;
  /// All units: a tile of a vector of channels for `together` rows one after the other, before the next tile.
  void emitRowsTogether(const RowTiles &tiles, int64_t together,
                        mlir::function_ref<void(mlir::Value x, unsigned height, int64_t known, mlir::Value channel,
                                                unsigned lanes)>
                            emit);
  /// Loops over the taps of the first `numDims` dimensions that are inside the image. Where accumulators add up (floats), long sums
  /// are made in blocks; `additions`: those of a call of `body` to one of them.
  mlir::SmallVector<mlir::Value>
  overTaps(unsigned numDims, mlir::SmallVector<mlir::Value> accs, mlir::Value offset, mlir::Value tap,
           mlir::function_ref<mlir::SmallVector<mlir::Value>(mlir::Value offset, mlir::Value tap,
                                                             mlir::SmallVector<mlir::Value>)>
               body,
           bool adds, int64_t additions = 1);
  /// The epilogue of a tile's pixels, from x on in the row, each with the vectors of channels from `channel` on.
  void finishPixels(TileShape shape, mlir::Value x, mlir::Value channel, mlir::ValueRange accs);
  /// `lanes` result channels' inputs, `offset` being that of the pixel.
  mlir::Value loadInput(mlir::Value offset, mlir::Value channel, unsigned lanes);

  mlir::Operation *op;
  KernelBuilder &b;
  Epilogue epilogue;
  mlir::LogicalResult ok = mlir::success();
  mlir::RankedTensorType input, acc;
  mlir::Type aElem, accElem;
  mlir::SmallVector<WindowDim> dims; // pixel dimension last
  mlir::Value inPixel,
      outChannels; ///< elements from one pixel of the input to the next; channels of the result
  std::optional<int64_t> channelCount; // of the result that are computed
  int64_t multiplier = 1;
  mlir::Value imageOffset, imageElements;
  mlir::SmallVector<mlir::Value> unitSizes; // of the dimensions that count units
  std::optional<ChannelSlice> slice; ///< what the input's pointer points to, if not all of it; set before readTypes
  mlir::Value firstChannel;          ///< of the result that is computed
  mlir::SmallVector<mlir::Value> outIndex;
};

} // namespace lathe::cpu

#endif
