// What comes before quantization: simplification as far as it leaves products and convolutions as the model has them.
#include "passes/quantize/Passes.h"

#include "passes/simplify/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void lathe::quantize::buildPreparePipeline(OpPassManager &pm, int64_t foldBytes) {
  simplify::HloFoldConstantsOptions fold;
  fold.budget = foldBytes;
  auto clean = [&] {
    pm.addPass(simplify::createHloSimplifyAlgebra());
    pm.addPass(simplify::createHloFoldConstants(fold));
    pm.addPass(createCSEPass());
  };
  // As in the simplification phase, without what splits batches, volumes and dilated windows, and without factors that move
  // from data into weights: those would be weights no longer.
  pm.addPass(simplify::createHloLowerQuantized());
  pm.addPass(simplify::createHloFoldSpaceBatch());
  clean();
  pm.addPass(simplify::createHloSimplifyControlFlow());
  pm.addPass(simplify::createHloHoistLoopInvariants());
  simplify::HloCanonicalizeProductsOptions layouts;
  layouts.layouts = true;
  pm.addPass(simplify::createHloCanonicalizeProducts(layouts));
  pm.addPass(simplify::createHloPlaceTransposes());
  pm.addPass(simplify::createHloSimplifyAlgebra());
  pm.addPass(simplify::createHloCanonicalizeProducts());
  clean();
  pm.addPass(simplify::createHloFoldPadding());
  pm.addPass(simplify::createHloSinkShapes());
  clean();
  pm.addPass(simplify::createHloFoldScales());
  clean();
  pm.addPass(simplify::createHloFoldScales());
  clean();
  pm.addPass(simplify::createHloSinkShapes());
  clean();
}
