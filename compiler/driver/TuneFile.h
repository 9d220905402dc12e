// The file that --tune keeps its findings in: plans of kernels by target and signature, as JSON.
#ifndef LATHE_COMPILER_DRIVER_TUNEFILE_H
#define LATHE_COMPILER_DRIVER_TUNEFILE_H

#include "passes/codegen/Plan.h"
#include "llvm/Support/Error.h"

#include <map>
#include <string>

namespace lathe {

/// What a search found for one kernel. An empty plan: nothing was faster than what estimates choose.
struct TunedKernel {
  codegen::KernelPlan plan;
  double us = 0, estimatedUs = 0; ///< with this plan and with the estimates'; for readers, plans do not depend on them
};

class TuneFile {
public:
  /// Of the plans' meaning: files of another version are ignored.
  static constexpr int version = 1;

  /// Reads a file; `warnings` says what of it was left out. A file that is none of ours is an error, one that does not
  /// exist is empty if `mayLack`.
  static llvm::Expected<TuneFile> read(const std::string &path, bool mayLack, std::string &warnings);
  /// Writes a new file and renames it.
  llvm::Error write(const std::string &path) const;

  codegen::PlanTable plansFor(const std::string &target) const;
  std::map<std::string, TunedKernel> &kernelsOf(const std::string &target) { return targets[target]; }

private:
  std::map<std::string, std::map<std::string, TunedKernel>> targets;
};

} // namespace lathe

#endif
