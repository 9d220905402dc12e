// Reductions by segment ids: sorted, unsorted and sparse, and the gradients of the sparse ones.
#include "passes/legalize/array/ArrayFamilies.h"
#include "passes/legalize/array/ArrayHelpers.h"

using namespace mlir;

namespace lathe::legalize {
namespace {

enum class Kind { Sum, Prod, Min, Max, Mean, SqrtN };

/// Of what is there and what comes; a NaN that comes stands until the next number, as TensorFlow's unsorted segments have it.
Value laterMin(OpBuilder &b, Location loc, Value x, Value y) { return chooseUnless(b, loc, x, y, Compare::LT); }
Value laterMax(OpBuilder &b, Location loc, Value x, Value y) { return chooseUnless(b, loc, x, y, Compare::GT); }

Combine combineOf(Kind kind, bool sorted) {
  switch (kind) {
  case Kind::Prod:
    return combineMul;
  case Kind::Min:
    return sorted ? combineMin : laterMin;
  case Kind::Max:
    return sorted ? combineMax : laterMax;
  default:
    return combineAdd;
  }
}

Value identityOf(NodeContext &c, Kind kind, Type element) {
  switch (kind) {
  case Kind::Prod:
    return c.scalarInt(1, element);
  case Kind::Min:
  case Kind::Max: {
    // an empty segment shows the largest finite number, not infinity
    if (auto f = dyn_cast<FloatType>(element)) {
      double most = llvm::APFloat::getLargest(f.getFloatSemantics()).convertToDouble();
      return c.scalar(kind == Kind::Min ? most : -most, element);
    }
    return kind == Kind::Min ? c.highest(element) : c.lowest(element);
  }
  default:
    return c.scalarInt(0, element);
  }
}

bool isSmallFloat(Type element) {
  auto f = dyn_cast<FloatType>(element);
  return f && f.getWidth() < 32;
}

/// Rows of `data` combined by id into `rows` rows; ids out of range are left out. Min and max of sorted ones start
/// from infinity, so that infinities in the data survive; their empty segments are put right by the caller.
Value segmentReduce(NodeContext &c, Value data, Value ids, AffineExpr rows, Kind kind, bool sorted) {
  Type element = c.elementType(data), wide = element;
  if (isSmallFloat(element) && kind != Kind::Min && kind != Kind::Max)
    data = c.convert(data, wide = c.b.getF32Type());
  Dims shape = c.dims(data);
  shape[0] = rows;
  Value init = c.broadcastInDim(identityOf(c, kind, wide), shape, {});
  if (sorted && (kind == Kind::Min || kind == Kind::Max) && isa<FloatType>(wide))
    init = c.broadcastInDim(kind == Kind::Min ? c.highest(wide) : c.lowest(wide), shape, {});
  Value result = scatterRows(c, init, ids, data, combineOf(kind, sorted), /*checked=*/false);
  return result ? c.convert(result, element) : Value();
}

/// How many ids each row has.
Value countsOf(NodeContext &c, Value ids, AffineExpr rows, Type element) {
  Value ones = c.splatInt(1, c.dims(ids), element);
  return scatterRows(c, c.splatInt(0, ArrayRef<AffineExpr>{rows}, element), ids, ones, combineAdd, /*checked=*/false);
}

/// A value per row along dimension 0 of `like`.
Value perRow(NodeContext &c, Value v, Value like) { return c.broadcastInDim(v, c.dims(like), {0}); }

/// Ids of leading dimensions flattened, data accordingly.
LogicalResult flattenIds(NodeContext &c, Value &data, Value &ids) {
  int64_t r = c.rank(ids);
  if (c.rank(data) < r)
    return c.error("the data has fewer dimensions than the segment ids");
  for (int64_t i = 0; i < r; ++i)
    if (!c.ctx.unify(c.dim(data, i), c.dim(ids, i), c.name()))
      return c.error("dimension " + Twine(i) + " of the data is " + textOf(c.dim(data, i)) + ", of the segment ids " +
                     textOf(c.dim(ids, i)));
  Dims dims = c.dims(data), flat;
  flat.push_back(productOf(ArrayRef<AffineExpr>(dims).take_front(r), c.b.getContext()));
  flat.append(dims.begin() + r, dims.end());
  data = c.reshape(data, flat);
  ids = c.reshape(ids, ArrayRef<AffineExpr>{flat[0]});
  return success();
}

LogicalResult lowerUnsorted(NodeContext &c, Kind kind) {
  Value data = c.input(0), ids = c.input(1);
  auto rows = c.sizeInput(2);
  if (failed(rows) || failed(flattenIds(c, data, ids)))
    return failure();
  if (auto n = constantOf(*rows); n && *n < 0)
    return c.error("num_segments is negative");
  checkBelow(c, ids, *rows, "a segment id is out of range");
  return c.setResult(0, segmentReduce(c, data, ids, *rows, kind, /*sorted=*/false));
}

/// Number of rows of an op whose ids are sorted: the last one plus 1.
FailureOr<AffineExpr> rowsOf(NodeContext &c, unsigned input) {
  Value ids = c.input(input);
  auto t = c.ctx.fold(ids);
  if (!t) {
    // A size of its own, until something says what it has to be; nothing bounds it from here.
    AffineExpr n = c.dim(ids, 0);
    Type i64 = c.b.getI64Type();
    Value wide = c.convert(ids, i64), end = c.scalarInt(0, i64);
    if (constantOf(n) != int64_t(0)) {
      Value last = c.reduceMax(wide, {0});
      end = c.max(c.add(last, c.scalarInt(1, i64)), end);
      Value next = c.sliceDim(wide, 0, c.size(1), n), before = c.sliceDim(wide, 0, c.size(0), hlo::simplify(n - 1));
      c.check(c.compare(Compare::GE, next, before), "segment ids are not increasing");
      c.check(c.compare(Compare::GE, wide, c.like(wide, 0)), "segment ids must be >= 0");
    }
    AffineExpr rows = c.ctx.newSymbol(c.name(), -1, false);
    hlo::SetSizeOp::create(c.b, c.loc, end, int64_t(cast<AffineSymbolExpr>(rows).getPosition()), c.name());
    return rows;
  }
  int64_t last = -1;
  if (t->dtype() != DType::Int64 && t->dtype() != DType::Int32)
    return c.error("segment ids must be of type int32 or int64");
  for (int64_t i = 0; i < t->numElements(); ++i) {
    int64_t id = t->dtype() == DType::Int64 ? t->data<int64_t>()[i] : t->data<int32_t>()[i];
    if (id < 0 || id < last)
      return c.error("segment ids are not sorted or negative");
    last = id;
  }
  if (last > (int64_t(1) << 32))
    return c.error("segment id " + Twine(last) + " is too large");
  return c.size(last + 1);
}

/// Rows without ids become 0 where the identity is something else, sums become means.
LogicalResult finish(NodeContext &c, Value result, Value ids, AffineExpr rows, Kind kind) {
  if (!result)
    return failure();
  if (kind == Kind::Sum)
    return c.setResult(0, result);
  Type element = c.elementType(result);
  if (kind == Kind::Mean || kind == Kind::SqrtN) {
    Type wide = isSmallFloat(element) ? Type(c.b.getF32Type()) : element;
    Type real = wide;
    if (auto complex = dyn_cast<ComplexType>(wide))
      real = complex.getElementType();
    // bytes wrap in counts as in sums: more than 127 rows are negative
    Value n = countsOf(c, ids, rows, real);
    n = c.select(c.compare(Compare::EQ, n, c.splatInt(0, c.dims(n), real)), c.splatInt(1, c.dims(n), real), n);
    if (kind == Kind::SqrtN)
      n = c.unary<hlo::SqrtOp>(n);
    Value quotient = c.div(c.convert(result, wide), perRow(c, c.convert(n, wide), result));
    return c.setResult(0, c.convert(quotient, element));
  }
  Type i32 = c.b.getI32Type();
  Value none = c.compare(Compare::EQ, countsOf(c, ids, rows, i32), c.scalarInt(0, i32));
  Value other = kind == Kind::Prod ? c.scalarInt(1, element) : c.scalarInt(0, element);
  return c.setResult(0, c.select(perRow(c, none, result), other, result));
}

LogicalResult lowerSorted(NodeContext &c, Kind kind) {
  Value data = c.input(0), ids = c.input(1);
  auto rows = rowsOf(c, 1);
  if (failed(rows) || failed(flattenIds(c, data, ids)))
    return failure();
  return finish(c, segmentReduce(c, data, ids, *rows, kind == Kind::Mean ? Kind::Sum : kind, /*sorted=*/true), ids, *rows, kind);
}

LogicalResult lowerSparse(NodeContext &c, Kind kind, bool withCount) {
  Value data = c.input(0), indices = c.input(1), ids = c.input(2);
  if (failed(c.expectRank(1, 1)) || failed(c.expectRank(2, 1)))
    return failure();
  AffineExpr rows;
  if (withCount) {
    auto n = c.sizeInput(3);
    if (failed(n))
      return failure();
    rows = *n;
    checkRange(c, ids, rows, "a segment id is out of range");
  } else {
    auto n = rowsOf(c, 2);
    if (failed(n))
      return failure();
    rows = *n;
  }
  if (!sameDims(c, {indices, ids}))
    return failure();
  Value picked = gather(c, data, indices, 0);
  if (!picked)
    return failure();
  return finish(c, segmentReduce(c, picked, ids, rows, Kind::Sum, /*sorted=*/true), ids, rows, kind);
}

/// grad rows divided by what the segment was divided by, added into the rows they came from.
LogicalResult lowerSparseGrad(NodeContext &c, Kind kind) {
  Value grad = c.input(0), indices = c.input(1), ids = c.input(2);
  if (failed(c.expectRank(1, 1)) || failed(c.expectRank(2, 1)))
    return failure();
  auto rows = c.sizeInput(3);
  if (failed(rows) || !sameDims(c, {indices, ids}))
    return failure();
  Type element = c.elementType(grad), wide = isSmallFloat(element) ? Type(c.b.getF32Type()) : element;
  Value scaled = c.convert(grad, wide);
  if (kind != Kind::Sum) {
    Value n = c.max(countsOf(c, ids, c.dim(grad, 0), wide), c.scalarInt(1, wide));
    if (kind == Kind::SqrtN)
      n = c.unary<hlo::SqrtOp>(n);
    scaled = c.div(scaled, perRow(c, n, scaled));
  }
  Value picked = gather(c, scaled, ids, 0);
  if (!picked)
    return failure();
  Dims shape = c.dims(picked);
  shape[0] = *rows;
  Value result = scatterRows(c, c.splat(0, shape, wide), indices, picked, combineAdd);
  return c.setResult(0, result ? c.convert(result, element) : Value());
}

} // namespace

void registerSegment(HandlerTable &t) {
  struct {
    const char *name;
    Kind kind;
  } kinds[] = {{"Sum", Kind::Sum}, {"Prod", Kind::Prod}, {"Min", Kind::Min}, {"Max", Kind::Max}};
  for (auto [name, k] : kinds) {
    Kind kind = k;
    t.add(std::string("Segment") + name, 2, [kind](NodeContext &c) { return lowerSorted(c, kind); });
    t.add(std::string("UnsortedSegment") + name, 3, [kind](NodeContext &c) { return lowerUnsorted(c, kind); });
    t.add(std::string("Segment") + name + "V2", 3, [kind](NodeContext &c) { return lowerUnsorted(c, kind); });
  }
  t.add("SegmentMean", 2, [](NodeContext &c) { return lowerSorted(c, Kind::Mean); });
  std::pair<const char *, Kind> sparse[] = {{"Sum", Kind::Sum}, {"Mean", Kind::Mean}, {"SqrtN", Kind::SqrtN}};
  for (auto [name, k] : sparse) {
    Kind kind = k;
    std::string op = std::string("SparseSegment") + name;
    t.add(op, 3, [kind](NodeContext &c) { return lowerSparse(c, kind, false); });
    t.add(op + "WithNumSegments", 4, [kind](NodeContext &c) { return lowerSparse(c, kind, true); });
    t.add(op + "Grad", 4, [kind](NodeContext &c) { return lowerSparseGrad(c, kind); });
  }
}

} // namespace lathe::legalize
