// A subgraph of a TensorFlow Lite file cut into steps: operators that are nodes of a graph, operators of a program's own, and what lies
// between them, which is compiled. The interpreter and objects with host kernels both go by it.
#ifndef LATHE_GRAPH_TFLITE_CUT_H
#define LATHE_GRAPH_TFLITE_CUT_H

#include "graph/tflite/NodeMaker.h"

#include <map>
#include <set>

namespace lathe::tfl {
struct Operator;
struct OperatorCode;
}

namespace lathe::tflgraph {

/// Operators that run together. Steps run in their order.
struct Step {
  enum class Kind { Program, Nodes, Compiled } kind = Kind::Compiled;
  unsigned first = 0, last = 0; ///< the operators [first, last) of the subgraph; one where it is the program's
  /// Of a compiled part: its operators, with those in front that give it the handles and first values of variables.
  std::vector<unsigned> operators;
  bool usesVariables = false;
  std::vector<int> inputs, outputs; ///< of a compiled part: tensors of numbers
  std::vector<int> values;          ///< those inputs that it is compiled for the values of, each time that they are others
  NodePart nodes;
};

/// Operators that are not compiled together with those around them.
struct Apart {
  std::set<unsigned> nodes; ///< that are nodes although they have a compiled form
  /// That are compiled alone, for the values of these inputs (by their place in the operator).
  std::map<unsigned, std::set<unsigned>> valued;
  bool empty() const { return nodes.empty() && valued.empty(); }
  /// Whether there is news in it.
  bool add(const Apart &more);
};

struct CutOptions {
  /// Whether the program has an operator for this code; none where empty.
  std::function<bool(const tfl::OperatorCode &)> isPrograms;
  Apart apart;
};

/// The steps of the maker's subgraph; none where everything is compiled. INVALID_ARGUMENT for indices that are out of range,
/// UNIMPLEMENTED naming what cannot be handed from one step to another.
absl::StatusOr<std::vector<Step>> cut(NodeMaker &maker, const CutOptions &options);

/// A subgraph of which everything is compiled, as one step.
Step wholeOf(const NodeMaker &maker);

/// The subgraphs that an operator runs, by number, which nobody has checked. That of CALL_ONCE is not among them.
std::vector<int> calledBy(const tfl::Operator &op);

/// What could be done with operators of [first, last), which did not compile.
struct CouldBe {
  Apart named;             ///< those that the message `why` names
  std::set<unsigned> flex; ///< all of TensorFlow's own, as nodes
};
CouldBe couldBe(const NodeMaker &maker, unsigned first, unsigned last, const std::string &why);
/// Those that are named, else all of TensorFlow's own.
Apart apartOf(const NodeMaker &maker, unsigned first, unsigned last, const std::string &why);

} // namespace lathe::tflgraph

#endif
