// Distances to the largest of a row index tables of what they are in fixed point and of their exponentials; the logarithm of the sum is taken
// of each row, by a quotient of polynomials.
#include "compiler/frontend/tflite/LogSoftmax.h"
#include "compiler/frontend/tflite/FixedPoint.h"
#include "compiler/frontend/tflite/Requantize.h"
#include "compiler/frontend/tflite/Tables.h"

#include <cmath>

using namespace mlir;

namespace lathe::tflite {
namespace {

// Numbers of 32 bits in the compiler: 5 bits before the point for distances, 12 for sums.
constexpr int kDistanceBits = 5, kSumBits = 12;

int64_t times(int64_t x, int64_t y) { return (x * y + (int64_t(1) << 30)) >> 31; }
int64_t roundedShift(int64_t x, int bits) { return bits <= 0 ? x : (x + (int64_t(1) << (bits - 1)) - (x < 0)) >> bits; }

/// exp of a distance (not positive), without bits before the point.
int64_t expOf(int64_t a) {
  constexpr int fraction = 31 - kDistanceBits;
  constexpr int64_t quarter = int64_t(1) << (fraction - 2), expEighth = 1895147668, third = 715827883;
  constexpr int64_t factors[] = {1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242};
  if (a == 0)
    return INT32_MAX;
  const int64_t part = (a & (quarter - 1)) - quarter;
  const int64_t x = (part << kDistanceBits) + (1 << 28), x2 = times(x, x), x3 = times(x2, x), x4 = times(x2, x2);
  const int64_t tail = roundedShift(times(roundedShift(x4, 2) + x3, third) + x2, 1);
  int64_t result = expEighth + times(expEighth, x + tail);
  for (int k = -2; k < kDistanceBits; ++k)
    if ((part - a) & (int64_t(1) << (fraction + k)))
      result = times(result, factors[k + 2]);
  return result;
}

int64_t scaled(int64_t x, Multiplier m) {
  const int64_t left = m.shift > 0 ? x << m.shift : x;
  return roundedShift(times(left, m.value), -m.shift);
}

/// The natural logarithm of a sum that is 1 or more, with the bits of a distance; of i64.
Value logOf(OpContext &c, Value sum) {
  constexpr int bits = 6; // before the point, one more than the result has
  constexpr int64_t quarter = int64_t(1) << (29 - bits), ln2 = 1488522236, rootHalf = 1518500250, fourthRoot = 1805811301;
  constexpr int64_t alphaN = 117049297, alphaD = 127690142, alphaI = 1057819769, alphaF = 638450708;
  Type i64 = c.b.getI64Type();
  auto constant = [&](Value v, int64_t n) { return c.likeInt(v, n); };
  auto product = [&](Value x, Value y) { return highProduct32(c, x, y); };
  auto zerosOf = [&](Value v) { return c.convert(c.unary<hlo::ClzOp>(c.convert(v, c.b.getI32Type())), i64); };
  auto moved = [&](Value v, Value by) { return c.min(c.binary<hlo::ShiftLeftOp>(v, by), constant(v, INT32_MAX)); };
  auto power = [&](Value headroom, int64_t off) {
    Value p = c.sub(constant(headroom, kSumBits), headroom);
    return c.add(saturatedShift32(c, p, 31 - bits), constant(p, off));
  };
  // as r in [1/2, 1) times a power of two, twice: itself and times the root of 1/2; the larger power has the better rest
  Value zeros = zerosOf(sum), scaledSum = product(sum, constant(sum, rootHalf));
  Value rA = saturatedShift32(c, product(moved(sum, c.sub(zeros, constant(zeros, 1))), constant(sum, rootHalf)), 1);
  Value room = c.sub(zerosOf(scaledSum), constant(zeros, 1)), rB = moved(sum, room);
  Value exponent = c.max(power(zeros, quarter), power(room, -quarter));
  Value r = c.min(rA, rB);
  Value p = c.binary<hlo::ShiftRightArithmeticOp>(c.add(r, constant(r, fourthRoot + 1)), constant(r, 1));
  Value q = c.sub(r, constant(r, fourthRoot));
  q = c.add(q, q);
  Value square = product(q, q);
  Value numerator = c.add(product(q, r), product(product(q, square), constant(q, alphaN)));
  Value inner = c.add(c.add(constant(q, alphaI), q), product(constant(q, alphaD), square));
  Value denominator = c.add(product(p, inner), product(constant(q, alphaF), q));
  Value rest = product(roundingShift(c, numerator, bits), overOnePlus32(c, denominator));
  return saturatedShift32(c, c.add(product(exponent, constant(exponent, ln2)), rest), 1);
}

} // namespace

LogicalResult quantizedLogSoftmax(OpContext &c) {
  auto in = c.perTensor(c.inputInfo(0)), out = c.perTensor(c.outputInfo(0));
  Value x = c.input(0);
  if (failed(in) || failed(out) || !x)
    return failure();
  auto range = rangeOf(c.outputInfo(0).type);
  if (Emitter::rank(x) < 1 || out->first != 16.0f / 256 || out->second != range.second)
    return c.error("expected an input of rank 1 or more and an output of scale 1/16 below " + Twine(range.second));
  const Multiplier factor = multiplierOf(std::min(in->first * double(int64_t(1) << (31 - kDistanceBits)), double(INT32_MAX)));
  if (factor.shift < 0 || factor.shift > 31)
    return c.error("the scale of its input is out of range");
  const int64_t limit = -int64_t(std::floor(((1 << kDistanceBits) - 1) * double(int64_t(1) << (31 - kDistanceBits)) / double(int64_t(1) << factor.shift)));
  const Multiplier back = multiplierOf(double(int64_t(1) << (31 - factor.shift)) / factor.value);
  SmallVector<int64_t> distances, exponentials;
  for (int64_t d = -255; d <= 0; ++d) {
    const bool counts = d >= limit; // others are too far away to be numbers
    distances.push_back(counts ? scaled(d, factor) : 0);
    exponentials.push_back(counts ? roundedShift(expOf(distances.back()), kSumBits) : 0);
  }
  const int64_t last = Emitter::rank(x) - 1;
  Type i32 = c.b.getI32Type(), i64 = c.b.getI64Type();
  Value wide = c.convert(x, i32);
  Value distance = c.sub(wide, c.keepDims(c.reduceMax(wide, {last}), {last}, last + 1));
  Value index = c.add(distance, c.likeInt(distance, 255));
  Value sum = c.keepDims(c.reduceSum(entries(c, exponentials, index), {last}), {last}, last + 1);
  Value log = logOf(c, c.convert(sum, i64));
  Value least = multiplyBy(c, c.convert(c.add(log, c.likeInt(log, INT32_MIN)), i32), back);
  least = c.max(least, c.likeInt(least, limit - 1));
  Value result = roundingShift(c, c.sub(c.convert(entries(c, distances, index), i64), log), 31 - kDistanceBits - 4);
  result = finish(c, result, out->second, range, i32);
  result = c.select(c.compare(Compare::GT, distance, c.broadcastTo(least, c.dims(distance))), result, c.likeInt(result, range.first));
  return c.setResult(0, c.convert(result, c.elementOf(c.outputInfo(0))));
}

} // namespace lathe::tflite
