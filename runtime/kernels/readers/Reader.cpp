#include "runtime/kernels/readers/Reader.h"

#include "base/ProtoWire.h"

namespace lathe::rt {

void Reader::read(int64_t count, std::shared_ptr<Queue> queue, Cancellation *cancellation, Done done) {
  auto request = std::make_shared<Request>();
  request->count = count;
  request->queue = std::move(queue);
  request->cancellation = cancellation;
  request->done = std::move(done);
  {
    std::lock_guard<std::mutex> lock(mutex);
    requests.push_back(std::move(request));
    if (busy)
      return;
    busy = true;
  }
  serve();
}

bool Reader::readSome(Request &request, absl::Status &result) {
  while (started != finished) {
    std::string key, value;
    auto any = next(key, value);
    if (!any.ok()) {
      result = any.status();
      return true;
    }
    if (!*any) {
      clear();
      finished = started;
      return !request.records.empty();
    }
    ++produced;
    request.records.emplace_back(std::move(key), std::move(value));
    if (isOneRecord()) {
      clear();
      finished = started;
      return true;
    }
    if (static_cast<int64_t>(request.records.size()) == request.count)
      return true;
  }
  return false;
}

void Reader::serve() {
  // Who holds `busy` serves; while a request waits for work, the queue's callback holds it. A callback that comes at
  // once must not recurse, hence the two flags.
  for (;;) {
    RequestPtr request;
    absl::Status result;
    bool complete;
    {
      std::lock_guard<std::mutex> lock(mutex);
      if (requests.empty()) {
        busy = false;
        return;
      }
      request = requests.front();
      complete = readSome(*request, result);
      if (complete)
        requests.pop_front();
    }
    if (complete) {
      if (result.ok())
        request->done(std::move(request->records));
      else
        request->done(result);
      continue;
    }
    struct Wait {
      std::mutex mutex;
      bool returned = false, called = false;
    };
    auto wait = std::make_shared<Wait>();
    request->queue->dequeue(request->cancellation, [self = shared_from_this(), request, wait](absl::StatusOr<Queue::Tuple> tuple) {
      absl::Status status = tuple.status();
      if (status.ok() && (tuple->size() != 1 || (*tuple)[0].dtype() != DType::String || (*tuple)[0].numElements() != 1))
        status = absl::InvalidArgumentError("Reader expects the queue to have one component of scalar strings");
      {
        std::lock_guard<std::mutex> lock(self->mutex);
        if (status.ok()) {
          self->work = (*tuple)[0].strings()[0];
          status = self->start();
          if (status.ok())
            ++self->started;
        }
        if (!status.ok())
          self->requests.pop_front();
      }
      if (!status.ok())
        request->done(status);
      bool here;
      {
        std::lock_guard<std::mutex> lock(wait->mutex);
        wait->called = true;
        here = wait->returned;
      }
      if (here)
        self->serve();
    });
    {
      std::lock_guard<std::mutex> lock(wait->mutex);
      wait->returned = true;
      if (!wait->called)
        return;
    }
  }
}

int64_t Reader::recordsProduced() const {
  std::lock_guard<std::mutex> lock(mutex);
  return produced;
}

int64_t Reader::workUnitsCompleted() const {
  std::lock_guard<std::mutex> lock(mutex);
  return finished;
}

absl::Status Reader::reset() {
  std::lock_guard<std::mutex> lock(mutex);
  clear();
  started = finished = produced = 0;
  work.clear();
  return absl::OkStatus();
}

// The state is a ReaderBaseState: work started and finished, records produced, current work.
absl::StatusOr<std::string> Reader::serializeState() const {
  std::lock_guard<std::mutex> lock(mutex);
  if (!hasSimpleState())
    return absl::UnimplementedError("Reader SerializeState");
  std::string out;
  if (started)
    appendProtoNumber(out, 1, static_cast<uint64_t>(started));
  if (finished)
    appendProtoNumber(out, 2, static_cast<uint64_t>(finished));
  if (produced)
    appendProtoNumber(out, 3, static_cast<uint64_t>(produced));
  if (!work.empty())
    appendProtoBytes(out, 4, work);
  return out;
}

absl::Status Reader::restoreState(const std::string &state) {
  std::lock_guard<std::mutex> lock(mutex);
  if (!hasSimpleState())
    return absl::UnimplementedError("Reader RestoreState");
  ByteReader in(state);
  ProtoField f;
  int64_t numbers[3] = {};
  std::string name;
  while (in.remaining()) {
    if (!readProtoField(in, f))
      return absl::InvalidArgumentError("Could not parse state");
    if (f.number >= 1 && f.number <= 3 && f.wire == 0)
      numbers[f.number - 1] = static_cast<int64_t>(f.value);
    else if (f.number == 4 && f.wire == 2)
      name = std::string(f.bytes);
  }
  if (numbers[0] < 0 || numbers[1] < 0 || numbers[2] < 0)
    return absl::InvalidArgumentError("the state has negative counts");
  if (numbers[0] < numbers[1] || numbers[0] > numbers[1] + 1)
    return absl::InvalidArgumentError(
        absl::StrCat("inconsistent work started vs. finished: ", numbers[0], " vs. ", numbers[1]));
  clear();
  started = numbers[0];
  finished = numbers[1];
  produced = numbers[2];
  work = name;
  return started != finished ? start() : absl::OkStatus();
}

} // namespace lathe::rt
