// Threads that run closures: the inter-op threads of a set of devices. A chain of nodes never comes here, it stays on the
// thread that made it ready.
#ifndef LATHE_RUNTIME_SESSION_WORKERPOOL_H
#define LATHE_RUNTIME_SESSION_WORKERPOOL_H

#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace lathe::rt {

class WorkerPool {
public:
  explicit WorkerPool(int threads);
  /// Runs what is queued, then joins. May be called by one of its own closures.
  ~WorkerPool();
  WorkerPool(const WorkerPool &) = delete;
  WorkerPool &operator=(const WorkerPool &) = delete;

  void schedule(std::function<void()> work);
  int size() const { return static_cast<int>(threads.size()); }

private:
  struct State;
  std::shared_ptr<State> state; ///< shared with the threads: one of them may outlive the pool
  std::vector<std::thread> threads;
};

} // namespace lathe::rt

#endif
