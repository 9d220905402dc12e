// Sparse and ragged tensors.
#include "ops/shapes/Families.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

namespace lathe::ops {
namespace {

/// A sparse tensor of unknown length: indices, values, shape.
void sparseOutputs(int64_t rank, Shapes *out) {
  (*out)[0] = std::vector<int64_t>{-1, rank};
  (*out)[1] = std::vector<int64_t>{-1};
  (*out)[2] = std::vector<int64_t>{rank};
}

int64_t rankOf(const PartialShape &shape) { return shape ? static_cast<int64_t>(shape->size()) : -1; }

absl::Status expectSameRank(int64_t a, int64_t b) {
  if (!mergeSizes(a, b))
    return absl::InvalidArgumentError(absl::StrCat("sets of rank ", a, " and ", b));
  return absl::OkStatus();
}

/// Sets lie in the last dimension; the others are alike.
absl::Status denseSets(const ShapeQuery &q, Shapes *out) {
  PartialShape a = q.inputShape(0), b = q.inputShape(1);
  LATHE_CHECK(expectRankAtLeast(a, 2, "set1"));
  LATHE_CHECK(expectRankAtLeast(b, 2, "set2"));
  LATHE_CHECK(expectSameRank(rankOf(a), rankOf(b)));
  const int64_t rank = std::max(rankOf(a), rankOf(b));
  for (PartialShape *s : {&a, &b})
    if (*s)
      (*s)->pop_back();
  LATHE_CHECK(mergeShapes(a, b).status());
  sparseOutputs(rank, out);
  return absl::OkStatus();
}

absl::Status denseToSparseSets(const ShapeQuery &q, Shapes *out) {
  PartialShape dense = q.inputShape(0);
  LATHE_CHECK(expectRankAtLeast(dense, 2, "set1"));
  const int64_t rank = sizeAt(q.inputShape(3), 0);
  LATHE_CHECK(expectSameRank(rankOf(dense), rank));
  sparseOutputs(std::max(rankOf(dense), rank), out);
  return absl::OkStatus();
}

absl::Status sparseSets(const ShapeQuery &q, Shapes *out) {
  const int64_t a = sizeAt(q.inputShape(2), 0), b = sizeAt(q.inputShape(5), 0);
  for (int64_t rank : {a, b})
    if (rank >= 0 && rank < 2)
      return absl::InvalidArgumentError(absl::StrCat("a set of rank ", rank, ", expected at least 2"));
  LATHE_CHECK(expectSameRank(a, b));
  sparseOutputs(std::max(a, b), out);
  return absl::OkStatus();
}

absl::Status sparseConcat(const ShapeQuery &q, Shapes *out) {
  const int n = q.inputRange("indices").second;
  int64_t rows = 0, columns = -1, rank = -1;
  for (int i = 0; i < n; ++i) {
    PartialShape indices = q.inputShape(i), values = q.inputShape(n + i), shape = q.inputShape(2 * n + i);
    LATHE_CHECK(expectRank(indices, 2, "indices"));
    LATHE_CHECK(expectRank(values, 1, "values"));
    LATHE_CHECK(expectRank(shape, 1, "a shape"));
    std::optional<int64_t> count = mergeSizes(sizeAt(indices, 0), sizeAt(values, 0)), width = mergeSizes(columns, sizeAt(indices, 1)),
                           depth = mergeSizes(rank, sizeAt(shape, 0));
    if (!count || !width || !depth)
      return absl::InvalidArgumentError(absl::StrCat("indices ", shapeToString(indices), ", values ", shapeToString(values), " and shape ",
                                                     shapeToString(shape), " do not go with each other or with those before"));
    columns = *width;
    rank = *depth;
    if (rows >= 0 && (*count < 0 || __builtin_add_overflow(rows, *count, &rows)))
      rows = -1;
  }
  (*out)[0] = std::vector<int64_t>{rows, columns};
  (*out)[1] = std::vector<int64_t>{rows};
  (*out)[2] = std::vector<int64_t>{rank};
  return absl::OkStatus();
}

absl::Status sparseDenseProduct(const ShapeQuery &q, Shapes *out) {
  PartialShape indices = q.inputShape(0), values = q.inputShape(1), b = q.inputShape(3), a;
  LATHE_CHECK(expectRank(indices, 2, "the indices"));
  LATHE_CHECK(expectRank(values, 1, "the values"));
  LATHE_CHECK(expectRank(b, 2, "input b"));
  LATHE_ASSIGN(a, heldShape(q, 2));
  LATHE_CHECK(expectRank(a, 2, "what a_shape says"));
  const bool flipA = q.boolAttr("adjoint_a"), flipB = q.boolAttr("adjoint_b");
  const int64_t inner = sizeAt(a, flipA ? 0 : 1), other = sizeAt(b, flipB ? 1 : 0);
  if (!mergeSizes(inner, other))
    return absl::InvalidArgumentError(absl::StrCat("inner dimensions differ: ", inner, " and ", other));
  (*out)[0] = std::vector<int64_t>{sizeAt(a, flipA ? 1 : 0), sizeAt(b, flipB ? 0 : 1)};
  return absl::OkStatus();
}

/// Weights are as many as values, or none.
absl::Status denseCount(const ShapeQuery &q, Shapes *out) {
  PartialShape weights = q.inputShape(1);
  if (numElements(weights) > 0)
    LATHE_CHECK(mergeShapes(q.inputShape(0), weights).status());
  sparseOutputs(rankOf(q.inputShape(0)), out);
  return absl::OkStatus();
}

absl::Status raggedCount(const ShapeQuery &q, Shapes *out) {
  const int64_t rank = rankOf(q.inputShape(1));
  sparseOutputs(rank < 0 ? -1 : rank + 1, out);
  return absl::OkStatus();
}

absl::Status checkSplits(const ShapeQuery &q, int first, int count) {
  for (int i = first; i < first + count; ++i)
    LATHE_CHECK(expectRank(q.inputShape(i), 1, "splits"));
  return absl::OkStatus();
}

absl::Status countBins(const ShapeQuery &q, Shapes *) { return expectScalarIfKnown(q, q.inputRange("size").first, "the number of bins"); }

/// Each dimension of the indices is one more that is ragged.
absl::Status raggedGather(const ShapeQuery &q, Shapes *) {
  return expectRank(q.inputShape(q.numInputs() - 1), q.intAttr("OUTPUT_RAGGED_RANK") - q.intAttr("PARAMS_RAGGED_RANK") + 1, "the indices");
}

/// A variant for each element of the dimensions that are not ragged within one.
absl::Status raggedFromVariant(const ShapeQuery &q, Shapes *) {
  const int64_t inner = q.intAttr("input_ragged_rank"), all = q.intAttr("output_ragged_rank");
  return inner < 0 ? absl::OkStatus() : expectRank(q.inputShape(0), all - inner, "the variants");
}

absl::Status raggedToSparse(const ShapeQuery &q, Shapes *out) {
  auto [first, count] = q.inputRange("rt_nested_splits");
  LATHE_CHECK(checkSplits(q, first, count));
  PartialShape values = q.inputShape(first + count);
  LATHE_CHECK(expectRankAtLeast(values, 1, "the values"));
  sparseOutputs(values ? rankOf(values) + count : -1, out);
  (*(*out)[0])[0] = (*(*out)[1])[0] = numElements(values);
  return absl::OkStatus();
}

/// A dimension for each partition of rows, and those of a value; or what the shape says.
absl::Status raggedToTensor(const ShapeQuery &q, Shapes *out) {
  std::vector<std::string> kinds = q.stringsAttr("row_partition_types");
  PartialShape values = q.inputShape(1), shape;
  LATHE_ASSIGN(shape, heldShape(q, 0));
  if (values && !values->empty() && !kinds.empty()) {
    const size_t partitions = kinds.size() - (kinds[0] == "FIRST_DIM_SIZE");
    std::vector<int64_t> whole(partitions + 1, -1);
    whole.insert(whole.end(), values->begin() + 1, values->end());
    LATHE_ASSIGN(shape, mergeShapes(shape, whole));
  }
  (*out)[0] = shape;
  return absl::OkStatus();
}

absl::Status raggedToVariant(const ShapeQuery &q, Shapes *out) {
  auto [first, count] = q.inputRange("rt_nested_splits");
  LATHE_CHECK(checkSplits(q, first, count));
  PartialShape values = q.inputShape(first + count);
  if (count > 0)
    LATHE_CHECK(expectRankAtLeast(values, 1, "the values"));
  if (!q.boolAttr("batched_input")) {
    (*out)[0] = std::vector<int64_t>();
  } else if (count > 0) {
    const int64_t splits = sizeAt(q.inputShape(first), 0);
    (*out)[0] = std::vector<int64_t>{splits > 0 ? splits - 1 : -1};
  } else {
    LATHE_CHECK(expectRankAtLeast(values, 1, "the values"));
    (*out)[0] = std::vector<int64_t>{sizeAt(values, 0)};
  }
  return absl::OkStatus();
}

/// Scalars go with vectors of any length.
absl::Status raggedRange(const ShapeQuery &q, Shapes *out) {
  int64_t rows = -1;
  bool isScalar = true;
  for (int i = 0; i < 3; ++i) {
    PartialShape s = q.inputShape(i);
    if (s && s->size() > 1)
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " has shape ", shapeToString(s), ", expected a scalar or a vector"));
    isScalar &= s && s->empty();
    if (!s || s->empty())
      continue;
    std::optional<int64_t> merged = mergeSizes(rows, (*s)[0]);
    if (!merged)
      return absl::InvalidArgumentError(absl::StrCat(rows, " ranges and ", (*s)[0]));
    rows = *merged;
  }
  rows = isScalar ? 1 : rows;
  (*out)[0] = std::vector<int64_t>{rows < 0 ? -1 : rows + 1};
  (*out)[1] = std::vector<int64_t>{-1};
  return absl::OkStatus();
}

