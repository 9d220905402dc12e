//===- Structure.h - graphs as they are, node by node -----------*- C++ -*-===//
//
// What a session clusters: nothing is inlined, pruned or frozen, and constants keep their values in the protobuf. Node
// names, op types, edges, types and those attributes that the passes look at are enough to decide what belongs together;
// compiler/export takes everything else of a node from the same protobuf again.
//
//===----------------------------------------------------------------------===//
#ifndef LATHE_COMPILER_IMPORT_STRUCTURE_H
#define LATHE_COMPILER_IMPORT_STRUCTURE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "proto/graph.pb.h"

#include <string>
#include <vector>

namespace lathe {

/// How a graph is used: tensors ("x:0") that are fed and fetched, nodes that must run.
struct GraphUse {
  std::vector<std::string> feeds, fetches, targets;
};

/// Makes a public graph.func of the main graph and private ones of the library functions that it uses. Arguments and
/// results of the former carry graph.tensor. Problems are diagnostics of `context`; the graph must outlive the call only.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> importStructure(mlir::MLIRContext *context,
                                                                   const tf::GraphDef &graph, const GraphUse &use);

} // namespace lathe

#endif
