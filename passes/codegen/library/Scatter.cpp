// scatter: one pass over the updates.
#include "dialects/hlo/Hlo.h"
#include "passes/codegen/element/Expr.h"
#include "passes/codegen/element/Lanes.h"
#include "passes/codegen/library/Library.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace lathe::codegen {

using hlo::elementType;
using hlo::tensorType;

// One pass over the updates in their order, so that repeated indices give the same bits every time.
LogicalResult emitScatter(Operation *op, KernelBuilder &b) {
  auto s = cast<hlo::ScatterOp>(op);
  auto d = s.getScatterDimensionNumbers();
  unsigned n = s.getInputs().size();
  auto type = tensorType(s.getInputs()[0]), updates = tensorType(s.getUpdates()[0]);
  auto indices = tensorType(s.getScatterIndices());
  int64_t rank = type.getRank(), upRank = updates.getRank();
  SmallVector<Value> dims = b.dims(type), upDims = b.dims(updates), indexDims = b.dims(indices);
  Value indexPtr = b.operands[n];
  Type indexElem = indices.getElementType();
  SmallVector<int64_t> windowTo; // operand dimension of each window dimension
  for (int64_t i = 0; i < rank; ++i)
    if (!llvm::is_contained(d.getInsertedWindowDims(), i) && !llvm::is_contained(d.getInputBatchingDims(), i))
      windowTo.push_back(i);
  SmallVector<int64_t> outerDims, windowDims(d.getUpdateWindowDims());
  for (int64_t i = 0; i < upRank; ++i)
    if (!llvm::is_contained(windowDims, i))
      outerDims.push_back(i);
  // consecutive in both: vectors along the last window dimension
  bool rows = !windowDims.empty() && windowDims.back() == upRank - 1 && windowTo.back() == rank - 1;
  unsigned lanes = 64;
  for (Value v : s.getInputs())
    lanes = std::min(lanes, b.target.lanes(elementType(v)));
  if (!rows || n != 1)
    lanes = 1;
  Block &body = s.getUpdateComputation().front();
  LogicalResult ok = success();
  b.units([&](Value) {
    if (!op->hasAttr("kernel.inplace"))
      for (unsigned k = 0; k < n; ++k)
        emitCopy(b, b.results[k], b.operands[k],
                 b.mul(b.numElements(type), b.i64(elemBytes(elementType(s.getInputs()[k])))));
    SmallVector<Value> outerSizes;
    for (int64_t i : outerDims)
      outerSizes.push_back(upDims[i]);
    b.nest(outerSizes, [&](ValueRange outer) {
      int64_t vectorDim = d.getIndexVectorDim();
      SmallVector<Value> start(rank, b.i64(0));
      for (auto [k, dim] : llvm::enumerate(d.getScatterDimsToOperandDims())) {
        SmallVector<Value> at;
        unsigned next = 0;
        for (int64_t i = 0; i < indices.getRank(); ++i)
          at.push_back(i == vectorDim ? b.i64(k) : outer[next++]);
        start[dim] = loadIndex(b, indexElem, indexPtr, b.linearize(at, indexDims));
      }
      for (auto [i, dim] : llvm::enumerate(d.getInputBatchingDims())) {
        int64_t sd = d.getScatterIndicesBatchingDims()[i];
        start[dim] = outer[sd > vectorDim ? sd - 1 : sd];
      }
      SmallVector<Value> upIndex(upRank, b.i64(0));
      for (auto [i, dim] : llvm::enumerate(outerDims))
        upIndex[dim] = outer[i];
      SmallVector<int64_t> inner(windowDims);
      if (rows)
        inner.pop_back();
      SmallVector<Value> innerSizes;
      for (int64_t i : inner)
        innerSizes.push_back(upDims[i]);
      auto apply = [&](Value to, Value from, unsigned width) {
        SmallVector<Value> args;
        for (unsigned k = 0; k < n; ++k)
          args.push_back(b.loadElem(elementType(s.getInputs()[k]), b.results[k], to, width));
        for (unsigned k = 0; k < n; ++k)
          args.push_back(b.loadElem(elementType(s.getUpdates()[k]), b.operands[n + 1 + k], from, width));
        auto r = emitScalarBody(b, body, args, width);
        if (failed(r)) {
          ok = failure();
          return;
        }
        for (unsigned k = 0; k < n; ++k)
          b.storeElem(elementType(s.getInputs()[k]), (*r)[k], b.results[k], to);
      };
      b.nest(innerSizes, [&](ValueRange window) {
        SmallVector<Value> at(start), up(upIndex);
        for (auto [i, w] : llvm::enumerate(window)) {
          up[inner[i]] = w;
          int64_t dim = windowTo[i];
          at[dim] = b.add(at[dim], w);
        }
        Value inside = b.cstI(b.getI1Type(), 1);
        for (int64_t i = 0; i < rank - (rows ? 1 : 0); ++i)
          inside = b.both(inside, b.inRange(at[i], b.i64(0), dims[i]));
        b.ifThen(inside, [&] {
          if (!rows) {
            apply(b.linearize(at, dims), b.linearize(up, upDims), 1);
            return;
          }
          Value first = at.back();
          Value lo = b.max(b.sub(b.i64(0), first), b.i64(0));
          Value hi = b.min(upDims.back(), b.sub(dims.back(), first));
          (void)vectorLoop(b, lo, b.max(lo, hi), lanes, false, [&](Value j, unsigned width, Value) {
            at.back() = b.add(first, j);
            up.back() = j;
            apply(b.linearize(at, dims), b.linearize(up, upDims), width);
            return success();
          });
        });
      });
    });
  });
  return ok;
}

} // namespace lathe::codegen
