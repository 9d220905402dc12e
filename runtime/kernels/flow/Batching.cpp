// BatchFunction, Batch, Unbatch and UnbatchGrad. A batch here is made of one request: nothing waits for others, which
// TensorFlow allows too (its batches close at a timeout). Sizes are padded and split as there.
#include "runtime/kernels/Common.h"

#include <algorithm>
#include <atomic>

namespace lathe::rt {
namespace {

/// Rows [from, from + count) of `t`; rows past its end repeat row 0 of that range.
absl::StatusOr<Tensor> rowsOf(const KernelContext &context, const Tensor &t, int64_t from, int64_t count) {
  std::vector<int64_t> dims = t.dims();
  int64_t row = productOf(dims, 1, dims.size()), have = dims[0];
  dims[0] = count;
  std::vector<int64_t> at;
  at.reserve(count * row);
  for (int64_t r = 0; r < count; ++r)
    for (int64_t i = 0; i < row; ++i)
      at.push_back((from + r < have ? from + r : from) * row + i);
  return pick(context, t, dims, at);
}

/// Tensors of equal rows below each other.
absl::StatusOr<Tensor> stackRows(const KernelContext &context, const std::vector<Tensor> &parts) {
  if (parts.size() == 1)
    return parts[0];
  std::vector<int64_t> dims = parts[0].dims();
  dims[0] = 0;
  for (const Tensor &t : parts) {
    if (t.rank() != parts[0].rank() || productOf(t.dims(), 1, t.rank()) != productOf(dims, 1, dims.size()))
      return invalid("results of one batch have different shapes");
    dims[0] += t.dim(0);
  }
  LATHE_TRY_VALUE(out, context.allocate(parts[0].dtype(), dims));
  int64_t at = 0;
  for (const Tensor &t : parts)
    for (int64_t i = 0; i < t.numElements(); ++i)
      copyElement(out, at++, t, i);
  return out;
}

struct BatchSizes {
  int64_t most;
  std::vector<int64_t> allowed;

  explicit BatchSizes(KernelInit &init)
      : most(init.attr<int64_t>("max_batch_size")), allowed(init.attr<std::vector<int64_t>>("allowed_batch_sizes")) {
    if (!std::is_sorted(allowed.begin(), allowed.end()))
      init.fail(absl::InvalidArgumentError("allowed_batch_sizes entries must be monotonically increasing"));
  }
  int64_t padded(int64_t size) const {
    auto at = std::lower_bound(allowed.begin(), allowed.end(), size);
    return at == allowed.end() ? size : *at;
  }
};

absl::StatusOr<int64_t> commonRows(const std::vector<Tensor> &tensors) {
  int64_t rows = -1;
  for (const Tensor &t : tensors) {
    if (t.rank() == 0)
      return invalid("Batching input tensors must have at least one dimension");
    if (rows >= 0 && t.dim(0) != rows)
      return invalid("Batching input tensors supplied in a given op invocation must have equal 0th-dimension size");
    rows = t.dim(0);
  }
  return rows;
}

class BatchFunctionKernel : public AsyncHostKernel {
public:
  explicit BatchFunctionKernel(KernelInit &init)
      : function(init.attr<FunctionRefPtr>("f")), sizes(init), splits(init.attr<bool>("enable_large_batch_splitting")) {}

  void computeAsync(KernelContext &context, Done done) override {
    auto run = std::make_shared<Run>(Run{*this, context, std::move(done), {}, {}, {}, 0, 0});
    run->inputs = context.inputList("in_tensors");
    run->captured = context.inputList("captured_tensors");
    auto rows = commonRows(run->inputs);
    if (!rows.ok())
      return run->done(rows.status());
    run->rows = *rows;
    if (run->rows > sizes.most && !splits)
      return run->done(invalid("Batching input size ", run->rows, " is larger than max_batch_size ", sizes.most));
    run->results.resize(context.numOutputs());
    next(run);
  }

private:
  struct Run {
    const BatchFunctionKernel &kernel;
    KernelContext &context;
    Done done;
    std::vector<Tensor> inputs, captured;
    std::vector<std::vector<Tensor>> results; ///< by output, then by batch
    int64_t rows, at;
  };

  /// Calls the function for the next batch, or ends.
  static void next(const std::shared_ptr<Run> &run) {
    const BatchSizes &sizes = run->kernel.sizes;
    if (run->at >= run->rows && (run->rows > 0 || run->at > 0))
      return run->done(finish(*run));
    int64_t most = sizes.allowed.empty() ? sizes.most : std::min(sizes.most, sizes.allowed.back());
    int64_t count = std::min(run->rows - run->at, std::max<int64_t>(most, 1)), padded = count ? sizes.padded(count) : 0;
    std::vector<Tensor> args;
    for (const Tensor &t : run->inputs) {
      auto part = padded == run->rows ? absl::StatusOr<Tensor>(t) : rowsOf(run->context, t, run->at, padded);
      if (!part.ok())
        return run->done(part.status());
      args.push_back(*std::move(part));
    }
    args.insert(args.end(), run->captured.begin(), run->captured.end());
    run->at += std::max<int64_t>(count, 1);
    run->context.functions->call(*run->kernel.function, std::move(args), run->context.cancellation,
                                 [run, count, padded](absl::StatusOr<std::vector<Tensor>> results) {
                                   absl::Status kept = results.ok() ? keep(*run, *results, count, padded) : results.status();
                                   if (!kept.ok())
                                     return run->done(kept);
                                   next(run);
                                 });
  }