/// Rows of a gradient are like those of the variable, one for each index.
absl::Status sparseUpdate(const ShapeQuery &q, Shapes *out) {
  PartialShape grad = q.inputShape(q.inputRange("grad").first), indices = q.inputShape(q.inputRange("indices").first);
  PartialShape &variable = (*out)[0];
  if (!grad)
    return absl::OkStatus();
  LATHE_CHECK(expectRankAtLeast(grad, 1, "the gradient"));
  if (!mergeSizes((*grad)[0], sizeAt(indices, 0)))
    return absl::InvalidArgumentError(absl::StrCat((*grad)[0], " rows of gradients and ", sizeAt(indices, 0), " indices"));
  LATHE_CHECK(expectRankAtLeast(variable, 1, "the variable"));
  (*grad)[0] = sizeAt(variable, 0);
  LATHE_ASSIGN(variable, mergeShapes(variable, grad));
  return absl::OkStatus();
}

/// A row for each row of the inputs that tell how many they have.
absl::Status raggedCross(const ShapeQuery &q, Shapes *out) {
  int64_t rows = -1;
  auto learn = [&](int64_t count) -> absl::Status {
    std::optional<int64_t> merged = mergeSizes(rows, count);
    if (!merged)
      return absl::InvalidArgumentError(absl::StrCat("inputs of ", rows, " and ", count, " rows"));
    rows = *merged;
    return absl::OkStatus();
  };
  auto [splits, numSplits] = q.inputRange("ragged_row_splits");
  for (int i = splits; i < splits + numSplits; ++i) {
    LATHE_CHECK(expectRank(q.inputShape(i), 1, "splits"));
    if (const int64_t size = sizeAt(q.inputShape(i), 0); size > 0)
      LATHE_CHECK(learn(size - 1));
  }
  auto [dense, numDense] = q.inputRange("dense_inputs");
  for (int i = dense; i < dense + numDense; ++i) {
    LATHE_CHECK(expectRank(q.inputShape(i), 2, "a dense input"));
    LATHE_CHECK(learn(sizeAt(q.inputShape(i), 0)));
  }
  (*out)[0] = std::vector<int64_t>{-1};
  (*out)[1] = std::vector<int64_t>{rows < 0 ? -1 : rows + 1};
  return absl::OkStatus();
}

} // namespace

