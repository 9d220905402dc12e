// Changes to operations that are there.
#include "runtime/c_api/Internal.h"

#include "graph/Values.h"
#include "ops/Flags.h"
#include "proto/config.pb.h"

#include "absl/strings/str_cat.h"

using namespace lathe;
using namespace lathe::c_api;

namespace {

/// INVALID_ARGUMENT when the operation is missing or in another graph.
bool checkOperation(TF_Graph *graph, TF_Operation *op, TF_Status *status) {
  if (!present(status, "graph, op", graph, op))
    return false;
  if (graphOf(nodeOf(op)) == graph)
    return true;
  setInvalid(status, absl::StrCat("operation '", nodeOf(op)->name(), "' is in another graph"));
  return false;
}

/// Replaces the node by what `edit` makes of it, checked as a new one would be.
absl::Status changeNode(TF_Graph &graph, Node *node, std::string_view what, const std::function<void(graphdef::NodeSpec &)> &edit) {
  graphdef::NodeSpec spec;
  spec.def = node->toProto();
  spec.def.clear_input();
  spec.inputs = node->inputs();
  spec.controls = node->controls();
  edit(spec);
  absl::Status s = graph.graph.change(node, std::move(spec));
  if (s.ok())
    noteChange(graph, node, what);
  return s;
}

/// What is known behind a handle, of variables as they were made.
std::string handleDataOf(TF_Graph &graph, Endpoint e) {
  if (auto node = graph.handleData.find(e.node); node != graph.handleData.end())
    if (auto data = node->second.find(e.index); data != node->second.end())
      return data->second;
  tf::HandleData data;
  if (ops::is(e.node->op(), ops::Flag::Handle)) {
    data.set_is_set(true);
    tf::HandleShapeAndType *item = data.add_shape_and_type();
    item->set_dtype(static_cast<tf::DataType>(e.node->typeAttr("dtype")));
    graphdef::encodeShape(graph.shapes.handleShape(e), item->mutable_shape());
  }
  return data.SerializeAsString();
}

} // namespace

extern "C" {

void TF_UpdateEdge(TF_Graph *graph, TF_Output new_src, TF_Input dst, TF_Status *status) {
  if (!checkOperation(graph, dst.oper, status))
    return;
  std::lock_guard<std::mutex> lock(graph->mutex);
  auto e = checkedEndpoint(new_src, graph, "the new source");
  if (!e.ok())
    return set(status, e.status());
  Node *node = nodeOf(dst.oper);
  if (dst.index < 0 || dst.index >= node->numInputs())
    return set(status, absl::OutOfRangeError(absl::StrCat("operation '", node->name(), "' has no input ", dst.index)));
  absl::Status s = graph->graph.setInput(node, dst.index, *e);
  if (s.ok())
    noteChange(*graph, node, "updating an input");
  set(status, s);
}

void TF_AddOperationControlInput(TF_Graph *graph, TF_Operation *op, TF_Operation *input) {
  TF_Status status;
  if (!checkOperation(graph, op, &status) || !checkOperation(graph, input, &status))
    return;
  std::lock_guard<std::mutex> lock(graph->mutex);
  graph->graph.addControl(nodeOf(input), nodeOf(op));
  noteChange(*graph, nodeOf(op), "adding a control input");
}

void TF_RemoveAllControlInputs(TF_Graph *graph, TF_Operation *op) {
  TF_Status status;
  if (!checkOperation(graph, op, &status))
    return;
  std::lock_guard<std::mutex> lock(graph->mutex);
  std::vector<Node *> controls = nodeOf(op)->controls();
  for (Node *control : controls)
    graph->graph.removeControl(control, nodeOf(op));
  if (!controls.empty())
    noteChange(*graph, nodeOf(op), "removing its control inputs");
}

void TF_SetAttr(TF_Graph *graph, TF_Operation *op, const char *attr_name, TF_Buffer *attr_value_proto, TF_Status *status) {
  tf::AttrValue value;
  if (!checkOperation(graph, op, status) || !present(status, "attr_name, attr_value_proto", attr_name, attr_value_proto) ||
      !parseMessage(attr_value_proto->data, attr_value_proto->length, "AttrValue", &value, status))
    return;
  std::lock_guard<std::mutex> lock(graph->mutex);
  set(status, changeNode(*graph, nodeOf(op), "setting an attribute",
                         [&](graphdef::NodeSpec &spec) { (*spec.def.mutable_attr())[attr_name] = value; }));
}

void TF_ClearAttr(TF_Graph *graph, TF_Operation *op, const char *attr_name, TF_Status *status) {
  if (!checkOperation(graph, op, status) || !present(status, "attr_name", attr_name))
    return;
  std::lock_guard<std::mutex> lock(graph->mutex);
  set(status, changeNode(*graph, nodeOf(op), "clearing an attribute",
                         [&](graphdef::NodeSpec &spec) { spec.def.mutable_attr()->erase(attr_name); }));
}

void TF_SetFullType(TF_Graph *, TF_Operation *, const TF_Buffer *) {}

void TF_SetRequestedDevice(TF_Graph *graph, TF_Operation *op, const char *device) {
  TF_Status status;
  if (!checkOperation(graph, op, &status))
    return;
  std::lock_guard<std::mutex> lock(graph->mutex);
  nodeOf(op)->setDevice(textOf(device));
  noteChange(*graph, nodeOf(op), "setting its device");
}

void TF_SetRequireShapeInferenceFns(TF_Graph *, bool) {}

TF_Buffer *TF_GetHandleShapeAndType(TF_Graph *graph, TF_Output output) {
  if (!graph)
    return nullptr;
  std::lock_guard<std::mutex> lock(graph->mutex);
  auto e = checkedEndpoint(output, graph, "the output");
  TF_Buffer *buffer = TF_NewBuffer();
  giveBytes(e.ok() ? handleDataOf(*graph, *e) : "", buffer, nullptr);
  return buffer;
}

void TF_SetHandleShapeAndType(TF_Graph *graph, TF_Output output, const void *proto, size_t proto_len, TF_Status *status) {
  tf::HandleData data;
  if (!present(status, "graph", graph) || !parseMessage(proto, proto_len, "HandleData", &data, status))
    return;
  std::lock_guard<std::mutex> lock(graph->mutex);
  auto e = checkedEndpoint(output, graph, "the output");
  if (!e.ok())
    return setInvalid(status, std::string(e.status().message()));
  graph->handleData[e->node][e->index] = data.SerializeAsString();
}

void TF_AddWhileInputHack(TF_Graph *, TF_Output, TF_Operation *, TF_Status *status) {
  setUnimplemented(status, "an input that the op does not have cannot be added");
}

} // extern "C"
