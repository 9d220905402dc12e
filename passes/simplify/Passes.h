//===- Passes.h - the simplification room -----------------------------------===//
//
// hlo to smaller hlo: constant folding, algebra, batch norms folded into the
// weights, reshapes and transposes cancelled, loops and conditionals cleaned.
//
//===----------------------------------------------------------------------===//

#ifndef LATHE_PASSES_SIMPLIFY_PASSES_H
#define LATHE_PASSES_SIMPLIFY_PASSES_H

#include "mlir/Pass/Pass.h"

#include <cstdint>
#include <memory>

namespace lathe::simplify {

/// What buildSimplifyPipeline does; every field has a command-line spelling in the driver.
struct SimplifyOptions {
  /// Constant folding creates at most this many bytes of new constants in a module.
  int64_t foldBytes = int64_t(1) << 30;
  /// No rewriting that changes the rounding of any result.
  bool exact = false;
  /// Most threads that the code will use.
  int64_t threads = 1;
  /// What the backend says of a core: bytes of its own cache, multiply-adds in f32 a cycle, cycles until threads have met
  /// and of an element in recurrent steps, bytes a cycle of weights that stay in the cache and of others.
  int64_t cacheBytes = 1 << 20;
  double multiplyAdds = 32, meeting = 2200, elementCycles = 0.6, keptBytes = 28, fetchedBytes = 8;
  /// Windows of 3 x 3 over images take less than half of their multiplications.
  bool winograd = true;
};

#define GEN_PASS_DECL
#include "passes/simplify/Passes.h.inc"

/// The whole phase; leaves a module of hlo functions.
void buildSimplifyPipeline(mlir::OpPassManager &pm, const SimplifyOptions &options = {});

/// Registers the passes and the pipeline `lathe-simplify`.
void registerSimplifyPhase();

} // namespace lathe::simplify

#endif
