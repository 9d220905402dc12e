#include "compiler/frontend/tflite/Requantize.h"

#include <cmath>

using namespace mlir;

namespace lathe::tflite {

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

static Value constantLike(OpContext &c, int64_t value, Value v) { return c.likeInt(v, value); }

/// Numbers along one axis, broadcast to the shape of `like`.
static Value alongAxis(OpContext &c, ArrayRef<int64_t> values, int64_t axis, Value like) {
  return c.broadcastInDim(c.constantInts(values, c.b.getI64Type()), c.dims(like), {axis});
}

Value roundingShift(OpContext &c, Value x, int exponent) {
  if (!x || exponent <= 0 || !Emitter::isInteger(x)) // what stands for a value after an error is no integer
    return x;
  // half is added, less one for negative numbers, whose sign bits are -1
  unsigned width = Emitter::elementType(x).getIntOrFloatBitWidth();
  Value sign = c.binary<hlo::ShiftRightArithmeticOp>(x, constantLike(c, width - 1, x));
  Value sum = c.add(c.add(x, constantLike(c, int64_t(1) << (exponent - 1), x)), sign);
  return c.binary<hlo::ShiftRightArithmeticOp>(sum, constantLike(c, exponent, x));
}

Value multiplyBy(OpContext &c, Value x, Multiplier factor) {
  if (!x)
    return x;
  Type i32 = c.b.getI32Type(), i64 = c.b.getI64Type();
  if (factor.shift > 0)
    x = c.binary<hlo::ShiftLeftOp>(x, constantLike(c, factor.shift, x));
  Value product = c.mul(c.convert(x, i64), c.splatInt(factor.value, c.dims(x), i64));
  // Division by 2^31 of the product and half of that, towards zero for both signs, is this shift.
  Value high = c.binary<hlo::ShiftRightArithmeticOp>(c.add(product, constantLike(c, int64_t(1) << 30, product)),
                                                     constantLike(c, 31, product));
  return c.convert(roundingShift(c, high, -factor.shift), i32);
}

Value multiplyByEach(OpContext &c, Value x, ArrayRef<Multiplier> factors, int64_t axis) {
  if (!x)
    return x;
  if (factors.size() == 1)
    return multiplyBy(c, x, factors[0]);
  Type i32 = c.b.getI32Type(), i64 = c.b.getI64Type();
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
    x = c.binary<hlo::ShiftLeftOp>(x, c.convert(alongAxis(c, left, axis, x), i32));
  Value product = c.mul(c.convert(x, i64), alongAxis(c, value, axis, x));
  Value high = c.binary<hlo::ShiftRightArithmeticOp>(c.add(product, constantLike(c, int64_t(1) << 30, product)),
                                                     constantLike(c, 31, product));
  if (any(right)) {
    Value negative = c.binary<hlo::ShiftRightArithmeticOp>(high, constantLike(c, 63, high));
    if (llvm::is_contained(right, 0))
      negative = c.binary<hlo::AndOp>(negative, alongAxis(c, sign, axis, x));
    high = c.binary<hlo::ShiftRightArithmeticOp>(c.add(c.add(high, alongAxis(c, half, axis, x)), negative),
                                                 alongAxis(c, right, axis, x));
  }
  return c.convert(high, i32);
}

Value multiplyWide(OpContext &c, Value x, ArrayRef<Multiplier> factors, int64_t axis) {
  if (!x)
    return x;
  SmallVector<int64_t> value, half, shift;
  for (const Multiplier &m : factors) {
    if (m.shift > 14) {
      (void)c.error("the scale of its result is too small for those of its inputs");
      return {};
    }
    value.push_back(m.value < 0x7FFF0000 ? (m.value + (1 << 15)) >> 16 : 0x7FFF);
    shift.push_back(15 - m.shift);
    half.push_back(int64_t(1) << (14 - m.shift));
  }
  auto spread = [&](ArrayRef<int64_t> v) {
    return factors.size() == 1 ? constantLike(c, v[0], x) : alongAxis(c, v, axis, x);
  };
  Value sum = c.add(c.mul(x, spread(value)), spread(half));
  return c.convert(c.binary<hlo::ShiftRightArithmeticOp>(sum, spread(shift)), c.b.getI32Type());
}

std::pair<int64_t, int64_t> rangeOf(tfl::TensorType type) {
  switch (type) {
  case tfl::TensorType::UINT8: return {0, 255};
  case tfl::TensorType::INT16: return {-32768, 32767};
  case tfl::TensorType::INT32: return {INT32_MIN, INT32_MAX};
  default: return {-128, 127};
  }
}

FailureOr<std::pair<int64_t, int64_t>> activationRange(OpContext &c, const TensorInfo &output, Activation activation) {
  auto range = rangeOf(output.type);
  if (activation == Activation::NONE)
    return range;
  auto q = c.perTensor(output);
  if (failed(q))
    return failure();
  // rounding in float, as the reference kernels do
  auto quantize = [&](float x) { return q->second + int64_t(std::round(x / q->first)); };
  switch (activation) {
  case Activation::RELU: range.first = std::max(range.first, quantize(0)); return range;
  case Activation::RELU6:
    return std::make_pair(std::max(range.first, quantize(0)), std::min(range.second, quantize(6)));
  case Activation::RELU_N1_TO_1:
    return std::make_pair(std::max(range.first, quantize(-1)), std::min(range.second, quantize(1)));
  default: return c.error("fused activation " + Twine(int(activation)) + " is not supported for quantized types");
  }
}

Value finish(OpContext &c, Value x, int64_t zeroPoint, std::pair<int64_t, int64_t> range, Type element) {
  if (!x)
    return x;
  if (zeroPoint)
    x = c.add(x, constantLike(c, zeroPoint, x));
  x = c.min(c.max(x, constantLike(c, range.first, x)), constantLike(c, range.second, x));
  return c.convert(x, element);
}

Value widen(OpContext &c, Value x, int64_t plus, Type type) {
  if (!x)
    return x;
  x = c.convert(x, type ? type : Type(c.b.getI32Type()));
  return plus ? c.add(x, constantLike(c, plus, x)) : x;
}

Value lookUp(OpContext &c, Value x, ArrayRef<int64_t> table, Type element) {
  if (!x)
    return x;
  Tensor values = Tensor::allocate(element.isUnsignedInteger() ? DType::UInt8 : element.isInteger(16) ? DType::Int16 : DType::Int8,
                                   {int64_t(table.size())});
  for (auto [i, v] : llvm::enumerate(table))
    if (element.isInteger(16))
      values.data<int16_t>()[i] = int16_t(v);
    else
      values.data<uint8_t>()[i] = uint8_t(v);
  Value index = widen(c, x, Emitter::isUnsigned(x) ? 0 : 128);
  auto numbers = hlo::GatherDimensionNumbersAttr::get(c.b.getContext(), {}, {0}, {}, {}, {0}, Emitter::rank(index));
  return c.make<hlo::GatherOp>(c.constant(values), index, numbers, ArrayRef<int64_t>{1}, false);
}

FailureOr<SmallVector<int64_t>> tableOf(OpContext &c, llvm::function_ref<float(float)> function) {
  auto in = c.perTensor(c.inputInfo(0)), out = c.perTensor(c.outputInfo(0));
  if (failed(in) || failed(out))
    return failure();
  auto range = rangeOf(c.inputInfo(0).type), to = rangeOf(c.outputInfo(0).type);
  const float inverse = 1 / out->first;
  SmallVector<int64_t> table;
  for (int64_t v = range.first; v <= range.second; ++v) {
    const float real = in->first * float(v - in->second);
    const float rounded = std::round(function(real) * inverse);
    table.push_back(std::clamp<int64_t>(int64_t(rounded + float(out->second)), to.first, to.second));
  }
  return table;
}

} // namespace lathe::tflite
