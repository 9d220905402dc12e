// Short forms for making hlo.
#include "passes/legalize/Emitter.h"

#include "llvm/ADT/APSInt.h"

#include "dialects/graph/Types.h"
#include "dialects/hlo/Constants.h"

using namespace mlir;

namespace lathe::legalize {

LogicalResult Emitter::error(const llvm::Twine &text) {
  ctx.sawError = true;
  return emitError(loc) << "node '" << nodeName << "': " << text;
}

Dims Emitter::dims(Value v) {
  Dims result;
  for (AffineExpr e : hlo::getDims(type(v)))
    result.push_back(ctx.resolve(e));
  return result;
}

Value Emitter::poison() {
  return make<hlo::ConstantOp>(DenseElementsAttr::get(RankedTensorType::get({}, b.getIndexType()), Attribute(b.getIndexAttr(0))));
}

Value Emitter::poison(const llvm::Twine &why) {
  mlir::emitError(loc) << why;
  return poison();
}

AffineExpr Emitter::dim(Value v, int64_t i) {
  Dims all = dims(v);
  if (i >= 0 && i < static_cast<int64_t>(all.size()))
    return all[static_cast<size_t>(i)];
  mlir::emitError(loc) << "expected an input of rank " << i + 1 << " or more, found rank " << all.size();
  return size(1);
}

Dims Emitter::sizes(ArrayRef<int64_t> values) {
  Dims result;
  for (int64_t v : values)
    result.push_back(size(v));
  return result;
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

static Attribute scalarAttr(Builder &b, Type element, double value) {
  if (auto f = dyn_cast<FloatType>(element)) {
    APFloat v(value);
    bool lost;
    v.convert(f.getFloatSemantics(), APFloat::rmNearestTiesToEven, &lost);
    return FloatAttr::get(f, v);
  }
  // What failed inference leaves has the element type index.
  auto i = dyn_cast<IntegerType>(element);
  APSInt integer(64, false);
  bool exact;
  APFloat(value).convertToInteger(integer, APFloat::rmTowardZero, &exact); // saturates
  if (!i)
    return IntegerAttr::get(element, integer.getSExtValue());
  return IntegerAttr::get(i, integer.sextOrTrunc(i.getWidth()));
}

/// The same value everywhere: a scalar constant, broadcast where the shape is not that of a scalar and not static.
static Value splatOf(Emitter &e, DenseElementsAttr scalar, ArrayRef<AffineExpr> dims) {
  Type element = scalar.getElementType();
  RankedTensorType type = e.typeOf(dims, element);
  if (type.hasStaticShape()) {
    if (isa<ComplexType>(element))
      return e.make<hlo::ConstantOp>(DenseElementsAttr::get(type, scalar.getSplatValue<Attribute>()));
    return e.make<hlo::ConstantOp>(scalar.resizeSplat(type));
  }
  return e.broadcastInDim(e.make<hlo::ConstantOp>(scalar), dims, {});
}

Value Emitter::splat(double value, ArrayRef<AffineExpr> dims, Type element) {
  if (!isa<FloatType, IntegerType, IndexType, ComplexType>(element))
    return poison("expected numbers");
  auto type = RankedTensorType::get({}, element);
  if (auto complex = dyn_cast<ComplexType>(element)) {
    auto part = [&](double v) { return cast<FloatAttr>(scalarAttr(b, complex.getElementType(), v)).getValue(); };
    std::complex<APFloat> c(part(value), part(0));
    return splatOf(*this, DenseElementsAttr::get(type, ArrayRef<std::complex<APFloat>>(c)), dims);
  }
  return splatOf(*this, DenseElementsAttr::get(type, scalarAttr(b, element, value)), dims);
}

Value Emitter::splatInt(int64_t value, ArrayRef<AffineExpr> dims, Type element) {
  if (auto i = dyn_cast<IntegerType>(element)) {
    auto attr = IntegerAttr::get(i, APInt(64, uint64_t(value), true).sextOrTrunc(i.getWidth()));
    return splatOf(*this, DenseElementsAttr::get(RankedTensorType::get({}, element), Attribute(attr)), dims);
  }
  return splat(double(value), dims, element);
}

Value Emitter::constant(const Tensor &tensor) { return hlo::makeConstant(b, loc, tensor); }

Value Emitter::constantInts(ArrayRef<int64_t> values, Type element) {
  if (!element.isInteger(64) && !element.isInteger(32))
    return poison("expected integers of 32 or 64 bits");
  Tensor t = Tensor::allocate(graph::toDType(element), {int64_t(values.size())});
  for (auto [i, v] : llvm::enumerate(values)) {
    if (element.isInteger(64))
      t.data<int64_t>()[i] = v;
    else
      t.data<int32_t>()[i] = int32_t(v);
  }
  return constant(t);
}

Value Emitter::sizeValue(AffineExpr expr, Type element) {
  expr = ctx.resolve(expr);
  if (auto c = constantOf(expr))
    return scalarInt(*c, element);
  return make<hlo::SizeOp>(expr, element);
}

Value Emitter::lowest(Type element) { return hlo::makeLowest(b, loc, element); }
Value Emitter::highest(Type element) { return hlo::makeHighest(b, loc, element); }

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

Value Emitter::reshape(Value v, ArrayRef<AffineExpr> to) {
  if (!v)
    return poison();
  Dims resolved = ctx.resolve(to);
  if (dims(v) == resolved)
    return v;
  AffineExpr from = productOf(dims(v), b.getContext()), wanted = productOf(resolved, b.getContext());
  if (from != wanted && !constantOf(hlo::simplify(from - wanted)))
    ctx.requireEqual(from, wanted, nodeName);
  return make<hlo::ReshapeOp>(v, ArrayRef<AffineExpr>(resolved));
}

Value Emitter::broadcastInDim(Value v, ArrayRef<AffineExpr> to, ArrayRef<int64_t> map) {
  if (!v)
    return poison();
  Dims resolved = ctx.resolve(to);
  if (int64_t(map.size()) == int64_t(resolved.size()) && dims(v) == resolved &&
      llvm::equal(map, llvm::seq<int64_t>(0, map.size())))
    return v;
  return make<hlo::BroadcastInDimOp>(v, ArrayRef<AffineExpr>(resolved), map);
}

/// A size that the run finds to be 0 or 1 (`x[:1]`): such dimensions are repeated as those of size 1 are.
static bool isNoneOrOne(HloContext &ctx, AffineExpr size) {
  return !constantOf(size) && ctx.upperBound(size) == int64_t(1);
}

/// Whether a size that data decides (how many segments there are) meets a known one that can be another: where it is 1 it is repeated, else both
/// have to be the same. Sizes of inputs are taken to be the same.
static bool isChosenBesideKnown(HloContext &ctx, AffineExpr size, AffineExpr other) {
  auto known = constantOf(other);
  return known && *known > 1 && isa<AffineSymbolExpr>(size) && ctx.isDataSize(size);
}

/// The one element that a dimension of size 0 or 1 has, to be repeated `times` times.
static Value takeOne(Emitter &e, Value v, int64_t axis, AffineExpr times) {
  Type i64 = e.b.getI64Type();
  Value have = e.sizeValue(e.dim(v, axis), i64), wanted = e.sizeValue(times, i64);
  e.check(e.compare(Compare::LE, e.min(wanted, e.scalarInt(1, i64)), have), "sizes cannot be broadcast together");
  Dims sizes = e.dims(v);
  sizes[axis] = e.size(1);
  SmallVector<Value> starts(Emitter::rank(v), e.scalarInt(0, i64));
  return e.make<hlo::DynamicSliceOp>(v, ValueRange(starts), ArrayRef<AffineExpr>(sizes));
}

bool Emitter::broadcastDims(ArrayRef<Dims> shapes, Dims &result) {
  size_t rank = 0;
  for (const Dims &shape : shapes)
    rank = std::max(rank, shape.size());
  result.assign(rank, size(1));
  for (const Dims &shape : shapes) {
    size_t offset = rank - shape.size();
    for (auto [i, d] : llvm::enumerate(shape)) {
      AffineExpr dim = ctx.resolve(d), &sofar = result[offset + i];
      sofar = ctx.resolve(sofar);
      if (sofar == dim || constantOf(dim) == int64_t(1))
        continue;
      if (constantOf(sofar) == int64_t(1) || (isNoneOrOne(ctx, sofar) && !isNoneOrOne(ctx, dim))) {
        sofar = dim;
        continue;
      }
      if ((isNoneOrOne(ctx, dim) && !isNoneOrOne(ctx, sofar)) || isChosenBesideKnown(ctx, dim, sofar))
        continue;
      if (isChosenBesideKnown(ctx, sofar, dim)) {
        sofar = dim;
        continue;
      }
      if (!ctx.unify(sofar, dim, nodeName)) {
        std::string text;
        llvm::raw_string_ostream os(text);
        os << "shapes cannot be broadcast together: dimension " << offset + i << " is " << sofar << " and " << dim;
        (void)error(text);
        return false;
      }
      sofar = ctx.resolve(sofar);
    }
  }
  result = ctx.resolve(result);
  return true;
}

/// A dimension whose size data decides, 1 or `times`, as one of size `times`.
static Value repeatIfOne(Emitter &e, Value v, int64_t axis, int64_t times) {
  Type i64 = e.b.getI64Type();
  Value have = e.sizeValue(e.dim(v, axis), i64), isOne = e.compare(Compare::EQ, have, e.scalarInt(1, i64));
  e.check(e.logicalOr(isOne, e.compare(Compare::EQ, have, e.scalarInt(times, i64))), "sizes cannot be broadcast together");
  Value places = e.iota({e.size(times)}, 0, i64);
  places = e.select(e.broadcastTo(isOne, e.dims(places)), e.likeInt(places, 0), places);
  return e.takeSlices(v, places, axis);
}

Value Emitter::broadcastTo(Value v, ArrayRef<AffineExpr> to) {
  if (!v)
    return poison();
  int64_t offset = int64_t(to.size()) - rank(v);
  if (offset < 0) {
    (void)error("cannot broadcast rank " + llvm::Twine(rank(v)) + " to rank " + llvm::Twine(to.size()));
    return poison();
  }
  SmallVector<int64_t> map;
  for (int64_t i = 0; i < rank(v); ++i) {
    map.push_back(i + offset);
    AffineExpr d = dim(v, i), t = ctx.resolve(to[i + offset]);
    if (d != t && isNoneOrOne(ctx, d) && !isNoneOrOne(ctx, t)) {
      v = takeOne(*this, v, i, t);
      continue;
    }
    if (isChosenBesideKnown(ctx, d, t)) {
      v = repeatIfOne(*this, v, i, *constantOf(t));
      continue;
    }
    if (d != t && constantOf(d) != int64_t(1) && !ctx.unify(d, t, nodeName)) {
      std::string text;
      llvm::raw_string_ostream os(text);
      os << "cannot broadcast size " << d << " to " << t;
      (void)error(text);
      return poison();
    }
  }
  return broadcastInDim(v, to, map);
}

bool Emitter::broadcastTogether(MutableArrayRef<Value> values) {
  SmallVector<Dims> shapes;
  for (Value v : values)
    shapes.push_back(dims(v));
  Dims common;
  if (!broadcastDims(shapes, common))
    return false;
  for (Value &v : values)
    v = broadcastTo(v, common);
  return true;
}

Value Emitter::takeSlices(Value v, Value places, int64_t axis) {
  if (!v || !places)
    return poison();
  SmallVector<int64_t> offsets, sizes;
  for (auto [i, size] : llvm::enumerate(dims(v))) {
    const bool isAxis = int64_t(i) == axis;
    if (!isAxis)
      offsets.push_back(i);
    auto known = constantOf(size);
    sizes.push_back(isAxis ? 1 : known ? *known : ShapedType::kDynamic);
  }
  auto numbers = hlo::GatherDimensionNumbersAttr::get(b.getContext(), offsets, {axis}, {}, {}, {axis}, 1);
  return make<hlo::GatherOp>(v, places, numbers, sizes, false);
}

Value Emitter::transpose(Value v, ArrayRef<int64_t> permutation) {
  if (!v)
    return poison();
  if (llvm::equal(permutation, llvm::seq<int64_t>(0, permutation.size())))
    return v;
  return make<hlo::TransposeOp>(v, permutation);
}

Value Emitter::concat(ArrayRef<Value> values, int64_t axis) {
  if (llvm::is_contained(values, Value()))
    return poison();
  // sizes that are known only at run time have to be the same there; the operation itself has no form for others
  for (Value v : values.drop_front())
    for (int64_t d = 0; d < std::min(rank(v), rank(values[0])); ++d)
      if (d != axis && !ctx.unify(dim(values[0], d), dim(v, d), nodeName))
        return poison("dimension " + llvm::Twine(d) + " of what is joined differs");
  return values.size() == 1 ? values[0] : make<hlo::ConcatenateOp>(ValueRange(values), axis);
}

Value Emitter::slice(Value v, ArrayRef<AffineExpr> starts, ArrayRef<AffineExpr> limits, ArrayRef<int64_t> strides) {
  if (!v)
    return poison();
  SmallVector<int64_t> ones(rank(v), 1);
  if (strides.empty())
    strides = ones;
  Dims from = ctx.resolve(starts), to = ctx.resolve(limits);
  if (to == dims(v) && llvm::all_of(from, [](AffineExpr e) { return constantOf(e) == int64_t(0); }) &&
      llvm::all_of(strides, [](int64_t s) { return s == 1; }))
    return v;
  return make<hlo::SliceOp>(v, ArrayRef<AffineExpr>(from), ArrayRef<AffineExpr>(to), strides);
}

Value Emitter::sliceDim(Value v, int64_t axis, AffineExpr start, AffineExpr limit, int64_t stride) {
  if (!v)
    return poison();
  Dims starts(rank(v), size(0)), limits = dims(v);
  SmallVector<int64_t> strides(rank(v), 1);
  if (axis < 0 || axis >= rank(v))
    return poison("expected an input of rank " + llvm::Twine(axis + 1) + " or more, found rank " + llvm::Twine(rank(v)));
  starts[axis] = start;
  limits[axis] = limit;
  strides[axis] = stride;
  return slice(v, starts, limits, strides);
}

Value Emitter::pad(Value v, Value with, ArrayRef<int64_t> low, ArrayRef<int64_t> high, ArrayRef<int64_t> interior) {
  if (!v || !with)
    return poison();
  SmallVector<int64_t> zeros(rank(v), 0);
  if (interior.empty())
    interior = zeros;
  auto none = [](ArrayRef<int64_t> a) { return llvm::all_of(a, [](int64_t x) { return x == 0; }); };
  if (none(low) && none(high) && none(interior))
    return v;
  return make<hlo::PadOp>(v, with, low, high, interior);
}

Value Emitter::reverse(Value v, ArrayRef<int64_t> axes) {
  return !v ? poison() : axes.empty() ? v : make<hlo::ReverseOp>(v, axes);
}

Value Emitter::iota(ArrayRef<AffineExpr> dims, int64_t axis, Type element) {
  return make<hlo::IotaOp>(typeOf(ctx.resolve(dims), element), axis);
}

Value Emitter::takeRow(Value buffer, Value index) {
  if (!buffer || !index)
    return poison();
  Dims shape = dims(buffer);
  if (shape.empty())
    return poison("expected a buffer of rank 1 or more");
  Dims one = shape;
  one[0] = size(1);
  // Nothing can be read of an empty buffer, in a loop that never runs.
  if (constantOf(shape[0]) == int64_t(0))
    return splatInt(0, ArrayRef<AffineExpr>(shape).drop_front(), elementType(buffer));
  SmallVector<Value> starts(shape.size(), scalarInt(0, elementType(index)));
  starts[0] = index;
  Value row = make<hlo::DynamicSliceOp>(buffer, ValueRange(starts), ArrayRef<AffineExpr>(one));
  return reshape(row, ArrayRef<AffineExpr>(shape).drop_front());
}

Value Emitter::putRow(Value buffer, Value row, Value index) {
  if (!buffer || !row || !index)
    return poison();
  Dims one = dims(buffer);
  if (one.empty())
    return poison("expected a buffer of rank 1 or more");
  if (constantOf(one[0]) == int64_t(0))
    return buffer;
  one[0] = size(1);
  SmallVector<Value> starts(one.size(), scalarInt(0, elementType(index)));
  starts[0] = index;
  return make<hlo::DynamicUpdateSliceOp>(buffer, reshape(row, one), ValueRange(starts));
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

Value Emitter::compare(Compare direction, Value x, Value y) {
  Value v[2] = {x, y};
  if (!x || !y || !broadcastTogether(v))
    return poison();
  return make<hlo::CompareOp>(v[0], v[1], direction);
}

Value Emitter::select(Value condition, Value onTrue, Value onFalse) {
  Value v[3] = {condition, onTrue, onFalse};
  if (!condition || !onTrue || !onFalse || !broadcastTogether(v))
    return poison();
  return make<hlo::SelectOp>(v[0], v[1], v[2]);
}

Value Emitter::convert(Value x, Type element) {
  return !x ? poison() : elementType(x) == element ? x : make<hlo::ConvertOp>(x, element);
}

//===----------------------------------------------------------------------===//
// Reductions and products
//===----------------------------------------------------------------------===//

Value Emitter::reduce(Value v, Value init, ArrayRef<int64_t> axes, Combine combine) {
  if (!v || !init)
    return poison();
  if (axes.empty())
    return v;
  return make<hlo::ReduceOp>(ValueRange(v), ValueRange(init), axes,
                             [&](OpBuilder &b, Location l, ValueRange args) -> SmallVector<Value> {
                               return {combine(b, l, args[0], args[1])};
                             });
}

template <typename Op>
static Value combineWith(OpBuilder &b, Location l, Value x, Value y) {
  return Op::create(b, l, x, y);
}

Value Emitter::reduceSum(Value v, ArrayRef<int64_t> axes) {
  return !v ? poison() : reduce(v, scalarInt(0, elementType(v)), axes, combineWith<hlo::AddOp>);
}
Value Emitter::reduceMax(Value v, ArrayRef<int64_t> axes) {
  return !v ? poison() : reduce(v, lowest(elementType(v)), axes, combineWith<hlo::MaxOp>);
}
Value Emitter::reduceMin(Value v, ArrayRef<int64_t> axes) {
  return !v ? poison() : reduce(v, highest(elementType(v)), axes, combineWith<hlo::MinOp>);
}
Value Emitter::reduceProd(Value v, ArrayRef<int64_t> axes) {
  return !v ? poison() : reduce(v, scalarInt(1, elementType(v)), axes, combineWith<hlo::MulOp>);
}
Value Emitter::reduceAnd(Value v, ArrayRef<int64_t> axes) {
  return !v ? poison() : reduce(v, scalarInt(1, elementType(v)), axes, combineWith<hlo::AndOp>);
}
Value Emitter::reduceOr(Value v, ArrayRef<int64_t> axes) {
  return !v ? poison() : reduce(v, scalarInt(0, elementType(v)), axes, combineWith<hlo::OrOp>);
}

Value Emitter::keepDims(Value reduced, ArrayRef<int64_t> axes, int64_t rank) {
  if (!reduced)
    return poison();
  Dims from = dims(reduced), to;
  size_t next = 0;
  for (int64_t i = 0; i < rank; ++i)
    if (llvm::is_contained(axes, i))
      to.push_back(size(1));
    else if (next < from.size())
      to.push_back(from[next++]);
    else
      return poison("expected an input of rank " + llvm::Twine(rank));
  return reshape(reduced, to);
}

Value Emitter::dot(Value x, Value y, ArrayRef<int64_t> xBatch, ArrayRef<int64_t> yBatch, ArrayRef<int64_t> xContract,
                   ArrayRef<int64_t> yContract) {
  if (!x || !y)
    return poison();
  for (auto [i, j] : llvm::zip(llvm::concat<const int64_t>(xBatch, xContract), llvm::concat<const int64_t>(yBatch, yContract))) {
    AffineExpr dx = dim(x, i), dy = dim(y, j);
    if (!ctx.unify(dx, dy, nodeName)) {
      std::string text;
      llvm::raw_string_ostream os(text);
      os << "inner dimensions differ: " << dx << " and " << dy;
      (void)error(text);
      return poison();
    }
  }
  auto numbers = hlo::DotDimensionNumbersAttr::get(b.getContext(), xBatch, yBatch, xContract, yContract);
  return make<hlo::DotGeneralOp>(x, y, numbers);
}

void Emitter::check(Value condition, StringRef message) {
  hlo::CheckOp::create(b, loc, condition, message, nodeName);
}

} // namespace lathe::legalize
