#include "passes/quantize/Arithmetic.h"

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

Value roundingShift(Emitter &e, Value x, int exponent) {
  if (!x || exponent <= 0 || !Emitter::isInteger(x)) // what stands for a value after an error is no integer
    return x;
  // half is added, less one for negative numbers, whose sign bits are -1
  unsigned width = Emitter::elementType(x).getIntOrFloatBitWidth();
  Value sign = e.binary<hlo::ShiftRightArithmeticOp>(x, constantLike(e, width - 1, x));
  Value sum = e.add(e.add(x, constantLike(e, int64_t(1) << (exponent - 1), x)), sign);
  return e.binary<hlo::ShiftRightArithmeticOp>(sum, constantLike(e, exponent, x));
}

Value multiplyBy(Emitter &e, Value x, Multiplier factor) {
  if (!x)
    return x;
  Type i32 = e.b.getI32Type(), i64 = e.b.getI64Type();
  if (factor.shift > 0)
    x = e.binary<hlo::ShiftLeftOp>(x, constantLike(e, factor.shift, x));
  Value product = e.mul(e.convert(x, i64), e.splatInt(factor.value, e.dims(x), i64));
  // Division by 2^31 of the product and half of that, towards zero for both signs, is this shift.
  Value high = e.binary<hlo::ShiftRightArithmeticOp>(e.add(product, constantLike(e, int64_t(1) << 30, product)),
                                                     constantLike(e, 31, product));
  return e.convert(roundingShift(e, high, -factor.shift), i32);
}

Value multiplyByEach(Emitter &e, Value x, ArrayRef<Multiplier> factors, int64_t axis) {
  if (!x)
    return x;
  if (factors.size() == 1)
    return multiplyBy(e, x, factors[0]);
  Type i32 = e.b.getI32Type(), i64 = e.b.getI64Type();
  SmallVector<int64_t> value, left, right, half, sign;
  for (const Multiplier &m : factors) {
    value.push_back(m.value);
    left.push_back(std::max(m.shift, 0));
    right.push_back(std::max(-m.shift, 0));
    half.push_back(m.shift < 0 ? int64_t(1) << (-m.shift - 1) : 0);
    sign.push_back(m.shift < 0 ? -1 : 0);
  }
  auto any = [](ArrayRef<int64_t> v) { return llvm::any_of(v, [](int64_t n) { return n != 0; }); };
  if (any(left))
    x = e.binary<hlo::ShiftLeftOp>(x, e.convert(alongAxis(e, left, axis, x), i32));
  Value product = e.mul(e.convert(x, i64), alongAxis(e, value, axis, x));
  Value high = e.binary<hlo::ShiftRightArithmeticOp>(e.add(product, constantLike(e, int64_t(1) << 30, product)),
                                                     constantLike(e, 31, product));
  if (any(right)) {
    Value negative = e.binary<hlo::ShiftRightArithmeticOp>(high, constantLike(e, 63, high));
    if (llvm::is_contained(right, 0))
      negative = e.binary<hlo::AndOp>(negative, alongAxis(e, sign, axis, x));
    high = e.binary<hlo::ShiftRightArithmeticOp>(e.add(e.add(high, alongAxis(e, half, axis, x)), negative),
                                                 alongAxis(e, right, axis, x));
  }
  return e.convert(high, i32);
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
  for (auto [i, v] : llvm::enumerate(table))
    if (element.isInteger(16))
      values.data<int16_t>()[i] = int16_t(v);
    else
      values.data<uint8_t>()[i] = uint8_t(v);
  Value index = widen(e, x, Emitter::isUnsigned(x) ? 0 : 128);
  auto numbers = hlo::GatherDimensionNumbersAttr::get(e.b.getContext(), {}, {0}, {}, {}, {0}, Emitter::rank(index));
  return e.make<hlo::GatherOp>(e.constant(values), index, numbers, ArrayRef<int64_t>{1}, false);
}

Value sum(Emitter &e, Value x, Params xp, Value y, Params yp, Params out, Range range, int left, bool subtract, Type element) {
  const double twice = 2 * std::max(xp.scale, yp.scale);
  const double output = twice / ((1 << left) * out.scale);
  auto side = [&](Value v, Params in) {
    Value wide = widen(e, v, -in.zeroPoint);
    return multiplyBy(e, e.binary<hlo::ShiftLeftOp>(wide, e.likeInt(wide, left)), multiplierOf(in.scale / twice));
  };
  Value u = side(x, xp), v = side(y, yp);
  return finish(e, multiplyBy(e, subtract ? e.sub(u, v) : e.add(u, v), multiplierOf(output)), out.zeroPoint, range, element);
}

Value product(Emitter &e, Value x, Params xp, Value y, Params yp, Params out, Range range, Type element) {
  Value all = e.mul(widen(e, x, -xp.zeroPoint), widen(e, y, -yp.zeroPoint));
  const float factor = xp.scale * yp.scale / out.scale;
  return finish(e, multiplyBy(e, all, multiplierOf(factor)), out.zeroPoint, range, element);
}

Value rescale(Emitter &e, Value x, Params in, Params out, Range range, Type element) {
  Value scaled = multiplyBy(e, widen(e, x, -in.zeroPoint), multiplierOf(double(in.scale) / double(out.scale)));
  return finish(e, scaled, out.zeroPoint, range, element);
}

Value mean(Emitter &e, Value sums, int64_t count, Params in, Params out, Range range, Type element) {
  Multiplier factor = multiplierOf(double(in.scale) / double(out.scale));
  // The division is part of the factor, as far as 32 bits have room to the left.
  int shift = 63 - llvm::countl_zero(uint64_t(count));
  shift = std::min({shift, 32, 31 + factor.shift});
  factor.value = int32_t((int64_t(factor.value) << shift) / count);
  factor.shift -= shift;
  Value centered = e.sub(sums, e.likeInt(sums, in.zeroPoint * count));
  return finish(e, multiplyBy(e, centered, factor), out.zeroPoint, range, element);
}

Value average(Emitter &e, Value sums, Value counts, Range range, Type element) {
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
