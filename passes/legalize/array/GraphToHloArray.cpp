// Ops that arrange elements: transpose, pack, concat, split, tile, broadcast, reverse, range, one-hot.
#include "passes/legalize/array/ArrayFamilies.h"
#include "passes/legalize/array/ArrayHelpers.h"
#include "passes/legalize/array/Sparse.h"

using namespace mlir;

namespace lathe::legalize {
namespace {

LogicalResult lowerTranspose(NodeContext &c, bool conjugate) {
  Value x = c.input(0);
  auto perm = c.constantInts(1);
  if (failed(perm))
    return failure();
  int64_t rank = c.rank(x);
  SmallVector<bool> seen(rank, false);
  if (int64_t(perm->size()) != rank)
    return c.error("permutation has " + Twine(perm->size()) + " entries for rank " + Twine(rank));
  for (int64_t &p : *perm) {
    auto axis = c.normalizeAxis(p, rank);
    if (failed(axis))
      return failure();
    p = *axis;
    if (seen[p])
      return c.error("axis " + Twine(p) + " is given twice");
    seen[p] = true;
  }
  Value result = c.transpose(x, *perm);
  if (conjugate && c.isComplex(x))
    result = c.unary<hlo::ConjOp>(result);
  return c.setResult(0, result);
}

LogicalResult lowerPack(NodeContext &c) {
  SmallVector<Value> values = c.inputValues();
  if (!sameDims(c, values))
    return failure();
  auto axis = c.normalizeAxis(c.attrInt("axis"), c.rank(values[0]) + 1);
  if (failed(axis))
    return failure();
  Dims dims = c.dims(values[0]);
  dims.insert(dims.begin() + *axis, c.size(1));
  for (Value &v : values)
    v = c.reshape(v, dims);
  return c.setResult(0, c.concat(values, *axis));
}

/// Parts of `sizes` along an axis as the results.
LogicalResult splitInto(NodeContext &c, Value x, int64_t axis, ArrayRef<AffineExpr> sizes, bool squeeze) {
  AffineExpr at = c.size(0);
  for (auto [i, n] : llvm::enumerate(sizes)) {
    AffineExpr next = hlo::simplify(at + n);
    Value part = c.sliceDim(x, axis, at, next);
    if (squeeze) {
      Dims dims = c.dims(part);
      dims.erase(dims.begin() + axis);
      part = c.reshape(part, dims);
    }
    if (failed(c.setResult(i, part)))
      return failure();
    at = next;
  }
  return success();
}

LogicalResult lowerUnpack(NodeContext &c) {
  Value x = c.input(0);
  auto axis = c.normalizeAxis(c.attrInt("axis"), c.rank(x));
  if (failed(axis))
    return failure();
  if (!c.ctx.unify(c.dim(x, *axis), c.size(c.numResults()), c.name()))
    return c.error("dimension " + Twine(*axis) + " is " + textOf(c.dim(x, *axis)) + ", expected " +
                   Twine(c.numResults()));
  SmallVector<AffineExpr> sizes(c.numResults(), c.size(1));
  return splitInto(c, x, *axis, sizes, true);
}

LogicalResult lowerConcat(NodeContext &c, bool axisFirst) {
  unsigned n = c.numInputs() - 1, axisInput = axisFirst ? 0 : n, from = axisFirst ? 1 : 0;
  SmallVector<Value> values;
  for (unsigned i = 0; i < n; ++i)
    values.push_back(c.input(from + i));
  auto axis = c.axisInput(axisInput, c.rank(values[0]));
  if (failed(axis) || !sameDims(c, values, *axis))
    return failure();
  return c.setResult(0, c.concat(values, *axis));
}

LogicalResult lowerConcatOffset(NodeContext &c) {
  auto axis = c.constantInt(0);
  if (failed(axis))
    return failure();
  unsigned n = c.numInputs() - 1;
  SmallVector<Value> shapes = c.inputValues(1);
  if (!sameDims(c, shapes))
    return failure();
  auto rank = constantOf(c.dim(shapes[0], 0));
  if (!rank)
    return c.error("the rank of the shapes is not known");
  auto at = c.normalizeAxis(*axis, *rank);
  if (failed(at))
    return failure();
  SmallVector<int64_t> unit(*rank, 0);
  unit[*at] = 1;
  Value mask = c.Emitter::constantInts(unit, c.elementType(shapes[0])), offset = c.like(shapes[0], 0);
  for (unsigned i = 0; i < n; ++i) {
    if (failed(c.setResult(i, offset)))
      return failure();
    offset = c.add(offset, c.mul(shapes[i], mask));
  }
  return success();
}

LogicalResult lowerSplit(NodeContext &c) {
  Value x = c.input(1);
  auto axis = c.axisInput(0, c.rank(x));
  if (failed(axis))
    return failure();
  int64_t n = c.numResults();
  AffineExpr whole = c.dim(x, *axis), part = hlo::simplify(whole.floorDiv(n));
  if (auto size = constantOf(whole)) {
    if (*size % n)
      return c.error("dimension " + Twine(*axis) + " of size " + Twine(*size) + " cannot be split into " + Twine(n) +
                     " equal parts");
  } else {
    c.ctx.requireEqual(part * n, whole, c.name());
  }
  return splitInto(c, x, *axis, SmallVector<AffineExpr>(n, part), false);
}

LogicalResult lowerSplitV(NodeContext &c) {
  Value x = c.input(0);
  auto axis = c.axisInput(2, c.rank(x));
  auto sizes = c.shapeInput(1);
  if (failed(axis) || failed(sizes))
    return failure();
  AffineExpr whole = c.dim(x, *axis), sum = c.size(0);
  int64_t free = -1;
  for (auto [i, n] : llvm::enumerate(*sizes)) {
    if (constantOf(n) == int64_t(-1)) {
      if (free >= 0)
        return c.error("only one size may be -1");
      free = i;
    } else {
      sum = hlo::simplify(sum + n);
    }
  }
  if (free >= 0) {
    (*sizes)[free] = hlo::simplify(whole - sum);
    if (auto rest = constantOf((*sizes)[free]); rest && *rest < 0)
      return c.error("the sizes exceed dimension " + Twine(*axis));
  } else if (!c.ctx.unify(sum, whole, c.name())) {
    return c.error("the sizes add up to " + textOf(sum) + ", dimension " + Twine(*axis) + " is " + textOf(whole));
  }
  return splitInto(c, x, *axis, *sizes, false);
}

/// Input 1 of Tile and of its gradient: how often each dimension is repeated.
FailureOr<Dims> multiplesOf(NodeContext &c, int64_t rank) {
  auto multiples = c.shapeInput(1);
  if (failed(multiples))
    return failure();
  if (int64_t(multiples->size()) != rank)
    return c.error("expected " + Twine(rank) + " multiples, found " + Twine(multiples->size()));
  return Dims(multiples->begin(), multiples->end());
}

LogicalResult lowerTile(NodeContext &c) {
  Value x = c.input(0);
  const int64_t rank = c.rank(x);
  auto multiples = multiplesOf(c, rank);
  if (failed(multiples))
    return failure();
  Dims from = c.dims(x), wide, to;
  SmallVector<int64_t> map;
  for (int64_t i = 0; i < rank; ++i) {
    AffineExpr m = (*multiples)[i];
    if (auto n = constantOf(m); n && *n < 0)
      return c.error("multiple " + Twine(i) + " is negative");
    to.push_back(productOf({from[i], m}, c.b.getContext()));
    if (constantOf(m) != int64_t(1))
      wide.push_back(m);
    map.push_back(wide.size());
    wide.push_back(from[i]);
  }
  return c.setResult(0, c.reshape(c.broadcastInDim(x, wide, map), to));
}

/// The sum over the copies that Tile made.
LogicalResult lowerTileGrad(NodeContext &c) {
  Value x = c.input(0);
  const int64_t rank = c.rank(x);
  auto multiples = multiplesOf(c, rank);
  if (failed(multiples))
    return failure();
  Dims from = c.dims(x), wide;
  SmallVector<int64_t> axes;
  for (int64_t i = 0; i < rank; ++i) {
    auto m = constantOf((*multiples)[i]), n = constantOf(from[i]);
    if (m && *m <= 0)
      return c.error("expected multiples above 0, found " + Twine(*m));
    if (m && n && *n % *m != 0)
      return c.error("dimension " + Twine(i) + " of size " + Twine(*n) + " is no multiple of " + Twine(*m));
    if (m != int64_t(1)) {
      axes.push_back(int64_t(wide.size()));
      wide.push_back((*multiples)[i]);
    }
    wide.push_back(m == int64_t(1) ? from[i] : divideExactly(from[i], (*multiples)[i]));
  }
  return c.setResult(0, c.reduceSum(c.reshape(x, wide), axes));
}

LogicalResult lowerBroadcastTo(NodeContext &c) {
  Value x = c.input(0);
  auto shape = c.shapeInput(1);
  if (failed(shape))
    return failure();
  return c.setResult(0, c.broadcastTo(x, *shape));
}

/// Both shapes with ones in front up to the longer one's length.
std::optional<std::pair<Value, Value>> alignedShapes(NodeContext &c) {
  Value a = c.input(0), b = c.input(1);
  if (failed(c.expectRank(0, 1)) || failed(c.expectRank(1, 1)))
    return std::nullopt;
  auto m = constantOf(c.dim(a, 0)), n = constantOf(c.dim(b, 0));
  if (!m || !n) {
    (void)c.error("the rank of the shapes is not known");
    return std::nullopt;
  }
  Value one = c.scalarInt(1, c.elementType(a));
  a = c.pad(a, one, {std::max<int64_t>(*n - *m, 0)}, {0});
  b = c.pad(b, one, {std::max<int64_t>(*m - *n, 0)}, {0});
  return std::make_pair(a, b);
}

LogicalResult lowerBroadcastArgs(NodeContext &c) {
  auto a = c.trySizes(0), b = c.trySizes(1);
  if (a && b) {
    Dims result;
    if (!c.broadcastDims({*a, *b}, result))
      return failure();
    return c.setResult(0, GraphValue::ofSizes(result, {int64_t(result.size())}, c.resultType(0)));
  }
  auto shapes = alignedShapes(c);
  if (!shapes)
    return failure();
  auto [x, y] = *shapes;
  Value one = c.like(x, 1), xOne = c.compare(Compare::EQ, x, one), yOne = c.compare(Compare::EQ, y, one);
  Value fits = c.logicalOr(c.compare(Compare::EQ, x, y), c.logicalOr(xOne, yOne));
  c.check(fits, "shapes cannot be broadcast together");
  return c.setResult(0, c.select(xOne, y, x));
}

LogicalResult lowerBroadcastGradientArgs(NodeContext &c) {
  auto a = c.trySizes(0), b = c.trySizes(1);
  if (a && b) {
    size_t rank = std::max(a->size(), b->size());
    a->insert(a->begin(), rank - a->size(), c.size(1));
    b->insert(b->begin(), rank - b->size(), c.size(1));
    SmallVector<int64_t> fromA, fromB;
    bool equal = c.trySizes(0)->size() == c.trySizes(1)->size();
    for (size_t i = 0; i < rank; ++i) {
      bool aOne = constantOf((*a)[i]) == int64_t(1), bOne = constantOf((*b)[i]) == int64_t(1);
      if (aOne)
        fromA.push_back(i);
      if (bOne)
        fromB.push_back(i);
      if (!aOne && !bOne && !c.ctx.unify((*a)[i], (*b)[i], c.name()))
        return c.error("shapes cannot be broadcast together: dimension " + Twine(i) + " is " + textOf((*a)[i]) +
                       " and " + textOf((*b)[i]));
      equal &= aOne == bOne;
    }
    // Equal shapes reduce over nothing, not even over dimensions of size 1.
    if (equal)
      fromA = fromB = {};
    auto set = [&](unsigned i, ArrayRef<int64_t> list) {
      return c.setResult(i, GraphValue::ofSizes(c.sizes(list), {int64_t(list.size())}, c.resultType(i)));
    };
    return success(succeeded(set(0, fromA)) && succeeded(set(1, fromB)));
  }
  auto shapes = alignedShapes(c);
  if (!shapes)
    return failure();
  auto [x, y] = *shapes;
  Value one = c.like(x, 1), xOne = c.compare(Compare::EQ, x, one), yOne = c.compare(Compare::EQ, y, one);
  Value same = c.compare(Compare::EQ, x, y);
  c.check(c.logicalOr(same, c.logicalOr(xOne, yOne)), "shapes cannot be broadcast together");
  Value some = c.scalarInt(1, c.b.getI1Type());
  if (c.dims(c.input(0)) == c.dims(c.input(1)))
    some = c.logicalNot(c.reduceAnd(same, {0}));
  Value places = c.iota(c.dims(x), 0, c.resultType(0));
  Value fromA = compress(c, c.logicalAnd(xOne, some), {places})[0];
  Value fromB = compress(c, c.logicalAnd(yOne, some), {places})[0];
  return success(succeeded(c.setResult(0, fromA)) && succeeded(c.setResult(1, fromB)));
}

LogicalResult lowerFill(NodeContext &c) {
  auto dims = c.shapeInput(0);
  if (failed(dims) || failed(c.expectRank(1, 0)))
    return failure();
  for (AffineExpr d : *dims)
    if (auto n = constantOf(d); n && *n < 0)
      return c.error("size " + Twine(*n) + " is negative");
  return c.setResult(0, c.broadcastInDim(c.input(1), *dims, {}));
}

LogicalResult lowerEmpty(NodeContext &c) {
  auto dims = c.shapeInput(0);
  if (failed(dims))
    return failure();
  Type element = c.resultType(0);
  if (!element || !isa<FloatType, IntegerType, ComplexType>(element))
    return c.error("elements of this type have no compiled form");
  return c.setResult(0, c.splat(0, *dims, element));
}

LogicalResult lowerReverse(NodeContext &c) {
  Value x = c.input(0);
  auto axes = c.axesInput(1, c.rank(x));
  if (failed(axes))
    return failure();
  return c.setResult(0, c.reverse(x, *axes));
}

LogicalResult lowerReverseSequence(NodeContext &c) {
  Value x = c.input(0), lengths = c.input(1);
  auto seq = c.normalizeAxis(c.attrInt("seq_dim"), c.rank(x)), batch = c.normalizeAxis(c.attrInt("batch_dim"), c.rank(x));
  if (failed(seq) || failed(batch) || failed(c.expectRank(1, 1)))
    return failure();
  if (*seq == *batch)
    return c.error("seq_dim and batch_dim are equal");
  if (!c.ctx.unify(c.dim(lengths, 0), c.dim(x, *batch), c.name()))
    return c.error("expected one length for each of the " + textOf(c.dim(x, *batch)) + " sequences");
  // Elements of sequence b stand at 0..n: place s comes from n-1-s for s < n.
  Type element = c.elementType(lengths);
  checkRange(c, lengths, c.dim(x, *seq) + 1, "a sequence is longer than its dimension");
  Dims table{c.dim(x, *batch), c.dim(x, *seq)};
  Value place = c.iota(table, 1, element), n = c.broadcastInDim(lengths, table, {0});
  Value mirrored = c.sub(c.sub(n, c.like(n, 1)), place);
  Value index = c.select(c.compare(Compare::LT, place, n), mirrored, place);
  SmallVector<int64_t> perm{*batch, *seq}, back(c.rank(x));
  for (int64_t i = 0; i < c.rank(x); ++i)
    if (i != *batch && i != *seq)
      perm.push_back(i);
  for (auto [i, p] : llvm::enumerate(perm))
    back[p] = i;
  Value moved = gather(c, c.transpose(x, perm), index, 1, 1, /*checked=*/false);
  return c.setResult(0, moved ? c.transpose(moved, back) : Value());
}

LogicalResult lowerRoll(NodeContext &c) {
  Value x = c.input(0), shift = c.input(1);
  auto axes = c.constantInts(2);
  if (failed(axes))
    return failure();
  Type element = c.elementType(shift);
  if (c.rank(shift) > 1 || (c.rank(shift) == 1 && !c.ctx.unify(c.dim(shift, 0), c.size(axes->size()), c.name())))
    return c.error("shift and axis differ in size");
  for (auto [k, a] : llvm::enumerate(*axes)) {
    auto axis = c.normalizeAxis(a, c.rank(x));
    if (failed(axis))
      return failure();
    AffineExpr size = c.dim(x, *axis);
    if (size == c.size(0))
      continue;
    Value by = shift;
    if (c.rank(shift) == 1)
      by = c.reshape(c.sliceDim(shift, 0, c.size(k), c.size(k + 1)), ArrayRef<AffineExpr>());
    // what comes first afterwards: -shift modulo the size
    Value n = c.sizeValue(size, element);
    Value start = c.make<hlo::RemOp>(c.neg(by), n);
    start = c.select(c.compare(Compare::LT, start, c.scalarInt(0, element)), c.add(start, n), start);
    SmallVector<Value> starts(c.rank(x), c.scalarInt(0, element));
    starts[*axis] = start;
    Dims sizes = c.dims(x);
    x = c.make<hlo::DynamicSliceOp>(c.concat({x, x}, *axis), ValueRange(starts), ArrayRef<AffineExpr>(sizes));
  }
  return c.setResult(0, x);
}

/// Element type to compute in: small floats go through f32.
Type wideType(NodeContext &c, Type element) {
  auto f = dyn_cast<FloatType>(element);
  return f && f.getWidth() < 32 ? Type(c.b.getF32Type()) : element;
}

/// Inputs of a Range of floating-point numbers that are whole and known, or a size that became such a number. Sizes above 2^24 would be
/// rounded in f32; a type with fewer bits takes none.
std::optional<AffineExpr> wholeInput(NodeContext &c, unsigned i) {
  Value v = c.input(i);
  if (!v || !(c.elementType(v).isF32() || c.elementType(v).isF64()))
    return std::nullopt;
  if (auto convert = v.getDefiningOp<hlo::ConvertOp>())
    if (auto size = convert.getOperand().getDefiningOp<hlo::SizeOp>(); size && c.rank(v) == 0)
      return c.ctx.resolve(size.getMap().getResult(0));
  Value wide = c.convert(v, c.b.getF64Type());
  auto t = wide ? c.ctx.fold(wide) : std::nullopt;
  if (!t || t->numElements() != 1)
    return std::nullopt;
  const double number = *t->data<double>();
  return std::abs(number) < (1 << 24) && std::floor(number) == number ? std::optional(c.size(static_cast<int64_t>(number))) : std::nullopt;
}

/// How many numbers a Range holds.
AffineExpr stepsBetween(AffineExpr from, AffineExpr to, int64_t step) {
  const int64_t by = step > 0 ? step : -step;
  return hlo::simplify(((step > 0 ? to - from : from - to) + (by - 1)).floorDiv(by));
}

LogicalResult lowerRange(NodeContext &c) {
  Value start = c.input(0), delta = c.input(2);
  Type element = c.resultType(0);
  AffineExpr size;
  const bool ofFloats = isa<FloatType>(element);
  auto wholeFrom = ofFloats ? wholeInput(c, 0) : std::nullopt, wholeTo = ofFloats ? wholeInput(c, 1) : std::nullopt;
  auto wholeStep = wholeFrom && wholeTo ? wholeInput(c, 2) : std::nullopt;
  if (auto by = wholeStep ? constantOf(*wholeStep) : std::nullopt; by && *by && !(constantOf(*wholeFrom) && constantOf(*wholeTo))) {
    size = stepsBetween(*wholeFrom, *wholeTo, *by);
  } else if (ofFloats) {
    double v[3];
    for (unsigned i = 0; i < 3; ++i) {
      Value wide = c.convert(c.input(i), c.b.getF64Type());
      auto t = wide ? c.ctx.fold(wide) : std::nullopt;
      if (!t || t->numElements() != 1)
        return c.error("input " + Twine(i) + " must be a compile-time constant");
      v[i] = *t->data<double>();
    }
    if (v[2] == 0 || (v[2] > 0 ? v[0] > v[1] : v[0] < v[1]))
      return c.error("the limit cannot be reached from the start in steps of delta");
    double n = std::ceil(std::abs((v[1] - v[0]) / v[2]));
    if (!(n < 1e12))
      return c.error("the range has too many elements");
    size = c.size(int64_t(n));
  } else {
    auto from = c.sizeInput(0), to = c.sizeInput(1);
    auto step = c.constantInt(2);
    if (failed(from) || failed(to) || failed(step))
      return failure();
    if (*step == 0)
      return c.error("the step is 0");
    AffineExpr length = *step > 0 ? *to - *from : *from - *to;
    if (auto n = constantOf(hlo::simplify(length)); n && *n < 0)
      return c.error("the limit lies before the start");
    size = stepsBetween(*from, *to, *step);
  }
  Type wide = wideType(c, element);
  Value steps = c.iota({size}, 0, wide);
  Value v = c.add(c.convert(start, wide), c.mul(steps, c.convert(delta, wide)));
  return c.setResult(0, c.convert(v, element));
}

/// The coordinates of row-major numbers in a tensor of these sizes, one row for each dimension.
LogicalResult lowerUnravelIndex(NodeContext &c) {
  Value rest = c.input(0), sizes = c.input(1);
  if (failed(c.expectRank(1, 1)))
    return failure();
  if (c.rank(rest) > 1)
    return c.error("the indices must be a scalar or a vector");
  auto n = constantOf(c.dim(sizes, 0));
  if (!n || *n > 254)
    return c.error("the number of dimensions must be known, and at most 254");
  if (*n == 0 || (c.rank(rest) == 1 && constantOf(c.dim(rest, 0)) == int64_t(0)))
    return c.error("received empty tensor " + Twine(*n == 0 ? "dims" : "indices"));
  SmallVector<Value> size;
  Value total;
  for (int64_t d = 0; d < *n; ++d) {
    size.push_back(entryOf(c, sizes, d));
    total = total ? c.mul(total, size.back()) : size.back();
  }
  c.check(c.compare(Compare::NE, total, c.like(total, 0)), "dims contain a dim of zero");
  Dims dims = c.dims(rest), row = dims;
  auto spread = [&](Value v) { return c.broadcastInDim(v, dims, {}); };
  c.check(c.logicalAnd(c.compare(Compare::GE, rest, c.like(rest, 0)), c.compare(Compare::LT, rest, spread(total))),
          "index is out of bound as with dims");
  row.insert(row.begin(), c.size(1));
  SmallVector<Value> rows(*n);
  for (int64_t d = *n; d-- > 0;) {
    Value by = spread(c.max(size[d], c.like(size[d], 1))), quotient = c.div(rest, by);
    rows[d] = c.reshape(c.sub(rest, c.mul(quotient, by)), row);
    rest = quotient;
  }
  return c.setResult(0, c.concat(rows, 0));
}

LogicalResult lowerLinSpace(NodeContext &c) {
  auto num = c.constantInt(2);
  if (failed(num))
    return failure();
  if (*num < 1)
    return c.error("num must be positive, not " + Twine(*num));
  Type element = c.resultType(0), wide = wideType(c, element);
  Value start = c.convert(c.input(0), wide), stop = c.convert(c.input(1), wide);
  Dims dims{c.size(*num)};
  if (*num == 1)
    return c.setResult(0, c.reshape(c.input(0), dims));
  Value step = c.div(c.sub(stop, start), c.scalar(double(*num - 1), wide));
  Value v = c.add(start, c.mul(c.iota(dims, 0, wide), step));
  Value last = c.compare(Compare::EQ, c.iota(dims, 0, c.b.getI32Type()), c.scalarInt(*num - 1, c.b.getI32Type()));
  return c.setResult(0, c.convert(c.select(last, stop, v), element));
}

LogicalResult lowerOneHot(NodeContext &c) {
  Value indices = c.input(0), on = c.input(2), off = c.input(3);
  auto depth = c.sizeInput(1);
  if (failed(depth) || failed(c.expectRank(2, 0)) || failed(c.expectRank(3, 0)))
    return failure();
  auto axis = c.normalizeAxis(c.attrInt("axis", -1), c.rank(indices) + 1);
  if (failed(axis))
    return failure();
  if (auto n = constantOf(*depth); n && *n < 0)
    return c.error("depth is negative");
  // a narrow index type may not be able to count to the depth
  Type element = c.elementType(indices);
  if (element.getIntOrFloatBitWidth() < 32)
    indices = c.convert(indices, c.b.getI32Type());
  element = c.elementType(indices);
  Dims dims = c.dims(indices);
  dims.insert(dims.begin() + *axis, *depth);
  SmallVector<int64_t> map;
  for (int64_t i = 0; i < c.rank(indices); ++i)
    map.push_back(i < *axis ? i : i + 1);
  Value hot = c.compare(Compare::EQ, c.broadcastInDim(indices, dims, map), c.iota(dims, *axis, element));
  return c.setResult(0, c.select(hot, on, off));
}

LogicalResult lowerInvertPermutation(NodeContext &c) {
  Value x = c.input(0);
  if (failed(c.expectRank(0, 1)))
    return failure();
  checkRange(c, x, c.dim(x, 0), "no permutation");
  Value places = c.iota(c.dims(x), 0, c.elementType(x)), none = c.likeInt(x, -1);
  Value result = scatterRows(c, none, x, places, nullptr, /*checked=*/false);
  if (!c.ctx.fold(x))
    c.check(c.compare(Compare::GE, result, c.like(x, 0)), "no permutation: a number occurs twice");
  return c.setResult(0, result);
}

LogicalResult lowerDiag(NodeContext &c) {
  Value x = c.input(0);
  Dims dims = c.dims(x), square = dims;
  square.append(dims.begin(), dims.end());
  AffineExpr n = productOf(dims, c.b.getContext());
  Dims flat{n, n};
  Type index = c.b.getI32Type();
  Value on = c.compare(Compare::EQ, c.iota(flat, 0, index), c.iota(flat, 1, index));
  Value rows = c.broadcastInDim(c.reshape(x, ArrayRef<AffineExpr>{n}), flat, {0});
  return c.setResult(0, c.reshape(c.select(on, rows, c.scalar(0, c.elementType(x))), square));
}

LogicalResult lowerDiagPart(NodeContext &c) {
  Value x = c.input(0);
  int64_t half = c.rank(x) / 2;
  if (c.rank(x) % 2 || half == 0)
    return c.error("expected an even rank, found " + Twine(c.rank(x)));
  for (int64_t i = 0; i < half; ++i)
    if (!c.ctx.unify(c.dim(x, i), c.dim(x, i + half), c.name()))
      return c.error("dimensions " + Twine(i) + " and " + Twine(i + half) + " differ");
  Dims dims = c.dims(x);
  Dims front(dims.begin(), dims.begin() + half);
  AffineExpr n = productOf(front, c.b.getContext());
  Value flat = c.reshape(x, ArrayRef<AffineExpr>{n, n});
  Value part = gather(c, flat, c.reshape(c.iota({n}, 0, c.b.getI32Type()), ArrayRef<AffineExpr>{n, c.size(1)}), 1, 1,
                      /*checked=*/false);
  return c.setResult(0, part ? c.reshape(part, front) : Value());
}

} // namespace

void registerArray(HandlerTable &t) {
  t.add("Transpose", 2, [](NodeContext &c) { return lowerTranspose(c, false); });
  t.add("ConjugateTranspose", 2, [](NodeContext &c) { return lowerTranspose(c, true); });
  t.add("Pack", HandlerTable::atLeast(1), lowerPack);
  t.add("ParallelConcat", HandlerTable::atLeast(1), [](NodeContext &c) {
    return c.setResult(0, c.concat(c.inputValues(), 0));
  });
  t.add("Unpack", 1, lowerUnpack);
  t.add("Concat", HandlerTable::atLeast(2), [](NodeContext &c) { return lowerConcat(c, true); });
  t.add("ConcatV2", HandlerTable::atLeast(2), [](NodeContext &c) { return lowerConcat(c, false); });
  t.add("ConcatOffset", HandlerTable::atLeast(2), lowerConcatOffset);
  t.add("Split", 2, lowerSplit);
  t.add("SplitV", 3, lowerSplitV);
  t.add("Tile", 2, lowerTile);
  t.add("TileGrad", 2, lowerTileGrad);
  t.add("BroadcastTo", 2, lowerBroadcastTo);
  t.add("BroadcastArgs", 2, lowerBroadcastArgs);
  t.add("BroadcastGradientArgs", 2, lowerBroadcastGradientArgs);
  t.add("Fill", 2, lowerFill);
  t.add("Empty", 1, lowerEmpty);
  t.add("ReverseV2", 2, lowerReverse);
  t.add("ReverseSequence", 2, lowerReverseSequence);
  t.add("Roll", 3, lowerRoll);
  t.add("Range", 3, lowerRange);
  t.add("UnravelIndex", 2, lowerUnravelIndex);
  t.add("LinSpace", 3, lowerLinSpace);
  t.add("OneHot", 4, lowerOneHot);
  t.add("InvertPermutation", 1, lowerInvertPermutation);
  t.add("Diag", 1, lowerDiag);
  t.add("DiagPart", 1, lowerDiagPart);
}

void registerArrayFamilies(HandlerTable &t) {
  registerArray(t);
  registerSlice(t);
  registerPad(t);
  registerGather(t);
  registerSegment(t);
  registerSort(t);
  registerDataSize(t);
  registerMatrix(t);
  registerLinalg(t);
  registerRandom(t);
  registerRagged(t);
  registerSparse(t);
  registerSparseRows(t);
  registerQuantized(t);
  registerQuantizedFused(t);
  registerQuantizedMath(t);
  registerUniform(t);
  registerChoice(t);
  registerImage(t);
  registerQuantize(t);
  registerStateArray(t);
  registerMorphology(t);
  registerAudio(t);
}

} // namespace lathe::legalize
