// What takes a dataset's elements at once: ReduceDataset, DatasetToSingleElement, DatasetToTFRecord, DatasetCardinality,
// GetElementAtIndex.
#include "base/Records.h"
#include "runtime/kernels/data/Background.h"
#include "runtime/kernels/data/Dataset.h"

namespace lathe::rt {
namespace {

/// Runs on a thread of its own, since iterating blocks.
class Sink : public AsyncHostKernel {
public:
  explicit Sink(KernelInit &init) : caller(init.functions()) {}
  void computeAsync(KernelContext &context, Done done) override {
    auto worker = std::make_shared<SerialWorker>();
    worker->run([this, worker, &context, done = std::move(done)] {
      auto dataset = datasetFrom(context.input(0));
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
};

class Reduce : public Sink {
public:
  explicit Reduce(KernelInit &init) : Sink(init), function(init.attr<FunctionRefPtr>("f")) {}

protected:
  absl::Status consume(KernelContext &context, DatasetIterator &iterator, const IteratorEnv &env) override {
    CapturedFunction call(caller, function, context.inputList("other_arguments"));
    Element state = context.inputList("initial_state");
    for (;;) {
      Element element;
      auto any = next(iterator, env, element);
      if (!any.ok())
        return any.status();
      if (!*any)
        break;
      Element args = state;
      args.insert(args.end(), element.begin(), element.end());
      auto result = call.call(std::move(args), env);
      if (absl::IsOutOfRange(result.status()))
        break; // the function may end it
      if (!result.ok())
        return result.status();
      if (result->size() != state.size())
        return absl::InvalidArgumentError("the reducing function gives another number of components than the state has");
      state = *std::move(result);
    }
    give(context, std::move(state));
    return absl::OkStatus();
  }

private:
  FunctionRefPtr function;
};

class ToSingleElement : public Sink {
public:
  using Sink::Sink;

protected:
  absl::Status consume(KernelContext &context, DatasetIterator &iterator, const IteratorEnv &) override {
    Element first, second;
    auto any = iterator.next(first);
    if (!any.ok())
      return any.status();
    if (!*any)
      return absl::InvalidArgumentError("Dataset was empty.");
    if (absl::Status fits = expectComponents(context, first); !fits.ok())
      return fits;
    auto more = iterator.next(second);
    if (!more.ok())
      return more.status();
    if (*more)
      return absl::InvalidArgumentError("Dataset had more than one element.");
    give(context, std::move(first));
    return absl::OkStatus();
  }
};

class ElementAt : public Sink {
public:
  using Sink::Sink;

protected:
  absl::Status consume(KernelContext &context, DatasetIterator &iterator, const IteratorEnv &env) override {
    auto index = integerScalar(context.input("index"), "index");
    auto dataset = datasetFrom(context.input(0));
    for (const absl::Status &status : {index.status(), dataset.status()})
      if (!status.ok())
        return status;
    int64_t known = (*dataset)->cardinality();
    auto outside = [&](int64_t size) {
      return absl::OutOfRangeError(absl::StrCat("Index out of range [0, ", size, "):", *index));
    };
    if (*index < 0 || (known >= 0 && *index >= known))
      return outside(std::max<int64_t>(known, 0));
    for (int64_t i = 0;; ++i) {
      Element element;
      auto any = next(iterator, env, element);
      if (!any.ok())
        return any.status();
      if (!*any)
        return outside(i);
      if (i < *index)
        continue;
      if (absl::Status fits = expectComponents(context, element); !fits.ok())
        return fits;
      give(context, std::move(element));
      return absl::OkStatus();
    }
  }
};

class ToTFRecord : public Sink {
public:
  using Sink::Sink;

protected:
  absl::Status consume(KernelContext &context, DatasetIterator &iterator, const IteratorEnv &env) override {
    auto path = stringScalar(context.input("filename"), "filename");
    auto name = stringScalar(context.input("compression_type"), "compression_type");
    for (const absl::Status &status : {path.status(), name.status()})
      if (!status.ok())
        return status;
    auto compression = parseCompression(*name);
    if (!compression.ok())
      return compression.status();
    auto writer = RecordWriter::create(*path, *compression);
    if (!writer.ok())
      return writer.status();
    for (;;) {
      Element element;
      auto any = next(iterator, env, element);
      if (!any.ok())
        return any.status();
      if (!*any)
        return (*writer)->close();
      if (element.size() != 1 || element[0].dtype() != DType::String || element[0].numElements() != 1)
        return absl::InvalidArgumentError("DatasetToTFRecord expects elements of one scalar string");
      if (absl::Status written = (*writer)->write(element[0].strings()[0]); !written.ok())
        return written;
    }
  }
};

absl::Status cardinality(KernelContext &context) {
  auto dataset = datasetFrom(context.input(0));
  if (!dataset.ok())
    return dataset.status();
  context.setOutput(0, Tensor::scalar<int64_t>(DType::Int64, (*dataset)->cardinality()));
  return absl::OkStatus();
}

LATHE_HOST_KERNEL(ReduceDataset, Reduce);
LATHE_HOST_KERNEL(DatasetToSingleElement, ToSingleElement);
LATHE_HOST_KERNEL(DatasetToTFRecord, ToTFRecord);
LATHE_HOST_KERNEL(GetElementAtIndex, ElementAt);
LATHE_HOST_FUNCTION(DatasetCardinality, cardinality);

} // namespace
} // namespace lathe::rt
