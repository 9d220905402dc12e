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
    SmallVector<graph::FuncOp> graphs(module.getOps<graph::FuncOp>());
    SmallVector<Attribute> variables;
    Builder b(&getContext());
    bool ok = true;
    llvm::MapVector<StringRef, std::pair<Type, Attribute>> kept;
    for (auto variable : module.getOps<graph::VariableOp>())
      kept[context.intern(variable.getSymName())] = {variable.getType(), variable.getInitialAttr()};
    for (graph::FuncOp graph : graphs) {
      if (graph.isPrivate())
        continue;
      ok &= succeeded(context.lowerEntry(graph));
      for (VariableInfo &v : context.variables)
        if (v.type && !kept.count(v.name) && (v.argument || context.state.count(context.intern(v.name))))
          kept[context.intern(v.name)] = {v.type, v.initial};
    }
    if (!ok || context.sawError)
      return signalPassFailure();
    for (graph::FuncOp graph : graphs)
      graph.erase();
    for (auto variable : llvm::make_early_inc_range(module.getOps<graph::VariableOp>()))
      variable.erase();
    for (auto &[name, info] : kept) {
      NamedAttrList entry;
      entry.set("name", b.getStringAttr(name));
      entry.set("type", TypeAttr::get(info.first));
      if (info.second)
        entry.set("value", info.second);
      variables.push_back(entry.getDictionary(&getContext()));
    }
    if (!variables.empty())
      module->setAttr("hlo.variables", b.getArrayAttr(variables));
    if (failed(context.finishSymbols()))
      return signalPassFailure();
  }
};

} // namespace

void buildLegalizePipeline(OpPassManager &pm, const LegalizeOptions &) {
  pm.addPass(createGraphToHlo());
  // Every use of a small constant made its own; equal ones merge here so that later passes see few ops.
  pm.addPass(createCSEPass());
}

void registerLegalizePhase() {
  registerLegalizePasses();
  PassPipelineRegistration<>("legalize", "Translate an imported graph to hlo",
                             [](OpPassManager &pm) { buildLegalizePipeline(pm); });
}

} // namespace lathe::legalize
