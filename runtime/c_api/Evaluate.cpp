// Outputs that are the same in each run.
#include "ops/Flags.h"
#include "runtime/c_api/Session.h"

#include "proto/graph.pb.h"

#include "absl/strings/str_cat.h"

using namespace lathe;
using namespace lathe::c_api;

namespace {

constexpr size_t kMaxNodes = 100'000;

/// Whether a run could give it another value, or none: it is fed, keeps state, depends on control flow, or calls what may.
bool mayChange(const Node *node) {
  const std::string &op = node->op();
  if (op == "Const")
    return false;
  if (node->info().isStateful || node->info().touchesResources() || !ops::findOp(op) || node->numOutputs() == 0)
    return true;
  if (ops::is(op, ops::Flag::PerRun))
    return true;
  for (const ops::Attr &attr : node->info().attrs)
    if (attr.type == "func" || attr.type == "list(func)")
      return true;
  return false;
}

/// The graph that computes `output` from constants; false when there is none. What a shape is known to be needs no input.
bool constantGraph(TF_Graph &graph, Endpoint output, tf::GraphDef *def) {
  std::vector<bool> seen(static_cast<size_t>(graph.graph.maxId()), false);
  std::vector<const Node *> work{output.node};
  seen[output.node->id()] = true;
  for (size_t i = 0; i < work.size(); ++i) {
    const Node *node = work[i];
    if (mayChange(node) || work.size() > kMaxNodes)
      return false;
    tf::NodeDef proto = node->toProto();
    proto.set_device("");
    if (ops::is(node->op(), ops::Flag::Sizes) && node->numOutputs() == 1) {
      auto values = graph.shapes.values({const_cast<Node *>(node), 0});
      bool isKnown = values.has_value();
      for (size_t k = 0; isKnown && k < values->size(); ++k)
        isKnown = (*values)[k].has_value();
      if (isKnown) {
        DType type = node->outputType(0);
        tf::NodeDef constant;
        constant.set_name(node->name());
        constant.set_op("Const");
        (*constant.mutable_attr())["dtype"].set_type(static_cast<tf::DataType>(type));
        tf::TensorProto *tensor = (*constant.mutable_attr())["value"].mutable_tensor();
        tensor->set_dtype(static_cast<tf::DataType>(type));
        tensor->mutable_tensor_shape();
        if (auto shape = graph.shapes.shape({const_cast<Node *>(node), 0}); shape && shape->size() == 1)
          tensor->mutable_tensor_shape()->add_dim()->set_size(static_cast<int64_t>(values->size()));
        for (const auto &value : *values) {
          if (type == DType::Int32)
            tensor->add_int_val(static_cast<int32_t>(*value));
          else
            tensor->add_int64_val(*value);
        }
        *def->add_node() = std::move(constant);
        continue;
      }
    }
    *def->add_node() = std::move(proto);
    auto need = [&](const Node *from) {
      if (!seen[from->id()]) {
        seen[from->id()] = true;
        work.push_back(from);
      }
    };
    for (const Endpoint &e : node->inputs())
      need(e.node);
    for (const Node *control : node->controls())
      need(control);
  }
  *def->mutable_versions() = graph.graph.versions();
  return true;
}

} // namespace

extern "C" {

unsigned char TF_TryEvaluateConstant(TF_Graph *graph, TF_Output output, TF_Tensor **result, TF_Status *status) {
  if (!present(status, "graph, result", graph, result))
    return 0;
  *result = nullptr;
  tf::GraphDef def;
  std::string fetch;
  {
    std::lock_guard<std::mutex> lock(graph->mutex);
    auto e = checkedEndpoint(output, graph, "the output");
    if (!e.ok()) {
      setInvalid(status, std::string(e.status().message()));
      return 0;
    }
    if (!constantGraph(*graph, *e, &def))
      return 0;
    fetch = tensorName(*e);
  }
  auto session = makeSession(nullptr);
  absl::Status s = session.status();
  std::vector<Tensor> outputs;
  if (s.ok())
    s = (*session)->Create(def);
  if (s.ok())
    s = (*session)->Run({}, {fetch}, {}, &outputs);
  set(status, s);
  if (!s.ok())
    return 0;
  *result = fromTensor(outputs[0]);
  return *result != nullptr;
}

} // extern "C"
