// What the functions of the C interface share: statuses, tensors, graphs. Handles are structs of ours, except that a TF_Operation
// is a node of graph/Graph.h under another name.
//
// The *caller's graph* is a TF_Graph; the *store* is what its sessions were given of it so far.
#ifndef LATHE_RUNTIME_C_API_INTERNAL_H
#define LATHE_RUNTIME_C_API_INTERNAL_H

#include "base/Tensor.h"
#include "graph/Graph.h"
#include "graph/Shapes.h"
#include "runtime/session/Session.h"

#include "tensorflow/c/c_api.h"

#include "absl/status/status.h"

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

struct TSL_Status {
  TF_Code code = TF_OK;
  std::string message;
  std::map<std::string, std::string> notes;
};

/// Numbers and strings lie in memory as the interface has them; resources and variants stay the runtime's.
struct TF_Tensor {
  TF_DataType type = TF_FLOAT;
  std::vector<int64_t> dims;
  std::shared_ptr<void> memory; ///< its deleter is the caller's deallocator
  size_t size = 0;              ///< bytes
  bool isBorrowed = false;      ///< the memory is the caller's
  lathe::Tensor objects;
};

namespace lathe::c_api {

using graphdef::Endpoint;
using graphdef::Node;

class GraphOf : public graphdef::Graph {
public:
  explicit GraphOf(TF_Graph *owner) : owner(owner) {}
  TF_Graph *const owner;
};

} // namespace lathe::c_api

struct TF_Graph {
  TF_Graph();
  std::mutex mutex; ///< guards everything here
  lathe::c_api::GraphOf graph;
  lathe::graphdef::Shapes shapes;
  std::unordered_map<const lathe::graphdef::Node *, std::map<int, std::string>> handleData; ///< set by the caller, by output

  /// Sessions over the graph; the text says why one may run no more.
  std::map<TF_Session *, std::string> sessions;
  bool isDeleted = false;
  lathe::SharedGraph store;
  int storedNodes = 0;        ///< all nodes with smaller ids are in the store
  size_t storedFunctions = 0; ///< as many

  /// Of the graphs of a loop: the graph that the loop is for.
  TF_Graph *parent = nullptr;
  std::vector<lathe::graphdef::Endpoint> loopInputs; ///< of that graph; kept with the condition
};

namespace lathe::tf {
class RegisteredOp;
}

namespace lathe::c_api {

//===----------------------------------------------------------------------===//
// Statuses
//===----------------------------------------------------------------------===//

/// Null is no place for a status; then nothing is set.
void set(TF_Status *to, const absl::Status &from);
inline void setOk(TF_Status *to) { set(to, absl::OkStatus()); }
void setInvalid(TF_Status *to, std::string_view message);
void setUnimplemented(TF_Status *to, std::string_view message);
bool isOk(const TF_Status *status);

/// Sets INVALID_ARGUMENT and gives false when one of the pointers, named by `names` ("graph, dims"), is null; else sets OK.
template <typename... T>
bool present(TF_Status *status, const char *names, const T *...pointers) {
  if (((pointers != nullptr) && ...)) {
    setOk(status);
    return true;
  }
  setInvalid(status, std::string("a null pointer among: ") + names);
  return false;
}

/// Text of a C string; "" for null.
inline std::string textOf(const char *s) { return s ? std::string(s) : std::string(); }

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

/// Gives a serialized message to an empty buffer.
void giveBytes(const std::string &bytes, TF_Buffer *to, TF_Status *status);
template <typename Message>
void giveMessage(const Message &message, TF_Buffer *to, TF_Status *status) {
  std::string bytes;
  if (!message.SerializeToString(&bytes))
    return set(status, absl::InvalidArgumentError("the message is too large to be serialized"));
  giveBytes(bytes, to, status);
}
/// Parses a message of bytes that may be null; INVALID_ARGUMENT naming `what` when it cannot be read.
template <typename Message>
bool parseMessage(const void *data, size_t size, const char *what, Message *message, TF_Status *status) {
  if ((!data && size) || size > INT32_MAX || !message->ParseFromArray(data, static_cast<int>(size))) {
    setInvalid(status, std::string("unparseable ") + what);
    return false;
  }
  setOk(status);
  return true;
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

/// The runtime's tensor; numbers share the memory. INVALID_ARGUMENT when size and dimensions disagree, UNIMPLEMENTED for types
/// that the runtime does not know.
absl::StatusOr<Tensor> toTensor(const TF_Tensor &tensor);
/// Numbers share the memory, strings are copied.
TF_Tensor *fromTensor(const Tensor &tensor);
/// Product of dimensions, or -1 when it is none.
int64_t elementCount(const int64_t *dims, int numDims);

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

inline Node *nodeOf(TF_Operation *op) { return reinterpret_cast<Node *>(op); }
inline const Node *nodeOf(const TF_Operation *op) { return reinterpret_cast<const Node *>(op); }
inline TF_Operation *operationOf(const Node *node) { return reinterpret_cast<TF_Operation *>(const_cast<Node *>(node)); }
inline TF_Graph *graphOf(const Node *node) { return static_cast<GraphOf &>(node->graph()).owner; }
inline TF_Output outputOf(Endpoint e) { return {operationOf(e.node), e.index}; }
/// The endpoint, or none when there is no such output.
Endpoint endpointOf(TF_Output output);
/// The same with the reason, also when it belongs to another graph than `graph` (where that is not null). `what` names it.
absl::StatusOr<Endpoint> checkedEndpoint(TF_Output output, const TF_Graph *graph, std::string_view what);

/// "name" or "name:1", as sessions take it.
std::string tensorName(Endpoint e);

/// Adds a node with its shapes; nothing is added on an error. With the graph's mutex held.
absl::StatusOr<Node *> addNode(TF_Graph &graph, graphdef::NodeSpec spec);
/// Adds the nodes of a GraphDef with their shapes, names as they are; nothing is added on an error. With the mutex held.
absl::Status addNodes(TF_Graph &graph, const tf::GraphDef &def);

/// A node that the store may have changed: its sessions may run no more, and new ones get a new store. With the mutex held.
void noteChange(TF_Graph &graph, const Node *node, std::string_view change);
/// Brings what is new of the graph to its store. With the mutex held.
absl::Status extendStore(TF_Graph &graph);
/// Deletes the graph when nothing needs it any more.
void release(TF_Graph *graph);

/// The registry's op as a message.
tf::RegisteredOp describeOp(const ops::OpInfo &op);

/// What sessions are made with, from a ConfigProto.
struct Config {
  std::string target;
  SessionOptions options;
};
const Config &configOf(const TF_SessionOptions *options);

} // namespace lathe::c_api

#endif
