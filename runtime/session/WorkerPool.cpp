#include "runtime/session/WorkerPool.h"

#include <condition_variable>
#include <deque>
#include <mutex>

namespace lathe::rt {

struct WorkerPool::State {
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<std::function<void()>> queue;
  bool stopping = false;

  void work() {
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      wake.wait(lock, [&] { return stopping || !queue.empty(); });
      if (queue.empty())
        return;
      std::function<void()> closure = std::move(queue.front());
      queue.pop_front();
      lock.unlock();
      closure();
      closure = nullptr; // what it owns goes without the lock
      lock.lock();
    }
  }
};

WorkerPool::WorkerPool(int count) : state(std::make_shared<State>()) {
  for (int i = 0; i < count; ++i)
    threads.emplace_back([s = state] { s->work(); });
}

WorkerPool::~WorkerPool() {
  {
    std::lock_guard<std::mutex> lock(state->mutex);
    state->stopping = true;
  }
  state->wake.notify_all();
  for (std::thread &t : threads) {
    // the last owner of the pool may be one of its own closures
    if (t.get_id() == std::this_thread::get_id())
      t.detach();
    else
      t.join();
  }
}

void WorkerPool::schedule(std::function<void()> closure) {
  {
    std::lock_guard<std::mutex> lock(state->mutex);
    state->queue.push_back(std::move(closure));
  }
  state->wake.notify_one();
}

} // namespace lathe::rt
