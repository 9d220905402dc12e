// The distinct kernels of a module: each op is emitted once per structural key.
#ifndef LATHE_PASSES_LOWER_KERNELSET_H
#define LATHE_PASSES_LOWER_KERNELSET_H

#include "passes/lower/Lower.h"
#include "llvm/ADT/StringMap.h"

namespace lathe::lower {

struct KernelInfo {
  std::string name, thunk;
  mlir::AffineExpr extent, scratch; ///< units; bytes of one call
  int64_t workPerUnit = 0;
  bool mayFail = false, writesSizes = false;
  std::vector<std::string> fallbacks; ///< special forms that it would have, but for what they lack
  unsigned pointers = 0; ///< operands and results
};

/// Whether calls of the kernel go through parallel_for.
bool isParallel(const KernelInfo &info, const LowerOptions &options);

class KernelSet {
public:
  /// What the backend takes is added to `times`, if there are any.
  KernelSet(mlir::ModuleOp module, codegen::Backend &backend, KernelTimes *times = nullptr)
      : module(module), backend(backend), times(times) {}

  /// Emits the kernel of the op unless an equal op has been; diagnoses. Call it for all ops before infoOf.
  mlir::LogicalResult add(mlir::Operation *op);
  bool has(mlir::Operation *op) const { return indexOf.count(op); }
  KernelInfo &infoOf(mlir::Operation *op) { return kernels[indexOf.find(op)->second]; }
  int numberOf(mlir::Operation *op) const { return indexOf.find(op)->second; }
  std::vector<KernelInfo> &all() { return kernels; }

private:
  mlir::ModuleOp module;
  codegen::Backend &backend;
  KernelTimes *times;
  std::vector<KernelInfo> kernels;
  llvm::StringMap<int> byKey; ///< -1: could not be emitted (told once)
  llvm::DenseMap<mlir::Operation *, int> indexOf;
};

/// Adds the kernels of one function, also those in loops and branches; diagnoses.
mlir::LogicalResult addKernels(mlir::func::FuncOp func, KernelSet &kernels);

} // namespace lathe::lower

#endif
