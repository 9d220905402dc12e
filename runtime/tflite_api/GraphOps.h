// Nodes of a graph that stand for operators of a file (graph/tflite), run by a session's kernels for the host.
#ifndef LATHE_RUNTIME_TFLITE_API_GRAPHOPS_H
#define LATHE_RUNTIME_TFLITE_API_GRAPHOPS_H

#include "graph/tflite/NodeMaker.h"

#include <memory>
#include <set>
#include <vector>

namespace lathe {
class Session;
}

namespace lathe::tflite_api {

/// Where all nodes of an interpreter run, whichever subgraph they stand for: tables are shared, and CALL_ONCE runs once.
struct NodeSession {
  NodeSession();
  ~NodeSession();
  std::unique_ptr<Session> session;
  std::set<unsigned> initialized; ///< subgraphs that CALL_ONCE ran
  int graphs = 0;                 ///< that were made; names of nodes of all but the first begin with its number
};

class GraphOps {
public:
  /// Of one subgraph.
  GraphOps(const tfl::Model &model, unsigned subgraph, NodeSession &shared);
  ~GraphOps();

  tflgraph::NodeMaker nodes;

  /// Runs a part; values in the order of its inputs and outputs. Tables keep what they hold from run to run.
  absl::StatusOr<std::vector<Tensor>> run(const tflgraph::NodePart &part, const std::vector<Tensor> &inputs);

private:
  NodeSession &shared;
  bool isAdded = false; ///< the session has the nodes
};

} // namespace lathe::tflite_api

#endif
