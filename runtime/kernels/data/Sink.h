// What takes a dataset's elements at once, in one step.
#ifndef LATHE_RUNTIME_KERNELS_DATA_SINK_H
#define LATHE_RUNTIME_KERNELS_DATA_SINK_H

#include "runtime/kernels/data/Background.h"
#include "runtime/kernels/data/Dataset.h"

namespace lathe::rt {

/// Runs on a thread of its own, since iterating blocks.
class Sink : public AsyncHostKernel {
public:
  /// The dataset is that input.
  explicit Sink(KernelInit &init, int input = 0) : caller(init.functions()), datasetInput(input) {}
  void computeAsync(KernelContext &context, Done done) override {
    auto worker = std::make_shared<SerialWorker>();
    worker->run([this, worker, &context, done = std::move(done)] {
      auto dataset = datasetFrom(context.input(datasetInput));
      if (!dataset.ok())
        return done(dataset.status());
      IteratorEnv env{context.cancellation};
      absl::Status status;
      {
        auto iterator = (*dataset)->iterate(env);
        status = iterator.ok() ? consume(context, **iterator, env) : iterator.status();
      }
      done(std::move(status));
    });
  }

protected:
  virtual absl::Status consume(KernelContext &context, DatasetIterator &iterator, const IteratorEnv &env) = 0;
  static absl::Status checkCancelled(const IteratorEnv &env) {
    return env.cancellation && env.cancellation->isCancelled() ? absl::CancelledError("the step was cancelled")
                                                               : absl::OkStatus();
  }
  /// As the iterator's, unless the step is cancelled.
  static absl::StatusOr<bool> next(DatasetIterator &iterator, const IteratorEnv &env, Element &element) {
    if (absl::Status status = checkCancelled(env); !status.ok())
      return status;
    return iterator.next(element);
  }
  static absl::Status expectComponents(const KernelContext &context, const Element &element) {
    return element.size() == context.outputs.size() ? absl::OkStatus()
                                                    : absl::InvalidArgumentError("the element has another number of components");
  }
  static void give(KernelContext &context, Element element) {
    for (size_t i = 0; i < element.size(); ++i)
      context.setOutput(static_cast<int>(i), std::move(element[i]));
  }
  std::shared_ptr<FunctionCaller> caller;

private:
  const int datasetInput;
};

} // namespace lathe::rt

#endif
