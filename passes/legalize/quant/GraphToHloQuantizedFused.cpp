// Products and convolutions of quantized tensors with bias, summand, activation and a new range in one operation, as oneDNN computes
// them in TensorFlow 2.21: integers are multiplied as they are, the sums become floats, and the floats are rounded once, ties to even.
#include "passes/legalize/quant/Fused.h"

#include "passes/legalize/array/ArrayFamilies.h"
#include "passes/legalize/nn/Window.h"
#include "passes/legalize/quant/Steps.h"

#include <limits>

using namespace mlir;

namespace lathe::legalize {

FailureOr<Value> windowSums(NodeContext &c, const Offset &image, Offset filter, bool depthwise) {
  if (failed(c.expectRank(0, 4)) || failed(c.expectRank(1, 4)))
    return failure();
  SmallVector<int64_t> strides = c.attrInts("strides"), dilations = c.attrInts("dilations", {1, 1, 1, 1});
  SmallVector<int64_t> padding = c.attrInts("padding_list", {});
  if (strides.size() != 4 || dilations.size() != 4 || strides[0] != 1 || strides[3] != 1 || dilations[0] != 1 || dilations[3] != 1)
    return c.error("strides or dilations over batch or channels are not supported");
  if (!padding.empty() && (padding.size() != 8 || padding[0] != 0 || padding[1] != 0 || padding[6] != 0 || padding[7] != 0))
    return c.error("padding_list must have eight numbers, those of batch and channels 0");
  SmallVector<WindowDim> dims(2);
  DataFormat format{0, 3, {1, 2}};
  for (int64_t d = 0; d < 2; ++d) {
    auto size = constantOf(c.dim(filter.q, d));
    if (!size)
      return c.error("the filter's spatial sizes must be known at compile time");
    dims[d].input = c.dim(image.q, d + 1);
    dims[d].size = *size;
    dims[d].stride = strides[d + 1];
    dims[d].dilation = dilations[d + 1];
  }
  if (failed(computePadding(c, format, dims, padding.empty() ? c.attrString("padding") : "EXPLICIT", padding)))
    return failure();
  if (!c.ctx.unify(c.dim(image.q, 3), c.dim(filter.q, 2), c.name()))
    return c.error("the filter has not as many channels as the input");
  int64_t groups = 1;
  if (depthwise) {
    auto channels = constantOf(c.dim(filter.q, 2)), multiplier = constantOf(c.dim(filter.q, 3));
    if (!channels || !multiplier)
      return c.error("the filter's channels must be known at compile time");
    groups = *channels;
    filter.q = c.reshape(filter.q, ArrayRef<int64_t>{dims[0].size, dims[1].size, 1, *channels * *multiplier});
  }
  hlo::ConvWindow window;
  for (const WindowDim &d : dims) {
    window.strides.push_back(d.stride);
    window.rhsDilation.push_back(d.dilation);
    window.padding.push_back({d.low, d.high});
  }
  auto numbers = hlo::ConvDimensionNumbersAttr::get(c.b.getContext(), 0, 3, {1, 2}, 2, 3, {0, 1}, 0, 3, {1, 2});
  return offsetConvolution(c, image, filter, window, numbers, groups, 1, Padding::Zero);
}

namespace {

/// Results that do not fit become this float, the last below 2^31.
constexpr double highestInt = 2147483520.0;

Value absolute(NodeContext &c, Value v) { return c.unary<hlo::AbsOp>(v); }
Value largestEnd(NodeContext &c, const StepRange &r) { return c.max(absolute(c, r.low), absolute(c, r.high)); }
Value times(NodeContext &c, Value v, double factor) { return c.mul(v, c.like(v, factor)); }
Value dividedBy(NodeContext &c, Value v, double divisor) { return c.div(v, c.like(v, divisor)); }

/// The filter's range: one for all channels, or one for each (vectors).
struct FilterRange {
  StepRange ends;
  bool perChannel = false;
};

/// From inputs `i` and `i + 1`; `channels`: how many the result has.
FailureOr<FilterRange> filterRange(NodeContext &c, unsigned i, AffineExpr channels) {
  Value low = c.input(i), high = c.input(i + 1);
  const int64_t rank = Emitter::rank(low);
  if (rank > 1 || Emitter::rank(high) != rank)
    return c.error("min_filter and max_filter must be two scalars or two vectors");
  if (rank == 0 || (c.isStatic(low) && Emitter::type(low).getNumElements() == 1)) {
    auto range = rangeInput(c, i);
    if (failed(range))
      return failure();
    return FilterRange{*range, false};
  }
  if (!c.ctx.unify(c.dim(low, 0), channels, c.name()) || !c.ctx.unify(c.dim(high, 0), channels, c.name()))
    return c.error("min_filter and max_filter have not as many elements as the result has channels");
  return FilterRange{{low, high}, true};
}

/// Scalars and vectors over the last dimension of `x`, in its shape; scalars stay.
Value overChannels(NodeContext &c, Value v, Value x) {
  return Emitter::rank(v) == 0 ? v : c.broadcastInDim(v, c.dims(x), {Emitter::rank(x) - 1});
}

/// The range that TensorFlow gives 32-bit sums: signed bytes have 254 steps.
StepRange rangeOfSums(NodeContext &c, const StepRange &x, bool signedInput, const StepRange &filter) {
  Value level = dividedBy(c, c.sub(x.high, x.low), signedInput ? 254 : 255);
  Value filterLevel = dividedBy(c, c.sub(filter.high, filter.low), 254);
  Value both = c.mul(Emitter::rank(filterLevel) == 0 ? level : c.broadcastTo(level, c.dims(filterLevel)), filterLevel);
  return {times(c, both, -2147483647.0), times(c, both, 2147483647.0)};
}

/// `v`, in steps, rounded within the result's type and not above `most`.
Value roundedInto(NodeContext &c, Value v, const Steps &out, std::optional<double> most = std::nullopt) {
  v = c.unary<hlo::RoundNearestEvenOp>(v);
  v = c.min(v, c.like(v, most.value_or(out.bits == 32 ? highestInt : out.highest)));
  return c.convert(c.max(v, c.like(v, out.lowest)), out.type);
}

/// In steps of `size`, by its reciprocal.
Value inSteps(NodeContext &c, Value v, Value size) { return c.mul(v, c.div(c.like(size, 1), size)); }

/// The bias, input 2, as floats for the channels of `v`; integers count as sums.
FailureOr<Value> biasInput(NodeContext &c, Value v, Value scale) {
  if (failed(c.expectRank(2, 1)))
    return failure();
  Value bias = c.input(2);
  if (!c.ctx.unify(c.dim(bias, 0), c.dim(v, Emitter::rank(v) - 1), c.name()))
    return c.error("the bias has not as many elements as the result has channels");
  return Emitter::isFloat(bias) ? bias : c.mul(c.convert(bias, c.b.getF32Type()), scale);
}

/// Bytes of a summand as floats added in one rounding.
Value withBytes(NodeContext &c, Value v, const Quantised &summand) {
  Type f64 = c.b.getF64Type();
  Value step = dividedBy(c, largestEnd(c, summand.range), summand.steps.isSigned ? 127 : 255);
  Value sum = c.add(c.convert(v, f64), c.mul(c.convert(summand.q, f64), c.convert(step, f64)));
  return c.convert(sum, c.b.getF32Type());
}

} // namespace

LogicalResult lowerFusedConv(NodeContext &c, FusedSteps steps) {
  const unsigned at = steps.bias ? 3 : 2;
  auto in = quantisedInput(c, 0, at);
  auto filter = Steps::of(c, Emitter::elementType(c.input(1))), out = Steps::of(c, c.resultType(0));
  if (failed(in) || failed(filter) || failed(out))
    return failure();
  if (in->steps.bits != 8 || filter->bits != 8 || !filter->isSigned || out->bits != (steps.requantize ? 8 : 32))
    return c.error("only an input of bytes, a filter of signed bytes and a result of "
                   + Twine(steps.requantize ? "bytes" : "32-bit integers") + " are supported");
  Type i32 = c.b.getI32Type(), f32 = c.b.getF32Type();
  Value none = c.scalarInt(0, i32);
  auto sums = windowSums(c, {in->q, none}, {c.input(1), none}, steps.depthwise);
  if (failed(sums))
    return failure();
  auto range = filterRange(c, at + 2, c.dim(*sums, 3));
  if (failed(range))
    return failure();

  Value inStep = dividedBy(c, largestEnd(c, in->range), in->steps.isSigned ? 127 : 255);
  Value step = dividedBy(c, largestEnd(c, range->ends), 127);
  Value scale = c.mul(range->perChannel ? c.broadcastTo(inStep, c.dims(step)) : inStep, step);
  Value v = c.convert(*sums, f32);
  v = c.mul(v, overChannels(c, scale, v));
  if (steps.bias) {
    auto bias = biasInput(c, v, scale);
    if (failed(bias))
      return failure();
    v = c.add(v, overChannels(c, *bias, v));
  }
  const unsigned behind = at + (steps.requantize ? 6 : 4);
  if (steps.summand != FusedSteps::None) {
    Value summand = c.input(behind);
    if (Emitter::rank(summand) != 4)
      return c.error("the summand must have rank 4");
    for (int64_t d = 0; d < 4; ++d)
      if (!c.ctx.unify(c.dim(summand, d), c.dim(v, d), c.name()))
        return c.error("the summand has not the shape of the result");
    if (steps.summand == FusedSteps::Float) {
      v = c.add(v, summand);
    } else {
      auto bytes = quantisedInput(c, behind, behind + 1);
      if (failed(bytes))
        return failure();
      if (bytes->steps.bits != 8 || bytes->steps.isSigned != (steps.summand == FusedSteps::SignedBytes))
        return c.error("the summand must consist of "
                       + Twine(steps.summand == FusedSteps::SignedBytes ? "signed" : "unsigned") + " bytes");
      v = withBytes(c, v, *bytes);
    }
  }
  if (steps.relu)
    v = c.max(v, c.like(v, 0));

  if (steps.requantize) {
    auto asked = rangeInput(c, at + 4);
    if (failed(asked))
      return failure();
    // a signed summand's memory takes the result, whose steps end at 127 there
    auto most = steps.summand == FusedSteps::SignedBytes ? std::optional<double>(127) : std::nullopt;
    Value outStep = dividedBy(c, largestEnd(c, *asked), out->isSigned ? 127 : 255);
    if (failed(c.setResult(0, roundedInto(c, inSteps(c, v, outStep), *out, most))))
      return failure();
    return setRange(c, *asked);
  }
  // all channels in the steps of the widest range
  Value widest = step;
  if (range->perChannel)
    widest = dividedBy(c, c.max(absolute(c, c.reduceMin(range->ends.low, {0})), absolute(c, c.reduceMax(range->ends.high, {0}))), 127);
  if (failed(c.setResult(0, roundedInto(c, inSteps(c, v, c.mul(widest, inStep)), *out))))
    return failure();
  StepRange result = rangeOfSums(c, in->range, in->steps.isSigned, range->ends);
  if (!range->perChannel && Emitter::rank(c.input(at + 2)) == 1)
    for (Value *end : {&result.low, &result.high})
      *end = c.reshape(*end, ArrayRef<int64_t>{1});
  return setRange(c, result);
}

namespace {

enum class Behind { Sums, Bytes, Floats };

/// Products of unsigned and signed bytes with a bias. As in TensorFlow 2.21, `input_quant_mode` is heeded by the operation that gives
/// floats; the others take MIN_FIRST. There the sums of the columns, times the lowest number in steps, are added to a bias of floats.
LogicalResult lowerFusedMatMul(NodeContext &c, bool relu, Behind behind) {
  auto x = quantisedInput(c, 0, 3), w = quantisedInput(c, 1, 5);
  if (failed(x) || failed(w) || failed(c.expectRank(0, 2)) || failed(c.expectRank(1, 2)))
    return failure();
  if (x->steps.bits != 8 || x->steps.isSigned || w->steps.bits != 8 || !w->steps.isSigned)
    return c.error("only unsigned bytes by signed bytes are supported");
  if (c.attrBool("transpose_a") || c.attrBool("transpose_b"))
    return c.error("transposed operands are not supported");
  if (!c.ctx.unify(c.dim(x->q, 1), c.dim(w->q, 0), c.name()))
    return c.error("the matrices do not fit");
  Type i32 = c.b.getI32Type(), f32 = c.b.getF32Type();
  const bool minFirst = behind != Behind::Floats || c.attrString("input_quant_mode", "MIN_FIRST") == "MIN_FIRST";
  Value width = c.sub(x->range.high, x->range.low);
  auto numbers = hlo::DotDimensionNumbersAttr::get(c.b.getContext(), {}, {}, {1}, {0});
  Value v = c.convert(c.make<hlo::DotGeneralOp>(x->q, w->q, numbers, i32), f32);
  Value scale = c.mul(dividedBy(c, minFirst ? width : largestEnd(c, x->range), 255), dividedBy(c, largestEnd(c, w->range), 127));
  v = c.mul(v, scale);
  auto bias = biasInput(c, v, scale);
  if (failed(bias))
    return failure();
  if (minFirst && Emitter::isFloat(c.input(2))) {
    Value columns = c.convert(c.reduceSum(c.convert(w->q, i32), {0}), f32);
    *bias = c.add(*bias, c.mul(columns, c.div(times(c, x->range.low, 255), width)));
  }
  v = c.add(v, overChannels(c, *bias, v));
  if (relu)
    v = c.max(v, c.like(v, 0));
  if (behind == Behind::Floats)
    return c.setResult(0, v);
  auto out = Steps::of(c, c.resultType(0));
  if (failed(out))
    return failure();
  if (out->bits != (behind == Behind::Bytes ? 8 : 32) || (out->bits == 8 && out->isSigned))
    return c.error("only a result of " + Twine(behind == Behind::Bytes ? "unsigned bytes" : "32-bit integers") + " is supported");
  if (behind == Behind::Bytes) {
    auto asked = rangeInput(c, 7);
    if (failed(asked) || failed(c.setResult(0, roundedInto(c, inSteps(c, v, dividedBy(c, largestEnd(c, *asked), 255)), *out))))
      return failure();
    return setRange(c, *asked);
  }
  if (failed(c.setResult(0, roundedInto(c, inSteps(c, v, scale), *out))))
    return failure();
  return setRange(c, rangeOfSums(c, x->range, /*signedInput=*/false, w->range));
}

//===----------------------------------------------------------------------===//
// Ranges for each channel
//===----------------------------------------------------------------------===//

/// Input 0, 32-bit sums of rank 4, and what one of their channels' numbers stands for (inputs 1 and 2), as a scalar or a vector.
FailureOr<FilterRange> channelSums(NodeContext &c) {
  auto steps = Steps::of(c, Emitter::elementType(c.input(0)));
  if (failed(steps) || failed(c.expectRank(0, 4)))
    return failure();
  if (steps->bits != 32 || !steps->isSigned)
    return c.error("only qint32 is supported");
  return filterRange(c, 1, c.dim(c.input(0), 3));
}

LogicalResult lowerRequantizePerChannel(NodeContext &c) {
  auto range = channelSums(c);
  auto out = Steps::of(c, c.resultType(0));
  auto asked = rangeInput(c, 3);
  if (failed(range) || failed(out) || failed(asked))
    return failure();
  if (out->bits != 8)
    return c.error("only a result of bytes is supported");
  if (out->isSigned)
    c.check(c.compare(Compare::LT, asked->low, c.like(asked->low, 0)), "requested_output_min must be below 0 for signed results");
  Value widest = largestEnd(c, range->ends), most = largestEnd(c, *asked);
  if (range->perChannel)
    most = c.broadcastTo(most, c.dims(widest));
  Value scale = times(c, dividedBy(c, c.div(widest, most), 2147483648.0), out->isSigned ? 127 : 255);
  Value v = c.convert(c.input(0), c.b.getF32Type());
  if (failed(c.setResult(0, roundedInto(c, c.mul(v, overChannels(c, scale, v)), *out))))
    return failure();
  return setRange(c, *asked);
}

LogicalResult lowerRequantizationRangePerChannel(NodeContext &c) {
  auto range = channelSums(c);
  if (failed(range))
    return failure();
  Value x = c.input(0);
  Type f32 = c.b.getF32Type();
  Value lowest = c.reduceMin(x, {0, 1, 2}), highest = c.reduceMax(x, {0, 1, 2});
  Value most = c.convert(c.max(absolute(c, lowest), absolute(c, highest)), f32);
  Value numbers = c.mul(overChannels(c, largestEnd(c, range->ends), most), most);
  Value end = c.reduceMax(dividedBy(c, numbers, 2147483648.0), {0});
  end = c.max(end, c.like(end, std::numeric_limits<float>::min()));
  end = c.min(end, c.like(end, c.attrFloat("clip_value_max")));
  Value below = c.compare(Compare::LT, c.reduceMin(lowest, {0}), c.scalarInt(0, Emitter::elementType(x)));
  if (failed(c.setResult(0, c.select(below, c.neg(end), c.like(end, 0)))))
    return failure();
  return c.setResult(1, end);
}

} // namespace

void registerQuantizedFused(HandlerTable &t) {
  auto conv = [&](StringRef name, FusedSteps steps) {
    const unsigned summand = steps.summand == FusedSteps::None ? 0 : steps.summand == FusedSteps::Float ? 1 : 3;
    t.add(name, 6 + (steps.bias ? 1 : 0) + (steps.requantize ? 2 : 0) + summand,
          [steps](NodeContext &c) { return lowerFusedConv(c, steps); });
  };
  FusedSteps plain, bias;
  bias.bias = true;
  auto with = [](FusedSteps s, bool relu, bool requantize) {
    s.relu = relu;
    s.requantize = requantize;
    return s;
  };
  conv("QuantizedConv2DPerChannel", plain);
  conv("QuantizedConv2DAndRelu", with(plain, true, false));
  conv("QuantizedConv2DAndRequantize", with(plain, false, true));
  conv("QuantizedConv2DAndReluAndRequantize", with(plain, true, true));
  conv("QuantizedConv2DWithBias", bias);
  conv("QuantizedConv2DWithBiasAndRelu", with(bias, true, false));
  conv("QuantizedConv2DWithBiasAndRequantize", with(bias, false, true));
  conv("QuantizedConv2DWithBiasAndReluAndRequantize", with(bias, true, true));
  bias.summand = FusedSteps::Float;
  conv("QuantizedConv2DWithBiasSumAndRelu", with(bias, true, false));
  bias.summand = FusedSteps::Bytes;
  conv("QuantizedConv2DWithBiasSumAndReluAndRequantize", with(bias, true, true));
  bias.summand = FusedSteps::SignedBytes;
  conv("QuantizedConv2DWithBiasSignedSumAndReluAndRequantize", with(bias, true, true));
  bias.summand = FusedSteps::None;
  plain.depthwise = bias.depthwise = true;
  conv("QuantizedDepthwiseConv2D", plain);
  conv("QuantizedDepthwiseConv2DWithBias", bias);
  conv("QuantizedDepthwiseConv2DWithBiasAndRelu", with(bias, true, false));
  conv("QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize", with(bias, true, true));

  auto product = [&](StringRef name, bool relu, Behind behind) {
    t.add(name, behind == Behind::Sums ? 7 : 9, [relu, behind](NodeContext &c) { return lowerFusedMatMul(c, relu, behind); });
  };
  product("QuantizedMatMulWithBias", false, Behind::Sums);
  product("QuantizedMatMulWithBiasAndRelu", true, Behind::Sums);
  product("QuantizedMatMulWithBiasAndRequantize", false, Behind::Bytes);
  product("QuantizedMatMulWithBiasAndReluAndRequantize", true, Behind::Bytes);
  product("QuantizedMatMulWithBiasAndDequantize", false, Behind::Floats);
  t.add("RequantizePerChannel", 5, lowerRequantizePerChannel);
  t.add("RequantizationRangePerChannel", 3, lowerRequantizationRangePerChannel);
}

} // namespace lathe::legalize
