// What --timing prints: each phase, beneath it its passes in order, and for kernels their groups.
#ifndef LATHE_COMPILER_DRIVER_TIMING_H
#define LATHE_COMPILER_DRIVER_TIMING_H

#include "compiler/driver/Options.h"
#include "passes/lower/KernelTimes.h"

#include "mlir/Pass/PassInstrumentation.h"
#include "llvm/ADT/DenseMap.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace lathe {

/// Seconds by name, in the order of first appearance.
struct NamedTimes {
  std::vector<std::pair<std::string, double>> entries;
  void add(llvm::StringRef name, double seconds);
};

/// Adds the time of each run of a pass to `times`, which must outlive it. Passes that other passes run count for both; those that run
/// on several functions at once count for each.
std::unique_ptr<mlir::PassInstrumentation> makePassClock(NamedTimes &times);

struct Timing {
  NamedTimes passes;          ///< of the phase
  lower::KernelTimes emitted;  ///< by the backend, within Phase::Lower
  lower::KernelTimes optimized; ///< by LLVM, within Phase::Emit
  double codegen = 0;         ///< seconds that LLVM took for instructions and the object

  /// Prints a phase that has ended, and forgets its passes.
  void print(Phase phase, double seconds);
};

} // namespace lathe

#endif
