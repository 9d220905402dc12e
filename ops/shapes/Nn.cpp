// Normalizations, losses, the largest elements.
#include "ops/shapes/Families.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

namespace lathe::ops {
namespace {

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

/// The images' shape with its depth, which vectors of the inputs have, too: empty ones say nothing.
absl::Status imagesWithDepth(const ShapeQuery &q, std::initializer_list<int> vectors, PartialShape *x, int64_t *depth) {
  const bool isVolume = q.stringAttr("data_format").find('D') != std::string::npos;
  Layout layout;
  *depth = -1;
  if (!readLayout(q, isVolume ? 5 : 4, &layout))
    return absl::OkStatus();
  LATHE_ASSIGN(*x, mergeShapes(*x, unknownOfRank(layout.rank)));
  *depth = (**x)[layout.channel()];
  for (int i : vectors) {
    PartialShape s = q.inputShape(i);
    LATHE_CHECK(expectRank(s, 1, absl::StrCat("input ", i)));
    if (!s || (*s)[0] <= 0)
      continue;
    std::optional<int64_t> size = mergeSizes(*depth, (*s)[0]);
    if (!size)
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " has ", (*s)[0], " elements for a depth of ", *depth));
    *depth = *size;
  }
  (**x)[layout.channel()] = *depth;
  return absl::OkStatus();
}

absl::Status batchNorm(const ShapeQuery &q, Shapes *out) {
  PartialShape x = q.inputShape(0);
  int64_t depth;
  // in training mean and variance are read where they are averaged with new ones
  if (q.boolAttr("is_training") && q.floatAttr("exponential_avg_factor") == 1)
    LATHE_CHECK(imagesWithDepth(q, {1, 2}, &x, &depth));
  else
    LATHE_CHECK(imagesWithDepth(q, {1, 2, 3, 4}, &x, &depth));
  (*out)[0] = x;
  for (int i = 1; i < 5 && i < q.numOutputs(); ++i)
    (*out)[i] = std::vector<int64_t>{depth};
  return absl::OkStatus();
}

absl::Status batchNormGrad(const ShapeQuery &q, Shapes *out) {
  PartialShape grad = q.inputShape(0), x = q.inputShape(1);
  int64_t depth, same;
  LATHE_CHECK(imagesWithDepth(q, {2, 3, 4}, &x, &depth));
  LATHE_CHECK(imagesWithDepth(q, {2, 3, 4}, &grad, &same));
  std::optional<int64_t> merged = mergeSizes(depth, same);
  if (!merged)
    return absl::InvalidArgumentError(absl::StrCat("images of depth ", depth, " and gradients of ", same));
  Layout layout;
  if (grad && readLayout(q, static_cast<int64_t>(grad->size()), &layout))
    (*grad)[layout.channel()] = *merged;
  (*out)[0] = grad;
  (*out)[1] = (*out)[2] = std::vector<int64_t>{*merged};
  (*out)[3] = (*out)[4] = std::vector<int64_t>{0};
  return absl::OkStatus();
}

absl::Status atLeastVector(const ShapeQuery &q, Shapes *out) {
  LATHE_CHECK(expectRankAtLeast(q.inputShape(0), 1, "the logits"));
  return sameShape(q, out);
}

