// Graphs: what they hold, how they grow, and what their sessions are given.
#include "runtime/c_api/Internal.h"

#include "graph/Values.h"
#include "proto/config.pb.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

using namespace lathe;
using namespace lathe::c_api;

TF_Graph::TF_Graph() : graph(this) { graph.versions().set_producer(graphdef::kGraphVersion); }

namespace lathe::c_api {

Endpoint endpointOf(TF_Output output) {
  Node *node = nodeOf(output.oper);
  return node && output.index >= 0 && output.index < node->numOutputs() ? Endpoint{node, output.index} : Endpoint();
}

absl::StatusOr<Endpoint> checkedEndpoint(TF_Output output, const TF_Graph *graph, std::string_view what) {
  if (!output.oper)
    return absl::InvalidArgumentError(absl::StrCat(std::string(what), " names no operation"));
  Node *node = nodeOf(output.oper);
  if (graph && graphOf(node) != graph)
    return absl::InvalidArgumentError(absl::StrCat(std::string(what), " is '", node->name(), "', which is in another graph"));
  if (Endpoint e = endpointOf(output))
    return e;
  return absl::OutOfRangeError(absl::StrCat(std::string(what), " is output ", output.index, " of '", node->name(), "', which has ",
                                            node->numOutputs()));
}

std::string tensorName(Endpoint e) { return absl::StrCat(e.node->name(), ":", e.index); }

absl::StatusOr<Node *> addNode(TF_Graph &graph, graphdef::NodeSpec spec) {
  auto node = graph.graph.add(std::move(spec));
  if (!node.ok())
    return node.status();
  if (absl::Status s = graph.shapes.add(*node); !s.ok()) {
    graph.graph.remove({*node});
    return s;
  }
  return *node;
}

absl::Status addNodes(TF_Graph &graph, const tf::GraphDef &def) {
  const int first = graph.graph.maxId();
  const tf::VersionDef versions = graph.graph.versions();
  if (absl::Status s = graph.graph.extend(def); !s.ok())
    return s;
  std::vector<Node *> made;
  for (const tf::NodeDef &node : def.node())
    made.push_back(graph.graph.find(node.name()));
  auto undo = [&](absl::Status s) {
    for (Node *node : made)
      graph.shapes.remove(node);
    graph.graph.remove(made);
    graph.graph.versions() = versions;
    return s;
  };
  // producers before consumers; what is left over lies on a cycle
  std::vector<int> pending(made.size());
  std::vector<Node *> order;
  for (Node *node : made) {
    int &n = pending[node->id() - first];
    for (const Endpoint &e : node->inputs())
      n += e.node->id() >= first && !graphdef::isBackEdge(e.node, node);
    for (const Node *c : node->controls())
      n += c->id() >= first;
    if (n == 0)
      order.push_back(node);
  }
  for (size_t i = 0; i < order.size(); ++i) {
    Node *node = order[i];
    auto ready = [&](Node *user) {
      if (user->id() >= first && --pending[user->id() - first] == 0)
        order.push_back(user);
    };
    for (int o = 0; o < node->numOutputs(); ++o)
      for (const graphdef::Use &use : node->uses(o))
        if (!graphdef::isBackEdge(node, use.node))
          ready(use.node);
    for (Node *user : node->controlUsers())
      ready(user);
    if (absl::Status s = graph.shapes.add(node); !s.ok())
      return undo(s);
  }
  if (order.size() != made.size())
    return undo(absl::InvalidArgumentError(absl::StrCat(made.size() - order.size(), " nodes are part of a cycle or behind one")));
  return absl::OkStatus();
}

void noteChange(TF_Graph &graph, const Node *node, std::string_view change) {
  if (!graph.store || node->id() >= graph.storedNodes)
    return;
  std::string text = absl::StrCat("operation '", node->name(), "' was changed by ", std::string(change),
                                  " after a session had got it; make a new session");
  for (auto &[session, why] : graph.sessions)
    if (why.empty())
      why = text;
  graph.store.reset();
  graph.storedNodes = 0;
  graph.storedFunctions = 0;
}

absl::Status extendStore(TF_Graph &graph) {
  if (!graph.store)
    graph.store = NewSharedGraph();
  const int next = graph.graph.maxId();
  const size_t functions = graph.graph.library().all().size();
  if (next == graph.storedNodes && functions == graph.storedFunctions)
    return absl::OkStatus();
  tf::GraphDef more;
  for (int id = graph.storedNodes; id < next; ++id)
    if (const Node *node = graph.graph.node(id))
      *more.add_node() = node->toProto();
  if (functions != graph.storedFunctions)
    *more.mutable_library() = graph.graph.library().toProto();
  *more.mutable_versions() = graph.graph.versions();
  if (absl::Status s = ExtendSharedGraph(graph.store, more); !s.ok())
    return s;
  graph.storedNodes = next;
  graph.storedFunctions = functions;
  return absl::OkStatus();
}

void release(TF_Graph *graph) {
  {
    std::lock_guard<std::mutex> lock(graph->mutex);
    if (!graph->isDeleted || !graph->sessions.empty())
      return;
  }
  delete graph;
}

} // namespace lathe::c_api

