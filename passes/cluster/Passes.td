//===- Passes.td - passes on the imported graph -----------------------------===//

#ifndef LATHE_PASSES_CLUSTER_PASSES_TD
#define LATHE_PASSES_CLUSTER_PASSES_TD

include "mlir/Pass/PassBase.td"

def SplitSwitches : Pass<"graph-split-switches", "::mlir::ModuleOp"> {
  let summary = "Turn choices among many into choices of two.";
  let description = [{
    TensorFlow makes `_SwitchN` of a Case node where it inlines functions, as freezing does. Each becomes a chain of Switch nodes, whose
    predicates compare the index with the number of a branch and are shared by all nodes that have this index; an index without a branch
    takes the last one. Merges of more than two inputs in such a graph become nested ones, in the order of their inputs, but for those
    whose second result is used.
  }];
  let dependentDialects = ["::lathe::graph::GraphDialect"];
  let statistics = [Statistic<"numSwitches", "switches", "nodes split">];
}

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

def MarkForCompilation : Pass<"graph-mark-for-compilation", "::mlir::ModuleOp"> {
  let summary = "Choose the nodes that are compiled together.";
  let description = [{
    Gives nodes of public functions that are to form one cluster the same `graph.cluster`. A node joins when its op has a
    legalization and no operand or result is a string; when the handles it takes are those of variables, or all nodes on
    the same list or array join too; and when the functions it calls compile. Clusters stay within one v1 frame, one
    condition, one device, and among nodes that wait for the same blocking ops; contracting them never makes a cycle.
    A cluster of nodes that all have host kernels is dropped when fewer than `min-size` of them do any work.

    `_XlaMustCompile` makes a node join whatever the mode and size; that it cannot is an error.
  }];
  let options = [
    Option<"mode", "mode", "::lathe::cluster::ClusteringMode", /*default=*/"::lathe::cluster::ClusteringMode::Worthwhile",
           "what to compile",
           [{::llvm::cl::values(
             clEnumValN(::lathe::cluster::ClusteringMode::Needed, "needed", "only nodes without a host kernel"),
             clEnumValN(::lathe::cluster::ClusteringMode::Worthwhile, "worthwhile", "everything worth compiling"),
             clEnumValN(::lathe::cluster::ClusteringMode::None, "none", "only what must be compiled"))}]>,
    Option<"minSize", "min-size", "unsigned", /*default=*/"4", "nodes that do work, in a cluster that host kernels could run">,
    ListOption<"hostOps", "host-ops", "std::string", "ops that have a host kernel">,
    ListOption<"force", "force", "std::string", "nodes that are compiled in any case">,
    ListOption<"forbid", "forbid", "std::string", "nodes that stay outside">,
    ListOption<"isolate", "isolate", "std::string", "nodes that form clusters of their own">,
    Option<"explain", "explain", "bool", /*default=*/"false", "a remark on every node that stays outside, with the reason">
  ];
  let dependentDialects = ["::lathe::graph::GraphDialect"];
  let statistics = [
    Statistic<"numClusters", "clusters", "clusters made">,
    Statistic<"numNodes", "nodes", "nodes in clusters">,
    Statistic<"refusedNoCompiledForm", "refused-no-compiled-form", "outside: the op has no compiled form">,
    Statistic<"refusedHostType", "refused-host-type", "outside: takes or gives strings">,
    Statistic<"refusedHostHandle", "refused-host-handle", "outside: shares a handle with the outside">,
    Statistic<"refusedControlFlow", "refused-control-flow", "outside: v1 control flow">,
    Statistic<"refusedEndpoint", "refused-endpoint", "outside: arguments, results, variables">,
    Statistic<"refusedStateful", "refused-stateful", "outside: its host kernel keeps state">,
    Statistic<"refusedFunction", "refused-function", "outside: a function it calls does not compile">,
    Statistic<"refusedForbidden", "refused-forbidden", "outside: the user said so">,
    Statistic<"refusedHostKernel", "refused-host-kernel", "outside: has a host kernel">,
    Statistic<"refusedCycle", "refused-cycle", "edges not contracted: a path leads around">,
    Statistic<"refusedTooSmall", "refused-too-small", "clusters dropped for their size">,
  ];
}

def PartiallyDecluster : Pass<"graph-partially-decluster", "::mlir::ModuleOp"> {
  let summary = "Take nodes out of clusters that host kernels serve better.";
  let description = [{
    Shape ops and ops that hand on their input leave their cluster when it neither feeds them nor waits for them: whoever
    does wait need not wait for the whole cluster.
  }];
  let options = [
    ListOption<"hostOps", "host-ops", "std::string", "ops that have a host kernel">,
    Option<"explain", "explain", "bool", /*default=*/"false", "a remark on every node that leaves">
  ];
  let dependentDialects = ["::lathe::graph::GraphDialect"];
  let statistics = [
    Statistic<"numShapeOps", "shape-ops", "shape ops taken out">,
    Statistic<"numHostBound", "host-bound", "other nodes taken out">,
  ];
}

def EncapsulateClusters : Pass<"graph-encapsulate-clusters", "::mlir::ModuleOp"> {
  let summary = "Turn clusters into functions and calls.";
  let description = [{
    Nodes with the same `graph.cluster` move to a private function; a StatefulPartitionedCall takes their place. Constants
    are copied inside. Nodes that the graph returns, or has as targets, leave an Identity or NoOp of their name behind.
  }];
  let dependentDialects = ["::lathe::graph::GraphDialect"];
  let statistics = [Statistic<"numFunctions", "functions", "functions made">];
}

def BuildLaunchOps : Pass<"graph-build-launch-ops", "::mlir::ModuleOp"> {
  let summary = "Turn calls of clusters into launches.";
  let description = [{
    A launch has the arguments first and then the handles of variables; its function is reordered alike. `reads` and
    `writes` say for each variable whether it needs a value before, and has one afterwards.
  }];
  let dependentDialects = ["::lathe::graph::GraphDialect"];
  let statistics = [
    Statistic<"numLaunches", "launches", "launches made">,
    Statistic<"numVariables", "variables", "handles of variables that launches take">,
  ];
}

#endif
