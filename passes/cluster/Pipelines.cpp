// The order of the room's passes: one pipeline for what is compiled whole, one for what a session runs in parts.
#include "passes/cluster/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace lathe::cluster {

void buildClusterPipeline(OpPassManager &pm, const ClusterOptions &) {
  pm.addPass(createSplitSwitches());
  pm.addPass(createFunctionalizeControlFlow());
}

void buildClusteringPipeline(OpPassManager &pm, const ClusteringOptions &options) {
  auto list = [](const std::vector<std::string> &names) {
    return llvm::SmallVector<std::string>(names.begin(), names.end());
  };
  MarkForCompilationOptions mark;
  mark.mode = options.mode;
  mark.minSize = options.minSize;
  mark.hostOps = list(options.hostOps);
  mark.force = list(options.force);
  mark.forbid = list(options.forbid);
  mark.isolate = list(options.isolate);
  mark.explain = options.explain;
  pm.addPass(createSplitSwitches());
  pm.addPass(createMarkForCompilation(mark));
  PartiallyDeclusterOptions decluster;
  decluster.hostOps = list(options.hostOps);
  decluster.explain = options.explain;
  pm.addPass(createPartiallyDecluster(decluster));
  pm.addPass(createEncapsulateClusters());
  pm.addPass(createBuildLaunchOps());
}

void registerClusterPhase() {
  registerClusterPasses();
  PassPipelineRegistration<>("lathe-cluster", "Make control flow functional",
                             [](OpPassManager &pm) { buildClusterPipeline(pm); });
  PassPipelineRegistration<>("lathe-clustering", "Put what compiles into launches, as a session does",
                             [](OpPassManager &pm) { buildClusteringPipeline(pm, {}); });
}

} // namespace lathe::cluster
