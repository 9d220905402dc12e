// PriorityQueue(V2). The attributes leave out the priority, an int64 scalar that comes first.
#include "runtime/core/Elements.h"
#include "runtime/kernels/queues/Kinds.h"

namespace lathe::rt {

void PriorityQueue::push(Tuple tuple) {
  int64_t priority = *tuple[0].data<int64_t>();
  heap.push({priority, std::move(tuple)});
}

Queue::Tuple PriorityQueue::pop() {
  Tuple first = heap.top().tuple;
  heap.pop();
  return first;
}

absl::Status PriorityQueue::checkTuple(const Tuple &tuple) const {
  if (absl::Status valid = Queue::checkTuple(tuple); !valid.ok())
    return valid;
  if (tuple[0].rank() != 0)
    return absl::InvalidArgumentError(
        absl::StrCat("the priority must be a scalar, found shape ", dimsToString(tuple[0].dims())));
  return absl::OkStatus();
}

absl::Status PriorityQueue::checkBatch(const Tuple &batch) const {
  if (absl::Status valid = Queue::checkBatch(batch); !valid.ok())
    return valid;
  if (batch[0].rank() != 1)
    return absl::InvalidArgumentError(
        absl::StrCat("the priorities must be a vector, found shape ", dimsToString(batch[0].dims())));
  return absl::OkStatus();
}

namespace {

class PriorityNode : public QueueNode {
public:
  explicit PriorityNode(KernelInit &init) : QueueNode(init) {
    wanted.kind = "PriorityQueue";
    wanted.types.insert(wanted.types.begin(), DType::Int64);
    if (!wanted.shapes.empty())
      wanted.shapes.insert(wanted.shapes.begin(), PartialShape(std::vector<int64_t>()));
    checkShapes(init, true);
  }

protected:
  absl::StatusOr<std::shared_ptr<Queue>> create(KernelContext &) override {
    return std::make_shared<PriorityQueue>(wanted);
  }
};

LATHE_HOST_KERNEL(PriorityQueue, PriorityNode);
LATHE_HOST_KERNEL(PriorityQueueV2, PriorityNode);

} // namespace
} // namespace lathe::rt
