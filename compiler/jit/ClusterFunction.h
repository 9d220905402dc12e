// A cluster's function as a graph of its own: what the pipeline that all models go through compiles.
#ifndef LATHE_COMPILER_JIT_CLUSTERFUNCTION_H
#define LATHE_COMPILER_JIT_CLUSTERFUNCTION_H

#include "proto/graph.pb.h"
#include "runtime/abi/cluster_compiler.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace lathe {

/// A main graph and the functions it uses.
struct LaunchGraph {
  tf::GraphDef graph;
  /// Per argument of the function: the node that stands for it.
  std::vector<std::string> arguments;
  std::vector<std::string> results; ///< tensors, in the order of the signature
  std::vector<std::string> targets; ///< nodes that must run
};

/// The main graph has a Placeholder for each argument, a variable op for each variable, and the function's nodes under
/// their own names. Fails when the function does not exist, takes lists, or the number of arguments differs.
llvm::Expected<LaunchGraph> buildLaunchGraph(const tf::GraphDef &library, const std::string &function,
                                               llvm::ArrayRef<const lathe_cluster_arg *> args);

/// The name of argument `i` in the compiled module.
std::string clusterArgName(size_t i);

} // namespace lathe

#endif
