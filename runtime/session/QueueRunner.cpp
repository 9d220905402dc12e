#include "runtime/session/QueueRunner.h"

#include "proto/queue_runner.pb.h"

#include <algorithm>

namespace lathe {

absl::StatusOr<QueueRunnerDef> ParseQueueRunnerDef(std::string_view bytes) {
  tf::QueueRunnerDef message;
  if (bytes.size() > INT32_MAX || !message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return absl::InvalidArgumentError("not a QueueRunnerDef");
  QueueRunnerDef def;
  def.queueName = message.queue_name();
  def.enqueueOps.assign(message.enqueue_op_name().begin(), message.enqueue_op_name().end());
  def.closeOp = message.close_op_name();
  def.cancelOp = message.cancel_op_name();
  if (message.queue_closed_exception_types_size())
    def.queueClosedErrors.clear();
  for (int code : message.queue_closed_exception_types()) {
    if (code <= 0 || code > static_cast<int>(absl::StatusCode::kUnauthenticated))
      return absl::InvalidArgumentError("QueueRunnerDef: " + std::to_string(code) + " is no status code of an error");
    def.queueClosedErrors.push_back(static_cast<absl::StatusCode>(code));
  }
  return def;
}

absl::Status QueueRunner::New(QueueRunnerDef def, Coordinator *coordinator, std::unique_ptr<QueueRunner> *runner) {
  if (def.enqueueOps.empty())
    return absl::InvalidArgumentError("the runner of queue '" + def.queueName + "' has no enqueue op");
  runner->reset(new QueueRunner(std::move(def), coordinator));
  return absl::OkStatus();
}

QueueRunner::~QueueRunner() {
  if (coordinator && session)
    coordinator->RequestStop();
  Join().IgnoreError();
}

absl::Status QueueRunner::Start(Session *s) {
  std::lock_guard<std::mutex> lock(mutex);
  if (session)
    return absl::FailedPreconditionError("the runner of queue '" + def.queueName + "' has been started");
  session = s;
  enqueueing = running = def.enqueueOps.size();
  for (const std::string &op : def.enqueueOps)
    threads.emplace_back([this, &op] { enqueue(op); });
  if (coordinator)
    stopper = std::thread([this] {
      coordinator->WaitForStop();
      if (!def.cancelOp.empty())
        report(session->Run({}, {}, {def.cancelOp}, nullptr));
    });
  return absl::OkStatus();
}

void QueueRunner::enqueue(const std::string &op) {
  absl::Status ran;
  while (ran.ok() && !(coordinator && coordinator->ShouldStop()))
    ran = session->Run({}, {}, {op}, nullptr);
  bool stopping = coordinator && coordinator->ShouldStop(), last;
  bool ended = std::find(def.queueClosedErrors.begin(), def.queueClosedErrors.end(), ran.code()) != def.queueClosedErrors.end();
  {
    std::lock_guard<std::mutex> lock(mutex);
    last = --enqueueing == 0;
  }
  if (!ran.ok() && !ended && !stopping) {
    report(ran);
    if (coordinator)
      coordinator->RequestStop();
  } else if (ended && !stopping && last && !def.closeOp.empty()) {
    report(session->Run({}, {}, {def.closeOp}, nullptr));
  }
  std::lock_guard<std::mutex> lock(mutex);
  --running;
}

void QueueRunner::report(const absl::Status &reported) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (status.ok())
      status = reported;
  }
  if (coordinator)
    coordinator->ReportStatus(reported);
}

absl::Status QueueRunner::Join() {
  std::vector<std::thread> ended;
  std::thread stop;
  {
    std::lock_guard<std::mutex> lock(mutex);
    ended.swap(threads);
    stop.swap(stopper);
  }
  for (std::thread &t : ended)
    t.join();
  if (stop.joinable())
    stop.join();
  return GetStatus();
}

bool QueueRunner::IsRunning() const {
  std::lock_guard<std::mutex> lock(mutex);
  return running != 0;
}

absl::Status QueueRunner::GetStatus() const {
  std::lock_guard<std::mutex> lock(mutex);
  return status;
}

absl::Status StartQueueRunners(const std::vector<QueueRunnerDef> &defs, Session *session, Coordinator *coordinator) {
  for (const QueueRunnerDef &def : defs) {
    std::unique_ptr<QueueRunner> runner;
    if (absl::Status made = QueueRunner::New(def, coordinator, &runner); !made.ok())
      return made;
    QueueRunner *started = runner.get();
    if (absl::Status registered = coordinator->RegisterRunner(std::move(runner)); !registered.ok())
      return registered;
    if (absl::Status ran = started->Start(session); !ran.ok())
      return ran;
  }
  return absl::OkStatus();
}

} // namespace lathe
