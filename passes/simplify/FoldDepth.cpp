//===- FoldDepth.cpp - volumes as images with more channels -----------------===//
//
// Before: a convolution over depth, height and width with kd x 3 x 3 taps and no
// strides. After: one over images, whose channels are those of kd neighbouring
// slices: Winograd's algorithm for images does it in less than half of the
// multiplications.
//
//===----------------------------------------------------------------------===//

#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Shape.h"
#include "passes/simplify/Match.h"
#include "passes/simplify/Passes.h"

using namespace mlir;
using namespace lathe;

namespace lathe::simplify {
#define GEN_PASS_DEF_HLOFOLDDEPTH
#include "passes/simplify/Passes.h.inc"
} // namespace lathe::simplify

namespace {

// Fewer channels than these, or smaller images, leave the transforms to decide.
constexpr int64_t leastInputs = 16, leastOutputs = 16, leastPixels = 64;

bool foldDepth(hlo::ConvolutionOp op) {
  auto input = cast<RankedTensorType>(op.getLhs().getType()), filter = cast<RankedTensorType>(op.getRhs().getType());
  auto result = cast<RankedTensorType>(op.getType());
  constexpr size_t spatial = 3;
  if (input.getRank() != 5 || !input.getElementType().isF32() || !result.getElementType().isF32() || !filter.hasStaticShape() ||
      !hlo::hasKnownDims(input) || !hlo::hasKnownDims(result) || op.getWindowReversal())
    return false;
  if (op.getDimensionNumbers() != plainConvDimensions(op.getContext(), 5) || op.getFeatureGroupCount() != 1 || op.getBatchGroupCount() != 1)
    return false;
  auto ones = [&](std::optional<ArrayRef<int64_t>> list) {
    return llvm::all_of(hlo::getListOr(list, spatial, 1), [](int64_t v) { return v == 1; });
  };
  if (!ones(op.getWindowStrides()) || !ones(op.getLhsDilation()) || !ones(op.getRhsDilation()))
    return false;
  for (int64_t i = 1; i < 5; ++i)
    if (input.isDynamicDim(i) || result.isDynamicDim(i) || input.getDimSize(i) == 0 || result.getDimSize(i) == 0)
      return false;
  const int64_t taps = filter.getDimSize(0), channels = filter.getDimSize(3), outputs = filter.getDimSize(4);
  if (taps < 2 || filter.getDimSize(1) != 3 || filter.getDimSize(2) != 3 || channels < leastInputs || outputs < leastOutputs ||
      result.getDimSize(2) * result.getDimSize(3) < leastPixels)
    return false;

  OpBuilder b(op);
  Location loc = op.getLoc();
  hlo::PaddingList padding = hlo::getPadding(op.getPaddingAttr(), spatial);
  Value x = op.getLhs();
  SmallVector<AffineExpr> dims = hlo::getDims(input);
  auto [low, high] = padding[0];
  if (low || high) {
    SmallVector<int64_t> before(5, 0), after(5, 0);
    before[1] = low;
    after[1] = high;
    x = hlo::PadOp::create(b, loc, x, hlo::makeScalar(b, loc, 0.0, input.getElementType()), before, after, SmallVector<int64_t>(5, 0));
  }
  const int64_t depth = result.getDimSize(1);
  SmallVector<Value> slices;
  for (int64_t t = 0; t < taps; ++t) {
    SmallVector<AffineExpr> starts(5, hlo::constantExpr(b.getContext(), 0)), limits(dims);
    starts[1] = hlo::constantExpr(b.getContext(), t);
    limits[1] = hlo::constantExpr(b.getContext(), t + depth);
    slices.push_back(hlo::SliceOp::create(b, loc, x, starts, limits, SmallVector<int64_t>(5, 1)));
  }
  Value joined = hlo::ConcatenateOp::create(b, loc, slices, 4);
  AffineExpr images = hlo::simplify(dims[0] * depth), deep = hlo::constantExpr(b.getContext(), taps * channels);
  Value flat = hlo::ReshapeOp::create(b, loc, joined, ArrayRef<AffineExpr>{images, dims[2], dims[3], deep});
  Type element = filter.getElementType();
  Value w = hlo::TransposeOp::create(b, loc, RankedTensorType::get({3, 3, taps, channels, outputs}, element), op.getRhs(),
                                     b.getDenseI64ArrayAttr({1, 2, 0, 3, 4}));
  w = hlo::ReshapeOp::create(b, loc, w, ArrayRef<int64_t>{3, 3, taps * channels, outputs});
  hlo::ConvWindow window;
  window.padding = {padding[1], padding[2]};
  auto made = hlo::ConvolutionOp::create(b, loc, flat, w, window, plainConvDimensions(op.getContext(), 4), 1, 1, result.getElementType());
  made.setPrecisionConfigAttr(op.getPrecisionConfigAttr());
  Value y = hlo::ReshapeOp::create(b, loc, made, hlo::getDims(result));
  op.getResult().replaceAllUsesWith(y);
  op.erase();
  return true;
}

struct FoldDepth : simplify::impl::HloFoldDepthBase<FoldDepth> {
  using HloFoldDepthBase::HloFoldDepthBase;
  void runOnOperation() override {
    SmallVector<hlo::ConvolutionOp> found;
    getOperation()->walk([&](hlo::ConvolutionOp op) { found.push_back(op); });
    for (hlo::ConvolutionOp op : found)
      numFolded += foldDepth(op);
  }
};

} // namespace
