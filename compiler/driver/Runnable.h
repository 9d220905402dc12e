// A module that was compiled to be run while a model is compiled: by those who need its numbers or its time.
#ifndef LATHE_COMPILER_DRIVER_RUNNABLE_H
#define LATHE_COMPILER_DRIVER_RUNNABLE_H

#include "base/Tensor.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"

#include <functional>
#include <string>
#include <vector>

namespace lathe {

/// A kernel's call: the names of the nodes that it computes, separated by ';', and the shortest time that it took, in seconds.
struct KernelTime {
  std::string nodes;
  double seconds;
};

struct Runnable {
  std::function<llvm::Expected<std::vector<Tensor>>(llvm::ArrayRef<Tensor>)> run;
  std::function<std::vector<KernelTime>()> times; ///< over all runs so far
};

/// From a module of hlo whose only entry is run on one thread. `forTarget`: code for the CPU that the model is compiled for, an error
/// where this machine cannot run that; else for this machine's.
using MakeRunnable = std::function<llvm::Expected<Runnable>(mlir::OwningOpRef<mlir::ModuleOp>, bool forTarget)>;

} // namespace lathe

#endif
