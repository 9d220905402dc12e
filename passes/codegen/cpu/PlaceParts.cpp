// kernel-place-parts: which parts of concatenations their producers write where they belong.
//
// Before:  %a = kernel.conv(...)  %b = kernel.loop(...)  %c = hlo.concatenate(%a, %b) along the channels
// After:   the same with kernel.result_rows = [elements of a row of %c] on both producers, and kernel.joined
// = [true, true] on the
//          concatenation, which is no code any more: the memory plan lets %a and %b lie in the buffer of %c.
#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Shape.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/cpu/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace lathe::cpu {

#define GEN_PASS_DEF_PLACEPARTS
#include "passes/codegen/cpu/Passes.h.inc"

namespace {

int64_t lastDim(Value v) { return cast<RankedTensorType>(v.getType()).getShape().back(); }

/// What a concatenation is made of.
struct Pieces {
  hlo::ConcatenateOp op;
  RankedTensorType type;
  bool inOneRun; ///< each part is
  explicit Pieces(hlo::ConcatenateOp op) : op(op), type(cast<RankedTensorType>(op.getType())) {
    ArrayRef<int64_t> outer = type.getShape().take_front(op.getDimension());
    inOneRun = llvm::all_of(outer, [](int64_t d) { return d == 1; });
  }
};

/// Whether the kernel of an op can write rows that lie apart.
bool writesRows(OpResult result) {
  Operation *op = result.getOwner();
  if (kernel::hasCore(op) || isa<kernel::ChainOp>(op))
    return true;
  // Rows that fill no vector are better done across them, and transposes in squares.
  constexpr int64_t shortestRow = 16;
  auto loop = dyn_cast<kernel::LoopOp>(op);
  return loop && lastDim(result) >= shortestRow && loop.getBody().front().getOps<hlo::TransposeOp>().empty();
}

/// The result that lies where the part does, if its producer can write it there: read by nothing else, under
/// other shapes perhaps.
OpResult producerOf(const Pieces &pieces, OpOperand &part) {
  Value v = part.get();
  const int64_t row = pieces.inOneRun ? 0 : lastDim(v);
  auto type = cast<RankedTensorType>(v.getType());
  if (pieces.inOneRun ? !type.hasStaticShape() : ShapedType::isDynamic(row))
    return {};
  if (type.hasStaticShape() && type.getNumElements() == 0)
    return {};
  for (;; v = v.getDefiningOp()->getOperand(0)) {
    auto result = dyn_cast<OpResult>(v);
    if (!result || !v.hasOneUse() || result.getOwner()->getBlock() != pieces.op->getBlock())
      return {};
    if (!pieces.inOneRun && (cast<RankedTensorType>(v.getType()).getRank() < 2 || lastDim(v) != row))
      return {};
    Operation *op = result.getOwner();
    if (isa<hlo::ReshapeOp>(op))
      continue;
    if (!pieces.inOneRun)
      return kernel::isKernelOp(op) && writesRows(result) ? result : OpResult();
    return kernel::isKernelOp(op) || isa<hlo::ConcatenateOp, hlo::GatherOp>(op) ? result : OpResult();
  }
}

void setRow(OpResult result, int64_t row) {
  Operation *op = result.getOwner();
  SmallVector<int64_t> rows(op->getNumResults(), 0);
  if (auto known = op->getAttrOfType<DenseI64ArrayAttr>(kernel::resultRowsAttr))
    rows.assign(known.asArrayRef().begin(), known.asArrayRef().end());
  rows[result.getResultNumber()] = row;
  op->setAttr(kernel::resultRowsAttr, DenseI64ArrayAttr::get(op->getContext(), rows));
  if (auto chain = dyn_cast<kernel::ChainOp>(op))
    setRow(cast<OpResult>(chain.getConv()->getResult(0)), row);
}

/// Lets the parts of one concatenation be written in place; returns how many are.
unsigned joinParts(hlo::ConcatenateOp op) {
  const Pieces pieces(op);
  const int64_t dimension = op.getDimension();
  if (!pieces.inOneRun && (dimension + 1 != pieces.type.getRank() || pieces.type.isDynamicDim(dimension)))
    return 0;
  SmallVector<bool> joined(op->getNumOperands(), false);
  int64_t bytes = 0;
  for (OpOperand &part : op->getOpOperands()) {
    if (OpResult result = producerOf(pieces, part)) {
      joined[part.getOperandNumber()] = true;
      if (!pieces.inOneRun)
        setRow(result, lastDim(op));
      auto type = cast<RankedTensorType>(part.get().getType());
      if (type.hasStaticShape())
        bytes += type.getNumElements() * elemBytes(type.getElementType());
    }
    // where the next part begins must be known
    if (cast<RankedTensorType>(part.get().getType()).isDynamicDim(dimension))
      break;
  }
  const unsigned count = llvm::count(joined, true);
  if (!count)
    return 0;
  op->setAttr(kernel::joinedAttr, DenseBoolArrayAttr::get(op.getContext(), joined));
  if (auto cost = op->getAttrOfType<DenseI64ArrayAttr>("kernel.cost"); cost && cost.size() == 3) {
    SmallVector<int64_t> left(cost.asArrayRef());
    left[2] = std::max<int64_t>(0, left[2] - 2 * bytes); // neither read nor written again
    op->setAttr("kernel.cost", DenseI64ArrayAttr::get(op.getContext(), left));
  }
  return count;
}

struct PlaceParts : impl::PlacePartsBase<PlaceParts> {
  void runOnOperation() override { numPlaced += placeParts(getOperation()); }
};

} // namespace

unsigned placeParts(ModuleOp module) {
  unsigned placed = 0;
  module.walk([&](hlo::ConcatenateOp op) {
    if (!kernel::isKernelOp(op->getParentOp()) && !op->hasAttr(kernel::joinedAttr))
      placed += joinParts(op);
  });
  return placed;
}

} // namespace lathe::cpu
