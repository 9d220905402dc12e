// A small pool of threads with the signature of the ABI's parallel_for: what `lathe run`, `lathe bench` and the tests
// hand to generated code. One parallel region at a time; nested or concurrent regions run on their caller's thread.
#ifndef LATHE_RUNTIME_CPU_THREADPOOL_H
#define LATHE_RUNTIME_CPU_THREADPOOL_H

#include "runtime/abi/module_abi.h"
#include <memory>

namespace lathe {

class ThreadPool {
public:
  /// `threads` counts the calling thread; less than 2 starts none.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;

  int threads() const;

  /// Runs fn over [0, n), an index a call, or some where there are hundreds for each thread: each thread its share, in
  /// the same place each time, then what is left of the others'. `ctx` is a ThreadPool.
  static int parallelFor(void *ctx, void (*fn)(void *arg, int64_t begin, int64_t end), void *arg, int64_t n);

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace lathe

#endif
