// Ragged tensors inside variants: RaggedTensorToVariant, RaggedTensorFromVariant and the gradient.
#include "runtime/kernels/ragged/Splits.h"

namespace lathe::rt {
namespace {

/// One ragged tensor as an element of a Variant tensor.
class RaggedObject : public Object {
public:
  RaggedObject(std::vector<Splits> splits, Tensor values, DType splitsType)
      : splits(std::move(splits)), values(std::move(values)), splitsType(splitsType) {}
  std::string describe() const override { return "ragged tensor of " + std::string(dtypeName(values.dtype())); }

  const std::vector<Splits> splits;
  const Tensor values;
  const DType splitsType;

  /// Rows of the outermost dimension.
  int64_t rows() const { return splits.empty() ? values.dim(0) : static_cast<int64_t>(splits[0].size()) - 1; }
};

absl::StatusOr<Tensor> sliceRows(const KernelContext &context, const Tensor &t, int64_t start, int64_t limit, bool drop) {
  int64_t inner = productOf(t.dims(), 1, t.rank());
  std::vector<int64_t> dims = t.dims(), from;
  dims[0] = limit - start;
  if (drop)
    dims.erase(dims.begin());
  for (int64_t k = start * inner; k < limit * inner; ++k)
    from.push_back(k);
  return pick(context, t, dims, from);
}

absl::Status toVariant(KernelContext &context) {
  Tensor values = context.input("rt_dense_values");
  std::vector<Tensor> tensors = context.inputList("rt_nested_splits");
  DType splitsType = *attrOf<DType>(*context.node, "Tsplits");
  LATHE_TRY_VALUE(nested, readNested(tensors, values));
  if (!*attrOf<bool>(*context.node, "batched_input")) {
    context.setOutput(0, Tensor::fromObjects(DType::Variant, {},
                                             {std::make_shared<RaggedObject>(nested, values, splitsType)}));
    return absl::OkStatus();
  }
  if (values.rank() < 1)
    return invalid("values must have a first dimension to take apart");
  int64_t rows = nested.empty() ? values.dim(0) : static_cast<int64_t>(nested[0].size()) - 1;
  std::vector<ObjectPtr> parts;
  for (int64_t r = 0; r < rows; ++r) {
    int64_t start = nested.empty() ? r : nested[0][r], limit = nested.empty() ? r + 1 : nested[0][r + 1];
    std::vector<Splits> inner;
    for (size_t l = 1; l < nested.size(); ++l) {
      Splits piece;
      for (int64_t i = start; i <= limit; ++i)
        piece.push_back(nested[l][i] - nested[l][start]);
      inner.push_back(std::move(piece));
      start = nested[l][start];
      limit = nested[l][limit];
    }
    LATHE_TRY_VALUE(piece, sliceRows(context, values, start, limit, nested.empty()));
    parts.push_back(std::make_shared<RaggedObject>(std::move(inner), piece, splitsType));
  }
  context.setOutput(0, Tensor::fromObjects(DType::Variant, {rows}, std::move(parts)));
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(RaggedTensorToVariant, toVariant);

/// Puts values together along their first dimension; `first` makes them rows of their own.
absl::StatusOr<Tensor> joinValues(const KernelContext &context, const std::vector<Tensor> &parts, DType type) {
  if (parts.empty())
    return context.allocate(type, {0});
  std::vector<int64_t> dims = parts[0].dims();
  if (dims.empty())
    return invalid("the values in a variant must have rank 1 or more");
  dims[0] = 0;
  for (const Tensor &part : parts) {
    if (part.rank() != parts[0].rank() || !std::equal(dims.begin() + 1, dims.end(), part.dims().begin() + 1))
      return invalid("All flat_values must have compatible shapes.  Shape at index 0: ", dimsToString(parts[0].dims()),
                     ".  Shape found: ", dimsToString(part.dims()));
    dims[0] += part.dim(0);
  }
  auto made = context.allocate(type, dims);
  if (!made.ok())
    return made;
  int64_t at = 0;
  for (const Tensor &part : parts)
    for (int64_t i = 0; i < part.numElements(); ++i)
      copyElement(*made, at++, part, i);
  return made;
}

absl::Status fromVariant(KernelContext &context) {
  const NodeInfo &node = *context.node;
  Tensor encoded = context.input(0);
  int64_t inRank = *attrOf<int64_t>(node, "input_ragged_rank"), outRank = *attrOf<int64_t>(node, "output_ragged_rank");
  DType type = *attrOf<DType>(node, "Tvalues"), splitsType = *attrOf<DType>(node, "Tsplits");
  if (inRank == -1)
    inRank = outRank - encoded.rank();
  if (inRank < 0)
    return invalid("Inferred input_ragged_rank (output_ragged_rank - encoded_variant.dims()) must be >= 0, found "
                   "output_ragged_rank: ", outRank, ", encoded_variant.dims(): ", encoded.rank());
  if (outRank != encoded.rank() + inRank)
    return invalid("output_ragged_rank must be equal to input_ragged_rank + encoded_ragged.dims(); output_ragged_rank: ",
                   outRank, ", input_ragged_rank: ", inRank, ", encoded_ragged.dims(): ", encoded.rank());
  std::vector<const RaggedObject *> parts;
  for (int64_t i = 0; i < encoded.numElements(); ++i) {
    auto *part = dynamic_cast<const RaggedObject *>(encoded.objects()[i].get());
    if (!part)
      return invalid("Input Variant element at index ", i, " doesn't hold a RaggedTensorVariant");
    if (part->values.dtype() != type)
      return invalid("Expected values Tensor dtype: ", dtypeName(type), ", found: ", dtypeName(part->values.dtype()));
    if (static_cast<int64_t>(part->splits.size()) != inRank)
      return invalid("Ragged rank mismatch at index ", i, ": expected ", inRank, ", found ", part->splits.size());
    if (inRank && part->splitsType != splitsType)
      return invalid("Expected row_splits Tensor dtype: ", dtypeName(splitsType), ", found: ",
                     dtypeName(part->splitsType));
    parts.push_back(part);
  }
  if (encoded.rank() == 0) {
    for (int64_t l = 0; l < inRank; ++l)
      context.setOutput(static_cast<int>(l), indexVector(splitsType, parts[0]->splits[l]));
    context.setOutput(static_cast<int>(inRank), parts[0]->values);
    return absl::OkStatus();
  }
  int output = 0;
  for (int64_t d = 0; d + 1 < encoded.rank(); ++d) {
    Splits uniform;
    for (int64_t i = 0, n = productOf(encoded.dims(), 0, d + 1); i <= n; ++i)
      uniform.push_back(i * encoded.dim(d + 1));
    context.setOutput(output++, indexVector(splitsType, uniform));
  }
  std::vector<Splits> made(inRank + 1, Splits{0});
  std::vector<Tensor> values;
  for (const RaggedObject *part : parts) {
    if (part->values.rank() < 1)
      return invalid("the values in a variant must have rank 1 or more");
    made[0].push_back(made[0].back() + part->rows());
    for (int64_t l = 0; l < inRank; ++l) {
      int64_t offset = made[l + 1].back();
      for (size_t i = 1; i < part->splits[l].size(); ++i)
        made[l + 1].push_back(offset + part->splits[l][i]);
    }
    values.push_back(part->values);
  }
  for (const Splits &splits : made)
    context.setOutput(output++, indexVector(splitsType, splits));
  LATHE_TRY_VALUE(joined, joinValues(context, values, type));
  context.setOutput(output, joined);
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(RaggedTensorFromVariant, fromVariant);

absl::Status toVariantGradient(KernelContext &context) {
  Tensor encoded = context.input(0);
  Splits splits = intsOf(context.input(1));
  LATHE_TRY_VALUE(dims, dimsOf(context.input(2), "dense_values_shape"));
  DType type = context.node->outputTypes[0];
  std::vector<Tensor> values;
  for (int64_t i = 0; i < encoded.numElements(); ++i) {
    if (auto *part = dynamic_cast<const RaggedObject *>(encoded.objects()[i].get())) {
      if (part->values.dtype() != type)
        return invalid("Expected values of ", dtypeName(type), ", found ", dtypeName(part->values.dtype()));
      values.push_back(part->values);
      continue;
    }
    // a row that no gradient reached counts as zeros
    std::vector<int64_t> zeros = dims;
    if (zeros.empty() || i + 1 >= static_cast<int64_t>(splits.size()))
      return invalid("row_splits has ", splits.size(), " elements, too few for ", encoded.numElements(), " rows");
    zeros[0] = splits[i + 1] - splits[i];
    LATHE_TRY_VALUE(zero, context.allocate(type, zeros));
    values.push_back(zero);
  }
  if (values.size() == 1) {
    context.setOutput(0, values[0]);
    return absl::OkStatus();
  }
  // slices of a dense tensor have lost the dimension along which they are put together
  for (Tensor &value : values)
    if (value.rank() + 1 == static_cast<int64_t>(dims.size())) {
      std::vector<int64_t> row = value.dims();
      row.insert(row.begin(), 1);
      value = value.reshaped(row);
    }
  LATHE_TRY_VALUE(joined, joinValues(context, values, type));
  LATHE_TRY_VALUE(total, checkedNumElements(dims));
  if (total != joined.numElements())
    return invalid("the gradients have ", joined.numElements(), " elements, dense_values_shape is ", dimsToString(dims));
  context.setOutput(0, joined.reshaped(dims));
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(RaggedTensorToVariantGradient, toVariantGradient);

} // namespace
} // namespace lathe::rt
