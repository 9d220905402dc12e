// A graph that an executable is made from: nodes with their attributes, edges, an order. No protobuf, so that hosted objects
// run graphs without it.
#ifndef LATHE_RUNTIME_SESSION_RESOLVEDGRAPH_H
#define LATHE_RUNTIME_SESSION_RESOLVEDGRAPH_H

#include "runtime/core/Kernel.h"

#include <string_view>
#include <vector>

namespace lathe::rt {

struct Endpoint {
  int node = -1, port = 0;
};

struct GraphNode {
  NodeInfo info;
  std::vector<Endpoint> inputs;
  std::vector<int> controls;
};

/// Resolved and checked: arity, types of every edge, no cycle but through NextIteration.
struct Graph {
  std::vector<GraphNode> nodes;
  std::vector<int> order; ///< topological, back edges of loops aside
};

/// Checks the edges of a graph whose nodes are resolved, and sorts it. INVALID_ARGUMENT names the node.
absl::Status finishGraph(Graph &graph);

/// "node 'x' (Op): " before the message.
absl::Status atNode(std::string_view name, std::string_view op, const absl::Status &status);

/// The op of a compiled cluster.
constexpr const char *kLaunchOp = "LatheLaunch";

} // namespace lathe::rt

#endif
