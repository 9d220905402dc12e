// Reductions along axes and the places of extremes.
#include "compiler/frontend/tflite/OpTable.h"
#include "compiler/frontend/tflite/Recurrent.h"
#include "compiler/frontend/tflite/Requantize.h"

#include <cmath>

using namespace mlir;

namespace lathe::tflite {
namespace {

using Op = tfl::BuiltinOperator;

FailureOr<SmallVector<int64_t>> axesOf(OpContext &c, int64_t rank) {
  auto axes = c.constantInts(1);
  if (failed(axes))
    return failure();
  SmallVector<int64_t> result;
  for (int64_t a : *axes) {
    auto axis = c.axis(a, rank);
    if (failed(axis))
      return failure();
    if (!llvm::is_contained(result, *axis)) // twice is once
      result.push_back(*axis);
  }
  llvm::sort(result);
  return result;
}

/// TensorFlow's reduction; axes become a list without repetitions.
LogicalResult asTensorflow(OpContext &c, StringRef op) {
  Value x = c.input(0);
  if (!x)
    return failure();
  auto axes = axesOf(c, Emitter::rank(x));
  if (failed(axes))
    return failure();
  auto result = c.call(op, {c.value(0), GraphValue::ofTensor(c.constantInts(*axes, c.b.getI32Type()))},
                       {c.attr("keep_dims", c.options<tfl::ReducerOptions>().keep_dims())});
  return failed(result) ? failure() : c.setResult(0, result->front());
}

/// What reductions of quantized numbers begin with: the input, its axes, and scale and zero point on both sides.
struct QuantizedReduction {
  Value x;
  int64_t rank;
  SmallVector<int64_t> axes;
  std::pair<float, int64_t> in, out;
};

FailureOr<QuantizedReduction> quantizedReduction(OpContext &c) {
  Value x = c.input(0);
  if (!x)
    return failure();
  const int64_t rank = Emitter::rank(x);
  auto axes = axesOf(c, rank);
  auto in = c.perTensor(c.inputInfo(0)), out = c.perTensor(c.outputInfo(0));
  if (failed(axes) || failed(in) || failed(out))
    return failure();
  return QuantizedReduction{x, rank, std::move(*axes), *in, *out};
}

/// Sums and means of quantized numbers: one factor from the scales (and the number of elements).
LogicalResult quantizedSum(OpContext &c, bool mean) {
  auto given = quantizedReduction(c);
  if (failed(given))
    return failure();
  auto &[x, rank, axes, in, out] = *given;
  Dims dims = c.dims(x), reduced;
  for (int64_t a : axes)
    reduced.push_back(dims[a]);
  auto count = constantOf(productOf(reduced, c.b.getContext()));
  if (!count || *count <= 0)
    return c.error("the number of elements of a sum must be known at compile time");
  Value sums = c.reduceSum(widen(c, x, 0), axes);
  auto range = rangeOf(c.outputInfo(0).type);
  Type element = c.elementOf(c.outputInfo(0));
  Value result;
  if (mean) {
    result = quantize::mean(c, sums, *count, paramsOf(in), paramsOf(out), range, element);
  } else {
    sums = c.sub(sums, c.likeInt(sums, in.second * *count));
    result = requantize(c, sums, multiplierOf(double(in.first) / double(out.first)), 0, out.second, range, element);
  }
  if (c.options<tfl::ReducerOptions>().keep_dims())
    result = c.keepDims(result, axes, rank);
  return c.setResult(0, result);
}

/// Products of quantized numbers: one after the other in the order of the elements, each scaled by its share of the result's scale and
/// rounded.
LogicalResult quantizedProduct(OpContext &c) {
  auto given = quantizedReduction(c);
  if (failed(given))
    return failure();
  auto &[x, rank, axes, in, out] = *given;
  if (c.inputInfo(0).type == tfl::TensorType::UINT8)
    return c.error("a product of uint8 with scales is not supported");
  Dims dims = c.dims(x), reduced, kept;
  SmallVector<int64_t> order(axes);
  for (int64_t d = 0; d < rank; ++d)
    if (llvm::is_contained(axes, d)) {
      reduced.push_back(dims[d]);
    } else {
      order.push_back(d);
      kept.push_back(dims[d]);
    }
  auto count = constantOf(productOf(reduced, c.b.getContext()));
  if (!count || *count <= 0)
    return c.error("the number of elements of a product must be known at compile time");
  const Multiplier factor = multiplierOf(double(in.first) / std::pow(double(out.first), 1.0 / double(*count)));
  Dims split{c.size(*count)};
  split.append(kept);
  Value rows = c.reshape(c.transpose(widen(c, x, -in.second), order), split);
  Value product = c.reshape(c.sliceDim(rows, 0, c.size(0), c.size(1)), kept);
  auto wide = [&](Value v) { return c.convert(v, c.b.getI64Type()); };
  if (*count > 1) {
    auto step = [&](ArrayRef<Value> now, ArrayRef<Value> state) {
      Value next = multiplyWide(c, c.mul(wide(state[0]), wide(now[0])), factor, 0);
      return std::pair<Value, SmallVector<Value>>(next, {next});
    };
    auto result = scan(c, {c.sliceDim(rows, 0, c.size(1), c.size(*count))}, {product}, false, step, kept, c.b.getI32Type());
    if (failed(result))
      return failure();
    product = result->state[0];
  }
  auto range = rangeOf(c.outputInfo(0).type);
  Value result = finish(c, multiplyWide(c, wide(product), factor, 0), out.second, range, c.elementOf(c.outputInfo(0)));
  if (c.options<tfl::ReducerOptions>().keep_dims())
    result = c.keepDims(result, axes, rank);
  return c.setResult(0, result);
}

LogicalResult extreme(OpContext &c, const char *op) {
  if (c.isQuantized(0) && !(c.inputInfo(0).quantization == c.outputInfo(0).quantization))
    return c.error("input and output must have the same scale and zero point");
  return asTensorflow(c, op);
}

LogicalResult argExtreme(OpContext &c, const char *op) {
  auto result = c.call(op, {c.value(0), c.value(1)}, {c.attr("output_type", c.elementOf(c.outputInfo(0)))});
  return failed(result) ? failure() : c.setResult(0, result->front());
}

} // namespace

void registerReduce(OpTable &t) {
  t.add(Op::SUM, 2, 2, 2, Float32 | Ints | Quantized, [](OpContext &c) {
    return c.isQuantized(0) ? quantizedSum(c, false) : asTensorflow(c, "Sum");
  });
  t.add(Op::MEAN, 2, 2, 3, Float32 | Ints | Quantized, [](OpContext &c) {
    return c.isQuantized(0) ? quantizedSum(c, true) : asTensorflow(c, "Mean");
  });
  t.add(Op::REDUCE_PROD, 2, 2, 2, Float32 | Ints | Quantized, [](OpContext &c) {
    return c.isQuantized(0) ? quantizedProduct(c) : asTensorflow(c, "Prod");
  });
  t.add(Op::REDUCE_MAX, 2, 2, 3, Float32 | Ints | Quantized, [](OpContext &c) { return extreme(c, "Max"); });
  t.add(Op::REDUCE_MIN, 2, 2, 3, Float32 | Ints | Quantized, [](OpContext &c) { return extreme(c, "Min"); });
  t.add(Op::REDUCE_ANY, 2, 2, 2, Bools, [](OpContext &c) { return asTensorflow(c, "Any"); });
  t.add(Op::REDUCE_ALL, 2, 2, 2, Bools, [](OpContext &c) { return asTensorflow(c, "All"); });
  t.add(Op::ARG_MAX, 2, 2, 3, Float32 | Ints | Quant8 | Bools, [](OpContext &c) { return argExtreme(c, "ArgMax"); });
  t.add(Op::ARG_MIN, 2, 2, 3, Float32 | Ints | Quant8 | Bools, [](OpContext &c) { return argExtreme(c, "ArgMin"); });
}

} // namespace lathe::tflite
