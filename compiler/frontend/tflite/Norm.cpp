// Softmax and normalizations.
#include "compiler/frontend/tflite/LogSoftmax.h"
#include "compiler/frontend/tflite/OpTable.h"
#include "compiler/frontend/tflite/Requantize.h"
#include "compiler/frontend/tflite/Roots.h"
#include "compiler/frontend/tflite/Tables.h"

#include <cmath>

using namespace mlir;

namespace lathe::tflite {
namespace {

using Op = tfl::BuiltinOperator;

Value softmax(OpContext &c, Value x, float beta) {
  const int64_t last = Emitter::rank(x) - 1;
  Value shifted = c.sub(x, c.keepDims(c.reduceMax(x, {last}), {last}, last + 1));
  if (beta != 1)
    shifted = c.mul(shifted, c.like(shifted, beta));
  Value e = c.unary<hlo::ExpOp>(shifted);
  return c.div(e, c.keepDims(c.reduceSum(e, {last}), {last}, last + 1));
}

LogicalResult quantizedSoftmax(OpContext &c, float beta) {
  auto in = c.perTensor(c.inputInfo(0)), out = c.perTensor(c.outputInfo(0));
  Value x = c.input(0);
  if (failed(in) || failed(out) || !x)
    return failure();
  return c.setResult(0, quantize::softmax8(c, x, in->first, beta, paramsOf(*out), rangeOf(c.outputInfo(0).type),
                                           c.elementOf(c.outputInfo(0))));
}

/// 16 bits: exp and 1 / (1 + x) by tables, sums in integers.
LogicalResult softmax16(OpContext &c, float beta) {
  auto in = c.perTensor(c.inputInfo(0));
  Value x = c.input(0);
  if (failed(in) || !x)
    return failure();
  if (c.outputInfo(0).type != tfl::TensorType::INT16)
    return c.error("expected an output of INT16");
  const int64_t last = Emitter::rank(x) - 1;
  Type i32 = c.b.getI32Type(), i64 = c.b.getI64Type();
  auto clamp = [&](Value v, int64_t low, int64_t high) { return c.min(c.max(v, c.likeInt(v, low)), c.likeInt(v, high)); };
  // the table of exp runs over [-10, 0]
  Value wide = c.convert(x, i32);
  Value distance = c.sub(wide, c.keepDims(c.reduceMax(wide, {last}), {last}, last + 1));
  Value scaled = multiplyBy(c, distance, multiplierOf(in->first * beta / (10.0 / 65535.0)));
  Value e = lookUp16(c, clamp(c.add(scaled, c.likeInt(scaled, 32767)), -32768, 32767),
                     table16([](double v) { return std::exp(v); }, -10, 0));
  Value sum = c.keepDims(c.reduceSum(e, {last}), {last}, last + 1);
  // the sum as 1 + x, with as many bits as fit
  Value zeros = c.unary<hlo::ClzOp>(sum);
  Value moved = c.binary<hlo::ShiftLeftOp>(c.convert(sum, i64), c.convert(c.sub(zeros, c.likeInt(zeros, 1)), i64));
  moved = c.binary<hlo::ShiftRightArithmeticOp>(c.add(moved, c.likeInt(moved, 1 << 13)), c.likeInt(moved, 14));
  Value centered = c.sub(c.convert(moved, i32), c.likeInt(sum, (1 << 15) + (1 << 16)));
  Value reciprocal = lookUp16(c, clamp(centered, -32768, 32767), table16([](double v) { return 1.0 / (1.0 + v); }, 0, 1));
  Value product = c.mul(c.convert(e, i64), c.convert(reciprocal, i64));
  Value right = c.convert(c.sub(c.likeInt(zeros, 31), zeros), i64);
  Value half = c.binary<hlo::ShiftLeftOp>(c.likeInt(right, 1), c.sub(right, c.likeInt(right, 1)));
  Value rounded = c.add(product, half);
  Value result = c.binary<hlo::ShiftRightArithmeticOp>(rounded, c.broadcastTo(right, c.dims(rounded)));
  return c.setResult(0, c.convert(clamp(result, 0, 32767), c.elementOf(c.outputInfo(0))));
}

LogicalResult logSoftmax(OpContext &c) {
  if (c.isQuantized(0))
    return quantizedLogSoftmax(c);
  Value x = c.input(0);
  if (!x)
    return failure();
  return c.setResult(0, c.call1("LogSoftmax", {x}));
}

LogicalResult localResponse(OpContext &c) {
  const auto &o = c.options<tfl::LocalResponseNormalizationOptions>();
  Value x = c.input(0);
  if (!x)
    return failure();
  return c.setResult(0, c.call1("LRN", {x}, {c.attr("depth_radius", int64_t(o.radius())), c.attr("bias", o.bias()),
                                             c.attr("alpha", o.alpha()), c.attr("beta", o.beta())}));
}

} // namespace

void registerNorm(OpTable &t) {
  registerRoots(t);
  t.add(Op::SOFTMAX, 1, 1, 3, Float32 | Quantized, [](OpContext &c) -> LogicalResult {
    Value x = c.input(0);
    if (!x)
      return failure();
    if (Emitter::rank(x) < 1)
      return c.error("expected an input of rank 1 or more");
    const float beta = c.options<tfl::SoftmaxOptions>().beta();
    if (c.inputInfo(0).type == tfl::TensorType::INT16)
      return softmax16(c, beta);
    return c.isQuantized(0) ? quantizedSoftmax(c, beta) : c.setResult(0, softmax(c, x, beta));
  });
  t.add(Op::LOG_SOFTMAX, 1, 1, 2, Float32 | Quant8, logSoftmax);
  t.add(Op::LOCAL_RESPONSE_NORMALIZATION, 1, 1, 1, Float32, localResponse);
}

} // namespace lathe::tflite
