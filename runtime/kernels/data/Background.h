// Threads for iterators, which block and so must keep off the executor's.
#ifndef LATHE_RUNTIME_KERNELS_DATA_BACKGROUND_H
#define LATHE_RUNTIME_KERNELS_DATA_BACKGROUND_H

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace lathe::rt {

/// Runs closures one after the other on a thread of its own, which starts with the first. What is queued when it is
/// destroyed still runs.
class SerialWorker {
public:
  SerialWorker() = default;
  SerialWorker(const SerialWorker &) = delete;
  ~SerialWorker() {
    if (!thread.joinable())
      return;
    {
      std::lock_guard<std::mutex> lock(state->mutex);
      state->stopped = true;
      state->changed.notify_all();
    }
    // the last reference may go from inside one of the closures
    if (thread.get_id() == std::this_thread::get_id())
      thread.detach();
    else
      thread.join();
  }
  void run(std::function<void()> closure) {
    std::lock_guard<std::mutex> lock(state->mutex);
    state->todo.push_back(std::move(closure));
    state->changed.notify_all();
    if (!thread.joinable())
      thread = std::thread([state = state] { loop(*state); });
  }

private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::function<void()>> todo;
    bool stopped = false;
  };
  static void loop(State &state) {
    std::unique_lock<std::mutex> lock(state.mutex);
    for (;;) {
      state.changed.wait(lock, [&] { return state.stopped || !state.todo.empty(); });
      if (state.todo.empty())
        return;
      std::function<void()> closure = std::move(state.todo.front());
      state.todo.pop_front();
      lock.unlock();
      closure();
      closure = nullptr; // may destroy the worker
      lock.lock();
    }
  }
  const std::shared_ptr<State> state = std::make_shared<State>();
  std::thread thread;
};

} // namespace lathe::rt

#endif
