// A module of hlo as a function of tensors on this machine: for those who need its numbers at compile time.
#ifndef LATHE_COMPILER_JIT_RUNMODULE_H
#define LATHE_COMPILER_JIT_RUNMODULE_H

#include "compiler/driver/Compiler.h"

namespace lathe {

/// Compiles the module's first entry for this CPU and one thread, and loads it.
llvm::Expected<RunFunction> makeRunnable(mlir::OwningOpRef<mlir::ModuleOp> module);

} // namespace lathe

#endif
