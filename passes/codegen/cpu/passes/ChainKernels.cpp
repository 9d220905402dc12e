// kernel-chain: which products are computed part by part with the depthwise convolution that reads them.
#include "passes/codegen/cpu/layout/Layout.h"
#include "passes/codegen/cpu/passes/Chain.h"

#include "dialects/hlo/Hlo.h"
#include "passes/codegen/cpu/passes/Parts.h"
#include "passes/codegen/cpu/passes/Passes.h"
#include "passes/codegen/cpu/target/CpuTarget.h"
#include "passes/codegen/cpu/product/Format.h"
#include "passes/codegen/cpu/product/Tile.h"

using namespace mlir;

namespace lathe::cpu {

#define GEN_PASS_DEF_CHAINKERNELS
#include "passes/codegen/cpu/passes/Passes.h.inc"

namespace {

/// Whether the epilogue gives the same for any number of rows: elementwise on what is per column or one number.
bool isByRows(kernel::DotOp dot) {
  ArrayRef<int64_t> shape = dot.getAccType().getShape();
  for (BlockArgument extra : dot.getExtraArgs())
    if (cast<RankedTensorType>(extra.getType()).getRank() > 1)
      return false;
  for (Operation &op : dot.getBody().front().without_terminator()) {
    if (auto broadcast = dyn_cast<hlo::BroadcastInDimOp>(op)) {
      if (!llvm::all_of(broadcast.getBroadcastDimensions(), [](int64_t d) { return d == 1; }))
        return false;
      continue;
    }
    auto type = op.getNumResults() == 1 ? dyn_cast<RankedTensorType>(op.getResult(0).getType()) : RankedTensorType();
    if (!type || (type.getShape() != shape && type.getRank() > 1))
      return false;
    if (auto constant = dyn_cast<hlo::ConstantOp>(op)) {
      auto value = dyn_cast<DenseElementsAttr>(constant.getValue());
      if (type.getRank() > 0 && (!value || !value.isSplat()))
        return false;
    } else if (!op.hasTrait<hlo::HloElementwise>()) {
      return false;
    }
  }
  return true;
}

/// The share of its pixels that a thread may compute beside another one.
constexpr double mostAgain = 0.1;

/// Strips of an image, or 0: better apart. L2 has room for the part of the left operand that all panels of a
/// strip read, for a panel's pixels and for what else passes through.
int64_t chooseStrips(const KernelTarget &target, kernel::DotOp dot, kernel::DepthwiseConvOp conv) {
  auto images = cast<RankedTensorType>(conv.getInput().getType());
  const int64_t pixels = images.getDimSize(1) * images.getDimSize(2),
                bytes = elemBytes(images.getElementType());
  auto lhs = cast<RankedTensorType>(dot.getLhs().getType());
  const int64_t depthBytes = lhs.getDimSize(1) * elemBytes(lhs.getElementType()), columns = chunkColumns(dot);
  const int64_t kept = reachOfRows(conv) * images.getDimSize(2);
  auto fits = [&](int64_t strips) {
    const int64_t each = llvm::divideCeil(pixels, strips),
                  buffer = (each + (strips > 1 ? kept : 0)) * columns * bytes;
    return buffer <= target.ofL2(target.l2Between) && buffer + each * depthBytes <= target.ofL2(target.l2Tiles);
  };
  const int64_t most = std::max<int64_t>(1, pixels / std::max<int64_t>(64, kept));
  int64_t strips = 1;
  while (strips <= most && !fits(strips))
    ++strips;
  if (strips > most)
    return 0;
  const int64_t threads = std::max(target.threads, 1), count = images.getDimSize(0);
  if (count % threads == 0)
    return strips;
  // A thread takes whole strips, so that it reads what it has written, and computes again what its first
  // strip reads of the one above. That pays where the pixels would leave the cache.
  strips = llvm::alignTo(strips, threads);
  const int64_t again = kept - conv.getStrides()[0] * images.getDimSize(2),
                each = llvm::divideCeil(pixels * count, threads);
  const bool leave = each * images.getDimSize(3) * bytes > target.ofL2(target.l2Tiles);
  return strips <= most && leave && again <= each * mostAgain ? strips : 0;
}

/// Whether a product of bf16 operands can be done panel by panel: in pairs, and without a copy of its rows for
/// each of them.
bool isByPairs(const KernelTarget &target, kernel::DotOp dot) {
  auto lhs = cast<RankedTensorType>(dot.getLhs().getType());
  return !target.amxBf16 && dot.getLayout() && lhs.getElementType().isBF16() &&
         lhs.getDimSize(1) % bf16Format().group() == 0;
}

/// What keeps a product and the convolution that reads it from being one kernel; else sets `strips`.
WhyNot whyNotChain(const KernelTarget &target, kernel::DotOp dot, kernel::DepthwiseConvOp conv, int64_t &strips) {
  if (isStrassen(dot))
    return WhyNot::notMeant("Strassen's algorithm saves more");
  SmallVector<Type> types(dot->getOperandTypes());
  llvm::append_range(types, dot->getResultTypes());
  llvm::append_range(types, conv->getOperandTypes());
  llvm::append_range(types, conv->getResultTypes());
  for (Type t : types)
    if (!cast<RankedTensorType>(t).hasStaticShape() || cast<RankedTensorType>(t).getNumElements() == 0)
      return WhyNot::notMeant("sizes are known at run time, or 0");
  auto images = cast<RankedTensorType>(conv.getInput().getType()), lhs = cast<RankedTensorType>(dot.getLhs().getType());
  const SmallVector<int64_t> plain = {0, 1};
  if (images.getRank() != 4 || lhs.getRank() != 2 || dot.getLhsDims() != ArrayRef(plain) || dot.getResultDims() != ArrayRef(plain) ||
      dot.getAccType().getShape().back() != images.getShape().back() || conv.getBatchGroups() != 1 ||
      llvm::any_of(conv.getLhsDilation(), [](int64_t d) { return d != 1; }) ||
      llvm::any_of(conv.getPadding(), [](int64_t p) { return p < 0; }) || !isByRows(dot))
    return WhyNot::notMeant("not rows of pixels through a product, and windows over these");
  strips = chooseStrips(target, dot, conv);
  if (strips == 0)
    return WhyNot::notMeant("better apart");
  const bool pairs = dot.getBf16();
  if (pairs && !isByPairs(target, dot))
    return WhyNot::notMeant("bf16 operands that do not come by pairs");
  auto fits = [&](Type t) {
    Type elem = getElementTypeOrSelf(t);
    return elem.isF32() || (pairs && elem.isBF16());
  };
  if (!llvm::all_of(types, fits))
    return WhyNot::lacks("operands or results are not f32");
  return WhyNot::none();
}

bool makeChain(const KernelTarget &target, kernel::DepthwiseConvOp conv) {
  auto reshape = conv.getInput().getDefiningOp<hlo::ReshapeOp>();
  auto dot = reshape && reshape->hasOneUse() ? reshape->getOperand(0).getDefiningOp<kernel::DotOp>() : kernel::DotOp();
  if (!dot || !dot->hasOneUse() || dot->getNumResults() != 1 || conv->getNumResults() != 1 || dot->getBlock() != conv->getBlock())
    return false;
  int64_t strips = 0;
  if (!chooseSpecial(conv, "chain", whyNotChain(target, dot, conv, strips)))
    return false;
  auto images = cast<RankedTensorType>(conv.getInput().getType());
  joinParts<kernel::ChainOp>({dot, reshape, conv},
                             2 * images.getNumElements() * elemBytes(images.getElementType()), strips);
  return true;
}

struct ChainKernels : impl::ChainKernelsBase<ChainKernels> {
  void runOnOperation() override {
    FailureOr<ModuleTarget> target = cpuTargetOf(getOperation());
    if (failed(target))
      return signalPassFailure();
    numChains += chainKernels(getOperation(), target->kernels);
  }
};

} // namespace

unsigned chainKernels(ModuleOp module, const KernelTarget &target) {
  SmallVector<kernel::DepthwiseConvOp> convs;
  module.walk([&](kernel::DepthwiseConvOp op) {
    if (!isa<kernel::ChainOp>(op->getParentOp()))
      convs.push_back(op);
  });
  unsigned made = 0;
  for (kernel::DepthwiseConvOp conv : convs)
    made += makeChain(target, conv);
  return made;
}

} // namespace lathe::cpu
