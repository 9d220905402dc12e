// Transposes of the last dimension, with what is elementwise around them: a block moves 32x32 elements
// through shared memory, so that neighbouring threads read neighbours and store neighbours.
#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Shape.h"
#include "passes/codegen/nvptx/Block.h"
#include "passes/codegen/nvptx/Forms.h"
#include "passes/codegen/nvptx/Product.h"

#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace lathe::nvptx {

using codegen::ElementEmitter;
using codegen::KernelBuilder;

constexpr int64_t edge = 32, rowsAtOnce = 8,
                  pitch = edge + 1; // a line more than banks: columns are in different ones

/// Dimension of the result along which neighbours of the input lie.
static int64_t inputsLast(hlo::TransposeOp t) {
  ArrayRef<int64_t> order = t.getPermutation();
  return llvm::find(order, static_cast<int64_t>(order.size()) - 1) - order.begin();
}

/// Why the results' elements are not made of the transpose's at the same index; empty if they are.
static std::string whyNotAfter(hlo::TransposeOp t, Operation *op) {
  return t == op ? std::string()
                 : whyNotElementByElement(op->getRegion(0).front(), t.getResult(), "what follows the transpose moves elements", "the transpose");
}

/// The transpose that a kernel is built around, or null and why there is none.
static hlo::TransposeOp transposeOf(Operation *op, std::string &why) {
  SmallVector<hlo::TransposeOp> all;
  if (auto t = dyn_cast<hlo::TransposeOp>(op))
    all.push_back(t);
  else if (isa<kernel::LoopOp>(op))
    llvm::append_range(all, op->getRegion(0).getOps<hlo::TransposeOp>());
  why = "no transpose";
  for (hlo::TransposeOp t : all) {
    RankedTensorType type = hlo::tensorType(t.getResult());
    const int64_t last = type.getRank() - 1, across = last < 0 ? last : inputsLast(t);
    if (across == last)
      why = "a transpose that keeps the last dimension";
    else if (isBelow(type.getDimSize(last), edge / 2) || isBelow(type.getDimSize(across), edge / 2))
      why = "a transpose with fewer than 16 elements in a direction";
    else if (why = whyNotAfter(t, op); why.empty())
      return t;
  }
  return {};
}

std::string whyNoTranspose(Operation *op) {
  if (!plain::foreignForm(op).empty())
    return "prepared for another backend";
  std::string why;
  transposeOf(op, why);
  return why;
}

LogicalResult emitTranspose(Operation *op, KernelBuilder &b) {
  std::string why;
  hlo::TransposeOp t = transposeOf(op, why);
  plain::Elements elements = plain::bindOperands(op, b);
  ElementEmitter &e = *elements.emitter;
  RankedTensorType type = hlo::tensorType(t.getResult());
  Type element = type.getElementType();
  const int64_t last = type.getRank() - 1, across = inputsLast(t);
  const SmallVector<Value> sizes = b.dims(type);
  SmallVector<AffineExpr> counts = hlo::getDims(type);
  for (int64_t d : {across, last})
    counts[d] = counts[d].ceilDiv(edge);
  BlockFrame frame(b, edge * rowsAtOnce);
  frame.setBlocks(hlo::numElements(counts, b.getContext()));
  b.setWork(edge * edge);
  SmallVector<Value> tiles;
  for (AffineExpr count : counts)
    tiles.push_back(b.dim(count));
  SmallVector<Value> corner = b.delinearize(frame.block(), tiles);
  for (int64_t d : {across, last})
    corner[d] = b.mul(corner[d], b.i64(edge));
  Value column = b.remU(frame.thread, b.i64(edge)), row = b.divU(frame.thread, b.i64(edge));
  Value memory = frame.shared(edge * pitch * codegen::elemBytes(element));
  LogicalResult ok = success();

  // neighbouring threads along the input's last dimension; those beyond the tensor repeat its last elements
  b.loop(row, b.i64(edge), b.i64(rowsAtOnce), [&](Value line) {
    ElementEmitter::Scope scope(e);
    SmallVector<Value> index(corner), source(corner.size());
    index[across] = b.min(b.add(corner[across], column), b.sub(sizes[across], b.i64(1)));
    index[last] = b.min(b.add(corner[last], line), b.sub(sizes[last], b.i64(1)));
    for (auto [d, from] : llvm::enumerate(t.getPermutation()))
      source[from] = index[d];
    FailureOr<Value> v = e.emit(t.getOperand(), source);
    if (failed(v))
      ok = failure();
    else
      b.storeElem(element, *v, memory, b.add(b.mul(line, b.i64(pitch)), column));
  });
  frame.barrier();
  b.loop(row, b.i64(edge), b.i64(rowsAtOnce), [&](Value line) {
    SmallVector<Value> index(corner);
    index[across] = b.add(corner[across], line);
    index[last] = b.add(corner[last], column);
    b.ifThen(b.both(b.lt(index[across], sizes[across]), b.lt(index[last], sizes[last])), [&] {
      Value v = b.loadElem(element, memory, b.add(b.mul(column, b.i64(pitch)), line));
      if (failed(storeResults(b, elements, t.getResult(), index, v)))
        ok = failure();
    });
  });
  return ok;
}

} // namespace lathe::nvptx
