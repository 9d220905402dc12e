// What a session's graph says of itself, for language bindings: nodes, types, shapes, and which feeds may outlive a run.
#ifndef LATHE_RUNTIME_SESSION_GRAPHINFO_H
#define LATHE_RUNTIME_SESSION_GRAPHINFO_H

#include "runtime/core/Attr.h"
#include "runtime/session/Session.h"

#include <mutex>
#include <unordered_map>

namespace lathe {

/// A node of a graph.
struct NodeSummary {
  std::string op, device;
  std::vector<DType> outputs;
  /// Of the first output, where the node itself says it: placeholders, constants, variables.
  rt::PartialShape shape;
};

/// Answers about a graph that may grow meanwhile. Safe for concurrent use.
class GraphInfo {
public:
  explicit GraphInfo(SharedGraph graph);
  ~GraphInfo();

  /// NOT_FOUND for a node that the graph lacks, the reason for one whose types cannot be told.
  absl::StatusOr<NodeSummary> node(const std::string &name) const;
  /// Name and op of every node, in the order of the graph.
  std::vector<std::pair<std::string, std::string>> nodes() const;
  /// The bytes of a GraphDef; RESOURCE_EXHAUSTED above 2 GB.
  absl::StatusOr<std::string> serialize() const;
  /// Whether something that lives longer than a run (a variable, queue, table, list) may hold on to the memory of this tensor
  /// ("x:0") when it is fed: an op with state, or one on variants, is reachable from it.
  bool mayKeep(const std::string &tensor) const;

private:
  struct Consumers;
  Consumers &consumers() const; ///< with the mutex held
  static bool keeps(const Consumers &c, int start);

  const SharedGraph graph;
  mutable std::mutex mutex;
  mutable std::unique_ptr<Consumers> known;
};

} // namespace lathe

#endif
