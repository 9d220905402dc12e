// Ops that run on the host: parsers, decoders of images, text, batches of requests.
#include "ops/shapes/Families.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

namespace lathe::ops {
namespace {

PartialShape joined(PartialShape a, const PartialShape &b) {
  if (!a || !b)
    return std::nullopt;
  a->insert(a->end(), b->begin(), b->end());
  return a;
}

/// Sparse outputs whose indices have `rank` columns, as a parser names them.
void sparse(const ShapeQuery &q, const std::string &prefix, int64_t rank, Shapes *out) {
  setOutputs(q, prefix + "sparse_indices", std::vector<int64_t>{-1, rank}, out);
  setOutputs(q, prefix + "sparse_values", unknownOfRank(1), out);
  setOutputs(q, prefix + "sparse_shapes", std::vector<int64_t>{rank}, out);
}

/// Dense outputs, each of the shape that an attribute lists after what comes before all of them.
void dense(const ShapeQuery &q, const std::string &prefix, const PartialShape &before, Shapes *out) {
  std::vector<PartialShape> shapes = q.shapesAttr(prefix + "dense_shapes");
  auto [first, count] = q.outputRange(prefix + "dense_values");
  for (int i = 0; i < count; ++i)
    (*out)[first + i] = i < static_cast<int>(shapes.size()) ? joined(before, shapes[i]) : std::nullopt;
}

PartialShape splitsOf(const PartialShape &examples) {
  const int64_t count = sizeAt(examples, 0);
  return std::vector<int64_t>{count < 0 ? -1 : count + 1};
}

/// Columns of the indices of a sparse output: those of the examples, and `more` of its own.
int64_t columns(const PartialShape &examples, int64_t more) {
  return examples ? static_cast<int64_t>(examples->size()) + more : -1;
}

absl::Status expectAtMostVector(const PartialShape &shape, const char *what) {
  if (!shape || shape->size() <= 1)
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, " have shape ", shapeToString(shape), ", expected a scalar or a vector"));
}

absl::Status parseExample(const ShapeQuery &q, Shapes *out) {
  PartialShape examples = q.inputShape(0);
  if (q.op().name == "ParseExample") // the first version has no scalar
    LATHE_ASSIGN(examples, mergeShapes(examples, unknownOfRank(1)));
  LATHE_CHECK(expectAtMostVector(examples, "the examples"));
  LATHE_CHECK(expectAtMostVector(q.inputShape(1), "the names"));
  sparse(q, "", columns(examples, 1), out);
  dense(q, "", examples, out);
  setOutputs(q, "ragged_values", unknownOfRank(1), out);
  setOutputs(q, "ragged_row_splits", splitsOf(examples), out);
  return absl::OkStatus();
}

absl::Status parseSequence(const ShapeQuery &q, const PartialShape &examples, Shapes *out) {
  sparse(q, "context_", columns(examples, 1), out);
  dense(q, "context_", examples, out);
  setOutputs(q, "context_ragged_values", unknownOfRank(1), out);
  setOutputs(q, "context_ragged_row_splits", splitsOf(examples), out);
  sparse(q, "feature_list_", columns(examples, 2), out);
  dense(q, "feature_list_", joined(examples, unknownOfRank(1)), out);
  setOutputs(q, "feature_list_dense_lengths", examples, out);
  setOutputs(q, "feature_list_ragged_values", unknownOfRank(1), out);
  setOutputs(q, "feature_list_ragged_outer_splits", splitsOf(examples), out);
  setOutputs(q, "feature_list_ragged_inner_splits", unknownOfRank(1), out);
  return absl::OkStatus();
}

absl::Status parseSequences(const ShapeQuery &q, Shapes *out) {
  LATHE_CHECK(expectAtMostVector(q.inputShape(0), "the examples"));
  return parseSequence(q, q.inputShape(0), out);
}

absl::Status parseSingleSequence(const ShapeQuery &q, Shapes *out) { return parseSequence(q, std::vector<int64_t>(), out); }

/// Rows, columns and channels, as many as an attribute asks for; after `before`.
absl::Status image(const ShapeQuery &q, Shapes *out, std::vector<int64_t> before) {
  LATHE_CHECK(expectRank(q.inputShape(0), 0, "the contents"));
  const int64_t channels = q.intAttr("channels");
  if (channels < 0)
    return absl::InvalidArgumentError(absl::StrCat(channels, " channels"));
  before.push_back(channels == 0 ? -1 : channels);
  (*out)[0] = std::move(before);
  return absl::OkStatus();
}

absl::Status decodeImage(const ShapeQuery &q, Shapes *out) { return image(q, out, {-1, -1}); }
absl::Status decodeFrames(const ShapeQuery &q, Shapes *out) { return image(q, out, {-1, -1, -1}); }
absl::Status decodeAnyImage(const ShapeQuery &q, Shapes *out) {
  LATHE_CHECK(image(q, out, {-1, -1}));
  if (q.boolAttr("expand_animations"))
    (*out)[0].reset(); // frames come first where there are some
  return absl::OkStatus();
}
absl::Status decodeCrop(const ShapeQuery &q, Shapes *out) {
  PartialShape window = q.inputShape(1);
  LATHE_CHECK(expectRank(window, 1, "the window"));
  if (!mergeSizes(sizeAt(window, 0), 4))
    return absl::InvalidArgumentError(absl::StrCat("a window of ", sizeAt(window, 0), " numbers, expected 4"));
  std::optional<PartialValues> values = q.inputValues(1);
  auto known = [&](size_t i) { return values && values->size() == 4 && (*values)[i] && *(*values)[i] >= 0 ? *(*values)[i] : -1; };
  return image(q, out, {known(2), known(3)});
}

