// Gather, scatter, in-place updates of rows, stitching.
#include "passes/legalize/array/ArrayFamilies.h"
#include "passes/legalize/array/ArrayHelpers.h"

using namespace mlir;

namespace lathe::legalize {
namespace {

/// TensorFlow looks at no index where each would copy nothing: no slice is left, or the slices have no elements.
void checkGathered(NodeContext &c, Value params, Value indices, int64_t axis, int64_t batch) {
  Dims copied = c.dims(params);
  AffineExpr limit = copied[axis];
  copied.erase(copied.begin() + axis);
  copied.erase(copied.begin(), copied.begin() + batch);
  AffineExpr size = c.ctx.resolve(productOf(copied, c.b.getContext()));
  auto known = constantOf(size);
  if (known == int64_t(0))
    return;
  Type wide = c.b.getI64Type();
  Value empty = known ? Value() : c.compare(Compare::EQ, c.sizeValue(size, wide), c.scalarInt(0, wide));
  checkRange(c, indices, limit, "an index is out of range", empty);
}

LogicalResult lowerGather(NodeContext &c) {
  Value params = c.input(0), indices = c.input(1);
  int64_t axis = 0, batch = 0;
  if (c.numInputs() > 2) {
    auto a = c.axisInput(2, c.rank(params));
    if (failed(a))
      return failure();
    axis = *a;
    batch = c.attrInt("batch_dims");
    if (batch < 0)
      batch += c.rank(indices);
    if (batch < 0)
      return c.error("batch_dims is out of range");
  } else if (c.rank(params) < 1) {
    return c.error("params must have rank 1 or more");
  }
  if (params && indices && batch <= std::min(axis, c.rank(indices)))
    checkGathered(c, params, indices, axis, batch);
  return c.setResult(0, gather(c, params, indices, axis, batch, /*checked=*/false));
}

/// An empty policy is TensorFlow's own: an error on a CPU.
bool badIndicesFail(NodeContext &c) {
  StringRef policy = c.attrString("bad_indices_policy");
  return policy.empty() || policy == "DEFAULT" || policy == "ERROR";
}

LogicalResult lowerGatherNd(NodeContext &c) {
  Value params = c.input(0), indices = c.input(1);
  int64_t batch = c.attrInt("batch_dims");
  bool checked = badIndicesFail(c);
  Value result = gatherNd(c, params, indices, batch, checked);
  if (!result || checked)
    return c.setResult(0, result);
  // what an index outside asks for is zero
  int64_t last = c.rank(indices) - 1, depth = *constantOf(c.dim(indices, last));
  Value inside;
  for (int64_t k = 0; k < depth; ++k) {
    Value part = c.sliceDim(indices, last, c.size(k), c.size(k + 1));
    Type type = c.elementType(part);
    Value fits = c.logicalAnd(c.compare(Compare::GE, part, c.scalarInt(0, type)),
                              c.compare(Compare::LT, part, c.sizeValue(c.dim(params, batch + k), type)));
    inside = inside ? c.logicalAnd(inside, fits) : fits;
  }
  if (!inside)
    return c.setResult(0, result);
  Dims dims = c.dims(indices);
  dims.pop_back();
  SmallVector<int64_t> map = llvm::to_vector(llvm::seq<int64_t>(0, last));
  Value zero = c.splat(0, c.dims(result), c.elementType(result));
  return c.setResult(0, c.select(c.broadcastInDim(c.reshape(inside, dims), c.dims(result), map), result, zero));
}

/// What TensorFlow checks before it scatters: updates = indices[:-1] + result[depth:].
LogicalResult checkUpdates(NodeContext &c, Value operand, Value indices, Value updates) {
  int64_t indexRank = c.rank(indices);
  auto depth = indexRank ? constantOf(c.dim(indices, indexRank - 1)) : std::nullopt;
  if (!depth || *depth > c.rank(operand))
    return c.error("the last dimension of the indices must be known and at most the rank of the result");
  Dims wanted = c.dims(indices), rest = c.dims(operand);
  wanted.pop_back();
  wanted.append(rest.begin() + *depth, rest.end());
  Dims have = c.dims(updates);
  if (have.empty() && !wanted.empty())
    return success(); // one value for all, see TensorScatterUpdate
  if (have.size() != wanted.size())
    return c.error("expected updates of rank " + Twine(wanted.size()) + ", found " + Twine(have.size()));
  for (auto [i, a] : llvm::enumerate(have))
    if (!c.ctx.unify(a, wanted[i], c.name()))
      return c.error("dimension " + Twine(i) + " of the updates is " + textOf(a) + ", expected " + textOf(wanted[i]));
  return success();
}

LogicalResult lowerScatterNd(NodeContext &c) {
  Value indices = c.input(0), updates = c.input(1);
  auto shape = c.shapeInput(2);
  if (failed(shape))
    return failure();
  Value zeros = c.splat(0, *shape, c.elementType(updates));
  if (failed(checkUpdates(c, zeros, indices, updates)))
    return failure();
  return c.setResult(0, scatterNd(c, zeros, indices, updates, combineAdd, badIndicesFail(c)));
}

LogicalResult lowerTensorScatter(NodeContext &c, Combine combine) {
  Value x = c.input(0), indices = c.input(1), updates = c.input(2);
  if (failed(checkUpdates(c, x, indices, updates)))
    return failure();
  return c.setResult(0, scatterNd(c, x, indices, updates, combine, badIndicesFail(c)));
}

LogicalResult lowerInplace(NodeContext &c, Combine combine) {
  Value x = c.input(0), rows = c.input(1), v = c.input(2);
  // a scalar index takes one row
  if (c.rank(rows) == 0)
    rows = c.reshape(rows, ArrayRef<int64_t>{1});
  if (c.rank(v) == c.rank(x) - 1) {
    Dims dims = c.dims(v);
    dims.insert(dims.begin(), c.size(1));
    v = c.reshape(v, dims);
  }
  // rows count modulo the number of rows
  Type t = c.elementType(rows);
  Value n = c.sizeValue(c.dim(x, 0), t);
  rows = c.make<hlo::RemOp>(rows, c.broadcastTo(n, c.dims(rows)));
  rows = c.select(c.compare(Compare::LT, rows, c.scalarInt(0, t)), c.add(rows, n), rows);
  return c.setResult(0, scatterRows(c, x, rows, v, combine, /*checked=*/false));
}

LogicalResult lowerDynamicStitch(NodeContext &c) {
  unsigned n = c.numInputs() / 2;
  SmallVector<Value> indices, data;
  int64_t last = -1;
  bool known = true;
  for (unsigned i = 0; i < n; ++i) {
    Value index = c.input(i), v = c.input(n + i);
    int64_t r = c.rank(index);
    if (c.rank(v) < r)
      return c.error("data " + Twine(i) + " has fewer dimensions than its indices");
    for (int64_t k = 0; k < r; ++k)
      if (!c.ctx.unify(c.dim(index, k), c.dim(v, k), c.name()))
        return c.error("dimension " + Twine(k) + " of data " + Twine(i) + " and its indices differ");
    Dims dims = c.dims(v), flat;
    AffineExpr count = productOf(ArrayRef<AffineExpr>(dims).take_front(r), c.b.getContext());
    flat.push_back(count);
    flat.append(dims.begin() + r, dims.end());
    if (auto t = c.ctx.fold(index)) {
      for (int64_t k = 0; k < t->numElements(); ++k) {
        last = std::max<int64_t>(last, t->data<int32_t>()[k]);
        if (t->data<int32_t>()[k] < 0)
          return c.error("an index is negative");
      }
    } else {
      known = false;
    }
    indices.push_back(c.reshape(index, ArrayRef<AffineExpr>{count}));
    data.push_back(c.reshape(v, flat));
  }
  Value allIndices = c.concat(indices, 0), allData;
  if (!sameDims(c, data, 0))
    return failure();
  allData = c.concat(data, 0);
  AffineExpr rows = c.size(last + 1);
  if (!known) {
    // As many rows as the largest index says; each row has to come from somewhere, so there are no more than pieces.
    Type t = c.elementType(allIndices);
    Value most = c.reduceMax(c.concat({allIndices, c.Emitter::constantInts({-1}, t)}, 0), {0});
    AffineExpr bound = c.dim(allIndices, 0);
    rows = c.ctx.newDataSymbol(c.name(), bound);
    hlo::SetSizeOp::create(c.b, c.loc, c.add(most, c.scalarInt(1, t)),
                           int64_t(cast<AffineSymbolExpr>(rows).getPosition()), c.name());
  }
  Dims shape = c.dims(allData);
  shape[0] = rows;
  Value zeros = c.splat(0, shape, c.elementType(allData));
  return c.setResult(0, scatterRows(c, zeros, allIndices, allData, nullptr));
}

} // namespace

void registerGather(HandlerTable &t) {
  t.add("Gather", 2, lowerGather);
  t.add("GatherV2", 3, lowerGather);
  t.add("GatherNd", 2, lowerGatherNd);
  t.add("ScatterNd", 3, lowerScatterNd);
  t.add("TensorScatterUpdate", 3, [](NodeContext &c) { return lowerTensorScatter(c, nullptr); });
  t.add("TensorScatterAdd", 3, [](NodeContext &c) { return lowerTensorScatter(c, combineAdd); });
  t.add("ScatterNdNonAliasingAdd", 3, [](NodeContext &c) { return lowerTensorScatter(c, combineAdd); });
  t.add("TensorScatterSub", 3, [](NodeContext &c) { return lowerTensorScatter(c, combineSub); });
  t.add("TensorScatterMin", 3, [](NodeContext &c) { return lowerTensorScatter(c, combineMin); });
  t.add("TensorScatterMax", 3, [](NodeContext &c) { return lowerTensorScatter(c, combineMax); });
  t.add("InplaceUpdate", 3, [](NodeContext &c) { return lowerInplace(c, nullptr); });
  t.add("InplaceAdd", 3, [](NodeContext &c) { return lowerInplace(c, combineAdd); });
  t.add("InplaceSub", 3, [](NodeContext &c) { return lowerInplace(c, combineSub); });
  t.add("DynamicStitch", HandlerTable::atLeast(2), lowerDynamicStitch);
  t.add("ParallelDynamicStitch", HandlerTable::atLeast(2), lowerDynamicStitch);
}

} // namespace lathe::legalize
