// Transposes of the last dimension, with what is elementwise around them: a block moves 32x32 or 64x64 elements
// through shared memory, so that neighbouring threads read neighbours and store neighbours.
#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Shape.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/nvptx/Block.h"
#include "passes/codegen/nvptx/Forms.h"
#include "passes/codegen/nvptx/Product.h"

#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace lathe::nvptx {

using codegen::ElementEmitter;
using codegen::KernelBuilder;

constexpr int64_t narrowEdge = 32, wideEdge = 64, blockThreads = 256;

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
    else if (isBelow(type.getDimSize(last), narrowEdge / 2) || isBelow(type.getDimSize(across), narrowEdge / 2))
      why = "a transpose with fewer than 16 elements in a direction";
    else if (why = whyNotAfter(t, op); why.empty())
      return t;
  }
  return {};
}

std::string whyNoTranspose(Operation *op) {
  std::string why;
  transposeOf(op, why);
  return why;
}

/// The edge of a block's square. The wide one has a thread ask for 16 elements before it waits: where there are enough squares for many
/// devices, and little is written out for each element.
static int64_t edgeOf(Operation *op, RankedTensorType type, int64_t across) {
  constexpr int64_t many = 1 << 20, fewOps = 8;
  const bool simple = !kernel::isKernelOp(op) || llvm::range_size(op->getRegion(0).front().without_terminator()) <= fewOps;
  return simple && type.hasStaticShape() && type.getNumElements() >= many && type.getShape().back() >= wideEdge &&
                 type.getDimSize(across) >= wideEdge && codegen::elemBytes(type.getElementType()) <= 8
             ? wideEdge
             : narrowEdge;
}

LogicalResult emitTranspose(Operation *op, KernelBuilder &b) {
  std::string why;
  hlo::TransposeOp t = transposeOf(op, why);
  plain::Elements elements = plain::bindOperands(op, b);
  ElementEmitter &e = *elements.emitter;
  RankedTensorType type = hlo::tensorType(t.getResult());
  Type element = type.getElementType();
  const int64_t last = type.getRank() - 1, across = inputsLast(t);
  const int64_t edge = edgeOf(op, type, across), rowsAtOnce = blockThreads / edge,
                pitch = edge + 1; // one more than banks have: the elements of a column are in different ones
  const SmallVector<Value> sizes = b.dims(type);
  SmallVector<AffineExpr> counts = hlo::getDims(type);
  for (int64_t d : {across, last})
    counts[d] = counts[d].ceilDiv(edge);
  BlockFrame frame(b, blockThreads);
  frame.setBlocks(hlo::numElements(counts, b.getContext()));
  b.setWork(edge * edge);
  SmallVector<Value> tiles;
  for (AffineExpr count : counts)
    tiles.push_back(b.dim(count));
  SmallVector<Value> corner = b.delinearize(frame.block(), tiles);
  for (int64_t d : {across, last})
    corner[d] = b.mul(corner[d], b.i64(edge));
  auto isWhole = [&](int64_t d) { return !type.isDynamicDim(d) && type.getDimSize(d) % edge == 0; };
  Value column = b.remU(frame.thread, b.i64(edge)), row = b.divU(frame.thread, b.i64(edge));
  Value memory = frame.shared(edge * pitch * codegen::elemBytes(element));

  // neighbouring threads along the input's last dimension; those beyond the tensor repeat its last elements
  auto inside = [&](Value at, int64_t d) { return isWhole(d) ? at : b.min(at, b.sub(sizes[d], b.i64(1))); };
  SmallVector<Value> values;
  {
    ElementEmitter::Scope scope(e);
    for (int64_t k = 0; k < edge / rowsAtOnce; ++k) {
      SmallVector<Value> index(corner), source(corner.size());
      index[across] = inside(b.add(corner[across], column), across);
      index[last] = inside(b.add(corner[last], b.add(row, b.i64(k * rowsAtOnce))), last);
      for (auto [d, from] : llvm::enumerate(t.getPermutation()))
        source[from] = index[d];
      FailureOr<Value> v = e.emit(t.getOperand(), source);
      if (failed(v))
        return failure();
      values.push_back(*v);
    }
  }
  for (auto [k, v] : llvm::enumerate(values))
    b.storeElem(element, v, memory, b.add(b.mul(b.add(row, b.i64(k * rowsAtOnce)), b.i64(pitch)), column));
  frame.barrier();
  LogicalResult ok = success();
  for (int64_t k = 0; k < edge / rowsAtOnce; ++k) {
    Value line = b.add(row, b.i64(k * rowsAtOnce));
    SmallVector<Value> index(corner);
    index[across] = b.add(corner[across], line);
    index[last] = b.add(corner[last], column);
    auto store = [&] {
      Value v = b.loadElem(element, memory, b.add(b.mul(column, b.i64(pitch)), line));
      if (failed(storeResults(b, elements, t.getResult(), index, v)))
        ok = failure();
    };
    if (isWhole(across) && isWhole(last))
      store();
    else
      b.ifThen(b.both(b.lt(index[across], sizes[across]), b.lt(index[last], sizes[last])), store);
  }
  return ok;
}

} // namespace lathe::nvptx
