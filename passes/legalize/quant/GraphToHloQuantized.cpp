// Quantised tensors as TensorFlow's CPU kernels make and read them: QuantizeV2, Dequantize, QuantizedConv2D.
#include "passes/legalize/array/ArrayFamilies.h"
#include "passes/legalize/array/ArrayHelpers.h"
#include "passes/legalize/quant/Fused.h"
#include "passes/legalize/quant/Steps.h"

#include <cmath>

using namespace mlir;

namespace lathe::legalize {
namespace {

/// A range for each channel along `axis`, or one for all.
Value spread(NodeContext &c, Value v, Value x, int64_t axis) {
  return axis < 0 || c.rank(v) == 0 ? v : c.broadcastInDim(v, c.dims(x), {axis});
}

LogicalResult checkAxis(NodeContext &c, Value x, Value low, Value high, int64_t axis) {
  if (axis >= c.rank(x) || axis < -1)
    return c.error("axis " + Twine(axis) + " is out of range for rank " + Twine(c.rank(x)));
  for (Value v : {low, high}) {
    if (c.rank(v) != (axis < 0 ? 0 : 1) && !(axis < 0 && c.isStatic(v) && c.type(v).getNumElements() == 1))
      return c.error("expected ranges of rank " + Twine(axis < 0 ? 0 : 1) + ", found rank " + Twine(c.rank(v)));
    if (axis >= 0 && !c.ctx.unify(c.dim(v, 0), c.dim(x, axis), c.name()))
      return c.error("expected a range for each of the " + textOf(c.dim(x, axis)) + " channels");
  }
  return success();
}

/// In f32 with products, and in an order of steps that each mode has for itself: not what hlo.uniform_quantize does.
LogicalResult lowerQuantize(NodeContext &c) {
  Value x = c.input(0), low = c.input(1), high = c.input(2);
  int64_t axis = c.attrInt("axis", -1);
  auto steps = Steps::of(c, c.resultType(0));
  if (failed(steps) || failed(checkAxis(c, x, low, high, axis)))
    return failure();
  if (axis < 0) {
    low = c.reshape(low, ArrayRef<AffineExpr>());
    high = c.reshape(high, ArrayRef<AffineExpr>());
  }
  const Steps &s = *steps;
  auto absolute = [&](Value v) { return c.unary<hlo::AbsOp>(v); };
  // ranges hold zero and are not empty
  Value least = c.mul(c.max(c.like(low, 1), c.max(absolute(low), absolute(high))),
                      c.like(low, c.attrFloat("ensure_minimum_range", 0.01)));
  low = c.min(low, c.like(low, 0));
  high = c.max(c.max(high, c.add(low, least)), c.like(high, 0));
  StringRef mode = c.attrString("mode", "MIN_COMBINED");
  auto wide = [&](Value v) { return spread(c, v, x, axis); };
  auto clamped = [&] { return c.max(c.min(x, wide(high)), wide(low)); };
  Value steps0;
  if (mode == "MIN_COMBINED") {
    Value scale = c.div(c.like(low, s.range()), c.sub(high, low));
    Value v = c.mul(c.sub(clamped(), wide(low)), wide(scale));
    steps0 = s.isSigned ? c.unary<hlo::RoundOp>(c.sub(v, c.like(v, s.halfRange()))) : c.add(v, c.like(v, 0.5));
  } else if (mode == "MIN_FIRST") {
    double count = std::ldexp(1.0, s.bits);
    Value range = c.mul(c.sub(high, low), c.like(low, count / (count - 1)));
    Value scale = c.div(c.like(low, count), range), first = c.unary<hlo::RoundOp>(c.mul(low, scale));
    Value v = c.sub(c.unary<hlo::RoundOp>(c.mul(x, wide(scale))), wide(c.sub(first, c.like(first, s.lowest))));
    // in 32 bits the highest float below the limit
    steps0 = c.min(c.max(v, c.like(v, s.lowest)), c.like(v, s.bits == 32 ? 2147483520.0 : s.highest));
  } else if (mode == "SCALED") {
    double from = s.lowest + (c.attrBool("narrow_range") ? 1 : 0);
    Value most = c.like(low, std::numeric_limits<float>::max()), zero = c.like(low, 0);
    auto sideScale = [&](double end, Value v) {
      Value e = c.like(v, end);
      return c.select(c.compare(Compare::GT, c.mul(e, v), zero), c.div(e, v), most);
    };
    Value scale = c.min(sideScale(from, low), sideScale(s.highest, high));
    low = c.div(c.like(low, from), scale);
    high = c.div(c.like(high, s.highest), scale);
    Value v = c.mul(clamped(), wide(scale));
    steps0 = c.attrString("round_mode", "HALF_AWAY_FROM_ZERO") == "HALF_TO_EVEN" ? c.unary<hlo::RoundNearestEvenOp>(v)
                                                                                : c.unary<hlo::RoundOp>(v);
  } else {
    return c.error("mode '" + mode + "' is not supported");
  }
  if (!steps0 || failed(c.setResult(0, toSteps(c, steps0, s))) || failed(c.setResult(1, low)))
    return failure();
  return c.setResult(2, high);
}

/// The element type of integers that stand for themselves times constant scales.
Type scaledType(NodeContext &c, Value q, Value scale, int64_t axis, const Steps &s) {
  auto scales = c.ctx.fold(scale);
  if (!scales)
    return {};
  const SmallVector<int32_t> zeros(static_cast<size_t>(scales->numElements()), 0);
  return uniformElement(s.type, ArrayRef(scales->data<float>(), zeros.size()), zeros, axis, Emitter::type(q), int64_t(s.lowest),
                        int64_t(s.highest));
}

/// The modes that add a float behind the product are not those of hlo.uniform_dequantize.
LogicalResult lowerDequantize(NodeContext &c) {
  Value q = c.input(0), low = c.input(1), high = c.input(2);
  int64_t axis = c.attrInt("axis", -1);
  auto steps = Steps::of(c, c.elementType(q));
  if (failed(steps) || failed(checkAxis(c, q, low, high, axis)))
    return failure();
  if (axis < 0) {
    low = c.reshape(low, ArrayRef<AffineExpr>());
    high = c.reshape(high, ArrayRef<AffineExpr>());
  }
  const Steps &s = *steps;
  Value x = c.convert(q, c.b.getF32Type());
  auto wide = [&](Value v) { return spread(c, v, x, axis); };
  StringRef mode = c.attrString("mode", "MIN_COMBINED");
  Value result;
  if (mode == "MIN_COMBINED") {
    Value scale = c.div(c.sub(high, low), c.like(low, s.range()));
    result = c.add(c.mul(c.add(x, c.like(x, s.halfRange())), wide(scale)), wide(low));
  } else if (mode == "MIN_FIRST") {
    double count = std::ldexp(1.0, s.bits);
    Value scale = c.div(c.mul(c.sub(high, low), c.like(low, count / (count - 1))), c.like(low, count));
    Value first = c.mul(c.unary<hlo::RoundOp>(c.div(low, scale)), scale);
    result = c.add(c.mul(c.sub(x, c.like(x, s.lowest)), wide(scale)), wide(first));
    result = c.select(wide(c.compare(Compare::EQ, low, high)), wide(low), result);
  } else if (mode == "SCALED") {
    double from = s.lowest + (c.attrBool("narrow_range") ? 1 : 0);
    Value scale = c.div(high, c.like(high, s.highest));
    if (from != 0)
      scale = c.max(c.div(low, c.like(low, from)), scale);
    if (Type type = scaledType(c, q, scale, axis, s))
      return c.setResult(0, c.convert(c.make<hlo::UniformDequantizeOp>(c.make<hlo::BitcastConvertOp>(q, type)), c.resultType(0)));
    result = c.mul(x, wide(scale));
  } else {
    return c.error("mode '" + mode + "' is not supported");
  }
  return c.setResult(0, result ? c.convert(result, c.resultType(0)) : result);
}

/// A filter of unsigned bytes; one of signed bytes belongs to the fused family.
LogicalResult lowerQuantizedConv(NodeContext &c) {
  auto in = quantisedInput(c, 0, 2), weights = quantisedInput(c, 1, 4);
  auto out = Steps::of(c, c.resultType(0));
  if (failed(in) || failed(weights) || failed(out))
    return failure();
  if (weights->steps.isSigned && weights->steps.bits == 8)
    return lowerFusedConv(c, {});
  if (out->bits != 32)
    return c.error("only 32-bit results are supported");
  auto sums = windowSums(c, {in->q, zeroOf(c, *in)}, {weights->q, zeroOf(c, *weights)}, /*depthwise=*/false);
  if (failed(sums) || failed(c.setResult(0, *sums)))
    return failure();
  return setRange(c, rangeOfProducts(c, in->range, in->steps, weights->range, weights->steps, *out));
}

/// Passes the gradient where the input lay inside its range. TensorFlow multiplies, so that what is not finite elsewhere makes a NaN.
LogicalResult lowerQuantizeDequantizeGrad(NodeContext &c) {
  Value grad = c.input(0), x = c.input(1), low = c.input(2), high = c.input(3);
  int64_t axis = c.attrInt("axis", -1);
  if (!sameDims(c, {grad, x}) || axis >= c.rank(x))
    return failure();
  Value inside = c.logicalAnd(c.compare(Compare::GE, x, spread(c, low, x, axis)),
                              c.compare(Compare::LE, x, spread(c, high, x, axis)));
  if (failed(c.setResult(0, c.mul(grad, c.convert(inside, c.elementType(grad))))) ||
      failed(c.setResult(1, c.like(low, 0))))
    return failure();
  return c.setResult(2, c.like(high, 0));
}

} // namespace

void registerQuantized(HandlerTable &t) {
  t.add("QuantizeV2", 3, lowerQuantize);
  t.add("Dequantize", 3, lowerDequantize);
  t.add("QuantizedConv2D", 6, lowerQuantizedConv);
  t.add("QuantizeAndDequantizeV4Grad", 4, lowerQuantizeDequantizeGrad);
}

} // namespace lathe::legalize
