// MapDefun: a function of each row of its arguments, its results put together.
#include "runtime/core/Elements.h"
#include "runtime/kernels/Common.h"

#include <mutex>

namespace lathe::rt {
namespace {

/// One execution: several calls at once, the next as soon as one has ended. Whoever finds something to do does it, so that calls that
/// end at once do not grow the stack.
class Rows : public std::enable_shared_from_this<Rows> {
public:
  Rows(KernelContext &context, FunctionCaller *caller, FunctionRefPtr function, AsyncHostKernel::Done done)
      : context(context), caller(caller), function(std::move(function)), done(std::move(done)), arguments(context.inputList("arguments")),
        captured(context.inputList("captured_inputs")), count(arguments[0].dim(0)), results(context.outputs.size()) {
    for (auto &column : results)
      column.resize(static_cast<size_t>(count));
  }

  void run() {
    std::unique_lock<std::mutex> lock(mutex);
    if (isRunning)
      return;
    isRunning = true;
    while (underWay < kAtOnce && next < count && status.ok()) {
      int64_t row = next++;
      ++underWay;
      lock.unlock();
      call(row);
      lock.lock();
    }
    isRunning = false;
    if (underWay == 0 && !std::exchange(isDone, true)) {
      lock.unlock();
      finish();
    }
  }

private:
  static constexpr int64_t kAtOnce = 8;

  void call(int64_t row) {
    std::vector<Tensor> args;
    for (const Tensor &t : arguments)
      args.push_back(rowOf(t, row));
    args.insert(args.end(), captured.begin(), captured.end());
    caller->call(*function, std::move(args), context.cancellation, [self = shared_from_this(), row](absl::StatusOr<std::vector<Tensor>> result) {
      self->take(row, std::move(result));
      self->run();
    });
  }

  void take(int64_t row, absl::StatusOr<std::vector<Tensor>> result) {
    std::lock_guard<std::mutex> lock(mutex);
    --underWay;
    if (result.ok() && result->size() != results.size())
      result = invalid("the function gives ", result->size(), " results, expected ", results.size());
    if (result.ok() && context.cancellation && context.cancellation->isCancelled())
      result = absl::CancelledError("the step was cancelled");
    if (!result.ok()) {
      status.Update(result.status());
      return;
    }
    for (size_t i = 0; i < results.size(); ++i)
      results[i][static_cast<size_t>(row)] = std::move((*result)[i]);
  }

  void finish() {
    for (size_t i = 0; i < results.size() && status.ok(); ++i) {
      for (const Tensor &t : results[i])
        if (t.dtype() != context.node->outputTypes[i])
          status = invalid("result ", i, " is of type ", dtypeName(t.dtype()), ", expected ", dtypeName(context.node->outputTypes[i]));
      if (!status.ok())
        break;
      absl::StatusOr<Tensor> joined = count ? stackRows(results[i]) : ofNoRow(i);
      if (joined.ok())
        context.setOutput(static_cast<int>(i), *std::move(joined));
      status = joined.status();
    }
    done(status);
  }

  absl::StatusOr<Tensor> ofNoRow(size_t i) const {
    const auto *shapes = attrOf<std::vector<PartialShape>>(*context.node, "output_shapes");
    std::vector<int64_t> dims{0};
    if (shapes && i < shapes->size() && (*shapes)[i])
      for (int64_t d : *(*shapes)[i])
        dims.push_back(std::max<int64_t>(d, 0));
    return context.allocate(context.node->outputTypes[i], std::move(dims));
  }

  KernelContext &context;
  FunctionCaller *const caller;
  const FunctionRefPtr function;
  const AsyncHostKernel::Done done;
  const std::vector<Tensor> arguments, captured;
  const int64_t count;
  std::mutex mutex;
  int64_t next = 0, underWay = 0;
  bool isRunning = false, isDone = false;
  absl::Status status;
  std::vector<std::vector<Tensor>> results;
};

class MapDefun : public AsyncHostKernel {
public:
  explicit MapDefun(KernelInit &init) : caller(init.functions()), function(init.attr<FunctionRefPtr>("f")) {}
  void computeAsync(KernelContext &context, Done done) override {
    std::vector<Tensor> arguments = context.inputList("arguments");
    FunctionCaller *calls = context.functions ? context.functions : caller.get();
    if (!calls || !function)
      return done(absl::FailedPreconditionError("there is no function library"));
    if (arguments.empty())
      return done(invalid("there are no arguments"));
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i].rank() == 0)
        return done(invalid("All inputs must have rank at least 1. Input ", i, " has a rank of 0."));
      if (arguments[i].dim(0) != arguments[0].dim(0))
        return done(invalid("All inputs must have the same dimension 0. Input ", i, " has leading dimension ", arguments[i].dim(0),
                            ", while all previous inputs have leading dimension ", arguments[0].dim(0), "."));
    }
    // rows without elements are not counted in memory, their results are
    constexpr int64_t kMostResults = INT64_C(1) << 22;
    if (arguments[0].dim(0) > kMostResults / static_cast<int64_t>(context.outputs.size() + 1))
      return done(absl::ResourceExhaustedError(absl::StrCat(arguments[0].dim(0), " rows are too many")));
    std::make_shared<Rows>(context, calls, function, std::move(done))->run();
  }

private:
  std::shared_ptr<FunctionCaller> caller;
  FunctionRefPtr function;
};
LATHE_HOST_KERNEL(MapDefun, MapDefun);

} // namespace
} // namespace lathe::rt
