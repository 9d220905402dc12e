// Each thread begins with the same share of the indices in every region, so that it finds in its caches what it wrote
// in the region before; one that has finished takes from the ends of the others' shares. Waiting is busy for a few
// microseconds, for regions of one model follow each other closely, then polite, and in the end asleep.
//
// A cache line takes a tenth of a microsecond and more from core to core, so a region is made of few of them: one line
// that the caller writes and the workers read, and one line for each thread's share, which only its owner writes unless
// another takes from it. What is left of a share carries the number of its region: shares of older regions are whole,
// and nobody has to write them at the start. The caller needs no worker for a region to end: it takes what they have not
// begun, and waits for what they have.
//
// Schedulers put a thread that wakes up beside the one that woke it, and some leave both on one core for tens of
// milliseconds while others idle. So threads note where they run, and a worker that finds itself where one before it runs
// keeps off that core from then on.
#include "runtime/cpu/ThreadPool.h"
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>
#if defined(__linux__)
#include <sched.h>
#endif

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

/// Where threads run: written when that changes only, read in every region.
class Places {
public:
  explicit Places(size_t threads) : cpus(threads) {
    for (std::atomic<int> &cpu : cpus)
      cpu.store(-1, std::memory_order_relaxed);
#if defined(__linux__)
    cpu_set_t allowed;
    enough = sched_getaffinity(0, sizeof(allowed), &allowed) == 0 && CPU_COUNT(&allowed) >= static_cast<int>(threads);
#endif
  }

  /// Notes the core of the thread `self`, the caller; whether one before it is there, though there are enough for all.
  bool collides([[maybe_unused]] size_t self) {
#if defined(__linux__)
    if (!enough)
      return false;
    const int cpu = sched_getcpu();
    if (cpus[self].load(std::memory_order_relaxed) != cpu)
      cpus[self].store(cpu, std::memory_order_relaxed);
    for (size_t t = 0; t < self; ++t)
      if (cpus[t].load(std::memory_order_relaxed) == cpu)
        return true;
#endif
    return false;
  }

  int cpuOf(size_t thread) const { return cpus[thread].load(std::memory_order_relaxed); }

private:
  std::vector<std::atomic<int>> cpus;
  bool enough = false;
};

/// Keeps a worker off the cores of the threads before it.
class Aside {
public:
  Aside(Places &places, size_t self) : places(places), self(self) {}

  /// In each region; moves the calling thread where it must, but not all the time: something else may want it here.
  void look() {
    if (!places.collides(self))
      return;
    const auto now = std::chrono::steady_clock::now();
    if (now < rests)
      return;
    rests = now + std::chrono::milliseconds(1);
    move();
  }

private:
  void move() {
#if defined(__linux__)
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
      return;
    for (int cpu : avoided)
      CPU_SET(cpu, &allowed);
    avoided.clear();
    for (size_t t = 0; t < self; ++t)
      if (const int cpu = places.cpuOf(t); cpu >= 0 && cpu < CPU_SETSIZE && CPU_ISSET(cpu, &allowed)) {
        CPU_CLR(cpu, &allowed);
        avoided.push_back(cpu);
      }
    if (CPU_COUNT(&allowed) == 0 || sched_setaffinity(0, sizeof(allowed), &allowed) != 0)
      avoided.clear();
#endif
  }

  Places &places;
  const size_t self;
  std::vector<int> avoided;
  std::chrono::steady_clock::time_point rests;
};

/// What is left of a thread's share in a region: pieces [begin, end), eight bits each, below the region's number.
struct alignas(64) Share {
  static constexpr int64_t mostPieces = 255;

  std::atomic<uint64_t> left{0};
  std::atomic<uint64_t> finished{0}; ///< pieces that the owner has done since it was started, its own and others'

  /// Takes the first piece, or the last one, of `whole` in `region`; -1 when nothing is left, or the region is over.
  int64_t take(uint64_t region, int64_t whole, bool first) {
    uint64_t now = left.load(std::memory_order_relaxed);
    for (;;) {
      if (now >> 16 > region)
        return -1;
      uint64_t begin = 0, end = whole;
      if (now >> 16 == region) {
        begin = now >> 8 & 0xff;
        end = now & 0xff;
      }
      if (begin >= end)
        return -1;
      const uint64_t taken = first ? begin++ : --end;
      if (left.compare_exchange_weak(now, region << 16 | begin << 8 | end, std::memory_order_relaxed))
        return taken;
    }
  }
};

/// What a region does.
struct Work {
  void (*fn)(void *, int64_t, int64_t);
  void *arg;
  int64_t n;      ///< indices
  int64_t pieces; ///< ranges of them, a call each

  void run(int64_t piece) const { fn(arg, n * piece / pieces, n * (piece + 1) / pieces); }
};

} // namespace

struct ThreadPool::State {
  explicit State(int threads) : shares(threads), seen(threads), places(threads) {}

  std::vector<std::thread> workers;
  std::vector<Share> shares;
  std::vector<uint64_t> seen; ///< the caller's: `finished` of each share at the end of the region before
  Places places;
  std::mutex mutex;
  std::condition_variable wake;
  std::atomic<int> sleepers{0};
  std::atomic<bool> stop{false};
  std::atomic<bool> inRegion{false};

