// Convolutions and their gradients.
#include "passes/legalize/array/ArrayHelpers.h"
#include "passes/legalize/nn/Window.h"

using namespace mlir;

namespace lathe::legalize {
namespace {

/// What the attributes of a convolution node say.
struct Conv {
  DataFormat format;
  SmallVector<WindowDim> dims;
  bool depthwise = false;

  SmallVector<int64_t> list(int64_t WindowDim::*field) const {
    SmallVector<int64_t> values;
    for (const WindowDim &d : dims)
      values.push_back(d.*field);
    return values;
  }
};

FailureOr<Conv> parseConv(NodeContext &c, const Dims &input, const Dims &filter, bool depthwise, bool mayBeOpen = false) {
  Conv conv;
  conv.depthwise = depthwise;
  int64_t rank = input.size();
  auto format = DataFormat::parse(c, c.attrString("data_format"), rank);
  if (failed(format))
    return failure();
  conv.format = *format;
  if (int64_t(filter.size()) != rank)
    return c.error("expected a filter of rank " + Twine(rank) + ", found rank " + Twine(filter.size()));
  SmallVector<int64_t> ones(rank, 1);
  SmallVector<int64_t> strides = c.attrInts("strides", ones), dilations = c.attrInts("dilations", ones);
  if (dilations.empty())
    dilations = ones;
  // The generic Conv op gives strides of the spatial dimensions only.
  bool spatialOnly = int64_t(strides.size()) == rank - 2;
  if (!spatialOnly && int64_t(strides.size()) != rank)
    return c.error("expected " + Twine(rank) + " strides, found " + Twine(strides.size()));
  if (int64_t(dilations.size()) != rank && int64_t(dilations.size()) != rank - 2)
    return c.error("expected " + Twine(rank) + " dilations, found " + Twine(dilations.size()));
  for (auto [i, axis] : llvm::enumerate(conv.format.spatial)) {
    WindowDim d;
    d.input = input[axis];
    auto size = constantOf(filter[i]);
    if (!size)
      return c.error("the filter's spatial sizes must be known at compile time");
    d.size = *size;
    d.stride = strides[spatialOnly ? i : axis];
    d.dilation = dilations[int64_t(dilations.size()) == rank ? axis : i];
    conv.dims.push_back(d);
  }
  if (!spatialOnly && (strides[conv.format.batch] != 1 || strides[conv.format.feature] != 1))
    return c.error("strides over batch or channels are not supported");
  if (failed(computePadding(c, conv.format, conv.dims, c.attrString("padding", "VALID"),
                            c.attrInts("explicit_paddings"), mayBeOpen)))
    return failure();
  return conv;
}

hlo::ConvDimensionNumbersAttr numbers(NodeContext &c, const DataFormat &f, int64_t inputFeature, int64_t outputFeature) {
  SmallVector<int64_t> kernel = llvm::to_vector(llvm::seq<int64_t>(0, f.spatial.size()));
  return hlo::ConvDimensionNumbersAttr::get(c.b.getContext(), f.batch, f.feature, f.spatial, inputFeature, outputFeature,
                                            kernel, f.batch, f.feature, f.spatial);
}

/// The depthwise filter [.., in, multiplier] as the filter of a grouped convolution [.., 1, in * multiplier]; without channels
/// as that of a convolution of no features, as there are no 0 groups.
Value depthwiseFilter(NodeContext &c, Value filter) {
  Dims dims = c.dims(filter);
  size_t n = dims.size();
  if (constantOf(dims[n - 2]) == 0) {
    dims[n - 1] = c.size(0);
    return c.reshape(filter, dims);
  }
  dims[n - 1] = productOf({dims[n - 2], dims[n - 1]}, c.b.getContext());
  dims[n - 2] = c.size(1);
  return c.reshape(filter, dims);
}

/// Null and an error where they do not fit together.
Value convolve(NodeContext &c, Value input, Value filter, bool depthwise) {
  auto error = [&](const Twine &why) -> Value {
    (void)c.error(why);
    return {};
  };
  if (Emitter::rank(input) < 3)
    return error("expected an input of rank 4, found rank " + Twine(Emitter::rank(input)));
  // several batch dimensions are one for the convolution
  int64_t batchDims = c.attrInt("batch_dims", 1);
  Dims batch;
  if (batchDims != 1) {
    Dims all = c.dims(input);
    if (batchDims < 1 || batchDims + 2 > int64_t(all.size()))
      return error("batch_dims is " + Twine(batchDims) + " for an input of rank " + Twine(all.size()));
    batch.append(all.begin(), all.begin() + batchDims);
    Dims flat{productOf(batch, c.b.getContext())};
    flat.append(all.begin() + batchDims, all.end());
    input = c.reshape(input, flat);
    if (!input)
      return {};
  }
  Dims in = c.dims(input), fd = c.dims(filter);
  auto conv = parseConv(c, in, fd, depthwise, /*mayBeOpen=*/true);
  if (failed(conv))
    return {};
  int64_t rank = in.size();
  AffineExpr channels = in[conv->format.feature];
  int64_t groups = 1;
  if (depthwise) {
    if (!c.ctx.unify(channels, fd[rank - 2], c.name()))
      return error("the filter has not as many channels as the input");
    auto n = constantOf(c.ctx.resolve(channels));
    if (!n)
      return error("the number of channels must be known at compile time");
    groups = std::max<int64_t>(*n, 1);
    filter = depthwiseFilter(c, filter);
  } else {
    auto n = constantOf(channels), per = constantOf(fd[rank - 2]), outputs = constantOf(fd[rank - 1]);
    if (!n && !c.ctx.unify(channels, fd[rank - 2], c.name()))
      return error("the number of channels must be known at compile time");
    if (n && (!per || !outputs))
      return error("the filter's channels must be known at compile time");
    if (n) {
      if (*per == 0 || *n % *per != 0)
        return error("input has " + Twine(*n) + " channels, which is no multiple of the filter's " + Twine(*per));
      groups = *n / *per;
      if (groups == 0 || *outputs % groups != 0)
        return error("the number of filters " + Twine(*outputs) + " is no multiple of the groups " + Twine(groups));
    }
  }
  hlo::ConvWindow window;
  window.strides = conv->list(&WindowDim::stride);
  window.rhsDilation = conv->list(&WindowDim::dilation);
  bool same = c.attrString("padding") == "SAME";
  for (const WindowDim &d : conv->dims) {
    int64_t low = d.low, high = d.high;
    // TensorFlow's convolutions of volumes on a CPU centre windows that are further apart than they are wide
    if (auto n = constantOf(d.input); n && *n > 0 && same && rank == 5) {
      int64_t total = ((*n + d.stride - 1) / d.stride - 1) * d.stride + d.effective() - *n;
      low = total / 2;
      high = total - low;
    } else if (!n && same && rank == 5 && d.effective() < d.stride) {
      if (!d.input.isMultipleOf(d.stride))
        return error("SAME padding with stride " + Twine(d.stride) + " needs a spatial size known at compile time");
      low = (d.effective() - d.stride) / 2;
      high = d.effective() - d.stride - low;
    }
    window.padding.push_back({low, high});
  }
  input = padOpen(c, input, c.scalar(0, Emitter::elementType(input)), conv->format.spatial, conv->dims);
  Value result =
      c.make<hlo::ConvolutionOp>(input, filter, window, numbers(c, conv->format, rank - 2, rank - 1), groups);
  if (!batch.empty()) {
    Dims dims = batch, flat = c.dims(result);
    dims.append(flat.begin() + 1, flat.end());
    result = c.reshape(result, dims);
  }
  return result;
}

LogicalResult lowerConv(NodeContext &c, bool depthwise) {
  Value result = convolve(c, c.input(0), c.input(1), depthwise);
  return result ? c.setResult(0, result) : failure();
}

/// d(input): the gradient, dilated by the strides, convolved with the reversed filter whose channels are swapped.
LogicalResult lowerBackpropInput(NodeContext &c, bool depthwise, bool sizesAreTensor) {
  Dims in;
  if (sizesAreTensor) {
    auto sizes = c.shapeInput(0);
    if (failed(sizes))
      return failure();
    in = *sizes;
  } else {
    in = c.dims(c.input(0));
  }
  Value filter = c.input(1), grad = c.input(2);
  Dims fd = c.dims(filter);
  // Conv2DBackpropInput takes sizes [height, width] alone, too.
  if (in.size() == fd.size() - 2 && in.size() == 2) {
    Dims all = c.dims(grad);
    auto format = DataFormat::parse(c, c.attrString("data_format"), fd.size());
    if (failed(format))
      return failure();
    for (auto [i, axis] : llvm::enumerate(format->spatial))
      all[axis] = in[i];
    all[format->feature] = fd[fd.size() - 2];
    in = all;
  }
  auto conv = parseConv(c, in, fd, depthwise);
  if (failed(conv))
    return failure();
  int64_t rank = in.size();
  if (Emitter::rank(grad) != rank)
    return c.error("expected a gradient of rank " + Twine(rank) + ", found rank " + Twine(Emitter::rank(grad)));
  if (constantOf(productOf(c.dims(grad), c.b.getContext())) == int64_t(0))
    return c.setResult(0, c.splat(0, in, Emitter::elementType(grad)));
  auto channels = constantOf(in[conv->format.feature]), per = constantOf(fd[rank - 2]);
  if (!channels || !per || *per == 0)
    return c.error("the number of channels must be known at compile time");
  int64_t groups = depthwise ? *channels : *channels / *per;
  if (depthwise)
    filter = depthwiseFilter(c, filter);
  hlo::ConvWindow window;
  window.strides.assign(conv->dims.size(), 1);
  window.lhsDilation = conv->list(&WindowDim::stride);
  window.rhsDilation = conv->list(&WindowDim::dilation);
  Dims gd = c.dims(grad);
  SmallVector<int64_t> spatial;
  for (auto [i, d] : llvm::enumerate(conv->dims)) {
    // open sizes are often multiples of one another: what is between the last window and the end is a number then
    auto behind = constantOf(hlo::simplify(d.input - (gd[conv->format.spatial[i]] - 1) * d.stride));
    int64_t low = d.effective() - 1 - d.low, high;
    if (behind && *behind > INT32_MIN && *behind < INT32_MAX)
      high = *behind - 1 - low + d.effective() - 1;
    else if (d.stride == 1)
      high = d.effective() - 1 - d.high;
    else
      return c.error("spatial sizes must be known at compile time");
    window.padding.push_back({low, high});
    spatial.push_back(i);
  }
  filter = c.reverse(filter, spatial);
  int64_t inputFeature = rank - 1, outputFeature = rank - 2;
  if (groups > 1) {
    // [.., i/g, g * o] -> [.., g * i/g, o]: filters of a group together, channels swapped.
    Dims f = c.dims(filter), split(f.begin(), f.end() - 1);
    auto outputs = constantOf(f[rank - 1]);
    if (!outputs || *outputs % groups)
      return c.error("the number of filters must be known and a multiple of the groups");
    split.push_back(c.size(groups));
    split.push_back(c.size(*outputs / groups));
    filter = c.reshape(filter, split);
    SmallVector<int64_t> permutation = spatial;
    permutation.append({rank - 1, rank - 2, rank});
    filter = c.transpose(filter, permutation);
    Dims joined(f.begin(), f.end() - 2);
    joined.push_back(productOf({c.size(groups), f[rank - 2]}, c.b.getContext()));
    joined.push_back(c.size(*outputs / groups));
    filter = c.reshape(filter, joined);
  }
  return c.setResult(0, c.make<hlo::ConvolutionOp>(grad, filter, window,
                                                   numbers(c, conv->format, inputFeature, outputFeature), groups));
}

/// d(filter): the input convolved with the gradient; batch becomes the contracted feature, channels the batch.
LogicalResult lowerBackpropFilter(NodeContext &c, bool depthwise, bool sizesAreTensor) {
  Value input = c.input(0), grad = c.input(2);
  Dims fd;
  if (sizesAreTensor) {
    auto sizes = c.shapeInput(1);
    if (failed(sizes))
      return failure();
    fd = *sizes;
  } else {
    fd = c.dims(c.input(1));
  }
  Dims in = c.dims(input);
  auto conv = parseConv(c, in, fd, depthwise);
  if (failed(conv))
    return failure();
  int64_t rank = in.size();
  if (Emitter::rank(grad) != rank)
    return c.error("expected a gradient of rank " + Twine(rank) + ", found rank " + Twine(Emitter::rank(grad)));
  auto channels = constantOf(in[conv->format.feature]), per = constantOf(fd[rank - 2]);
  if (!channels || !per || *per == 0)
    return c.error("the number of channels must be known at compile time");
  int64_t groups = depthwise ? *channels : *channels / *per;
  const DataFormat &f = conv->format;
  Dims gd = c.dims(grad);
  if (constantOf(productOf(gd, c.b.getContext())) == int64_t(0))
    return c.setResult(0, c.splat(0, fd, Emitter::elementType(grad)));
  hlo::ConvWindow window;
  window.strides = conv->list(&WindowDim::dilation);
  window.rhsDilation = conv->list(&WindowDim::stride);
  for (auto [i, d] : llvm::enumerate(conv->dims)) {
    auto n = constantOf(d.input), out = constantOf(gd[f.spatial[i]]);
    if (!n || !out)
      return c.error("spatial sizes must be known at compile time");
    // The window over the padded input must give exactly the filter's size.
    int64_t high = (*out - 1) * d.stride + 1 + (d.size - 1) * d.dilation - *n - d.low;
    window.padding.push_back({d.low, high});
  }
  SmallVector<int64_t> kernelSpatial = llvm::to_vector(llvm::seq<int64_t>(0, rank - 2));
  // lhs: batch = channels, feature = batch; rhs: input feature = batch, output feature = filters.
  auto dims = hlo::ConvDimensionNumbersAttr::get(c.b.getContext(), f.feature, f.batch, f.spatial, f.batch, f.feature,
                                                 f.spatial, rank - 2, rank - 1, kernelSpatial);
  Value result = c.make<hlo::ConvolutionOp>(input, grad, window, dims, int64_t(1), groups);
  if (depthwise)
    result = c.reshape(result, fd);
  return c.setResult(0, result);
}

} // namespace

void registerConv(HandlerTable &t) {
  for (StringRef op : {"Conv2D", "Conv3D", "Conv"})
    t.add(op, 2, [](NodeContext &c) { return lowerConv(c, false); });
  // what was put together for speed before graphs were compiled
  t.add("FusedPadConv2D", 3, [](NodeContext &c) {
    Value x = mirrorPad(c, c.input(0), 1);
    x = x ? convolve(c, x, c.input(2), false) : x;
    return x ? c.setResult(0, x) : failure();
  });
  t.add("FusedResizeAndPadConv2D", 4, [](NodeContext &c) {
    Value x = resizeBilinear(c, c.input(0), 1);
    x = x ? mirrorPad(c, x, 2) : x;
    x = x ? convolve(c, x, c.input(3), false) : x;
    return x ? c.setResult(0, x) : failure();
  });
  t.add("DepthwiseConv2dNative", 2, [](NodeContext &c) { return lowerConv(c, true); });
  for (StringRef op : {"Conv2DBackpropInput", "Conv3DBackpropInputV2"})
    t.add(op, 3, [](NodeContext &c) { return lowerBackpropInput(c, false, true); });
  for (StringRef op : {"Conv2DBackpropInputV2", "Conv3DBackpropInput"})
    t.add(op, 3, [](NodeContext &c) { return lowerBackpropInput(c, false, false); });
  t.add("DepthwiseConv2dNativeBackpropInput", 3, [](NodeContext &c) { return lowerBackpropInput(c, true, true); });
  for (StringRef op : {"Conv2DBackpropFilter", "Conv3DBackpropFilterV2"})
    t.add(op, 3, [](NodeContext &c) { return lowerBackpropFilter(c, false, true); });
  for (StringRef op : {"Conv2DBackpropFilterV2", "Conv3DBackpropFilter"})
    t.add(op, 3, [](NodeContext &c) { return lowerBackpropFilter(c, false, false); });
  t.add("DepthwiseConv2dNativeBackpropFilter", 3, [](NodeContext &c) { return lowerBackpropFilter(c, true, true); });
}

} // namespace lathe::legalize
