//===- FoldPadding.cpp - pads into the padding of windows -------------------===//
//
// Before: convolution(pad(x, 0)). After: convolution(x) with padding. The same
// for reduce_window where the padding cannot be told from the start value.
//
//===----------------------------------------------------------------------===//

#include "dialects/hlo/MaxNumber.h"
#include "dialects/hlo/Running.h"
#include "passes/simplify/Match.h"
#include "passes/simplify/Passes.h"

#include "mlir/IR/BuiltinOps.h"

#include <cmath>

using namespace mlir;
using namespace lathe;

namespace lathe::simplify {
#define GEN_PASS_DEF_HLOFOLDPADDING
#include "passes/simplify/Passes.h.inc"
} // namespace lathe::simplify

namespace {

bool allOnes(std::optional<ArrayRef<int64_t>> list) {
  return !list || llvm::all_of(*list, [](int64_t v) { return v == 1; });
}

/// Pads at the edges only and never cuts.
bool isPlain(hlo::PadOp pad) {
  auto notBelow = [](ArrayRef<int64_t> list) { return llvm::all_of(list, [](int64_t v) { return v >= 0; }); };
  return notBelow(pad.getEdgePaddingLow()) && notBelow(pad.getEdgePaddingHigh()) &&
         llvm::all_of(pad.getInteriorPadding(), [](int64_t v) { return v == 0; });
}

bool foldConvolution(hlo::ConvolutionOp op) {
  auto pad = op.getLhs().getDefiningOp<hlo::PadOp>();
  if (!pad || !isPlain(pad) || !isSplat(pad.getPaddingValue(), 0) || !allOnes(op.getLhsDilation()))
    return false;
  auto d = op.getDimensionNumbers();
  for (int64_t dim : {d.getInputBatchDimension(), d.getInputFeatureDimension()})
    if (pad.getEdgePaddingLow()[dim] || pad.getEdgePaddingHigh()[dim])
      return false;
  hlo::PaddingList padding = hlo::getPadding(op.getPaddingAttr(), d.getInputSpatialDimensions().size());
  for (auto [i, dim] : llvm::enumerate(d.getInputSpatialDimensions())) {
    // an explicit negative padding would cut what the pad has added
    if (padding[i].first < 0 || padding[i].second < 0)
      return false;
    padding[i].first += pad.getEdgePaddingLow()[dim];
    padding[i].second += pad.getEdgePaddingHigh()[dim];
  }
  op.setPaddingAttr(hlo::makePaddingAttr(op.getContext(), padding));
  op->setOperand(0, pad.getOperand());
  return true;
}

/// Known to be at least zero everywhere.
bool isNotNegative(Value v) {
  Operation *op = v.getDefiningOp();
  while (op && isa<hlo::ReshapeOp, hlo::TransposeOp>(op))
    op = op->getOperand(0).getDefiningOp();
  if (!op)
    return false;
  if (isa<hlo::LogisticOp, hlo::ExpOp>(op))
    return true;
  if (isa<hlo::MaxOp>(op))
    for (Value operand : op->getOperands())
      if (std::optional<double> number = splatNumber(operand))
        return *number >= 0;
  if (auto clamp = dyn_cast<hlo::ClampOp>(op))
    if (std::optional<double> low = splatNumber(clamp.getMin()))
      return *low >= 0;
  return false;
}

bool foldWindow(hlo::ReduceWindowOp op) {
  if (op.getInputs().size() != 1 || hlo::runningWindow(op))
    return false;
  auto pad = op.getInputs().front().getDefiningOp<hlo::PadOp>();
  if (!pad || !isPlain(pad) || !allOnes(op.getBaseDilations()))
    return false;
  int64_t rank = op.getWindowDimensions().size();
  hlo::PaddingList padding = hlo::getPadding(op.getPaddingAttr(), rank);
  for (auto [low, high] : padding)
    if (low < 0 || high < 0)
      return false;
  std::optional<double> value = splatNumber(pad.getPaddingValue()), init = splatNumber(op.getInitValues().front());
  if (!value || !init)
    return false;
  Operation *combiner = simpleCombiner(op.getBody());
  bool isMaxNumber = hlo::isMaxNumber(op.getBody());
  if (!combiner && !isMaxNumber)
    return false;
  bool equal = *value == *init && (isMaxNumber || isa<hlo::MaxOp, hlo::MinOp>(combiner) ||
                                   (isa<hlo::AddOp>(combiner) && *init == 0));
  if (!equal) {
    // Zeros around values that are not negative never win a maximum as long as each window holds a value.
    auto from = cast<RankedTensorType>(pad.getOperand().getType());
    auto to = cast<RankedTensorType>(op.getResult(0).getType());
    if (!(isMaxNumber || isa<hlo::MaxOp>(combiner)) || *value != 0 || *init > 0 || !isNotNegative(pad.getOperand()) ||
        !allOnes(op.getWindowDilations()))
      return false;
    auto strides = hlo::getListOr(op.getWindowStrides(), rank, 1);
    for (int64_t i = 0; i < rank; ++i) {
      int64_t low = pad.getEdgePaddingLow()[i] + padding[i].first;
      int64_t high = pad.getEdgePaddingHigh()[i] + padding[i].second;
      if (low == 0 && high == 0)
        continue;
      if (from.isDynamicDim(i) || to.isDynamicDim(i) || low >= op.getWindowDimensions()[i] ||
          (to.getDimSize(i) - 1) * strides[i] - low >= from.getDimSize(i))
        return false;
    }
  }
  for (int64_t i = 0; i < rank; ++i) {
    padding[i].first += pad.getEdgePaddingLow()[i];
    padding[i].second += pad.getEdgePaddingHigh()[i];
  }
  op.setPaddingAttr(hlo::makePaddingAttr(op.getContext(), padding));
  op->setOperand(0, pad.getOperand());
  return true;
}

struct HloFoldPadding : simplify::impl::HloFoldPaddingBase<HloFoldPadding> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<hlo::PadOp> pads;
    getOperation()->walk([&](Operation *op) {
      if (auto conv = dyn_cast<hlo::ConvolutionOp>(op))
        numFolded += foldConvolution(conv);
      else if (auto window = dyn_cast<hlo::ReduceWindowOp>(op))
        numFolded += foldWindow(window);
      else if (auto pad = dyn_cast<hlo::PadOp>(op))
        pads.push_back(pad);
    });
    for (hlo::PadOp pad : llvm::reverse(pads))
      if (pad->use_empty())
        pad->erase();
  }
};

} // namespace
