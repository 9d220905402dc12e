// Counts of values: DenseCountSparseOutput, SparseCountSparseOutput, RaggedCountSparseOutput.
#include "base/Memory.h"
#include "runtime/kernels/ragged/Splits.h"

#include <limits>
#include <map>

namespace lathe::rt {
namespace {

/// A sum of weights: of real ones, or of integers, which wrap.
struct Sum {
  double real = 0;
  uint64_t whole = 0;
};

/// By batch row: how often (or with what weight) each value occurs.
using Counts = std::vector<std::map<int64_t, Sum>>;

struct Counter {
  int64_t minLength, maxLength;
  bool binary;
  Tensor weights; ///< one for each value, or none

  explicit Counter(const KernelContext &context, Tensor weights)
      : minLength(*attrOf<int64_t>(*context.node, "minlength")), maxLength(*attrOf<int64_t>(*context.node, "maxlength")),
        binary(*attrOf<bool>(*context.node, "binary_output")), weights(std::move(weights)) {}

  absl::Status add(std::map<int64_t, Sum> &row, int64_t value, int64_t at) const {
    if (value < 0)
      return invalid("Input values must all be non-negative");
    if (maxLength >= 0 && value >= maxLength)
      return absl::OkStatus();
    Sum &sum = row[value];
    if (binary)
      sum = {1, 1};
    else if (!weights.numElements())
      sum = {sum.real + 1, sum.whole + 1};
    else if (weights.dtype() == DType::Int32 || weights.dtype() == DType::Int64)
      sum.whole += static_cast<uint64_t>(intAt(weights, at));
    else
      sum.real += realAt(weights, at);
    return absl::OkStatus();
  }
};

template <typename T>
T countAs(const Sum &sum) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(sum.whole);
  else
    return static_cast<T>(sum.real);
}

absl::Status output(KernelContext &context, const Counts &counts, bool batched, const Counter &counter) {
  // counts of no values are for 0 alone
  int64_t total = 0, largest = 0;
  for (const auto &row : counts) {
    total += static_cast<int64_t>(row.size());
    if (!row.empty())
      largest = std::max(largest, row.rbegin()->first);
  }
  if (largest == std::numeric_limits<int64_t>::max())
    return invalid("value ", largest, " is too large for a shape that holds it");
  int64_t width = counter.maxLength >= 0 ? counter.maxLength : std::max(largest + 1, counter.minLength);
  int64_t rank = batched ? 2 : 1;
  LATHE_TRY_VALUE(indices, context.allocateOutput(0, {total, rank}));
  LATHE_TRY_VALUE(values, context.allocateOutput(1, {total}));
  int64_t *index = indices.data<int64_t>(), at = 0;
  LATHE_TRY(withType(values.dtype(), [&](auto zero) -> absl::Status {
    using T = decltype(zero);
    if constexpr (std::is_arithmetic_v<T>) {
      for (size_t r = 0; r < counts.size(); ++r)
        for (auto &[value, count] : counts[r]) {
          if (batched)
            *index++ = static_cast<int64_t>(r);
          *index++ = value;
          values.template data<T>()[at++] = countAs<T>(count);
        }
      return absl::OkStatus();
    } else {
      return absl::UnimplementedError("counts are int32, int64, float or double");
    }
  }));
  context.setOutput(2, int64Vector(batched ? Splits{static_cast<int64_t>(counts.size()), width} : Splits{width}));
  return absl::OkStatus();
}

absl::Status denseCount(KernelContext &context) {
  Tensor values = context.input("values"), weights = context.input("weights");
  if (values.rank() != 1 && values.rank() != 2)
    return invalid("Input must be a 1 or 2-dimensional tensor. Got: ", dimsToString(values.dims()));
  if (weights.numElements() && weights.dims() != values.dims())
    return invalid("Weights and values must have the same shape. Weight shape: ", dimsToString(weights.dims()),
                   "; values shape: ", dimsToString(values.dims()));
  Counter counter(context, weights);
  bool batched = values.rank() == 2;
  Counts counts(batched ? values.dim(0) : 1);
  int64_t width = values.dims().back();
  for (int64_t i = 0; i < values.numElements(); ++i)
    LATHE_TRY(counter.add(counts[i / width], intAt(values, i), i));
  return output(context, counts, batched, counter);
}
LATHE_HOST_FUNCTION(DenseCountSparseOutput, denseCount);

absl::Status sparseCount(KernelContext &context) {
  Tensor indices = context.input("indices"), values = context.input("values"), weights = context.input("weights");
  Splits dims = intsOf(context.input("dense_shape"));
  if (indices.rank() != 2 || values.rank() != 1 || indices.dim(0) != values.dim(0))
    return invalid("Input indices must be a 2-dimensional tensor with a row for each value. Got: ",
                   dimsToString(indices.dims()), " and ", dimsToString(values.dims()));
  if (dims.empty() || static_cast<int64_t>(dims.size()) != indices.dim(1))
    return invalid("dense_shape must have an element for each column of indices: ", dims.size());
  if (weights.numElements() && weights.dims() != values.dims())
    return invalid("Weights and values must have the same shape. Weight shape: ", dimsToString(weights.dims()),
                   "; values shape: ", dimsToString(values.dims()));
  bool batched = dims.size() > 1;
  if (batched && (dims[0] < 0 || dims[0] > memoryBudget() / 64))
    return invalid("the number of rows ", dims[0], " is out of range");
  Counter counter(context, weights);
  Counts counts(batched ? dims[0] : 1);
  for (int64_t i = 0; i < values.numElements(); ++i) {
    int64_t row = batched ? indices.data<int64_t>()[i * indices.dim(1)] : 0;
    if (row < 0 || row >= static_cast<int64_t>(counts.size()))
      return invalid("Indices value along the first dimension must be lower than the first index of the shape. Got ", row);
    LATHE_TRY(counter.add(counts[row], intAt(values, i), i));
  }
  return output(context, counts, batched, counter);
}
LATHE_HOST_FUNCTION(SparseCountSparseOutput, sparseCount);

absl::Status raggedCount(KernelContext &context) {
  Tensor values = context.input("values"), weights = context.input("weights");
  if (values.rank() != 1)
    return invalid("values must be a vector, found shape ", dimsToString(values.dims()));
  if (weights.numElements() && weights.dims() != values.dims())
    return invalid("Weights and values must have the same shape. Weight shape: ", dimsToString(weights.dims()),
                   "; values shape: ", dimsToString(values.dims()));
  LATHE_TRY_VALUE(splits, readSplits(context.input("splits"), values.numElements()));
  Counter counter(context, weights);
  Counts counts(splits.size() - 1);
  for (size_t r = 0; r + 1 < splits.size(); ++r)
    for (int64_t i = splits[r]; i < splits[r + 1]; ++i)
      LATHE_TRY(counter.add(counts[r], intAt(values, i), i));
  return output(context, counts, true, counter);
}
LATHE_HOST_FUNCTION(RaggedCountSparseOutput, raggedCount);

} // namespace
} // namespace lathe::rt
