// Iterator(V2), OneShotIterator, AnonymousIterator (V1-V3), MakeIterator, IteratorGetNext(Sync, AsOptional),
// IteratorToStringHandle, IteratorFromStringHandle(V2), DeleteIterator and that for several devices, IteratorGetDevice.
#include "runtime/kernels/data/Background.h"
#include "runtime/kernels/data/Running.h"
#include "runtime/kernels/lists/Optional.h"

#include "absl/strings/str_split.h"

#include <atomic>

namespace lathe::rt {
namespace {

/// An iterator as a resource. Requests are served one at a time, in order, on its own thread.
class IteratorResource : public Resource, public std::enable_shared_from_this<IteratorResource> {
public:
  explicit IteratorResource(Dataset::Spec spec) : spec(std::move(spec)) {}
  ~IteratorResource() override { running.end(); }
  std::string describe() const override { return "iterator"; }
  const Dataset::Spec spec;

  using Done = std::function<void(absl::StatusOr<Element>)>;

  /// Starts over with a dataset.
  void initialize(DatasetPtr dataset, std::function<void(absl::Status)> done) {
    worker.run([self = shared_from_this(), dataset = std::move(dataset), done = std::move(done)] {
      self->failed = absl::OkStatus();
      done(self->running.start(*dataset));
    });
  }
  /// Initialises with what `start` gives on first use; every iterator's own dataset otherwise.
  void setLazy(std::function<absl::StatusOr<DatasetPtr>()> start) { lazy = std::move(start); }

  /// The next element; OUT_OF_RANGE at the end, FAILED_PRECONDITION before it is initialised.
  void next(Done done) {
    worker.run([self = shared_from_this(), done = std::move(done)] { done(self->nextNow()); });
  }

private:
  absl::StatusOr<Element> nextNow() {
    if (!running.started() && lazy && failed.ok()) {
      auto dataset = lazy();
      failed = dataset.ok() ? running.start(**dataset) : dataset.status();
    }
    if (!failed.ok())
      return failed;
    if (!running.started())
      return absl::FailedPreconditionError(
          "GetNext() failed because the iterator has not been initialized. Ensure that you have run the initializer "
          "operation for this iterator before getting the next element.");
    return running.next();
  }

