// lathe bench --profile: the fastest time of each kernel call beside what the machine could do.
#ifndef LATHE_TOOLS_LATHE_PROFILE_H
#define LATHE_TOOLS_LATHE_PROFILE_H

#include "runtime/abi/module_abi.h"
#include "tools/lathe/Machine.h"

#include <nlohmann/json.hpp>

#include <chrono>
#include <optional>
#include <vector>

namespace lathe::cli {

class Profile {
public:
  /// `code`: what the module was compiled for.
  Profile(const lathe_module &module, int threads, const MachineCode &code = {});

  /// The trace hook of modules emitted for profiling; `ctx` is the Profile.
  static void trace(void *ctx, int32_t step, int32_t phase);

  /// Measures the machine, prints a table, slowest first, and the ten calls that lose most time to their bounds.
  void print(size_t runs) const;
  /// The table for programs.
  nlohmann::json json(size_t runs) const;

private:
  struct Step {
    double best = 1e30, start = 0;
    size_t calls = 0;
  };
  struct Line {
    int step;
    double seconds, bound; ///< of one call; bound 0: not known
    double perRun;         ///< of all calls in a run
  };
  std::vector<Line> lines(size_t runs) const;
  double now() const;
  /// The machine, measured when first asked for.
  const Machine &peak() const;

  const lathe_module &module;
  int threads;
  MachineCode code;
  double overhead = 0; ///< of reading the clock
  std::vector<Step> steps;
  mutable std::optional<Machine> machine;
};

} // namespace lathe::cli

#endif
