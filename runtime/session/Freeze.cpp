// Graphs with the present values of variables as constants.
#include "graph/Graph.h"
#include "ops/Flags.h"
#include "proto/graph.pb.h"
#include "runtime/session/Saver.h"

#include "absl/strings/str_cat.h"

#include <map>
#include <set>

namespace lathe {
namespace {

absl::Status refuse(const graphdef::Node *node, const char *why) {
  return absl::UnimplementedError(absl::StrCat("node '", node->name(), "' (", node->op(), "): ", why));
}

/// Handles behind a node's results: itself, where it is one, or what it hands on.
const graphdef::Node *handleOf(const graphdef::Node *node) {
  while (ops::is(node->op(), ops::Flag::Passes) && node->numInputs() == 1)
    node = node->input(0).node;
  return ops::is(node->op(), ops::Flag::Handle) ? node : nullptr;
}

bool isVariable(const graphdef::Node *node) { return ops::is(node->op(), ops::Flag::RefVariable); }

/// What stands for a variable, and the tensor that gives its value.
struct Frozen {
  const graphdef::Node *node;
  std::string read;
};

/// The variables that the nodes use, in order; an error for a use that is more than reading.
absl::StatusOr<std::vector<Frozen>> variablesOf(const std::vector<const graphdef::Node *> &nodes) {
  std::vector<Frozen> found;
  std::set<const graphdef::Node *> known;
  for (const graphdef::Node *node : nodes) {
    for (int i = 0; i < node->numInputs(); ++i) {
      const graphdef::Node *from = node->input(i).node;
      if (node->inputIsRef(i) && isVariable(from) && node->op() != "Identity")
        return refuse(node, "writes a variable, which has no constant form");
      if (node->inputType(i) != DType::Resource)
        continue;
      const graphdef::Node *handle = handleOf(from);
      if (!handle)
        return refuse(node, "works on a resource that is no variable of this graph");
      if (node->op() == "Identity")
        continue;
      if (node->op() != "ReadVariableOp" && node->op() != "ResourceGather")
        return refuse(node, "does more with a variable than reading it");
      if (node->op() == "ReadVariableOp" && known.insert(handle).second)
        found.push_back({handle, node->name() + ":0"});
    }
    if (isVariable(node) && known.insert(node).second)
      found.push_back({node, node->name() + ":0"});
  }
  for (const graphdef::Node *node : nodes)
    if (node->op() == "ResourceGather" && !known.count(handleOf(node->input(0).node)))
      return refuse(node, "nothing else reads the variable as a whole");
  return found;
}

} // namespace

absl::Status FreezeGraph(ClientSession &session, const std::vector<Output> &outputs, std::string *bytes) {
  const Scope &scope = session.scope();
  if (!scope.ok())
    return scope.status();
  std::vector<graphdef::Node *> roots;
  for (const Output &output : outputs) {
    if (!output.node() || &output.node()->graph() != scope.graph())
      return absl::InvalidArgumentError("an output is not of the session's graph");
    roots.push_back(output.node());
  }
  std::vector<bool> needed = graphdef::ancestors(*scope.graph(), roots);
  std::vector<const graphdef::Node *> nodes;
  for (const graphdef::Node *node : scope.graph()->nodes())
    if (needed[node->id()])
      nodes.push_back(node);
  absl::StatusOr<std::vector<Frozen>> variables = variablesOf(nodes);
  if (!variables.ok())
    return variables.status();
  std::vector<Output> reads;
  for (const Frozen &f : *variables) {
    graphdef::Endpoint end = scope.graph()->findEndpoint(f.read);
    reads.push_back(Output(end.node, end.index));
  }
  std::vector<Tensor> values;
  if (absl::Status s = session.Run(reads, &values); !s.ok())
    return s;
  std::map<const graphdef::Node *, const Tensor *> valueOf;
  for (size_t i = 0; i < values.size(); ++i)
    valueOf[(*variables)[i].node] = &values[i];

  tf::GraphDef out;
  auto add = [&](const graphdef::Node *node, const char *op) {
    tf::NodeDef *def = out.add_node();
    def->set_name(node->name());
    def->set_op(op);
    def->set_device(node->device());
    return def;
  };
  for (const graphdef::Node *node : nodes) {
    if (auto value = valueOf.find(node); value != valueOf.end()) {
      tf::NodeDef *def = add(node, "Const");
      (*def->mutable_attr())["dtype"].set_type(static_cast<tf::DataType>(value->second->dtype()));
      if (absl::Status s = graphdef::encodeTensor(*value->second, (*def->mutable_attr())["value"].mutable_tensor()); !s.ok())
        return s;
      continue;
    }
    tf::NodeDef whole = node->toProto();
    bool handsOn = node->op() == "Identity" && node->inputType(0) == DType::Resource;
    if (node->op() == "ReadVariableOp" || handsOn) {
      tf::NodeDef *def = add(node, "Identity");
      *def->mutable_input() = whole.input();
      (*def->mutable_attr())["T"].set_type(static_cast<tf::DataType>(valueOf[handleOf(node->input(0).node)]->dtype()));
    } else if (node->op() == "ResourceGather") {
      tf::NodeDef *axis = out.add_node();
      axis->set_name(scope.graph()->uniqueName(node->name() + "/axis"));
      axis->set_op("Const");
      (*axis->mutable_attr())["dtype"].set_type(tf::DT_INT32);
      int64_t batch = node->intAttr("batch_dims");
      if (absl::Status s = graphdef::encodeTensor(Tensor::scalar<int32_t>(DType::Int32, static_cast<int32_t>(batch)),
                                                  (*axis->mutable_attr())["value"].mutable_tensor());
          !s.ok())
        return s;
      tf::NodeDef *def = add(node, "GatherV2");
      *def->mutable_input() = whole.input();
      // the axis comes behind the indices, before control edges
      int at = 2;
      def->add_input(axis->name());
      for (int i = def->input_size() - 1; i > at; --i)
        def->mutable_input()->SwapElements(i, i - 1);
      (*def->mutable_attr())["Tparams"].set_type(static_cast<tf::DataType>(node->outputType(0)));
      (*def->mutable_attr())["Tindices"].set_type(static_cast<tf::DataType>(node->inputType(1)));
      (*def->mutable_attr())["Taxis"].set_type(tf::DT_INT32);
      (*def->mutable_attr())["batch_dims"].set_i(batch);
    } else {
      *out.add_node() = std::move(whole);
    }
  }
  *out.mutable_library() = scope.graph()->library().toProto();
  *out.mutable_versions() = scope.graph()->versions();
  *bytes = out.SerializeAsString();
  return absl::OkStatus();
}

} // namespace lathe
