// MultiDeviceIterator (named and anonymous) and what works on it: the elements of a dataset in turn to as many readers as there are
// devices.
#include "runtime/kernels/Common.h"
#include "runtime/kernels/data/Background.h"
#include "runtime/kernels/data/Holding.h"
#include "runtime/kernels/data/Running.h"

#include <atomic>

namespace lathe::rt {
namespace {

/// Requests are served one at a time, in order, on a thread of its own. What others are yet to read is kept.
class MultiIterator : public Resource, public std::enable_shared_from_this<MultiIterator> {
public:
  MultiIterator(Dataset::Spec spec, size_t shards) : spec(std::move(spec)), queues(shards) {}
  ~MultiIterator() override { running.end(); }
  std::string describe() const override { return "iterator for several devices"; }
  const Dataset::Spec spec;

  using Done = std::function<void(absl::StatusOr<Element>)>;

  /// Starts over; gives the number that readers then name.
  void initialize(DatasetPtr dataset, std::function<void(absl::StatusOr<int64_t>)> done) {
    worker.run([self = shared_from_this(), dataset = std::move(dataset), done = std::move(done)] {
      for (auto &queue : self->queues) {
        for (const Element &element : queue)
          self->holding.drop(element);
        queue.clear();
      }
      self->given = 0;
      if (absl::Status started = self->running.start(*dataset); !started.ok())
        return done(started);
      done(++self->incarnation);
    });
  }
  void next(int64_t shard, int64_t asked, Done done) {
    worker.run([self = shared_from_this(), shard, asked, done = std::move(done)] { done(self->nextNow(shard, asked)); });
  }

private:
  absl::StatusOr<Element> nextNow(int64_t shard, int64_t asked) {
    if (shard < 0 || shard >= static_cast<int64_t>(queues.size()))
      return invalid("there is no shard ", shard, " of ", queues.size());
    if (!running.started())
      return absl::FailedPreconditionError("the iterator has not been initialized");
    if (asked != incarnation)
      return invalid("Invalid incarnation id. Provided: ", asked, "; Expected: ", incarnation);
    std::deque<Element> &mine = queues[static_cast<size_t>(shard)];
    while (mine.empty()) {
      LATHE_TRY_VALUE(element, running.next());
      LATHE_TRY(holding.add(element));
      queues[static_cast<size_t>(given++) % queues.size()].push_back(std::move(element));
    }
    Element element = std::move(mine.front());
    mine.pop_front();
    holding.drop(element);
    return element;
  }

