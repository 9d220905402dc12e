// Passes and pipeline of this room: graph.node -> hlo.
#ifndef LATHE_PASSES_LEGALIZE_PASSES_H
#define LATHE_PASSES_LEGALIZE_PASSES_H

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

#include <memory>

namespace lathe::legalize {

#define GEN_PASS_DECL
#include "passes/legalize/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/legalize/Passes.h.inc"

struct LegalizeOptions {
  bool checkShapes = false; ///< compare each output with its op's shape function
};

/// Translates, then cleans up what the translation leaves (equal constants, unused values).
void buildLegalizePipeline(mlir::OpPassManager &pm, const LegalizeOptions &options = {});

/// Registers the passes and the pipeline `legalize`.
void registerLegalizePhase();

} // namespace lathe::legalize

#endif
