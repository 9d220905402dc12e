#include "runtime/kernels/queues/Queue.h"

#include "runtime/core/Elements.h"

#include "absl/strings/str_join.h"

#include <algorithm>

namespace lathe::rt {

absl::Status Queue::closedError() const {
  return absl::CancelledError(absl::StrCat(sig.kind, " '", sig.name, "' is closed."));
}

absl::Status Queue::insufficient(int64_t requested) const {
  return absl::OutOfRangeError(absl::StrCat(sig.kind, " '", sig.name, "' is closed and has insufficient elements (requested ",
                                            requested, ", current size ", stored(), ")"));
}

absl::Status Queue::checkTypes(const Tuple &tuple) const {
  if (tuple.size() != sig.types.size())
    return absl::InvalidArgumentError(
        absl::StrCat("wrong number of components: expected ", sig.types.size(), ", found ", tuple.size()));
  for (size_t i = 0; i < tuple.size(); ++i)
    if (tuple[i].dtype() != sig.types[i])
      return absl::InvalidArgumentError(absl::StrCat("type mismatch in component ", i, ": expected ",
                                                     dtypeName(sig.types[i]), ", found ",
                                                     dtypeName(tuple[i].dtype())));
  return absl::OkStatus();
}

absl::Status Queue::checkTuple(const Tuple &tuple) const {
  if (absl::Status types = checkTypes(tuple); !types.ok())
    return types;
  for (size_t i = 0; i < sig.shapes.size(); ++i)
    if (!isCompatible(sig.shapes[i], tuple[i].dims()))
      return absl::InvalidArgumentError(absl::StrCat("shape mismatch in component ", i, ": expected ",
                                                     shapeToString(sig.shapes[i]), ", found ",
                                                     dimsToString(tuple[i].dims())));
  return absl::OkStatus();
}

absl::Status Queue::checkBatch(const Tuple &batch) const {
  if (absl::Status types = checkTypes(batch); !types.ok())
    return types;
  for (size_t i = 0; i < batch.size(); ++i) {
    if (batch[i].rank() < 1)
      return absl::InvalidArgumentError(absl::StrCat("component ", i, " must have at least one dimension"));
    if (batch[i].dim(0) != batch[0].dim(0))
      return absl::InvalidArgumentError(absl::StrCat("all components must have the same size in dimension 0: component 0 has ",
                                                     batch[0].dim(0), ", component ", i, " has ", batch[i].dim(0)));
    if (!sig.shapes.empty() && !isCompatible(sig.shapes[i], rowDims(batch[i])))
      return absl::InvalidArgumentError(absl::StrCat("shape mismatch in component ", i, ": expected ",
                                                     shapeToString(sig.shapes[i]), " after the first dimension, found ",
                                                     dimsToString(batch[i].dims())));
  }
  return absl::OkStatus();
}

absl::Status Queue::canBatch() const {
  if (sig.shapes.size() == sig.types.size() && std::all_of(sig.shapes.begin(), sig.shapes.end(), isFullyKnown))
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(sig.kind, "'s DequeueMany and DequeueUpTo require the components to have specified shapes."));
}

absl::StatusOr<Queue::Tuple> Queue::join(const std::vector<Tuple> &elements) const {
  Tuple batch;
  for (size_t c = 0; c < sig.types.size(); ++c) {
    auto joined = Tensor::tryAllocate(sig.types[c], withDim(static_cast<int64_t>(elements.size()), *sig.shapes[c]),
                                      kMaxTensorBytes);
    if (!joined.ok())
      return joined.status();
    for (size_t i = 0; i < elements.size(); ++i)
      setRow(*joined, static_cast<int64_t>(i), elements[i][c]);
    batch.push_back(*std::move(joined));
  }
  return batch;
}

void Queue::enqueue(Tuple tuple, Cancellation *cancellation, Done done) {
  if (absl::Status valid = checkTuple(tuple); !valid.ok())
    return done(valid);
  auto attempt = std::make_shared<Attempt>();
  attempt->kind = Attempt::Kind::Enqueue;
  attempt->tuple = std::move(tuple);
  attempt->done = std::move(done);
  attempt->cancellation = cancellation;
  submit(std::move(attempt));
}

