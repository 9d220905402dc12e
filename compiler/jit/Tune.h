// --tune: finds by measurement on this machine what the code generator otherwise estimates, kernel by kernel.
#ifndef LATHE_COMPILER_JIT_TUNE_H
#define LATHE_COMPILER_JIT_TUNE_H

#include "compiler/driver/TuneFile.h"
#include "compiler/emit/Emit.h"
#include "compiler/emit/Target.h"

#include <functional>

namespace lathe {

/// Why this machine does not run code for the target, or "".
std::string whyNotHere(const ResolvedTarget &target);

struct TuneReport {
  unsigned searched = 0; ///< distinct kernels measured
  unsigned improved = 0; ///< those for which a plan was found that is faster than the estimates'
  double us = 0, estimatedUs = 0; ///< one call of each: as found, and as estimated
};

/// Measures plans for each distinct tunable kernel of a module of kernels that `known` lacks, and adds what it finds.
/// Each kernel is compiled alone, with its own constants, and runs on one thread with constants and results out of the
/// cache and its inputs in it, as in a model. `options` as for emitModule; `progress` is told each kernel's signature.
/// An error when this machine cannot run code for the target. The module stays as it is.
llvm::Expected<TuneReport> tuneKernels(mlir::ModuleOp module, const EmitOptions &options,
                                       std::map<std::string, TunedKernel> &known,
                                       const std::function<void(const std::string &)> &progress = {});

} // namespace lathe

#endif
