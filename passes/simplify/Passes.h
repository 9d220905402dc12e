//===- Passes.h - the simplification room -----------------------------------===//
//
// hlo to smaller hlo: constant folding, algebra, batch norms folded into the
// weights, reshapes and transposes cancelled, loops and conditionals cleaned.
//
//===----------------------------------------------------------------------===//

#ifndef LATHE_PASSES_SIMPLIFY_PASSES_H
#define LATHE_PASSES_SIMPLIFY_PASSES_H

#include "passes/codegen/ProcessorModel.h"

#include "mlir/Pass/Pass.h"

#include <cstdint>
#include <memory>

namespace lathe::simplify {

/// What buildSimplifyPipeline does; the driver has a flag for what is no property of the backend.
struct SimplifyOptions {
  /// Constant folding creates at most this many bytes of new constants in a module.
  int64_t foldBytes = int64_t(1) << 30;
  /// No rewriting that changes the rounding of any result.
  bool exact = false;
  /// Most threads that the code will use.
  int64_t threads = 1;
  /// What the backend says of itself (codegen::Properties): multiply-adds in f32 that a core does in a cycle, whether volumes
  /// are better done as images, and what estimates know of a core.
  double multiplyAdds = 32;
  bool imagesFirst = true;
  codegen::ProcessorModel core;
};

#define GEN_PASS_DECL
#include "passes/simplify/Passes.h.inc"

/// The whole phase; leaves a module of hlo functions.
void buildSimplifyPipeline(mlir::OpPassManager &pm, const SimplifyOptions &options = {});

/// Registers the passes and the pipeline `lathe-simplify`.
void registerSimplifyPhase();

} // namespace lathe::simplify

#endif
