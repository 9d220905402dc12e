// Elements of places that a run computes: slices from run-time starts, and gathers.
#include "passes/codegen/element/ElementEmitter.h"

#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Shape.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <utility>

using namespace mlir;

namespace lathe::codegen {

using hlo::elementType;
using hlo::tensorType;

/// An index operand's value as i64.
static Value asI64(KernelBuilder &b, Type elem, Value v) {
  if (v.getType().getIntOrFloatBitWidth() == 64)
    return v;
  return isUnsignedElem(elem) ? Value(arith::ExtUIOp::create(b, b.getI64Type(), v))
                              : Value(arith::ExtSIOp::create(b, b.getI64Type(), v));
}

FailureOr<Value> ElementEmitter::dynamicSlice(Operation *op, Index index, unsigned lanes) {
  auto s = cast<hlo::DynamicSliceOp>(op);
  SmallVector<Value> dims = b.dims(tensorType(s.getOperand())), sizes = b.dims(tensorType(s.getResult()));
  SmallVector<Value> at;
  for (auto [i, start] : llvm::enumerate(s.getStartIndices())) {
    FailureOr<Value> v = emitSplat(start, 1);
    if (failed(v))
      return failure();
    Value from = b.max(b.min(asI64(b, elementType(start), *v), b.sub(dims[i], sizes[i])), b.i64(0));
    at.push_back(b.add(from, index[i]));
  }
  return emit(s.getOperand(), at, lanes);
}

FailureOr<Value> ElementEmitter::dynamicUpdateSlice(Operation *op, Index index, unsigned lanes) {
  auto s = cast<hlo::DynamicUpdateSliceOp>(op);
  auto in = tensorType(s.getOperand()), up = tensorType(s.getUpdate());
  if (in.getRank() == 0)
    return emit(s.getUpdate(), index, lanes);
  bool wholeRows = hlo::equalDims(hlo::getDims(in).back(), hlo::getDims(up).back());
  if (lanes > 1 && !wholeRows)
    return Value();
  SmallVector<Value> dims = b.dims(in), sizes = b.dims(up), at;
  Value inside = b.cstI(b.getI1Type(), 1);
  for (auto [i, start] : llvm::enumerate(s.getStartIndices())) {
    if (wholeRows && i + 1 == index.size()) {
      at.push_back(index[i]);
      break;
    }
    FailureOr<Value> v = emitSplat(start, 1);
    if (failed(v))
      return failure();
    Value from = b.max(b.min(asI64(b, elementType(start), *v), b.sub(dims[i], sizes[i])), b.i64(0));
    at.push_back(b.sub(index[i], from));
    inside = b.both(inside, b.inRange(at.back(), b.i64(0), sizes[i]));
  }
  return branch(inside, regType(elementType(op->getResult(0)), lanes),
                [&] { return emit(s.getUpdate(), at, lanes); },
                [&] { return emit(s.getOperand(), index, lanes); });
}

FailureOr<Value> ElementEmitter::gather(Operation *op, Index index, unsigned lanes) {
  auto g = cast<hlo::GatherOp>(op);
  auto d = g.getDimensionNumbers();
  auto in = tensorType(g.getOperand()), starts = tensorType(g.getStartIndices());
  int64_t rank = in.getRank(), outRank = index.size();
  SmallVector<int64_t> kept; // operand dimensions that have an offset dimension
  for (int64_t i = 0; i < rank; ++i)
    if (!llvm::is_contained(d.getCollapsedSliceDims(), i) && !llvm::is_contained(d.getOperandBatchingDims(), i))
      kept.push_back(i);
  bool lastIsOffset = !d.getOffsetDims().empty() && d.getOffsetDims().back() == outRank - 1;
  if (lanes > 1 && !(lastIsOffset && kept.back() == rank - 1))
    return Value();
  SmallVector<Value> batch;
  for (int64_t i = 0; i < outRank; ++i)
    if (!llvm::is_contained(d.getOffsetDims(), i))
      batch.push_back(index[i]);
  SmallVector<Value> dims = b.dims(in), outDims = b.dims(tensorType(g.getResult())), at(rank, b.i64(0));
  int64_t vectorDim = d.getIndexVectorDim();
  // start_indices position of the batch index
  auto startAt = [&](Value k) {
    SmallVector<Value> p;
    unsigned next = 0;
    for (int64_t i = 0; i < starts.getRank(); ++i)
      p.push_back(i == vectorDim ? k : batch[next++]);
    return p;
  };
  auto sliceSize = [&](int64_t dim) -> Value {
    int64_t s = g.getSliceSizes()[dim];
    return s == ShapedType::kDynamic ? dims[dim] : b.i64(s);
  };
  for (auto [k, dim] : llvm::enumerate(d.getStartIndexMap())) {
    Value m = std::exchange(mask, Value());
    FailureOr<Value> v = emit(g.getStartIndices(), startAt(b.i64(k)), 1);
    mask = m;
    if (failed(v))
      return failure();
    Value s = asI64(b, starts.getElementType(), *v);
    at[dim] = b.max(b.min(s, b.sub(dims[dim], sliceSize(dim))), b.i64(0));
  }
  for (auto [i, dim] : llvm::enumerate(d.getOperandBatchingDims())) {
    int64_t sd = d.getStartIndicesBatchingDims()[i];
    at[dim] = batch[sd > vectorDim ? sd - 1 : sd];
  }
  for (auto [i, dim] : llvm::enumerate(kept))
    at[dim] = b.add(at[dim], index[d.getOffsetDims()[i]]);
  return emit(g.getOperand(), at, lanes);
}

} // namespace lathe::codegen
