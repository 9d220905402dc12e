// Calls an entry of a compiled module with tensors: sizes solved from shapes, outputs and workspace allocated.
#ifndef LATHE_RUNTIME_SESSION_MODULECALL_H
#define LATHE_RUNTIME_SESSION_MODULECALL_H

#include "base/Tensor.h"
#include "runtime/abi/module_abi.h"

#include "absl/status/status.h"
#include "absl/types/span.h"

#include <vector>

namespace lathe::rt {

class Device;
class DeviceMemory;
class DeviceRuns;

/// How parallel kernels of modules run.
struct IntraOp {
  lathe_parallel_for parallelFor = nullptr;
  void *context = nullptr;
  int threads = 1;
};

/// An entry, read once. Immutable; calls may be concurrent.
class ModuleCall {
public:
  ModuleCall(const lathe_module *module, int entry);

  /// `inputs` in the entry's order, `variables` pointers in the module's. INVALID_ARGUMENT when types or shapes do not fit,
  /// else the module's own error, which names the node. With a device that has a memory of its own, the module is for it, inputs
  /// lie there or on the host, and variables and outputs there; `runs` is what the device prepared for the module, and the run may
  /// still be under way at the end.
  absl::Status run(absl::Span<const Tensor *const> inputs, void *const *variables, const IntraOp &intraOp,
                   std::vector<Tensor> *outputs, Device *device = nullptr, DeviceRuns *runs = nullptr) const;

  const lathe_entry &entry() const { return *e; }

private:
  absl::Status solve(absl::Span<const Tensor *const> inputs, int64_t *sizes) const;
  int32_t runThere(Device &device, DeviceRuns *runs, const DeviceMemory *memory, absl::Span<const Tensor *const> inputs,
                   const lathe_run_args &args) const;
  absl::Status check(absl::Span<const Tensor *const> inputs, const int64_t *dims) const;

  const lathe_module *module;
  const lathe_entry *e;
  bool hasDataSymbols = false;
  int numDims = 0;
  int outputDims = 0; ///< position of the first output's dimensions
};

/// The status of a module's return code.
absl::Status moduleStatus(int32_t code, const char *message);

} // namespace lathe::rt

#endif
