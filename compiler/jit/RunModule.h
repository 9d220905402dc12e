// A module of hlo as a function of tensors on this machine: for those who need its numbers or its time at compile time.
#ifndef LATHE_COMPILER_JIT_RUNMODULE_H
#define LATHE_COMPILER_JIT_RUNMODULE_H

#include "compiler/driver/Compiler.h"

namespace lathe {

/// What Compiler::makeRunnable asks for; `target`: options that say which CPU the model is compiled for.
llvm::Expected<Runnable> makeRunnable(mlir::OwningOpRef<mlir::ModuleOp> module, const CompilerOptions &target, bool forTarget);

/// Lets a compiler run modules, which --quantize does.
void useQuantizing(Compiler &compiler);

} // namespace lathe

#endif
