// Operators of one input, element by element: functions, activations, conversions.
#include "compiler/frontend/tflite/FixedPoint.h"
#include "compiler/frontend/tflite/OpTable.h"
#include "compiler/frontend/tflite/Requantize.h"
#include "compiler/frontend/tflite/Roots.h"
#include "compiler/frontend/tflite/Tables.h"

#include <cmath>

using namespace mlir;

namespace lathe::tflite {
namespace {

using Op = tfl::BuiltinOperator;
using Make = std::function<Value(OpContext &, Value)>;
using Real = std::function<float(OpContext &, float)>;

template <typename HloOp>
Value simple(OpContext &c, Value x) {
  return c.unary<HloOp>(x);
}

/// A function on floats, and on 8-bit quantized numbers by a table.
void addFunction(OpTable &t, Op op, int version, unsigned types, Make make, Real real = nullptr) {
  t.add(op, 1, 1, version, types, [make, real](OpContext &c) -> LogicalResult {
    Value x = c.input(0);
    if (!x)
      return failure();
    if (!c.isQuantized(0))
      return c.setResult(0, make(c, x));
    if (!real)
      return c.typeError(0);
    if (c.inputInfo(0).type == tfl::TensorType::INT16) {
      auto table = tableOf16(c, [&](float v) { return real(c, v); });
      return failed(table) ? failure() : c.setResult(0, c.convert(lookUp16(c, widen(c, x, 0), *table), c.elementOf(c.outputInfo(0))));
    }
    auto table = tableOf(c, [&](float v) { return real(c, v); });
    if (failed(table))
      return failure();
    return c.setResult(0, lookUp(c, x, *table, c.elementOf(c.outputInfo(0))));
  });
}

/// Below 0 it is the lowest number of the output.
float realLog(OpContext &c, float x) {
  if (x > 0.0f)
    return std::log(x);
  const Quantization &q = c.outputInfo(0).quantization;
  return float(rangeOf(c.outputInfo(0).type).first - q.zeroPoints[0]) * q.scales[0];
}

Value gelu(OpContext &c, Value x) {
  Value half = c.mul(x, c.like(x, 0.5));
  if (c.options<tfl::GeluOptions>().approximate()) {
    Value cube = c.mul(c.mul(x, x), x);
    Value inner = c.mul(c.like(x, std::sqrt(2 / M_PI)), c.add(x, c.mul(cube, c.like(x, 0.044715))));
    return c.mul(half, c.add(c.like(x, 1), c.unary<hlo::TanhOp>(inner)));
  }
  return c.mul(half, c.add(c.like(x, 1), c.unary<hlo::ErfOp>(c.mul(x, c.like(x, M_SQRT1_2)))));
}

float realGelu(OpContext &c, float x) {
  if (c.options<tfl::GeluOptions>().approximate())
    return 0.5f * x * (1.0f + std::tanh(static_cast<float>(M_2_SQRTPI * M_SQRT1_2) * (x + 0.044715f * x * x * x)));
  return 0.5f * x * std::erfc(x * static_cast<float>(-M_SQRT1_2));
}

Value hardSwish(OpContext &c, Value x) {
  Value six = c.min(c.max(c.add(x, c.like(x, 3)), c.like(x, 0)), c.like(x, 6));
  return c.div(c.mul(x, six), c.like(x, 6));
}

//===----------------------------------------------------------------------===//
// Quantized activations
//===----------------------------------------------------------------------===//

/// ReLU and its like between real bounds.
LogicalResult quantizedRelu(OpContext &c, float low, float high) {
  Value x = c.input(0);
  auto in = c.perTensor(c.inputInfo(0)), out = c.perTensor(c.outputInfo(0));
  if (!x || failed(in) || failed(out))
    return failure();
  auto range = rangeOf(c.outputInfo(0).type);
  range.first = std::max(range.first, out->second + int64_t(std::round(low / out->first)));
  if (std::isfinite(high))
    range.second = std::min(range.second, out->second + int64_t(std::round(high / out->first)));
  const Multiplier factor = multiplierOf(in->first / out->first);
  return c.setResult(0, requantize(c, widen(c, x, -in->second), factor, 0, out->second, range, c.elementOf(c.outputInfo(0))));
}

void addRelu(OpTable &t, Op op, int version, double low, double high) {
  t.add(op, 1, 1, version, Float32 | OtherFloat | Quantized, [low, high](OpContext &c) -> LogicalResult {
    if (c.isQuantized(0))
      return quantizedRelu(c, low, high);
    Value x = c.input(0);
    if (!x)
      return failure();
    x = c.max(x, c.like(x, low));
    return c.setResult(0, std::isfinite(high) ? c.min(x, c.like(x, high)) : x);
  });
}

LogicalResult leakyRelu(OpContext &c) {
  Value x = c.input(0);
  const float alpha = c.options<tfl::LeakyReluOptions>().alpha();
  if (!x)
    return failure();
  if (!c.isQuantized(0)) {
    Value positive = c.compare(Compare::GT, x, c.like(x, 0));
    return c.setResult(0, c.select(positive, x, c.mul(x, c.like(x, alpha))));
  }
  auto in = c.perTensor(c.inputInfo(0)), out = c.perTensor(c.outputInfo(0));
  if (failed(in) || failed(out))
    return failure();
  Value wide = widen(c, x, -in->second);
  Value same = multiplyBy(c, wide, multiplierOf(in->first / out->first));
  // the factor of negative slopes is rounded as its magnitude
  const float slope = in->first * alpha / out->first;
  Value less = multiplyBy(c, wide, multiplierOf(std::fabs(slope)));
  if (slope < 0)
    less = c.neg(less);
  Value chosen = c.select(c.compare(Compare::GE, wide, c.likeInt(wide, 0)), same, less);
  return c.setResult(0, finish(c, chosen, out->second, rangeOf(c.outputInfo(0).type), c.elementOf(c.outputInfo(0))));
}

LogicalResult prelu(OpContext &c) {
  Value x = c.input(0), alpha = c.input(1);
  if (!x || !alpha)
    return failure();
  if (!c.isQuantized(0)) {
    Value positive = c.compare(Compare::GE, x, c.like(x, 0));
    return c.setResult(0, c.select(positive, x, c.mul(x, alpha)));
  }
  auto in = c.perTensor(c.inputInfo(0)), slope = c.perTensor(c.inputInfo(1)), out = c.perTensor(c.outputInfo(0));
  if (failed(in) || failed(slope) || failed(out))
    return failure();
  Value wide = widen(c, x, -in->second), factor = widen(c, alpha, -slope->second);
  Value same = multiplyBy(c, wide, multiplierOf(in->first / out->first));
  Value less = multiplyBy(c, c.mul(wide, factor), multiplierOf(in->first * slope->first / out->first));
  Value chosen = c.select(c.compare(Compare::GE, wide, c.likeInt(wide, 0)), same, less);
  return c.setResult(0, finish(c, chosen, out->second, rangeOf(c.outputInfo(0).type), c.elementOf(c.outputInfo(0))));
}

int32_t to15Bits(int32_t multiplier) {
  constexpr int32_t half = 1 << 15;
  return multiplier >= INT32_MAX - half ? INT16_MAX : (multiplier + half) >> 16;
}

/// In 16-bit numbers: x at a finer scale times the clamped (x + 3), which runs over [0, 2^15].
LogicalResult quantizedHardSwish(OpContext &c) {
  Value x = c.input(0);
  auto in = c.perTensor(c.inputInfo(0)), out = c.perTensor(c.outputInfo(0));
  if (!x || failed(in) || failed(out))
    return failure();
  const float fine = (1.0f / 128.0f) * in->first, reluScale = 3.0f / 32768.0f;
  const Multiplier output = multiplierOf(fine / out->first), relu = multiplierOf(fine / reluScale);
  if (output.shift > 0)
    return c.error("the output's scale is too small for the input's");
  Value wide = c.mul(widen(c, x, -in->second), c.splatInt(128, c.dims(x), c.b.getI32Type()));
  Value outputPart = highProduct16(c, wide, c.likeInt(wide, to15Bits(output.value)));
  Value r = wide;
  if (relu.shift > 0)
    r = saturate16(c, c.binary<hlo::ShiftLeftOp>(r, c.likeInt(r, relu.shift - 1)));
  r = highProduct16(c, r, c.likeInt(r, to15Bits(relu.value)));
  if (relu.shift > 0)
    r = saturate16(c, c.binary<hlo::ShiftLeftOp>(r, c.likeInt(r, 1)));
  if (relu.shift < 0)
    r = roundingShift(c, r, -relu.shift);
  // from [-1, 1] to [0, 1]
  r = c.binary<hlo::ShiftRightArithmeticOp>(c.add(r, c.likeInt(r, 1 << 15)), c.likeInt(r, 1));
  // without rounding, as the reference kernel does it here
  Value product = c.mul(r, outputPart);
  Value high = c.div(product, c.likeInt(product, 1 << 15));
  Value value = roundingShift(c, high, -output.shift);
  return c.setResult(0, finish(c, value, out->second, rangeOf(c.outputInfo(0).type), c.elementOf(c.outputInfo(0))));
}

LogicalResult abs(OpContext &c) {
  Value x = c.input(0);
  if (!x)
    return failure();
  if (!c.isQuantized(0))
    return c.setResult(0, c.unary<hlo::AbsOp>(x));
  auto in = c.perTensor(c.inputInfo(0)), out = c.perTensor(c.outputInfo(0));
  if (failed(in) || failed(out))
    return failure();
  Value wide = c.unary<hlo::AbsOp>(widen(c, x, -in->second));
  if (in->first != out->first)
    wide = multiplyBy(c, wide, multiplierOf(in->first / out->first));
  return c.setResult(0, finish(c, wide, out->second, rangeOf(c.outputInfo(0).type), c.elementOf(c.outputInfo(0))));
}

LogicalResult cast(OpContext &c) {
  Value x = c.input(0);
  if (!x)
    return failure();
  // through the handler that also knows sizes
  auto result = c.call("Cast", c.value(0), {c.attr("SrcT", Emitter::elementType(x)),
                                            c.attr("DstT", c.elementOf(c.outputInfo(0)))});
  return failed(result) ? failure() : c.setResult(0, result->front());
}

void registerFloat(OpTable &t) {
  const unsigned floats = Float32 | OtherFloat;
  addFunction(t, Op::CEIL, 1, floats, simple<hlo::CeilOp>);
  addFunction(t, Op::COS, 1, floats, simple<hlo::CosineOp>);
  addFunction(t, Op::EXP, 2, floats | Quantized, simple<hlo::ExpOp>, [](OpContext &, float x) { return std::exp(x); });
  addFunction(t, Op::FLOOR, 1, floats, simple<hlo::FloorOp>);
  addFunction(t, Op::LOG, 2, floats | Quantized, simple<hlo::LogOp>, realLog);
  addFunction(t, Op::LOGICAL_NOT, 1, Bools, simple<hlo::NotOp>);
  // elements of quantized tensors as they are, as the reference kernel does it
  t.add(Op::NEG, 1, 1, 1, floats | Ints | Quantized, [](OpContext &c) -> LogicalResult {
    Value x = c.input(0);
    return x ? c.setResult(0, c.neg(x)) : failure();
  });
  addFunction(t, Op::ROUND, 1, floats, simple<hlo::RoundNearestEvenOp>);
  addFunction(t, Op::SIGN, 2, floats | Ints, simple<hlo::SignOp>);
  addFunction(t, Op::SIN, 1, floats, simple<hlo::SineOp>);
  addFunction(t, Op::SQUARE, 1, floats | Ints, [](OpContext &c, Value x) { return c.mul(x, x); });
  addFunction(t, Op::ELU, 1, floats | Quant8, [](OpContext &c, Value x) {
    return c.select(c.compare(Compare::LT, x, c.like(x, 0)), c.unary<hlo::Expm1Op>(x), x);
  }, [](OpContext &, float x) { return x < 0.0f ? std::exp(x) - 1.0f : x; });
  addFunction(t, Op::GELU, 2, floats | Quant8, gelu, realGelu);
  addFunction(t, Op::ZEROS_LIKE, 1, Any, [](OpContext &c, Value x) { return c.likeInt(x, 0); });
  addFunction(t, Op::COMPLEX_ABS, 1, Complexes, simple<hlo::AbsOp>);
  addFunction(t, Op::REAL, 1, Complexes, simple<hlo::RealOp>);
  addFunction(t, Op::IMAG, 1, Complexes, simple<hlo::ImagOp>);
}

} // namespace

void registerElementwise(OpTable &t) {
  const float infinity = HUGE_VALF;
  registerFloat(t);
  addRelu(t, Op::RELU, 3, 0, infinity);
  addRelu(t, Op::RELU6, 3, 0, 6);
  addRelu(t, Op::RELU_N1_TO_1, 2, -1, 1);
  addRelu(t, Op::RELU_0_TO_1, 1, 0, 1);
  t.add(Op::LEAKY_RELU, 1, 1, 2, Float32 | OtherFloat | Quantized, leakyRelu);
  t.add(Op::PRELU, 2, 2, 1, Float32 | OtherFloat | Quant8, prelu);
  t.add(Op::HARD_SWISH, 1, 1, 1, Float32 | OtherFloat | Quant8, [](OpContext &c) -> LogicalResult {
    if (c.isQuantized(0))
      return quantizedHardSwish(c);
    Value x = c.input(0);
    return x ? c.setResult(0, hardSwish(c, x)) : failure();
  });
  t.add(Op::ABS, 1, 1, 5, Float32 | OtherFloat | Ints | Quantized, abs);
  t.add(Op::CAST, 1, 1, 7, Any, cast);
  t.add(Op::BITCAST, 1, 1, 1, Any, [](OpContext &c) -> LogicalResult {
    Value x = c.input(0);
    if (!x)
      return failure();
    return c.setResult(0, c.call1("Bitcast", {x}, {c.attr("T", Emitter::elementType(x)),
                                                   c.attr("type", c.elementOf(c.outputInfo(0)))}));
  });
}

} // namespace lathe::tflite