  Running running;
  std::vector<std::deque<Element>> queues;
  Holding holding;
  int64_t given = 0, incarnation = -1;
  SerialWorker worker;
};

struct MultiSpec {
  explicit MultiSpec(KernelInit &init)
      : spec{init.attr<std::vector<DType>>("output_types"), init.attr<std::vector<PartialShape>>("output_shapes")},
        shards(init.attr<std::vector<std::string>>("devices").size()) {
    if (shards == 0)
      init.fail(invalid("there are no devices"));
  }
  std::shared_ptr<MultiIterator> make() const { return std::make_shared<MultiIterator>(spec, shards); }
  Dataset::Spec spec;
  size_t shards;
};

class NamedNode : public ResourceKernel<MultiIterator> {
public:
  explicit NamedNode(KernelInit &init) : ResourceKernel(init), spec(init) {}

protected:
  absl::StatusOr<std::shared_ptr<MultiIterator>> create(KernelContext &) override { return spec.make(); }

private:
  MultiSpec spec;
};
LATHE_HOST_KERNEL(MultiDeviceIterator, NamedNode);

class AnonymousNode : public HostKernel {
public:
  explicit AnonymousNode(KernelInit &init) : spec(init) {}
  absl::Status compute(KernelContext &context) override {
    static std::atomic<int64_t> serial{0};
    context.setOutput(0, makeHandle("_anonymous_iterators", absl::StrCat("multi", serial++), spec.make()));
    if (context.numOutputs() > 1)
      context.setOutput(1, Tensor::fromObjects(DType::Variant, {}, {nullptr}));
    return absl::OkStatus();
  }

private:
  MultiSpec spec;
};
LATHE_HOST_KERNEL(AnonymousMultiDeviceIterator, AnonymousNode);
LATHE_HOST_KERNEL(AnonymousMultiDeviceIteratorV3, AnonymousNode);

class Initialize : public AsyncHostKernel {
public:
  explicit Initialize(KernelInit &) {}
  void computeAsync(KernelContext &context, Done done) override {
    auto dataset = datasetFrom(context.input("dataset"));
    auto iterator = context.resource<MultiIterator>(context.node->inputRange("multi_device_iterator").start);
    auto most = oneInt(context.input("max_buffer_size"), "max_buffer_size");
    for (const absl::Status &status : {dataset.status(), iterator.status(), most.status()})
      if (!status.ok())
        return done(status);
    if ((*iterator)->spec.types != (*dataset)->spec.types)
      return done(invalid("the dataset's types are not those of the iterator"));
    (*iterator)->initialize(*dataset, [&context, done = std::move(done)](absl::StatusOr<int64_t> incarnation) {
      if (incarnation.ok())
        context.setOutput(0, Tensor::scalar<int64_t>(DType::Int64, *incarnation));
      done(incarnation.status());
    });
  }
};
LATHE_HOST_KERNEL(MultiDeviceIteratorInit, Initialize);

class GetNext : public AsyncHostKernel {
public:
  explicit GetNext(KernelInit &) {}
  void computeAsync(KernelContext &context, Done done) override {
    auto iterator = context.resource<MultiIterator>(0);
    auto shard = oneInt(context.input("shard_num"), "shard_num"), incarnation = oneInt(context.input("incarnation_id"), "incarnation_id");
    for (const absl::Status &status : {iterator.status(), shard.status(), incarnation.status()})
      if (!status.ok())
        return done(status);
    (*iterator)->next(*shard, *incarnation, [&context, done = std::move(done)](absl::StatusOr<Element> element) {
      if (element.ok() && element->size() != context.outputs.size())
        return done(invalid("the element has another number of components"));
      for (size_t i = 0; element.ok() && i < element->size(); ++i) {
        if ((*element)[i].dtype() != context.node->outputTypes[i])
          return done(invalid("component ", i, " is of type ", dtypeName((*element)[i].dtype()), ", expected ",
                              dtypeName(context.node->outputTypes[i])));
        context.setOutput(static_cast<int>(i), std::move((*element)[i]));
      }
      done(element.status());
    });
  }
};
LATHE_HOST_KERNEL(MultiDeviceIteratorGetNextFromShard, GetNext);

absl::Status toString(KernelContext &context) {
  LATHE_TRY_VALUE(iterator, context.resource<MultiIterator>(0));
  const auto &handle = static_cast<const ResourceHandle &>(*context.input(0).objects()[0]);
  // iterators without a name are kept under one once somebody knows it
  LATHE_TRY(context.resources
                ->lookupOrCreate<MultiIterator>(handle.container, handle.name,
                                                [&]() -> absl::StatusOr<std::shared_ptr<MultiIterator>> { return iterator; })
                .status());
  context.setOutput(0, Tensor::fromStrings({}, {handle.container + "\n" + handle.name}));
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(MultiDeviceIteratorToStringHandle, toString);

absl::Status fromString(KernelContext &context) {
  LATHE_TRY_VALUE(text, oneString(context.input(0), "string_handle"));
  size_t cut = text.find('\n');
  if (cut == std::string::npos)
    return invalid("the string is not the handle of an iterator");
  std::string container = text.substr(0, cut), name = text.substr(cut + 1);
  LATHE_TRY_VALUE(found, context.resources->lookup(container, name));
  auto iterator = std::dynamic_pointer_cast<MultiIterator>(found);
  if (!iterator)
    return invalid("the string is not the handle of an iterator");
  const auto *types = attrOf<std::vector<DType>>(*context.node, "output_types");
  if (types && !types->empty() && *types != iterator->spec.types)
    return invalid("the iterator has other types");
  context.setOutput(0, makeHandle(container, name, std::move(iterator)));
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(MultiDeviceIteratorFromStringHandle, fromString);

} // namespace
} // namespace lathe::rt
