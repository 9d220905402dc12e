// kernel-chain: which products are computed strip by strip with the depthwise convolution that reads them.
#include "passes/codegen/cpu/Chain.h"

#include "dialects/hlo/Hlo.h"
#include "passes/codegen/cpu/Passes.h"
#include "passes/codegen/cpu/Tile.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace lathe::cpu {

#define GEN_PASS_DEF_CHAINKERNELS
#include "passes/codegen/cpu/Passes.h.inc"

namespace {

/// What writing 16 numbers to a far cache and reading them again takes, in cycles that arithmetic does not hide.
constexpr double farCycles = 10;

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
      if (type.getRank() > 1 && (!value || !value.isSplat()))
        return false;
    } else if (!op.hasTrait<hlo::HloElementwise>()) {
      return false;
    }
  }
  return true;
}

/// The result rows of a strip, or 0: better apart.
int64_t chooseRows(const CpuTarget &target, kernel::DotOp dot, kernel::DepthwiseConvOp conv) {
  auto images = cast<RankedTensorType>(conv.getInput().getType());
  const int64_t threads = std::max(target.threads, 1), count = images.getDimSize(0), height = images.getDimSize(1);
  const int64_t rowBytes = images.getDimSize(2) * images.getDimSize(3) * elemBytes(images.getElementType());
  const int64_t outHeight = conv.getAccType().getDimSize(1);
  if (count * height * rowBytes / threads <= target.l2 * 3 / 4)
    return 0;
  int64_t highest = outHeight;
  while (highest > 0 && inputRows(conv, highest) * rowBytes > target.l2 / 2)
    --highest;
  if (highest == 0)
    return 0;
  const bool shared = count % threads != 0 && count < 4 * threads; // strips are what threads take equal shares of
  // the height with which least is computed, counting what the last strip computes in vain
  const int64_t least = llvm::divideCeil(outHeight, highest);
  int64_t rows = 0, computed = 0;
  for (int64_t strips = least; strips <= 2 * least + threads; ++strips) {
    const int64_t high = llvm::divideCeil(outHeight, strips), count = llvm::divideCeil(outHeight, high);
    if (shared && count % threads != 0)
      continue;
    if (const int64_t all = count * inputRows(conv, high); rows == 0 || all < computed) {
      rows = high;
      computed = all;
    }
  }
  if (rows == 0 || inputRows(conv, rows) * images.getDimSize(2) < 64)
    return 0;
  const double twice = double(computed) / height - 1;
  const int64_t depth = cast<RankedTensorType>(dot.getLhs().getType()).getDimSize(1);
  return twice * (depth + epilogueInstructions(dot)) / 2 < farCycles ? rows : 0;
}

bool makeChain(const CpuTarget &target, kernel::DepthwiseConvOp conv) {
  auto reshape = conv.getInput().getDefiningOp<hlo::ReshapeOp>();
  auto dot = reshape && reshape->hasOneUse() ? reshape->getOperand(0).getDefiningOp<kernel::DotOp>() : kernel::DotOp();
  if (!dot || !dot->hasOneUse() || dot->getNumResults() != 1 || conv->getNumResults() != 1 || dot->getBlock() != conv->getBlock() ||
      dot.getBf16())
    return false;
  auto isF32 = [](Type t) {
    auto type = cast<RankedTensorType>(t);
    return type.hasStaticShape() && type.getNumElements() > 0 && type.getElementType().isF32();
  };
  if (!llvm::all_of(dot->getOperandTypes(), isF32) || !llvm::all_of(conv->getOperandTypes(), isF32) ||
      !llvm::all_of(dot->getResultTypes(), isF32) || !llvm::all_of(conv->getResultTypes(), isF32))
    return false;
  auto images = cast<RankedTensorType>(conv.getInput().getType()), lhs = cast<RankedTensorType>(dot.getLhs().getType());
  const SmallVector<int64_t> plain = {0, 1};
  if (images.getRank() != 4 || lhs.getRank() != 2 || dot.getLhsDims() != ArrayRef(plain) || dot.getResultDims() != ArrayRef(plain) ||
      dot.getAccType().getShape().back() != images.getShape().back() || conv.getBatchGroups() != 1 ||
      llvm::any_of(conv.getLhsDilation(), [](int64_t d) { return d != 1; }) || !isByRows(dot))
    return false;
  const int64_t rows = chooseRows(target, dot, conv);
  if (rows == 0)
    return false;

  llvm::SetVector<Value> inputs;
  inputs.insert(dot->operand_begin(), dot->operand_end());
  inputs.insert(std::next(conv->operand_begin()), conv->operand_end());
  OpBuilder b(conv);
  Location loc = b.getFusedLoc({dot.getLoc(), conv.getLoc()});
  auto chain = kernel::ChainOp::create(b, loc, conv->getResultTypes(), inputs.getArrayRef(), rows);
  Block &body = chain.getBody().front();
  IRMapping map;
  map.map(inputs.getArrayRef(), body.getArguments());
  b.setInsertionPointToEnd(&body);
  for (Operation *op : {dot.getOperation(), reshape.getOperation(), conv.getOperation()})
    b.clone(*op, map);
  kernel::YieldOp::create(b, loc, map.lookup(conv->getResult(0)));
  SmallVector<int64_t> cost;
  for (Operation *op : {dot.getOperation(), conv.getOperation()})
    if (auto part = op->getAttrOfType<DenseI64ArrayAttr>("kernel.cost")) {
      cost.resize(part.size());
      for (auto [sum, x] : llvm::zip(cost, part.asArrayRef()))
        sum += x;
    }
  if (cost.size() == 3) {
    cost[2] -= 2 * images.getNumElements() * elemBytes(images.getElementType()); // what stays in the cache
    chain->setAttr("kernel.cost", b.getDenseI64ArrayAttr(cost));
  }
  conv->replaceAllUsesWith(chain);
  conv->erase();
  reshape->erase();
  dot->erase();
  return true;
}

struct ChainKernels : impl::ChainKernelsBase<ChainKernels> {
  using ChainKernelsBase::ChainKernelsBase;
  void runOnOperation() override {
    CpuTarget target = CpuTarget::get(triple.getValue(), features.getValue());
    target.threads = threads;
    numChains += chainKernels(getOperation(), target);
  }
};

} // namespace

unsigned chainKernels(ModuleOp module, const CpuTarget &target) {
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
