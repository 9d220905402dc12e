// Constants, identities, casts and the ops that only rename or reshape.
#include "dialects/graph/Types.h"
#include "dialects/hlo/Constants.h"
#include "passes/legalize/NodeContext.h"

#include <cmath>

using namespace mlir;

namespace lathe::legalize {
namespace {

LogicalResult lowerConst(NodeContext &c) {
  Attribute value = c.attr("value");
  auto elements = dyn_cast_or_null<ElementsAttr>(value);
  if (!elements) {
    if (isa_and_nonnull<graph::StringsAttr>(value))
      return c.setResult(0, GraphValue::ofName(GraphValue::Kind::Host, ""));
    return c.error("has no value");
  }
  return c.setResult(0, c.make<hlo::ConstantOp>(elements));
}

LogicalResult lowerIdentity(NodeContext &c) {
  for (unsigned i = 0; i < c.numResults(); ++i) {
    if (i >= c.numInputs())
      return c.error("input " + Twine(i) + " is missing");
    GraphValue v = c.value(i);
    // A reference is read here: what is assigned later does not change what Identity gave.
    if (v.kind == GraphValue::Kind::Reference) {
      auto now = c.ctx.readVariable(v.name, c.loc);
      if (failed(now))
        return failure();
      v = *now;
    }
    if (failed(c.setResult(i, v)))
      return failure();
  }
  return success();
}

/// Floats to integers as x86 converts: NaN and what int32 (int64) cannot hold become its smallest number; narrower types,
/// and the unsigned ones, are the low bits of that.
Value castToInteger(NodeContext &c, Value x, IntegerType to) {
  auto fits = [&](double limit) { return c.compare(Compare::LT, x, c.like(x, limit)); }; // false for NaN
  unsigned width = to.getWidth();
  bool wide = width == 64 || (width == 32 && to.isUnsigned());
  IntegerType via = wide ? c.b.getI64Type() : c.b.getI32Type();
  Value bits = c.convert(x, via); // saturates, so small numbers are right
  Value least = c.likeInt(bits, wide ? INT64_MIN : INT32_MIN);
  Value most = least;
  if (width == 64 && to.isUnsigned()) // the upper half of uint64
    most = c.select(fits(std::ldexp(1.0, 64)), c.convert(c.convert(x, to), via), least);
  return c.convert(c.select(fits(std::ldexp(1.0, wide ? 63 : 31)), bits, most), to);
}

/// Sets the bits of the significand that `to` has no place for to 0, but not of NaN.
Value truncateSignificand(NodeContext &c, Value x, FloatType to) {
  auto from = cast<FloatType>(Emitter::elementType(x));
  unsigned width = from.getWidth(), drop = from.getFPMantissaWidth() - to.getFPMantissaWidth();
  Type bits = IntegerType::get(c.b.getContext(), width);
  Value all = c.make<hlo::BitcastConvertOp>(x, bits);
  Value kept = c.make<hlo::BitcastConvertOp>(c.logicalAnd(all, c.likeInt(all, -(int64_t(1) << drop))), from);
  return c.select(c.compare(Compare::EQ, x, x), kept, x);
}

LogicalResult lowerCast(NodeContext &c) {
  Value x = c.input(0);
  Type from = c.elementType(x), to = c.resultType(0);
  if (!isa<FloatType, IntegerType, ComplexType>(to))
    return c.error("no cast to this type");
  if (isa<ComplexType>(from) && !isa<ComplexType>(to) && !to.isInteger(1)) {
    x = c.unary<hlo::RealOp>(x);
    from = c.elementType(x);
  }
  auto integer = dyn_cast<IntegerType>(to);
  if (isa<FloatType>(from) && integer && integer.getWidth() >= 8)
    return c.setResult(0, castToInteger(c, x, integer));
  if (c.attrBool("Truncate") && isa<FloatType>(from) && isa<FloatType>(to) &&
      cast<FloatType>(from).getFPMantissaWidth() > cast<FloatType>(to).getFPMantissaWidth())
    x = truncateSignificand(c, x, cast<FloatType>(to));
  return c.setResult(0, c.convert(x, to));
}

LogicalResult lowerReshape(NodeContext &c) {
  Value x = c.input(0);
  auto wanted = c.shapeInput(1);
  if (failed(wanted))
    return failure();
  Dims from = c.dims(x), to = c.ctx.resolve(*wanted);
  MLIRContext *context = c.b.getContext();
  int64_t free = -1;
  Dims known;
  for (auto [i, d] : llvm::enumerate(to)) {
    auto size = constantOf(d);
    if (size && *size < -1)
      return c.error("size " + Twine(i) + " must be non-negative, not " + Twine(*size));
    if (size && *size == -1) {
      if (free >= 0)
        return c.error("only one size may be -1");
      free = i;
    } else {
      known.push_back(d);
    }
  }
  AffineExpr total = productOf(from, context), rest = productOf(known, context);
  auto totalSize = constantOf(total), restSize = constantOf(rest);
  if (free >= 0) {
    if (totalSize && restSize && (*restSize == 0 ? *totalSize != 0 : *totalSize % *restSize != 0))
      return c.error("input has " + Twine(*totalSize) + " elements, which is no multiple of " + Twine(*restSize));
    if (restSize == int64_t(0)) {
      // sizes of 0 count on neither side, so that an empty tensor keeps its other sizes
      auto isZero = [](AffineExpr e) { return constantOf(e) == int64_t(0); };
      llvm::erase_if(from, isZero);
      llvm::erase_if(known, isZero);
      AffineExpr above = productOf(from, context), below = productOf(known, context);
      auto a = constantOf(above), b = constantOf(below);
      if (a && b && *a % *b != 0)
        return c.error("input has " + Twine(*a) + " elements without sizes of 0, which is no multiple of " + Twine(*b));
      to[free] = divideExactly(above, below);
    } else {
      // what both have goes before sums are multiplied out, and where it is 0 at run time the quotient is none
      for (AffineExpr size : llvm::to_vector(known))
        if (auto same = llvm::find(from, size); same != from.end()) {
          from.erase(same);
          known.erase(llvm::find(known, size));
        }
      AffineExpr above = productOf(from, context), below = productOf(known, context);
      to[free] = divideExactly(above, below);
      if (AffineExpr back = productOf({to[free], below}, context); back != above)
        c.ctx.requireEqual(productOf({to[free], rest}, context), total, c.name());
    }
  } else if (!c.ctx.unify(total, rest, c.name()) && constantOf(hlo::simplify(c.ctx.resolve(total) - c.ctx.resolve(rest)))) {
    std::string text;
    llvm::raw_string_ostream os(text);
    os << "input has " << total << " elements, the requested shape " << rest;
    return c.error(text);
  }
  return c.setResult(0, c.reshape(x, to));
}

LogicalResult lowerExpandDims(NodeContext &c) {
  Value x = c.input(0);
  auto axis = c.constantInt(1);
  if (failed(axis))
    return failure();
  auto at = c.normalizeAxis(*axis, c.rank(x) + 1);
  if (failed(at))
    return failure();
  Dims dims = c.dims(x);
  dims.insert(dims.begin() + *at, c.size(1));
  return c.setResult(0, c.reshape(x, dims));
}

LogicalResult lowerSqueeze(NodeContext &c) {
  Value x = c.input(0);
  SmallVector<int64_t> axes = c.attrInts("squeeze_dims");
  for (int64_t &axis : axes) {
    auto normal = c.normalizeAxis(axis, c.rank(x));
    if (failed(normal))
      return failure();
    axis = *normal;
  }
  Dims dims;
  for (auto [i, d] : llvm::enumerate(c.dims(x))) {
    bool one = constantOf(d) == int64_t(1);
    if (!axes.empty() && llvm::is_contained(axes, int64_t(i))) {
      if (!c.ctx.unify(d, c.size(1), c.name()))
        return c.error("dimension " + Twine(i) + " is not 1");
      continue;
    }
    if (axes.empty() && !constantOf(d))
      return c.error("dimension " + Twine(i) + " must be known at compile time: without axes, its size decides the rank");
    if (!axes.empty() || !one)
      dims.push_back(d);
  }
  return c.setResult(0, c.reshape(x, dims));
}

LogicalResult lowerBitcast(NodeContext &c) {
  Value x = c.input(0);
  return c.setResult(0, c.make<hlo::BitcastConvertOp>(x, c.resultType(0)));
}

LogicalResult lowerZerosLike(NodeContext &c, double value) {
  const GraphValue &v = c.value(0);
  if (v.kind == GraphValue::Kind::List) {
    GraphValue zeros = v;
    if (v.list.buffer && value == 0)
      zeros.list.buffer = c.like(v.list.buffer, 0);
    return c.setResult(0, zeros);
  }
  Value x = c.input(0);
  if (!x)
    return failure();
  return c.setResult(0, c.like(x, value));
}

LogicalResult lowerShapeOf(NodeContext &c) {
  return c.error("the shape of this value is not known");
}

LogicalResult nothing(NodeContext &c) { return success(); }

} // namespace

void registerBasic(HandlerTable &t) {
  t.addAnyKind("Const", 0, lowerConst);
  for (StringRef op : {"Identity", "StopGradient", "PreventGradient", "Snapshot",
                       "DebugGradientIdentity", "DebugGradientRefIdentity", "RefIdentity", "ReadIdentity", "DeepCopy",
                       "CopyHost", "Copy", "EnsureShape", "PlaceholderWithDefault", "TensorListIdentity",
                       "_EagerConst"})
    t.addAnyKind(op, 1, lowerIdentity);
  t.addAnyKind("IdentityN", HandlerTable::atLeast(0), lowerIdentity);
  t.addAnyKind("Print", HandlerTable::atLeast(1), lowerIdentity);
  t.addAnyKind("NoOp", 0, nothing);
  t.addAnyKind("PrintV2", 1, nothing);
  t.addAnyKind("ControlTrigger", 0, nothing);
  for (StringRef op : {"Shape", "ShapeN", "Size", "Rank"})
    t.addAnyKind(op, HandlerTable::atLeast(1), lowerShapeOf);
  t.add("Cast", 1, lowerCast);
  t.add("Bitcast", 1, lowerBitcast);
  t.add("Reshape", 2, lowerReshape);
  t.add("ExpandDims", 2, lowerExpandDims);
  t.add("Squeeze", 1, lowerSqueeze);
  t.addAnyKind("ZerosLike", 1, [](NodeContext &c) { return lowerZerosLike(c, 0); });
  t.add("OnesLike", 1, [](NodeContext &c) { return lowerZerosLike(c, 1); });
}

} // namespace lathe::legalize