/// Fields' lengths, and a value of unknown length for each.
absl::Status decodeProto(const ShapeQuery &q, Shapes *out) {
  auto [first, count] = q.outputRange("values");
  (*out)[0] = joined(q.inputShape(0), std::vector<int64_t>{count});
  for (int i = first; i < first + count; ++i)
    (*out)[i] = joined(q.inputShape(0), unknownOfRank(1));
  return absl::OkStatus();
}

absl::Status substr(const ShapeQuery &q, Shapes *out) {
  LATHE_CHECK(mergeShapes(q.inputShape(1), q.inputShape(2)).status());
  LATHE_ASSIGN((*out)[0], broadcastShapes(q.inputShape(0), q.inputShape(1)));
  return absl::OkStatus();
}

/// Requests that come in turn are joined along their first dimension.
absl::Status batch(const ShapeQuery &q, Shapes *out) {
  auto [first, count] = q.inputRange("in_tensors");
  for (int i = 0; i < count; ++i) {
    PartialShape shape = q.inputShape(first + i);
    LATHE_CHECK(expectRankAtLeast(shape, 1, absl::StrCat("input ", first + i)));
    if (shape)
      (*shape)[0] = -1;
    (*out)[i] = shape;
  }
  setOutputs(q, "batch_index", std::vector<int64_t>{-1, 3}, out);
  setOutputs(q, "id", std::vector<int64_t>(), out);
  return absl::OkStatus();
}

template <int input>
absl::Status anyLength(const ShapeQuery &q, Shapes *out) {
  PartialShape shape = q.inputShape(input);
  if (shape && !shape->empty())
    (*shape)[0] = -1;
  (*out)[0] = shape;
  return absl::OkStatus();
}

/// Defaults are scalars, or vectors of at most one element.
absl::Status defaults(const ShapeQuery &q, Shapes *) {
  auto [first, count] = q.inputRange("record_defaults");
  for (int i = first; i < first + count; ++i)
    if (PartialShape shape = q.inputShape(i); shape && shape->size() == 1 && (*shape)[0] > 1)
      return absl::InvalidArgumentError(absl::StrCat("a default has shape ", shapeToString(shape), ", expected at most one element"));
  return absl::OkStatus();
}

absl::Status decodePadded(const ShapeQuery &q, Shapes *) {
  return expectScalarIfKnown(q, 1, "the length");
}

/// A name for each tensor that is saved, and a slice where there are slices.
absl::Status save(const ShapeQuery &q, Shapes *) {
  const Arg &tensors = q.op().inputs.back();
  const int64_t count = q.inputRange(tensors.name).second;
  for (int i = 1; i < q.inputRange(tensors.name).first; ++i)
    if (!mergeSizes(sizeAt(q.inputShape(i), 0), count))
      return absl::InvalidArgumentError(
          absl::StrCat(std::string(q.op().inputs[i].name), " has shape ", shapeToString(q.inputShape(i)), " for ", count, " tensors"));
  return absl::OkStatus();
}

/// Of two sparse tensors, without the last dimension.
absl::Status editDistance(const ShapeQuery &q, Shapes *out) {
  for (int i : {0, 3}) {
    PartialShape indices = q.inputShape(i), values = q.inputShape(i + 1), shape = q.inputShape(i + 2);
    LATHE_CHECK(expectRank(indices, 2, "indices"));
    LATHE_CHECK(expectRank(values, 1, "values"));
    LATHE_CHECK(expectRank(shape, 1, "a shape"));
    if (!mergeSizes(sizeAt(indices, 0), sizeAt(values, 0)) || (sizeAt(shape, 0) >= 0 && !mergeSizes(sizeAt(indices, 1), sizeAt(shape, 0))))
      return absl::InvalidArgumentError(absl::StrCat("indices ", shapeToString(indices), " of values ", shapeToString(values), " in shape ",
                                                     shapeToString(shape)));
  }
  PartialShape a = shapeOfValues(q.inputValues(2)), b = shapeOfValues(q.inputValues(5));
  if (numElements(a) < 0 || numElements(b) < 0)
    return absl::OkStatus();
  if (a->size() != b->size())
    return absl::InvalidArgumentError(absl::StrCat("shapes of ", a->size(), " and ", b->size(), " sizes"));
  for (size_t i = 0; i < a->size(); ++i)
    (*a)[i] = std::max((*a)[i], (*b)[i]);
  if (!a->empty())
    a->pop_back();
  (*out)[0] = a;
  return absl::OkStatus();
}

} // namespace

void addHostShapes(ShapeTable *table) {
  auto all = addsTo(table);
  all({"ParseExample", "ParseExampleV2"}, parseExample);
  all({"ParseSequenceExample", "ParseSequenceExampleV2"}, parseSequences);
  all({"ParseSingleSequenceExample"}, parseSingleSequence);
  all({"DecodeBmp", "DecodeJpeg", "DecodeJxl", "DecodePng"}, decodeImage);
  all({"DecodeWebP"}, decodeFrames);
  all({"DecodeImage"}, decodeAnyImage);
  all({"DecodeAndCropJpeg"}, decodeCrop);
  all({"DecodeProtoV2"}, decodeProto);
  all({"Substr"}, substr);
  all({"Batch"}, batch);
  all({"Unbatch"}, anyLength<0>);
  all({"UnbatchGrad"}, anyLength<2>);
  all({"EditDistance"}, editDistance);
  all({"DecodeCSV", "CSVDataset", "CSVDatasetV2"}, defaults);
  all({"DecodePaddedRaw"}, decodePadded);
  all({"Save", "SaveSlices", "SaveV2"}, save);
}

} // namespace lathe::ops
