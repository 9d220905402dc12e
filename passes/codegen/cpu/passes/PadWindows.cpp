// kernel-pad-windows: convolutions of bytes that leave out the copy of their images with a border.
#include "passes/codegen/cpu/conv/Conv.h"
#include "passes/codegen/cpu/passes/Passes.h"
#include "passes/codegen/cpu/target/CpuTarget.h"

#include "dialects/hlo/Hlo.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace lathe::cpu {

#define GEN_PASS_DEF_PADWINDOWS
#include "passes/codegen/cpu/passes/Passes.h.inc"

namespace {

/// A kernel that only puts a border of one number around images.
struct Border {
  kernel::LoopOp loop;
  Value image;
  int64_t value = 0;
  SmallVector<int64_t> padding; ///< two for each dimension of space
};

std::optional<Border> borderOf(Value padded) {
  auto loop = padded.getDefiningOp<kernel::LoopOp>();
  if (!loop || loop->getNumResults() != 1 || loop->getNumOperands() != 1)
    return std::nullopt;
  Block &body = loop->getRegion(0).front();
  auto pad = body.getTerminator()->getOperand(0).getDefiningOp<hlo::PadOp>();
  if (!pad || pad.getOperand() != body.getArgument(0))
    return std::nullopt;
  DenseElementsAttr value;
  if (!matchPattern(pad.getPaddingValue(), m_Constant(&value)) || !value.isSplat() || !value.getElementType().isInteger(8))
    return std::nullopt;
  Border border{loop, loop->getOperand(0), 0, {}};
  const APInt bits = value.getSplatValue<APInt>();
  border.value = value.getElementType().isUnsignedInteger() ? int64_t(bits.getZExtValue()) : bits.getSExtValue();
  const int64_t rank = cast<RankedTensorType>(pad.getType()).getRank();
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t low = pad.getEdgePaddingLow()[d], high = pad.getEdgePaddingHigh()[d];
    if (low < 0 || high < 0 || pad.getInteriorPadding()[d] != 0)
      return std::nullopt;
    if (d > 0 && d + 1 < rank)
      border.padding.append({low, high});
    else if (low || high)
      return std::nullopt;
  }
  return border;
}

bool takes(kernel::DepthwiseConvOp bare, kernel::DepthwiseConvOp, const KernelTarget &target) {
  return whyNotByteWindows(bare, target).takes();
}

bool takes(kernel::ConvOp bare, kernel::ConvOp padded, const KernelTarget &target) {
  // the filter is packed for the runs of the padded image
  const ConvRuns now = convRuns(bare), before = convRuns(padded);
  return takesBorder(bare, target) && now.isStatic == before.isStatic && now.merged == before.merged && now.run == before.run &&
         now.runs == before.runs;
}

template <typename Op>
bool takeBorder(Op conv, const KernelTarget &target) {
  auto border = borderOf(conv.getInput());
  if (!border || border->loop->getBlock() != conv->getBlock() || llvm::any_of(conv.getPadding(), [](int64_t p) { return p != 0; }))
    return false;
  OpBuilder b(conv);
  auto bare = cast<Op>(b.clone(*conv));
  bare->setOperand(0, border->image);
  bare.setPadding(border->padding);
  if (border->value)
    bare->setAttr(padValueAttr, b.getI64IntegerAttr(border->value));
  if (!takes(bare, conv, target)) {
    bare->erase();
    return false;
  }
  conv->replaceAllUsesWith(bare);
  conv->erase();
  if (border->loop->use_empty())
    border->loop->erase();
  return true;
}

struct PadWindows : impl::PadWindowsBase<PadWindows> {
  void runOnOperation() override {
    FailureOr<ModuleTarget> target = cpuTargetOf(getOperation());
    if (failed(target))
      return signalPassFailure();
    SmallVector<Operation *> convs;
    getOperation().walk([&](Operation *op) {
      if (isa<kernel::DepthwiseConvOp, kernel::ConvOp>(op) && !isa<kernel::ChainOp>(op->getParentOp()))
        convs.push_back(op);
    });
    for (Operation *op : convs) {
      auto dense = dyn_cast<kernel::ConvOp>(op);
      numTaken += dense ? takeBorder(dense, target->kernels) : takeBorder(cast<kernel::DepthwiseConvOp>(op), target->kernels);
    }
  }
};

} // namespace

} // namespace lathe::cpu
