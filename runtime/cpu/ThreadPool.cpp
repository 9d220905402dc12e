// Each thread begins with the same share of the indices in every region, so that it finds in its caches what it wrote
// in the region before; one that has finished takes from the ends of the others' shares. Waiting is busy for a few
// microseconds, for regions of one model follow each other closely, then polite, and in the end asleep.
#include "runtime/cpu/ThreadPool.h"
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace lathe {
namespace {

/// Rounds of busy waiting (some tens of microseconds), and of yielding after them before a worker sleeps.
constexpr int busyRounds = 1000, politeRounds = 2000;

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Waits in `rounds` steps until `done`; whether it came to that.
template <class Done> bool waitBusily(int rounds, Done done) {
  for (int i = 0; i < rounds; ++i) {
    if (done())
      return true;
    if (i < busyRounds)
      relax();
    else
      std::this_thread::yield();
  }
  return done();
}

/// What is left of a thread's share: [begin, end) in the halves of one word.
struct alignas(64) Share {
  std::atomic<uint64_t> range{0};

  static uint64_t pack(uint64_t begin, uint64_t end) { return begin << 32 | end; }
  /// Takes the first index, or the last one; -1 when nothing is left.
  int64_t take(bool first) {
    uint64_t r = range.load(std::memory_order_relaxed);
    for (;;) {
      uint64_t begin = r >> 32, end = r & 0xffffffff;
      if (begin >= end)
        return -1;
      if (range.compare_exchange_weak(r, first ? pack(begin + 1, end) : pack(begin, end - 1), std::memory_order_relaxed))
        return first ? begin : end - 1;
    }
  }
};

} // namespace

struct ThreadPool::State {
  static constexpr uint32_t open = 1u << 31;

  explicit State(int threads) : shares(threads) {}

  std::vector<std::thread> workers;
  std::mutex mutex;
  std::condition_variable wake;
  std::atomic<int> sleepers{0};
  std::atomic<bool> stop{false};
  std::atomic<bool> inRegion{false};
  alignas(64) std::atomic<uint64_t> generation{0}; ///< grows by one per region
  /// Workers inside of the region, and whether more may enter. The region's fields change only when it is 0.
  alignas(64) std::atomic<uint32_t> gate{0};

  void (*fn)(void *, int64_t, int64_t) = nullptr;
  void *arg = nullptr;
  std::vector<Share> shares;

  void drain(size_t self) {
    for (int64_t i; (i = shares[self].take(true)) >= 0;)
      fn(arg, i, i + 1);
    for (size_t k = 1; k < shares.size(); ++k)
      for (int64_t i; (i = shares[(self + k) % shares.size()].take(false)) >= 0;)
        fn(arg, i, i + 1);
  }

  void work(size_t self) {
    uint64_t seen = 0;
    for (;;) {
      auto called = [&] { return generation.load() != seen; };
      if (!waitBusily(busyRounds + politeRounds, called)) {
        std::unique_lock<std::mutex> lock(mutex);
        ++sleepers;
        wake.wait(lock, called);
        --sleepers;
      }
      seen = generation.load();
      if (stop.load(std::memory_order_relaxed))
        return;
      uint32_t g = gate.load(std::memory_order_relaxed);
      while ((g & open) && !gate.compare_exchange_weak(g, g + 1, std::memory_order_acquire, std::memory_order_relaxed))
        ;
      if (!(g & open))
        continue; // the region was over before this thread came
      drain(self);
      gate.fetch_sub(1, std::memory_order_release);
    }
  }

  void publish() {
    ++generation;
    if (sleepers.load() == 0)
      return;
    { std::lock_guard<std::mutex> lock(mutex); } // one that is about to sleep has seen the old generation: let it
    wake.notify_all();
  }

  void run(int64_t n) {
    for (size_t t = 0; t < shares.size(); ++t)
      shares[t].range.store(Share::pack(n * t / shares.size(), n * (t + 1) / shares.size()), std::memory_order_relaxed);
    gate.store(open, std::memory_order_release);
    publish();
    drain(0);
    gate.fetch_and(~open, std::memory_order_acquire);
    while (!waitBusily(busyRounds + politeRounds, [&] { return gate.load(std::memory_order_acquire) == 0; }))
      ;
  }
};

ThreadPool::ThreadPool(int threads) : state(new State(std::max(threads, 1))) {
  for (int i = 1; i < threads; ++i)
    state->workers.emplace_back([s = state.get(), i] { s->work(i); });
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
  if (n == 1 || n > INT32_MAX || s.workers.empty() || !s.inRegion.compare_exchange_strong(expected, true)) {
    fn(arg, 0, n);
    return 0;
  }
  s.fn = fn;
  s.arg = arg;
  s.run(n);
  s.inRegion.store(false);
  return 0;
}

} // namespace lathe