  /// The region: its number, which is written last, and what it does. Zero while the rest changes.
  struct alignas(64) Region {
    std::atomic<uint64_t> number{0};
    std::atomic<void (*)(void *, int64_t, int64_t)> fn{nullptr};
    std::atomic<void *> arg{nullptr};
    std::atomic<int64_t> n{0}, pieces{0};
  } region;
  alignas(64) uint64_t last = 0; ///< the caller's: number of the last region

  /// Does pieces of the region, the thread's own and then others', and returns how many. They are counted before the
  /// next share is looked at, for the caller may be waiting.
  int64_t drain(size_t self, uint64_t number, const Work &work) {
    const int64_t threads = shares.size();
    int64_t all = 0;
    for (int64_t k = 0; k < threads; ++k) {
      const int64_t t = (self + k) % threads, first = work.pieces * t / threads, whole = work.pieces * (t + 1) / threads - first;
      int64_t done = 0;
      for (int64_t i; (i = shares[t].take(number, whole, k == 0)) >= 0; ++done)
        work.run(first + i);
      all += done;
      if (done > 0 && self > 0)
        shares[self].finished.store(shares[self].finished.load(std::memory_order_relaxed) + done, std::memory_order_release);
    }
    return all;
  }

  void work(size_t self) {
    uint64_t old = 0;
    Share &own = shares[self];
    Aside aside(places, self);
    for (;;) {
      uint64_t number = 0;
      auto called = [&] {
        number = region.number.load(std::memory_order_acquire);
        return number != 0 && number != old;
      };
      // the caller has looked at this line: to have it back before the next region begins
      waitBusily(4, called);
      own.finished.store(own.finished.load(std::memory_order_relaxed), std::memory_order_relaxed);
      // a pool may end while its threads are still polite, which takes seconds where many processes want the cores
      auto calledOrOver = [&] { return called() || stop.load(std::memory_order_relaxed); };
      if (!waitBusily(busyRounds + politeRounds, calledOrOver)) {
        std::unique_lock<std::mutex> lock(mutex);
        ++sleepers;
        wake.wait(lock, calledOrOver);
        --sleepers;
      }
      if (stop.load(std::memory_order_relaxed))
        return;
      const Work work{region.fn.load(std::memory_order_relaxed), region.arg.load(std::memory_order_relaxed),
                      region.n.load(std::memory_order_relaxed), region.pieces.load(std::memory_order_relaxed)};
      // as a whole, or the region was over before this thread came
      std::atomic_thread_fence(std::memory_order_acquire);
      if (region.number.load(std::memory_order_relaxed) != number)
        continue;
      old = number;
      aside.look();
      drain(self, number, work);
    }
  }

  void wakeSleepers() {
    if (sleepers.load() == 0)
      return;
    { std::lock_guard<std::mutex> lock(mutex); } // one that is about to sleep has seen the old region: let it
    wake.notify_all();
  }

  void run(const Work &work) {
    places.collides(0);
    region.number.store(0, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    region.fn.store(work.fn, std::memory_order_relaxed);
    region.arg.store(work.arg, std::memory_order_relaxed);
    region.n.store(work.n, std::memory_order_relaxed);
    region.pieces.store(work.pieces, std::memory_order_relaxed);
    region.number.store(++last, std::memory_order_release);
    // One that goes to sleep at this moment may be missed until the next region: then this one is done without it.
    wakeSleepers();
    const int64_t others = work.pieces - drain(0, last, work);
    auto finished = [&] {
      int64_t sum = 0;
      for (size_t t = 1; t < shares.size(); ++t)
        sum += static_cast<int64_t>(shares[t].finished.load(std::memory_order_acquire) - seen[t]);
      return sum == others;
    };
    while (!waitBusily(busyRounds + politeRounds, finished))
      ;
    for (size_t t = 1; t < shares.size(); ++t)
      seen[t] = shares[t].finished.load(std::memory_order_relaxed);
  }
};

ThreadPool::ThreadPool(int threads) : state(new State(std::max(threads, 1))) {
  for (int i = 1; i < threads; ++i)
    state->workers.emplace_back([s = state.get(), i] { s->work(i); });
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard<std::mutex> lock(state->mutex);
    state->stop = true;
  }
  state->wake.notify_all();
  for (std::thread &t : state->workers)
    t.join();
}

int ThreadPool::threads() const { return static_cast<int>(state->workers.size()) + 1; }

int ThreadPool::parallelFor(void *ctx, void (*fn)(void *, int64_t, int64_t), void *arg, int64_t n) {
  State &s = *static_cast<ThreadPool *>(ctx)->state;
  if (n <= 0)
    return 0;
  bool expected = false;
  if (n == 1 || s.workers.empty() || !s.inRegion.compare_exchange_strong(expected, true, std::memory_order_acquire)) {
    fn(arg, 0, n);
    return 0;
  }
  s.run({fn, arg, n, std::min<int64_t>(n, Share::mostPieces * s.shares.size())});
  s.inRegion.store(false, std::memory_order_release);
  return 0;
}

} // namespace lathe
