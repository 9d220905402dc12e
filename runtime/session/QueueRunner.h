// Threads that keep a queue full: TensorFlow's QueueRunner.
#ifndef LATHE_RUNTIME_SESSION_QUEUERUNNER_H
#define LATHE_RUNTIME_SESSION_QUEUERUNNER_H

#include "runtime/session/Coordinator.h"
#include "runtime/session/Session.h"

#include "absl/status/statusor.h"

#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace lathe {

/// What the collection "queue_runners" of a MetaGraphDef holds.
struct QueueRunnerDef {
  std::string queueName;
  std::vector<std::string> enqueueOps; ///< a thread runs each
  std::string closeOp, cancelOp;       ///< "": none
  std::vector<absl::StatusCode> queueClosedErrors = {absl::StatusCode::kOutOfRange}; ///< the input has ended
};

/// From the bytes of TensorFlow's message; INVALID_ARGUMENT for others.
absl::StatusOr<QueueRunnerDef> ParseQueueRunnerDef(std::string_view bytes);

class QueueRunner : public Runner {
public:
  /// INVALID_ARGUMENT without enqueue ops. The coordinator, where there is one, outlives the runner.
  static absl::Status New(QueueRunnerDef def, Coordinator *coordinator, std::unique_ptr<QueueRunner> *runner);
  /// Asks the coordinator to stop and waits for the threads. Without a coordinator they end with the input, or when the queue
  /// or the session is closed.
  ~QueueRunner() override;

  /// Starts the threads, once; FAILED_PRECONDITION afterwards. A thread ends at the first error: the input's end lets the
  /// last thread run the close op, another one asks the coordinator to stop. A stop runs the cancel op, which wakes threads
  /// that wait for room. The session outlives the threads.
  absl::Status Start(Session *session);
  absl::Status Join() override;
  bool IsRunning() const override;
  absl::Status GetStatus() const;

private:
  QueueRunner(QueueRunnerDef def, Coordinator *coordinator) : def(std::move(def)), coordinator(coordinator) {}
  void enqueue(const std::string &op);
  void report(const absl::Status &status);

  const QueueRunnerDef def;
  Coordinator *const coordinator;
  Session *session = nullptr;
  mutable std::mutex mutex; // guards what follows
  absl::Status status;
  size_t enqueueing = 0, running = 0; // threads in their loops, and those that have not ended
  std::vector<std::thread> threads;
  std::thread stopper;
};

/// Starts a runner of each def and registers it with the coordinator, which joins them.
absl::Status StartQueueRunners(const std::vector<QueueRunnerDef> &defs, Session *session, Coordinator *coordinator);

} // namespace lathe

#endif
