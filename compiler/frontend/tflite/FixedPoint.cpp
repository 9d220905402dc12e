// Exponentials by a polynomial on [-1/4, 0) and a product for each further bit, quotients and roots by Newton's steps.
#include "compiler/frontend/tflite/FixedPoint.h"
#include "compiler/frontend/tflite/Requantize.h"

using namespace mlir;

namespace lathe::tflite {

static Value shiftRight(OpContext &c, Value x, int64_t bits) {
  return c.binary<hlo::ShiftRightArithmeticOp>(x, c.likeInt(x, bits));
}
static Value shiftLeft(OpContext &c, Value x, int64_t bits) { return c.binary<hlo::ShiftLeftOp>(x, c.likeInt(x, bits)); }
static Value clamp(OpContext &c, Value x, int64_t low, int64_t high) {
  return c.min(c.max(x, c.likeInt(x, low)), c.likeInt(x, high));
}

Value saturate16(OpContext &c, Value x) { return clamp(c, x, -32768, 32767); }

Value highProduct16(OpContext &c, Value x, Value y) {
  Value product = c.mul(x, y);
  Value high = shiftRight(c, c.add(product, c.likeInt(product, 1 << 14)), 15);
  return c.min(high, c.likeInt(high, 32767));
}

//===----------------------------------------------------------------------===//
// 16 bits
//===----------------------------------------------------------------------===//

namespace {

/// A constant of 31 bits behind the sign in 15.
int64_t to16(int64_t value) { return (value + (1 << 15)) >> 16; }

Value times(OpContext &c, Value x, int64_t constant31) { return highProduct16(c, x, c.likeInt(x, to16(constant31))); }

/// exp of a number in [-1/4, 0) without integer bits: four terms around -1/8.
Value expOfQuarter(OpContext &c, Value a) {
  constexpr int64_t kExpEighth = 1895147668, kThird = 715827883;
  Value x = c.add(a, c.likeInt(a, 1 << 12));
  Value x2 = highProduct16(c, x, x), x3 = highProduct16(c, x2, x), x4 = highProduct16(c, x2, x2);
  Value sum = c.add(times(c, c.add(roundingShift(c, x4, 2), x3), kThird), x2);
  Value tail = times(c, c.add(x, roundingShift(c, sum, 1)), kExpEighth);
  return saturate16(c, c.add(tail, c.likeInt(tail, to16(kExpEighth))));
}

/// exp of a number that is not positive, without integer bits.
Value expOfNegative(OpContext &c, Value a, int bits) {
  // exp(-2^k) for k from -2
  constexpr int64_t kFactors[] = {1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242};
  const int fraction = 15 - bits;
  const int64_t quarter = int64_t(1) << (fraction - 2);
  Value part = c.binary<hlo::AndOp>(a, c.likeInt(a, quarter - 1));
  part = c.sub(part, c.likeInt(part, quarter));
  Value result = expOfQuarter(c, shiftLeft(c, part, bits)), rest = c.sub(part, a);
  for (int k = -2; k <= 4 && k < bits; ++k) {
    Value bit = c.binary<hlo::AndOp>(rest, c.likeInt(rest, int64_t(1) << (fraction + k)));
    result = c.select(c.compare(Compare::NE, bit, c.likeInt(bit, 0)), times(c, result, kFactors[k + 2]), result);
  }
  if (bits > 5) // below -32
    result = c.select(c.compare(Compare::LT, a, c.likeInt(a, -(int64_t(1) << (20 - bits)))), c.likeInt(result, 0), result);
  return c.select(c.compare(Compare::EQ, a, c.likeInt(a, 0)), c.likeInt(result, 32767), result);
}

/// 2 / (1 + x) of a number in [0, 1] without integer bits, as one with two.
Value twoOverOnePlus(OpContext &c, Value x) {
  constexpr int64_t k48Over17 = 1515870810, kMinus32Over17 = -1010580540;
  // (x + 1) / 2, rounded up
  Value half = shiftRight(c, c.add(x, c.likeInt(x, 32767 + 1)), 1);
  Value y = times(c, half, kMinus32Over17);
  y = c.add(y, c.likeInt(y, to16(k48Over17)));
  for (int step = 0; step < 3; ++step) {
    Value off = c.sub(c.likeInt(y, 1 << 13), highProduct16(c, half, y));
    y = c.add(y, saturate16(c, shiftLeft(c, highProduct16(c, y, off), 2)));
  }
  return y;
}

} // namespace

Value fixedLogistic(OpContext &c, Value x) {
  Value zero = c.likeInt(x, 0), negative = c.neg(c.unary<hlo::AbsOp>(x));
  Value of = saturate16(c, shiftLeft(c, twoOverOnePlus(c, expOfNegative(c, negative, 3)), 1));
  Value other = c.sub(c.likeInt(of, 32767), of);
  Value result = c.select(c.compare(Compare::GT, x, zero), of, other);
  return c.select(c.compare(Compare::EQ, x, zero), c.likeInt(x, 1 << 14), result);
}

Value fixedTanh(OpContext &c, Value x, int integerBits) {
  Value zero = c.likeInt(x, 0), negative = c.neg(c.unary<hlo::AbsOp>(x));
  Value y = twoOverOnePlus(c, expOfNegative(c, negative, integerBits + 1));
  Value of = saturate16(c, shiftLeft(c, c.sub(y, c.likeInt(y, 1 << 13)), 2));
  Value result = c.select(c.compare(Compare::LT, x, zero), c.neg(of), of);
  return c.select(c.compare(Compare::EQ, x, zero), zero, result);
}

//===----------------------------------------------------------------------===//
// 32 bits
//===----------------------------------------------------------------------===//

Value highProduct32(OpContext &c, Value x, Value y) {
  Value product = c.mul(x, y);
  return shiftRight(c, c.add(product, c.likeInt(product, int64_t(1) << 30)), 31);
}

Value saturatedShift32(OpContext &c, Value x, int bits) { return clamp(c, shiftLeft(c, x, bits), INT32_MIN, INT32_MAX); }

Factors inverseSqrt(OpContext &c, Value x) {
  Type i32 = c.b.getI32Type(), i64 = c.b.getI64Type();
  Value isOne = c.compare(Compare::LE, x, c.likeInt(x, 1));
  x = c.max(x, c.likeInt(x, 1));
  Value isLarge = c.compare(Compare::GE, x, c.likeInt(x, 1 << 29));
  x = c.select(isLarge, shiftRight(c, x, 2), x);
  // shifted by pairs of bits to use what room there is
  Value zeros = c.unary<hlo::ClzOp>(x);
  Value pairs = c.sub(shiftRight(c, c.sub(zeros, c.likeInt(zeros, 1)), 1), c.likeInt(zeros, 1));
  Value shift = c.sub(c.add(c.convert(isLarge, i32), c.likeInt(x, 11)), pairs);
  x = c.binary<hlo::ShiftLeftOp>(x, shiftLeft(c, pairs, 1));
  // numbers with 3 integer bits of 31
  auto times31 = [&](Value a, Value b) { return highProduct32(c, a, b); };
  auto saturated = [&](Value a, int bits) { return saturatedShift32(c, a, bits); };
  Value half = roundingShift(c, c.convert(shiftRight(c, x, 1), i64), 1);
  Value y = c.splatInt(1 << 28, c.dims(x), i64), threeHalves = c.likeInt(y, (1 << 28) + (1 << 27));
  for (int step = 0; step < 5; ++step) {
    Value cube = saturated(times31(times31(y, y), y), 6);
    y = saturated(c.sub(times31(threeHalves, y), times31(half, cube)), 3);
  }
  y = times31(y, c.likeInt(y, 1518500250)); // sqrt(2) / 2
  Value left = c.max(c.neg(shift), c.likeInt(shift, 0));
  Value value = c.binary<hlo::ShiftLeftOp>(c.convert(y, i32), left);
  shift = c.max(shift, c.likeInt(shift, 0));
  return {c.select(isOne, c.likeInt(value, INT32_MAX), value), c.select(isOne, c.likeInt(shift, 0), shift)};
}

Value overOnePlus32(OpContext &c, Value x) {
  Value half = shiftRight(c, c.add(x, c.likeInt(x, int64_t(1) << 31)), 1);
  Value y = c.add(highProduct32(c, half, c.likeInt(half, -1010580540)), c.likeInt(half, 1515870810)); // -32/17, 48/17
  for (int step = 0; step < 3; ++step) {
    Value off = c.sub(c.likeInt(y, 1 << 29), highProduct32(c, half, y));
    y = c.add(y, saturatedShift32(c, highProduct32(c, y, off), 2));
  }
  return saturatedShift32(c, y, 1);
}

Factors reciprocal(OpContext &c, Value x) {
  Type i64 = c.b.getI64Type();
  Value zeros = c.unary<hlo::ClzOp>(x);
  // x as 1 + z over a power of two, z in [0, 1) with 31 bits
  Value z = c.sub(c.binary<hlo::ShiftLeftOp>(c.convert(x, i64), c.convert(zeros, i64)), c.splatInt(int64_t(1) << 31, c.dims(x), i64));
  return {c.convert(overOnePlus32(c, z), c.b.getI32Type()), c.sub(c.likeInt(zeros, 31), zeros)};
}

Value multiplyBy(OpContext &c, Value x, const Factors &factors) {
  Type i64 = c.b.getI64Type();
  Value zero = c.likeInt(factors.shift, 0);
  x = c.binary<hlo::ShiftLeftOp>(x, c.broadcastTo(c.max(c.neg(factors.shift), zero), c.dims(x)));
  Value product = c.mul(c.convert(x, i64), c.convert(factors.value, i64));
  Value high = shiftRight(c, c.add(product, c.likeInt(product, int64_t(1) << 30)), 31);
  Value by = c.convert(c.min(c.max(factors.shift, zero), c.likeInt(zero, 62)), i64), none = c.likeInt(by, 0);
  Value less = c.max(c.sub(by, c.likeInt(by, 1)), none), isShifted = c.compare(Compare::GT, by, none);
  Value half = c.select(isShifted, c.binary<hlo::ShiftLeftOp>(c.likeInt(by, 1), less), none);
  // half is added, less one for negative numbers
  Value sign = c.mul(shiftRight(c, high, 63), c.convert(isShifted, i64));
  Value sum = c.add(c.add(high, half), sign);
  return c.convert(c.binary<hlo::ShiftRightArithmeticOp>(sum, c.broadcastTo(by, c.dims(sum))), c.b.getI32Type());
}

} // namespace lathe::tflite
