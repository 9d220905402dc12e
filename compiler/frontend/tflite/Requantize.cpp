#include "compiler/frontend/tflite/Requantize.h"

#include "passes/quantize/Kernels.h"

#include <cmath>

using namespace mlir;

namespace lathe::tflite {

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

Value realInput(OpContext &c, unsigned i) {
  Value v = c.input(i);
  if (!v || !c.isQuantized(i))
    return v;
  auto q = c.perTensor(c.inputInfo(i));
  if (failed(q))
    return {};
  Value real = c.convert(widen(c, v, -q->second), c.b.getF32Type());
  return c.mul(real, c.like(real, q->first));
}

FailureOr<SmallVector<int64_t>> tableOf(OpContext &c, llvm::function_ref<float(float)> function) {
  auto in = c.perTensor(c.inputInfo(0)), out = c.perTensor(c.outputInfo(0));
  if (failed(in) || failed(out))
    return failure();
  return quantize::functionTable(paramsOf(*in), rangeOf(c.inputInfo(0).type), paramsOf(*out), rangeOf(c.outputInfo(0).type), function);
}

} // namespace lathe::tflite
