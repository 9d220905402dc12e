// Convolutions, pools, normalizations, losses.
#include "ops/shapes/Families.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

namespace lathe::ops {
namespace {

/// Where batch, channels and spatial dimensions lie.
struct Layout {
  int64_t rank = 4;
  bool channelsFirst = false;
  int64_t channel() const { return channelsFirst ? 1 : rank - 1; }
  int64_t spatial(int64_t i) const { return channelsFirst ? i + 2 : i + 1; }
};

/// False for a format that is not laid out like that.
bool readLayout(const ShapeQuery &q, int64_t rank, Layout *layout) {
  std::string format = q.stringAttr("data_format");
  layout->rank = rank;
  layout->channelsFirst = format.substr(0, 2) == "NC";
  return format.empty() || format == "NHWC" || format == "NCHW" || format == "NDHWC" || format == "NCDHW";
}

/// Positions of a window along one dimension; -1 where they are not known.
absl::StatusOr<int64_t> windowed(int64_t size, int64_t window, int64_t stride, int64_t dilation, const std::string &padding, int64_t pads) {
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
  if (room < 0)
    return absl::InvalidArgumentError(absl::StrCat("a window of ", window, " does not fit into ", size));
  return room / stride + 1;
}

int64_t at(const std::vector<int64_t> &list, int64_t i, int64_t otherwise) {
  return i < static_cast<int64_t>(list.size()) ? list[i] : otherwise;
}

absl::Status conv(const ShapeQuery &q, Shapes *out, int64_t rank, bool isDepthwise) {
  PartialShape input = q.inputShape(0), filter = q.inputShape(1);
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
  std::vector<int64_t> result(static_cast<size_t>(rank), -1);
  result[0] = input ? (*input)[0] : -1;
  int64_t multiplier = filter ? (*filter)[rank - 1] : -1;
  if (isDepthwise) {
    int64_t in = depth >= 0 ? depth : filterDepth;
    if (multiplier < 0 || in < 0 || __builtin_mul_overflow(in, multiplier, &multiplier))
      multiplier = -1;
  }
  result[layout.channel()] = multiplier;
  for (int64_t i = 0; i < rank - 2; ++i) {
    int64_t d = layout.spatial(i);
    LATHE_ASSIGN(result[d], windowed(input ? (*input)[d] : -1, filter ? (*filter)[i] : -1, at(strides, d, 1), at(dilations, d, 1), padding,
                                     padding == "EXPLICIT" ? at(pads, 2 * d, 0) + at(pads, 2 * d + 1, 0) : 0));
  }
  (*out)[0] = result;
  return absl::OkStatus();
}

absl::Status conv2d(const ShapeQuery &q, Shapes *out) { return conv(q, out, 4, false); }
absl::Status conv3d(const ShapeQuery &q, Shapes *out) { return conv(q, out, 5, false); }
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
    if (i >= 0 || hasDepth)
      LATHE_ASSIGN(result[d], windowed(input ? (*input)[d] : -1, at(windows, d, 1), at(strides, d, 1), 1, padding,
                                       padding == "EXPLICIT" ? at(pads, 2 * d, 0) + at(pads, 2 * d + 1, 0) : 0));
  }
  (*out)[0] = result;
  if (q.numOutputs() > 1)
    (*out)[1] = result;
  return absl::OkStatus();
}

absl::Status pool2d(const ShapeQuery &q, Shapes *out) { return pool(q, out, 4, false); }
absl::Status deepPool2d(const ShapeQuery &q, Shapes *out) { return pool(q, out, 4, true); }
absl::Status pool3d(const ShapeQuery &q, Shapes *out) { return pool(q, out, 5, false); }

/// Output 0 is the shape that input `i` holds.
template <int i>
absl::Status shapeInInput(const ShapeQuery &q, Shapes *out) {
  (*out)[0] = shapeOfValues(q.inputValues(i));
  return absl::OkStatus();
}

