// A barrier collects the components of each key, which come in any order, and serves the keys that are complete.
#ifndef LATHE_RUNTIME_KERNELS_QUEUES_BARRIER_H
#define LATHE_RUNTIME_KERNELS_QUEUES_BARRIER_H

#include "runtime/kernels/queues/Kinds.h"

#include <unordered_map>

namespace lathe::rt {

class Barrier : public Resource {
public:
  using Done = Queue::Done;
  Barrier(std::string name, std::vector<DType> types, std::vector<PartialShape> shapes);
  std::string describe() const override { return "Barrier"; }

  const std::string name;
  const std::vector<DType> types; ///< of the values
  const std::vector<PartialShape> shapes;

  /// Row i of `values` becomes component `component` of keys[i]. CANCELLED for new keys once it is closed,
  /// INVALID_ARGUMENT when a key has the component already.
  void insertMany(int64_t component, const Tensor &keys, const Tensor &values, Done done);
  /// The tuple is indices, keys, values. OUT_OF_RANGE when it is closed and too few keys can come.
  void takeMany(int64_t count, bool allowSmall, Cancellation *cancellation, Queue::TupleDone done);
  void close(bool cancelPending, Cancellation *cancellation, Done done);
  int64_t readySize() const { return ready->size(); }
  int64_t incompleteSize() const;

private:
  absl::Status insertOne(int64_t component, const std::string &key, const Tensor &value, size_t total, bool &isNew,
                         std::vector<Queue::Tuple> &complete);

  mutable std::mutex mutex;
  std::shared_ptr<PriorityQueue> ready; ///< by the insertion that brought the key
  std::unordered_map<std::string, Queue::Tuple> incomplete;
  int64_t insertions = INT64_MIN;
  bool closed = false, cancelPending = false, queueClosed = false;
};

} // namespace lathe::rt

#endif
