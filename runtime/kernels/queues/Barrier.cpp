#include "runtime/kernels/queues/Barrier.h"

#include "runtime/core/Elements.h"

#include <atomic>

namespace lathe::rt {

Barrier::Barrier(std::string name, std::vector<DType> types, std::vector<PartialShape> shapes)
    : name(name), types(types), shapes(shapes) {
  Queue::Signature signature;
  signature.kind = "Barrier";
  signature.name = std::move(name);
  signature.types = {DType::Int64, DType::String};
  signature.types.insert(signature.types.end(), types.begin(), types.end());
  signature.shapes.assign(2, std::vector<int64_t>());
  signature.shapes.insert(signature.shapes.end(), shapes.begin(), shapes.end());
  ready = std::make_shared<PriorityQueue>(std::move(signature));
}

absl::Status Barrier::insertOne(int64_t component, const std::string &key, const Tensor &value, size_t total,
                                bool &isNew, std::vector<Queue::Tuple> &complete) {
  auto it = incomplete.find(key);
  if (it == incomplete.end()) {
    if (closed)
      return absl::CancelledError(absl::StrCat("Barrier ", name, " is closed.  Pending enqueues cancelled: ",
                                               cancelPending, ".  Number of new insertions: ", total,
                                               ".  Number of incomplete keys: ", incomplete.size(), "."));
    it = incomplete.emplace(key, Queue::Tuple(2 + types.size())).first;
    it->second[0] = Tensor::scalar<int64_t>(DType::Int64, insertions);
    it->second[1] = Tensor::fromStrings({}, {key});
    isNew = true;
  }
  Tensor &place = it->second[2 + component];
  if (place.valid())
    return absl::InvalidArgumentError(
        absl::StrCat("Key ", key, " already has a value for component ", component, " in barrier ", name));
  place = value;
  for (const Tensor &t : it->second)
    if (!t.valid())
      return absl::OkStatus();
  complete.push_back(std::move(it->second));
  incomplete.erase(it);
  return absl::OkStatus();
}

void Barrier::insertMany(int64_t component, const Tensor &keys, const Tensor &values, Done done) {
  auto refuse = [&](std::string why) { done(absl::InvalidArgumentError(std::move(why))); };
  if (component < 0 || component >= static_cast<int64_t>(types.size()))
    return refuse(absl::StrCat("component index ", component, " is out of range for ", types.size(), " components"));
  if (keys.rank() != 1 || values.rank() < 1 || keys.dim(0) != values.dim(0))
    return refuse(absl::StrCat("keys must be a vector with one key a value: shapes ", dimsToString(keys.dims()), " and ",
                               dimsToString(values.dims())));
  if (values.dtype() != types[component])
    return refuse(absl::StrCat("values of type ", dtypeName(values.dtype()), " for component ", component, " of type ",
                               dtypeName(types[component])));
  if (!isCompatible(shapes[component], rowDims(values)))
    return refuse(absl::StrCat("values of shape ", dimsToString(values.dims()), " for component ", component,
                               " of shape ", shapeToString(shapes[component])));
  if (keys.numElements() == 0)
    return done(absl::OkStatus());
  if (values.numElements() == 0)
    return refuse(absl::StrCat("Tensors with no elements are not supported in barrier ", name));

  std::vector<Queue::Tuple> complete;
  bool closeQueue = false;
  absl::Status status;
  {
    std::lock_guard<std::mutex> lock(mutex);
    bool isNew = false;
    for (int64_t i = 0; status.ok() && i < keys.dim(0); ++i)
      status = insertOne(component, keys.strings()[i], rowOf(values, i), static_cast<size_t>(keys.dim(0)), isNew,
                         complete);
    if (isNew)
      ++insertions;
    if (closed && incomplete.empty() && !queueClosed)
      closeQueue = queueClosed = true;
  }
  // the queue is unbounded: each of these finishes at once
  struct Pending {
    std::atomic<size_t> left;
    std::mutex mutex;
    absl::Status first;
    Done done;
  };
  auto pending = std::make_shared<Pending>();
  pending->left = complete.size() + 1;
  pending->first = status;
  pending->done = std::move(done);
  auto finish = [pending](absl::Status status) {
    if (!status.ok()) {
      std::lock_guard<std::mutex> lock(pending->mutex);
      pending->first.Update(status);
    }
    if (--pending->left == 0)
      pending->done(pending->first);
  };
  for (Queue::Tuple &tuple : complete)
    ready->enqueue(std::move(tuple), nullptr, finish);
  if (closeQueue)
    ready->close(false, nullptr, finish);
  else
    finish(absl::OkStatus());
}

void Barrier::takeMany(int64_t count, bool allowSmall, Cancellation *cancellation, Queue::TupleDone done) {
  int64_t deliver = count;
  absl::Status refused;
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (closed) {
      int64_t available = ready->size();
      if (allowSmall)
        deliver = std::min(count, available);
      else
        available += static_cast<int64_t>(incomplete.size());
      if (available < std::max<int64_t>(deliver, 1))
        refused = absl::OutOfRangeError(absl::StrCat("Barrier '", name, "' is closed and has insufficient elements (requested ",
                                                     deliver, ", total size ", available, ")"));
    }
  }
  if (!refused.ok())
    return done(refused);
  ready->dequeueMany(deliver, allowSmall, cancellation, std::move(done));
}

void Barrier::close(bool cancel, Cancellation *cancellation, Done done) {
  bool closeQueue = false, refuse;
  {
    std::lock_guard<std::mutex> lock(mutex);
    // closing again may still cancel what the first one let wait
    refuse = closed && (cancelPending || !cancel);
    if (!refuse) {
      closed = true;
      cancelPending = cancel;
      if (cancel)
        incomplete.clear();
      if (incomplete.empty() && !queueClosed)
        closeQueue = queueClosed = true;
    }
  }
  if (refuse)
    return done(absl::CancelledError(absl::StrCat("Barrier '", name, "' is already closed.")));
  if (!closeQueue)
    return done(absl::OkStatus());
  ready->close(cancel, cancellation, std::move(done));
}

int64_t Barrier::incompleteSize() const {
  std::lock_guard<std::mutex> lock(mutex);
  return static_cast<int64_t>(incomplete.size());
}

} // namespace lathe::rt