/// The sizes may be those of the image alone.
absl::Status convInputGrad(const ShapeQuery &q, Shapes *out) {
  PartialShape sizes = q.inputShape(0), grads = q.inputShape(2), filter = q.inputShape(1);
  LATHE_CHECK(expectRank(sizes, 1, "the sizes of the input"));
  PartialShape known = shapeOfValues(q.inputValues(0));
  if (!known || known->size() != 2) {
    (*out)[0] = known && known->size() == 4 ? known : unknownOfRank(4);
    return absl::OkStatus();
  }
  Layout layout;
  if (!readLayout(q, 4, &layout))
    return absl::OkStatus();
  std::vector<int64_t> result(4, -1);
  result[0] = grads && grads->size() == 4 ? (*grads)[0] : -1;
  result[layout.channel()] = filter && filter->size() == 4 ? (*filter)[2] : -1;
  for (int i = 0; i < 2; ++i)
    result[layout.spatial(i)] = (*known)[i];
  (*out)[0] = result;
  return absl::OkStatus();
}

absl::Status biasAdd(const ShapeQuery &q, Shapes *out) {
  PartialShape value = q.inputShape(0), bias = q.inputShape(1);
  LATHE_CHECK(expectRank(bias, 1, "the bias"));
  LATHE_CHECK(expectRankAtLeast(value, 2, "the value"));
  if (value && bias) {
    int64_t &depth = (*value)[q.stringAttr("data_format") == "NCHW" ? 1 : value->size() - 1];
    std::optional<int64_t> size = mergeSizes(depth, (*bias)[0]);
    if (!size)
      return absl::InvalidArgumentError(absl::StrCat("a bias of ", (*bias)[0], " for a depth of ", depth));
    depth = *size;
  }
  (*out)[0] = value;
  return absl::OkStatus();
}

absl::Status biasAddGrad(const ShapeQuery &q, Shapes *out) {
  PartialShape value = q.inputShape(0);
  LATHE_CHECK(expectRankAtLeast(value, 2, "the value"));
  int64_t depth = value ? (*value)[q.stringAttr("data_format") == "NCHW" ? 1 : value->size() - 1] : -1;
  (*out)[0] = std::vector<int64_t>{depth};
  return absl::OkStatus();
}

absl::Status batchNorm(const ShapeQuery &q, Shapes *out) {
  PartialShape x = q.inputShape(0);
  Layout layout;
  if (!x || !readLayout(q, static_cast<int64_t>(x->size()), &layout) || x->size() < 4)
    return absl::OkStatus();
  int64_t depth = (*x)[layout.channel()];
  for (int i = 1; i < 5 && i < q.numInputs(); ++i) {
    PartialShape s = q.inputShape(i);
    if (i > 2 && q.boolAttr("is_training"))
      break; // mean and variance are not read
    LATHE_CHECK(expectRank(s, 1, absl::StrCat("input ", i)));
    // mean and variance may be empty
    if (s && (*s)[0] > 0) {
      std::optional<int64_t> size = mergeSizes(depth, (*s)[0]);
      if (!size)
        return absl::InvalidArgumentError(absl::StrCat("input ", i, " has ", (*s)[0], " elements for a depth of ", depth));
      depth = *size;
    }
  }
  (*x)[layout.channel()] = depth;
  (*out)[0] = x;
  for (int i = 1; i < 5 && i < q.numOutputs(); ++i)
    (*out)[i] = std::vector<int64_t>{depth};
  return absl::OkStatus();
}

absl::Status atLeastVector(const ShapeQuery &q, Shapes *out) {
  LATHE_CHECK(expectRankAtLeast(q.inputShape(0), 1, "the logits"));
  return sameShape(q, out);
}

absl::Status crossEntropy(const ShapeQuery &q, Shapes *out) {
  PartialShape shape;
  LATHE_ASSIGN(shape, broadcastShapes(q.inputShape(0), q.inputShape(1)));
  LATHE_CHECK(expectRank(shape, 2, "the logits"));
  (*out)[0] = std::vector<int64_t>{shape ? (*shape)[0] : -1};
  (*out)[1] = shape ? shape : unknownOfRank(2);
  return absl::OkStatus();
}

