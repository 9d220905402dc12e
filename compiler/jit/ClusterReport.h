// What a session would have compiled of a graph, for people: the nodes of each cluster, what it takes and gives, and why every
// other node stays outside.
#ifndef LATHE_COMPILER_JIT_CLUSTERREPORT_H
#define LATHE_COMPILER_JIT_CLUSTERREPORT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace lathe {

struct ClusterReport {
  struct Node {
    std::string name, op;
  };
  struct Cluster {
    std::string name;
    std::vector<Node> nodes; ///< constants, which are copied in, are not among them
    /// Tensors with their types: "x:0 float32". A module is compiled for each set of their shapes.
    std::vector<std::string> arguments, variables, results;
  };
  struct Refusal {
    Node node;
    std::string reason;
  };
  std::vector<Cluster> clusters;
  std::vector<Refusal> refusals;
};

/// Clusters the model at `path` (a GraphDef, MetaGraph or SavedModel folder) for these tensors and targets; both empty: for
/// everything that nothing else consumes. `flags` is as LATHE_FLAGS, `hostOps` the ops that have a host kernel. False and a
/// message in `error` when the model cannot be read or clustered.
bool reportClusters(llvm::StringRef path, llvm::StringRef tag, const std::vector<std::string> &fetches,
                    const std::vector<std::string> &targets, const std::vector<std::string> &hostOps, llvm::StringRef flags,
                    ClusterReport &report, std::string &error);

} // namespace lathe

#endif