extern "C" {

TF_Graph *TF_NewGraph(void) { return new TF_Graph; }

void TF_DeleteGraph(TF_Graph *graph) {
  if (!graph)
    return;
  {
    std::lock_guard<std::mutex> lock(graph->mutex);
    graph->isDeleted = true;
  }
  release(graph);
}

void TF_GraphSetTensorShape(TF_Graph *graph, TF_Output output, const int64_t *dims, const int num_dims, TF_Status *status) {
  if (!present(status, "graph", graph))
    return;
  std::lock_guard<std::mutex> lock(graph->mutex);
  auto endpoint = checkedEndpoint(output, graph, "the output");
  if (!endpoint.ok())
    return set(status, absl::InvalidArgumentError(endpoint.status().message()));
  if (num_dims < 0)
    return;
  if (num_dims > graphdef::kMaxRank || (num_dims > 0 && !dims))
    return setInvalid(status, "the dimensions are missing, or too many");
  std::vector<int64_t> shape(dims, dims + num_dims);
  for (int64_t &size : shape)
    size = size < 0 ? -1 : size;
  set(status, graphdef::atNode(endpoint->node->name(), endpoint->node->op(), graph->shapes.merge(*endpoint, shape)));
}

int TF_GraphGetTensorNumDims(TF_Graph *graph, TF_Output output, TF_Status *status) {
  if (!present(status, "graph", graph))
    return -1;
  std::lock_guard<std::mutex> lock(graph->mutex);
  auto endpoint = checkedEndpoint(output, graph, "the output");
  if (!endpoint.ok()) {
    set(status, absl::InvalidArgumentError(endpoint.status().message()));
    return -1;
  }
  graphdef::PartialShape shape = graph->shapes.shape(*endpoint);
  return shape ? static_cast<int>(shape->size()) : -1;
}

void TF_GraphGetTensorShape(TF_Graph *graph, TF_Output output, int64_t *dims, int num_dims, TF_Status *status) {
  if (!present(status, "graph", graph))
    return;
  std::lock_guard<std::mutex> lock(graph->mutex);
  auto endpoint = checkedEndpoint(output, graph, "the output");
  if (!endpoint.ok())
    return set(status, absl::InvalidArgumentError(endpoint.status().message()));
  graphdef::PartialShape shape = graph->shapes.shape(*endpoint);
  int rank = shape ? static_cast<int>(shape->size()) : -1;
  if (rank != num_dims)
    return setInvalid(status, absl::StrCat("the rank is ", rank, ", not ", num_dims));
  if (rank > 0 && !dims)
    return setInvalid(status, "no place for the dimensions");
  for (int i = 0; i < rank; ++i)
    dims[i] = (*shape)[i];
}

TF_Operation *TF_GraphOperationByName(TF_Graph *graph, const char *oper_name) {
  if (!graph || !oper_name)
    return nullptr;
  std::lock_guard<std::mutex> lock(graph->mutex);
  return operationOf(graph->graph.find(oper_name));
}

TF_Operation *TF_GraphNextOperation(TF_Graph *graph, size_t *pos) {
  if (!graph || !pos)
    return nullptr;
  std::lock_guard<std::mutex> lock(graph->mutex);
  while (*pos < static_cast<size_t>(graph->graph.maxId()))
    if (Node *node = graph->graph.node(static_cast<int>((*pos)++)))
      return operationOf(node);
  return nullptr;
}

void TF_GraphToGraphDef(TF_Graph *graph, TF_Buffer *output_graph_def, TF_Status *status) {
  if (!present(status, "graph, output_graph_def", graph, output_graph_def))
    return;
  tf::GraphDef def;
  {
    std::lock_guard<std::mutex> lock(graph->mutex);
    def = graph->graph.toProto();
  }
  giveMessage(def, output_graph_def, status);
}

void TF_GraphGetOpDef(TF_Graph *graph, const char *op_name, TF_Buffer *output_op_def, TF_Status *status) {
  if (!present(status, "graph, op_name, output_op_def", graph, op_name, output_op_def))
    return;
  std::lock_guard<std::mutex> lock(graph->mutex);
  if (const ops::OpInfo *op = ops::findOp(op_name))
    return giveMessage(describeOp(*op), output_op_def, status);
  if (const tf::FunctionDef *function = graph->graph.library().find(op_name))
    return giveMessage(function->signature(), output_op_def, status);
  set(status, absl::NotFoundError(absl::StrCat("op type '", op_name, "' is not registered")));
}

void TF_GraphVersions(TF_Graph *graph, TF_Buffer *output_version_def, TF_Status *status) {
  if (!present(status, "graph, output_version_def", graph, output_version_def))
    return;
  std::lock_guard<std::mutex> lock(graph->mutex);
  giveMessage(graph->graph.versions(), output_version_def, status);
}

} // extern "C"
