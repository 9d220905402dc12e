// Nests with reductions: all results of one are computed in one pass and stand for it from then on.
#include "dialects/hlo/Hlo.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/plain/Rows.h"

using namespace mlir;

namespace lathe::plain {

using codegen::ElementEmitter;
using codegen::KernelBuilder;

/// Computes all results of `r` where the dimensions that it keeps are at `kept`, in one pass, and binds them.
static LogicalResult bindReduction(ElementEmitter &e, hlo::ReduceOp r, ArrayRef<Value> kept) {
  FailureOr<SmallVector<Value>> values = e.emitReduction(r, kept);
  if (failed(values))
    return failure();
  bindReduced(e, r, *values);
  return success();
}

void bindReduced(ElementEmitter &e, hlo::ReduceOp r, ValueRange values) {
  for (auto [result, v] : llvm::zip(r.getResults(), values))
    e.bindElement(result, [v = Value(v)](ArrayRef<Value>, unsigned) -> FailureOr<Value> { return v; });
}

static int64_t stepsOf(ArrayRef<hlo::ReduceOp> reductions) {
  int64_t steps = 0;
  for (hlo::ReduceOp r : reductions) {
    RankedTensorType in = hlo::tensorType(r.getInputs()[0]);
    int64_t count = 1;
    for (int64_t d : r.getDimensions())
      count *= in.isDynamicDim(d) ? 256 : in.getDimSize(d);
    steps += count * costOf(r.getInputs());
  }
  return steps;
}

SmallVector<hlo::ReduceOp> reductionsOf(Operation *op) {
  if (auto r = dyn_cast<hlo::ReduceOp>(op))
    return {r};
  return llvm::to_vector(op->getRegion(0).getOps<hlo::ReduceOp>());
}

FailureOr<Nest> reduceNest(Operation *op, KernelBuilder &b, Elements elements) {
  SmallVector<hlo::ReduceOp> reductions = reductionsOf(op);
  for (hlo::ReduceOp r : reductions)
    if (r.getDimensions() != reductions[0].getDimensions())
      return op->emitError("kernel.reduce with reductions over different dimensions");
  RankedTensorType type = hlo::tensorType(elements.roots[0]);
  Nest nest = elementNest(b, elements, stepsOf(reductions));
  nest.emit = [&b, elements, reductions, type, store = nest.emit](Value unit) -> LogicalResult {
    ElementEmitter::Scope scope(*elements.emitter);
    SmallVector<Value> index = b.delinearize(unit, b.dims(type));
    for (hlo::ReduceOp r : reductions)
      if (failed(bindReduction(*elements.emitter, r, index)))
        return failure();
    return store(unit);
  };
  return nest;
}

bool RowShape::isFull(Value v) const { return hlo::getDims(hlo::tensorType(v)) == dims; }

AffineExpr RowShape::count(MLIRContext *context) const {
  return hlo::numElements(ArrayRef<AffineExpr>(dims).take_front(lead), context);
}

FailureOr<RowShape> rowShape(Operation *op, ArrayRef<hlo::ReduceOp> reductions) {
  RowShape shape;
  for (hlo::ReduceOp r : reductions) {
    SmallVector<AffineExpr> dims = hlo::getDims(hlo::tensorType(r.getInputs()[0]));
    const int64_t rank = dims.size(), lead = rank - static_cast<int64_t>(r.getDimensions().size());
    if (shape.dims.empty())
      shape = {dims, lead};
    bool fits = dims == shape.dims && lead == shape.lead;
    for (int64_t i = 0; fits && i < rank; ++i)
      fits = llvm::is_contained(r.getDimensions(), i) == (i >= lead);
    if (!fits)
      return op->emitError("kernel.rows with reductions that are not along the same trailing dimensions");
  }
  return shape;
}

FailureOr<Nest> rowsNest(Operation *op, KernelBuilder &b, Elements elements) {
  SmallVector<hlo::ReduceOp> reductions = reductionsOf(op);
  FailureOr<RowShape> shape = rowShape(op, reductions);
  if (failed(shape))
    return failure();
  Nest nest;
  nest.units = shape->count(op->getContext());
  nest.work = 2 * stepsOf(reductions);
  nest.emit = [&b, elements, reductions, shape = *shape](Value unit) -> LogicalResult {
    ElementEmitter &e = *elements.emitter;
    ElementEmitter::Scope scope(e);
    SmallVector<Value> sizes;
    for (AffineExpr d : shape.dims)
      sizes.push_back(b.dim(d));
    ArrayRef<Value> all(sizes);
    SmallVector<Value> lead = b.delinearize(unit, all.take_front(shape.lead));
    for (hlo::ReduceOp r : reductions)
      if (failed(bindReduction(e, r, lead)))
        return failure();
    LogicalResult ok = success();
    auto store = [&](size_t k, ArrayRef<Value> index, Value place) {
      if (failed(storeRoot(b, elements, k, index, place)))
        ok = failure();
    };
    // results of a row first: they are read nowhere in it
    for (auto [k, root] : llvm::enumerate(elements.roots))
      if (!shape.isFull(root))
        store(k, b.delinearize(unit, b.dims(hlo::tensorType(root))), unit);
    if (llvm::none_of(elements.roots, [&](Value root) { return shape.isFull(root); }))
      return ok;
    b.nest(all.drop_front(shape.lead), [&](ValueRange inner) {
      ElementEmitter::Scope inside(e);
      SmallVector<Value> index(lead);
      llvm::append_range(index, inner);
      for (auto [k, root] : llvm::enumerate(elements.roots))
        if (shape.isFull(root))
          store(k, index, b.linearize(index, sizes));
    });
    return ok;
  };
  return nest;
}

} // namespace lathe::plain
