// Conditionals of Switch and Merge inside of function bodies: which values exist only on one side, and how they are kept all the same.
#ifndef LATHE_GRAPH_GRADIENTS_BRANCHES_H
#define LATHE_GRAPH_GRADIENTS_BRANCHES_H

#include "graph/gradients/Bodies.h"

#include <functional>

namespace lathe::graphdef {

/// One side of a Switch.
struct Side {
  Endpoint predicate;
  bool isTrue = false;
};

/// For each value of a graph without cycles, the sides on which it lies, outermost first: it is alive where all of them are taken.
class Branches {
public:
  /// Looks at `graph`, which must outlive this. INVALID_ARGUMENT for a cycle.
  absl::Status find(const Graph &graph);

  std::vector<Side> of(const Endpoint &e) const;
  /// UNIMPLEMENTED, naming the node, for a value that reads opposite sides of a Switch: it never exists.
  absl::Status check(const Endpoint &e) const;
  /// Adds to `values` the predicates of their sides that are missing, and puts each behind those of its sides.
  absl::Status close(std::vector<Endpoint> *values) const;

private:
  void read(std::vector<Side> *sides, const std::vector<Side> &more, const Node *node);

  std::vector<std::vector<Side>> sides; ///< by node id, of what it reads
  std::vector<bool> opposed;            ///< by node id
};

/// Makes something of a list where all `sides` are taken and hands the list on elsewhere. `known` has the predicates in the emitter's
/// graph.
Val onSides(const std::vector<Side> &sides, const std::map<Endpoint, Endpoint> &known, Val list, const std::function<Val(Val)> &make);

/// Pushes `value` to `list` where it is alive.
Val pushOnSides(const std::vector<Side> &sides, const std::map<Endpoint, Endpoint> &known, Val list, Endpoint value);

/// The counterpart: takes the last element, dead where the push was not done, off `*list`.
Val popOnSides(const std::vector<Side> &sides, const std::map<Endpoint, Endpoint> &known, Val *list, DType type);

} // namespace lathe::graphdef

#endif
