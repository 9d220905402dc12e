//===- Pipeline.cpp - the simplification phase ------------------------------===//

#include "passes/simplify/Portable.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace lathe::simplify;

namespace lathe::simplify {
#define GEN_PASS_REGISTRATION
#include "passes/simplify/Passes.h.inc"
} // namespace lathe::simplify

static void build(OpPassManager &pm, const SimplifyOptions &options, bool portable) {
  HloFoldConstantsOptions fold;
  fold.budget = options.foldBytes;
  fold.widen = !portable; // files keep them as they are
  HloSimplifyAlgebraOptions algebra;
  algebra.exact = options.exact;
  HloHoistLoopInvariantsOptions hoist;
  hoist.exact = options.exact;
  auto clean = [&] {
    pm.addPass(createHloSimplifyAlgebra(algebra));
    pm.addPass(createHloFoldConstants(fold));
    pm.addPass(createCSEPass());
  };
  // What follows knows integers and floats alone.
  pm.addPass(createHloLowerQuantized());
  // While its parts still look as they were made.
  pm.addPass(createHloFoldSpaceBatch());
  // Splats and neutral ops go before constant folding, which would otherwise expand some of them.
  clean();
  // Conditions are numbers now where they can be.
  pm.addPass(createHloSimplifyControlFlow());
  pm.addPass(createHloHoistLoopInvariants(hoist));
  // Transposes of images move while a product over pixels is a convolution still and pads are not part of
  // windows.
  HloCanonicalizeProductsOptions layouts;
  layouts.layouts = true;
  pm.addPass(createHloCanonicalizeProducts(layouts));
  pm.addPass(createHloPlaceTransposes());
  pm.addPass(createHloSimplifyAlgebra(algebra));
  // Plain products first: scales and shapes only look at those.
  pm.addPass(createHloCanonicalizeProducts());
  if (!portable)
    pm.addPass(createHloSplitDilatedConv());
  if (!options.exact && !portable && options.imagesFirst)
    pm.addPass(createHloFoldDepth());
  // a phase of one tap is a product
  pm.addPass(createHloCanonicalizeProducts());
  clean();
  pm.addPass(createHloFoldPadding());
  // Between a product and its scale there may be a reshape.
  pm.addPass(createHloSinkShapes());
  clean();
  if (!options.exact) {
    pm.addPass(createHloFoldScales());
    clean();
    // terms that moved behind a product are constants only now
    pm.addPass(createHloFoldScales());
    pm.addPass(createHloScaleWeights());
    clean();
  }
  pm.addPass(createHloSinkShapes());
  clean();
  if (portable)
    return;
  HloSplitBatchOptions batch;
  batch.cache = options.core.l2;
  batch.keptTraffic = options.core.keptTraffic;
  batch.lessTraffic = options.core.lessTraffic;
  batch.refetched = options.core.refetched;
  pm.addPass(createHloSplitBatch(batch));
  if (options.threads > 1) {
    HloSplitLoopRowsOptions rows;
    rows.threads = options.threads;
    rows.multiplyAdds = options.multiplyAdds;
    rows.cache = options.core.l2;
    rows.meeting = options.core.meeting;
    rows.elementCycles = options.core.recurrentElement;
    rows.keptBytes = options.core.keptBytes;
    rows.fetchedBytes = options.core.fetchedBytes;
    pm.addPass(createHloSplitLoopRows(rows));
    clean();
  }
  pm.addPass(createHloCountLoops());
}

void lathe::simplify::buildSimplifyPipeline(OpPassManager &pm, const SimplifyOptions &options) { build(pm, options, false); }

void lathe::simplify::buildPortableSimplifyPipeline(OpPassManager &pm, const SimplifyOptions &options) { build(pm, options, true); }

namespace {
struct SimplifyPipelineOptions : PassPipelineOptions<SimplifyPipelineOptions> {
  Option<bool> exact{*this, "exact", llvm::cl::desc("no rewriting that changes rounding"), llvm::cl::init(false)};
  Option<bool> portable{*this, "portable", llvm::cl::desc("no rewriting for our own kernels alone"), llvm::cl::init(false)};
};
} // namespace

void lathe::simplify::registerSimplifyPhase() {
  registerSimplifyPasses();
  PassPipelineRegistration<SimplifyPipelineOptions>(
      "lathe-simplify", "hlo to smaller hlo", [](OpPassManager &pm, const SimplifyPipelineOptions &options) {
        SimplifyOptions simplify;
        simplify.exact = options.exact;
        build(pm, simplify, options.portable);
      });
}
