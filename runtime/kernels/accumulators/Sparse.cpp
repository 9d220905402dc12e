// SparseConditionalAccumulator: gradients as rows with their indices, in ascending order. Each row is divided by how many
// gradients had it.
#include "runtime/core/Elements.h"
#include "runtime/kernels/accumulators/Accumulator.h"

namespace lathe::rt {
namespace {

/// Gradients are [indices, values, shape], the last invalid when it is not known.
class SparseAccumulator : public Accumulator {
public:
  using Accumulator::Accumulator;
  std::string describe() const override { return "SparseConditionalAccumulator"; }

protected:
  absl::Status validate(const Tuple &gradient, bool first) override {
    const Tensor &at = gradient[0], &rows = gradient[1], &given = gradient[2];
    auto mismatch = [](auto &&...what) { return absl::InvalidArgumentError(absl::StrCat("Shape mismatch: ", what...)); };
    std::vector<int64_t> dims = shape.value_or(std::vector<int64_t>());
    int64_t rank = static_cast<int64_t>(dims.size());
    if (given.valid()) {
      std::vector<int64_t> sizes = integers(given);
      if (rank > static_cast<int64_t>(sizes.size()))
        return mismatch("expected shape rank at least ", rank, ", got ", sizes.size());
      for (int64_t d = 0; d < rank; ++d)
        if (dims[d] >= 0 && dims[d] != sizes[d])
          return mismatch("expected shape dim ", d, " to be ", dims[d], ", got ", sizes[d]);
    }
    if (rank > 0 && dims[0] >= 0)
      for (int64_t i = 0; i < at.numElements(); ++i)
        if (at.data<int64_t>()[i] >= dims[0])
          return mismatch("index of slice ", i, " exceeded limits of shape; index is ", at.data<int64_t>()[i],
                          " exceeded ", dims[0]);
    if (!first) {
      if (rows.rank() != values.rank())
        return mismatch("expected values rank ", values.rank(), ", got ", rows.rank());
      if (rowDims(rows) != rowDims(values))
        return mismatch("expected values shape ", dimsToString(values.dims()), ", got ", dimsToString(rows.dims()));
      return absl::OkStatus();
    }
    if (rank > rows.rank())
      return mismatch("expected values rank at least ", rank, ", got ", rows.rank());
    for (int64_t d = 1; d < rank; ++d)
      if (dims[d] >= 0 && dims[d] != rows.dim(d))
        return mismatch("expected values dim ", d, " to be ", dims[d], ", got ", rows.dim(d));
    return absl::OkStatus();
  }

  void assign(const Tuple &gradient) override {
    indices = integers(gradient[0]);
    values = gradient[1].clone();
    counts.assign(indices.size(), 1);
  }

  void add(const Tuple &gradient) override {
    std::vector<int64_t> other = integers(gradient[0]);
    const Tensor &rows = gradient[1];
    // merge of two ascending lists
    struct Source {
      int64_t own, other;
    };
    std::vector<Source> merged;
    size_t i = 0, j = 0;
    while (i < indices.size() || j < other.size()) {
      bool mine = j == other.size() || (i < indices.size() && indices[i] <= other[j]);
      bool theirs = i == indices.size() || (j < other.size() && other[j] <= indices[i]);
      merged.push_back({mine ? static_cast<int64_t>(i) : -1, theirs ? static_cast<int64_t>(j) : -1});
      i += mine;
      j += theirs;
    }
    Tensor sum = Tensor::allocate(values.dtype(), withDim(static_cast<int64_t>(merged.size()), rowDims(values)));
    int64_t size = 1;
    for (int64_t d : rowDims(values))
      size *= d;
    std::vector<int64_t> sumIndices, sumCounts;
    for (size_t k = 0; k < merged.size(); ++k) {
      auto [own, theirs] = merged[k];
      int64_t at = static_cast<int64_t>(k) * size;
      sumIndices.push_back(own >= 0 ? indices[own] : other[theirs]);
      sumCounts.push_back((own >= 0 ? counts[own] : 0) + (theirs >= 0));
      if (own >= 0)
        copyElements(sum, at, values, own * size, size);
      if (own >= 0 && theirs >= 0)
        addInto(sum, at, rows, theirs * size, size);
      else if (theirs >= 0)
        copyElements(sum, at, rows, theirs * size, size);
    }
    indices = std::move(sumIndices);
    counts = std::move(sumCounts);
    values = std::move(sum);
  }

  Tuple finish(int64_t) override {
    int64_t n = static_cast<int64_t>(indices.size());
    int64_t size = n ? values.numElements() / n : 0;
    for (int64_t i = 0; mean && i < n; ++i)
      divideBy(values, i * size, size, counts[i]);
    std::vector<int64_t> dims = values.dims();
    dims[0] = shape && !shape->empty() ? (*shape)[0] : -1;
    Tuple result = {Tensor::vector<int64_t>(DType::Int64, indices), std::move(values),
                    Tensor::vector<int64_t>(DType::Int64, dims)};
    indices.clear();
    counts.clear();
    values = Tensor();
    return result;
  }

private:
  std::vector<int64_t> indices, counts;
  Tensor values;
};

class ApplyGradient : public HostKernel {
public:
  explicit ApplyGradient(KernelInit &init) : hasShape(init.attr<bool>("has_known_shape")) {}
  absl::Status compute(KernelContext &context) override {
    auto accumulator = context.resource<Accumulator>(0);
    if (!accumulator.ok())
      return accumulator.status();
    if (!dynamic_cast<SparseAccumulator *>(accumulator->get()))
      return absl::InvalidArgumentError("the accumulator takes dense gradients");
    auto step = integerScalar(context.input(1), "local_step");
    if (!step.ok())
      return step.status();
    Tensor at = context.input(2), rows = context.input(3);
    if (rows.dtype() != (*accumulator)->type)
      return absl::InvalidArgumentError(absl::StrCat("expected a gradient of type ", dtypeName((*accumulator)->type),
                                                     ", found ", dtypeName(rows.dtype())));
    if (at.rank() != 1)
      return absl::InvalidArgumentError(
          absl::StrCat("Input indices should be vector but received shape: ", dimsToString(at.dims())));
    if (rows.rank() == 0)
      return absl::InvalidArgumentError("Values cannot be 0-dimensional.");
    if (at.dim(0) != rows.dim(0))
      return absl::InvalidArgumentError(
          absl::StrCat("there are ", at.dim(0), " indices for values of shape ", dimsToString(rows.dims())));
    if (hasShape && context.input(4).rank() != 1)
      return absl::InvalidArgumentError("Input shape should be a vector");
    return (*accumulator)->apply(*step, {at, rows, hasShape ? context.input(4) : Tensor()});
  }

private:
  bool hasShape;
};

LATHE_HOST_KERNEL(SparseConditionalAccumulator, AccumulatorNode<SparseAccumulator>);
LATHE_HOST_KERNEL(SparseAccumulatorApplyGradient, ApplyGradient);
LATHE_HOST_KERNEL(SparseAccumulatorTakeGradient, TakeGradient);

} // namespace
} // namespace lathe::rt
