// Convolutions: float, hybrid (float inputs, int8 weights), and whole-integer ones with weights quantized per tensor or channel.
#include "compiler/frontend/tflite/Hybrid.h"
#include "compiler/frontend/tflite/OpTable.h"
#include "passes/legalize/nn/Window.h"
#include "passes/legalize/quant/ByteProducts.h"

using namespace mlir;

namespace lathe::tflite {
namespace {

using Op = tfl::BuiltinOperator;
using legalize::WindowDim;

/// A convolution as options say it, with the filter as [space..., in / groups, out].
struct Conv {
  Value input, filter;
  SmallVector<WindowDim> dims;
  int64_t groups = 1;
  Activation activation = Activation::NONE;
  int64_t channelAxis = 0; ///< of the filter in the file
};

hlo::ConvDimensionNumbersAttr numbers(OpContext &c, int64_t spatial) {
  SmallVector<int64_t> kernel = llvm::to_vector(llvm::seq<int64_t>(0, spatial)), space;
  for (int64_t i = 0; i < spatial; ++i)
    space.push_back(i + 1);
  return hlo::ConvDimensionNumbersAttr::get(c.b.getContext(), 0, spatial + 1, space, spatial, spatial + 1, kernel, 0,
                                            spatial + 1, space);
}

LogicalResult setWindow(OpContext &c, Conv &conv, ArrayRef<int64_t> strides, ArrayRef<int64_t> dilations,
                        tfl::Padding padding) {
  Dims in = c.dims(conv.input), filter = c.dims(conv.filter);
  legalize::DataFormat format;
  format.feature = in.size() - 1;
  for (auto [i, s] : llvm::enumerate(strides)) {
    WindowDim d;
    d.input = in[i + 1];
    auto n = constantOf(filter[i]);
    if (!n)
      return c.error("the filter's sizes must be known at compile time");
    d.size = *n;
    d.stride = s;
    d.dilation = dilations[i];
    conv.dims.push_back(d);
    format.spatial.push_back(i + 1);
  }
  return legalize::computePadding(c, format, conv.dims, padding == tfl::Padding::SAME ? "SAME" : "VALID", {});
}

/// Groups from the channels of input and filter.
LogicalResult setGroups(OpContext &c, Conv &conv) {
  Dims in = c.dims(conv.input), filter = c.dims(conv.filter);
  auto n = constantOf(in.back()), per = constantOf(filter[filter.size() - 2]), out = constantOf(filter.back());
  if (!per || !out || *per == 0)
    return c.error("the filter's sizes must be known at compile time");
  if (!n) {
    if (!c.ctx.unify(in.back(), filter[filter.size() - 2], c.nodeName))
      return c.error("the number of channels must be known at compile time");
    n = per;
  }
  if (*n % *per || *n == 0)
    return c.error("input has " + Twine(*n) + " channels, which is no multiple of the filter's " + Twine(*per));
  conv.groups = *n / *per;
  if (*out % conv.groups)
    return c.error("the number of filters " + Twine(*out) + " is no multiple of the groups " + Twine(conv.groups));
  return success();
}

hlo::ConvWindow windowOf(const Conv &conv) {
  hlo::ConvWindow window;
  for (const WindowDim &d : conv.dims) {
    window.strides.push_back(d.stride);
    window.rhsDilation.push_back(d.dilation);
    window.padding.push_back({d.low, d.high});
  }
  return window;
}

Value convolve(OpContext &c, const Conv &conv, Value input, Value filter, Type result, bool padded) {
  hlo::ConvWindow window = windowOf(conv);
  if (padded)
    window.padding.assign(conv.dims.size(), {0, 0});
  return c.make<hlo::ConvolutionOp>(input, filter, window, numbers(c, conv.dims.size()), conv.groups, int64_t(1), result);
}

/// The input with its window's padding filled with its zero point, which stands for 0.
Value padWith(OpContext &c, const Conv &conv, int64_t zeroPoint) {
  SmallVector<int64_t> low(Emitter::rank(conv.input), 0), high(low);
  for (auto [i, d] : llvm::enumerate(conv.dims)) {
    low[i + 1] = d.low;
    high[i + 1] = d.high;
  }
  return c.pad(conv.input, c.scalarInt(zeroPoint, Emitter::elementType(conv.input)), low, high);
}

/// Sums over the filter for each output channel, i32.
Value filterSums(OpContext &c, Value filter) {
  SmallVector<int64_t> axes = llvm::to_vector(llvm::seq<int64_t>(0, Emitter::rank(filter) - 1));
  return c.reduceSum(c.convert(filter, c.b.getI32Type()), axes);
}

LogicalResult quantized(OpContext &c, const Conv &conv, unsigned input, unsigned filterInput, unsigned bias) {
  auto in = c.perTensor(c.inputInfo(input)), out = c.perTensor(c.outputInfo(0));
  auto range = activationRange(c, c.outputInfo(0), conv.activation);
  const Quantization &weights = c.inputInfo(filterInput).quantization;
  if (failed(in) || failed(out) || failed(range))
    return failure();
  auto factors = convolutionFactors(c, c.inputInfo(input), c.inputInfo(filterInput), conv.channelAxis);
  if (failed(factors))
    return failure();
  const bool is16 = c.inputInfo(input).type == tfl::TensorType::INT16;
  Type i32 = c.b.getI32Type(), accumulator = is16 ? sumType16(c, bias) : i32;
  Value sum, less;
  if (is16) {
    sum = convolve(c, conv, conv.input, conv.filter, accumulator, false);
  } else if (c.inputInfo(input).type == tfl::TensorType::INT8 && llvm::all_of(weights.zeroPoints, [](int64_t z) { return !z; })) {
    sum = convolve(c, conv, padWith(c, conv, in->second), conv.filter, i32, true);
    if (in->second) {
      Value sums = filterSums(c, conv.filter);
      less = c.mul(sums, c.likeInt(sums, in->second));
    }
  } else {
    sum = legalize::offsetConvolution(c, {conv.input, c.scalarInt(in->second, i32)}, {conv.filter, c.scalarInt(weights.zeroPoints[0], i32)},
                                      windowOf(conv), numbers(c, conv.dims.size()), conv.groups, 1, legalize::Padding::ZeroAsByte);
  }
  return c.setResult(0, finishSums(c, sum, bias, *factors, *out, *range, less));
}

LogicalResult lower(OpContext &c, const Conv &conv, unsigned filterInput, unsigned bias) {
  if (c.isQuantized(0))
    return quantized(c, conv, 0, filterInput, bias);
  Value result;
  if (c.isQuantized(filterInput)) {
    // each image has a scale of its own, and a zero point where the weights have a scale for each channel, as depthwise ones always have
    const bool isDepthwise = c.code == Op::DEPTHWISE_CONV_2D, byChannel = !c.inputInfo(filterInput).quantization.perTensor();
    auto rows = quantizeRows(c, conv.input, llvm::to_vector(llvm::seq<int64_t>(1, Emitter::rank(conv.input))), isDepthwise || byChannel);
    auto scales = weightScales(c, filterInput, conv.channelAxis, Emitter::rank(conv.input) - 1);
    if (failed(scales))
      return failure();
    Value sums = convolveRows(c, rows, conv.filter, windowOf(conv), numbers(c, conv.dims.size()), conv.groups);
    result = scaleSums(c, sums, rows.scales, *scales, !isDepthwise && byChannel);
  } else {
    result = convolve(c, conv, conv.input, conv.filter, Emitter::elementType(conv.input), false);
  }
  if (c.hasInput(bias))
    result = c.add(result, c.input(bias));
  return c.setResult(0, c.activate(result, conv.activation));
}

LogicalResult conv2d(OpContext &c) {
  const auto &o = c.options<tfl::Conv2DOptions>();
  Conv conv;
  conv.input = c.input(0);
  Value filter = c.input(1);
  if (!conv.input || !filter)
    return failure();
  if (Emitter::rank(conv.input) != 4 || Emitter::rank(filter) != 4)
    return c.error("expected input and filter of rank 4");
  conv.filter = c.transpose(filter, {1, 2, 3, 0});
  conv.activation = o.fused_activation_function();
  if (failed(setGroups(c, conv)) ||
      failed(setWindow(c, conv, {o.stride_h(), o.stride_w()}, {o.dilation_h_factor(), o.dilation_w_factor()}, o.padding())))
    return failure();
  return lower(c, conv, 1, 2);
}

LogicalResult depthwise(OpContext &c) {
  const auto &o = c.options<tfl::DepthwiseConv2DOptions>();
  Conv conv;
  conv.input = c.input(0);
  Value filter = c.input(1);
  if (!conv.input || !filter)
    return failure();
  if (Emitter::rank(conv.input) != 4 || Emitter::rank(filter) != 4)
    return c.error("expected input and filter of rank 4");
  Dims f = c.dims(filter);
  auto channels = constantOf(c.dim(conv.input, 3)), outputs = constantOf(f[3]);
  if (!channels || !outputs || *channels == 0 || *outputs % *channels)
    return c.error("the numbers of channels of input and filter do not fit");
  conv.filter = c.reshape(filter, ArrayRef<AffineExpr>{f[1], f[2], c.size(1), f[3]});
  conv.groups = *channels;
  conv.channelAxis = 3;
  conv.activation = o.fused_activation_function();
  if (failed(setWindow(c, conv, {o.stride_h(), o.stride_w()}, {o.dilation_h_factor(), o.dilation_w_factor()}, o.padding())))
    return failure();
  return lower(c, conv, 1, 2);
}

LogicalResult conv3d(OpContext &c) {
  const auto &o = c.options<tfl::Conv3DOptions>();
  Conv conv;
  conv.input = c.input(0);
  conv.filter = c.input(1);
  if (!conv.input || !conv.filter)
    return failure();
  if (Emitter::rank(conv.input) != 5 || Emitter::rank(conv.filter) != 5)
    return c.error("expected input and filter of rank 5");
  conv.channelAxis = 4;
  conv.activation = o.fused_activation_function();
  if (failed(setGroups(c, conv)) ||
      failed(setWindow(c, conv, {o.stride_d(), o.stride_h(), o.stride_w()},
                       {o.dilation_d_factor(), o.dilation_h_factor(), o.dilation_w_factor()}, o.padding())))
    return failure();
  return lower(c, conv, 1, 2);
}

/// The gradient of a convolution, forward: the input spread by the strides, convolved with the filter turned round.
struct Transposed {
  Value input, filter; ///< filter as [space..., in, out], turned round
  SmallVector<int64_t> strides;
  SmallVector<std::pair<int64_t, int64_t>> padding;
};

FailureOr<Transposed> transposed(OpContext &c, Value input, Value filter, ArrayRef<int64_t> strides, tfl::Padding padding) {
  const int64_t spatial = strides.size();
  auto wanted = c.shapeInput(0);
  if (failed(wanted))
    return failure();
  if (int64_t(wanted->size()) != spatial + 2 || Emitter::rank(input) != spatial + 2 || Emitter::rank(filter) != spatial + 2)
    return c.error("expected input, filter and output of rank " + Twine(spatial + 2));
  Transposed t;
  t.input = input;
  t.strides.assign(strides.begin(), strides.end());
  Dims in = c.dims(input), f = c.dims(filter);
  SmallVector<int64_t> space;
  for (int64_t i = 0; i < spatial; ++i) {
    auto n = constantOf(in[i + 1]), size = constantOf(f[i]), out = constantOf((*wanted)[i + 1]);
    if (!n || !size || !out || strides[i] <= 0)
      return c.error("spatial sizes must be known at compile time, and strides positive");
    // what the forward convolution would pad
    int64_t forward = padding == tfl::Padding::SAME ? (*out + strides[i] - 1) / strides[i] : (*out + strides[i] - *size) / strides[i];
    if (forward != *n)
      return c.error("output size " + Twine(*out) + " does not fit input size " + Twine(*n));
    int64_t total = padding == tfl::Padding::SAME ? std::max<int64_t>((*n - 1) * strides[i] + *size - *out, 0) : 0;
    int64_t low = *size - 1 - total / 2, high = *out - ((*n - 1) * strides[i] + 1) - low + *size - 1;
    t.padding.push_back({low, high});
    space.push_back(i);
  }
  t.filter = c.reverse(filter, space);
  return t;
}

Value convolve(OpContext &c, const Transposed &t, Value input, Value filter, Type result) {
  hlo::ConvWindow window;
  window.strides.assign(t.strides.size(), 1);
  window.lhsDilation = t.strides;
  window.padding.assign(t.padding.begin(), t.padding.end());
  return c.make<hlo::ConvolutionOp>(input, filter, window, numbers(c, t.strides.size()), int64_t(1), int64_t(1), result);
}

LogicalResult transposeConv(OpContext &c) {
  const auto &o = c.options<tfl::TransposeConvOptions>();
  Value filter = c.input(1), input = c.input(2);
  if (!filter || !input)
    return failure();
  if (Emitter::rank(filter) != 4)
    return c.error("expected a filter of rank 4");
  auto t = transposed(c, input, c.transpose(filter, {1, 2, 3, 0}), {o.stride_h(), o.stride_w()}, o.padding());
  if (failed(t))
    return failure();
  Activation activation = o.fused_activation_function();
  Type i16 = c.b.getIntegerType(16), i32 = c.b.getI32Type();
  if (!c.isQuantized(2)) {
    Value result;
    if (c.isQuantized(1)) { // each image has a scale and a zero point of its own
      auto rows = quantizeRows(c, input, {1, 2, 3}, true);
      auto scales = weightScales(c, 1, 0, 3);
      if (failed(scales))
        return failure();
      Value centred = c.convert(c.sub(c.convert(rows.values, i32), rows.zeroPoints), i16);
      result = scaleSums(c, convolve(c, *t, centred, c.convert(t->filter, i16), i32), rows.scales, *scales,
                         !c.inputInfo(1).quantization.perTensor());
    } else {
      result = convolve(c, *t, t->input, t->filter, c.b.getF32Type());
    }
    if (c.hasInput(3))
      result = c.add(result, c.input(3));
    return c.setResult(0, c.activate(result, activation));
  }
  auto in = c.perTensor(c.inputInfo(2)), out = c.perTensor(c.outputInfo(0));
  auto range = activationRange(c, c.outputInfo(0), activation);
  auto factors = convolutionFactors(c, c.inputInfo(2), c.inputInfo(1), 0);
  if (failed(in) || failed(out) || failed(range) || failed(factors))
    return failure();
  const bool is16 = c.inputInfo(2).type == tfl::TensorType::INT16;
  Value sums = convolve(c, *t, widen(c, t->input, -in->second, i16),
                        widen(c, t->filter, -c.inputInfo(1).quantization.zeroPoints[0], i16),
                        is16 ? sumType16(c, 3) : i32);
  return c.setResult(0, finishSums(c, sums, 3, *factors, *out, *range));
}

LogicalResult conv3dTranspose(OpContext &c) {
  const auto &o = c.options<tfl::Conv3DOptions>();
  Value filter = c.input(1), input = c.input(2);
  if (!filter || !input)
    return failure();
  if (o.dilation_d_factor() != 1 || o.dilation_h_factor() != 1 || o.dilation_w_factor() != 1)
    return c.error("dilations are not supported");
  if (Emitter::rank(filter) != 5)
    return c.error("expected a filter of rank 5");
  auto t = transposed(c, input, c.transpose(filter, {0, 1, 2, 4, 3}), {o.stride_d(), o.stride_h(), o.stride_w()}, o.padding());
  if (failed(t))
    return failure();
  Value result = convolve(c, *t, t->input, t->filter, c.b.getF32Type());
  if (c.hasInput(3))
    result = c.add(result, c.input(3));
  return c.setResult(0, c.activate(result, o.fused_activation_function()));
}

} // namespace

void registerConv(OpTable &t) {
  t.add(Op::CONV_2D, 2, 3, 8, Float32 | Quantized, conv2d);
  t.add(Op::DEPTHWISE_CONV_2D, 2, 3, 7, Float32 | Quantized, depthwise);
  t.add(Op::CONV_3D, 2, 3, 1, Float32, conv3d);
  t.add(Op::TRANSPOSE_CONV, 3, 4, 5, Any, transposeConv);
  t.add(Op::CONV_3D_TRANSPOSE, 3, 4, 1, Any, conv3dTranspose);
}

} // namespace lathe::tflite
