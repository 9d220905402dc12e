#include "runtime/session/Coordinator.h"

#include <algorithm>

namespace lathe {

Coordinator::~Coordinator() {
  RequestStop();
  Join().IgnoreError();
}

absl::Status Coordinator::RegisterRunner(std::unique_ptr<Runner> runner) {
  std::lock_guard<std::mutex> lock(mutex);
  if (stop)
    return absl::CancelledError("the coordinator has been asked to stop");
  runners.push_back(std::move(runner));
  return absl::OkStatus();
}

bool Coordinator::AllRunnersStopped() const {
  std::lock_guard<std::mutex> lock(mutex);
  return std::none_of(runners.begin(), runners.end(), [](const auto &r) { return r->IsRunning(); });
}

void Coordinator::RequestStop() {
  std::lock_guard<std::mutex> lock(mutex);
  stop = true;
  stopRequested.notify_all();
}

bool Coordinator::ShouldStop() const {
  std::lock_guard<std::mutex> lock(mutex);
  return stop;
}

void Coordinator::WaitForStop() {
  std::unique_lock<std::mutex> lock(mutex);
  stopRequested.wait(lock, [&] { return stop; });
}

void Coordinator::ReportStatus(const absl::Status &reported) {
  std::lock_guard<std::mutex> lock(mutex);
  if (status.ok() && std::find(cleanStops.begin(), cleanStops.end(), reported.code()) == cleanStops.end())
    status = reported;
}

absl::Status Coordinator::GetStatus() const {
  std::lock_guard<std::mutex> lock(mutex);
  return status;
}

absl::Status Coordinator::Join() {
  std::vector<std::unique_ptr<Runner>> joined;
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (!stop)
      return absl::FailedPreconditionError("joining a coordinator that has not been asked to stop");
    joined.swap(runners);
  }
  // without the lock: their threads ask this coordinator
  for (auto &runner : joined)
    ReportStatus(runner->Join());
  return GetStatus();
}

} // namespace lathe
