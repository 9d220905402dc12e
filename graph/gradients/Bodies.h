// Gradients of function bodies, from which the rules for calls, conditionals and loops are made.
#ifndef LATHE_GRAPH_GRADIENTS_BODIES_H
#define LATHE_GRAPH_GRADIENTS_BODIES_H

#include "graph/Function.h"
#include "graph/gradients/Rules.h"

#include <optional>

namespace lathe::graphdef {

/// A body into whose graph the nodes of its gradient were added. *Forward* nodes are what the body itself needs, *backward* nodes
/// the rest.
struct BodyGradient {
  FunctionBody body;
  std::vector<Node *> dys;                  ///< _Arg nodes, one a result; null for results without gradient
  std::vector<Gradient> grads;              ///< one an argument; none where nothing flows
  std::vector<bool> isForward;              ///< by node id
  /// Values of forward nodes that backward nodes read, in order; arguments and constants are among them.
  std::vector<Endpoint> captures;
};

/// Differentiates the body of a function by all its differentiable arguments. `dyTypes` has, for each result, the type of the
/// gradient that comes in, or Invalid. Gradients are rows only where `rows` allows it.
absl::StatusOr<BodyGradient> differentiate(const std::shared_ptr<Library> &library, const tf::NameAttrList &function,
                                           const std::vector<DType> &dyTypes, const std::string &prefix, bool rows = false);

/// Copies nodes from one graph to another; endpoints in `known` stand for others there and are added to as nodes come. Control
/// edges from nodes that are not copied are dropped.
absl::Status copyNodes(const Graph &from, const std::vector<bool> &which, Graph &to, std::map<Endpoint, Endpoint> &known);

/// A function that is being written: arguments and results get their nodes and positions.
class FunctionWriter {
public:
  explicit FunctionWriter(const std::shared_ptr<Library> &library);

  Endpoint addArg(DType type, const std::string &name);
  void addResult(Endpoint value);
  Emitter &emit() { return emitter; }
  Graph &graph() { return *body.graph; }
  /// Adds the function to the library under a name that begins with `name`.
  absl::StatusOr<std::string> finish(const std::string &name);

  FunctionBody body;

private:
  std::shared_ptr<Library> library;
  Emitter emitter;
};

tf::AttrValue functionAttr(const std::string &name);
tf::AttrValue typesAttr(const std::vector<DType> &types);

/// What a zero gradient of this value is: zeros as large as it, for a variable's handle as large as the variable.
Val zerosFor(Val value, DType type);

/// Types of gradients by result: those of the results, for handles of variables those of the variables. Invalid: it has none.
std::vector<DType> gradientTypes(const FunctionBody &body);

/// The type of the variable that a handle stands for, found at those who use it; float where nobody says, Invalid for the handle of a
/// TensorArray, whose gradients go by its flow.
DType variableType(const Graph &graph, Endpoint handle);

/// Makes While nodes of the loops of Enter, Merge and NextIteration among the nodes `involved` (by id), and of those inside of them.
/// Their Exit nodes become Identity nodes that read the While. UNIMPLEMENTED, naming the node, for a loop of another form.
absl::Status liftLoops(Graph &graph, const std::vector<bool> &involved);

} // namespace lathe::graphdef

#endif
