// Ragged tensors as row splits and values: ranges, gathering, conversion to dense and sparse.
//
// A level is a vector of row splits; item j of it lies in the last row whose start is at most j. Numbers of rows and items
// that the data says are compile-time constants where the splits are, else data symbols where they can be bounded.
#include "passes/legalize/array/ArrayFamilies.h"
#include "passes/legalize/array/ArrayHelpers.h"

using namespace mlir;

namespace lathe::legalize {
namespace {

Value slice1(NodeContext &c, Value v, AffineExpr from, AffineExpr to) { return c.sliceDim(v, 0, from, to); }
Value startsOf(NodeContext &c, Value splits) { return slice1(c, splits, c.size(0), c.dim(splits, 0) - 1); }
Value endsOf(NodeContext &c, Value splits) { return slice1(c, splits, c.size(1), c.dim(splits, 0)); }
Value lengthsOf(NodeContext &c, Value splits) { return c.sub(endsOf(c, splits), startsOf(c, splits)); }
Value lookUp(NodeContext &c, Value v, Value at) { return gather(c, v, at, 0, 0, /*checked=*/false); }

/// [0, l0, l0+l1, ...]
Value splitsOf(NodeContext &c, Value lengths) {
  Value sums = runningSum(c, lengths);
  return c.pad(sums, c.scalarInt(0, c.elementType(sums)), {1}, {0});
}

/// The row of each of `count` items.
Value rowsOfItems(NodeContext &c, Value splits, AffineExpr count) {
  Value ends = endsOf(c, splits);
  Dims table{count, c.dim(ends, 0)};
  Type t = c.elementType(splits);
  Value after = c.compare(Compare::GE, c.iota(table, 0, t), c.broadcastInDim(ends, table, {1}));
  return c.reduceSum(c.convert(after, t), {1});
}

/// Place of each item in its row.
Value offsetsOfItems(NodeContext &c, Value splits, Value rows) {
  return c.sub(c.iota(c.dims(rows), 0, c.elementType(rows)), lookUp(c, startsOf(c, splits), rows));
}

/// The value of an integer scalar as a size: a constant, or else a data symbol up to `bound` (null: an error).
FailureOr<AffineExpr> sizeOf(NodeContext &c, Value scalar, AffineExpr bound, StringRef what) {
  if (auto t = c.ctx.fold(c.convert(scalar, c.b.getI64Type())))
    return c.size(*t->data<int64_t>());
  if (!bound)
    return c.error(Twine(what) + " must be a compile-time constant: it depends on the data and has no bound");
  AffineExpr symbol = c.ctx.newDataSymbol(c.name(), bound);
  hlo::SetSizeOp::create(c.b, c.loc, scalar, int64_t(cast<AffineSymbolExpr>(symbol).getPosition()), c.name());
  return symbol;
}

Value lastOf(NodeContext &c, Value v) {
  return c.reshape(slice1(c, v, c.dim(v, 0) - 1, c.dim(v, 0)), ArrayRef<AffineExpr>());
}

LogicalResult lowerRaggedRange(NodeContext &c) {
  Value start = c.input(0), limit = c.input(1), delta = c.input(2);
  Dims rows{c.size(1)};
  for (unsigned i = 0; i < 3; ++i)
    if (c.rank(c.input(i)) == 1)
      rows = c.dims(c.input(i));
  for (Value *v : {&start, &limit, &delta}) {
    *v = c.broadcastTo(*v, rows);
    if (!*v)
      return failure();
  }
  Type t = c.elementType(start), splitType = c.resultType(0);
  Value zero = c.like(delta, 0), positive = c.compare(Compare::GT, delta, zero);
  c.check(c.compare(Compare::NE, delta, zero), "a delta is 0");
  Value lengths, span = c.sub(limit, start);
  if (c.isFloat(start)) {
    Type f64 = c.b.getF64Type();
    Value steps = c.unary<hlo::CeilOp>(c.div(c.convert(span, f64), c.convert(delta, f64)));
    lengths = c.convert(c.max(steps, c.like(steps, 0)), splitType);
  } else {
    // rounds up for either sign of delta
    Value one = c.like(delta, 1), adjust = c.select(positive, c.sub(delta, one), c.add(delta, one));
    Value steps = c.div(c.add(span, adjust), delta);
    Value any = c.select(positive, c.compare(Compare::GT, span, zero), c.compare(Compare::LT, span, zero));
    lengths = c.convert(c.select(any, steps, zero), splitType);
  }
  Value splits = splitsOf(c, lengths);
  auto total = sizeOf(c, lastOf(c, splits), {}, "the number of values");
  if (failed(total))
    return failure();
  Value row = rowsOfItems(c, splits, *total);
  Value step = c.convert(offsetsOfItems(c, splits, row), t);
  Value values = c.add(lookUp(c, start, row), c.mul(step, lookUp(c, delta, row)));
  return success(succeeded(c.setResult(0, splits)) && succeeded(c.setResult(1, values)));
}

LogicalResult lowerRaggedGather(NodeContext &c) {
  unsigned levels = c.numInputs() - 2;
  Value values = c.input(levels), indices = c.input(levels + 1);
  Type t = c.elementType(c.input(0));
  unsigned result = 0;
  // Dimensions of the indices but the last are uniform rows.
  Dims indexDims = c.dims(indices);
  for (int64_t d = 1; d < c.rank(indices); ++d) {
    AffineExpr rows = productOf(ArrayRef<AffineExpr>(indexDims).take_front(d), c.b.getContext());
    Value place = c.iota({rows + 1}, 0, t);
    if (failed(c.setResult(result++, c.mul(place, c.sizeValue(indexDims[d], t)))))
      return failure();
  }
  AffineExpr count = productOf(indexDims, c.b.getContext());
  Value items = c.convert(c.reshape(indices, ArrayRef<AffineExpr>{count}), t);
  checkRange(c, items, c.dim(c.input(0), 0) - 1, "an index is out of range");
  for (unsigned level = 0; level < levels; ++level) {
    Value splits = c.input(level), next = level + 1 < levels ? c.input(level + 1) : values;
    AffineExpr below = level + 1 < levels ? c.dim(next, 0) - 1 : c.dim(next, 0);
    Value begins = lookUp(c, startsOf(c, splits), items), ends = lookUp(c, endsOf(c, splits), items);
    Value taken = c.convert(splitsOf(c, c.sub(ends, begins)), t);
    if (failed(c.setResult(result++, taken)))
      return failure();
    auto total = sizeOf(c, lastOf(c, taken), productOf({c.dim(items, 0), below}, c.b.getContext()), "the number of values");
    if (failed(total))
      return failure();
    Value row = rowsOfItems(c, taken, *total);
    items = c.add(offsetsOfItems(c, taken, row), lookUp(c, begins, row));
  }
  return c.setResult(result, gather(c, values, items, 0));
}

LogicalResult lowerRaggedToSparse(NodeContext &c) {
  unsigned levels = c.numInputs() - 1;
  Value values = c.input(levels);
  Type i64 = c.b.getI64Type();
  // coordinates of the items of each level, from the top
  SmallVector<Value> coordinates, shape;
  auto vector = [&](Value scalar) { return c.reshape(scalar, ArrayRef<int64_t>{1}); };
  Value rows = c.sizeValue(c.dim(c.input(0), 0) - 1, i64);
  shape.push_back(vector(rows));
  coordinates.push_back(c.iota({c.dim(c.input(0), 0) - 1}, 0, i64));
  for (unsigned level = 0; level < levels; ++level) {
    Value splits = c.convert(c.input(level), i64);
    AffineExpr count = level + 1 < levels ? c.dim(c.input(level + 1), 0) - 1 : c.dim(values, 0);
    Value row = rowsOfItems(c, splits, count);
    for (Value &v : coordinates)
      v = lookUp(c, v, row);
    coordinates.push_back(offsetsOfItems(c, splits, row));
    Value lengths = c.concat({lengthsOf(c, splits), c.splatInt(0, ArrayRef<AffineExpr>{c.size(1)}, i64)}, 0);
    shape.push_back(vector(c.reduceMax(lengths, {0})));
  }
  // inner dimensions are uniform
  Dims dims = c.dims(values);
  AffineExpr total = productOf(dims, c.b.getContext());
  SmallVector<Value> columns;
  for (Value v : coordinates)
    columns.push_back(c.broadcastInDim(v, dims, {0}));
  for (size_t d = 1; d < dims.size(); ++d) {
    columns.push_back(c.iota(dims, d, i64));
    shape.push_back(vector(c.sizeValue(dims[d], i64)));
  }
  for (Value &v : columns)
    v = c.reshape(v, Dims{total, c.size(1)});
  if (failed(c.setResult(0, c.concat(columns, 1))) || failed(c.setResult(1, c.reshape(values, Dims{total}))))
    return failure();
  return c.setResult(2, c.concat(shape, 0));
}

LogicalResult lowerRaggedToTensor(NodeContext &c) {
  Value values = c.input(1), otherwise = c.input(2);
  if (c.rank(values) == 0)
    return c.error("the values must have rank 1 or more");
  for (unsigned i = 3; i < c.numInputs(); ++i)
    if (c.rank(c.input(i)) > 1)
      return c.error("expected row partition " + Twine(i - 3) + " of rank 0 or 1, found rank " + Twine(c.rank(c.input(i))));
  auto wanted = c.constantInts(0);
  // a scalar stands for an unknown shape
  if (succeeded(wanted) && c.rank(c.input(0)) == 0)
    wanted->clear();
  auto kinds = dyn_cast_or_null<ArrayAttr>(c.attr("row_partition_types"));
  if (failed(wanted) || !kinds || kinds.size() + 3 != c.numInputs())
    return failed(wanted) ? failure() : c.error("row_partition_types does not fit the inputs");
  Type i64 = c.b.getI64Type();
  // Splits of every level, whatever form they come in.
  SmallVector<Value> levels;
  std::optional<AffineExpr> rows;
  for (unsigned i = 0; i < kinds.size(); ++i) {
    auto kind = dyn_cast<StringAttr>(kinds[i]);
    Value v = c.input(3 + i);
    if (kind && kind.getValue() == "FIRST_DIM_SIZE" && i == 0) {
      auto n = sizeOf(c, v, {}, "the number of rows");
      if (failed(n))
        return failure();
      rows = *n;
    } else if (kind && kind.getValue() == "ROW_SPLITS") {
      if (!rows)
        rows = c.dim(v, 0) - 1;
      levels.push_back(c.convert(v, i64));
      rows = c.dim(v, 0) - 1;
    } else if (kind && kind.getValue() == "VALUE_ROWIDS" && rows) {
      Dims table{*rows, c.dim(v, 0)};
      Value mine = c.compare(Compare::EQ, c.iota(table, 0, i64), c.broadcastInDim(c.convert(v, i64), table, {1}));
      levels.push_back(splitsOf(c, c.reduceSum(c.convert(mine, i64), {1})));
      rows = c.dim(v, 0);
    } else {
      return c.error("row partition " + Twine(i) + " is of an unknown kind");
    }
  }
  if (levels.empty())
    return c.error("expected a row partition");
  size_t outer = levels.size() + 1;
  Dims shape, inner = c.dims(values);
  inner.erase(inner.begin());
  auto given = [&](size_t d) { return d < wanted->size() ? (*wanted)[d] : -1; };
  if (!wanted->empty() && wanted->size() != outer + inner.size())
    return c.error("expected a shape of " + Twine(outer + inner.size()) + " sizes, found " + Twine(wanted->size()));
  for (size_t d = 0; d < outer; ++d) {
    if (given(d) >= 0) {
      shape.push_back(c.size(given(d)));
    } else if (d == 0) {
      shape.push_back(hlo::simplify(c.dim(levels[0], 0) - 1));
    } else {
      Value lengths = c.concat({lengthsOf(c, levels[d - 1]), c.splatInt(0, ArrayRef<AffineExpr>{c.size(1)}, i64)}, 0);
      AffineExpr bound = d < levels.size() ? c.dim(levels[d], 0) - 1 : c.dim(values, 0);
      auto n = sizeOf(c, c.reduceMax(lengths, {0}), bound, "the longest row");
      if (failed(n))
        return failure();
      shape.push_back(*n);
    }
  }
  // Place of every item among the flattened outer dimensions, -1 for what does not fit.
  AffineExpr first = c.dim(levels[0], 0) - 1;
  Value place = c.iota({first}, 0, i64);
  place = c.select(c.compare(Compare::LT, place, c.sizeValue(shape[0], i64)), place, c.like(place, -1));
  for (size_t d = 0; d < levels.size(); ++d) {
    AffineExpr count = d + 1 < levels.size() ? c.dim(levels[d + 1], 0) - 1 : c.dim(values, 0);
    Value row = rowsOfItems(c, levels[d], count), offset = offsetsOfItems(c, levels[d], row);
    Value above = lookUp(c, place, row), size = c.sizeValue(shape[d + 1], i64);
    Value fits = c.logicalAnd(c.compare(Compare::GE, above, c.like(above, 0)), c.compare(Compare::LT, offset, size));
    place = c.select(fits, c.add(c.mul(above, size), offset), c.like(above, -1));
  }
  Dims flat{productOf(shape, c.b.getContext())};
  flat.append(inner.begin(), inner.end());
  Value background = c.broadcastTo(otherwise, flat);
  if (!background)
    return failure();
  Value result = scatterRows(c, background, place, values, nullptr, /*checked=*/false);
  shape.append(inner.begin(), inner.end());
  if (!result)
    return failure();
  result = c.reshape(result, shape);
  // the inner sizes may be given as well
  for (size_t d = outer; d < shape.size(); ++d)
    if (given(d) >= 0 && !c.ctx.unify(shape[d], c.size(given(d)), c.name()))
      return c.error("inner dimension " + Twine(d) + " is " + textOf(shape[d]) + ", expected " + Twine(given(d)));
  return c.setResult(0, result);
}

} // namespace

Value runningSum(NodeContext &c, Value v) {
  auto n = constantOf(c.dim(v, 0));
  if (!n) {
    // every sum by itself where the number of steps is not known
    Dims square{c.dim(v, 0), c.dim(v, 0)};
    Type i64 = c.b.getI64Type();
    Value upTo = c.compare(Compare::LE, c.iota(square, 1, i64), c.iota(square, 0, i64));
    return c.reduceSum(c.select(upTo, c.broadcastInDim(v, square, {1}), c.scalar(0, c.elementType(v))), {1});
  }
  // unsigned, as the step after 2^62 is no signed number
  for (uint64_t step = 1; step < uint64_t(*n); step *= 2)
    v = c.add(v, c.pad(v, c.scalar(0, c.elementType(v)), {int64_t(step)}, {-int64_t(step)}));
  return v;
}

void registerRagged(HandlerTable &t) {
  t.add("RaggedRange", 3, lowerRaggedRange);
  t.add("RaggedGather", HandlerTable::atLeast(3), lowerRaggedGather);
  t.add("RaggedTensorToSparse", HandlerTable::atLeast(2), lowerRaggedToSparse);
  t.add("RaggedTensorToTensor", HandlerTable::atLeast(4), lowerRaggedToTensor);
}

} // namespace lathe::legalize
