// Square roots, their inverses, and vectors divided by their length.
#include "compiler/frontend/tflite/Roots.h"
#include "compiler/frontend/tflite/FixedPoint.h"
#include "compiler/frontend/tflite/OpTable.h"
#include "compiler/frontend/tflite/Requantize.h"
#include "compiler/frontend/tflite/Tables.h"

#include <cmath>

using namespace mlir;

namespace lathe::tflite {

FailureOr<SmallVector<int64_t>> tableOf16(OpContext &c, llvm::function_ref<float(float)> function) {
  auto in = c.perTensor(c.inputInfo(0)), out = c.perTensor(c.outputInfo(0));
  if (failed(in) || failed(out))
    return failure();
  constexpr int steps = 512;
  constexpr float lowest = -32768, highest = 32767;
  const float low = in->first * (lowest - float(in->second)), high = in->first * (highest - float(in->second));
  const float outLow = out->first * (lowest - float(out->second)), outHigh = out->first * (highest - float(out->second));
  const float step = (high - low) / steps, half = step / 2, inverse = (highest - lowest + 1) / (outHigh - outLow);
  auto clamp = [&](float v) { return int64_t(std::min(std::max(v, lowest), highest)); };
  SmallVector<int64_t> table;
  for (int i = 0; i < steps; ++i) {
    const float here = std::round(function(low + float(i) * step) * inverse);
    const float between = std::round((function(low + float(i + 1) * step) * inverse + here) / 2);
    const float middle = std::round(function(low + float(i) * step + half) * inverse);
    table.push_back(clamp(here - std::round((between - middle) / 2)));
  }
  table.push_back(clamp(std::round(function(high) * inverse)));
  return table;
}

namespace {

using Op = tfl::BuiltinOperator;

/// x less its zero point, which may not be negative.
Value notNegative(OpContext &c, Value x, int64_t zeroPoint) {
  Value wide = widen(c, x, -zeroPoint);
  c.check(c.compare(Compare::GE, wide, c.likeInt(wide, 0)), "root of a negative number");
  return wide;
}

/// In float, the fraction cut off.
LogicalResult quantizedSqrt(OpContext &c) {
  auto in = c.perTensor(c.inputInfo(0)), out = c.perTensor(c.outputInfo(0));
  Value x = c.input(0);
  if (failed(in) || failed(out) || !x)
    return failure();
  Value real = c.convert(notNegative(c, x, in->second), c.b.getF32Type());
  Value root = c.unary<hlo::SqrtOp>(c.mul(real, c.like(real, in->first)));
  Value whole = c.convert(c.div(root, c.like(root, out->first)), c.b.getI32Type());
  return c.setResult(0, finish(c, whole, out->second, rangeOf(c.outputInfo(0).type), c.elementOf(c.outputInfo(0))));
}

LogicalResult quantizedRsqrt(OpContext &c) {
  auto in = c.perTensor(c.inputInfo(0)), out = c.perTensor(c.outputInfo(0));
  Value x = c.input(0);
  if (failed(in) || failed(out) || !x)
    return failure();
  Type element = c.elementOf(c.outputInfo(0));
  auto range = rangeOf(c.outputInfo(0).type);
  Value wide = notNegative(c, x, in->second);
  if (c.inputInfo(0).type == tfl::TensorType::INT16) {
    auto table = tableOf16(c, [&](float v) { return v <= 0.0f ? float(range.second) * out->first : 1.0f / std::sqrt(v); });
    return failed(table) ? failure() : c.setResult(0, c.convert(lookUp16(c, wide, *table), element));
  }
  constexpr int bits = 20; // that the root has behind the point
  Factors root = inverseSqrt(c, wide);
  root.shift = c.sub(root.shift, c.likeInt(root.shift, bits));
  Multiplier scale = multiplierOf(1.0 / double(std::sqrt(in->first) * out->first));
  scale.shift -= bits;
  Value result = finish(c, multiplyBy(c, multiplyBy(c, c.likeInt(wide, 1), root), scale), out->second, range, element);
  return c.setResult(0, c.select(c.compare(Compare::EQ, wide, c.likeInt(wide, 0)), c.likeInt(result, range.second), result));
}

/// Scales of 1/128 around the middle of the type.
LogicalResult quantizedL2(OpContext &c) {
  auto in = c.perTensor(c.inputInfo(0)), out = c.perTensor(c.outputInfo(0));
  Value x = c.input(0);
  if (failed(in) || failed(out) || !x)
    return failure();
  const bool isUnsigned = c.outputInfo(0).type == tfl::TensorType::UINT8;
  if (out->first != 1.0f / 128 || out->second != (isUnsigned ? 128 : 0))
    return c.error("expected an output of scale 1/128 around " + Twine(isUnsigned ? 128 : 0));
  const int64_t last = Emitter::rank(x) - 1;
  Value wide = widen(c, x, -in->second);
  Factors factors = inverseSqrt(c, c.keepDims(c.reduceSum(c.mul(wide, wide), {last}), {last}, last + 1));
  if (isUnsigned)
    wide = c.mul(wide, c.likeInt(wide, 128));
  else
    factors.shift = c.sub(factors.shift, c.likeInt(factors.shift, 7));
  return c.setResult(0, finish(c, multiplyBy(c, wide, factors), out->second, rangeOf(c.outputInfo(0).type), c.elementOf(c.outputInfo(0))));
}

LogicalResult l2Normalization(OpContext &c) {
  Value x = c.input(0);
  if (!x)
    return failure();
  if (Emitter::rank(x) < 1)
    return c.error("expected an input of rank 1 or more");
  if (c.isQuantized(0))
    return quantizedL2(c);
  const int64_t last = Emitter::rank(x) - 1;
  Value norm = c.unary<hlo::SqrtOp>(c.keepDims(c.reduceSum(c.mul(x, x), {last}), {last}, last + 1));
  Value result = c.div(x, c.max(norm, c.like(norm, 1e-6)));
  return c.setResult(0, c.activate(result, c.options<tfl::L2NormOptions>().fused_activation_function()));
}

} // namespace

void registerRoots(OpTable &t) {
  t.add(Op::SQRT, 1, 1, 2, Float32 | OtherFloat | Quantized, [](OpContext &c) {
    return c.isQuantized(0) ? quantizedSqrt(c) : c.setResult(0, c.unary<hlo::SqrtOp>(c.input(0)));
  });
  t.add(Op::RSQRT, 1, 1, 3, Float32 | OtherFloat | Quantized, [](OpContext &c) {
    return c.isQuantized(0) ? quantizedRsqrt(c) : c.setResult(0, c.unary<hlo::RsqrtOp>(c.input(0)));
  });
  t.add(Op::L2_NORMALIZATION, 1, 1, 2, Float32 | Quant8, l2Normalization);
}

} // namespace lathe::tflite
