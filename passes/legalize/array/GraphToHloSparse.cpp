// Sparse tensors as coordinates [n, rank], values [n] and a shape vector.
#include "passes/legalize/array/ArrayFamilies.h"
#include "passes/legalize/array/ArrayHelpers.h"
#include "passes/legalize/array/Sparse.h"

using namespace mlir;

namespace lathe::legalize {
Value columnOf(NodeContext &c, Value table, int64_t k) {
  return c.reshape(c.sliceDim(table, 1, c.size(k), c.size(k + 1)), Dims{c.dim(table, 0)});
}

Value entryOf(NodeContext &c, Value v, int64_t k) {
  return c.reshape(c.sliceDim(v, 0, c.size(k), c.size(k + 1)), ArrayRef<AffineExpr>());
}

FailureOr<int64_t> columnsOf(NodeContext &c, Value indices) {
  auto n = c.rank(indices) == 2 ? constantOf(c.dim(indices, 1)) : std::nullopt;
  if (!n)
    return c.error("the coordinates must be a matrix with a known number of columns");
  constexpr int64_t mostDimensions = 254; // of a tensor in TensorFlow
  if (*n > mostDimensions)
    return c.error("coordinates of " + Twine(*n) + " dimensions");
  return *n;
}

Value linearOf(NodeContext &c, Value indices, Value shape, int64_t rank) {
  Value linear = c.splatInt(0, ArrayRef<AffineExpr>{c.dim(indices, 0)}, c.elementType(indices));
  for (int64_t d = 0; d < rank; ++d)
    linear = c.add(c.mul(linear, c.convert(entryOf(c, shape, d), c.elementType(linear))), columnOf(c, indices, d));
  return linear;
}

namespace {

Value table(NodeContext &c, ArrayRef<Value> columns) {
  SmallVector<Value> parts;
  for (Value v : columns)
    parts.push_back(c.reshape(v, Dims{c.dim(v, 0), c.size(1)}));
  return c.concat(parts, 1);
}

/// Rows in row-major order of their coordinates.
std::pair<Value, Value> reorder(NodeContext &c, Value indices, Value values, Value shape, int64_t rank) {
  Value linear = linearOf(c, indices, shape, rank);
  Value order = c.iota(c.dims(linear), 0, c.b.getI64Type());
  Value places = sortBy(c, {linear, order})[1];
  return {gather(c, indices, places, 0, 0, false), gather(c, values, places, 0, 0, false)};
}

LogicalResult setThree(NodeContext &c, unsigned first, unsigned stride, Value a, Value b, Value d) {
  return success(succeeded(c.setResult(first, a)) && succeeded(c.setResult(first + stride, b)) &&
                 succeeded(c.setResult(first + 2 * stride, d)));
}

LogicalResult lowerSparseToDense(NodeContext &c) {
  Value indices = c.input(0), values = c.input(2), otherwise = c.input(3);
  auto shape = c.shapeInput(1);
  if (failed(shape) || failed(c.expectRank(3, 0)))
    return failure();
  if (c.rank(indices) < 2) {
    // a scalar or a vector lists places of a vector, or one coordinate
    AffineExpr n = c.rank(indices) ? c.dim(indices, 0) : c.size(1);
    indices = c.reshape(indices, Dims{n, c.size(1)});
  }
  if (c.rank(indices) != 2 || !c.ctx.unify(c.dim(indices, 1), c.size(shape->size()), c.name()))
    return c.error("the coordinates do not fit a shape of " + Twine(shape->size()) + " dimensions");
  return c.setResult(0, scatterNd(c, c.broadcastInDim(otherwise, *shape, {}), indices, values, nullptr));
}

LogicalResult lowerReorder(NodeContext &c) {
  Value indices = c.input(0);
  auto rank = columnsOf(c, indices);
  if (failed(rank))
    return failure();
  auto [i, v] = reorder(c, indices, c.input(1), c.input(2), *rank);
  return success(succeeded(c.setResult(0, i)) && succeeded(c.setResult(1, v)));
}

LogicalResult lowerReshape(NodeContext &c) {
  Value indices = c.input(0), from = c.input(1), to = c.input(2);
  auto rank = columnsOf(c, indices);
  auto wide = constantOf(c.dim(to, 0));
  if (failed(rank) || !wide)
    return c.error("the ranks must be known");
  Type i64 = c.b.getI64Type();
  // The free size is what the others leave.
  Value free = c.compare(Compare::EQ, to, c.like(to, -1));
  Value known = c.reduceProd(c.select(free, c.like(to, 1), to), {0}), total = c.reduceProd(from, {0});
  Value rest = c.div(total, c.max(known, c.scalarInt(1, i64)));
  Value shape = c.select(free, rest, to);
  c.check(c.compare(Compare::EQ, c.reduceProd(shape, {0}), total), "the shapes differ in their number of elements");
  Value linear = linearOf(c, indices, from, *rank);
  SmallVector<Value> columns(*wide);
  for (int64_t d = *wide; d-- > 0;) {
    Value n = c.max(entryOf(c, shape, d), c.scalarInt(1, i64));
    columns[d] = c.binary<hlo::RemOp>(linear, n);
    linear = c.div(linear, n);
  }
  Value result = columns.empty() ? c.splatInt(0, Dims{c.dim(indices, 0), c.size(0)}, i64) : table(c, columns);
  if (*wide == *rank && *rank > 0) { // the same shape leaves them as they are, also those that lie outside
    Value same = c.reduceAnd(c.compare(Compare::EQ, shape, from), {0});
    result = c.select(c.broadcastInDim(same, c.dims(result), {}), indices, result);
  }
  return success(succeeded(c.setResult(0, result)) && succeeded(c.setResult(1, shape)));
}

/// The part between start and start + size, its coordinates counted from start.
LogicalResult sliceInto(NodeContext &c, Value indices, Value values, Value start, Value size, int64_t rank,
                        unsigned result, unsigned stride, Value shape) {
  if (rank < 1)
    return c.error("a tensor without dimensions has no slices");
  Value keep;
  SmallVector<Value> columns;
  for (int64_t d = 0; d < rank; ++d) {
    Value v = columnOf(c, indices, d), from = entryOf(c, start, d);
    Value inside = c.logicalAnd(c.compare(Compare::GE, v, from), c.compare(Compare::LT, v, c.add(from, entryOf(c, size, d))));
    keep = keep ? c.logicalAnd(keep, inside) : inside;
    columns.push_back(c.sub(v, from));
  }
  SmallVector<Value> kept = compress(c, keep, {table(c, columns), values});
  Value zero = c.like(shape, 0);
  Value outShape = c.max(c.min(size, c.sub(shape, start)), zero);
  return setThree(c, result, stride, kept[0], kept[1], outShape);
}

LogicalResult lowerSlice(NodeContext &c) {
  Value indices = c.input(0);
  auto rank = columnsOf(c, indices);
  if (failed(rank))
    return failure();
  return sliceInto(c, indices, c.input(1), c.input(3), c.input(4), *rank, 0, 1, c.input(2));
}

LogicalResult lowerSplit(NodeContext &c) {
  Value indices = c.input(1), shape = c.input(3);
  auto rank = columnsOf(c, indices);
  if (failed(rank))
    return failure();
  auto axis = c.axisInput(0, *rank);
  if (failed(axis))
    return failure();
  unsigned n = c.attrInt("num_split");
  Type i64 = c.b.getI64Type();
  // The first parts are one longer where the size does not divide.
  Value whole = entryOf(c, shape, *axis), part = c.div(whole, c.scalarInt(n, i64));
  Value residual = c.binary<hlo::RemOp>(whole, c.scalarInt(n, i64));
  Value from = c.scalarInt(0, i64);
  Value zeros = c.like(shape, 0);
  SmallVector<int64_t> unit(*rank, 0);
  unit[*axis] = 1;
  Value mask = c.compare(Compare::NE, c.Emitter::constantInts(unit, i64), zeros);
  for (unsigned i = 0; i < n; ++i) {
    Value longer = c.convert(c.compare(Compare::LT, c.scalarInt(i, i64), residual), i64);
    Value length = c.add(part, longer);
    Value start = c.select(mask, from, zeros), size = c.select(mask, length, shape);
    if (failed(sliceInto(c, indices, c.input(2), start, size, *rank, i, n, shape)))
      return failure();
    from = c.add(from, length);
  }
  return success();
}

LogicalResult lowerConcat(NodeContext &c) {
  unsigned n = c.numInputs() / 3;
  auto rank = columnsOf(c, c.input(0));
  if (failed(rank))
    return failure();
  auto axis = c.normalizeAxis(c.attrInt("concat_dim"), *rank);
  if (failed(axis))
    return failure();
  Type i64 = c.b.getI64Type();
  SmallVector<int64_t> unit(*rank, 0);
  unit[*axis] = 1;
  Value mask = c.Emitter::constantInts(unit, i64), offset = c.scalarInt(0, i64);
  SmallVector<Value> indices, values;
  Value shape;
  for (unsigned i = 0; i < n; ++i) {
    Value s = c.input(2 * n + i), at = c.mul(mask, c.broadcastTo(offset, c.dims(mask)));
    indices.push_back(c.add(c.input(i), at));
    values.push_back(c.input(n + i));
    offset = c.add(offset, entryOf(c, s, *axis));
    shape = s;
  }
  shape = c.select(c.compare(Compare::NE, mask, c.like(mask, 0)), offset, shape);
  if (!shape)
    return failure();
  auto [places, sorted] = reorder(c, c.concat(indices, 0), c.concat(values, 0), shape, *rank);
  return setThree(c, 0, 1, places, sorted, shape);
}

LogicalResult lowerDenseMatMul(NodeContext &c) {
  Value indices = c.input(0), values = c.input(1), b = c.input(3);
  auto shape = c.shapeInput(2);
  if (failed(shape) || failed(c.expectRank(3, 2)))
    return failure();
  if (shape->size() != 2)
    return c.error("expected a sparse matrix");
  bool adjointA = c.attrBool("adjoint_a"), adjointB = c.attrBool("adjoint_b");
  if (adjointB) {
    b = c.transpose(b, {1, 0});
    if (c.isComplex(b))
      b = c.unary<hlo::ConjOp>(b);
  }
  if (adjointA && c.isComplex(values))
    values = c.unary<hlo::ConjOp>(values);
  Value row = columnOf(c, indices, adjointA ? 1 : 0), col = columnOf(c, indices, adjointA ? 0 : 1);
  AffineExpr rows = (*shape)[adjointA ? 1 : 0], inner = (*shape)[adjointA ? 0 : 1];
  if (!c.ctx.unify(inner, c.dim(b, 0), c.name()))
    return c.error("inner dimensions differ: " + textOf(inner) + " and " + textOf(c.dim(b, 0)));
  Value picked = gather(c, b, col, 0);
  if (!picked)
    return failure();
  Value terms = c.mul(picked, c.broadcastInDim(values, c.dims(picked), {0}));
  return c.setResult(0, scatterRows(c, c.splat(0, Dims{rows, c.dim(b, 1)}, c.elementType(b)), row, terms, combineAdd));
}

LogicalResult lowerTensorDenseAdd(NodeContext &c) {
  return c.setResult(0, scatterNd(c, c.input(3), c.input(0), c.input(1), combineAdd));
}

/// Values combined with what a dense tensor, broadcast to the sparse shape, has at their places.
template <typename Op>
LogicalResult lowerDenseCwise(NodeContext &c) {
  Value indices = c.input(0), dense = c.input(3);
  auto rank = columnsOf(c, indices);
  if (failed(rank))
    return failure();
  SmallVector<Value> columns;
  int64_t skip = *rank - c.rank(dense);
  if (skip < 0)
    return c.error("the dense input has more dimensions than the sparse one");
  for (int64_t d = 0; d < c.rank(dense); ++d) {
    Value v = columnOf(c, indices, skip + d);
    columns.push_back(constantOf(c.dim(dense, d)) == int64_t(1) ? c.like(v, 0) : v);
  }
  Value picked = columns.empty() ? c.broadcastTo(dense, c.dims(c.input(1))) : gatherNd(c, dense, table(c, columns));
  return c.setResult(0, c.binary<Op>(c.input(1), picked));
}

} // namespace

void registerSparse(HandlerTable &t) {
  t.add("SparseToDense", 4, lowerSparseToDense);
  t.add("SparseReorder", 3, lowerReorder);
  t.add("SparseReshape", 3, lowerReshape);
  t.add("SparseSlice", 5, lowerSlice);
  t.add("SparseSplit", 4, lowerSplit);
  t.add("SparseConcat", HandlerTable::atLeast(3), lowerConcat);
  t.add("SparseTensorDenseMatMul", 4, lowerDenseMatMul);
  t.add("SparseTensorDenseAdd", 4, lowerTensorDenseAdd);
  t.add("SparseDenseCwiseMul", 4, lowerDenseCwise<hlo::MulOp>);
  t.add("SparseDenseCwiseAdd", 4, lowerDenseCwise<hlo::AddOp>);
  t.add("SparseDenseCwiseDiv", 4, lowerDenseCwise<hlo::DivOp>);
}

} // namespace lathe::legalize