void addSparseShapes(ShapeTable *table) {
  auto all = addsTo(table);
  all({"DenseToDenseSetOperation"}, denseSets);
  all({"DenseToSparseSetOperation"}, denseToSparseSets);
  all({"SparseToSparseSetOperation"}, sparseSets);
  all({"SparseConcat"}, sparseConcat);
  all({"SparseTensorDenseMatMul"}, sparseDenseProduct);
  all({"DenseCountSparseOutput"}, denseCount);
  all({"RaggedCountSparseOutput"}, raggedCount);
  all({"RaggedTensorToSparse"}, raggedToSparse);
  all({"RaggedTensorToTensor"}, raggedToTensor);
  all({"RaggedTensorToVariant"}, raggedToVariant);
  all({"RaggedRange"}, raggedRange);
  all({"RaggedCross"}, raggedCross);
  all({"SparseBincount"}, countBins);
  all({"RaggedGather"}, raggedGather);
  all({"RaggedTensorFromVariant"}, raggedFromVariant);
  all({"SparseApplyAdadelta", "SparseApplyAdagrad", "SparseApplyAdagradDA", "SparseApplyAdagradV2", "SparseApplyCenteredRMSProp",
       "SparseApplyFtrl", "SparseApplyFtrlV2", "SparseApplyMomentum", "SparseApplyProximalAdagrad",
       "SparseApplyProximalGradientDescent", "SparseApplyRMSProp"},
      sparseUpdate);
}

} // namespace lathe::ops
