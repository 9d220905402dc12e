// Operators of a TensorFlow Lite file that have no compiled form as nodes of a graph: those of strings and tables, and TensorFlow's
// own ("Flex...") that only kernels for the host have.
#ifndef LATHE_GRAPH_TFLITE_NODEMAKER_H
#define LATHE_GRAPH_TFLITE_NODEMAKER_H

#include "graph/Emit.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace lathe::tfl {
struct Model;
struct Operator;
struct SubGraph;
struct Tensor;
} // namespace lathe::tfl

namespace lathe::tflgraph {

/// What is known of TensorFlow's ops where the nodes will run.
struct Kernels {
  std::function<bool(const std::string &op)> hasKernel; ///< for the host
  std::function<absl::StatusOr<bool>(const std::string &op)> compiles;
};

/// A subgraph that CALL_ONCE names: it runs before everything else, once.
struct OncePart {
  unsigned subgraph = 0;
  std::vector<graphdef::Node *> nodes, targets;
};

/// A run of such operators of one subgraph.
struct NodePart {
  std::vector<int> inputs, outputs; ///< tensors of the subgraph: arrays and strings that are read and made
  std::vector<graphdef::Endpoint> feeds, fetches; ///< in the same order; what is fed are placeholders
  std::vector<std::pair<int, graphdef::Endpoint>> made; ///< all tensors that the nodes make
  std::vector<graphdef::Node *> nodes;   ///< all of them, producers first, but for placeholders and what is in `once`
  std::vector<graphdef::Node *> targets; ///< those with effects, each after the one before
  std::vector<OncePart> once;
};

class NodeMaker {
public:
  /// Of one subgraph of a verified file, which must outlive this. Names of nodes begin with `scope`.
  NodeMaker(const tfl::Model &model, unsigned subgraph, Kernels kernels, std::string scope = {});
  ~NodeMaker();

  const tfl::Model &model() const;
  const tfl::SubGraph &subgraph() const;
  graphdef::Graph &graph();

  /// Whether an operator of the subgraph is a node: it has no compiled form where it stands. The kernels are asked about Flex operators,
  /// and about nothing else.
  absl::StatusOr<bool> takes(const tfl::Operator &op) const;
  /// Whether an operator that has a compiled form could be a node too, for what compiling refuses where it stands.
  enum class CouldTake { No, Flex, Sizes };
  /// Flex: one of TensorFlow's own. Sizes: a builtin one with a size, or a place, that is a value of a tensor.
  CouldTake couldTake(const tfl::Operator &op) const;

  /// Operators [first, last) as nodes. `wanted`: whether a tensor is read behind them. UNIMPLEMENTED for operators that no node stands
  /// for, with their names.
  absl::StatusOr<NodePart> add(unsigned first, unsigned last, const std::function<bool(int)> &wanted);
  /// A constant as a node.
  absl::StatusOr<graphdef::Endpoint> constant(const Tensor &value);
  /// The value of a tensor that the file gives.
  absl::StatusOr<Tensor> valueOf(int tensor) const;

private:
  struct State;
  std::unique_ptr<State> state;
};

/// Whether the file gives the tensor a value.
bool isConstant(const tfl::Model &model, const tfl::Tensor &tensor);

} // namespace lathe::tflgraph

#endif
