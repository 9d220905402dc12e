// A graph that grows and changes: nodes with their attributes, edges by output and input, and the library of functions.
//
// A *node* is an instance of an op; an *endpoint* is one of its outputs; a *use* is one of the inputs that read an endpoint.
// Nodes keep their addresses. Every node in a graph has been checked against the op registry or the function that its op names:
// its attributes are there and allowed, its inputs exist and have the right types.
#ifndef LATHE_GRAPH_GRAPH_H
#define LATHE_GRAPH_GRAPH_H

#include "graph/Library.h"
#include "graph/Values.h"

#include "absl/status/statusor.h"

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace lathe::graphdef {

/// The version of graphs as TensorFlow 2.21 writes them: what a reader may expect of defaults.
constexpr int kGraphVersion = 2474;

class Graph;
class Node;

/// An output of a node; without a node it is none.
struct Endpoint {
  Node *node = nullptr;
  int index = 0;

  explicit operator bool() const { return node != nullptr; }
  bool operator==(const Endpoint &o) const { return node == o.node && index == o.index; }
  bool operator!=(const Endpoint &o) const { return !(*this == o); }
  bool operator<(const Endpoint &o) const; ///< by node id
  DType type() const;
  bool isRef() const;
  /// "node" or "node:1".
  std::string name() const;
};

/// Input `index` of `node`.
struct Use {
  Node *node = nullptr;
  int index = 0;
};

/// "name:3" -> name, 3; "name" -> name, 0; "^name" -> name, -1.
struct TensorName {
  std::string node;
  int port = 0;
};
TensorName parseTensorName(std::string_view text);

class Node {
public:
  /// Position in the order of creation.
  int id() const { return number; }
  const std::string &name() const { return def.name(); }
  const std::string &op() const { return def.op(); }
  const std::string &device() const { return def.device(); }
  void setDevice(std::string_view device) { def.set_device(std::string(device)); }
  /// The op as the registry or the library describes it.
  const ops::OpInfo &info() const { return *opInfo; }
  Graph &graph() const { return *owner; }

  const std::vector<Endpoint> &inputs() const { return ins; }
  Endpoint input(int i) const { return ins[i]; }
  int numInputs() const { return static_cast<int>(ins.size()); }
  const std::vector<Node *> &controls() const { return controlIns; }
  int numOutputs() const { return static_cast<int>(outTypes.size()); }
  Endpoint output(int i) { return {this, i}; }
  DType inputType(int i) const { return inTypes[i]; }
  DType outputType(int i) const { return outTypes[i]; }
  const std::vector<DType> &inputTypes() const { return inTypes; }
  const std::vector<DType> &outputTypes() const { return outTypes; }
  bool inputIsRef(int i) const { return inRefs[i]; }
  bool outputIsRef(int i) const { return outRefs[i]; }
  /// Who reads an output.
  const std::vector<Use> &uses(int output) const { return users[output]; }
  const std::vector<Node *> &controlUsers() const { return controlOuts; }
  /// First flat input (or output) of a named argument, and how many there are; {-1, 0} for an unknown name.
  std::pair<int, int> inputRange(std::string_view arg) const;
  std::pair<int, int> outputRange(std::string_view arg) const;

  const google::protobuf::Map<std::string, tf::AttrValue> &attrs() const { return def.attr(); }
  /// Null when there is none.
  const tf::AttrValue *attr(std::string_view name) const;
  // Values of attributes; those that are missing or of another type are zero or empty.
  int64_t intAttr(std::string_view name) const;
  float floatAttr(std::string_view name) const;
  bool boolAttr(std::string_view name) const;
  const std::string &stringAttr(std::string_view name) const;
  DType typeAttr(std::string_view name) const;
  std::vector<int64_t> intsAttr(std::string_view name) const;
  std::vector<DType> typesAttr(std::string_view name) const;
  /// Sets an attribute that types do not depend on ("_class", "shape" ...); use Graph::change for others.
  void setAttr(std::string_view name, tf::AttrValue value) { (*def.mutable_attr())[std::string(name)] = std::move(value); }
  void clearAttr(std::string_view name) { def.mutable_attr()->erase(std::string(name)); }

  /// With its inputs.
  tf::NodeDef toProto() const;

private:
  friend class Graph;
  Graph *owner = nullptr;
  int number = 0;
  tf::NodeDef def; ///< without inputs
  const ops::OpInfo *opInfo = nullptr;
  std::vector<Endpoint> ins;
  std::vector<Node *> controlIns, controlOuts;
  std::vector<DType> inTypes, outTypes;
  std::vector<bool> inRefs, outRefs;
  std::vector<int64_t> inCounts, outCounts; ///< of each argument
  std::vector<std::vector<Use>> users;
};

/// A node to be made: `def` has name, op, device and attributes, its inputs are not looked at.
struct NodeSpec {
  tf::NodeDef def;
  std::vector<Endpoint> inputs;
  std::vector<Node *> controls;
};

/// "node 'NAME' (OP): ..." in front of a message that does not say so yet.
absl::Status atNode(std::string_view name, std::string_view op, const absl::Status &status);

/// Sets attributes that follow from the types and numbers of inputs, grouped by argument ("T", "N", "Tin"), where they are
/// missing. INVALID_ARGUMENT when the inputs disagree with each other or with what is set.
absl::Status inferAttrs(const ops::OpInfo &op, const std::vector<std::vector<Endpoint>> &args, tf::NodeDef *def);

class Graph {
public:
  /// With a library of its own, or with that of the graph whose function this is.
  explicit Graph(std::shared_ptr<Library> library = std::make_shared<Library>());
  Graph(const Graph &) = delete;
  Graph &operator=(const Graph &) = delete;

  Library &library() { return *functions; }
  const std::shared_ptr<Library> &sharedLibrary() const { return functions; }
  tf::VersionDef &versions() { return versionDef; }

  /// The registry's op or the library's function; null when there is neither.
  const ops::OpInfo *findOp(std::string_view name) const;

  /// Adds a node; missing attributes become the op's defaults. INVALID_ARGUMENT, naming node and op, when the name is
  /// taken or malformed, the op is unknown, or attributes or inputs do not fit.
  absl::Status checkSpec(const NodeSpec &spec) const;
  absl::StatusOr<Node *> add(NodeSpec spec);

  /// Adds nodes and functions that may refer to each other and to what is there. Nothing changes on an error.
  absl::Status extend(const tf::GraphDef &more);
  static absl::StatusOr<std::unique_ptr<Graph>> fromProto(const tf::GraphDef &def);
  tf::GraphDef toProto() const;

  /// Another value for an input; types must agree. For the back edges of loops and for rewriting.
  absl::Status setInput(Node *node, int input, Endpoint value);
  /// Adds a control edge unless it is there.
  void addControl(Node *from, Node *to);
  void removeControl(Node *from, Node *to);
  /// Replaces attributes and inputs of a node that keeps its name and readers: outputs in use must keep their types.
  absl::Status change(Node *node, NodeSpec spec);
  /// Makes all readers of `from` read `to`, which must have its type.
  absl::Status replaceUses(Endpoint from, Endpoint to);
  /// Removes nodes that nothing else reads.
  void remove(const std::vector<Node *> &gone);

  /// Null when there is none.
  Node *find(std::string_view name) const;
  /// An endpoint by "node:1"; none when it does not exist.
  Endpoint findEndpoint(std::string_view tensor) const;
  /// In order of creation.
  std::vector<Node *> nodes() const;
  int numNodes() const { return static_cast<int>(index.size()); }
  /// How often nodes were changed, removed, or given other inputs.
  int64_t changes() const { return changeCount; }
  /// Null for one that was removed.
  Node *node(int id) const { return all[id].get(); }
  /// A bound of node ids.
  int maxId() const { return static_cast<int>(all.size()); }

  /// A name that no node has: `base`, or "base_1" ... as TensorFlow numbers them.
  std::string uniqueName(std::string_view base);
  /// The same for the first part of names "base/...".
  std::string uniqueScope(std::string_view base) const;

private:
  absl::Status checkName(const tf::NodeDef &def) const;
  absl::Status resolve(Node *node) const;
  absl::Status checkInput(const Node *node, int input) const;
  void connect(Node *node);
  void disconnect(Node *node);
  Node *create(tf::NodeDef def);

  std::shared_ptr<Library> functions;
  tf::VersionDef versionDef;
  std::vector<std::unique_ptr<Node>> all; ///< null: removed
  std::unordered_map<std::string_view, Node *> index;
  int64_t changeCount = 0;
  std::unordered_map<std::string, int> numbered; ///< last number given to a base name
};

/// Whether this edge closes a v1 loop.
bool isBackEdge(const Node *from, const Node *to);

/// Producers before consumers, back edges of v1 loops aside. INVALID_ARGUMENT naming a node of a cycle.
absl::StatusOr<std::vector<Node *>> topologicalOrder(const Graph &graph);

/// By node id: whether a node is one of `roots` or needed by one, through data and control edges.
std::vector<bool> ancestors(const Graph &graph, const std::vector<Node *> &roots);

/// Removes all nodes but `keep` and what they need.
void prune(Graph &graph, const std::vector<Node *> &keep);

} // namespace lathe::graphdef

#endif
