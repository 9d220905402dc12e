// The memory of elements that an iterator keeps before it gives one.
#ifndef LATHE_RUNTIME_KERNELS_DATA_HOLDING_H
#define LATHE_RUNTIME_KERNELS_DATA_HOLDING_H

#include "base/Memory.h"
#include "runtime/kernels/data/Dataset.h"

#include <algorithm>

namespace lathe::rt {

/// Counts elements that are kept: small buffers are not counted by themselves, and an endless input under a large window or
/// batch is many of them.
class Holding {
public:
  Holding() = default;
  Holding(const Holding &) = delete;
  Holding &operator=(const Holding &) = delete;
  ~Holding() { giveMemoryBack(taken); }

  /// RESOURCE_EXHAUSTED when it passes what there is.
  absl::Status add(const Element &element) {
    held += cost(element);
    if (held <= taken)
      return absl::OkStatus();
    size_t more = (held - taken + kPortion - 1) / kPortion * kPortion;
    if (!takeMemory(more)) {
      held -= cost(element);
      return absl::ResourceExhaustedError(absl::StrCat("the elements that the dataset must keep need more memory than there is: the limit is ",
                                                       memoryBudget(), " bytes (LATHE_MAX_MEMORY, or --max-memory)"));
    }
    taken += more;
    return absl::OkStatus();
  }
  void drop(const Element &element) {
    held -= std::min(cost(element), held);
    if (taken - std::min(held, taken) < 2 * kPortion)
      return;
    size_t spare = (taken - held) / kPortion * kPortion;
    giveMemoryBack(spare);
    taken -= spare;
  }

private:
  /// Taken at once: less than a page would not be counted.
  static constexpr size_t kPortion = 1 << 16;
  /// Buffers of a page and more count themselves.
  static size_t cost(const Element &element) {
    size_t bytes = 64;
    for (const Tensor &t : element) {
      const size_t own = static_cast<size_t>(totalBytes(t));
      bytes += 192 + (t.dtype() == DType::String || own < 4096 ? own : 0);
    }
    return bytes;
  }
  size_t held = 0, taken = 0;
};

/// For loops over an input that may never give an element.
inline absl::Status checkCancelled(const IteratorEnv &env) {
  return env.cancellation && env.cancellation->isCancelled() ? absl::CancelledError("the iterator was cancelled")
                                                             : absl::OkStatus();
}

} // namespace lathe::rt

#endif