void Queue::enqueueMany(Tuple batch, Cancellation *cancellation, Done done) {
  if (absl::Status valid = checkBatch(batch); !valid.ok())
    return done(valid);
  if (batch.empty() || batch[0].dim(0) == 0)
    return done(absl::OkStatus());
  auto attempt = std::make_shared<Attempt>();
  attempt->kind = Attempt::Kind::EnqueueMany;
  attempt->count = batch[0].dim(0);
  attempt->tuple = std::move(batch);
  attempt->done = std::move(done);
  attempt->cancellation = cancellation;
  submit(std::move(attempt));
}

void Queue::dequeue(Cancellation *cancellation, TupleDone done) {
  auto attempt = std::make_shared<Attempt>();
  attempt->kind = Attempt::Kind::Dequeue;
  attempt->count = 1;
  attempt->tupleDone = std::move(done);
  attempt->cancellation = cancellation;
  submit(std::move(attempt));
}

void Queue::dequeueMany(int64_t count, bool upTo, Cancellation *cancellation, TupleDone done) {
  if (absl::Status able = canBatch(); !able.ok())
    return done(able);
  if (count == 0)
    return done(join({}));
  auto attempt = std::make_shared<Attempt>();
  attempt->kind = Attempt::Kind::DequeueMany;
  attempt->count = count;
  attempt->upTo = upTo;
  attempt->tupleDone = std::move(done);
  attempt->cancellation = cancellation;
  submit(std::move(attempt));
}

void Queue::close(bool cancelPending, Cancellation *cancellation, Done done) {
  if (!cancelPending) {
    auto attempt = std::make_shared<Attempt>();
    attempt->kind = Attempt::Kind::Close;
    attempt->done = std::move(done);
    attempt->cancellation = cancellation;
    return submit(std::move(attempt));
  }
  std::vector<AttemptPtr> finished;
  {
    std::lock_guard<std::mutex> lock(mutex);
    closed = true;
    for (AttemptPtr &attempt : adding) {
      attempt->finished = true;
      attempt->result = absl::CancelledError("Enqueue operation was cancelled");
      finished.push_back(std::move(attempt));
    }
    adding.clear();
    advanceAll(finished);
  }
  complete(finished);
  done(absl::OkStatus());
}

int64_t Queue::size() const {
  std::lock_guard<std::mutex> lock(mutex);
  return stored();
}

bool Queue::isClosed() const {
  std::lock_guard<std::mutex> lock(mutex);
  return closed;
}

static absl::Status cancelledError(bool adds) {
  return absl::CancelledError(adds ? "Enqueue operation was cancelled" : "Dequeue operation was cancelled");
}

void Queue::submit(AttemptPtr attempt) {
  std::vector<AttemptPtr> finished;
  if (attempt->cancellation && attempt->cancellation->isCancelled()) {
    attempt->result = cancelledError(attempt->adds());
    return complete({std::move(attempt)});
  }
  {
    std::lock_guard<std::mutex> lock(mutex);
    (attempt->adds() ? adding : taking).push_back(attempt);
    advanceAll(finished);
    // closing waits for additions that can all be cancelled by themselves
    if (!attempt->finished && attempt->cancellation && attempt->kind != Attempt::Kind::Close) {
      attempt->hasToken = attempt->cancellation->add(
          &attempt->token, [self = shared_from_this(), attempt] { self->cancelAttempt(attempt); });
      if (!attempt->hasToken) {
        giveUp(attempt, finished);
      }
    }
  }
  complete(finished);
}

void Queue::giveUp(const AttemptPtr &attempt, std::vector<AttemptPtr> &finished) {
  attempt->finished = true;
  attempt->result = cancelledError(attempt->adds());
  // TensorFlow loses what a cancelled dequeueMany had taken so far
  for (; !attempt->taken.empty(); attempt->taken.pop_back())
    putBack(std::move(attempt->taken.back()));
  finished.push_back(attempt);
  advanceAll(finished);
}

