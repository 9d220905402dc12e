// Threads around a session that stop together: TensorFlow's Coordinator.
#ifndef LATHE_RUNTIME_SESSION_COORDINATOR_H
#define LATHE_RUNTIME_SESSION_COORDINATOR_H

#include "absl/status/status.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

namespace lathe {

/// Something with threads of its own.
class Runner {
public:
  virtual ~Runner() = default;
  /// Waits for the threads; the first error that ended one of them.
  virtual absl::Status Join() = 0;
  virtual bool IsRunning() const = 0;
};

/// Safe to use from any thread. Outlives the runners that know it.
class Coordinator {
public:
  /// An input that has ended (OUT_OF_RANGE) is no error.
  Coordinator() : Coordinator({absl::StatusCode::kOutOfRange}) {}
  explicit Coordinator(std::vector<absl::StatusCode> cleanStops) : cleanStops(std::move(cleanStops)) {}
  /// Requests a stop and waits for the runners.
  ~Coordinator();
  Coordinator(const Coordinator &) = delete;
  Coordinator &operator=(const Coordinator &) = delete;

  /// Takes the runner, to join it. CANCELLED after a request to stop.
  absl::Status RegisterRunner(std::unique_ptr<Runner> runner);
  /// True when no registered runner has a thread left.
  bool AllRunnersStopped() const;

  void RequestStop();
  bool ShouldStop() const;
  /// Returns once a stop is requested.
  void WaitForStop();
  /// Keeps the first status that is neither OK nor a clean stop.
  void ReportStatus(const absl::Status &status);
  absl::Status GetStatus() const;
  /// Waits for the runners after a request to stop (FAILED_PRECONDITION before one); the first error reported.
  absl::Status Join();

private:
  const std::vector<absl::StatusCode> cleanStops;
  mutable std::mutex mutex; // guards what follows
  std::condition_variable stopRequested;
  bool stop = false;
  absl::Status status;
  std::vector<std::unique_ptr<Runner>> runners;
};

} // namespace lathe

#endif
