//===- FoldSpaceBatch.cpp - dilated convolutions that were spelt out --------===//
//
// Before: space to batch, a dense convolution, batch to space: how graphs held
// dilated convolutions before kernels knew them. After: one convolution with
// dilated taps, whose padding takes in the pad and the crop around it.
//
//===----------------------------------------------------------------------===//

#include "passes/simplify/Match.h"
#include "passes/simplify/Passes.h"

#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace lathe;

namespace lathe::simplify {
#define GEN_PASS_DEF_HLOFOLDSPACEBATCH
#include "passes/simplify/Passes.h.inc"
} // namespace lathe::simplify

namespace {

/// The block of `reshape(transpose(reshape(x)))` that moves blocks of the dimensions after the first one into the
/// first, x having `rank` dimensions: [n, h/b b, w/b b, c] -> [b b n, h/b, w/b, c]. Empty where it is anything else.
/// `back` looks for the opposite.
SmallVector<int64_t> matchBlocks(hlo::ReshapeOp outer, bool back, hlo::ReshapeOp &inner) {
  auto transpose = outer.getOperand().getDefiningOp<hlo::TransposeOp>();
  inner = transpose ? transpose.getOperand().getDefiningOp<hlo::ReshapeOp>() : nullptr;
  if (!inner || !transpose->hasOneUse() || !inner->hasOneUse())
    return {};
  auto from = cast<RankedTensorType>(inner.getOperand().getType()), split = cast<RankedTensorType>(inner.getType());
  auto to = cast<RankedTensorType>(outer.getType());
  const int64_t rank = from.getRank(), m = split.getRank() - rank;
  if (to.getRank() != rank || m < 1 || m >= rank)
    return {};
  SmallVector<int64_t> order, blocks;
  if (back) {
    order.push_back(m);
    for (int64_t i = 0; i < m; ++i)
      order.append({m + 1 + i, i});
  } else {
    for (int64_t i = 0; i < m; ++i)
      order.push_back(2 * i + 2);
    order.push_back(0);
    for (int64_t i = 0; i < m; ++i)
      order.push_back(2 * i + 1);
  }
  for (int64_t i = m + 1; i < rank; ++i)
    order.push_back(i + m);
  if (transpose.getPermutation() != ArrayRef<int64_t>(order))
    return {};
  // the sizes tell blocks from the rest
  for (int64_t i = 0; i < m; ++i) {
    const int64_t block = split.getDimSize(back ? i : 2 * i + 2);
    if (ShapedType::isDynamic(block))
      return {};
    blocks.push_back(block);
  }
  RankedTensorType small = back ? from : to, large = back ? to : from;
  for (int64_t i = 0; i < rank; ++i) {
    const bool spatial = i >= 1 && i <= m;
    AffineExpr inside = hlo::getDim(split, back ? m + i : spatial ? 2 * i - 1 : i == 0 ? 0 : m + i);
    AffineExpr x = hlo::getDim(large, i), y = hlo::getDim(small, i);
    if (!inside || !x || !y || !hlo::equalDims(inside, i == 0 ? x : y))
      return {};
    if (spatial ? !hlo::equalDims(x, hlo::simplify(y * blocks[i - 1])) : i > 0 && !hlo::equalDims(x, y))
      return {};
  }
  return blocks;
}

/// A reshape that puts in or takes out one dimension of size one behind the first: `small` lacks it.
bool isUnitReshape(RankedTensorType small, RankedTensorType large) {
  if (large.getRank() != small.getRank() + 1 || large.getDimSize(1) != 1)
    return false;
  for (int64_t i = 0; i < small.getRank(); ++i)
    if (!hlo::equalDims(hlo::getDim(small, i), hlo::getDim(large, i ? i + 1 : 0)))
      return false;
  return true;
}

bool fold(hlo::ConvolutionOp op) {
  auto input = cast<RankedTensorType>(op.getLhs().getType()), result = cast<RankedTensorType>(op.getType());
  if (!op->hasOneUse() || !hlo::hasKnownDims(input) || !hlo::hasKnownDims(result) || op.getBatchGroupCount() != 1 ||
      op.getDimensionNumbers() != plainConvDimensions(op.getContext(), input.getRank()))
    return false;
  const int64_t spatial = input.getRank() - 2;
  auto ones = [&](std::optional<ArrayRef<int64_t>> list) {
    return llvm::all_of(hlo::getListOr(list, spatial, 1), [](int64_t v) { return v == 1; });
  };
  if (!ones(op.getWindowStrides()) || !ones(op.getLhsDilation()))
    return false;

  auto before = op.getLhs().getDefiningOp<hlo::ReshapeOp>();
  auto after = dyn_cast<hlo::ReshapeOp>(*op->user_begin());
  if (!before || !after)
    return false;
  // convolutions over one dimension come as images of one row
  hlo::ReshapeOp splitIn, splitOut;
  bool row = false;
  SmallVector<int64_t> blocks = matchBlocks(before, false, splitIn);
  if (blocks.empty()) {
    auto source = before.getOperand().getDefiningOp<hlo::ReshapeOp>();
    row = source && source->hasOneUse() && isUnitReshape(cast<RankedTensorType>(source.getType()), input) &&
          isUnitReshape(cast<RankedTensorType>(after.getType()), result) && after->hasOneUse();
    if (!row)
      return false;
    blocks = matchBlocks(source, false, splitIn);
    after = dyn_cast<hlo::ReshapeOp>(*after->user_begin());
  }
  if (blocks.empty() || !after || !after->hasOneUse())
    return false;
  auto transpose = dyn_cast<hlo::TransposeOp>(*after->user_begin());
  auto joined = transpose && transpose->hasOneUse() ? dyn_cast<hlo::ReshapeOp>(*transpose->user_begin()) : nullptr;
  if (!joined || matchBlocks(joined, true, splitOut) != blocks || splitOut != after)
    return false;
  const int64_t first = row ? 1 : 0; // spatial dimension of the convolution that the first block is for
  if (first + static_cast<int64_t>(blocks.size()) > spatial)
    return false;

  // the pad and the crop around it
  Value x = splitIn.getOperand();
  hlo::PaddingList padding = hlo::getPadding(op.getPaddingAttr(), spatial);
  SmallVector<int64_t> dilation = hlo::getListOr(op.getRhsDilation(), spatial, 1);
  for (auto [i, block] : llvm::enumerate(blocks)) {
    padding[first + i].first *= block;
    padding[first + i].second *= block;
    dilation[first + i] *= block;
  }
  auto onlySpatial = [&](ArrayRef<int64_t> list) {
    for (auto [i, v] : llvm::enumerate(list))
      if (v && (i < 1 || i > blocks.size()))
        return false;
    return llvm::all_of(list, [](int64_t v) { return v >= 0; });
  };
  if (auto pad = x.getDefiningOp<hlo::PadOp>();
      pad && isSplat(pad.getPaddingValue(), 0) && onlySpatial(pad.getEdgePaddingLow()) && onlySpatial(pad.getEdgePaddingHigh()) &&
      llvm::all_of(pad.getInteriorPadding(), [](int64_t v) { return v == 0; })) {
    for (size_t i = 0; i < blocks.size(); ++i) {
      padding[first + i].first += pad.getEdgePaddingLow()[1 + i];
      padding[first + i].second += pad.getEdgePaddingHigh()[1 + i];
    }
    x = pad.getOperand();
  }
  auto shape = cast<RankedTensorType>(joined.getType());
  Operation *last = joined;
  SmallVector<AffineExpr> sizes = hlo::getDims(shape);
  if (auto crop = joined->hasOneUse() ? dyn_cast<hlo::SliceOp>(*joined->user_begin()) : nullptr) {
    hlo::PaddingList cropped = padding;
    bool fits = llvm::all_of(crop.getStrides(), [](int64_t s) { return s == 1; });
    auto starts = crop.getStartExprs();
    SmallVector<AffineExpr> kept = hlo::getDims(cast<RankedTensorType>(crop.getType()));
    for (int64_t i = 0; i < shape.getRank() && fits; ++i) {
      std::optional<int64_t> start = hlo::constantValue(starts[i]), end = hlo::constantValue(hlo::simplify(sizes[i] - starts[i] - kept[i]));
      fits = start && end;
      if (!fits || (*start == 0 && *end == 0))
        continue;
      fits = i >= 1 && i <= static_cast<int64_t>(blocks.size());
      if (!fits)
        break;
      auto &[low, high] = cropped[first + i - 1];
      low -= *start;
      high -= *end;
      // what is cut must be what the padding made
      fits = low >= 0 && high >= 0;
    }
    if (fits) {
      padding = cropped;
      sizes = kept;
      last = crop;
    }
  }

  OpBuilder b(op);
  Location loc = op.getLoc();
  auto source = cast<RankedTensorType>(x.getType());
  AffineExpr one = hlo::constantExpr(b.getContext(), 1);
  if (row) {
    SmallVector<AffineExpr> dims = hlo::getDims(source);
    dims.insert(dims.begin() + 1, one);
    x = hlo::ReshapeOp::create(b, loc, x, dims);
    sizes.insert(sizes.begin() + 1, one);
  }
  hlo::ConvWindow window;
  window.padding = padding;
  window.rhsDilation = dilation;
  auto made = hlo::ConvolutionOp::create(b, loc, x, op.getRhs(), window, op.getDimensionNumbers(), op.getFeatureGroupCount(), 1,
                                         result.getElementType());
  made.setPrecisionConfigAttr(op.getPrecisionConfigAttr());
  Value y = made.getResult();
  if (cast<RankedTensorType>(y.getType()) != hlo::makeType(sizes, result.getElementType())) {
    made->erase();
    return false;
  }
  if (row)
    y = hlo::ReshapeOp::create(b, loc, y, hlo::getDims(cast<RankedTensorType>(last->getResult(0).getType())));
  last->getResult(0).replaceAllUsesWith(y);
  return true;
}

struct HloFoldSpaceBatch : simplify::impl::HloFoldSpaceBatchBase<HloFoldSpaceBatch> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<hlo::ConvolutionOp> found;
    getOperation()->walk([&](hlo::ConvolutionOp op) { found.push_back(op); });
    for (hlo::ConvolutionOp op : found)
      numFolded += fold(op);
  }
};

} // namespace
