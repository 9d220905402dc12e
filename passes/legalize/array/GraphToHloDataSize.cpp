// Ops whose result has a size that only the data says: where, unique, set difference, partition, ragged ranges.
#include "passes/legalize/array/ArrayFamilies.h"
#include "passes/legalize/array/ArrayHelpers.h"

using namespace mlir;

namespace lathe::legalize {
namespace {

int64_t positionOf(AffineExpr symbol) { return cast<AffineSymbolExpr>(symbol).getPosition(); }

LogicalResult lowerWhere(NodeContext &c) {
  Value x = c.input(0);
  if (!c.isBool(x))
    x = c.compare(Compare::NE, x, c.like(x, 0));
  return c.setResult(0, c.convert(whereTrue(c, x), c.resultType(0)));
}

LogicalResult lowerUnique(NodeContext &c, bool axisInput) {
  Value x = c.input(0);
  int64_t axis = 0;
  if (axisInput) {
    auto axes = c.constantInts(1);
    if (failed(axes))
      return failure();
    if (axes->size() > 1)
      return c.error("expected one axis, found " + Twine(axes->size()));
    if (axes->size() == 1) {
      auto normal = c.normalizeAxis((*axes)[0], c.rank(x));
      if (failed(normal))
        return failure();
      axis = *normal;
    } else if (c.rank(x) != 1) {
      return c.error("an axis is needed for rank " + Twine(c.rank(x)));
    }
  } else if (failed(c.expectRank(0, 1))) {
    return failure();
  }
  AffineExpr count = c.ctx.newDataSymbol(c.name(), c.dim(x, axis));
  auto op = hlo::UniqueOp::create(c.b, c.loc, x, positionOf(count), axis, c.resultType(1));
  SmallVector<Value> results(op->getResults());
  if (auto known = foldDataSized(c, op))
    results = *known;
  for (unsigned i = 0; i < c.numResults(); ++i)
    if (failed(c.setResult(i, results[i])))
      return failure();
  return success();
}

LogicalResult lowerListDiff(NodeContext &c) {
  Value x = c.input(0), y = c.input(1);
  if (failed(c.expectRank(0, 1)) || failed(c.expectRank(1, 1)))
    return failure();
  Dims table{c.dim(x, 0), c.dim(y, 0)};
  Value equal = c.compare(Compare::EQ, c.broadcastInDim(x, table, {0}), c.broadcastInDim(y, table, {1}));
  Value keep = c.logicalNot(c.reduceOr(equal, {1}));
  SmallVector<Value> kept = compress(c, keep, {x, c.iota(c.dims(x), 0, c.resultType(1))});
  return success(succeeded(c.setResult(0, kept[0])) && succeeded(c.setResult(1, kept[1])));
}

LogicalResult lowerDynamicPartition(NodeContext &c) {
  Value data = c.input(0), parts = c.input(1);
  int64_t r = c.rank(parts), n = c.numResults();
  if (c.rank(data) < r)
    return c.error("the data has fewer dimensions than the partitions");
  for (int64_t i = 0; i < r; ++i)
    if (!c.ctx.unify(c.dim(data, i), c.dim(parts, i), c.name()))
      return c.error("dimension " + Twine(i) + " of data and partitions differ");
  Dims dims = c.dims(data), flat;
  flat.push_back(productOf(ArrayRef<AffineExpr>(dims).take_front(r), c.b.getContext()));
  flat.append(dims.begin() + r, dims.end());
  data = c.reshape(data, flat);
  parts = c.reshape(parts, ArrayRef<AffineExpr>{flat[0]});
  checkRange(c, parts, c.size(n), "a partition is out of range");
  for (int64_t i = 0; i < n; ++i) {
    Value mask = c.compare(Compare::EQ, parts, c.scalarInt(i, c.elementType(parts)));
    if (failed(c.setResult(i, compress(c, mask, {data})[0])))
      return failure();
  }
  return success();
}

} // namespace

void registerDataSize(HandlerTable &t) {
  t.add("Where", 1, lowerWhere);
  t.add("Unique", 1, [](NodeContext &c) { return lowerUnique(c, false); });
  t.add("UniqueV2", 2, [](NodeContext &c) { return lowerUnique(c, true); });
  t.add("UniqueWithCounts", 1, [](NodeContext &c) { return lowerUnique(c, false); });
  t.add("UniqueWithCountsV2", 2, [](NodeContext &c) { return lowerUnique(c, true); });
  t.add("ListDiff", 2, lowerListDiff);
  t.add("DynamicPartition", 2, lowerDynamicPartition);
}

} // namespace lathe::legalize
