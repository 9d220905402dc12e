//===- ScaleWeights.cpp - per-image factors into the weights ----------------===//
//
// Before: dot(reshape(mul(x, broadcast(s))), W). After: dot(reshape(x), mul(W, s)), an image at a time where there are
// several. What squeeze-and-excitation multiplies is mostly much larger than the weights behind it.
//
//===----------------------------------------------------------------------===//

#include "passes/simplify/Match.h"
#include "passes/simplify/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace lathe;

namespace lathe::simplify {
#define GEN_PASS_DEF_HLOSCALEWEIGHTS
#include "passes/simplify/Passes.h.inc"
} // namespace lathe::simplify

namespace {

struct Scaled {
  Value input;  ///< [images, ..., channels]
  Value factor; ///< [images, channels], or [channels] for one image
  int64_t images = 1, pixels = 1;
};

/// The factors of a broadcast along the first and last dimension only.
bool isPerImage(hlo::BroadcastInDimOp broadcast, RankedTensorType type) {
  auto from = cast<RankedTensorType>(broadcast.getOperand().getType());
  bool channels = false, images = type.getDimSize(0) == 1;
  for (auto [i, d] : llvm::enumerate(broadcast.getBroadcastDimensions())) {
    if (from.getDimSize(i) == 1)
      continue;
    if (from.getDimSize(i) != type.getDimSize(d) || (d != 0 && d != type.getRank() - 1))
      return false;
    (d == 0 ? images : channels) = true;
  }
  return channels && images;
}

std::optional<Scaled> matchScaled(hlo::DotGeneralOp op) {
  auto lhs = cast<RankedTensorType>(op.getLhs().getType()), rhs = cast<RankedTensorType>(op.getRhs().getType());
  auto dims = op.getDotDimensionNumbers();
  if (lhs.getRank() != 2 || rhs.getRank() != 2 || !lhs.hasStaticShape() || !rhs.hasStaticShape() ||
      !dims.getLhsBatchingDimensions().empty() || dims.getLhsContractingDimensions() != ArrayRef<int64_t>{1} ||
      dims.getRhsContractingDimensions() != ArrayRef<int64_t>{0} || !lhs.getElementType().isF32() ||
      !rhs.getElementType().isF32() || !op.getLhs().hasOneUse())
    return std::nullopt;
  Value v = op.getLhs();
  if (auto reshape = v.getDefiningOp<hlo::ReshapeOp>())
    v = reshape.getOperand();
  auto mul = v.getDefiningOp<hlo::MulOp>();
  auto type = cast<RankedTensorType>(v.getType());
  if (!mul || !mul->hasOneUse() || !type.hasStaticShape() || type.getRank() < 2 || type.getNumElements() == 0 ||
      type.getShape().back() != lhs.getDimSize(1))
    return std::nullopt;
  for (unsigned i : {1u, 0u}) {
    auto broadcast = mul->getOperand(i).getDefiningOp<hlo::BroadcastInDimOp>();
    if (!broadcast || !isPerImage(broadcast, type))
      continue;
    Scaled s;
    s.input = mul->getOperand(1 - i);
    s.factor = broadcast.getOperand();
    s.images = type.getDimSize(0);
    s.pixels = lhs.getDimSize(0) / s.images;
    // constants are another pass's; the products with the weights must cost clearly less than those with the image
    bool cheap = s.pixels >= 2 * rhs.getDimSize(1) && s.pixels >= 64;
    if (cheap && !constantValue(s.factor))
      return s;
  }
  return std::nullopt;
}

void rewrite(hlo::DotGeneralOp op, const Scaled &s) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  auto rhs = cast<RankedTensorType>(op.getRhs().getType());
  Type element = rhs.getElementType();
  int64_t channels = rhs.getDimSize(0), outputs = rhs.getDimSize(1);
  auto reshape = [&](Value v, ArrayRef<int64_t> shape) {
    return hlo::ReshapeOp::create(b, loc, RankedTensorType::get(shape, element), v).getResult();
  };
  auto spread = [&](Value v, RankedTensorType type, ArrayRef<int64_t> dims) {
    return v.getType() == type
               ? v
               : hlo::BroadcastInDimOp::create(b, loc, type, v, b.getDenseI64ArrayAttr(dims)).getResult();
  };
  bool single = s.images == 1;
  auto weightType = single ? rhs : RankedTensorType::get({s.images, channels, outputs}, element);
  Value factor = single ? spread(reshape(s.factor, {channels}), weightType, {0})
                        : spread(reshape(s.factor, {s.images, channels}), weightType, {0, 1});
  Value weights = hlo::MulOp::create(b, loc, weightType, single ? op.getRhs() : spread(op.getRhs(), weightType, {1, 2}), factor);
  if (single) {
    op.setOperand(0, reshape(s.input, {s.pixels, channels}));
    op.setOperand(1, weights);
    return;
  }
  auto dims = hlo::DotDimensionNumbersAttr::get(b.getContext(), {0}, {0}, {2}, {1});
  Value x = reshape(s.input, {s.images, s.pixels, channels});
  auto type = RankedTensorType::get({s.images, s.pixels, outputs}, element);
  Value made = hlo::DotGeneralOp::create(b, loc, type, x, weights, dims, op.getPrecisionConfigAttr());
  op.getResult().replaceAllUsesWith(reshape(made, {s.images * s.pixels, outputs}));
  op.erase();
}

struct HloScaleWeights : simplify::impl::HloScaleWeightsBase<HloScaleWeights> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<hlo::DotGeneralOp> found;
    getOperation()->walk([&](hlo::DotGeneralOp op) { found.push_back(op); });
    for (hlo::DotGeneralOp op : found)
      if (std::optional<Scaled> scaled = matchScaled(op)) {
        rewrite(op, *scaled);
        ++numScaled;
      }
  }
};

} // namespace
