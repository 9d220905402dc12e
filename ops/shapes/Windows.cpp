// Ops that move a window over an image: convolutions, pools, patches.
#include "ops/shapes/Families.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cmath>

namespace lathe::ops {

bool readLayout(const ShapeQuery &q, int64_t rank, Layout *layout) {
  std::string format = q.stringAttr("data_format");
  layout->rank = rank;
  layout->channelsFirst = format.substr(0, 2) == "NC";
  return format.empty() || format == "NHWC" || format == "NCHW" || format == "NDHWC" || format == "NCDHW";
}

namespace {

/// Positions of a window along one dimension; -1 where they are not known. A window that does not fit has none where `mayBeNone`.
absl::StatusOr<int64_t> windowed(int64_t size, int64_t window, int64_t stride, int64_t dilation, const std::string &padding, int64_t pads,
                                 bool mayBeNone = false) {
  if (stride <= 0 || dilation <= 0)
    return absl::InvalidArgumentError("strides and dilations have to be positive");
  if (size < 0 || (window < 0 && padding != "SAME"))
    return -1;
  if (padding == "SAME")
    return (size + stride - 1) / stride;
  int64_t reach;
  if (__builtin_mul_overflow(window - 1, dilation, &reach))
    return -1;
  int64_t room = size + pads - reach - 1;
  if (room < (mayBeNone ? -stride : 0))
    return absl::InvalidArgumentError(absl::StrCat("a window of ", window, " does not fit into ", size));
  return room < 0 ? 0 : room / stride + 1;
}

int64_t at(const std::vector<int64_t> &list, int64_t i, int64_t otherwise) {
  return i < static_cast<int64_t>(list.size()) ? list[i] : otherwise;
}

absl::Status conv(const ShapeQuery &q, Shapes *out, int64_t rank, bool isDepthwise, PartialShape input, PartialShape filter) {
  Layout layout;
  LATHE_CHECK(expectRank(filter, rank, "the filter"));
  if (!readLayout(q, rank, &layout))
    return absl::OkStatus();
  LATHE_CHECK(expectRank(input, rank, "the input"));
  std::vector<int64_t> strides = q.intsAttr("strides"), dilations = q.intsAttr("dilations"), pads = q.intsAttr("explicit_paddings");
  std::string padding = q.stringAttr("padding");
  int64_t depth = input ? (*input)[layout.channel()] : -1, filterDepth = filter ? (*filter)[rank - 2] : -1;
  // a convolution's channels may come in groups
  if (depth >= 0 && filterDepth > 0 && (isDepthwise ? depth != filterDepth : depth % filterDepth))
    return absl::InvalidArgumentError(absl::StrCat("an input of depth ", depth, " and a filter of ", filterDepth));
  if (const int64_t groups = !isDepthwise && depth > 0 && filterDepth > 0 ? depth / filterDepth : 1; filter && (*filter)[rank - 1] % groups > 0)
    return absl::InvalidArgumentError(absl::StrCat((*filter)[rank - 1], " filters for ", groups, " groups of channels"));
  std::vector<int64_t> result(static_cast<size_t>(rank), -1);
  result[0] = input ? (*input)[0] : -1;
  int64_t multiplier = filter ? (*filter)[rank - 1] : -1;
  if (isDepthwise) {
    int64_t in = depth >= 0 ? depth : filterDepth;
    if (multiplier < 0 || in < 0 || __builtin_mul_overflow(in, multiplier, &multiplier))
      multiplier = -1;
  }
  result[layout.channel()] = multiplier;
  // TensorFlow's function does not look at what some quantized convolutions pad besides
  const bool padsMore = !q.intsAttr("padding_list").empty();
  for (int64_t i = 0; i < rank - 2 && !padsMore; ++i) {
    int64_t d = layout.spatial(i);
    LATHE_ASSIGN(result[d], windowed(input ? (*input)[d] : -1, filter ? (*filter)[i] : -1, at(strides, d, 1), at(dilations, d, 1), padding,
                                     padding == "EXPLICIT" ? at(pads, 2 * d, 0) + at(pads, 2 * d + 1, 0) : 0));
  }
  (*out)[0] = result;
  return absl::OkStatus();
}

absl::Status conv(const ShapeQuery &q, Shapes *out, int64_t rank, bool isDepthwise) {
  return conv(q, out, rank, isDepthwise, q.inputShape(0), q.inputShape(1));
}

absl::Status conv2d(const ShapeQuery &q, Shapes *out) { return conv(q, out, 4, false); }
absl::Status conv3d(const ShapeQuery &q, Shapes *out) { return conv(q, out, 5, false); }
/// Of an image that is resized, where `resizes`, and padded before.
absl::Status fusedConv(const ShapeQuery &q, Shapes *out, bool resizes) {
  PartialShape image = q.inputShape(0);
  const int pads = resizes ? 2 : 1;
  LATHE_CHECK(expectRank(image, 4, "the input"));
  LATHE_CHECK(expectRank(q.inputShape(pads), 2, "the paddings"));
  std::optional<PartialValues> sizes = resizes ? q.inputValues(1) : std::nullopt;
  std::optional<std::vector<int64_t>> amounts = q.matrixValues(pads);
  if (image)
    for (size_t d = 0; d < 4; ++d) {
      int64_t &size = (*image)[d];
      if (resizes && (d == 1 || d == 2))
        size = sizes && sizes->size() == 2 ? (*sizes)[d - 1].value_or(-1) : -1;
      if (!amounts || amounts->size() != 8 || size < 0 || __builtin_add_overflow(size, (*amounts)[2 * d], &size) ||
          __builtin_add_overflow(size, (*amounts)[2 * d + 1], &size))
        size = -1;
    }
  return conv(q, out, 4, false, image, q.inputShape(pads + 1));
}
absl::Status padConv(const ShapeQuery &q, Shapes *out) { return fusedConv(q, out, false); }
absl::Status resizePadConv(const ShapeQuery &q, Shapes *out) { return fusedConv(q, out, true); }

absl::Status depthwise(const ShapeQuery &q, Shapes *out) { return conv(q, out, 4, true); }

/// With `hasDepth`, windows may lie over channels, too.
absl::Status pool(const ShapeQuery &q, Shapes *out, int64_t rank, bool hasDepth) {
  PartialShape input = q.inputShape(0);
  Layout layout;
  if (!readLayout(q, rank, &layout))
    return absl::OkStatus();
  LATHE_CHECK(expectRank(input, rank, "the input"));
  std::vector<int64_t> strides = q.intsAttr("strides"), windows = q.intsAttr("ksize"), pads = q.intsAttr("explicit_paddings");
  std::string padding = q.stringAttr("padding");
  std::vector<int64_t> result(static_cast<size_t>(rank), -1);
  for (int64_t d : {int64_t(0), layout.channel()})
    result[d] = input ? (*input)[d] : -1;
  for (int64_t i = -1; i < rank - 2; ++i) {
    const int64_t d = i < 0 ? layout.channel() : layout.spatial(i);
    if (i < 0 && q.numOutputs() == 2 && at(windows, d, 1) != 1)
      result[d] = -1; // TensorFlow's kernel keeps the channels, other than its function
    else if (i >= 0 || hasDepth)
      LATHE_ASSIGN(result[d], windowed(input ? (*input)[d] : -1, at(windows, d, 1), at(strides, d, 1), 1, padding,
                                       padding == "EXPLICIT" ? at(pads, 2 * d, 0) + at(pads, 2 * d + 1, 0) : 0));
  }
  (*out)[0] = result;
  if (q.numOutputs() == 2) // positions
    (*out)[1] = result;
  return absl::OkStatus();
}

/// Windows and strides come as inputs.
absl::Status poolBySizes(const ShapeQuery &q, Shapes *) {
  std::optional<PartialValues> windows = q.inputValues(1), strides = q.inputValues(2);
  Layout layout;
  auto isKnown = [](const std::optional<PartialValues> &values) {
    return values && values->size() == 4 && std::all_of(values->begin(), values->end(), [](auto &v) { return v.has_value(); });
  };
  if (!isKnown(windows) || !isKnown(strides) || !readLayout(q, 4, &layout))
    return absl::OkStatus();
  for (int64_t i = 0; i < 2; ++i)
    if (const int64_t stride = *(*strides)[layout.spatial(i)]; stride <= 0)
      return absl::InvalidArgumentError(absl::StrCat("a stride of ", stride));
  return absl::OkStatus();
}

absl::Status pool2d(const ShapeQuery &q, Shapes *out) { return pool(q, out, 4, false); }
absl::Status deepPool2d(const ShapeQuery &q, Shapes *out) { return pool(q, out, 4, true); }
absl::Status pool3d(const ShapeQuery &q, Shapes *out) { return pool(q, out, 5, false); }

/// The sizes may be those of the image alone.
absl::Status convInputGrad(const ShapeQuery &q, Shapes *out) {
  PartialShape sizes = q.inputShape(0), grads = q.inputShape(2), filter = q.inputShape(1);
  LATHE_CHECK(expectRank(sizes, 1, "the sizes of the input"));
  LATHE_CHECK(expectRank(filter, 4, "the filter"));
  if (const int64_t n = sizeAt(sizes, 0); n >= 0 && n != 2 && n != 4)
    return absl::InvalidArgumentError(absl::StrCat(n, " sizes of the input, expected 4 or 2"));
  PartialShape known = shapeOfValues(q.inputValues(0));
  if (!known || known->size() != 2) {
    (*out)[0] = known && known->size() == 4 ? known : unknownOfRank(4);
    if ((*(*out)[0])[0] < 0 && grads && grads->size() == 4)
      (*(*out)[0])[0] = (*grads)[0];
    return absl::OkStatus();
  }
  Layout layout;
  if (!readLayout(q, 4, &layout))
    return absl::OkStatus();
  if (grads && grads->size() == 4 && !mergeSizes((*grads)[layout.channel()], sizeAt(filter, 3)))
    return absl::InvalidArgumentError(
        absl::StrCat("gradients of depth ", (*grads)[layout.channel()], " of ", sizeAt(filter, 3), " filters"));
  std::vector<int64_t> result(4, -1);
  result[0] = grads && grads->size() == 4 ? (*grads)[0] : -1;
  result[layout.channel()] = filter && filter->size() == 4 ? (*filter)[2] : -1;
  for (int i = 0; i < 2; ++i)
    result[layout.spatial(i)] = (*known)[i];
  (*out)[0] = result;
  return absl::OkStatus();
}

/// Sizes of the dimensions after the first; all unknown where one of the images' or of the windows' is.
absl::StatusOr<std::vector<int64_t>> positions(const ShapeQuery &q, const PartialShape &input, const std::vector<int64_t> &windows) {
  std::vector<int64_t> strides = q.intsAttr("strides"), rates = q.intsAttr("rates"), result(windows.size(), -1);
  for (size_t i = 0; i < windows.size(); ++i)
    if (sizeAt(input, i + 1) < 0 || windows[i] < 0)
      return result;
  for (size_t i = 0; i < windows.size(); ++i) {
    const int64_t d = static_cast<int64_t>(i) + 1;
    LATHE_ASSIGN(result[i], windowed((*input)[d], windows[i], at(strides, d, 1), at(rates, d, 1), q.stringAttr("padding"), 0, true));
  }
  return result;
}

/// Output 0 is the patch under each position, as one long channel.
absl::Status patches(const ShapeQuery &q, Shapes *out, int64_t rank) {
  PartialShape input = q.inputShape(0);
  LATHE_CHECK(expectRank(input, rank, "the images"));
  std::vector<int64_t> windows, sizes, result{sizeAt(input, 0)};
  int64_t depth = sizeAt(input, static_cast<size_t>(rank) - 1);
  for (int64_t d = 1; d < rank - 1; ++d) {
    windows.push_back(at(q.intsAttr("ksizes"), d, 1));
    if (depth < 0 || windows.back() < 0 || __builtin_mul_overflow(depth, windows.back(), &depth))
      depth = -1;
  }
  LATHE_ASSIGN(sizes, positions(q, input, windows));
  result.insert(result.end(), sizes.begin(), sizes.end());
  result.push_back(depth);
  (*out)[0] = result;
  return absl::OkStatus();
}

absl::Status imagePatches(const ShapeQuery &q, Shapes *out) { return patches(q, out, 4); }
/// TensorFlow's function loses a dimension where a size is not known.
absl::Status volumePatches(const ShapeQuery &q, Shapes *out) {
  LATHE_CHECK(patches(q, out, 5));
  if ((*(*out)[0])[1] < 0)
    (*out)[0].reset();
  return absl::OkStatus();
}

absl::Status dilation(const ShapeQuery &q, Shapes *out) {
  PartialShape input = q.inputShape(0), filter = q.inputShape(1);
  LATHE_CHECK(expectRank(input, 4, "the input"));
  LATHE_CHECK(expectRank(filter, 3, "the filter"));
  std::vector<int64_t> sizes;
  LATHE_ASSIGN(sizes, positions(q, input, {sizeAt(filter, 0), sizeAt(filter, 1)}));
  int64_t depth = sizeAt(filter, 2);
  if (sizes[0] >= 0) {
    std::optional<int64_t> merged = mergeSizes(sizeAt(input, 3), depth);
    if (!merged)
      return absl::InvalidArgumentError(absl::StrCat("an input of depth ", sizeAt(input, 3), " and a filter of ", depth));
    depth = *merged;
  }
  (*out)[0] = std::vector<int64_t>{sizeAt(input, 0), sizes[0], sizes[1], depth};
  return absl::OkStatus();
}

/// The gradient of a gradient has the pool's output; image and gradient of it are alike.
template <ShapeFunction pooled>
absl::Status poolGradGrad(const ShapeQuery &q, Shapes *out) {
  LATHE_CHECK(pooled(q, out));
  LATHE_CHECK(mergeShapes(q.inputShape(1), (*out)[0]).status());
  return mergeShapes(q.inputShape(0), q.inputShape(2)).status();
}

absl::Status poolGradGradBySizes(const ShapeQuery &q, Shapes *) { return mergeShapes(q.inputShape(0), q.inputShape(2)).status(); }

/// `argmax` and the result are of the pool's output; image and gradient of it are alike.
absl::Status poolGradGradAt(const ShapeQuery &q, Shapes *out) {
  LATHE_CHECK(deepPool2d(q, out));
  LATHE_CHECK(mergeShapes(q.inputShape(2), (*out)[0]).status());
  return mergeShapes(q.inputShape(0), q.inputShape(1)).status();
}

/// Rows and columns divide by a ratio. Sequences have an element more than there are; TensorFlow's function leaves it out.
absl::Status fractionalPool(const ShapeQuery &q, Shapes *out) {
  PartialShape input = q.inputShape(0);
  LATHE_CHECK(expectRank(input, 4, "the input"));
  std::vector<float> ratios = q.floatsAttr("pooling_ratio");
  std::vector<int64_t> result(4, -1);
  for (size_t i = 0; i < 4; ++i)
    if (const int64_t size = sizeAt(input, i); size >= 0 && i < ratios.size() && ratios[i] >= 1)
      result[i] = static_cast<int64_t>(std::floor(static_cast<double>(static_cast<float>(size) / ratios[i])));
  (*out)[0] = result;
  (*out)[1] = (*out)[2] = unknownOfRank(1);
  return absl::OkStatus();
}

} // namespace

void addWindowShapes(ShapeTable *table) {
  auto all = addsTo(table);
  all({"Conv2D", "QuantizedConv2D", "QuantizedConv2DAndRelu", "QuantizedConv2DAndReluAndRequantize", "QuantizedConv2DAndRequantize",
       "QuantizedConv2DPerChannel", "QuantizedConv2DWithBias", "QuantizedConv2DWithBiasAndRelu",
       "QuantizedConv2DWithBiasAndReluAndRequantize", "QuantizedConv2DWithBiasAndRequantize",
       "QuantizedConv2DWithBiasSignedSumAndReluAndRequantize", "QuantizedConv2DWithBiasSumAndRelu",
       "QuantizedConv2DWithBiasSumAndReluAndRequantize"},
      conv2d);
  all({"FusedPadConv2D"}, padConv);
  all({"FusedResizeAndPadConv2D"}, resizePadConv);
  all({"Conv3D"}, conv3d);
  all({"DepthwiseConv2dNative", "QuantizedDepthwiseConv2D", "QuantizedDepthwiseConv2DWithBias", "QuantizedDepthwiseConv2DWithBiasAndRelu",
       "QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize"},
      depthwise);
  all({"AvgPool", "QuantizedAvgPool"}, pool2d);
  all({"MaxPool", "MaxPoolWithArgmax", "QuantizedMaxPool"}, deepPool2d);
  all({"AvgPool3D", "MaxPool3D"}, pool3d);
  all({"MaxPoolV2"}, poolBySizes);
  all({"MaxPoolGradGrad"}, poolGradGrad<deepPool2d>);
  all({"MaxPoolGradGradV2"}, poolGradGradBySizes);
  all({"MaxPool3DGradGrad"}, poolGradGrad<pool3d>);
  all({"MaxPoolGradGradWithArgmax"}, poolGradGradAt);
  all({"FractionalAvgPool", "FractionalMaxPool"}, fractionalPool);
  all({"ExtractImagePatches"}, imagePatches);
  all({"ExtractVolumePatches"}, volumePatches);
  all({"Dilation2D"}, dilation);
  all({"Conv2DBackpropInput"}, convInputGrad);
}

} // namespace lathe::ops