void Queue::cancelAttempt(const AttemptPtr &attempt) {
  std::vector<AttemptPtr> finished;
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (attempt->finished)
      return;
    giveUp(attempt, finished);
  }
  complete(finished);
}

void Queue::complete(const std::vector<AttemptPtr> &finished) {
  for (const AttemptPtr &attempt : finished) {
    if (attempt->hasToken)
      attempt->cancellation->tryRemove(attempt->token);
    if (attempt->adds())
      attempt->done(attempt->result.status());
    else
      attempt->tupleDone(std::move(attempt->result));
    // the callbacks own what the step owns; the cancellation may keep the attempt a while longer
    attempt->done = nullptr;
    attempt->tupleDone = nullptr;
  }
}

void Queue::advanceAll(std::vector<AttemptPtr> &finished) {
  bool changed;
  do {
    changed = false;
    advance(adding, finished, changed);
    advance(taking, finished, changed);
  } while (changed);
}

void Queue::advance(std::deque<AttemptPtr> &line, std::vector<AttemptPtr> &finished, bool &changed) {
  while (!line.empty()) {
    if (line.front()->finished) { // cancelled while it waited
      line.pop_front();
      continue;
    }
    Attempt &attempt = *line.front();
    Progress progress = tryRun(attempt);
    changed |= progress != Progress::None;
    if (progress == Progress::Complete) {
      attempt.finished = true;
      finished.push_back(std::move(line.front()));
      line.pop_front();
    }
    return;
  }
}

Queue::Progress Queue::tryRun(Attempt &attempt) {
  switch (attempt.kind) {
  case Attempt::Kind::Close:
    if (closed)
      attempt.result = absl::CancelledError(absl::StrCat("Queue '", sig.name, "' is already closed."));
    else
      attempt.result = Tuple();
    closed = true;
    return Progress::Complete;
  case Attempt::Kind::Enqueue:
    if (closed) {
      attempt.result = closedError();
      return Progress::Complete;
    }
    if (stored() >= sig.capacity)
      return Progress::None;
    push(std::move(attempt.tuple));
    attempt.result = Tuple();
    return Progress::Complete;
  case Attempt::Kind::EnqueueMany: {
    if (closed) {
      attempt.result = closedError();
      return Progress::Complete;
    }
    Progress progress = Progress::None;
    while (stored() < sig.capacity) {
      Tuple element;
      for (const Tensor &component : attempt.tuple)
        element.push_back(rowOf(component, attempt.next));
      push(std::move(element));
      progress = Progress::Some;
      if (++attempt.next == attempt.count) {
        attempt.tuple.clear();
        attempt.result = Tuple();
        return Progress::Complete;
      }
    }
    return progress;
  }
  case Attempt::Kind::Dequeue:
    if (closed && stored() == 0) {
      attempt.result = insufficient(1);
      return Progress::Complete;
    }
    if (takeable() <= 0)
      return Progress::None;
    attempt.result = pop();
    return Progress::Complete;
  case Attempt::Kind::DequeueMany:
    return tryDequeueMany(attempt);
  }
  return Progress::None;
}

Queue::Progress Queue::tryDequeueMany(Attempt &attempt) {
  int64_t missing = attempt.count - static_cast<int64_t>(attempt.taken.size());
  if (closed && stored() < missing) {
    for (; !attempt.taken.empty(); attempt.taken.pop_back())
      putBack(std::move(attempt.taken.back()));
    if (!attempt.upTo || stored() == 0) {
      // additions that still wait are refused first, then this one's turn comes again
      if (attempt.upTo && !adding.empty())
        return Progress::Some;
      attempt.result = insufficient(attempt.count);
      return Progress::Complete;
    }
    attempt.count = stored();
  }
  Progress progress = Progress::None;
  for (int64_t n = takeable(); n > 0; --n) {
    attempt.taken.push_back(pop());
    progress = Progress::Some;
    if (static_cast<int64_t>(attempt.taken.size()) == attempt.count) {
      attempt.result = join(attempt.taken);
      attempt.taken.clear();
      return Progress::Complete;
    }
  }
  return progress;
}

} // namespace lathe::rt
