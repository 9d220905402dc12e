// The pass graph-to-hlo: graph.func entries -> func.func of hlo ops.
//
//   graph.func @main(%x: tensor<?x8xf32>) { %y, %c = graph.node "Relu"(%x) ... }
//   func.func @main(%x: tensor<?x8xf32, affine_map<()[s0] -> (s0, 8)>>) { %z = hlo.constant ...; hlo.maximum ... }
#include "dialects/hlo/Hlo.h"
#include "passes/legalize/HandlerTable.h"
#include "passes/legalize/Legalize.h"
#include "passes/legalize/LegalizeContext.h"
#include "passes/legalize/Passes.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace lathe::legalize {

#define GEN_PASS_DEF_GRAPHTOHLO
#include "passes/legalize/Passes.h.inc"

namespace {

class GraphToHlo : public impl::GraphToHloBase<GraphToHlo> {
public:
  using GraphToHloBase::GraphToHloBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    LegalizeContext context(module, allHandlers());
    context.checkShapes = checkShapes;
    SmallVector<graph::FuncOp> graphs(module.getOps<graph::FuncOp>());
    bool ok = true;
    for (auto variable : module.getOps<graph::VariableOp>())
      context.keepVariable(variable.getSymName(), variable.getType(), variable.getInitialAttr());
    for (graph::FuncOp graph : graphs) {
      if (graph.isPrivate())
        continue;
      ok &= succeeded(context.lowerEntry(graph));
    }
    if (!ok || context.sawError)
      return signalPassFailure();
    for (graph::FuncOp graph : graphs)
      graph.erase();
    for (auto variable : llvm::make_early_inc_range(module.getOps<graph::VariableOp>()))
      variable.erase();
    if (failed(context.finishModule()))
      return signalPassFailure();
  }
};

} // namespace

void buildLegalizePipeline(OpPassManager &pm, const LegalizeOptions &options) {
  pm.addPass(createGraphToHlo({options.checkShapes}));
  // Every use of a small constant made its own; equal ones merge here so that later passes see few ops.
  pm.addPass(createCSEPass());
}

void registerLegalizePhase() {
  registerLegalizePasses();
  PassPipelineRegistration<>("legalize", "Translate an imported graph to hlo",
                             [](OpPassManager &pm) { buildLegalizePipeline(pm); });
}

} // namespace lathe::legalize
