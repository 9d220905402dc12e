// Ops that only move elements, and whose functions of the library copy runs of bytes: here a thread moves one element, so that
// neighbours read and write neighbours.
#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Shape.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/library/Joined.h"
#include "passes/codegen/library/Library.h"
#include "passes/codegen/nvptx/Forms.h"

using namespace mlir;

namespace lathe::nvptx {

using codegen::KernelBuilder;

static int64_t bitsOf(Value v) {
  Type t = hlo::elementType(v);
  return t.isIntOrFloat() ? t.getIntOrFloatBitWidth() : 8 * codegen::elemBytes(t);
}

std::string whyNoMove(Operation *op) {
  constexpr unsigned many = 16; // each takes code of its own
  if (isa<hlo::ConcatenateOp>(op))
    return op->getNumOperands() <= many ? "" : "more operands than are told apart";
  if (isa<hlo::BitcastConvertOp>(op))
    return bitsOf(op->getOperand(0)) < 8 || bitsOf(op->getResult(0)) < 8 ? "elements below a byte" : "";
  if (isa<hlo::DynamicUpdateSliceOp>(op))
    return op->hasAttr("kernel.inplace") ? "" : "a result of its own";
  return "no op that moves elements";
}

/// What elements are moved as, and how many of these one is.
static std::pair<Type, int64_t> carrierOf(KernelBuilder &b, int64_t bytes) {
  const int64_t width = std::min<int64_t>(bytes, 8);
  return {IntegerType::get(b.getContext(), width * 8), bytes / width};
}

// A unit a word that is copied: those of one operand in a row of the result, then those of the next.
static LogicalResult emitConcatenate(hlo::ConcatenateOp op, KernelBuilder &b) {
  const codegen::Joined joined(op, b);
  b.setExtent(hlo::simplify(joined.rows * joined.copied));
  b.setWork(8);
  Value resultRow = b.dim(joined.resultRow), inRow = b.dim(joined.copied);
  b.units([&](Value unit) {
    Value row = b.divU(unit, inRow), at = b.remU(unit, inRow);
    for (const codegen::Joined::Piece &p : joined.pieces) {
      Value begin = b.dim(p.begin);
      b.ifThen(b.inRange(at, begin, b.add(begin, b.dim(p.size))), [&] {
        Value in = b.sub(at, begin);
        Value v = b.loadElem(joined.carrier, p.source, b.add(b.mul(row, b.dim(p.distance)), in));
        b.storeElem(joined.carrier, v, b.results[0], b.add(b.mul(row, resultRow), b.add(b.dim(p.offset), in)));
      });
    }
  });
  return success();
}

static LogicalResult emitBitcast(hlo::BitcastConvertOp op, KernelBuilder &b) {
  const int64_t bytes = std::min(bitsOf(op.getOperand()), bitsOf(op.getResult())) / 8;
  const auto [carrier, words] = carrierOf(b, bytes);
  RankedTensorType type = hlo::tensorType(bitsOf(op.getOperand()) == 8 * bytes ? op.getOperand() : op.getResult());
  b.setExtent(hlo::simplify(hlo::numElements(type) * words));
  b.setWork(2);
  b.units([&, carrier = carrier](Value unit) { b.storeElem(carrier, b.loadElem(carrier, b.operands[0], unit), b.results[0], unit); });
  return success();
}

// A unit an element of the update.
static LogicalResult emitUpdate(hlo::DynamicUpdateSliceOp op, KernelBuilder &b) {
  RankedTensorType type = hlo::tensorType(op.getOperand()), part = hlo::tensorType(op.getUpdate());
  const std::pair<Type, int64_t> moved = carrierOf(b, codegen::elemBytes(type.getElementType()));
  const Type carrier = moved.first;
  const int64_t words = moved.second;
  const SmallVector<Value> sizes = b.dims(type), partSizes = b.dims(part);
  b.setExtent(hlo::simplify(hlo::numElements(part) * words));
  b.setWork(8 + 4 * type.getRank());
  b.units([&](Value unit) {
    SmallVector<Value> to = b.delinearize(b.divU(unit, b.i64(words)), partSizes);
    for (auto [i, at] : llvm::enumerate(to)) {
      Value start = codegen::loadIndex(b, hlo::elementType(op.getStartIndices()[i]), b.operands[2 + i], b.i64(0));
      at = b.add(b.max(b.min(start, b.sub(sizes[i], partSizes[i])), b.i64(0)), at);
    }
    Value place = b.add(b.mul(b.linearize(to, sizes), b.i64(words)), b.remU(unit, b.i64(words)));
    b.storeElem(carrier, b.loadElem(carrier, b.operands[1], unit), b.results[0], place);
  });
  return success();
}

LogicalResult emitMove(Operation *op, KernelBuilder &b) {
  if (auto c = dyn_cast<hlo::ConcatenateOp>(op))
    return emitConcatenate(c, b);
  if (auto c = dyn_cast<hlo::BitcastConvertOp>(op))
    return emitBitcast(c, b);
  return emitUpdate(cast<hlo::DynamicUpdateSliceOp>(op), b);
}

} // namespace lathe::nvptx
