// TF1 readers: take names of files (work) from a queue and give their records as keys and values.
#ifndef LATHE_RUNTIME_KERNELS_READERS_READER_H
#define LATHE_RUNTIME_KERNELS_READERS_READER_H

#include "runtime/kernels/queues/Queue.h"

#include <deque>

namespace lathe::rt {

class Reader : public Resource, public std::enable_shared_from_this<Reader> {
public:
  using Records = std::vector<std::pair<std::string, std::string>>; ///< keys and values
  using Done = std::function<void(absl::StatusOr<Records>)>;

  /// Up to `count` records, fewer at the end of a piece of work but at least one. Waits for work; errors of the queue
  /// are this one's. Requests are served in order.
  void read(int64_t count, std::shared_ptr<Queue> queue, Cancellation *cancellation, Done done);
  int64_t recordsProduced() const;
  int64_t workUnitsCompleted() const;
  /// UNIMPLEMENTED for readers whose state is more than the work they are at.
  absl::StatusOr<std::string> serializeState() const;
  absl::Status restoreState(const std::string &state);
  absl::Status reset();

protected:
  // Called by one request at a time.
  /// Begins `work`.
  virtual absl::Status start() = 0;
  /// The next record; false at the end of the work.
  virtual absl::StatusOr<bool> next(std::string &key, std::string &value) = 0;
  virtual void clear() = 0;
  virtual bool hasSimpleState() const { return false; }
  /// Every piece of work is one record, and done with it.
  virtual bool isOneRecord() const { return false; }
  std::string work;

private:
  struct Request {
    int64_t count;
    std::shared_ptr<Queue> queue;
    Cancellation *cancellation;
    Done done;
    Records records;
  };
  using RequestPtr = std::shared_ptr<Request>;
  void serve();
  /// True when the request is finished (with `result` set), false when it needs work.
  bool readSome(Request &request, absl::Status &result);

  mutable std::mutex mutex;
  std::deque<RequestPtr> requests;
  bool busy = false;
  int64_t started = 0, finished = 0, produced = 0;
};

} // namespace lathe::rt

#endif
