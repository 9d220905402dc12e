#include "passes/quantize/Arithmetic.h"

#include "dialects/hlo/Marks.h"
#include "passes/quantize/FloatSteps.h"

#include <cmath>

using namespace mlir;

namespace lathe::quantize {

Multiplier multiplierOf(double factor) {
  if (factor == 0 || !std::isfinite(factor))
    return {};
  int shift = 0;
  int64_t value = std::llround(std::frexp(factor, &shift) * double(int64_t(1) << 31));
  if (value == int64_t(1) << 31) {
    value /= 2;
    ++shift;
  }
  if (shift < -31)
    return {};
  return {int32_t(value), shift};
}

static Value constantLike(Emitter &e, int64_t value, Value v) { return e.likeInt(v, value); }

/// Numbers along one axis, broadcast to the shape of `like`.
static Value alongAxis(Emitter &e, ArrayRef<int64_t> values, int64_t axis, Value like) {
  return e.broadcastInDim(e.constantInts(values, e.b.getI64Type()), e.dims(like), {axis});
}

/// x / 2^exponents rounded to nearest, ties away from zero, by what the shift drops: no sum that may overflow, and exponents of 0.
/// `half` is half of the largest remainder.
static Value shiftByRemainder(Emitter &e, Value x, Value exponents, Value mask, Value half) {
  unsigned width = Emitter::elementType(x).getIntOrFloatBitWidth();
  Value sign = e.binary<hlo::ShiftRightArithmeticOp>(x, constantLike(e, width - 1, x));
  Value above = e.compare(legalize::Compare::GT, e.binary<hlo::AndOp>(x, mask), e.sub(half, sign));
  return e.add(e.binary<hlo::ShiftRightArithmeticOp>(x, exponents), e.convert(above, Emitter::elementType(x)));
}

Value roundingShift(Emitter &e, Value x, int exponent) {
  if (!x || exponent <= 0 || !Emitter::isInteger(x)) // what stands for a value after an error is no integer
    return x;
  const int64_t mask = (int64_t(1) << exponent) - 1;
  return shiftByRemainder(e, x, constantLike(e, exponent, x), constantLike(e, mask, x), constantLike(e, mask >> 1, x));
}

/// The high half of the doubled product of x and the values, both i32, rounded to nearest; i32.
static Value doubledHighProduct(Emitter &e, Value x, Value values) {
  Value product = e.mul(e.convert(x, e.b.getI64Type()), values);
  // Division by 2^31 of the product and half of that, towards zero for both signs, is this shift. Its bits fit i32.
  Value high = e.binary<hlo::ShiftRightArithmeticOp>(e.add(product, constantLike(e, int64_t(1) << 30, product)),
                                                     constantLike(e, 31, product));
  return e.convert(high, e.b.getI32Type());
}

/// x / 2^(less + 1) rounded to nearest, ties away from zero, where x is neither the least nor the greatest i32, which high products
/// never are: all but the last bit of the shift first, so that what rounds cannot overflow.
static Value shiftHighProduct(Emitter &e, Value x, Value less) {
  Value down = e.add(x, e.binary<hlo::ShiftRightArithmeticOp>(x, constantLike(e, 31, x)));
  Value twice = e.binary<hlo::ShiftRightArithmeticOp>(down, less), one = constantLike(e, 1, x);
  return e.binary<hlo::ShiftRightArithmeticOp>(e.add(twice, one), one);
}

Value multiplyBy(Emitter &e, Value x, Multiplier factor) {
  if (!x)
    return x;
  if (factor.shift > 0)
    x = e.binary<hlo::ShiftLeftOp>(x, constantLike(e, factor.shift, x));
  Value high = doubledHighProduct(e, x, e.splatInt(factor.value, e.dims(x), e.b.getI64Type()));
  return factor.shift < 0 ? shiftHighProduct(e, high, constantLike(e, -factor.shift - 1, high)) : high;
}

Value multiplyByEach(Emitter &e, Value x, ArrayRef<Multiplier> factors, int64_t axis) {
  if (!x)
    return x;
  if (factors.size() == 1)
    return multiplyBy(e, x, factors[0]);
  SmallVector<int64_t> value, left, right, less, mask, half;
  for (const Multiplier &m : factors) {
    value.push_back(m.value);
    left.push_back(std::max(m.shift, 0));
    right.push_back(std::max(-m.shift, 0));
    less.push_back(right.back() - 1);
    mask.push_back((int64_t(1) << right.back()) - 1);
    half.push_back(mask.back() >> 1);
  }
  auto narrow = [&](ArrayRef<int64_t> v) { return e.convert(alongAxis(e, v, axis, x), e.b.getI32Type()); };
  auto any = [](ArrayRef<int64_t> v) { return llvm::any_of(v, [](int64_t n) { return n != 0; }); };
  if (any(left))
    x = e.binary<hlo::ShiftLeftOp>(x, narrow(left));
  Value high = doubledHighProduct(e, x, alongAxis(e, value, axis, x));
  if (!any(right))
    return high;
  if (llvm::is_contained(right, 0))
    return shiftByRemainder(e, high, narrow(right), narrow(mask), narrow(half));
  return shiftHighProduct(e, high, narrow(less));
}

Value multiplyWide(Emitter &e, Value x, ArrayRef<Multiplier> factors, int64_t axis) {
  if (!x)
    return x;
  SmallVector<int64_t> value, half, shift;
  for (const Multiplier &m : factors) {
    if (m.shift > 14) {
      (void)e.error("the scale of its result is too small for those of its inputs");
      return {};
    }
    value.push_back(m.value < 0x7FFF0000 ? (m.value + (1 << 15)) >> 16 : 0x7FFF);
    shift.push_back(15 - m.shift);
    half.push_back(int64_t(1) << (14 - m.shift));
  }
  auto spread = [&](ArrayRef<int64_t> v) {
    return factors.size() == 1 ? constantLike(e, v[0], x) : alongAxis(e, v, axis, x);
  };
  Value sum = e.add(e.mul(x, spread(value)), spread(half));
  return e.convert(e.binary<hlo::ShiftRightArithmeticOp>(sum, spread(shift)), e.b.getI32Type());
}

/// `real` in steps of the output, rounded to nearest and clamped. `most`: what its magnitude never exceeds.
static Value finishReal(Emitter &e, Value real, double most, int64_t zeroPoint, Range range, Type element) {
  if (!real)
    return real;
  // What does not fit i32 must not be converted; integers are clamped in one instruction, floats, for NaN, in several.
  if (most > double(int64_t(1) << 30))
    real = e.min(e.max(real, e.like(real, double(range.first - zeroPoint))), e.like(real, double(range.second - zeroPoint)));
  return finish(e, convertInRange(e, e.unary<hlo::RoundNearestEvenOp>(real)), zeroPoint, range, element);
}

static double realOf(const Multiplier &m) { return std::ldexp(double(m.value), m.shift - 31); }

static Value toReal(Emitter &e, Value x) { return e.convert(x, e.b.getF32Type()); }

Value convertInRange(Emitter &e, Value x) {
  x = e.convert(x, e.b.getI32Type());
  if (auto op = x ? x.getDefiningOp<hlo::ConvertOp>() : hlo::ConvertOp())
    op->setAttr(hlo::inRangeAttr, e.b.getUnitAttr());
  return x;
}

bool isFast(Emitter &e, Type element) { return e.ctx.fastQuantizedMath && element && element.isInteger(8); }

/// Numbers in f32 of the shape of `like`, one for all or one for each index of the axis.
static Value floatsAlong(Emitter &e, ArrayRef<double> values, int64_t axis, Value like) {
  if (llvm::all_equal(values))
    return e.like(like, values.front());
  Tensor t = Tensor::allocate(DType::Float32, {int64_t(values.size())});
  llvm::transform(values, t.data<float>(), [](double v) { return float(v); });
  Value each = e.constant(t);
  return each ? e.broadcastInDim(each, e.dims(like), {axis}) : each;
}

/// x * y + z, of which the product need not be rounded.
static Value multiplyAdd(Emitter &e, Value x, Value y, Value z) {
  Value sum = e.add(e.mul(x, y), z);
  if (auto op = sum ? sum.getDefiningOp<hlo::AddOp>() : hlo::AddOp())
    op->setAttr(hlo::contractAttr, e.b.getUnitAttr());
  return sum;
}

/// Rounding of f32 to 24 bits, as a part of the number.
constexpr double roundingOfFloat = 1.0 / (1 << 24);

/// `exact`, or `real` (f32) rounded to nearest. `real` is what `exact` rounds plus `error`, and off by less than that.
static Value orRounded(Emitter &e, Value exact, Value real, double error) {
  if (!exact || !real)
    return {};
  // where the sum of both errors may have crossed a half, it lies just above one
  Value nearest = e.unary<hlo::RoundNearestEvenOp>(real), above = e.sub(real, nearest);
  Value unsure = e.compare(legalize::Compare::LT, above, e.like(above, -0.5 + 2.0625 * error));
  Value either = e.select(unsure, exact, convertInRange(e, nearest));
  if (auto op = either ? either.getDefiningOp<hlo::SelectOp>() : hlo::SelectOp())
    op->setAttr(hlo::shortcutAttr, e.b.getUnitAttr());
  return either;
}

/// The largest magnitudes that matter of numbers in steps of the output: those that the range does not cut are less than one step off.
static std::pair<double, double> magnitudes(int64_t zeroPoint, Range range) {
  auto most = [&](int64_t less) { return double(std::max(std::abs(range.first - 1 - less), std::abs(range.second + 1 - less))) + 1; };
  return {most(0), most(zeroPoint)};
}

/// x * factor + (x < 0 ? below : add) rounded to nearest, each one for all or one for each index of the axis.
static Value scaleAndAdd(Emitter &e, Value sums, ArrayRef<double> factors, ArrayRef<double> add, ArrayRef<double> below, int64_t axis) {
  Value x = toReal(e, sums), more = floatsAlong(e, add, axis, x);
  if (add != below)
    more = e.select(e.compare(legalize::Compare::LT, sums, e.likeInt(sums, 0)), floatsAlong(e, below, axis, x), more);
  return multiplyAdd(e, x, floatsAlong(e, factors, axis, x), more);
}

Value roundInFloat(Emitter &e, Value sums, const Rounding &exact, ArrayRef<double> factors, int64_t axis, int64_t zeroPoint, Range range,
                   Type element) {
  if (!sums)
    return sums;
  auto isSmall = [](double f) { return f >= 0 && f < 0.5; };
  if (!element.isInteger(8) || !Emitter::elementType(sums).isInteger(32) || !llvm::all_of(factors, isSmall))
    return exact.ops();
  auto tieOf = [&](size_t i) { return exact.ties.empty() || factors[i] == 0 ? 0 : exact.ties[i]; };
  SmallVector<double> by, up, down;
  for (size_t i = 0; i < factors.size(); ++i) {
    auto of = [&](int32_t x) { return exact.of(i, x); };
    std::optional<FloatSteps> steps = findFloatSteps(of, factors[i], tieOf(i), zeroPoint, range);
    if (!steps)
      break;
    by.push_back(steps->factor);
    up.push_back(steps->add);
    down.push_back(steps->below);
  }
  if (by.size() == factors.size())
    return convertInRange(e, e.unary<hlo::RoundNearestEvenOp>(scaleAndAdd(e, sums, by, up, down, axis)));
  auto [most, mostReal] = magnitudes(zeroPoint, range);
  double least = 1;
  for (double f : factors)
    least = f > 0 ? std::min(least, f) : least;
  // The factor, the product and, where sums that the range does not cut have more than 24 bits, they themselves are rounded; so are what
  // is added and the result.
  const double relative = mostReal / least < double(1 << 24) ? 2 : 3;
  const double error = roundingOfFloat * (relative * mostReal + most + double(std::abs(zeroPoint)) + 1);
  up.clear();
  down.clear();
  for (size_t i = 0; i < factors.size(); ++i) {
    up.push_back(double(zeroPoint) + error + tieOf(i));
    // sums below 0 that the range cuts all need no care
    down.push_back(zeroPoint > range.first ? double(zeroPoint) + error - tieOf(i) : up.back());
  }
  return orRounded(e, exact.ops(), scaleAndAdd(e, sums, factors, up, down, axis), error);
}

/// What the ops of multiplyByEach give for one sum and a factor below 1/2.
static int64_t multiplied(int32_t x, const Multiplier &m) {
  const int64_t high = (int64_t(x) * m.value + (int64_t(1) << 30)) >> 31;
  if (m.value == 0 || m.shift == 0) // a mean's factor has no shift where the scales differ by as much as there are numbers
    return m.value == 0 ? 0 : high;
  return (((high + (high >> 63)) >> (-m.shift - 1)) + 1) >> 1;
}

Value requantize(Emitter &e, Value sums, ArrayRef<Multiplier> factors, int64_t axis, int64_t zeroPoint, Range range, Type element) {
  if (!sums)
    return sums;
  if (Emitter::elementType(sums).isInteger(64))
    return finish(e, multiplyWide(e, sums, factors, axis), zeroPoint, range, element);
  SmallVector<double> reals = llvm::map_to_vector(factors, realOf);
  if (!isFast(e, element)) {
    // The high product is rounded before the shift: with r bits to shift, halves are those of a number 2^-(r + 1) further from 0. Rounded
    // once, upwards, (x m + 2^30 + 2^(r + 30)) >> (r + 31) is the same for x >= 0, and with 2^31 less for x < 0.
    SmallVector<double> ties = llvm::map_to_vector(factors, [](const Multiplier &m) { return m.shift < 0 ? std::ldexp(1.0, m.shift - 1) : 0.0; });
    auto ops = [&] {
      Value exact = multiplyByEach(e, sums, factors, axis);
      return exact && zeroPoint ? e.add(exact, constantLike(e, zeroPoint, exact)) : exact;
    };
    if (llvm::any_of(factors, [](const Multiplier &m) { return m.shift > 0; }))
      return finish(e, ops(), 0, range, element);
    auto of = [&](size_t i, int32_t x) { return multiplied(x, factors[i]) + zeroPoint; };
    return finish(e, roundInFloat(e, sums, {of, ops, ties}, reals, axis, zeroPoint, range, element), 0, range, element);
  }
  Value real = toReal(e, sums), by = floatsAlong(e, reals, axis, real);
  return by ? finishReal(e, e.mul(real, by), *llvm::max_element(reals) * double(int64_t(1) << 31), zeroPoint, range, element) : by;
}

Value finish(Emitter &e, Value x, int64_t zeroPoint, Range range, Type element) {
  if (!x)
    return x;
  if (zeroPoint)
    x = e.add(x, constantLike(e, zeroPoint, x));
  x = e.min(e.max(x, constantLike(e, range.first, x)), constantLike(e, range.second, x));
  return e.convert(x, element);
}

Value widen(Emitter &e, Value x, int64_t plus, Type type) {
  if (!x)
    return x;
  x = e.convert(x, type ? type : Type(e.b.getI32Type()));
  return plus ? e.add(x, constantLike(e, plus, x)) : x;
}

Value lookUp(Emitter &e, Value x, ArrayRef<int64_t> table, Type element) {
  if (!x)
    return x;
  Tensor values = Tensor::allocate(element.isUnsignedInteger() ? DType::UInt8 : element.isInteger(16) ? DType::Int16 : DType::Int8,
                                   {int64_t(table.size())});
  // The index is the byte itself, without sign: what looks up bytes by bytes is fast, and the negative half comes last.
  const bool isUnsigned = Emitter::isUnsigned(x);
  for (auto [i, v] : llvm::enumerate(table)) {
    const size_t at = isUnsigned ? i : i ^ 128;
    if (element.isInteger(16))
      values.data<int16_t>()[at] = int16_t(v);
    else
      values.data<uint8_t>()[at] = uint8_t(v);
  }
  Type byte = IntegerType::get(e.b.getContext(), 8, IntegerType::Unsigned);
  Value index = isUnsigned ? x : e.make<hlo::BitcastConvertOp>(x, byte);
  auto numbers = hlo::GatherDimensionNumbersAttr::get(e.b.getContext(), {}, {0}, {}, {}, {0}, Emitter::rank(index));
  return e.make<hlo::GatherOp>(e.constant(values), index, numbers, ArrayRef<int64_t>{1}, false);
}

/// `exact`, the sum plus the zero point, or that in f32; `step` is what 1 of the sum in integers makes in the output.
static Value sumInFloat(Emitter &e, Value exact, Value x, Params xp, Value y, Params yp, Params out, Range range, double step,
                        bool subtract, Type element) {
  const double ofX = double(xp.scale) / out.scale, ofY = (subtract ? -1 : 1) * double(yp.scale) / out.scale;
  const double add = double(out.zeroPoint) - ofX * double(xp.zeroPoint) - ofY * double(yp.zeroPoint);
  // Both sides and their sum are each rounded twice, by half a unit or a little more. In f32 factors, products, what is added and two
  // sums are.
  const double most = magnitudes(out.zeroPoint, range).first, sides = 256 * (ofX + std::abs(ofY));
  const double error = 4 * step + roundingOfFloat * (3 * sides + 2 * (std::abs(add) + 1) + most);
  if (!exact || !element.isInteger(8) || !(error < 1.0 / (1 << 11)))
    return exact;
  Value u = toReal(e, widen(e, x, 0)), v = toReal(e, widen(e, y, 0));
  return orRounded(e, exact, multiplyAdd(e, u, e.like(u, ofX), multiplyAdd(e, v, e.like(v, ofY), e.like(v, add + error))), error);
}

Value sum(Emitter &e, Value x, Params xp, Value y, Params yp, Params out, Range range, int left, bool subtract, Type element) {
  const double twice = 2 * std::max(xp.scale, yp.scale);
  const double output = twice / ((1 << left) * out.scale);
  if (x && y && isFast(e, element)) {
    const double ofX = double(xp.scale) / out.scale, ofY = (subtract ? -1 : 1) * double(yp.scale) / out.scale;
    Value u = toReal(e, widen(e, x, 0)), v = toReal(e, widen(e, y, 0));
    // both zero points in one number
    Value moved = e.add(e.mul(v, e.like(v, ofY)), e.like(v, -(ofX * double(xp.zeroPoint) + ofY * double(yp.zeroPoint))));
    const double most = 512 * (ofX + std::abs(ofY));
    return finishReal(e, e.add(e.mul(u, e.like(u, ofX)), moved), most, out.zeroPoint, range, element);
  }
  const Multiplier last = multiplierOf(output);
  auto side = [&](Value v, Params in) {
    Value wide = widen(e, v, -in.zeroPoint);
    return multiplyBy(e, e.binary<hlo::ShiftLeftOp>(wide, e.likeInt(wide, left)), multiplierOf(in.scale / twice));
  };
  Value u = side(x, xp), v = side(y, yp);
  Value exact = multiplyBy(e, subtract ? e.sub(u, v) : e.add(u, v), last);
  exact = exact && out.zeroPoint ? e.add(exact, constantLike(e, out.zeroPoint, exact)) : exact;
  return finish(e, sumInFloat(e, exact, x, xp, y, yp, out, range, realOf(last), subtract, element), 0, range, element);
}

Value product(Emitter &e, Value x, Params xp, Value y, Params yp, Params out, Range range, Type element) {
  Value all = e.mul(widen(e, x, -xp.zeroPoint), widen(e, y, -yp.zeroPoint));
  const float factor = xp.scale * yp.scale / out.scale;
  return requantize(e, all, multiplierOf(factor), 0, out.zeroPoint, range, element);
}

Value rescale(Emitter &e, Value x, Params in, Params out, Range range, Type element) {
  return requantize(e, widen(e, x, -in.zeroPoint), multiplierOf(double(in.scale) / double(out.scale)), 0, out.zeroPoint, range, element);
}

Value mean(Emitter &e, Value sums, int64_t count, Params in, Params out, Range range, Type element) {
  Multiplier factor = multiplierOf(double(in.scale) / double(out.scale));
  // The division is part of the factor, as far as 32 bits have room to the left.
  int shift = 63 - llvm::countl_zero(uint64_t(count));
  shift = std::min({shift, 32, 31 + factor.shift});
  factor.value = int32_t((int64_t(factor.value) << shift) / count);
  factor.shift -= shift;
  Value centered = e.sub(sums, e.likeInt(sums, in.zeroPoint * count));
  return requantize(e, centered, factor, 0, out.zeroPoint, range, element);
}

Value average(Emitter &e, Value sums, Value counts, int64_t most, Range range, Type element) {
  if (!sums || !counts)
    return {};
  // Half of a count and half of one more, so that the nearest whole number is no closer than half of a count's part of one. In f32 the
  // factor, the product, what is added and the sum are rounded: where that is less, cutting off gives the same.
  const double largest = std::ldexp(1.0, int(element.getIntOrFloatBitWidth()));
  if (double(most) * (3 * largest + 2) < 0.5 / roundingOfFloat) {
    Value n = toReal(e, counts), share = e.div(e.like(n, 1), n);
    Value more = e.mul(e.add(toReal(e, e.div(counts, e.likeInt(counts, 2))), e.like(n, 0.5)), share), x = toReal(e, sums);
    Value near = e.select(e.compare(legalize::Compare::GT, sums, e.likeInt(sums, 0)), more, e.neg(more));
    return finish(e, convertInRange(e, e.add(e.mul(x, share), near)), 0, range, element);
  }
  Value half = e.div(counts, e.likeInt(counts, 2));
  Value signedHalf = e.select(e.compare(legalize::Compare::GT, sums, e.likeInt(sums, 0)), half, e.neg(half));
  return finish(e, e.div(e.add(sums, signedHalf), counts), 0, range, element);
}

Value softmax8(Emitter &e, Value x, float scale, float beta, Params out, Range range, Type element) {
  const int64_t last = Emitter::rank(x) - 1;
  Type f32 = e.b.getF32Type(), i32 = e.b.getI32Type(), f64 = e.b.getF64Type();
  Tensor table = Tensor::allocate(DType::Float32, {256});
  const float step = -scale * beta;
  for (int v = 0; v < 256; ++v)
    table.data<float>()[v] = std::exp(step * float(v));
  Value wide = e.convert(x, i32);
  Value distance = e.sub(e.keepDims(e.reduceMax(wide, {last}), {last}, last + 1), wide);
  auto numbers = hlo::GatherDimensionNumbersAttr::get(e.b.getContext(), {}, {0}, {}, {}, {0}, last + 1);
  Value power = e.make<hlo::GatherOp>(e.constant(table), distance, numbers, ArrayRef<int64_t>{1}, false);
  Value sum = e.keepDims(e.convert(e.reduceSum(e.convert(power, f64), {last}), f32), {last}, last + 1);
  Value inverse = e.div(e.like(sum, 1), e.mul(sum, e.like(sum, out.scale)));
  Value scaled = e.mul(power, inverse);
  const bool isUnsigned = element.isUnsignedInteger();
  Value rounded = isUnsigned ? e.unary<hlo::FloorOp>(e.add(scaled, e.like(scaled, 0.5))) : e.unary<hlo::RoundOp>(scaled);
  return finish(e, e.convert(rounded, i32), isUnsigned ? 0 : out.zeroPoint, range, element);
}

} // namespace lathe::quantize
