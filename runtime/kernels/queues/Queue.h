// TensorFlow's queues. Operations wait in two lines, one of those that add (closing among them) and one of those that
// take; whoever changes the queue moves both lines forward as far as they go, so each line is served in order.
#ifndef LATHE_RUNTIME_KERNELS_QUEUES_QUEUE_H
#define LATHE_RUNTIME_KERNELS_QUEUES_QUEUE_H

#include "runtime/core/Kernel.h"

#include <deque>

namespace lathe::rt {

class Queue : public Resource, public std::enable_shared_from_this<Queue> {
public:
  using Tuple = std::vector<Tensor>; ///< one tensor a component
  using Done = std::function<void(absl::Status)>;
  using TupleDone = std::function<void(absl::StatusOr<Tuple>)>;

  struct Signature {
    std::string kind, name; ///< "FIFOQueue" and the resource's name, for messages
    std::vector<DType> types;
    std::vector<PartialShape> shapes; ///< none: elements of any shape
    int64_t capacity = INT32_MAX;
  };

  explicit Queue(Signature signature) : sig(std::move(signature)) {}
  std::string describe() const override { return sig.kind; }
  const Signature &signature() const { return sig; }

  /// The operations call `done` once, now or on the thread that makes them possible. CANCELLED when the queue is closed
  /// to additions or the step is cancelled; OUT_OF_RANGE when it is closed and has too few elements left to take;
  /// INVALID_ARGUMENT for components of other types or shapes. `cancellation` may be null.
  void enqueue(Tuple tuple, Cancellation *cancellation, Done done);
  /// Adds the rows of the components one by one, others' additions never in between.
  void enqueueMany(Tuple batch, Cancellation *cancellation, Done done);
  void dequeue(Cancellation *cancellation, TupleDone done);
  /// `count` elements put together along a new first dimension; with `upTo`, fewer once the queue is closed.
  void dequeueMany(int64_t count, bool upTo, Cancellation *cancellation, TupleDone done);
  /// Closes after the additions that wait, or cancels these.
  void close(bool cancelPending, Cancellation *cancellation, Done done);
  int64_t size() const;
  bool isClosed() const;

protected:
  // Called with the lock held.
  virtual void push(Tuple tuple) = 0;
  virtual Tuple pop() = 0;
  /// Takes elements back that a failed dequeueMany had, last one first.
  virtual void putBack(Tuple tuple) = 0;
  virtual int64_t stored() const = 0;
  /// How many of the stored may be taken now.
  virtual int64_t takeable() const { return stored(); }

  /// Whether many elements can be put together; the error otherwise.
  virtual absl::Status canBatch() const;
  virtual absl::Status checkTuple(const Tuple &tuple) const;
  virtual absl::Status checkBatch(const Tuple &batch) const;
  /// Puts elements together; `count` of them, perhaps 0.
  virtual absl::StatusOr<Tuple> join(const std::vector<Tuple> &elements) const;
  absl::Status checkTypes(const Tuple &tuple) const;

  bool isClosedLocked() const { return closed; }
  Signature sig;

private:
  struct Attempt {
    enum class Kind { Enqueue, EnqueueMany, Close, Dequeue, DequeueMany } kind;
    Tuple tuple;
    int64_t next = 0, count = 0; ///< rows added; rows to add or elements to take
    bool upTo = false, finished = false, hasToken = false;
    std::vector<Tuple> taken;
    Done done;
    TupleDone tupleDone;
    Cancellation *cancellation = nullptr;
    Cancellation::Token token = 0;
    absl::StatusOr<Tuple> result = absl::CancelledError("not run");
    bool adds() const { return kind < Kind::Dequeue; }
  };
  using AttemptPtr = std::shared_ptr<Attempt>;
  enum class Progress { None, Some, Complete };

  void submit(AttemptPtr attempt);
  void cancelAttempt(const AttemptPtr &attempt);
  void giveUp(const AttemptPtr &attempt, std::vector<AttemptPtr> &finished);
  void advance(std::deque<AttemptPtr> &line, std::vector<AttemptPtr> &finished, bool &changed);
  void advanceAll(std::vector<AttemptPtr> &finished);
  static void complete(const std::vector<AttemptPtr> &finished);
  Progress tryRun(Attempt &attempt);
  Progress tryDequeueMany(Attempt &attempt);
  absl::Status closedError() const;
  absl::Status insufficient(int64_t requested) const;

  mutable std::mutex mutex;
  std::deque<AttemptPtr> adding, taking;
  bool closed = false;
};

/// Tells whether known dimensions of a shape are all there are.
inline bool isFullyKnown(const PartialShape &shape) {
  if (!shape)
    return false;
  for (int64_t d : *shape)
    if (d < 0)
      return false;
  return true;
}

} // namespace lathe::rt

#endif
