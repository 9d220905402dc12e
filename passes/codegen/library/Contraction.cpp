// dot_general and convolution with any dimension numbers and element types: plain loops, for what the product
// generators do not take. A unit is a row of results.
#include "dialects/hlo/Hlo.h"
#include "passes/codegen/library/Library.h"
#include "passes/codegen/library/Sums.h"

using namespace mlir;

namespace lathe::codegen {

/// `at(index)` gives each result; sets extent and work.
static void emitRowsOfSums(KernelBuilder &b, RankedTensorType out, llvm::function_ref<Value(ValueRange)> at) {
  SmallVector<Value> sizes = b.dims(out);
  SmallVector<AffineExpr> exprs = hlo::getDims(out);
  const int64_t last = out.getRank() - 1;
  AffineExpr rows = b.getAffineConstantExpr(1);
  for (int64_t i = 0; i < last; ++i)
    rows = hlo::simplify(rows * exprs[i]);
  b.setExtent(rows);
  b.setWork(4096);
  auto one = [&](ValueRange index) {
    b.storeElem(out.getElementType(), at(index), b.results[0], b.linearize(index, sizes));
  };
  b.units([&](Value unit) {
    if (last < 0)
      return one({});
    SmallVector<Value> lead = b.delinearize(unit, ArrayRef<Value>(sizes).drop_back());
    b.loop(b.i64(0), sizes[last], [&](Value j) {
      SmallVector<Value> index(lead);
      index.push_back(j);
      one(index);
    });
  });
}

LogicalResult emitDotGeneral(Operation *op, KernelBuilder &b) {
  ContractionSum sum(b, contractionOf(op));
  emitRowsOfSums(b, hlo::tensorType(op->getResult(0)), [&](ValueRange index) { return sum.at(index); });
  return success();
}

LogicalResult emitConvolution(Operation *op, KernelBuilder &b) {
  ConvolutionSum sum(b, Convolution::of(cast<hlo::ConvolutionOp>(op)));
  emitRowsOfSums(b, hlo::tensorType(op->getResult(0)), [&](ValueRange index) { return sum.at(index); });
  return success();
}

} // namespace lathe::codegen
