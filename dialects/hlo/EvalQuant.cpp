// Quantizing and dequantizing of the evaluator: each step in double, rounded to the expressed type.
#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Eval.h"
#include "dialects/hlo/Quant.h"

#include <cmath>

using namespace mlir;

namespace lathe::hlo::eval {

namespace {
/// A quantized type's numbers, rounded to what it expresses, and which of them an element has.
struct Parameters {
  Parameters(Type elementType, const Dims &dims) : p(quantParameters(elementType)), expressed(toDType(p.expressed)) {
    roundFloats(expressed, p.scales.data(), static_cast<int64_t>(p.scales.size()));
    for (size_t d = p.axis + 1; p.axis >= 0 && d < dims.size(); ++d)
      inner *= std::max<int64_t>(dims[d], 1);
  }

  size_t at(int64_t element) const { return p.axis < 0 ? 0 : static_cast<size_t>(element / inner) % p.scales.size(); }
  double round(double v) const {
    roundFloats(expressed, &v, 1);
    return v;
  }

  QuantParameters p;
  DType expressed;
  int64_t inner = 1;
};
} // namespace

static double dequantized(const Parameters &q, int64_t stored, size_t k) {
  const int64_t difference = stored - q.p.zeroPoints[k];
  // as hlo.convert has it
  const double v = q.expressed == DType::Float64 ? static_cast<double>(difference) : static_cast<float>(difference);
  return q.round(q.round(v) * q.p.scales[k]);
}

static int64_t quantized(const Parameters &q, double x, size_t k, QuantizeRounding rounding) {
  const double scale = q.p.scales[k], low = static_cast<double>(q.p.low), high = static_cast<double>(q.p.high);
  const int64_t zero = q.p.zeroPoints[k];
  // far enough from both ends of any range
  auto toInt = [](double v) { return std::isnan(v) ? int64_t(0) : static_cast<int64_t>(std::clamp(v, -0x1p62, 0x1p62)); };
  int64_t stored = 0;
  switch (rounding) {
  case QuantizeRounding::NEAREST_EVEN: {
    double v = q.round(q.round(x / scale) + q.round(static_cast<double>(zero)));
    v = v < q.round(low) ? q.round(low) : v > q.round(high) ? q.round(high) : v;
    stored = toInt(std::nearbyint(v));
    break;
  }
  case QuantizeRounding::AWAY: stored = toInt(std::round(q.round(x / scale))) + zero; break;
  case QuantizeRounding::UP: {
    const double v = std::floor(q.round(q.round(x * q.round(1 / scale)) + 0.5));
    const int64_t step = v < -0x1p31 || v >= 0x1p31 ? INT32_MIN : toInt(v);
    stored = static_cast<int32_t>(static_cast<uint32_t>(step) + static_cast<uint32_t>(zero));
    break;
  }
  }
  return std::clamp(stored, q.p.low, q.p.high);
}

static LogicalResult prepare(Evaluation &e, Operation *op, const Tensor &in, Tensor &result) {
  for (Value v : {op->getOperand(0), Value(op->getResult(0))}) {
    // a dynamic dimension has its size only now
    auto axis = quantizedAxis(elementType(v));
    if (axis && (*axis < 0 || *axis >= in.rank() || in.dim(*axis) != static_cast<int64_t>(quantParameters(elementType(v)).scales.size())))
      return e.fail(op, "the quantized dimension does not have as many elements as scales");
  }
  const auto n = static_cast<double>(in.numElements());
  if (failed(e.work(op, 8 * n)) || failed(e.scratch(op, 16 * n)))
    return failure();
  return e.allocate(op, toDType(elementType(op->getResult(0))), in.dims(), result);
}

static std::vector<double> dequantizeAll(const Tensor &in, Type type) {
  const Parameters q(type, in.dims());
  const std::vector<int64_t> stored = loadInts(in);
  std::vector<double> values(stored.size());
  for (size_t i = 0; i < stored.size(); ++i)
    values[i] = dequantized(q, stored[i], q.at(static_cast<int64_t>(i)));
  return values;
}

static LogicalResult evalQuantize(Evaluation &e, UniformQuantizeOp op, ArrayRef<Tensor> in, Tensors &out) {
  Tensor result;
  if (failed(prepare(e, op, in[0], result)))
    return failure();
  Type from = elementType(op.getOperand());
  const std::vector<double> values = isQuantized(from) ? dequantizeAll(in[0], from) : loadFloats(in[0]);
  const Parameters q(elementType(op.getResult()), in[0].dims());
  std::vector<int64_t> stored(values.size());
  for (size_t i = 0; i < values.size(); ++i)
    stored[i] = quantized(q, values[i], q.at(static_cast<int64_t>(i)), op.getRounding());
  storeInts(result.dtype(), stored.data(), static_cast<int64_t>(stored.size()), result.data());
  out.push_back(result);
  return success();
}

static LogicalResult evalDequantize(Evaluation &e, UniformDequantizeOp op, ArrayRef<Tensor> in, Tensors &out) {
  Tensor result;
  if (failed(prepare(e, op, in[0], result)))
    return failure();
  const std::vector<double> values = dequantizeAll(in[0], elementType(op.getOperand()));
  storeFloats(result.dtype(), values.data(), static_cast<int64_t>(values.size()), result.data());
  out.push_back(result);
  return success();
}

void registerQuant(HandlerTable &table) {
  add<UniformQuantizeOp, evalQuantize>(table);
  add<UniformDequantizeOp, evalDequantize>(table);
}

} // namespace lathe::hlo::eval
