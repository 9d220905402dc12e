// The state of frames and iterations; for Step's own files.
#ifndef LATHE_RUNTIME_SESSION_STEPFRAMES_H
#define LATHE_RUNTIME_SESSION_STEPFRAMES_H

#include "runtime/session/Step.h"

#include <map>

namespace lathe::rt {

struct Step::Iteration {
  Iteration(const StaticFrame &info, int64_t number)
      : number(number), pending(new std::atomic<uint64_t>[info.pending.size()]), inputs(new Value[info.numInputs]) {
    for (size_t i = 0; i < info.pending.size(); ++i)
      pending[i].store(info.pending[i], std::memory_order_relaxed);
  }
  const int64_t number;
  std::unique_ptr<std::atomic<uint64_t>[]> pending;
  std::unique_ptr<Value[]> inputs;
  /// Nodes ready or running here; counted in loops only, and lowered under the frame's lock.
  std::atomic<int64_t> outstanding{0};
  int openFrames = 0; ///< loops inside this iteration, under the frame's lock
};

struct Step::Frame {
  Frame(const StaticFrame &info, int index) : info(info), index(index), pendingEnters(info.numEnters) {}
  Iteration *open(int64_t number) {
    auto &it = iterations[number];
    it = std::make_unique<Iteration>(info, number);
    return it.get();
  }
  Iteration *find(int64_t number) {
    auto it = iterations.find(number);
    return it == iterations.end() ? nullptr : it->second.get();
  }

  const StaticFrame &info;
  const int index; ///< of the static frame
  std::string id;
  Frame *parent = nullptr;
  Iteration *parentIteration = nullptr;
  int maxParallel = 1;

  std::mutex mutex; ///< guards what follows; taken child before parent, never the other way round
  std::map<int64_t, std::unique_ptr<Iteration>> iterations;
  int pendingEnters;
  int64_t lastNumber = 0; ///< of the newest iteration
  std::vector<std::pair<int, Value>> invariants;     ///< constant Enters and their values
  std::vector<std::pair<int, Value>> waiting;        ///< NextIterations for an iteration that may not open yet
  std::vector<int> deadExits;
};

} // namespace lathe::rt

#endif