absl::Status crossEntropy(const ShapeQuery &q, Shapes *out) {
  PartialShape shape;
  PartialShape logits = q.inputShape(0), labels = q.inputShape(1);
  if (!logits || !labels) // a size that is not 1 stays
    (logits ? labels : logits) = unknownOfRank(2);
  LATHE_ASSIGN(shape, broadcastShapes(logits, labels ? labels : unknownOfRank(2)));
  LATHE_CHECK(expectRank(shape, 2, "the logits"));
  (*out)[0] = std::vector<int64_t>{(*shape)[0]};
  (*out)[1] = shape;
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
  if (q.numInputs() > 1)
    LATHE_CHECK(expectScalarIfKnown(q, 1, "k"));
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

/// As many as input 2 allows, where they are padded to that.
absl::Status suppression(const ShapeQuery &q, Shapes *out) {
  std::optional<int64_t> most = scalarValue(q, 2);
  const bool isPadded = q.boolAttr("pad_to_max_output_size");
  for (int i = 0; i + 1 < q.numOutputs(); ++i)
    (*out)[i] = std::vector<int64_t>{isPadded && most && *most >= 0 ? *most : -1};
  out->back() = std::vector<int64_t>();
  return absl::OkStatus();
}

absl::Status combinedSuppression(const ShapeQuery &q, Shapes *out) {
  PartialShape boxes = q.inputShape(0), scores = q.inputShape(1);
  std::optional<int64_t> each = scalarValue(q, 2), most = scalarValue(q, 3);
  if (each && *each <= 0)
    return absl::InvalidArgumentError(absl::StrCat(*each, " boxes of each class"));
  if (boxes && scores)
    if (int64_t groups = (*boxes)[2], classes = (*scores)[2]; groups > 1 && classes >= 0 && groups != classes)
      return absl::InvalidArgumentError(absl::StrCat("boxes of ", groups, " classes and scores of ", classes));
  int64_t count = most && *most >= 0 ? *most : -1;
  if (q.boolAttr("pad_per_class")) {
    int64_t all;
    const int64_t classes = sizeAt(scores, 2);
    const bool isKnown = each && *each >= 0 && classes >= 0 && !__builtin_mul_overflow(*each, classes, &all);
    count = count < 0 || !isKnown ? -1 : std::min(count, all);
  }
  const int64_t batch = std::max(sizeAt(boxes, 0), sizeAt(scores, 0));
  (*out)[0] = std::vector<int64_t>{batch, count, 4};
  (*out)[1] = (*out)[2] = std::vector<int64_t>{batch, count};
  (*out)[3] = std::vector<int64_t>{batch};
  return absl::OkStatus();
}

/// Without aggregation a device gives as many as suits it.
absl::Status approxTopK(const ShapeQuery &q, Shapes *out) {
  PartialShape shape = q.inputShape(0);
  LATHE_CHECK(expectRankAtLeast(shape, 1, "the input"));
  if (!shape)
    return absl::OkStatus();
  int64_t axis;
  LATHE_ASSIGN(axis, frontAxis(q.intAttr("reduction_dimension"), static_cast<int64_t>(shape->size())));
  int64_t &size = (*shape)[axis];
  const int64_t k = q.intAttr("k");
  if (size >= 0 && k > size)
    return absl::InvalidArgumentError(absl::StrCat("k is ", k, " and the axis has ", size));
  size = q.boolAttr("aggregate_to_topk") && k >= 0 ? k : -1;
  (*out)[0] = (*out)[1] = shape;
  return absl::OkStatus();
}

absl::Status nthElement(const ShapeQuery &q, Shapes *) { return expectScalarIfKnown(q, 1, "n"); }

/// Images are grey, of colours, or of colours and how much of them is seen.
absl::Status drawnBoxes(const ShapeQuery &q, Shapes *out) {
  const int64_t channels = sizeAt(q.inputShape(0), 3);
  if (channels >= 0 && channels != 1 && channels != 3 && channels != 4)
    return absl::InvalidArgumentError(absl::StrCat("images of ", channels, " channels"));
  return absl::OkStatus();
}

/// The bias is that of four gates.
absl::Status blockLstm(const ShapeQuery &q, Shapes *) {
  const int64_t size = sizeAt(q.inputShape(8), 0);
  return size % 4 > 0 ? absl::InvalidArgumentError(absl::StrCat("a bias of ", size, " elements for four gates")) : absl::OkStatus();
}

absl::Status recurrent(const ShapeQuery &q, Shapes *out) {
  PartialShape x = q.inputShape(0), h = q.inputShape(1), c = q.inputShape(2);
  LATHE_CHECK(expectRank(x, 3, "the input"));
  LATHE_CHECK(expectRank(h, 3, "the state"));
  const bool isLstm = q.stringAttr("rnn_mode") == "lstm";
  if (isLstm)
    LATHE_CHECK(expectRank(c, 3, "the cell's state"));
  int64_t units = sizeAt(h, 2);
  if (units < 0 || __builtin_mul_overflow(units, q.stringAttr("direction") == "bidirectional" ? 2 : 1, &units))
    units = -1;
  (*out)[0] = std::vector<int64_t>{sizeAt(x, 0), sizeAt(x, 1), units};
  (*out)[1] = h ? h : unknownOfRank(3);
  (*out)[2] = !isLstm ? std::vector<int64_t>() : c ? c : unknownOfRank(3);
  return absl::OkStatus();
}

} // namespace

void addNnShapes(ShapeTable *table) {
  auto all = addsTo(table);
  all({"Elu", "FakeQuantWithMinMaxArgs", "LeakyRelu", "Relu", "Relu6", "Selu", "Softplus", "Softsign"},
      sameShape);
  all({"EluGrad", "LeakyReluGrad", "Relu6Grad", "ReluGrad", "SeluGrad", "SoftplusGrad", "SoftsignGrad"}, mergedShape);
  all({"LogSoftmax", "Softmax"}, atLeastVector);
  all({"BiasAdd"}, biasAdd);
  all({"BiasAddGrad"}, biasAddGrad);
  all({"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"}, batchNorm);
  all({"SoftmaxCrossEntropyWithLogits"}, crossEntropy);
  all({"SparseSoftmaxCrossEntropyWithLogits"}, sparseCrossEntropy);
  all({"L2Loss"}, scalarShape);
  all({"TopK", "TopKV2"}, topK);
  all({"InTopK", "InTopKV2"}, inTopK);
  all({"FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3"}, batchNormGrad);
  all({"NonMaxSuppressionV4", "NonMaxSuppressionV5"}, suppression);
  all({"CombinedNonMaxSuppression"}, combinedSuppression);
  all({"ApproxTopK"}, approxTopK);
  all({"CudnnRNNV3"}, recurrent);
  all({"NthElement"}, nthElement);
  all({"DrawBoundingBoxes"}, drawnBoxes);
  all({"BlockLSTM", "BlockLSTMV2"}, blockLstm);
}

} // namespace lathe::ops
