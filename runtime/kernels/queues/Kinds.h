// What the nodes that make queues have in common, and the queue that others are built with.
#ifndef LATHE_RUNTIME_KERNELS_QUEUES_KINDS_H
#define LATHE_RUNTIME_KERNELS_QUEUES_KINDS_H

#include "runtime/kernels/queues/Queue.h"

#include <queue>

namespace lathe::rt {

/// A node that makes a queue: reads the attributes that all kinds have and compares them with a queue that is there.
class QueueNode : public ResourceKernel<Queue> {
public:
  explicit QueueNode(KernelInit &init) : ResourceKernel(init) {
    wanted.types = init.attr<std::vector<DType>>("component_types");
    wanted.shapes = init.attr<std::vector<PartialShape>>("shapes");
    wanted.capacity = init.attr<int64_t>("capacity");
    if (wanted.capacity < 0)
      wanted.capacity = INT32_MAX;
    wanted.name = name;
  }

protected:
  absl::Status check(const Queue &queue) override;
  /// One shape a component, or none where the kind allows it.
  void checkShapes(KernelInit &init, bool mayLack);
  Queue::Signature wanted;
};

/// Serves the smallest priority first: the first component, an int64 scalar. Among equals the order is that of a binary
/// heap, as in TensorFlow.
class PriorityQueue : public Queue {
public:
  explicit PriorityQueue(Signature signature) : Queue(std::move(signature)) {}

protected:
  void push(Tuple tuple) override;
  Tuple pop() override;
  void putBack(Tuple tuple) override { push(std::move(tuple)); }
  int64_t stored() const override { return static_cast<int64_t>(heap.size()); }
  absl::Status checkTuple(const Tuple &tuple) const override;
  absl::Status checkBatch(const Tuple &batch) const override;

private:
  struct Item {
    int64_t priority;
    Tuple tuple;
    bool operator<(const Item &other) const { return priority > other.priority; }
  };
  std::priority_queue<Item> heap;
};

} // namespace lathe::rt

#endif
