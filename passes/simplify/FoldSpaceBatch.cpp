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

/// What stands around a convolution: blocks of space to the batch before it, back behind it.
struct SpaceBatch {
  SmallVector<int64_t> blocks;
  hlo::ReshapeOp splitIn, joined; ///< the first and the last op of it
  int64_t first = 0;              ///< spatial dimension of the convolution that the first block is for
  bool row = false;               ///< the convolution is over one dimension and comes as images of one row
};

std::optional<SpaceBatch> match(hlo::ConvolutionOp op) {
  auto input = cast<RankedTensorType>(op.getLhs().getType()), result = cast<RankedTensorType>(op.getType());
  const int64_t spatial = input.getRank() - 2;
  auto before = op.getLhs().getDefiningOp<hlo::ReshapeOp>();
  auto after = dyn_cast<hlo::ReshapeOp>(*op->user_begin());
  if (!before || !after)
    return std::nullopt;
  SpaceBatch found;
  hlo::ReshapeOp splitOut;
  found.blocks = matchBlocks(before, false, found.splitIn);
  if (found.blocks.empty()) {
    auto source = before.getOperand().getDefiningOp<hlo::ReshapeOp>();
    found.row = source && source->hasOneUse() && isUnitReshape(cast<RankedTensorType>(source.getType()), input) &&
                isUnitReshape(cast<RankedTensorType>(after.getType()), result) && after->hasOneUse();
    if (!found.row)
      return std::nullopt;
    found.first = 1;
    found.blocks = matchBlocks(source, false, found.splitIn);
    after = dyn_cast<hlo::ReshapeOp>(*after->user_begin());
  }
  if (found.blocks.empty() || !after || !after->hasOneUse())
    return std::nullopt;
  auto transpose = dyn_cast<hlo::TransposeOp>(*after->user_begin());
  found.joined = transpose && transpose->hasOneUse() ? dyn_cast<hlo::ReshapeOp>(*transpose->user_begin()) : nullptr;
  if (!found.joined || matchBlocks(found.joined, true, splitOut) != found.blocks || splitOut != after ||
      found.first + static_cast<int64_t>(found.blocks.size()) > spatial)
    return std::nullopt;
  return found;
}

/// Takes a pad with zeros in front of the blocks into the padding; what it pads, or `x`.
Value takePad(const SpaceBatch &around, Value x, hlo::PaddingList &padding) {
  auto pad = x.getDefiningOp<hlo::PadOp>();
  auto onlySpatial = [&](ArrayRef<int64_t> list) {
    for (auto [i, v] : llvm::enumerate(list))
      if (v && (i < 1 || i > around.blocks.size()))
        return false;
    return llvm::all_of(list, [](int64_t v) { return v >= 0; });
  };
  if (!pad || !isSplat(pad.getPaddingValue(), 0) || !onlySpatial(pad.getEdgePaddingLow()) ||
      !onlySpatial(pad.getEdgePaddingHigh()) || !llvm::all_of(pad.getInteriorPadding(), [](int64_t v) { return v == 0; }))
    return x;
  for (size_t i = 0; i < around.blocks.size(); ++i) {
    padding[around.first + i].first += pad.getEdgePaddingLow()[1 + i];
    padding[around.first + i].second += pad.getEdgePaddingHigh()[1 + i];
  }
  return pad.getOperand();
}

/// Takes a crop behind the blocks out of the padding; the crop, or the last op of the blocks. `sizes` become those of
/// its result.
Operation *takeCrop(const SpaceBatch &around, hlo::PaddingList &padding, SmallVector<AffineExpr> &sizes) {
  hlo::ReshapeOp joined = around.joined;
  sizes = hlo::getDims(cast<RankedTensorType>(joined.getType()));
  auto crop = joined->hasOneUse() ? dyn_cast<hlo::SliceOp>(*joined->user_begin()) : nullptr;
  if (!crop || !llvm::all_of(crop.getStrides(), [](int64_t s) { return s == 1; }))
    return joined;
  hlo::PaddingList cropped = padding;
  auto starts = crop.getStartExprs();
  SmallVector<AffineExpr> kept = hlo::getDims(cast<RankedTensorType>(crop.getType()));
  for (size_t i = 0; i < sizes.size(); ++i) {
    std::optional<int64_t> start = hlo::constantValue(starts[i]), end = hlo::constantValue(hlo::simplify(sizes[i] - starts[i] - kept[i]));
    if (!start || !end)
      return joined;
    if (*start == 0 && *end == 0)
      continue;
    if (i < 1 || i > around.blocks.size())
      return joined;
    auto &[low, high] = cropped[around.first + i - 1];
    low -= *start;
    high -= *end;
    // what is cut must be what the padding made
    if (low < 0 || high < 0)
      return joined;
  }
  padding = cropped;
  sizes = kept;
  return crop;
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
  std::optional<SpaceBatch> around = match(op);
  if (!around)
    return false;

  hlo::ConvWindow window;
  window.padding = hlo::getPadding(op.getPaddingAttr(), spatial);
  window.rhsDilation = hlo::getListOr(op.getRhsDilation(), spatial, 1);
  for (auto [i, block] : llvm::enumerate(around->blocks)) {
    window.padding[around->first + i].first *= block;
    window.padding[around->first + i].second *= block;
    window.rhsDilation[around->first + i] *= block;
  }
  Value x = takePad(*around, around->splitIn.getOperand(), window.padding);
  SmallVector<AffineExpr> sizes;
  Operation *last = takeCrop(*around, window.padding, sizes);

  OpBuilder b(op);
  Location loc = op.getLoc();
  AffineExpr one = hlo::constantExpr(b.getContext(), 1);
  if (around->row) {
    SmallVector<AffineExpr> dims = hlo::getDims(cast<RankedTensorType>(x.getType()));
    dims.insert(dims.begin() + 1, one);
    x = hlo::ReshapeOp::create(b, loc, x, dims);
    sizes.insert(sizes.begin() + 1, one);
  }
  auto made = hlo::ConvolutionOp::create(b, loc, x, op.getRhs(), window, op.getDimensionNumbers(), op.getFeatureGroupCount(), 1,
                                         result.getElementType());
  made.setPrecisionConfigAttr(op.getPrecisionConfigAttr());
  Value y = made.getResult();
  if (cast<RankedTensorType>(y.getType()) != hlo::makeType(sizes, result.getElementType())) {
    made->erase();
    return false;
  }
  if (around->row)
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
