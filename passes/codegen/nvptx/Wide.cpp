// Elementwise loops, four neighbours a thread: one access of 16 bytes where elements have four.
#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Shape.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/element/ElementEmitter.h"
#include "passes/codegen/nvptx/Forms.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace lathe::nvptx {

using codegen::ElementEmitter;
using codegen::KernelBuilder;

constexpr int64_t lanes = 4;

/// Whether neighbours of a broadcast's result are neighbours of its operand, or all the same element of it.
static bool keepsNeighbours(hlo::BroadcastInDimOp op) {
  RankedTensorType in = hlo::tensorType(op->getOperand(0)), out = hlo::tensorType(op->getResult(0));
  for (auto [i, d] : llvm::enumerate(op.getBroadcastDimensions()))
    if (static_cast<int64_t>(d) + 1 == out.getRank())
      return in.getDimSize(i) == 1 ||
             (static_cast<int64_t>(i) + 1 == in.getRank() && in.getDimSize(i) == out.getShape().back());
  return true;
}

static std::string whyNoLanes(Operation *op) {
  auto narrow = [](Value v) {
    Type t = hlo::elementType(v);
    return (isa<FloatType>(t) || isa<IntegerType>(t)) && t.getIntOrFloatBitWidth() <= 32;
  };
  if (!llvm::all_of(op->getOperands(), narrow) || !llvm::all_of(op->getResults(), narrow))
    return "elements of more than 32 bits";
  if (codegen::isElementwise(op))
    return {};
  if (auto broadcast = dyn_cast<hlo::BroadcastInDimOp>(op))
    return keepsNeighbours(broadcast) ? "" : "a broadcast that parts neighbours";
  if (auto constant = dyn_cast<hlo::ConstantOp>(op))
    return hlo::tensorType(constant.getResult()).getRank() == 0 ? "" : "a table of constants";
  return ("an op that moves elements: " + op->getName().getStringRef()).str();
}

std::string whyNoWide(Operation *op) {
  if (!isa<kernel::LoopOp>(op))
    return "no loop";
  if (!plain::foreignForm(op).empty())
    return "prepared for another backend";
  RankedTensorType type = hlo::tensorType(op->getResult(0));
  if (type.getRank() == 0 || type.isDynamicDim(type.getRank() - 1) || type.getShape().back() % lanes != 0)
    return "rows that are not of whole vectors";
  constexpr int64_t fewest = 96 * 128 * lanes; // else more threads are worth more than wider accesses
  if (type.hasStaticShape() && type.getNumElements() < fewest)
    return "few elements";
  for (Value result : op->getResults())
    if (hlo::getDims(hlo::tensorType(result)) != hlo::getDims(type))
      return "results of several shapes";
  Block &body = op->getRegion(0).front();
  for (Value root : body.getTerminator()->getOperands())
    if (isa<BlockArgument>(root) || hlo::elementType(root).isInteger(1))
      return "copies, or bits";
  for (Operation &inner : body.without_terminator())
    if (std::string why = whyNoLanes(&inner); !why.empty())
      return why;
  return {};
}

LogicalResult emitWide(Operation *op, KernelBuilder &b) {
  plain::Elements elements = plain::bindOperands(op, b);
  ElementEmitter &e = *elements.emitter;
  RankedTensorType type = hlo::tensorType(elements.roots[0]);
  SmallVector<AffineExpr> counts = hlo::getDims(type);
  counts.back() = counts.back().floorDiv(lanes);
  b.setExtent(hlo::numElements(counts, b.getContext()));
  b.setWork(plain::costOf(elements.roots) * 8 * lanes);
  SmallVector<Value> sizes;
  for (AffineExpr count : counts)
    sizes.push_back(b.dim(count));
  LogicalResult ok = success();
  b.units([&](Value unit) {
    ElementEmitter::Scope scope(e);
    SmallVector<Value> index = b.delinearize(unit, sizes), values;
    index.back() = b.mul(index.back(), b.i64(lanes));
    // all is read before anything is written: a result may lie where an operand does
    for (Value root : elements.roots) {
      FailureOr<Value> v = e.emit(root, index, lanes);
      if (failed(v)) {
        ok = failure();
        return;
      }
      values.push_back(*v);
    }
    for (auto [root, v, pointer] : llvm::zip(elements.roots, values, b.results))
      b.storeElem(hlo::elementType(root), v, pointer, b.mul(unit, b.i64(lanes)));
  });
  // tensors begin on 16 bytes, and all rows are of whole vectors
  auto isWide = [](Type t) { return isa<VectorType>(t) && cast<VectorType>(t).getNumElements() == lanes; };
  auto bytes = [](Type t) { return lanes * cast<VectorType>(t).getElementTypeBitWidth() / 8; };
  b.func.walk([&](Operation *inner) {
    if (auto load = dyn_cast<LLVM::LoadOp>(inner); load && isWide(load.getType()))
      load.setAlignment(bytes(load.getType()));
    if (auto store = dyn_cast<LLVM::StoreOp>(inner); store && isWide(store.getValue().getType()))
      store.setAlignment(bytes(store.getValue().getType()));
  });
  return ok;
}

} // namespace lathe::nvptx
