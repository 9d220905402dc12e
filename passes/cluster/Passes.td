//===- Passes.td - passes on the imported graph -----------------------------===//

#ifndef LATHE_PASSES_CLUSTER_PASSES_TD
#define LATHE_PASSES_CLUSTER_PASSES_TD

include "mlir/Pass/PassBase.td"

def FunctionalizeControlFlow : Pass<"graph-functionalize-control-flow", "::mlir::ModuleOp"> {
  let summary = "Turn TensorFlow v1 control flow into While and If nodes";
  let description = [{
    Frames (Enter, Merge, NextIteration, Switch, LoopCond, Exit) become While nodes, innermost first; then Switch and
    Merge become If nodes. Their bodies are private graph.funcs. Nodes that nothing needs afterwards are erased, and
    the nodes of each function are in topological order.

    Expects what the importer leaves. A loop that is no tf.while_loop, a Merge whose inputs are not the two sides of
    one condition, and an output that exists on one side only are errors at their node. Graphs without v1 control
    flow are left alone, so the pass is idempotent.
  }];
  let dependentDialects = ["::lathe::graph::GraphDialect"];
  let statistics = [
    Statistic<"numLoops", "loops", "frames turned into While">,
    Statistic<"numConditionals", "conditionals", "groups of Merge turned into If">,
  ];
}

#endif
