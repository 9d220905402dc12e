// Operators that have no compiled form and are run as nodes of a graph, by a session's kernels for the host: those of strings and
// tables, and TensorFlow's own ("Flex...") that only such kernels have.
#ifndef LATHE_RUNTIME_TFLITE_API_GRAPHOPS_H
#define LATHE_RUNTIME_TFLITE_API_GRAPHOPS_H

#include "base/Tensor.h"

#include "absl/status/statusor.h"

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace lathe::tfl {
struct Model;
struct Operator;
struct SubGraph;
} // namespace lathe::tfl

namespace lathe::tflite_api {

/// A run of such operators of one subgraph.
struct GraphPart {
  std::vector<int> inputs, outputs; ///< tensors of the subgraph: arrays and strings that are read and made
  std::vector<std::string> feeds, fetches, targets;
  std::vector<std::string> once; ///< nodes that run before everything else in the first run: subgraphs that CALL_ONCE names
  bool isFirst = true;
};

class GraphOps {
public:
  explicit GraphOps(const tfl::Model &model);
  ~GraphOps();

  /// Whether the operator is run here. The compiler is asked about Flex operators, and about nothing else.
  absl::StatusOr<bool> takes(const tfl::SubGraph &graph, const tfl::Operator &op) const;
  /// Whether an operator that has a compiled form could be run here too: what compiling refuses, sizes that depend on data among it.
  bool couldTake(const tfl::Operator &op) const;

  /// Operators [first, last) of subgraph 0 as nodes. `wanted`: tensors that are read behind them. UNIMPLEMENTED for operators that
  /// no node stands for, with their names.
  absl::StatusOr<GraphPart> add(unsigned first, unsigned last, const std::set<int> &wanted);

  /// Runs a part; values in the order of `inputs` and `outputs`. Tables keep what they hold from run to run.
  absl::StatusOr<std::vector<Tensor>> run(GraphPart &part, const std::vector<Tensor> &inputs);

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace lathe::tflite_api

#endif
