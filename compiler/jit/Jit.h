// Loads compiled modules into this process, from an object in memory (ORC, JITLink) or a shared library, and runs
// their entries on tensors.
#ifndef LATHE_COMPILER_JIT_JIT_H
#define LATHE_COMPILER_JIT_JIT_H

#include "base/Tensor.h"
#include "runtime/abi/module_abi.h"

#include "runtime/abi/device_abi.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string>
#include <vector>

namespace lathe {

class LoadedModule;

/// Everything one call needs, reusable: after the first run with the same input shapes nothing is allocated.
/// Not for concurrent use; many runners may share a module.
class ModuleRunner {
public:
  ModuleRunner(std::shared_ptr<LoadedModule> module, int entry = 0);
  ~ModuleRunner();
  ModuleRunner(ModuleRunner &&) noexcept;

  const lathe_entry &entry() const;

  /// How parallel kernels run; `threads` 1 or a null function: on the calling thread.
  void setParallelFor(lathe_parallel_for fn, void *ctx, int threads);
  void setTrace(lathe_trace fn, void *ctx);

  /// Checks dtypes, ranks and dimensions, solves for the run-time sizes, allocates outputs and workspace.
  llvm::Error prepare(llvm::ArrayRef<Tensor> inputs);
  /// Runs on the inputs given to prepare(). The message names the node that failed.
  llvm::Error run();
  /// After run(): the results; data-dependent dimensions are cut to what was written. They share memory with this
  /// runner and are overwritten by the next run().
  std::vector<Tensor> outputs() const;

  /// prepare, run, and outputs of their own memory.
  llvm::Expected<std::vector<Tensor>> call(llvm::ArrayRef<Tensor> inputs);

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

/// A module in memory and its variables (one set of state per LoadedModule).
class LoadedModule {
public:
  virtual ~LoadedModule();
  const lathe_module &abi() const { return *module; }
  /// Of modules from objects for a device with a memory of its own, else null.
  const lathe_device_module *deviceModule() const { return device; }
  /// Index of the entry called `name`, or -1.
  int findEntry(llvm::StringRef name) const;
  /// For modules with external weights: the content of the file, kept by the caller.
  llvm::Error bindWeights(const void *data, uint64_t size);
  /// One pointer per variable, initial values set.
  void *const *variables();

protected:
  const lathe_module *module = nullptr;
  const lathe_device_module *device = nullptr;

private:
  std::vector<Tensor> variableTensors;
  std::vector<void *> variablePointers;
};

/// Loads an object made by emitModule with that symbol prefix. The bytes are copied.
llvm::Expected<std::shared_ptr<LoadedModule>> loadObject(llvm::StringRef object, llvm::StringRef prefix);
/// Loads a shared library that exports lathe_module_query.
llvm::Expected<std::shared_ptr<LoadedModule>> loadSharedLibrary(llvm::StringRef path);

} // namespace lathe

#endif
