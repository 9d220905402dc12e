// What comes before quantization: simplification as far as it leaves products and convolutions as the model has them.
#include "passes/quantize/Passes.h"

#include "passes/simplify/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace {

void addCleanup(OpPassManager &pm, int64_t foldBytes) {
  lathe::simplify::HloFoldConstantsOptions fold;
  fold.budget = foldBytes;
  pm.addPass(lathe::simplify::createHloSimplifyAlgebra());
  pm.addPass(lathe::simplify::createHloFoldConstants(fold));
  pm.addPass(createCSEPass());
}

} // namespace

// As in the simplification phase, without what splits batches, volumes and dilated windows, and without factors that move
// from data into weights: those would be weights no longer.
void lathe::quantize::buildPreparePipeline(OpPassManager &pm, int64_t foldBytes) {
  pm.addPass(simplify::createHloLowerQuantized());
  pm.addPass(simplify::createHloFoldSpaceBatch());
  addCleanup(pm, foldBytes);
  pm.addPass(simplify::createHloSimplifyControlFlow());
  pm.addPass(simplify::createHloHoistLoopInvariants());
  simplify::HloCanonicalizeProductsOptions layouts;
  layouts.layouts = true;
  pm.addPass(simplify::createHloCanonicalizeProducts(layouts));
  pm.addPass(simplify::createHloPlaceTransposes());
  pm.addPass(simplify::createHloSimplifyAlgebra());
  pm.addPass(simplify::createHloCanonicalizeProducts());
  addCleanup(pm, foldBytes);
  pm.addPass(simplify::createHloFoldPadding());
  pm.addPass(simplify::createHloSinkShapes());
  addCleanup(pm, foldBytes);
}

void lathe::quantize::buildFoldPipeline(OpPassManager &pm, int64_t foldBytes) {
  for (int i = 0; i < 2; ++i) {
    pm.addPass(simplify::createHloFoldScales());
    addCleanup(pm, foldBytes);
  }
  pm.addPass(simplify::createHloSinkShapes());
  addCleanup(pm, foldBytes);
}
