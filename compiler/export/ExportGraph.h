// The graph dialect as a GraphDef again.
#ifndef LATHE_COMPILER_EXPORT_EXPORTGRAPH_H
#define LATHE_COMPILER_EXPORT_EXPORTGRAPH_H

#include "mlir/IR/BuiltinOps.h"
#include "proto/graph.pb.h"
#include "llvm/Support/Error.h"

namespace lathe {

/// The public function of `module` as main graph, and its clusters as functions of the library, beside those of `source`.
/// Nodes that `source`, the graph that importStructure read, has too keep whatever it says of them: constants, private
/// attributes, devices. Fails where the module holds something that no GraphDef can say.
llvm::Expected<tf::GraphDef> exportGraph(mlir::ModuleOp module, const tf::GraphDef &source);

} // namespace lathe

#endif
