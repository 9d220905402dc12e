// The lower room: the memory plan, and entries in the LLVM dialect.
#ifndef LATHE_PASSES_LOWER_PASSES_H
#define LATHE_PASSES_LOWER_PASSES_H

#include "mlir/Pass/Pass.h"
#include <memory>

namespace lathe::lower {

#define GEN_PASS_DECL
#include "passes/lower/Passes.h.inc"

/// Registers the passes.
void registerLowerPhase();

} // namespace lathe::lower

#endif
