// See Steps.h.
#include "passes/legalize/quant/Steps.h"

#include "dialects/hlo/Quant.h"

#include <cmath>

using namespace mlir;

namespace lathe::legalize {

FailureOr<Steps> Steps::of(NodeContext &c, Type type) {
  auto integer = dyn_cast<IntegerType>(type);
  if (!integer || integer.getWidth() < 8 || integer.getWidth() > 32)
    return c.error("expected a quantised type");
  Steps s{type, integer.getWidth(), !integer.isUnsigned(), 0, 0};
  s.lowest = s.isSigned ? -std::ldexp(1.0, s.bits - 1) : 0;
  s.highest = std::ldexp(1.0, s.isSigned ? s.bits - 1 : s.bits) - 1;
  return s;
}

Type uniformElement(Type integer, ArrayRef<float> scales, ArrayRef<int32_t> zeroPoints, int64_t axis, RankedTensorType of, int64_t low,
                    int64_t high) {
  auto carrier = dyn_cast<IntegerType>(integer);
  if (!carrier || carrier.getWidth() < 8 || carrier.getWidth() > 32 || scales.empty() || scales.size() != zeroPoints.size())
    return {};
  const bool isSigned = !carrier.isUnsigned();
  const unsigned bits = carrier.getWidth(), flags = isSigned ? unsigned(quant::QuantizationFlags::Signed) : 0;
  if (low >= high || low < quant::QuantizedType::getDefaultMinimumForInteger(isSigned, bits) ||
      high > quant::QuantizedType::getDefaultMaximumForInteger(isSigned, bits))
    return {};
  const int32_t most = bits == 32 ? 0 : 1 << 24;
  for (auto [scale, zero] : llvm::zip(scales, zeroPoints))
    if (!(scale > 0) || !std::isfinite(scale) || zero < -most || zero > most)
      return {};
  Type storage = IntegerType::get(integer.getContext(), bits), real = Float32Type::get(integer.getContext());
  if (axis < 0)
    return scales.size() == 1 ? Type(quant::UniformQuantizedType::get(flags, storage, real, scales[0], zeroPoints[0], low, high)) : Type();
  if (axis >= of.getRank() || of.getDimSize(unsigned(axis)) != int64_t(scales.size()))
    return {};
  return quant::UniformQuantizedPerAxisType::get(flags, storage, real, SmallVector<double>(scales.begin(), scales.end()),
                                                 SmallVector<int64_t>(zeroPoints.begin(), zeroPoints.end()), int32_t(axis), low, high);
}

Value toSteps(NodeContext &c, Value v, const Steps &s) {
  Value converted = c.convert(v, s.type);
  if (s.bits < 32)
    return converted;
  Value over = c.compare(Compare::GE, v, c.like(v, 2147483648.0));
  return c.select(over, c.likeInt(converted, INT32_MIN), converted);
}

FailureOr<StepRange> rangeInput(NodeContext &c, unsigned i) {
  Value ends[2];
  for (unsigned k = 0; k < 2; ++k) {
    Value v = c.input(i + k);
    if (Emitter::rank(v) != 0 && !(c.isStatic(v) && Emitter::type(v).getNumElements() == 1))
      return c.error("input " + Twine(i + k) + ", an end of a range, must be a scalar");
    ends[k] = c.reshape(v, ArrayRef<AffineExpr>());
  }
  return StepRange{ends[0], ends[1]};
}

LogicalResult setRange(NodeContext &c, const StepRange &range) {
  if (failed(c.setResult(1, range.low)))
    return failure();
  return c.setResult(2, range.high);
}

FailureOr<Quantised> quantisedInput(NodeContext &c, unsigned i, unsigned rangeAt) {
  Value q = c.input(i);
  auto steps = Steps::of(c, Emitter::elementType(q));
  if (failed(steps))
    return failure();
  auto range = rangeInput(c, rangeAt);
  if (failed(range))
    return failure();
  return Quantised{q, *range, *steps};
}

Value zeroOf(NodeContext &c, const Quantised &x) {
  return c.convert(stepOf(c, c.like(x.range.low, 0), x.range, x.steps), c.b.getI32Type());
}

Value aroundZero(NodeContext &c, const Quantised &x) { return c.sub(c.convert(x.q, c.b.getI32Type()), zeroOf(c, x)); }

static Value wide(NodeContext &c, Value v) { return c.convert(v, c.b.getF64Type()); }
static Value narrow(NodeContext &c, Value v) { return c.convert(v, c.b.getF32Type()); }
static Value round(NodeContext &c, Value v) { return c.unary<hlo::RoundOp>(v); }
/// The width of a range: subtracted in f32.
static Value widthOf(NodeContext &c, const StepRange &r) { return wide(c, c.sub(r.high, r.low)); }
static Value isPoint(NodeContext &c, const StepRange &r) { return c.compare(Compare::EQ, r.low, r.high); }

Value numberOf(NodeContext &c, Value q, const StepRange &r, const Steps &s) {
  Value width = widthOf(c, r);
  width = c.mul(width, c.like(width, s.count() / (s.count() - 1)));
  Value scale = c.div(width, c.like(width, s.count())), scale32 = narrow(c, scale);
  Value first = c.mul(round(c, c.div(r.low, scale32)), scale32);
  Value offset = wide(c, q);
  offset = c.sub(offset, c.like(offset, s.lowest));
  Value result = narrow(c, c.add(wide(c, first), c.mul(offset, scale)));
  return c.select(isPoint(c, r), c.broadcastTo(r.low, c.dims(result)), result);
}

Value stepOf(NodeContext &c, Value x, const StepRange &r, const Steps &s) {
  Value width = widthOf(c, r);
  width = c.mul(width, c.like(width, s.count() / (s.count() - 1)));
  Value scale = c.div(c.like(width, s.count()), width);
  Value step = c.sub(round(c, c.mul(wide(c, x), scale)), round(c, c.mul(wide(c, r.low), scale)));
  step = c.add(step, c.like(step, s.lowest));
  return c.select(isPoint(c, r), c.like(step, s.lowest), step);
}

Value clampedStepOf(NodeContext &c, Value x, const StepRange &r, const Steps &s) {
  Value step = stepOf(c, x, r, s);
  return c.convert(c.min(c.max(step, c.like(step, s.lowest)), c.like(step, s.highest)), s.type);
}

Value numberInFloat(NodeContext &c, Value q, const StepRange &r, const Steps &s) {
  Value width = widthOf(c, r), scale = narrow(c, c.div(width, c.like(width, s.count() - 1)));
  Value first = c.select(isPoint(c, r), r.low, c.mul(round(c, c.div(r.low, scale)), scale));
  return c.add(c.sub(first, c.mul(c.like(scale, s.lowest), scale)), c.mul(narrow(c, q), scale));
}

Value stepInFloat(NodeContext &c, Value x, const StepRange &r, const Steps &s) {
  Value width = widthOf(c, r), scale = narrow(c, c.div(c.like(width, s.count() - 1), width));
  scale = c.select(isPoint(c, r), c.like(scale, 0), scale);
  Value first = round(c, c.mul(r.low, scale));
  Value step = c.sub(round(c, c.mul(x, scale)), c.sub(first, c.like(first, s.lowest)));
  // in 32 bits the highest float below the limit, and what x86 makes of NaN
  Value clamped = c.min(c.max(step, c.like(step, s.lowest)), c.like(step, s.bits == 32 ? 2147483520.0 : s.highest));
  if (s.bits == 32)
    clamped = c.select(c.compare(Compare::EQ, step, step), clamped, c.like(step, s.lowest));
  return c.convert(clamped, s.type);
}

Value requantizeToBytes(NodeContext &c, Value q, const StepRange &from, const StepRange &to) {
  constexpr int64_t shift = 16;
  constexpr double one = 1 << shift;
  Type i64 = c.b.getIntegerType(64);
  Value fromWidth = c.sub(from.high, from.low), toWidth = c.sub(to.high, to.low), zero = c.scalarInt(0, i64);
  Value none = c.compare(Compare::EQ, toWidth, c.like(toWidth, 0));
  Value middle = narrow(c, c.mul(wide(c, c.add(from.low, from.high)), c.scalar(0.5, c.b.getF64Type())));
  Value perNumber = narrow(c, c.div(c.scalar(255, c.b.getF64Type()), wide(c, toWidth)));
  perNumber = c.select(none, c.like(perNumber, 0), perNumber);
  auto fixed = [&](Value v) { return c.select(none, zero, c.convert(v, i64)); };
  Value width64 = wide(c, fromWidth), low64 = wide(c, to.low);
  Value scale = fixed(c.div(c.mul(c.like(width64, 255 * one), width64), wide(c, toWidth)));
  Value outOffset = fixed(c.div(c.mul(c.like(low64, one), c.mul(low64, c.like(low64, 255))), wide(c, toWidth)));
  Value inOffset = c.convert(c.mul(c.mul(middle, perNumber), c.like(middle, one)), i64);
  auto shifted = [&](Value v, int64_t n) { return c.binary<hlo::ShiftRightArithmeticOp>(v, c.likeInt(v, n)); };
  Value offset = c.add(c.sub(inOffset, outOffset), c.scalarInt(int64_t(1) << (shift - 1), i64));
  Value step = shifted(c.add(shifted(c.mul(c.convert(q, i64), scale), 32), offset), shift);
  step = c.min(c.max(step, c.likeInt(step, 0)), c.likeInt(step, 255));
  return c.convert(step, c.b.getIntegerType(8, /*isSigned=*/false));
}

StepRange rangeOfProducts(NodeContext &c, const StepRange &x, const Steps &xs, const StepRange &y, const Steps &ys, const Steps &out) {
  auto level = [&](const StepRange &r, const Steps &s) {
    Value width = c.sub(r.high, r.low);
    return c.div(width, c.like(width, s.range()));
  };
  Value both = c.mul(level(x, xs), level(y, ys));
  return {c.mul(both, c.like(both, out.lowest)), c.mul(both, c.like(both, out.highest))};
}

} // namespace lathe::legalize
