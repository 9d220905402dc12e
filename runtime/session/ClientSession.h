// Running graphs that a Scope builds, as TensorFlow's ClientSession.
#ifndef LATHE_RUNTIME_SESSION_CLIENTSESSION_H
#define LATHE_RUNTIME_SESSION_CLIENTSESSION_H

#include "graph/builder/Scope.h"
#include "runtime/session/Session.h"

#include <mutex>

namespace lathe {

/// A session over a scope's graph. Nodes that the graph gets later join with the next run; nodes that have been in a run may not
/// change any more (a gradient through a loop or call changes it), which is FAILED_PRECONDITION. Threads may run steps at once; the graph
/// may not grow meanwhile.
class ClientSession {
public:
  using Feeds = std::vector<std::pair<Output, Initializer>>;

  explicit ClientSession(const Scope &scope, const SessionOptions &options = {});

  /// The first error of the scope, or of the run. `outputs` may be null where nothing is fetched.
  absl::Status Run(const std::vector<Output> &fetches, std::vector<Tensor> *outputs);
  absl::Status Run(const Feeds &feeds, const std::vector<Output> &fetches, std::vector<Tensor> *outputs);
  absl::Status Run(const Feeds &feeds, const std::vector<Output> &fetches, const std::vector<Operation> &targets, std::vector<Tensor> *outputs);

  Session &session() { return *inner; }
  const Scope &scope() const { return built; }

private:
  absl::Status extend();

  Scope built;
  std::unique_ptr<Session> inner;
  std::mutex extending;
  int sent = 0;        ///< node ids below this are in the session
  int64_t changes = 0; ///< of the graph's nodes when they were sent
};

} // namespace lathe

#endif
