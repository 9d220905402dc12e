// Sorting, the largest elements, searching in sorted rows, counting.
#include "dialects/graph/Types.h"
#include "passes/legalize/array/ArrayFamilies.h"
#include "passes/legalize/array/ArrayHelpers.h"

using namespace mlir;

namespace lathe::legalize {
SmallVector<Value> sortBy(NodeContext &c, ArrayRef<Value> values, int64_t axis, Compare direction) {
  auto op = hlo::SortOp::create(c.b, c.loc, ValueRange(values), axis, /*stable=*/true,
                                [&](OpBuilder &b, Location loc, ValueRange args) -> SmallVector<Value> {
                                  return {hlo::CompareOp::create(b, loc, args[0], args[1], direction)};
                                });
  return SmallVector<Value>(op->getResults());
}

namespace {

LogicalResult topK(NodeContext &c, Value x, AffineExpr k, int64_t axis, bool largest) {
  int64_t rank = c.rank(x);
  if (rank < 1)
    return c.error("the input must have rank 1 or more");
  auto count = constantOf(k), size = constantOf(c.dim(x, axis));
  if (count && size && *count > *size)
    return c.error("k is " + Twine(*count) + ", the dimension has " + Twine(*size) + " elements");
  Type i32 = c.b.getI32Type(), element = c.elementType(x);
  Value values, indices;
  bool last = axis == rank - 1;
  if (count && last && largest && !isa<ComplexType>(element)) {
    auto op = hlo::TopKOp::create(c.b, c.loc, x, *count);
    values = op->getResult(0);
    indices = op->getResult(1);
  } else {
    Value order = c.iota(c.dims(x), axis, i32);
    SmallVector<Value> sorted = sortBy(c, {x, order}, axis, largest ? Compare::GT : Compare::LT);
    values = c.sliceDim(sorted[0], axis, c.size(0), k);
    indices = c.sliceDim(sorted[1], axis, c.size(0), k);
  }
  if (failed(c.setResult(0, values)))
    return failure();
  return c.setResult(1, c.convert(indices, c.resultType(1)));
}

LogicalResult lowerTopK(NodeContext &c, bool fromAttr) {
  Value x = c.input(0);
  AffineExpr k = c.size(c.attrInt("k"));
  if (!fromAttr) {
    // sizes are int32 or int64, k may be int16 too
    if (Type t = c.elementType(c.input(1)); t.isInteger(32) || t.isInteger(64)) {
      auto v = c.sizeInput(1);
      if (failed(v))
        return failure();
      k = *v;
    } else {
      auto n = c.constantInt(1);
      if (failed(n))
        return failure();
      k = c.size(*n);
    }
  }
  if (auto n = constantOf(k); n && *n < 0)
    return c.error("k is negative");
  return topK(c, x, k, c.rank(x) - 1, true);
}

LogicalResult lowerApproxTopK(NodeContext &c) {
  Value x = c.input(0);
  auto axis = c.normalizeAxis(c.attrInt("reduction_dimension", -1), c.rank(x));
  if (failed(axis))
    return failure();
  if (!c.attrBool("aggregate_to_topk", true))
    return c.error("aggregate_to_topk = false is not supported");
  return topK(c, x, c.size(c.attrInt("k")), *axis, c.attrBool("is_max_k", true));
}

LogicalResult lowerNthElement(NodeContext &c) {
  Value x = c.input(0);
  auto n = c.constantInt(1);
  if (failed(n))
    return failure();
  int64_t axis = c.rank(x) - 1;
  if (axis < 0)
    return c.error("the input must have rank 1 or more");
  if (auto size = constantOf(c.dim(x, axis)); *n < 0 || (size && *n >= *size))
    return c.error("n is out of range");
  Value sorted = sortBy(c, {x}, axis, c.attrBool("reverse") ? Compare::GT : Compare::LT)[0];
  Dims dims = c.dims(x);
  dims.pop_back();
  return c.setResult(0, c.reshape(c.sliceDim(sorted, axis, c.size(*n), c.size(*n + 1)), dims));
}

/// LE: whether `bound` is not above `v`, so that every bound lies before a NaN, as std::upper_bound has it; LT: below.
Value precedes(NodeContext &c, Compare direction, Value bound, Value v) {
  return direction == Compare::LE ? c.logicalNot(c.compare(Compare::LT, v, bound)) : c.compare(direction, bound, v);
}

/// Counts in each row of [B, N] how many elements lie before each of [B, M].
LogicalResult lowerSearch(NodeContext &c, Compare direction) {
  Value rows = c.input(0), values = c.input(1);
  if (failed(c.expectRank(0, 2)) || failed(c.expectRank(1, 2)))
    return failure();
  if (!c.ctx.unify(c.dim(rows, 0), c.dim(values, 0), c.name()))
    return c.error("the inputs differ in their number of rows");
  Dims cube{c.dim(values, 0), c.dim(values, 1), c.dim(rows, 1)};
  Value before = precedes(c, direction, c.broadcastInDim(rows, cube, {0, 2}), c.broadcastInDim(values, cube, {0, 1}));
  return c.setResult(0, c.reduceSum(c.convert(before, c.resultType(0)), {2}));
}

LogicalResult lowerBucketize(NodeContext &c) {
  Value x = c.input(0);
  auto list = dyn_cast_or_null<ArrayAttr>(c.attr("boundaries"));
  Type f32 = c.b.getF32Type();
  Tensor t = Tensor::allocate(DType::Float32, {list ? int64_t(list.size()) : 0});
  if (list)
    for (auto [i, a] : llvm::enumerate(list))
      if (auto f = dyn_cast<FloatAttr>(a))
        t.data<float>()[i] = float(f.getValueAsDouble());
  // boundaries are floats; a double or a wide integer is compared as a double
  Type wide = c.elementType(x).getIntOrFloatBitWidth() > 32 || c.isInteger(x) ? Type(c.b.getF64Type()) : f32;
  Value bounds = c.convert(c.constant(t), wide), v = c.convert(x, wide);
  Dims dims = c.dims(x);
  dims.push_back(c.dim(bounds, 0));
  SmallVector<int64_t> map = llvm::to_vector(llvm::seq<int64_t>(0, c.rank(x)));
  Value below = precedes(c, Compare::LE, c.broadcastInDim(bounds, dims, {c.rank(x)}), c.broadcastInDim(v, dims, map));
  return c.setResult(0, c.reduceSum(c.convert(below, c.resultType(0)), {c.rank(x)}));
}

LogicalResult lowerInTopK(NodeContext &c, bool kInput) {
  Value scores = c.input(0), targets = c.input(1);
  int64_t k = c.attrInt("k");
  if (kInput) {
    auto v = c.constantInt(2);
    if (failed(v))
      return failure();
    k = *v;
  }
  if (failed(c.expectRank(0, 2)) || failed(c.expectRank(1, 1)))
    return failure();
  if (!c.ctx.unify(c.dim(scores, 0), c.dim(targets, 0), c.name()))
    return c.error("predictions and targets differ in their number of rows");
  // A target out of range, or a score that is no number, is never in.
  Type t = c.elementType(targets);
  Value n = c.sizeValue(c.dim(scores, 1), t), zero = c.scalarInt(0, t);
  Value valid = c.logicalAnd(c.compare(Compare::GE, targets, zero), c.compare(Compare::LT, targets, n));
  Value at = c.reshape(c.select(valid, targets, zero), Dims{c.dim(targets, 0), c.size(1)});
  Value score = c.reshape(gather(c, scores, at, 1, 1, /*checked=*/false), c.dims(targets));
  Value more = c.compare(Compare::GT, scores, c.broadcastInDim(score, c.dims(scores), {0}));
  Value rank = c.reduceSum(c.convert(more, c.b.getI32Type()), {1});
  Value finite = c.reduceAnd(c.unary<hlo::IsFiniteOp>(scores), {1});
  Value in = c.compare(Compare::LT, rank, c.scalarInt(k, c.b.getI32Type()));
  return c.setResult(0, c.logicalAnd(in, c.logicalAnd(valid, finite)));
}

//===----------------------------------------------------------------------===//
// Counting
//===----------------------------------------------------------------------===//

/// Adds `weights` (or ones) into bins: `at` are [n, depth] coordinates; bins from `size` on are left out.
Value countInto(NodeContext &c, Value at, Value weights, ArrayRef<AffineExpr> shape, Type element, bool binary) {
  Value zeros = c.splatInt(0, shape, element);
  if (binary)
    return scatterNd(c, zeros, at, c.splatInt(1, ArrayRef<AffineExpr>{c.dim(at, 0)}, element), nullptr, false);
  if (!weights)
    weights = c.splatInt(1, ArrayRef<AffineExpr>{c.dim(at, 0)}, element);
  return scatterNd(c, zeros, at, weights, combineAdd, false);
}

bool isEmpty(Value v) { return Emitter::type(v).hasStaticShape() && Emitter::type(v).getNumElements() == 0; }

Value flatten(NodeContext &c, Value v) {
  Dims dims = c.dims(v);
  return c.reshape(v, ArrayRef<AffineExpr>{productOf(dims, c.b.getContext())});
}

/// The weights of n values in one row, or none: an empty tensor says that each counts for one, which may be known only at run time.
FailureOr<Value> weightsFor(NodeContext &c, Value values, Value weights, Type element) {
  if (isEmpty(weights))
    return Value();
  if (Emitter::type(weights).hasStaticShape())
    return sameDims(c, {values, weights}) ? FailureOr<Value>(flatten(c, weights)) : FailureOr<Value>(failure());
  Value flat = flatten(c, weights);
  AffineExpr n = c.dim(flatten(c, values), 0);
  Value given = c.concat({flat, c.splatInt(1, ArrayRef<AffineExpr>{n}, element)}, 0);
  return c.sliceDim(given, 0, c.size(0), n);
}

FailureOr<AffineExpr> binsInput(NodeContext &c, unsigned i) {
  auto size = c.sizeInput(i);
  if (succeeded(size))
    if (auto n = constantOf(*size); n && *n < 0)
      return c.error("size is negative");
  return size;
}

void checkNotNegative(NodeContext &c, Value v) {
  if (!c.isUnsigned(v))
    checkRange(c, v, c.size(INT64_MAX), "a value to be counted is negative");
}

LogicalResult lowerBincount(NodeContext &c, bool dense) {
  Value values = c.input(0), weights = c.input(2);
  auto size = binsInput(c, 1);
  if (failed(size))
    return failure();
  Type element = c.resultType(0), t = c.elementType(values);
  checkNotNegative(c, values);
  bool binary = dense && c.attrBool("binary_output"), rows = dense && c.rank(values) == 2;
  if (dense && c.rank(values) > 2)
    return c.error("expected input 0 of rank 2 at most, found rank " + Twine(c.rank(values)));
  auto given = weightsFor(c, values, weights, element);
  if (failed(given))
    return failure();
  Value flat = flatten(c, values);
  Dims shape{*size};
  Value at = c.reshape(flat, Dims{c.dim(flat, 0), c.size(1)});
  if (rows) {
    Value row = flatten(c, c.iota(c.dims(values), 0, t));
    at = c.concat({c.reshape(row, c.dims(at)), at}, 1);
    shape.insert(shape.begin(), c.dim(values, 0));
  }
  return c.setResult(0, countInto(c, at, *given, shape, element, binary));
}

/// Row of each element of a ragged tensor from its row splits.
Value rowsOfSplits(NodeContext &c, Value splits, AffineExpr n, Type element) {
  Dims square{n, c.size(0)};
  square[1] = hlo::simplify(c.dim(splits, 0) - 1);
  Value ends = c.convert(c.sliceDim(splits, 0, c.size(1), c.dim(splits, 0)), element);
  Value place = c.iota(square, 0, element);
  Value after = c.compare(Compare::GE, place, c.broadcastInDim(ends, square, {1}));
  return c.reduceSum(c.convert(after, element), {1});
}

LogicalResult lowerRaggedBincount(NodeContext &c) {
  Value splits = c.input(0), values = c.input(1), weights = c.input(3);
  auto size = binsInput(c, 2);
  if (failed(size) || failed(c.expectRank(0, 1)) || failed(c.expectRank(1, 1)))
    return failure();
  checkNotNegative(c, values);
  auto given = weightsFor(c, values, weights, c.resultType(0));
  if (failed(given))
    return failure();
  Type t = c.elementType(values);
  Dims column{c.dim(values, 0), c.size(1)};
  Value row = rowsOfSplits(c, splits, c.dim(values, 0), t);
  Value at = c.concat({c.reshape(row, column), c.reshape(values, column)}, 1);
  Dims shape{hlo::simplify(c.dim(splits, 0) - 1), *size};
  return c.setResult(0, countInto(c, at, *given, shape, c.resultType(0), c.attrBool("binary_output")));
}

LogicalResult lowerSparseBincount(NodeContext &c) {
  Value indices = c.input(0), values = c.input(1), weights = c.input(4);
  auto dense = c.shapeInput(2);
  auto size = binsInput(c, 3);
  if (failed(dense) || failed(size) || failed(c.expectRank(0, 2)) || failed(c.expectRank(1, 1)))
    return failure();
  if (!c.ctx.unify(c.dim(indices, 0), c.dim(values, 0), c.name()))
    return c.error("there are not as many values as coordinates");
  checkNotNegative(c, values);
  auto given = weightsFor(c, values, weights, c.resultType(0));
  if (failed(given))
    return failure();
  Type t = c.elementType(values);
  Dims column{c.dim(values, 0), c.size(1)}, shape{*size};
  Value at = c.reshape(values, column);
  if (dense->size() == 2) {
    Value row = c.sliceDim(indices, 1, c.size(0), c.size(1));
    at = c.concat({c.convert(row, t), at}, 1);
    shape.insert(shape.begin(), (*dense)[0]);
  } else if (dense->size() != 1) {
    return c.error("expected a sparse tensor of rank 1 or 2, found rank " + Twine(dense->size()));
  }
  return c.setResult(0, countInto(c, at, *given, shape, c.resultType(0), c.attrBool("binary_output")));
}

//===----------------------------------------------------------------------===//
// XLA's sorts
//===----------------------------------------------------------------------===//

LogicalResult lowerXlaSort(NodeContext &c) {
  Value x = c.input(0);
  if (c.rank(x) < 1)
    return c.error("the input must have rank 1 or more");
  SmallVector<Value> values = c.inputValues();
  const bool ordered = !isa<ComplexType>(hlo::elementType(x));
  const ArrayRef<int64_t> dims = hlo::tensorType(x).getShape();
  if (!ordered && dims.back() != 1 && !llvm::is_contained(dims, 0))
    return c.error("complex numbers have no order");
  SmallVector<Value> sorted = ordered ? sortBy(c, values, c.rank(x) - 1, Compare::LT) : values;
  for (unsigned i = 0; i < sorted.size(); ++i)
    if (failed(c.setResult(i, sorted[i])))
      return failure();
  return success();
}

LogicalResult lowerVariadicSort(NodeContext &c) {
  unsigned n = c.numInputs() - 1;
  SmallVector<Value> values = c.inputValues();
  Value axisInput = values.pop_back_val();
  (void)axisInput;
  if (!sameDims(c, values))
    return failure();
  auto axis = c.axisInput(n, c.rank(values[0]));
  graph::FuncOp comparator = c.ctx.lookupFunction(c.attr("comparator"));
  if (failed(axis))
    return failure();
  if (!comparator)
    return c.error("the comparator function is missing");
  bool ok = true;
  auto op = hlo::SortOp::create(
      c.b, c.loc, ValueRange(values), *axis, c.attrBool("is_stable"),
      [&](OpBuilder &b, Location loc, ValueRange args) -> SmallVector<Value> {
        OpBuilder::InsertionGuard guard(c.ctx.builder);
        c.ctx.builder.setInsertionPoint(b.getInsertionBlock(), b.getInsertionPoint());
        SmallVector<GraphValue, 2> in, out;
        for (Value a : args)
          in.push_back(GraphValue::ofTensor(a));
        ok = succeeded(c.ctx.lowerBody(comparator, in, out)) && out.size() == 1;
        Value less = ok ? c.ctx.materialize(out[0], loc) : Value();
        ok &= bool(less);
        return {less ? less : c.scalarInt(0, b.getI1Type())};
      });
  if (!ok)
    return failure();
  for (unsigned i = 0; i < n; ++i)
    if (failed(c.setResult(i, op->getResult(i))))
      return failure();
  return success();
}

} // namespace

void registerSort(HandlerTable &t) {
  t.add("TopK", 1, [](NodeContext &c) { return lowerTopK(c, true); });
  t.add("TopKV2", 2, [](NodeContext &c) { return lowerTopK(c, false); });
  t.add("ApproxTopK", 1, lowerApproxTopK);
  t.add("NthElement", 2, lowerNthElement);
  t.add("LowerBound", 2, [](NodeContext &c) { return lowerSearch(c, Compare::LT); });
  t.add("UpperBound", 2, [](NodeContext &c) { return lowerSearch(c, Compare::LE); });
  t.add("Bucketize", 1, lowerBucketize);
  t.add("InTopK", 2, [](NodeContext &c) { return lowerInTopK(c, false); });
  t.add("InTopKV2", 3, [](NodeContext &c) { return lowerInTopK(c, true); });
  t.add("Bincount", 3, [](NodeContext &c) { return lowerBincount(c, false); });
  t.add("DenseBincount", 3, [](NodeContext &c) { return lowerBincount(c, true); });
  t.add("RaggedBincount", 4, lowerRaggedBincount);
  t.add("SparseBincount", 5, lowerSparseBincount);
  t.add("XlaSort", 1, lowerXlaSort);
  t.add("XlaKeyValueSort", 2, lowerXlaSort);
  t.add("XlaVariadicSort", HandlerTable::atLeast(2), lowerVariadicSort);
}

} // namespace lathe::legalize
