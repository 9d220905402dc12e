// Sparse and ragged ops whose number of rows the data says: filling empty rows, unions of coordinates, gradients of
// segment sums; reductions and softmax over coordinates.
#include "passes/legalize/array/ArrayFamilies.h"
#include "passes/legalize/array/ArrayHelpers.h"
#include "passes/legalize/array/Sparse.h"

using namespace mlir;

namespace lathe::legalize {
namespace {

/// A size that the value of an integer scalar says, at most `bound`.
AffineExpr sizeOf(NodeContext &c, Value count, AffineExpr bound, StringRef what) {
  if (auto known = c.ctx.fold(count))
    return c.size(known->dtype() == DType::Int64 ? *known->data<int64_t>() : *known->data<int32_t>());
  AffineExpr n = c.ctx.newDataSymbol((c.name() + "." + what).str(), bound);
  hlo::SetSizeOp::create(c.b, c.loc, c.convert(count, c.b.getI32Type()),
                         int64_t(cast<AffineSymbolExpr>(n).getPosition()), c.name());
  return n;
}

//===----------------------------------------------------------------------===//
// Filling empty rows
//===----------------------------------------------------------------------===//

struct Filled {
  Value rows, values, empty, reverse;
  /// Input row of each output row; past the inputs for filled ones.
  Value source;
};

/// Groups rows by their number, in their order, with `otherwise` in each of the `count` rows that nothing is in.
std::optional<Filled> fillRows(NodeContext &c, Value rows, Value values, AffineExpr count, Value otherwise) {
  Type i64 = c.b.getI64Type(), i32 = c.b.getI32Type();
  AffineExpr n = c.dim(rows, 0), all = hlo::simplify(n + count);
  if (!c.ctx.unify(n, c.dim(values, 0), c.name())) {
    (void)c.error("there are not as many values as rows");
    return std::nullopt;
  }
  rows = c.convert(rows, i64);
  checkRange(c, rows, count, "a row is out of range");
  Filled f;
  Value counts = scatterRows(c, c.splatInt(0, Dims{count}, i32), rows, c.splatInt(1, Dims{n}, i32), combineAdd, false);
  if (!counts)
    return std::nullopt;
  f.empty = c.compare(Compare::EQ, counts, c.like(counts, 0));
  Value extra = c.reduceSum(c.convert(f.empty, i32), {0});
  // rows that are not empty already sort behind everything and are cut off
  Value spare = c.select(f.empty, c.iota(Dims{count}, 0, i64), c.highest(i64));
  SmallVector<Value> sorted = sortBy(c, {c.concat({rows, spare}, 0), c.iota(Dims{all}, 0, i64)});
  AffineExpr size = sizeOf(c, c.add(extra, c.sizeValue(n, i32)), all, "rows");
  f.rows = c.sliceDim(sorted[0], 0, c.size(0), size);
  f.source = c.sliceDim(sorted[1], 0, c.size(0), size);
  Dims tail = c.dims(values);
  tail[0] = c.size(1);
  // one row behind the values: the default
  Value padded = c.concat({values, c.broadcastInDim(otherwise, tail, {})}, 0);
  Value at = c.min(f.source, c.convert(c.sizeValue(n, i64), i64));
  f.values = gather(c, padded, at, 0, 0, /*checked=*/false);
  Value places = c.iota(Dims{size}, 0, i64);
  f.reverse = scatterRows(c, c.splatInt(0, Dims{n}, i64), f.source, places, nullptr, /*checked=*/false);
  if (!f.values || !f.reverse)
    return std::nullopt;
  return f;
}

LogicalResult lowerSparseFill(NodeContext &c) {
  Value indices = c.input(0), values = c.input(1);
  auto columns = columnsOf(c, indices);
  auto shape = c.shapeInput(2);
  if (failed(columns) || failed(shape) || failed(c.expectRank(3, 0)))
    return failure();
  if (shape->empty() || int64_t(shape->size()) != *columns)
    return c.error("the coordinates do not fit a shape of " + Twine(shape->size()) + " dimensions");
  auto f = fillRows(c, columnOf(c, indices, 0), values, (*shape)[0], c.input(3));
  if (!f)
    return failure();
  // filled rows have zeros in the other columns
  Value zero = c.splatInt(0, Dims{c.size(1), c.size(*columns)}, c.elementType(indices));
  Value at = c.min(f->source, c.sizeValue(c.dim(indices, 0), c.b.getI64Type()));
  Value picked = gather(c, c.concat({indices, zero}, 0), at, 0, 0, /*checked=*/false);
  if (!picked)
    return failure();
  Value first = c.reshape(f->rows, Dims{c.dim(f->rows, 0), c.size(1)});
  Value table = *columns > 1 ? c.concat({first, c.sliceDim(picked, 1, c.size(1), c.size(*columns))}, 1) : first;
  if (failed(c.setResult(0, table)) || failed(c.setResult(1, f->values)) || failed(c.setResult(2, f->empty)))
    return failure();
  return c.setResult(3, f->reverse);
}

LogicalResult lowerRaggedFill(NodeContext &c) {
  auto count = c.sizeInput(2);
  if (failed(count) || failed(c.expectRank(0, 1)) || failed(c.expectRank(3, 0)))
    return failure();
  if (c.rank(c.input(1)) < 1)
    return c.error("the values must have rank 1 or more");
  auto f = fillRows(c, c.input(0), c.input(1), *count, c.input(3));
  if (!f || failed(c.setResult(0, f->rows)) || failed(c.setResult(1, f->values)) || failed(c.setResult(2, f->empty)))
    return failure();
  return c.setResult(3, f->reverse);
}

LogicalResult lowerFillGrad(NodeContext &c) {
  Value reverse = c.input(0), grad = c.input(1);
  if (failed(c.expectRank(0, 1)) || c.rank(grad) < 1)
    return c.error("expected a vector and a gradient of rank 1 or more");
  Value picked = gather(c, grad, reverse, 0);
  if (!picked)
    return failure();
  // what no input row became is the default's
  Type i1 = c.b.getI1Type();
  AffineExpr n = c.dim(grad, 0);
  Value taken = scatterRows(c, c.splatInt(0, Dims{n}, i1), reverse, c.splatInt(1, c.dims(reverse), i1), nullptr, false);
  if (!taken)
    return failure();
  Value rest = c.select(c.broadcastInDim(taken, c.dims(grad), {0}), c.like(grad, 0), grad);
  SmallVector<int64_t> axes = llvm::to_vector(llvm::seq<int64_t>(0, c.rank(grad)));
  if (failed(c.setResult(0, picked)))
    return failure();
  return c.setResult(1, c.reduceSum(rest, axes));
}

//===----------------------------------------------------------------------===//
// Unions of coordinates
//===----------------------------------------------------------------------===//

/// All coordinates of two sparse tensors in order, each once, with the value that each tensor has there (or zero).
struct Union {
  Value indices, a, b;
  Value both; ///< where both have one
};

std::optional<Union> uniteSparse(NodeContext &c, Value ai, Value av, Value bi, Value bv, Value shape, int64_t rank) {
  Type i64 = c.b.getI64Type(), i32 = c.b.getI32Type(), element = c.elementType(av);
  if (c.rank(shape) != 1 || !c.ctx.unify(c.dim(shape, 0), c.size(rank), c.name())) {
    (void)c.error("expected a shape of " + Twine(rank) + " dimensions");
    return std::nullopt;
  }
  Value indices = c.concat({ai, bi}, 0), linear = linearOf(c, indices, shape, rank);
  AffineExpr n = c.dim(indices, 0), na = c.dim(ai, 0), nb = c.dim(bi, 0);
  SmallVector<Value> sorted = sortBy(c, {linear, c.iota(Dims{n}, 0, i64)});
  // a place is new unless the one before is the same; its number is how many new ones came before
  Value before = c.pad(sorted[0], c.scalarInt(-1, c.elementType(sorted[0])), {1}, {-1});
  Value isNew = c.compare(Compare::NE, sorted[0], before);
  if (constantOf(n) == int64_t(0))
    isNew = c.splatInt(0, Dims{n}, c.b.getI1Type());
  Value number = c.sub(runningSum(c, c.convert(isNew, i32)), c.splatInt(1, Dims{n}, i32));
  Value first = compress(c, isNew, {sorted[1]})[0];
  if (!first)
    return std::nullopt;
  Union u;
  u.indices = gather(c, indices, first, 0, 0, /*checked=*/false);
  AffineExpr size = c.dim(first, 0);
  Value places = scatterRows(c, c.splatInt(0, Dims{n}, i32), sorted[1], number, nullptr, /*checked=*/false);
  if (!u.indices || !places)
    return std::nullopt;
  auto put = [&](AffineExpr from, AffineExpr to, Value values) {
    Value at = c.sliceDim(places, 0, from, to);
    return scatterRows(c, c.splat(0, Dims{size}, element), at, values, combineAdd, /*checked=*/false);
  };
  u.a = put(c.size(0), na, av);
  u.b = put(na, hlo::simplify(na + nb), bv);
  Value counts = scatterRows(c, c.splatInt(0, Dims{size}, i32), places, c.splatInt(1, Dims{n}, i32), combineAdd, false);
  if (!u.a || !u.b || !counts)
    return std::nullopt;
  u.both = c.compare(Compare::GT, counts, c.like(counts, 1));
  return u;
}

template <typename Op>
LogicalResult lowerSparseSparse(NodeContext &c) {
  auto rank = columnsOf(c, c.input(0));
  if (failed(rank))
    return failure();
  auto u = uniteSparse(c, c.input(0), c.input(1), c.input(3), c.input(4), c.input(2), *rank);
  if (!u || failed(c.setResult(0, u->indices)))
    return failure();
  return c.setResult(1, c.binary<Op>(u->a, u->b));
}

LogicalResult lowerSparseAdd(NodeContext &c) {
  auto rank = columnsOf(c, c.input(0));
  if (failed(rank) || failed(c.expectRank(6, 0)))
    return failure();
  auto u = uniteSparse(c, c.input(0), c.input(1), c.input(3), c.input(4), c.input(2), *rank);
  if (!u)
    return failure();
  Value sum = c.add(u->a, u->b), size = c.isUnsigned(sum) ? sum : c.unary<hlo::AbsOp>(sum);
  // only sums may vanish; what one of the two has alone stays
  Value keep = c.logicalOr(c.logicalNot(u->both), c.compare(Compare::LE, c.convert(c.input(6), c.elementType(size)), size));
  SmallVector<Value> kept = compress(c, keep, {u->indices, sum});
  if (failed(c.setResult(0, kept[0])) || failed(c.setResult(1, kept[1])))
    return failure();
  return c.setResult(2, c.input(2));
}

/// For each row of `wanted` the sum of `values` at the equal rows of `have`.
Value lookUp(NodeContext &c, Value wanted, Value have, Value values, int64_t rank) {
  if (!c.ctx.unify(c.dim(values, 0), c.dim(have, 0), c.name())) {
    (void)c.error("there are not as many gradients as coordinates");
    return {};
  }
  Dims table{c.dim(wanted, 0), c.dim(have, 0)};
  Value same = c.splatInt(1, table, c.b.getI1Type());
  for (int64_t d = 0; d < rank; ++d)
    same = c.logicalAnd(same, c.compare(Compare::EQ, c.broadcastInDim(columnOf(c, wanted, d), table, {0}),
                                        c.broadcastInDim(columnOf(c, have, d), table, {1})));
  Value spread = c.broadcastInDim(values, table, {1});
  return c.reduceSum(c.select(same, spread, c.like(spread, 0)), {1});
}

LogicalResult lowerSparseAddGrad(NodeContext &c) {
  auto rank = columnsOf(c, c.input(3));
  if (failed(rank))
    return failure();
  for (unsigned i = 0; i < 2; ++i)
    if (failed(c.setResult(i, lookUp(c, c.input(1 + i), c.input(3), c.input(0), *rank))))
      return failure();
  return success();
}

LogicalResult lowerSparseSliceGrad(NodeContext &c) {
  auto rank = columnsOf(c, c.input(1));
  if (failed(rank))
    return failure();
  Value out = c.input(3), start = c.broadcastInDim(c.input(2), c.dims(out), {1});
  return c.setResult(0, lookUp(c, c.input(1), c.add(out, start), c.input(0), *rank));
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

LogicalResult lowerSparseReduce(NodeContext &c, bool maximum) {
  Value indices = c.input(0), values = c.input(1);
  auto rank = columnsOf(c, indices);
  auto shape = c.shapeInput(2);
  if (failed(rank) || failed(shape))
    return failure();
  if (int64_t(shape->size()) != *rank)
    return c.error("the coordinates do not fit a shape of " + Twine(shape->size()) + " dimensions");
  auto axes = c.axesInput(3, *rank);
  if (failed(axes))
    return failure();
  // the coordinates that stay
  Dims kept, result;
  SmallVector<Value> columns;
  bool keep = c.attrBool("keep_dims");
  for (int64_t d = 0; d < *rank; ++d) {
    if (llvm::is_contained(*axes, d)) {
      if (keep)
        result.push_back(c.size(1));
      continue;
    }
    kept.push_back((*shape)[d]);
    result.push_back((*shape)[d]);
    columns.push_back(c.reshape(columnOf(c, indices, d), Dims{c.dim(indices, 0), c.size(1)}));
  }
  Type element = c.elementType(values);
  Value at = columns.empty() ? c.splatInt(0, Dims{c.dim(indices, 0), c.size(0)}, c.elementType(indices)) : c.concat(columns, 1);
  Value sum;
  if (!maximum) {
    sum = columns.empty() ? c.reduceSum(values, {0}) : scatterNd(c, c.splat(0, kept, element), at, values, combineAdd);
  } else {
    Type i1 = c.b.getI1Type();
    Value ones = c.splatInt(1, c.dims(values), i1);
    Value best, any;
    if (columns.empty()) {
      best = c.reduceMax(values, {0});
      any = c.reduceOr(ones, {0});
    } else {
      // a NaN stands until the next number
      auto later = [](OpBuilder &b, Location loc, Value x, Value y) { return chooseUnless(b, loc, x, y, Compare::GT); };
      best = scatterNd(c, c.broadcastInDim(c.lowest(element), kept, {}), at, values, later);
      any = scatterNd(c, c.splatInt(0, kept, i1), at, ones, nullptr);
    }
    sum = best && any ? c.select(any, best, c.like(best, 0)) : Value();
  }
  return c.setResult(0, sum ? c.reshape(sum, result) : sum);
}

/// Softmax among the values of each row (all coordinates but the last).
LogicalResult lowerSparseSoftmax(NodeContext &c) {
  Value indices = c.input(0), values = c.input(1);
  auto rank = columnsOf(c, indices);
  auto shape = c.shapeInput(2);
  if (failed(rank) || failed(shape))
    return failure();
  if (*rank < 2 || int64_t(shape->size()) != *rank)
    return c.error("expected a sparse tensor of rank 2 or more");
  Dims lead(shape->begin(), shape->end() - 1);
  Value rows = linearOf(c, indices, c.input(2), *rank - 1);
  Type element = c.elementType(values), wide = element.getIntOrFloatBitWidth() < 32 ? Type(c.b.getF32Type()) : element;
  Value x = c.convert(values, wide);
  Dims flat{productOf(lead, c.b.getContext())};
  Value most = scatterRows(c, c.broadcastInDim(c.lowest(wide), flat, {}), rows, x, combineMax);
  Value own = gather(c, most, rows, 0, 0, /*checked=*/false);
  if (!own)
    return failure();
  Value powers = c.unary<hlo::ExpOp>(c.sub(x, own));
  Value sums = scatterRows(c, c.splat(0, flat, wide), rows, powers, combineAdd, /*checked=*/false);
  Value total = gather(c, sums, rows, 0, 0, /*checked=*/false);
  return c.setResult(0, total ? c.convert(c.div(powers, total), element) : total);
}

//===----------------------------------------------------------------------===//
// Gradients of sparse segment sums: only the rows that occur
//===----------------------------------------------------------------------===//

enum class Share { Sum, Mean, SqrtN };

LogicalResult lowerSegmentGradV2(NodeContext &c, Share share) {
  Value grad = c.input(0), indices = c.input(1), ids = c.input(2);
  if (!sameDims(c, {indices, ids}) || failed(c.expectRank(1, 1)))
    return failure();
  if (c.rank(grad) < 1)
    return c.error("the gradient must have rank 1 or more");
  auto rows = c.sizeInput(3);
  if (failed(rows))
    return failure();
  checkRange(c, indices, *rows, "an index is out of range");
  Type element = c.elementType(grad), i32 = c.b.getI32Type(), i64 = c.b.getI64Type();
  Type wide = element.getIntOrFloatBitWidth() < 32 ? Type(c.b.getF32Type()) : element;
  Value scaled = c.convert(grad, wide);
  AffineExpr n = c.dim(indices, 0), segments = c.dim(grad, 0);
  if (share != Share::Sum) {
    Value counts = scatterRows(c, c.splat(0, Dims{segments}, wide), ids, c.splat(1, Dims{n}, wide), combineAdd);
    if (!counts)
      return failure();
    counts = c.max(counts, c.like(counts, 1));
    if (share == Share::SqrtN)
      counts = c.unary<hlo::SqrtOp>(counts);
    scaled = c.div(scaled, c.broadcastInDim(counts, c.dims(scaled), {0}));
  }
  Value picked = gather(c, scaled, ids, 0);
  if (!picked)
    return failure();
  SmallVector<Value> sorted = sortBy(c, {indices, c.iota(Dims{n}, 0, i64)});
  Value before = c.pad(sorted[0], c.scalarInt(-1, c.elementType(indices)), {1}, {-1});
  Value isNew = c.compare(Compare::NE, sorted[0], before);
  if (constantOf(n) == int64_t(0))
    isNew = c.splatInt(0, Dims{n}, c.b.getI1Type());
  Value number = c.sub(runningSum(c, c.convert(isNew, i32)), c.splatInt(1, Dims{n}, i32));
  Value unique = compress(c, isNew, {sorted[0]})[0];
  Value places = scatterRows(c, c.splatInt(0, Dims{n}, i32), sorted[1], number, nullptr, /*checked=*/false);
  if (!unique || !places)
    return failure();
  Dims shape = c.dims(picked);
  shape[0] = c.dim(unique, 0);
  Value sums = scatterRows(c, c.splat(0, shape, wide), places, picked, combineAdd, /*checked=*/false);
  if (!sums || failed(c.setResult(0, c.convert(sums, element))))
    return failure();
  return c.setResult(1, unique);
}

//===----------------------------------------------------------------------===//
// Counts
//===----------------------------------------------------------------------===//

/// How often each number occurs (in each row), as a sparse tensor.
LogicalResult lowerDenseCount(NodeContext &c) {
  Value values = c.input(0), weights = c.input(1);
  int64_t rank = c.rank(values), most = c.attrInt("maxlength", -1), least = c.attrInt("minlength", -1);
  if (rank < 1 || rank > 2)
    return c.error("expected a vector or a matrix, found rank " + Twine(rank));
  Type i64 = c.b.getI64Type(), type = c.resultType(1);
  int64_t width = most;
  if (most < 0) {
    auto known = c.ctx.fold(c.convert(values, i64));
    if (!known)
      return c.error("the values must be known at compile time where maxlength is not given");
    width = std::max<int64_t>(least, 1);
    for (int64_t i = 0; i < known->numElements(); ++i)
      width = std::max(width, known->data<int64_t>()[i] + 1);
    if (width > (int64_t(1) << 24))
      return c.error("a value is too large");
  }
  values = c.convert(values, i64);
  c.check(c.compare(Compare::GE, values, c.like(values, 0)), "a value is negative");
  Dims dims = c.dims(values), table;
  if (rank == 2)
    table.push_back(dims[0]);
  table.push_back(c.size(width));
  AffineExpr n = productOf(dims, c.b.getContext());
  SmallVector<Value> columns;
  for (int64_t d = 0; d < rank; ++d) {
    Value v = d + 1 == rank ? values : c.iota(dims, 0, i64);
    columns.push_back(c.reshape(v, Dims{n, c.size(1)}));
  }
  Value at = c.concat(columns, 1);
  bool weighted = !(c.isStatic(weights) && c.type(weights).getNumElements() == 0);
  if (weighted && !sameDims(c, {c.input(0), weights}))
    return failure();
  Value each = weighted ? c.reshape(c.convert(weights, type), Dims{n}) : c.splatInt(1, Dims{n}, type);
  Value seen = scatterNd(c, c.splatInt(0, table, c.b.getI1Type()), at, c.splatInt(1, Dims{n}, c.b.getI1Type()), nullptr, false);
  Value sums = scatterNd(c, c.splatInt(0, table, type), at, each, combineAdd, /*checked=*/false);
  if (!seen || !sums)
    return failure();
  Value places = whereTrue(c, seen), counts = gatherNd(c, sums, places, 0, /*checked=*/false);
  if (!counts)
    return failure();
  if (c.attrBool("binary_output"))
    counts = c.like(counts, 1);
  SmallVector<Value> shape;
  for (AffineExpr e : table)
    shape.push_back(c.reshape(c.sizeValue(e, i64), Dims{c.size(1)}));
  if (failed(c.setResult(0, places)) || failed(c.setResult(1, counts)))
    return failure();
  return c.setResult(2, c.concat(shape, 0));
}

} // namespace

void registerSparseRows(HandlerTable &t) {
  t.add("SparseFillEmptyRows", 4, lowerSparseFill);
  t.add("SparseFillEmptyRowsGrad", 2, lowerFillGrad);
  t.add("RaggedFillEmptyRows", 4, lowerRaggedFill);
  t.add("RaggedFillEmptyRowsGrad", 2, lowerFillGrad);
  t.add("SparseSparseMaximum", 6, lowerSparseSparse<hlo::MaxOp>);
  t.add("SparseSparseMinimum", 6, lowerSparseSparse<hlo::MinOp>);
  t.add("SparseAdd", 7, lowerSparseAdd);
  t.add("SparseAddGrad", 4, lowerSparseAddGrad);
  t.add("SparseSliceGrad", 4, lowerSparseSliceGrad);
  t.add("SparseReduceSum", 4, [](NodeContext &c) { return lowerSparseReduce(c, false); });
  t.add("SparseReduceMax", 4, [](NodeContext &c) { return lowerSparseReduce(c, true); });
  t.add("DenseCountSparseOutput", 2, lowerDenseCount);
  t.add("SparseSoftmax", 3, lowerSparseSoftmax);
  t.add("SparseSegmentSumGradV2", 4, [](NodeContext &c) { return lowerSegmentGradV2(c, Share::Sum); });
  t.add("SparseSegmentMeanGradV2", 4, [](NodeContext &c) { return lowerSegmentGradV2(c, Share::Mean); });
  t.add("SparseSegmentSqrtNGradV2", 4, [](NodeContext &c) { return lowerSegmentGradV2(c, Share::SqrtN); });
}

} // namespace lathe::legalize
