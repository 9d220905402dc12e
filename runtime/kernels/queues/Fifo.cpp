// FIFOQueue(V2), PaddingFIFOQueue(V2), and what all nodes that make queues share.
#include "runtime/core/Elements.h"
#include "runtime/kernels/queues/Kinds.h"

#include <algorithm>

namespace lathe::rt {

absl::Status QueueNode::check(const Queue &queue) {
  const Queue::Signature &have = queue.signature();
  auto differs = [&](const char *what) {
    return absl::InvalidArgumentError(absl::StrCat("shared queue '", name, "' has another ", what));
  };
  if (have.kind != wanted.kind)
    return differs("kind");
  if (have.capacity != wanted.capacity)
    return differs("capacity");
  if (have.types != wanted.types)
    return differs("list of component types");
  if (have.shapes != wanted.shapes)
    return differs("list of component shapes");
  return absl::OkStatus();
}

void QueueNode::checkShapes(KernelInit &init, bool mayLack) {
  if (wanted.shapes.size() != wanted.types.size() && !(mayLack && wanted.shapes.empty()))
    init.fail(absl::InvalidArgumentError(absl::StrCat("shapes must be given for all components: ", wanted.shapes.size(),
                                                      " shapes for ", wanted.types.size(), " types")));
}

namespace {

class FifoQueue : public Queue {
public:
  explicit FifoQueue(Signature signature) : Queue(std::move(signature)) {}

protected:
  void push(Tuple tuple) override { items.push_back(std::move(tuple)); }
  Tuple pop() override {
    Tuple first = std::move(items.front());
    items.pop_front();
    return first;
  }
  void putBack(Tuple tuple) override { items.push_front(std::move(tuple)); }
  int64_t stored() const override { return static_cast<int64_t>(items.size()); }

private:
  std::deque<Tuple> items;
};

/// Elements may differ in the dimensions that their shapes leave open; putting them together pads with zeros.
class PaddingQueue : public FifoQueue {
public:
  explicit PaddingQueue(Signature signature) : FifoQueue(std::move(signature)) {}

protected:
  absl::Status canBatch() const override {
    for (const PartialShape &shape : sig.shapes)
      if (!shape)
        return absl::InvalidArgumentError("PaddingFIFOQueue requires the rank of every component to be known");
    return absl::OkStatus();
  }

  absl::StatusOr<Tuple> join(const std::vector<Tuple> &elements) const override {
    Tuple batch;
    for (size_t c = 0; c < sig.types.size(); ++c) {
      std::vector<int64_t> dims = *sig.shapes[c];
      for (size_t d = 0; d < dims.size(); ++d) {
        if (dims[d] >= 0)
          continue;
        dims[d] = 0;
        for (const Tuple &element : elements)
          dims[d] = std::max(dims[d], element[c].dim(static_cast<int64_t>(d)));
      }
      auto joined =
          Tensor::tryAllocate(sig.types[c], withDim(static_cast<int64_t>(elements.size()), dims), kMaxTensorBytes);
      if (!joined.ok())
        return joined.status();
      for (size_t i = 0; i < elements.size(); ++i)
        setRowCorner(*joined, static_cast<int64_t>(i), elements[i][c]);
      batch.push_back(*std::move(joined));
    }
    return batch;
  }
};

class FifoNode : public QueueNode {
public:
  explicit FifoNode(KernelInit &init) : QueueNode(init) {
    wanted.kind = "FIFOQueue";
    checkShapes(init, true);
  }

protected:
  absl::StatusOr<std::shared_ptr<Queue>> create(KernelContext &) override {
    return std::make_shared<FifoQueue>(wanted);
  }
};

class PaddingNode : public QueueNode {
public:
  explicit PaddingNode(KernelInit &init) : QueueNode(init) {
    wanted.kind = "PaddingFIFOQueue";
    checkShapes(init, false);
  }

protected:
  absl::StatusOr<std::shared_ptr<Queue>> create(KernelContext &) override {
    return std::make_shared<PaddingQueue>(wanted);
  }
};

LATHE_HOST_KERNEL(FIFOQueue, FifoNode);
LATHE_HOST_KERNEL(FIFOQueueV2, FifoNode);
LATHE_HOST_KERNEL(PaddingFIFOQueue, PaddingNode);
LATHE_HOST_KERNEL(PaddingFIFOQueueV2, PaddingNode);

} // namespace
} // namespace lathe::rt
