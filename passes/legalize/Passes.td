#ifndef LATHE_PASSES_LEGALIZE_PASSES_TD
#define LATHE_PASSES_LEGALIZE_PASSES_TD

include "mlir/Pass/PassBase.td"

def GraphToHlo : Pass<"graph-to-hlo", "::mlir::ModuleOp"> {
  let summary = "Translate the entries of an imported graph to hlo";
  let description = [{
    Each public `graph.func` becomes a `func.func` of hlo ops under the same name; bodies of functional control flow
    become regions; variables become arguments and results. Unknown sizes of inputs become symbols. Private graph
    functions and `graph.variable` ops are gone afterwards, the latter recorded in the module attribute `hlo.variables`.
    Nodes without compiled form are errors; all of them are reported.
  }];
  let options = [
    Option<"checkShapes", "check-shapes", "bool", /*default=*/"false",
           "an output whose shape is not what its op's shape function says is an error (for tests: attributes may be of other sizes than inputs)">
  ];
  let dependentDialects = ["::lathe::graph::GraphDialect", "::lathe::hlo::HloDialect", "::mlir::func::FuncDialect"];
}

#endif
