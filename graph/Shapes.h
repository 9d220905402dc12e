// Shapes of a graph's outputs, kept while the graph grows.
#ifndef LATHE_GRAPH_SHAPES_H
#define LATHE_GRAPH_SHAPES_H

#include "graph/Graph.h"
#include "ops/Shapes.h"

#include <unordered_map>

namespace lathe::graphdef {

class Shapes {
public:
  /// Infers the shapes of a node's outputs from those of its inputs, which were added before (back edges of loops aside).
  /// INVALID_ARGUMENT, naming the node, when its inputs cannot go together; then nothing is known of it.
  absl::Status add(const Node *node);
  /// Unknown for nodes that were not added.
  PartialShape shape(Endpoint output) const;
  /// Adds knowledge. INVALID_ARGUMENT when it contradicts what is known.
  absl::Status merge(Endpoint output, const PartialShape &shape);
  /// Forgets a node that is to be removed.
  void remove(const Node *node) { known.erase(node); }
  /// The shape behind a handle (of a variable, of a list's elements); unknown where it is not followed.
  PartialShape handleShape(Endpoint output) const;
  /// The elements of an integer output of rank 0 or 1, as far as they follow from constants and shapes.
  std::optional<ops::PartialValues> values(Endpoint output) const;

private:
  std::unordered_map<const Node *, ops::InferredShapes> known;
};

} // namespace lathe::graphdef

#endif
