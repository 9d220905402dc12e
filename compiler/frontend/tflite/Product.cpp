// Products of matrices, and what they share with convolutions (Hybrid.h).
#include "compiler/frontend/tflite/Hybrid.h"
#include "compiler/frontend/tflite/OpTable.h"
#include "passes/legalize/quant/ByteProducts.h"

#include <cmath>

using namespace mlir;

namespace lathe::tflite {

/// The factors as real numbers.
static FailureOr<SmallVector<double>> realFactors(OpContext &c, const TensorInfo &input, const TensorInfo &weights,
                                                  int64_t channelAxis) {
  auto in = c.perTensor(input), out = c.perTensor(c.outputInfo(0));
  if (failed(in) || failed(out))
    return failure();
  const Quantization &w = weights.quantization;
  if (w.isOther || !w)
    return c.error("the weights must have scales");
  if (!w.perTensor() && w.dimension != channelAxis)
    return c.error("the weights have scales for dimension " + Twine(w.dimension) + ", expected " + Twine(channelAxis));
  if (!w.perTensor() && llvm::any_of(w.zeroPoints, [](int64_t z) { return z != 0; }))
    return c.error("weights quantized per channel must have zero point 0");
  SmallVector<double> factors;
  // Some kernels with one factor form the product of scales in float, the others in double.
  const bool single = c.code == tfl::BuiltinOperator::BATCH_MATMUL || (input.type == tfl::TensorType::UINT8 &&
                                                                       c.code != tfl::BuiltinOperator::FULLY_CONNECTED);
  if (single && w.perTensor()) {
    factors.push_back(double(in->first * w.scales[0]) / double(out->first));
    return factors;
  }
  for (float scale : w.scales)
    factors.push_back(double(in->first) * double(scale) / double(out->first));
  return factors;
}

FailureOr<SmallVector<Multiplier>> convolutionFactors(OpContext &c, const TensorInfo &input, const TensorInfo &weights,
                                                      int64_t channelAxis) {
  auto factors = realFactors(c, input, weights, channelAxis);
  if (failed(factors))
    return failure();
  return llvm::map_to_vector(*factors, multiplierOf);
}

Type sumType16(OpContext &c, unsigned bias) {
  if (c.hasInput(bias) && c.inputInfo(bias).type == tfl::TensorType::INT32)
    return c.b.getI32Type();
  return c.b.getI64Type();
}

Value addBias(OpContext &c, Value sums, unsigned bias, Value less) {
  if (!sums)
    return sums;
  if (!c.hasInput(bias))
    return less ? c.sub(sums, less) : sums;
  Value added = c.convert(c.input(bias), Emitter::elementType(sums));
  return c.add(sums, less ? c.sub(added, less) : added);
}

Value finishSums(OpContext &c, Value sums, unsigned bias, ArrayRef<Multiplier> factors, std::pair<float, int64_t> output,
                 std::pair<int64_t, int64_t> range, Value less) {
  sums = addBias(c, sums, bias, less);
  if (!sums)
    return sums;
  const int64_t last = Emitter::rank(sums) - 1;
  return requantize(c, sums, factors, last, output.second, range, c.elementOf(c.outputInfo(0)));
}

FailureOr<Value> weightScales(OpContext &c, unsigned input, int64_t channelAxis, int64_t axis) {
  const Quantization &w = c.inputInfo(input).quantization;
  if (w.isOther || !w)
    return c.error("the weights must have scales");
  if (llvm::any_of(w.zeroPoints, [](int64_t z) { return z != 0; }))
    return c.error("weights of a float operator must have zero point 0");
  if (w.perTensor())
    return c.scalar(w.scales[0], c.b.getF32Type());
  if (w.dimension != channelAxis)
    return c.error("the weights have scales for dimension " + Twine(w.dimension) + ", expected " + Twine(channelAxis));
  Tensor t = Tensor::allocate(DType::Float32, {int64_t(w.scales.size())});
  std::copy(w.scales.begin(), w.scales.end(), t.data<float>());
  return c.constant(t);
}

namespace {

using Op = tfl::BuiltinOperator;

Value typedDot(OpContext &c, Value x, Value y, ArrayRef<int64_t> batch, int64_t xk, int64_t yk, Type result) {
  if (!x || !y)
    return {};
  for (int64_t d : batch)
    if (!c.ctx.unify(c.dim(x, d), c.dim(y, d), c.nodeName)) {
      (void)c.error("batch dimension " + Twine(d) + " differs");
      return {};
    }
  if (!c.ctx.unify(c.dim(x, xk), c.dim(y, yk), c.nodeName)) {
    (void)c.error("inner dimensions differ");
    return {};
  }
  auto numbers = hlo::DotDimensionNumbersAttr::get(c.b.getContext(), batch, batch, {xk}, {yk});
  return c.make<hlo::DotGeneralOp>(x, y, numbers, result);
}

/// (sums + bias) times the factors in double, rounded once: how the reference kernel of FULLY_CONNECTED does it, other than
/// convolutions.
Value finishReal(OpContext &c, Value sums, unsigned bias, ArrayRef<double> factors, std::pair<float, int64_t> output,
                 std::pair<int64_t, int64_t> range, Value less) {
  sums = addBias(c, sums, bias, less);
  return quantize::requantizeReal(c, sums, factors, output.second, range, c.elementOf(c.outputInfo(0)));
}

LogicalResult quantizedFullyConnected(OpContext &c, Value x, Value weights, const Dims &resultDims, Activation activation) {
  auto in = c.perTensor(c.inputInfo(0)), out = c.perTensor(c.outputInfo(0));
  auto range = activationRange(c, c.outputInfo(0), activation);
  auto factors = realFactors(c, c.inputInfo(0), c.inputInfo(1), 0);
  if (failed(in) || failed(out) || failed(range) || failed(factors))
    return failure();
  const int64_t weightZero = c.inputInfo(1).quantization.zeroPoints[0];
  const bool is16 = c.inputInfo(0).type == tfl::TensorType::INT16;
  Type i32 = c.b.getI32Type();
  Value sums, less;
  if (is16) {
    sums = typedDot(c, x, weights, {}, 1, 1, sumType16(c, 2));
  } else if (c.inputInfo(0).type == tfl::TensorType::INT8 && !weightZero) {
    sums = typedDot(c, x, weights, {}, 1, 1, i32);
    if (in->second && sums) {
      Value each = c.reduceSum(c.convert(weights, i32), {1});
      less = c.mul(each, c.likeInt(each, in->second));
    }
  } else {
    if (!c.ctx.unify(c.dim(x, 1), c.dim(weights, 1), c.nodeName))
      return c.error("inner dimensions differ");
    sums = legalize::offsetProduct(c, {x, c.scalarInt(in->second, i32)}, {weights, c.scalarInt(weightZero, i32)}, 1, 1);
  }
  return c.setResult(0, c.reshape(finishReal(c, sums, 2, *factors, *out, *range, less), resultDims));
}

LogicalResult fullyConnected(OpContext &c) {
  const auto &o = c.options<tfl::FullyConnectedOptions>();
  Value x = c.input(0), weights = c.input(1);
  if (!x || !weights)
    return failure();
  if (o.weights_format() != tfl::FullyConnectedOptionsWeightsFormat::DEFAULT)
    return c.error("shuffled weights are not supported");
  if (Emitter::rank(weights) != 2 || Emitter::rank(x) < 1)
    return c.error("expected weights of rank 2 and an input of rank 1 or more");
  Dims w = c.dims(weights), in = c.dims(x), resultDims;
  AffineExpr all = productOf(in, c.b.getContext());
  AffineExpr rows = in.size() > 1 && c.ctx.resolve(in.back()) == w[1]
                        ? productOf(ArrayRef<AffineExpr>(in).drop_back(), c.b.getContext())
                        : legalize::divideExactly(all, w[1]);
  if (o.keep_num_dims()) {
    resultDims.assign(in.begin(), in.end() - 1);
    resultDims.push_back(w[0]);
  } else {
    resultDims = {rows, w[0]};
  }
  x = c.reshape(x, ArrayRef<AffineExpr>{rows, w[1]});
  Activation activation = o.fused_activation_function();
  if (c.isQuantized(0))
    return quantizedFullyConnected(c, x, weights, resultDims, activation);
  Value result;
  if (c.isQuantized(1)) {
    auto q = quantizeRows(c, x, {1}, o.asymmetric_quantize_inputs());
    auto scales = weightScales(c, 1, 0, 1);
    if (failed(scales))
      return failure();
    Value sums = typedDot(c, q.values, weights, {}, 1, 1, c.b.getI32Type());
    if (o.asymmetric_quantize_inputs())
      sums = c.sub(sums, c.mul(q.zeroPoints, c.reduceSum(c.convert(weights, c.b.getI32Type()), {1})));
    result = scaleSums(c, sums, q.scales, *scales);
  } else {
    result = typedDot(c, x, c.convert(weights, Emitter::elementType(x)), {}, 1, 1, Emitter::elementType(x));
  }
  if (c.hasInput(2))
    result = c.add(result, c.convert(c.input(2), Emitter::elementType(result)));
  return c.setResult(0, c.activate(c.reshape(result, resultDims), activation));
}

/// Both inputs with the same leading dimensions.
bool broadcastBatches(OpContext &c, Value &x, Value &y) {
  Dims dx = c.dims(x), dy = c.dims(y);
  Dims bx(dx.begin(), dx.end() - 2), by(dy.begin(), dy.end() - 2), batch;
  if (!c.broadcastDims({bx, by}, batch))
    return false;
  auto spread = [&](Value v, const Dims &dims) {
    Dims to = batch;
    to.append(dims.end() - 2, dims.end());
    return c.broadcastTo(v, to);
  };
  x = spread(x, dx);
  y = spread(y, dy);
  return x && y;
}

LogicalResult batchMatMul(OpContext &c) {
  const auto &o = c.options<tfl::BatchMatMulOptions>();
  Value x = c.input(0), y = c.input(1);
  if (!x || !y)
    return failure();
  if (Emitter::rank(x) < 2 || Emitter::rank(y) < 2)
    return c.error("expected inputs of rank 2 or more");
  const bool hybrid = c.isFloatInput(0) && c.isQuantized(1), quantized = c.isQuantized(0);
  if (!broadcastBatches(c, x, y))
    return failure();
  const int64_t rank = Emitter::rank(x);
  SmallVector<int64_t> batch = llvm::to_vector(llvm::seq<int64_t>(0, rank - 2));
  const int64_t xk = o.adj_x() ? rank - 2 : rank - 1, yk = o.adj_y() ? rank - 1 : rank - 2;
  Type i32 = c.b.getI32Type(), i16 = c.b.getIntegerType(16);
  if (quantized) {
    auto a = c.perTensor(c.inputInfo(0)), b = c.perTensor(c.inputInfo(1));
    if (failed(a) || failed(b))
      return failure();
    const bool is16 = c.inputInfo(0).type == tfl::TensorType::INT16;
    if (c.outputInfo(0).type == tfl::TensorType::INT32 && !is16) // sums of the numbers as they are, whatever their zero points
      return c.setResult(0, typedDot(c, x, y, batch, xk, yk, i32));
    Value sums = typedDot(c, widen(c, x, -a->second, i16), widen(c, y, -b->second, i16), batch, xk, yk,
                          is16 ? Type(c.b.getI64Type()) : i32);
    auto out = c.perTensor(c.outputInfo(0));
    auto range = activationRange(c, c.outputInfo(0), Activation::NONE);
    auto factors = convolutionFactors(c, c.inputInfo(0), c.inputInfo(1), 0);
    if (failed(out) || failed(range) || failed(factors))
      return failure();
    return c.setResult(0, finishSums(c, sums, 2, *factors, *out, *range));
  }
  if (hybrid) {
    auto q = quantizeRows(c, x, {xk}, o.asymmetric_quantize_inputs());
    auto scale = c.perTensor(c.inputInfo(1));
    if (failed(scale))
      return failure();
    Value sums = typedDot(c, c.sub(c.convert(q.values, i16), c.convert(q.zeroPoints, i16)), c.convert(y, i16), batch, xk,
                          yk, i32);
    Value scales = q.scales;
    if (o.adj_x()) { // a scale for each row of the result
      SmallVector<int64_t> swap = batch;
      swap.append({rank - 1, rank - 2});
      scales = c.transpose(scales, swap);
    }
    return c.setResult(0, scaleSums(c, sums, scales, c.like(scales, scale->first)));
  }
  Type element = Emitter::elementType(x).isInteger(8) ? i32 : Emitter::elementType(x);
  return c.setResult(0, typedDot(c, x, y, batch, xk, yk, element));
}

} // namespace

void registerProduct(OpTable &t) {
  t.add(Op::FULLY_CONNECTED, 2, 3, 14, Float32 | Quantized, fullyConnected);
  t.add(Op::RFFT2D, 2, 2, 1, Float32, [](OpContext &c) -> LogicalResult {
    auto result = c.call("RFFT2D", {c.value(0), c.value(1)});
    return failed(result) ? failure() : c.setResult(0, result->front());
  });
  t.add(Op::BATCH_MATMUL, 2, 2, 4, Float32 | Quantized | Ints, batchMatMul);
}

} // namespace lathe::tflite
