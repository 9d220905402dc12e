// Barrier, BarrierInsertMany, BarrierTakeMany, BarrierClose, BarrierReadySize, BarrierIncompleteSize.
#include "runtime/core/Elements.h"
#include "runtime/kernels/queues/Barrier.h"

namespace lathe::rt {
namespace {

class BarrierNode : public ResourceKernel<Barrier> {
public:
  explicit BarrierNode(KernelInit &init)
      : ResourceKernel(init), types(init.attr<std::vector<DType>>("component_types")),
        shapes(init.attr<std::vector<PartialShape>>("shapes")) {
    if (init.attr<int64_t>("capacity") != -1)
      init.fail(absl::InvalidArgumentError("Barrier only accepts capacity=-1"));
    if (shapes.size() != types.size())
      init.fail(absl::InvalidArgumentError("all of the component shapes must be given"));
  }

protected:
  absl::StatusOr<std::shared_ptr<Barrier>> create(KernelContext &) override {
    return std::make_shared<Barrier>(name, types, shapes);
  }
  absl::Status check(const Barrier &barrier) override {
    if (barrier.types != types || barrier.shapes != shapes)
      return absl::InvalidArgumentError(absl::StrCat("shared barrier '", name, "' has other components"));
    return absl::OkStatus();
  }

private:
  std::vector<DType> types;
  std::vector<PartialShape> shapes;
};

class InsertMany : public AsyncHostKernel {
public:
  explicit InsertMany(KernelInit &init) : component(init.attr<int64_t>("component_index")) {}
  void computeAsync(KernelContext &context, Done done) override {
    auto barrier = context.resource<Barrier>(0);
    if (!barrier.ok())
      return done(barrier.status());
    (*barrier)->insertMany(component, context.input(1), context.input(2), std::move(done));
  }

private:
  int64_t component;
};

class TakeMany : public AsyncHostKernel {
public:
  explicit TakeMany(KernelInit &init) : allowSmall(init.attr<bool>("allow_small_batch")) {
    if (init.attr<int64_t>("timeout_ms") != -1)
      init.fail(absl::InvalidArgumentError("timeout not supported yet"));
  }
  void computeAsync(KernelContext &context, Done done) override {
    auto barrier = context.resource<Barrier>(0);
    if (!barrier.ok())
      return done(barrier.status());
    if (context.node->outputTypes.size() != (*barrier)->types.size() + 2 ||
        !std::equal((*barrier)->types.begin(), (*barrier)->types.end(), context.node->outputTypes.begin() + 2))
      return done(absl::InvalidArgumentError("the node's component types are not those of the barrier"));
    auto count = integerScalar(context.input(1), "num_elements");
    if (!count.ok())
      return done(count.status());
    if (*count < 0)
      return done(absl::InvalidArgumentError(absl::StrCat("requested ", *count, " < 0 elements")));
    (*barrier)->takeMany(*count, allowSmall, context.cancellation,
                         [&context, done = std::move(done)](absl::StatusOr<Queue::Tuple> tuple) {
                           if (!tuple.ok())
                             return done(tuple.status());
                           for (size_t i = 0; i < tuple->size(); ++i)
                             context.setOutput(static_cast<int>(i), std::move((*tuple)[i]));
                           done(absl::OkStatus());
                         });
  }

private:
  bool allowSmall;
};

class Close : public AsyncHostKernel {
public:
  explicit Close(KernelInit &init) : cancelPending(init.attr<bool>("cancel_pending_enqueues")) {}
  void computeAsync(KernelContext &context, Done done) override {
    auto barrier = context.resource<Barrier>(0);
    if (!barrier.ok())
      return done(barrier.status());
    (*barrier)->close(cancelPending, context.cancellation, std::move(done));
  }

private:
  bool cancelPending;
};

template <int64_t (Barrier::*size)() const>
absl::Status barrierSize(KernelContext &context) {
  auto barrier = context.resource<Barrier>(0);
  if (!barrier.ok())
    return barrier.status();
  context.setOutput(0, Tensor::scalar<int32_t>(DType::Int32, static_cast<int32_t>(((**barrier).*size)())));
  return absl::OkStatus();
}

LATHE_HOST_KERNEL(Barrier, BarrierNode);
LATHE_HOST_KERNEL(BarrierInsertMany, InsertMany);
LATHE_HOST_KERNEL(BarrierTakeMany, TakeMany);
LATHE_HOST_KERNEL(BarrierClose, Close);
LATHE_HOST_FUNCTION(BarrierReadySize, barrierSize<&Barrier::readySize>);
LATHE_HOST_FUNCTION(BarrierIncompleteSize, barrierSize<&Barrier::incompleteSize>);

} // namespace
} // namespace lathe::rt
