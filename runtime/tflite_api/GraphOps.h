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

class GraphOps {
public:
  /// Of the first subgraph.
  explicit GraphOps(const tfl::Model &model);
  ~GraphOps();

  tflgraph::NodeMaker nodes;

  /// Runs a part; values in the order of its inputs and outputs. Tables keep what they hold from run to run.
  absl::StatusOr<std::vector<Tensor>> run(const tflgraph::NodePart &part, const std::vector<Tensor> &inputs);

private:
  std::unique_ptr<Session> session;
  std::set<unsigned> initialized; ///< subgraphs that ran once
};

} // namespace lathe::tflite_api

#endif
