// The time that LLVM's optimiser spends in each group of kernels.
#ifndef LATHE_COMPILER_EMIT_OPTIMIZETIMES_H
#define LATHE_COMPILER_EMIT_OPTIMIZETIMES_H

#include "passes/lower/KernelTimes.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/PassInstrumentation.h"

#include <chrono>

namespace lathe {

/// Charges each moment to the innermost function that a pass works on. Passes over the whole module, and functions that are no
/// kernels, are the group "".
class OptimizeTimes {
public:
  /// Adds to `times` whatever passes with these callbacks do from now on. Both must live as long as the passes run.
  OptimizeTimes(llvm::PassInstrumentationCallbacks &callbacks, lower::KernelTimes &times);

private:
  void enter(lower::KernelTime &group);
  void leave();
  void charge();

  lower::KernelTimes &times;
  llvm::SmallVector<lower::KernelTime *> inside; ///< innermost last; entries of a std::map stay where they are
  std::chrono::steady_clock::time_point since;
};

} // namespace lathe

#endif
