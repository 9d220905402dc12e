// Quantized tensors that come with the range they stand for.
#include "ops/shapes/Families.h"

#include "absl/strings/str_cat.h"

namespace lathe::ops {
namespace {

/// The ranges of inputs first and first + 1: scalars, or vectors with an element for each index of the axis that an attribute names.
/// TensorFlow compares sizes of the second alone, but for pairs of quantization and its inverse.
absl::Status ranges(const ShapeQuery &q, int first, const PartialShape &input, PartialShape *range) {
  const int64_t axis = q.intAttr("axis");
  if (axis < -1)
    return absl::InvalidArgumentError(absl::StrCat("axis ", axis, " is below -1"));
  const int64_t rank = axis < 0 ? 0 : 1;
  LATHE_CHECK(expectRank(q.inputShape(first), rank, "the least value"));
  LATHE_CHECK(expectRank(q.inputShape(first + 1), rank, "the largest value"));
  *range = unknownOfRank(rank);
  if (axis < 0)
    return absl::OkStatus();
  LATHE_CHECK(expectRankAtLeast(input, axis + 1, "the input"));
  const int64_t size = sizeAt(input, static_cast<size_t>(axis));
  int64_t given = sizeAt(q.inputShape(first + 1), 0);
  if (q.op().name.substr(0, 21) == "QuantizeAndDequantize") {
    PartialShape both;
    LATHE_ASSIGN(both, mergeShapes(q.inputShape(first), q.inputShape(first + 1)));
    given = sizeAt(both, 0);
  }
  std::optional<int64_t> merged = mergeSizes(size, given);
  if (!merged)
    return absl::InvalidArgumentError(absl::StrCat("axis ", axis, " of ", shapeToString(input), " has ", given, " ranges"));
  (**range)[0] = *merged;
  return absl::OkStatus();
}

absl::Status quantize(const ShapeQuery &q, Shapes *out) {
  PartialShape range;
  LATHE_CHECK(ranges(q, 1, q.inputShape(0), &range));
  (*out)[0] = q.inputShape(0);
  for (size_t i = 1; i < out->size(); ++i)
    (*out)[i] = range;
  return absl::OkStatus();
}

absl::Status quantizeGrad(const ShapeQuery &q, Shapes *out) {
  PartialShape input, range;
  LATHE_ASSIGN(input, mergeShapes(q.inputShape(0), q.inputShape(1)));
  LATHE_CHECK(ranges(q, 2, q.inputShape(0), &range));
  (*out)[0] = input;
  (*out)[1] = (*out)[2] = range;
  return absl::OkStatus();
}

absl::Status concat(const ShapeQuery &q, Shapes *out) { return concatShape(q, out, 1, q.inputRange("values").second, 0); }
absl::Status concatV2(const ShapeQuery &q, Shapes *out) {
  const int n = q.inputRange("values").second;
  return concatShape(q, out, 0, n, n);
}

} // namespace

void addQuantShapes(ShapeTable *table) {
  auto all = addsTo(table);
  all({"QuantizeV2", "Dequantize", "QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3", "QuantizeAndDequantizeV4"}, quantize);
  all({"QuantizeAndDequantizeV4Grad"}, quantizeGrad);
  all({"QuantizedConcat"}, concat);
  all({"QuantizedConcatV2"}, concatV2);
}

} // namespace lathe::ops
