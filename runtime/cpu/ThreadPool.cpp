// Workers spin for a short while before they sleep: regions of one model follow each other within microseconds.
#include "runtime/cpu/ThreadPool.h"
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace lathe {

struct ThreadPool::State {
  std::vector<std::thread> workers;
  std::mutex mutex;
  std::condition_variable wake;
  std::atomic<uint64_t> generation{0}; ///< grows by one per region
  std::atomic<int> busy{0};            ///< workers that have not finished the region
  std::atomic<bool> stop{false};
  std::atomic<bool> inRegion{false};

  // the region's work, written before `generation` is published
  void (*fn)(void *, int64_t, int64_t) = nullptr;
  void *arg = nullptr;
  int64_t n = 0;
  std::atomic<int64_t> next{0};

  void drain() {
    for (int64_t i = next.fetch_add(1, std::memory_order_relaxed); i < n;
         i = next.fetch_add(1, std::memory_order_relaxed))
      fn(arg, i, i + 1);
  }

  void work() {
    uint64_t seen = 0;
    for (;;) {
      for (int spin = 0; spin < 2000 && generation.load(std::memory_order_acquire) == seen; ++spin)
        std::this_thread::yield();
      if (generation.load(std::memory_order_acquire) == seen) {
        std::unique_lock<std::mutex> lock(mutex);
        wake.wait(lock, [&] { return generation.load(std::memory_order_acquire) != seen; });
      }
      ++seen;
      if (stop.load(std::memory_order_relaxed))
        return;
      drain();
      busy.fetch_sub(1, std::memory_order_release);
    }
  }

  void publish() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      generation.fetch_add(1, std::memory_order_release);
    }
    wake.notify_all();
  }
};

ThreadPool::ThreadPool(int threads) : state(new State) {
  for (int i = 1; i < threads; ++i)
    state->workers.emplace_back([s = state.get()] { s->work(); });
}

ThreadPool::~ThreadPool() {
  state->stop = true;
  state->publish();
  for (std::thread &t : state->workers)
    t.join();
}

int ThreadPool::threads() const { return static_cast<int>(state->workers.size()) + 1; }

int ThreadPool::parallelFor(void *ctx, void (*fn)(void *, int64_t, int64_t), void *arg, int64_t n) {
  State &s = *static_cast<ThreadPool *>(ctx)->state;
  if (n <= 0)
    return 0;
  bool expected = false;
  if (n == 1 || s.workers.empty() || !s.inRegion.compare_exchange_strong(expected, true)) {
    fn(arg, 0, n);
    return 0;
  }
  s.fn = fn;
  s.arg = arg;
  s.n = n;
  s.next.store(0, std::memory_order_relaxed);
  s.busy.store(static_cast<int>(s.workers.size()), std::memory_order_relaxed);
  s.publish();
  s.drain();
  // Every worker must leave the region before its fields may be written again.
  while (s.busy.load(std::memory_order_acquire) != 0)
    std::this_thread::yield();
  s.inRegion.store(false);
  return 0;
}

} // namespace lathe
