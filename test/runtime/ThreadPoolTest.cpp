// The pool behind parallel_for: every index once, whatever the threads do, and the same thread for the same share.
#include "runtime/cpu/ThreadPool.h"
#include "gtest/gtest.h"

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>
#if defined(__linux__)
#include <sched.h>
#endif

using lathe::ThreadPool;

namespace {

template <class F> void run(ThreadPool &pool, int64_t n, F f) {
  ThreadPool::parallelFor(&pool, [](void *arg, int64_t begin, int64_t end) { (*static_cast<F *>(arg))(begin, end); }, &f, n);
}

TEST(ThreadPool, EveryIndexOnce) {
  for (int threads : {0, 1, 2, 3, 7}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads < 1 ? 1 : threads);
    for (int64_t n : {0, 1, 2, 3, 5, 8, 64, 1000}) {
      for (int round = 0; round < 50; ++round) {
        std::vector<std::atomic<int>> seen(n);
        run(pool, n, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i)
            ++seen[i];
        });
        for (int64_t i = 0; i < n; ++i)
          ASSERT_EQ(seen[i], 1) << threads << " threads, index " << i << " of " << n;
      }
    }
  }
}

TEST(ThreadPool, ManyIndicesInFewPieces) {
  for (int threads : {2, 3}) {
    ThreadPool pool(threads);
    for (int64_t n : {509, 510, 511, 765, 766, 100003}) {
      std::vector<std::atomic<int>> seen(n);
      std::atomic<int64_t> calls{0};
      run(pool, n, [&](int64_t begin, int64_t end) {
        ++calls;
        for (int64_t i = begin; i < end; ++i)
          ++seen[i];
      });
      for (int64_t i = 0; i < n; ++i)
        ASSERT_EQ(seen[i], 1) << threads << " threads, index " << i << " of " << n;
      EXPECT_LE(calls, 255 * threads);
    }
  }
}

// A worker that comes late must neither take from the next region with the work of this one nor be counted twice.
TEST(ThreadPool, RegionsFollowEachOther) {
  ThreadPool pool(3);
  std::vector<int64_t> seen(64);
  for (int64_t round = 1; round <= 20000; ++round) {
    const int64_t n = 2 + round * 7 % 40;
    if (round % 2)
      run(pool, n, [&, round](int64_t begin, int64_t) { seen[begin] = round; });
    else
      run(pool, n, [&, round](int64_t begin, int64_t) { seen[begin] = -round; });
    for (int64_t i = 0; i < n; ++i)
      ASSERT_EQ(seen[i], round % 2 ? round : -round) << "index " << i << " of " << n;
  }
}

TEST(ThreadPool, WakesWorkersThatSleep) {
  ThreadPool pool(2);
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    // index 0 waits for index 1: both threads must take part
    std::atomic<bool> other{false};
    run(pool, 2, [&](int64_t begin, int64_t) {
      if (begin == 1)
        other = true;
      while (!other)
        std::this_thread::yield();
    });
  }
}

TEST(ThreadPool, SharesStayWithTheirThreads) {
  ThreadPool pool(2);
  std::thread::id caller = std::this_thread::get_id();
  std::atomic<int> in{0};
  for (int round = 0; round < 20; ++round) {
    in = 0;
    std::thread::id who[2];
    run(pool, 2, [&](int64_t begin, int64_t) {
      who[begin] = std::this_thread::get_id();
      for (++in; in < 2;) // neither may take both
        std::this_thread::yield();
    });
    EXPECT_EQ(who[0], caller);
    EXPECT_NE(who[1], caller);
  }
}

#if defined(__linux__)
TEST(ThreadPool, WorkersLeaveTheCoreOfTheCaller) {
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
  if (CPU_COUNT(&all) < 2)
    GTEST_SKIP() << "one core";
  ThreadPool pool(2);
  // the caller goes wherever the worker is until the worker keeps off the caller's core
  bool apart = false;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  for (int cpu = -1; !apart && std::chrono::steady_clock::now() < end;) {
    std::atomic<int> in{0}, worker{-1};
    std::atomic<bool> avoids{false};
    run(pool, 2, [&](int64_t begin, int64_t) {
      if (begin == 1) {
        cpu_set_t mine;
        worker = sched_getcpu();
        avoids = sched_getaffinity(0, sizeof(mine), &mine) == 0 && cpu >= 0 && !CPU_ISSET(cpu, &mine);
      }
      for (++in; in < 2;) // neither may take both
        std::this_thread::yield();
    });
    apart = avoids && worker != cpu;
    if (!apart) {
      cpu = worker;
      cpu_set_t there;
      CPU_ZERO(&there);
      CPU_SET(cpu, &there);
      ASSERT_EQ(sched_setaffinity(0, sizeof(there), &there), 0);
    }
  }
  sched_setaffinity(0, sizeof(all), &all);
  EXPECT_TRUE(apart);
}
#endif

TEST(ThreadPool, NestedAndConcurrentRegionsRunWhereTheyAre) {
  ThreadPool pool(3);
  std::atomic<int> sum{0};
  auto outer = [&] {
    for (int round = 0; round < 200; ++round)
      run(pool, 6, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          run(pool, 4, [&](int64_t b, int64_t e) { sum += e - b; });
      });
  };
  std::thread a(outer), b(outer);
  a.join();
  b.join();
  EXPECT_EQ(sum, 2 * 200 * 6 * 4);
}

} // namespace
