// The generator of kernel.conv: EmitConv.cpp plans and fills, EmitConvSums.cpp has the sums that stay in scratch.
#ifndef LATHE_PASSES_CODEGEN_CPU_CONV_CONVEMITTER_H
#define LATHE_PASSES_CODEGEN_CPU_CONV_CONVEMITTER_H

#include "passes/codegen/cpu/conv/Conv.h"
#include "passes/codegen/cpu/layout/Layout.h"

namespace lathe::cpu {

/// One spatial dimension.
struct Spatial {
  mlir::AffineExpr inExpr, outExpr, taps;
  mlir::Value in, out, tapCount;
  int64_t stride = 1, padLow = 0, padHigh = 0, inDilation = 1, tapDilation = 1;
  int64_t resultDim = -1; // -1: a dimension that only exists here
  // of the buffer the tiles read
  mlir::AffineExpr extent; // of the slab
  mlir::Value extentValue, step, position;
};

/// What kernel.conv and kernel.depthwise_conv have in common.
struct ConvAttributes {
  mlir::RankedTensorType input, filter, acc;
  mlir::ArrayRef<int64_t> strides, padding, inDilation, tapDilation, kernelShape;
  int64_t groups = 1, batchGroups = 1;
  std::optional<int64_t> panel;
  bool spread = false;

  KernelPlan plan;

  explicit ConvAttributes(mlir::Operation *o) : plan(KernelPlan::of(o)) {
    auto read = [&](auto op) {
      input = mlir::cast<mlir::RankedTensorType>(op.getInput().getType());
      filter = mlir::cast<mlir::RankedTensorType>(op.getFilter().getType());
      acc = op.getAccType();
      strides = op.getStrides();
      padding = op.getPadding();
      inDilation = op.getLhsDilation();
      tapDilation = op.getRhsDilation();
      groups = op.getGroups();
      batchGroups = op.getBatchGroups();
    };
    if (auto conv = mlir::dyn_cast<kernel::ConvOp>(o)) {
      read(conv);
      if (panelColumns(conv)) {
        panel = *panelColumns(conv);
        kernelShape = *conv.getKernelShape();
      }
      spread = isSpread(conv);
    } else {
      read(mlir::cast<kernel::DepthwiseConvOp>(o));
      groups = input.getShape().back();
    }
  }
};

class ConvEmitter {
public:
  ConvEmitter(mlir::Operation *op, KernelBuilder &b) : op(op), attributes(op), b(b), epilogue(b, op) {}
  mlir::LogicalResult emit();

private:
  void readOp();
  bool isPointwise() const;
  mlir::LogicalResult emitPointwise();
  bool isGathered() const;
  void fillRow(mlir::Value row, mlir::Value to);
  void plan();
  bool readsInPlace() const;
  void planScratch();
  void emitGroup(mlir::Value group, mlir::Value firstPanel, mlir::Value lastPanel);
  void fillSlab();
  void fillSlabRow(mlir::Value from, mlir::Value to);
  void emitPanel(mlir::Value groupInPanel, mlir::Value panel, TileShape shape, mlir::Value validColumns);
  int64_t reach(const Spatial &d, int64_t results) const;
  std::pair<mlir::Value, mlir::Value> windowOf(unsigned height, mlir::Value y, mlir::Value x, mlir::Value inImage);
  mlir::SmallVector<TileOperands::Stream, 2> streamsOf(TileShape shape, mlir::Value y, mlir::Value x, mlir::Value column);
  void emitSpread(TileShape shape, TileOperands operands, mlir::ArrayRef<ReductionLoop> loops, mlir::Value a);
  bool reachesOut() const;
  void sumTrimmed(TileShape shape, TileOperands operands, mlir::Value a);
  void sumBlocked(TileShape shape, TileOperands operands, mlir::SmallVector<ReductionLoop> loops, mlir::Value a);
  void emitBlocked(TileShape shape, TileOperands operands, mlir::SmallVector<ReductionLoop> loops, mlir::Value a, mlir::Value column,
                   mlir::Value validColumns);
  mlir::SmallVector<mlir::Value> startOf(const TileShape &shape) const;
  mlir::SmallVector<mlir::Value> resultIndex(mlir::Value row, mlir::Value pixel, mlir::Value column);
  /// Of the sums that a spread filter gives, one row a pixel.
  TileShape sumsShape() const {
    unsigned lanes = tile.lanes;
    while (lanes > 4 && *groupColumns <= lanes / 2)
      lanes /= 2;
    return {1, static_cast<unsigned>(llvm::divideCeil(*groupColumns, lanes)), lanes};
  }

  mlir::Operation *op;
  ConvAttributes attributes;
  KernelBuilder &b;
  Epilogue epilogue;
  mlir::LogicalResult ok = mlir::success();

  mlir::RankedTensorType input, filter, acc;
  mlir::Type aElem, bElem, accElem;
  mlir::SmallVector<Spatial> dims; // row dimension and pixel dimension last
  mlir::SmallVector<mlir::AffineExpr> accDims;
  mlir::AffineExpr images;
  mlir::Value channels, groupChannels, outChannels;
  mlir::AffineExpr channelsExpr, groupChannelsExpr;
  std::optional<int64_t> groupColumns; // output channels of a group
  mlir::Value groupColumnsValue;
  int64_t groups = 1, batchGroups = 1;

  TileShape tile;
  RowTiles pixels;
  OperandFormat format;
  ConvRuns runs;       // of a packed filter in groups
  mlir::Type leftElem; // of the input in scratch
  mlir::Value head;    // of the panel being multiplied: what its sums start with, or null
  bool packed = false, slab = false, packB = false, blocked = false, spread = false, trimmed = false, bordered = false;
  int64_t blockRows = 1, tailColumns = 0;
  mlir::AffineExpr rowBlocks, depth;
  mlir::Value panelsPerGroup, panels, depthValue, scratchB, scratchC, scratchSums, pixelStep;
  mlir::AffineExpr positions; // along a row, for which tiles are made
  mlir::AffineExpr pixelExpr; // elements from pixel to pixel in the slab

  // of the group being emitted
  mlir::Value image, inputImage, batchGroup, firstRow, rowCount, aBase;
};

} // namespace lathe::cpu

#endif