  static absl::Status keep(Run &run, const std::vector<Tensor> &results, int64_t count, int64_t padded) {
    if (results.size() != run.results.size())
      return invalid("the function has ", results.size(), " results, expected ", run.results.size());
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i].rank() == 0)
        return absl::FailedPreconditionError("Batched output tensor has 0 dimensions");
      if (results[i].dim(0) != padded)
        return absl::FailedPreconditionError(absl::StrCat("Batched output tensor's 0th dimension does not equal the sum of "
                                                          "the 0th dimension sizes of the input tensors: ",
                                                          results[i].dim(0), " and ", padded));
      auto part = count == padded ? absl::StatusOr<Tensor>(results[i]) : rowsOf(run.context, results[i], 0, count);
      if (!part.ok())
        return part.status();
      run.results[i].push_back(*std::move(part));
    }
    return absl::OkStatus();
  }

  static absl::Status finish(Run &run) {
    for (size_t i = 0; i < run.results.size(); ++i) {
      auto whole = stackRows(run.context, run.results[i]);
      if (!whole.ok())
        return whole.status();
      run.context.setOutput(static_cast<int>(i), *std::move(whole));
    }
    return absl::OkStatus();
  }

  const FunctionRefPtr function;
  const BatchSizes sizes;
  const bool splits;
};
LATHE_HOST_KERNEL(BatchFunction, BatchFunctionKernel);

/// batch_index holds a row (id, first row, end) for each request of the batch.
class BatchKernel : public HostKernel {
public:
  explicit BatchKernel(KernelInit &init) : sizes(init) {}

  absl::Status compute(KernelContext &context) override {
    static std::atomic<int64_t> lastId{0};
    std::vector<Tensor> tensors = context.inputList("in_tensors");
    LATHE_TRY_VALUE(rows, commonRows(tensors));
    if (rows > sizes.most)
      return invalid("Batching input size ", rows, " is larger than max_batch_size ", sizes.most);
    int n = static_cast<int>(tensors.size());
    for (int i = 0; i < n; ++i) {
      LATHE_TRY_VALUE(padded, rowsOf(context, tensors[i], 0, rows ? sizes.padded(rows) : 0));
      context.setOutput(i, padded);
    }
    int64_t id = ++lastId;
    LATHE_TRY_VALUE(index, context.allocateOutput(n, {1, 3}));
    index.data<int64_t>()[0] = id;
    index.data<int64_t>()[1] = 0;
    index.data<int64_t>()[2] = rows;
    LATHE_TRY_VALUE(scalar, context.allocateOutput(n + 1, {}));
    scalar.data<int64_t>()[0] = id;
    return absl::OkStatus();
  }

private:
  const BatchSizes sizes;
};
LATHE_HOST_KERNEL(Batch, BatchKernel);

/// The row of `index` of the request `id`, or an error.
absl::StatusOr<int64_t> requestOf(const Tensor &index, const Tensor &id) {
  if (index.rank() != 2 || index.dim(1) != 3 || id.numElements() != 1)
    return invalid("batch_index must have shape [n, 3] and id be a scalar");
  for (int64_t r = 0; r < index.dim(0); ++r)
    if (intAt(index, 3 * r) == intAt(id, 0))
      return r;
  return absl::DeadlineExceededError("the batch does not hold the request");
}

absl::Status unbatch(KernelContext &context) {
  Tensor batched = context.input(0), index = context.input(1);
  LATHE_TRY_VALUE(row, requestOf(index, context.input(2)));
  int64_t from = intAt(index, 3 * row + 1), to = intAt(index, 3 * row + 2);
  if (batched.rank() == 0 || from < 0 || to < from || to > batched.dim(0))
    return invalid("the batch has not the rows of the request");
  LATHE_TRY_VALUE(mine, rowsOf(context, batched, from, to - from));
  context.setOutput(0, mine);
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(Unbatch, unbatch);

absl::Status unbatchGrad(KernelContext &context) {
  LATHE_TRY_VALUE(row, requestOf(context.input(1), context.input(3)));
  (void)row;
  context.setOutput(0, context.input(2));
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(UnbatchGrad, unbatchGrad);

} // namespace
} // namespace lathe::rt
