// Graphs inside a session: what was created and extended (GraphStore), the library of functions, and the resolved form
// that an executable is made from (Graph).
//
// Everything a session runs, a pruned graph or the body of a function, has one form: values come in through _Arg nodes and
// leave through _Retval nodes.
#ifndef LATHE_RUNTIME_SESSION_GRAPH_H
#define LATHE_RUNTIME_SESSION_GRAPH_H

#include "proto/graph.pb.h"
#include "runtime/session/ResolvedGraph.h"

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace lathe::rt {

/// What files may ask for.
struct GraphLimits {
  int64_t maxConstantBytes = INT64_C(1) << 33;
  int64_t maxNodes = 10'000'000;
};

/// The functions of a graph. Immutable.
class Library {
public:
  /// Adds definitions; a second one of the same name must be equal.
  static absl::StatusOr<std::shared_ptr<const Library>> extend(const std::shared_ptr<const Library> &base,
                                                               const tf::FunctionDefLibrary &more);
  /// Null when there is none.
  const tf::FunctionDef *find(std::string_view name) const;
  /// Name of the registered gradient function, "" when there is none.
  std::string gradientOf(std::string_view name) const;
  /// All of them as one message.
  tf::FunctionDefLibrary proto() const;

private:
  std::unordered_map<std::string, std::shared_ptr<const tf::FunctionDef>> functions;
  std::unordered_map<std::string, std::string> gradients;
};

/// "name:3" -> name, 3; "name" -> name, 0; "^name" -> name, -1.
struct TensorName {
  std::string node;
  int port = 0;
};
TensorName parseTensorName(std::string_view text);

/// A graph as users built it so far. Immutable; sessions share it.
struct GraphSnapshot {
  std::vector<std::shared_ptr<const tf::NodeDef>> nodes;
  std::unordered_map<std::string_view, int> index; ///< by name; the names live in `nodes`
  std::shared_ptr<const Library> library = std::make_shared<Library>();
  tf::VersionDef versions;
};

/// A growing graph that several sessions may share.
class GraphStore {
public:
  explicit GraphStore(GraphLimits limits = {}) : limits(limits), current(std::make_shared<GraphSnapshot>()) {}
  /// Adds nodes and functions. INVALID_ARGUMENT and nothing added when names repeat, inputs are missing, or an op is
  /// unknown.
  absl::Status extend(const tf::GraphDef &more);
  std::shared_ptr<const GraphSnapshot> snapshot() const;
  const GraphLimits limits;

private:
  mutable std::mutex mutex;
  std::shared_ptr<const GraphSnapshot> current;
};

/// A graph in the form with _Arg and _Retval nodes.
struct Body {
  tf::GraphDef graph; ///< without its library
  std::vector<std::string> targets; ///< nodes that run besides the _Retval nodes
  std::vector<DType> argTypes, resultTypes;
};

/// What a run needs, by reverse traversal from fetches and targets; fed tensors stop it. A feed replaces the tensor for all
/// its consumers; control edges from a fed placeholder go to the fed value. INVALID_ARGUMENT / NOT_FOUND for bad names.
absl::StatusOr<Body> prune(const GraphSnapshot &graph, const std::vector<std::string> &feeds,
                           const std::vector<std::string> &fetches, const std::vector<std::string> &targets,
                           const GraphLimits &limits);

/// The body of a function with its attributes put in, pruned to what results, control results and stateful nodes need.
absl::StatusOr<Body> instantiate(const Library &library, const FunctionRef &function, const GraphLimits &limits);

/// Types of a function's arguments and results.
absl::Status functionSignature(const Library &library, const FunctionRef &function, std::vector<DType> *args,
                               std::vector<DType> *results);

/// A node as the executor's kind of NodeInfo. Ops named after a function become PartitionedCall (or StatefulPartitionedCall).
/// `withTensors` false leaves constants unread.
absl::StatusOr<NodeInfo> readNode(const tf::NodeDef &node, const Library &library, const GraphLimits &limits,
                                  bool withTensors = true);

absl::StatusOr<Graph> buildGraph(const tf::GraphDef &def, const Library &library, const GraphLimits &limits);

} // namespace lathe::rt

#endif
