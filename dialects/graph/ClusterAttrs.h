// Attributes that clustering puts on graph.node and graph.func ops: between importStructure, passes/cluster and the export.
#ifndef LATHE_DIALECTS_GRAPH_CLUSTERATTRS_H
#define LATHE_DIALECTS_GRAPH_CLUSTERATTRS_H

#include "llvm/ADT/StringRef.h"

namespace lathe::graph {

/// Of a node: the device that it was given.
inline constexpr llvm::StringLiteral kDeviceAttr = "graph.device";
/// Of a node: the cluster that it is to join; of a function: that it is the body of one.
inline constexpr llvm::StringLiteral kClusterAttr = "graph.cluster";
/// Of a node: made by a pass, so that the imported graph's node of the same name is another one.
inline constexpr llvm::StringLiteral kNewNodeAttr = "graph.new";
/// Of a module: names of functions that the graph's library has, whether or not they are here.
inline constexpr llvm::StringLiteral kLibraryAttr = "graph.library";

} // namespace lathe::graph

#endif
