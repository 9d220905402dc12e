// Clustered graphs as files, for people.
#ifndef LATHE_COMPILER_JIT_CLUSTERDUMP_H
#define LATHE_COMPILER_JIT_CLUSTERDUMP_H

#include "mlir/IR/BuiltinOps.h"
#include "proto/graph.pb.h"

#include <string>

namespace lathe {

/// Writes clusters-N.pbtxt (the graph with its launches, without large constants) and clusters-N.mlir to a folder; N
/// counts the graphs of this process. What cannot be written is left out.
void dumpClusters(const std::string &folder, const tf::GraphDef &graph, mlir::ModuleOp module);

} // namespace lathe

#endif
