//===- Passes.h - the fusion room -------------------------------------------===//
//
// hlo to kernel: groups of hlo operations become the regions of kernel ops.
//
//===----------------------------------------------------------------------===//

#ifndef LATHE_PASSES_FUSION_PASSES_H
#define LATHE_PASSES_FUSION_PASSES_H

#include "mlir/Pass/Pass.h"

#include <cstdint>
#include <memory>

namespace lathe::fusion {

/// What buildFusionPipeline does.
struct FusionOptions {
  /// Off: every operation becomes a kernel of its own.
  bool fuse = true;
};

#define GEN_PASS_DECL
#include "passes/fusion/Passes.h.inc"

/// The whole phase; leaves kernel ops, bare hlo ops, views and control flow.
void buildFusionPipeline(mlir::OpPassManager &pm, const FusionOptions &options = {});

/// Registers the passes and the pipeline `lathe-fuse`.
void registerFusionPhase();

} // namespace lathe::fusion

#endif