  // destroyed last to first: the thread ends before what it uses
  std::function<absl::StatusOr<DatasetPtr>()> lazy;
  Running running;
  absl::Status failed;
  SerialWorker worker;
};

Dataset::Spec specOf(KernelInit &init) {
  return {init.attr<std::vector<DType>>("output_types"), init.attr<std::vector<PartialShape>>("output_shapes")};
}

class IteratorNode : public ResourceKernel<IteratorResource> {
public:
  explicit IteratorNode(KernelInit &init) : ResourceKernel(init), spec(specOf(init)) {}

protected:
  absl::StatusOr<std::shared_ptr<IteratorResource>> create(KernelContext &) override {
    return std::make_shared<IteratorResource>(spec);
  }
  absl::Status check(const IteratorResource &found) override {
    if (found.spec.types != spec.types)
      return absl::InvalidArgumentError(absl::StrCat("shared iterator '", name, "' has other types"));
    return absl::OkStatus();
  }
  Dataset::Spec spec;
};

/// Asks a function for its dataset when the first element is wanted.
class OneShotNode : public IteratorNode {
public:
  explicit OneShotNode(KernelInit &init)
      : IteratorNode(init), caller(init.functions()), factory(init.attr<FunctionRefPtr>("dataset_factory")) {}

protected:
  absl::StatusOr<std::shared_ptr<IteratorResource>> create(KernelContext &) override {
    auto iterator = std::make_shared<IteratorResource>(spec);
    iterator->setLazy([caller = caller, factory = factory]() -> absl::StatusOr<DatasetPtr> {
      if (!caller || !factory)
        return absl::FailedPreconditionError("there is no function library");
      auto made = caller->callAndWait(*factory, {});
      if (!made.ok())
        return made.status();
      if (made->size() != 1)
        return absl::InvalidArgumentError("The `dataset_factory` function must return a single dataset");
      return datasetFrom((*made)[0]);
    });
    return iterator;
  }

private:
  std::shared_ptr<FunctionCaller> caller;
  FunctionRefPtr factory;
};

class AnonymousNode : public HostKernel {
public:
  explicit AnonymousNode(KernelInit &init) : spec(specOf(init)) {}
  absl::Status compute(KernelContext &context) override {
    static std::atomic<int64_t> serial{0};
    context.setOutput(0, makeHandle("_anonymous_iterators", absl::StrCat("iterator", serial++),
                                    std::make_shared<IteratorResource>(spec)));
    // the handle owns the iterator: a deleter has nothing to do
    if (context.numOutputs() > 1)
      context.setOutput(1, Tensor::fromObjects(DType::Variant, {}, {nullptr}));
    return absl::OkStatus();
  }

private:
  Dataset::Spec spec;
};

class MakeIterator : public AsyncHostKernel {
public:
  explicit MakeIterator(KernelInit &) {}
  void computeAsync(KernelContext &context, Done done) override {
    auto dataset = datasetFrom(context.input(0));
    if (!dataset.ok())
      return done(dataset.status());
    auto iterator = context.resource<IteratorResource>(1);
    if (!iterator.ok())
      return done(iterator.status());
    if (!(*iterator)->spec.types.empty() && (*iterator)->spec.types != (*dataset)->spec.types)
      return done(absl::InvalidArgumentError("the dataset's types are not those of the iterator"));
    (*iterator)->initialize(*std::move(dataset), std::move(done));
  }
};

template <bool asOptional>
class GetNext : public AsyncHostKernel {
public:
  explicit GetNext(KernelInit &init) : spec(specOf(init)) {}
  void computeAsync(KernelContext &context, Done done) override {
    auto iterator = context.resource<IteratorResource>(0);
    if (!iterator.ok())
      return done(iterator.status());
    // whoever comes first, the element or the end of the step, answers
    struct Request {
      std::atomic<bool> answered{false};
      Cancellation::Token token = 0;
      bool hasToken = false;
      Done done;
    };
    auto request = std::make_shared<Request>();
    request->done = std::move(done);
    Cancellation *cancellation = context.cancellation;
    if (cancellation) {
      request->hasToken = cancellation->add(&request->token, [request] {
        if (!request->answered.exchange(true))
          request->done(absl::CancelledError("the step was cancelled while it waited for an iterator"));
      });
      if (!request->hasToken)
        return request->done(absl::CancelledError("the step was cancelled"));
    }
    (*iterator)->next([this, &context, request, cancellation](absl::StatusOr<Element> element) {
      if (request->answered.exchange(true))
        return; // the context is gone
      if (request->hasToken)
        cancellation->tryRemove(request->token);
      request->done(give(context, std::move(element)));
      request->done = nullptr;
    });
  }

private:
  absl::Status give(KernelContext &context, absl::StatusOr<Element> element) {
    if (asOptional && absl::IsOutOfRange(element.status())) {
      context.setOutput(0, makeOptional(std::nullopt));
      return absl::OkStatus();
    }
    if (!element.ok())
      return element.status();
    if (absl::Status fits = checkElement(*element, spec.types, spec.shapes); !fits.ok())
      return fits;
    if (asOptional) {
      context.setOutput(0, makeOptional(*std::move(element)));
      return absl::OkStatus();
    }
    for (size_t i = 0; i < element->size(); ++i)
      context.setOutput(static_cast<int>(i), std::move((*element)[i]));
    return absl::OkStatus();
  }
  Dataset::Spec spec;
};

absl::Status toString(KernelContext &context) {
  auto iterator = context.resource<IteratorResource>(0);
  if (!iterator.ok())
    return iterator.status();
  Tensor t = context.input(0);
  std::string container = "localhost", name;
  if (t.dtype() == DType::Resource) {
    const auto &handle = static_cast<const ResourceHandle &>(*t.objects()[0]);
    container = handle.container;
    name = handle.name;
    // iterators without a name are kept under one once somebody knows it
    auto kept = context.resources->lookupOrCreate<IteratorResource>(
        container, name, [&]() -> absl::StatusOr<std::shared_ptr<IteratorResource>> { return *iterator; });
    if (!kept.ok())
      return kept.status();
  } else {
    container = t.strings()[0];
    name = t.strings()[1];
  }
  context.setOutput(0, Tensor::fromStrings({}, {container + "\n" + name}));
  return absl::OkStatus();
}

absl::Status fromString(KernelContext &context) {
  auto text = stringScalar(context.input(0), "string_handle");
  if (!text.ok())
    return text.status();
  std::vector<std::string> parts = absl::StrSplit(*text, absl::MaxSplits('\n', 1));
  if (parts.size() != 2)
    return absl::InvalidArgumentError("the string is not the handle of an iterator");
  auto found = context.resources->lookup(parts[0], parts[1]);
  if (!found.ok())
    return found.status();
  auto iterator = std::dynamic_pointer_cast<IteratorResource>(*found);
  if (!iterator)
    return absl::InvalidArgumentError("the string is not the handle of an iterator");
  const auto *types = attrOf<std::vector<DType>>(*context.node, "output_types");
  if (types && !types->empty() && *types != iterator->spec.types)
    return absl::InvalidArgumentError("the iterator has other types");
  context.setOutput(0, makeHandle(parts[0], parts[1], std::move(iterator)));
  return absl::OkStatus();
}

absl::Status deleteIterator(KernelContext &context) {
  Tensor t = context.input(0);
  if (t.dtype() == DType::Resource && t.numElements() == 1)
    if (const auto *handle = dynamic_cast<const ResourceHandle *>(t.objects()[0].get()))
      (void)context.resources->remove(handle->container, handle->name); // most have no name
  return absl::OkStatus();
}

absl::Status getDevice(KernelContext &context) {
  auto iterator = context.resource<IteratorResource>(0);
  if (!iterator.ok())
    return iterator.status();
  context.setOutput(0, Tensor::fromStrings({}, {"/job:localhost/replica:0/task:0/device:CPU:0"}));
  return absl::OkStatus();
}

LATHE_HOST_KERNEL(Iterator, IteratorNode);
LATHE_HOST_KERNEL(IteratorV2, IteratorNode);
LATHE_HOST_KERNEL(OneShotIterator, OneShotNode);
LATHE_HOST_KERNEL(AnonymousIterator, AnonymousNode);
LATHE_HOST_KERNEL(AnonymousIteratorV2, AnonymousNode);
LATHE_HOST_KERNEL(AnonymousIteratorV3, AnonymousNode);
LATHE_HOST_KERNEL(MakeIterator, MakeIterator);
LATHE_HOST_KERNEL(IteratorGetNext, GetNext<false>);
LATHE_HOST_KERNEL(IteratorGetNextSync, GetNext<false>);
LATHE_HOST_KERNEL(IteratorGetNextAsOptional, GetNext<true>);
LATHE_HOST_FUNCTION(IteratorToStringHandle, toString);
LATHE_HOST_FUNCTION(IteratorFromStringHandle, fromString);
LATHE_HOST_FUNCTION(IteratorFromStringHandleV2, fromString);
LATHE_HOST_FUNCTION(DeleteIterator, deleteIterator);
LATHE_HOST_FUNCTION(DeleteMultiDeviceIterator, deleteIterator);
LATHE_HOST_FUNCTION(IteratorGetDevice, getDevice);
LATHE_HOST_FUNCTION(ExperimentalIteratorGetDevice, getDevice);

} // namespace
} // namespace lathe::rt
