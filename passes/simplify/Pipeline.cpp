//===- Pipeline.cpp - the simplification phase ------------------------------===//

#include "passes/simplify/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace lathe::simplify {
#define GEN_PASS_REGISTRATION
#include "passes/simplify/Passes.h.inc"
} // namespace lathe::simplify

void lathe::simplify::buildSimplifyPipeline(OpPassManager &pm, const SimplifyOptions &options) {
  HloSimplifyAlgebraOptions algebra;
  algebra.exact = options.exact;
  auto clean = [&] {
    pm.addPass(createHloSimplifyAlgebra(algebra));
    pm.addPass(createCSEPass());
  };
  // Splats and neutral ops go first: folding would otherwise expand some of them.
  clean();
  // Shapes move only once the algebra has brought them into their simple forms.
  pm.addPass(createHloSinkShapes());
  clean();
}

namespace {
struct SimplifyPipelineOptions : PassPipelineOptions<SimplifyPipelineOptions> {
  Option<bool> exact{*this, "exact", llvm::cl::desc("no rewriting that changes rounding"), llvm::cl::init(false)};
};
} // namespace

void lathe::simplify::registerSimplifyPhase() {
  registerSimplifyPasses();
  PassPipelineRegistration<SimplifyPipelineOptions>(
      "lathe-simplify", "hlo to smaller hlo", [](OpPassManager &pm, const SimplifyPipelineOptions &options) {
        SimplifyOptions simplify;
        simplify.exact = options.exact;
        buildSimplifyPipeline(pm, simplify);
      });
}
