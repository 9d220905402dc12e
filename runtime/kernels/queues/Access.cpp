// What works on a queue: QueueEnqueue(Many), QueueDequeue(Many, UpTo), QueueClose, QueueSize, QueueIsClosed, with TF1
// references and resource handles alike.
#include "runtime/core/Elements.h"
#include "runtime/kernels/queues/Queue.h"

namespace lathe::rt {
namespace {

class Access : public AsyncHostKernel {
public:
  explicit Access(KernelInit &init) {
    if (init.hasAttr("timeout_ms") && init.attr<int64_t>("timeout_ms") != -1)
      init.fail(absl::InvalidArgumentError("timeout not supported yet"));
  }
  void computeAsync(KernelContext &context, Done done) override {
    auto queue = context.resource<Queue>(0);
    if (!queue.ok())
      return done(queue.status());
    run(**queue, context, std::move(done));
  }
  bool isExpensive() const override { return false; }

protected:
  virtual void run(Queue &queue, KernelContext &context, Done done) = 0;

  /// Whether the queue has what the node's outputs promise.
  static absl::Status checkOutputs(const Queue &queue, const KernelContext &context) {
    if (queue.signature().types != context.node->outputTypes)
      return absl::InvalidArgumentError("the node's component types are not those of the queue");
    return absl::OkStatus();
  }
  static Queue::TupleDone toOutputs(KernelContext &context, Done done) {
    return [&context, done = std::move(done)](absl::StatusOr<Queue::Tuple> tuple) {
      if (!tuple.ok())
        return done(tuple.status());
      for (size_t i = 0; i < tuple->size(); ++i)
        context.setOutput(static_cast<int>(i), std::move((*tuple)[i]));
      done(absl::OkStatus());
    };
  }
};

class Enqueue : public Access {
public:
  using Access::Access;
  void run(Queue &queue, KernelContext &context, Done done) override {
    queue.enqueue(context.inputList("components"), context.cancellation, std::move(done));
  }
};

class EnqueueMany : public Access {
public:
  using Access::Access;
  void run(Queue &queue, KernelContext &context, Done done) override {
    queue.enqueueMany(context.inputList("components"), context.cancellation, std::move(done));
  }
};

class Dequeue : public Access {
public:
  using Access::Access;
  void run(Queue &queue, KernelContext &context, Done done) override {
    if (absl::Status fits = checkOutputs(queue, context); !fits.ok())
      return done(fits);
    queue.dequeue(context.cancellation, toOutputs(context, std::move(done)));
  }
};

template <bool upTo>
class DequeueMany : public Access {
public:
  using Access::Access;
  void run(Queue &queue, KernelContext &context, Done done) override {
    if (absl::Status fits = checkOutputs(queue, context); !fits.ok())
      return done(fits);
    auto n = integerScalar(context.input(1), "n");
    if (!n.ok())
      return done(n.status());
    if (*n < 0)
      return done(absl::InvalidArgumentError(absl::StrCat("requested ", *n, " < 0 elements")));
    queue.dequeueMany(*n, upTo, context.cancellation, toOutputs(context, std::move(done)));
  }
};

class Close : public Access {
public:
  explicit Close(KernelInit &init) : Access(init), cancelPending(init.attr<bool>("cancel_pending_enqueues")) {}
  void run(Queue &queue, KernelContext &context, Done done) override {
    queue.close(cancelPending, context.cancellation, std::move(done));
  }

private:
  bool cancelPending;
};

absl::Status queueSize(KernelContext &context) {
  auto queue = context.resource<Queue>(0);
  if (!queue.ok())
    return queue.status();
  context.setOutput(0, Tensor::scalar<int32_t>(DType::Int32, static_cast<int32_t>((*queue)->size())));
  return absl::OkStatus();
}

absl::Status queueIsClosed(KernelContext &context) {
  auto queue = context.resource<Queue>(0);
  if (!queue.ok())
    return queue.status();
  context.setOutput(0, Tensor::scalar<bool>(DType::Bool, (*queue)->isClosed()));
  return absl::OkStatus();
}

/// FakeQueue: the resource under the name by which TF1 ops find it.
absl::Status fakeQueue(KernelContext &context) {
  Tensor handle = context.input(0);
  const auto *h = handle.numElements() == 1 && handle.dtype() == DType::Resource
                      ? dynamic_cast<const ResourceHandle *>(handle.objects()[0].get())
                      : nullptr;
  if (!h)
    return absl::InvalidArgumentError("the input is not the handle of a resource");
  auto names = std::make_shared<Variable>(DType::String);
  names->value = Tensor::fromStrings({2}, {h->container, h->name});
  context.setRefOutput(0, std::move(names));
  return absl::OkStatus();
}

LATHE_HOST_KERNEL(QueueEnqueue, Enqueue);
LATHE_HOST_KERNEL(QueueEnqueueV2, Enqueue);
LATHE_HOST_KERNEL(QueueEnqueueMany, EnqueueMany);
LATHE_HOST_KERNEL(QueueEnqueueManyV2, EnqueueMany);
LATHE_HOST_KERNEL(QueueDequeue, Dequeue);
LATHE_HOST_KERNEL(QueueDequeueV2, Dequeue);
LATHE_HOST_KERNEL(QueueDequeueMany, DequeueMany<false>);
LATHE_HOST_KERNEL(QueueDequeueManyV2, DequeueMany<false>);
LATHE_HOST_KERNEL(QueueDequeueUpTo, DequeueMany<true>);
LATHE_HOST_KERNEL(QueueDequeueUpToV2, DequeueMany<true>);
LATHE_HOST_KERNEL(QueueClose, Close);
LATHE_HOST_KERNEL(QueueCloseV2, Close);
LATHE_HOST_FUNCTION(QueueSize, queueSize);
LATHE_HOST_FUNCTION(QueueSizeV2, queueSize);
LATHE_HOST_FUNCTION(QueueIsClosed, queueIsClosed);
LATHE_HOST_FUNCTION(QueueIsClosedV2, queueIsClosed);
LATHE_HOST_FUNCTION(FakeQueue, fakeQueue);

} // namespace
} // namespace lathe::rt
