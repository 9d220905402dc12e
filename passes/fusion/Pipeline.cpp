//===- Pipeline.cpp - the fusion phase --------------------------------------===//

#include "passes/fusion/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace lathe::fusion {
#define GEN_PASS_REGISTRATION
#include "passes/fusion/Passes.h.inc"
} // namespace lathe::fusion

void lathe::fusion::buildFusionPipeline(OpPassManager &pm, const FusionOptions &options) {
  HloFuseOptions fuse;
  fuse.fuse = options.fuse;
  pm.addPass(createHloFuse(fuse));
  // Equal kernels on equal operands appear when cheap producers were copied.
  pm.addPass(createCSEPass());
}

namespace {
struct FusionPipelineOptions : PassPipelineOptions<FusionPipelineOptions> {
  Option<bool> fuse{*this, "fuse", llvm::cl::desc("off: every operation becomes a kernel of its own"),
                    llvm::cl::init(true)};
};
} // namespace

void lathe::fusion::registerFusionPhase() {
  registerFusionPasses();
  PassPipelineRegistration<FusionPipelineOptions>(
      "lathe-fuse", "hlo to kernels", [](OpPassManager &pm, const FusionPipelineOptions &options) {
        FusionOptions fusion;
        fusion.fuse = options.fuse;
        buildFusionPipeline(pm, fusion);
      });
}
