// Between real numbers and quantized ones.
#include "compiler/frontend/tflite/OpTable.h"
#include "compiler/frontend/tflite/Requantize.h"
#include "compiler/frontend/tflite/Translator.h"

#include <cmath>

using namespace mlir;

namespace lathe::tflite {
namespace {

using Op = tfl::BuiltinOperator;

/// Scales (f32) or zero points (i32) for a tensor of the shape of `like`: numbers, or vectors along the quantized dimension.
Value scalesOf(OpContext &c, const Quantization &q, Value like) {
  if (q.perTensor())
    return c.splat(q.scales[0], c.dims(like), c.b.getF32Type());
  Tensor t = Tensor::allocate(DType::Float32, {int64_t(q.scales.size())});
  llvm::copy(q.scales, t.data<float>());
  return c.broadcastInDim(c.constant(t), c.dims(like), {q.dimension});
}

Value zeroPointsOf(OpContext &c, const Quantization &q, Value like) {
  if (q.perTensor())
    return c.splatInt(q.zeroPoints[0], c.dims(like), c.b.getI32Type());
  return c.broadcastInDim(c.constantInts(q.zeroPoints, c.b.getI32Type()), c.dims(like), {q.dimension});
}

LogicalResult checkScales(OpContext &c, const TensorInfo &info, Value v) {
  const Quantization &q = info.quantization;
  if (q.isOther || !q)
    return c.error("tensor '" + import::printable(info.name) + "' must have scales");
  if (!q.perTensor() && q.dimension >= Emitter::rank(v))
    return c.error("tensor '" + import::printable(info.name) + "' has scales for dimension " + Twine(q.dimension));
  return success();
}

/// The element type that says what the file says of `v`; null for scales that it can't have, for 4 bits and for sizes that only the run
/// knows.
Type quantizedType(OpContext &c, const TensorInfo &info, Value v) {
  Type type = c.translator.quantizedType(info);
  if (auto axis = type ? hlo::quantizedAxis(type) : std::nullopt)
    return Emitter::type(v).getDimSize(unsigned(*axis)) == int64_t(info.quantization.scales.size()) ? type : Type();
  return type;
}

LogicalResult dequantize(OpContext &c) {
  Value x = c.input(0);
  if (!x)
    return failure();
  Type f32 = c.b.getF32Type();
  if (Emitter::isFloat(x))
    return c.setResult(0, c.convert(x, f32));
  const TensorInfo &info = c.inputInfo(0);
  if (failed(checkScales(c, info, x)))
    return failure();
  if (Type type = quantizedType(c, info, x))
    return c.setResult(0, c.make<hlo::UniformDequantizeOp>(c.make<hlo::BitcastConvertOp>(x, type)));
  Value centered = c.sub(c.convert(x, c.b.getI32Type()), zeroPointsOf(c, info.quantization, x));
  return c.setResult(0, c.mul(c.convert(centered, f32), scalesOf(c, info.quantization, x)));
}

LogicalResult quantizeTensor(OpContext &c) {
  Value x = c.input(0);
  const TensorInfo &output = c.outputInfo(0);
  if (!x || failed(checkScales(c, output, x)))
    return failure();
  Type i32 = c.b.getI32Type(), element = c.elementOf(output);
  if (Emitter::isFloat(x)) {
    if (Type type = quantizedType(c, output, x); type && Emitter::elementType(x).isF32())
      return c.setResult(0, c.make<hlo::BitcastConvertOp>(c.make<hlo::UniformQuantizeOp>(x, type, hlo::QuantizeRounding::AWAY), element));
    Value rounded = c.unary<hlo::RoundOp>(c.div(x, scalesOf(c, output.quantization, x)));
    // clamped before the zero point is added: far numbers would not fit otherwise
    rounded = c.max(c.min(rounded, c.like(rounded, 1 << 30)), c.like(rounded, -(1 << 30)));
    Value q = c.add(c.convert(rounded, i32), zeroPointsOf(c, output.quantization, x));
    return c.setResult(0, finish(c, q, 0, rangeOf(output.type), element));
  }
  auto in = c.perTensor(c.inputInfo(0)), out = c.perTensor(output);
  if (failed(in) || failed(out))
    return failure();
  // by a factor of 31 bits, not over real numbers as hlo.uniform_quantize
  return c.setResult(0, quantize::rescale(c, x, paramsOf(*in), paramsOf(*out), rangeOf(output.type), element));
}

LogicalResult fakeQuant(OpContext &c) {
  const auto &o = c.options<tfl::FakeQuantOptions>();
  Value x = c.input(0);
  if (!x)
    return failure();
  return c.setResult(0, c.call1("FakeQuantWithMinMaxArgs", {x},
                                {c.attr("min", o.min()), c.attr("max", o.max()), c.attr("num_bits", int64_t(o.num_bits())),
                                 c.attr("narrow_range", o.narrow_range())}));
}

} // namespace

void registerQuantize(OpTable &t) {
  t.add(Op::DEQUANTIZE, 1, 1, 6, OtherFloat | Float32 | Quantized, dequantize);
  t.add(Op::QUANTIZE, 1, 1, 4, Float32 | Quantized | Ints, quantizeTensor);
  t.add(Op::FAKE_QUANT, 1, 1, 2, Float32, fakeQuant);
  // sparse constants are dense already
  t.add(Op::DENSIFY, 1, 1, 1, Any, [](OpContext &c) -> LogicalResult {
    Value x = c.input(0);
    return x ? c.setResult(0, x) : failure();
  });
}

} // namespace lathe::tflite