absl::Status sparseCrossEntropy(const ShapeQuery &q, Shapes *out) {
  PartialShape logits = q.inputShape(0), labels = q.inputShape(1);
  LATHE_CHECK(expectRank(logits, 2, "the logits"));
  LATHE_CHECK(expectRank(labels, 1, "the labels"));
  int64_t a = logits ? (*logits)[0] : -1, b = labels ? (*labels)[0] : -1;
  std::optional<int64_t> rows = mergeSizes(a, b);
  if (!rows)
    return absl::InvalidArgumentError(absl::StrCat(a, " rows of logits and ", b, " labels"));
  (*out)[0] = std::vector<int64_t>{*rows};
  (*out)[1] = std::vector<int64_t>{*rows, logits ? (*logits)[1] : -1};
  return absl::OkStatus();
}

absl::Status topK(const ShapeQuery &q, Shapes *out) {
  PartialShape shape = q.inputShape(0);
  LATHE_CHECK(expectRankAtLeast(shape, 1, "the input"));
  if (!shape)
    return absl::OkStatus();
  std::optional<int64_t> k = q.numInputs() > 1 ? scalarValue(q, 1) : std::optional<int64_t>(q.intAttr("k"));
  int64_t &size = shape->back();
  if (k && *k >= 0 && size >= 0 && *k > size)
    return absl::InvalidArgumentError(absl::StrCat("the input has ", size, " columns, fewer than k = ", *k));
  size = k && *k >= 0 ? *k : -1;
  (*out)[0] = (*out)[1] = shape;
  return absl::OkStatus();
}

absl::Status inTopK(const ShapeQuery &q, Shapes *out) {
  LATHE_CHECK(expectRank(q.inputShape(0), 2, "the predictions"));
  LATHE_CHECK(expectRank(q.inputShape(1), 1, "the targets"));
  PartialShape p = q.inputShape(0), t = q.inputShape(1);
  std::optional<int64_t> rows = mergeSizes(p ? (*p)[0] : -1, t ? (*t)[0] : -1);
  if (!rows)
    return absl::InvalidArgumentError("predictions and targets differ in number");
  (*out)[0] = std::vector<int64_t>{*rows};
  return absl::OkStatus();
}

} // namespace

void addNnShapes(ShapeTable *table) {
  auto all = [&](std::initializer_list<const char *> ops, ShapeFunction f) {
    for (const char *op : ops)
      table->emplace_back(op, f);
  };
  all({"Elu", "FakeQuantWithMinMaxArgs", "FakeQuantWithMinMaxVars", "LeakyRelu", "Relu", "Relu6", "Selu", "Softplus", "Softsign",
       "MaxPoolGrad", "QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3"},
      sameShape);
  all({"EluGrad", "LeakyReluGrad", "Relu6Grad", "ReluGrad", "SeluGrad", "SoftplusGrad", "SoftsignGrad"}, mergedShape);
  all({"LogSoftmax", "Softmax"}, atLeastVector);
  all({"Conv2D"}, conv2d);
  all({"Conv3D"}, conv3d);
  all({"DepthwiseConv2dNative"}, depthwise);
  all({"AvgPool"}, pool2d);
  all({"MaxPool", "MaxPoolWithArgmax"}, deepPool2d);
  all({"AvgPool3D", "MaxPool3D"}, pool3d);
  all({"Conv2DBackpropInput"}, convInputGrad);
  all({"BiasAdd"}, biasAdd);
  all({"BiasAddGrad"}, biasAddGrad);
  all({"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"}, batchNorm);
  all({"SoftmaxCrossEntropyWithLogits"}, crossEntropy);
  all({"SparseSoftmaxCrossEntropyWithLogits"}, sparseCrossEntropy);
  all({"L2Loss"}, scalarShape);
  all({"TopK", "TopKV2"}, topK);
  all({"InTopK", "InTopKV2"}, inTopK);
}

} // namespace lathe::ops
