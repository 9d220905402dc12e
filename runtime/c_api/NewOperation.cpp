// Operations described step by step. Mistakes on the way are kept for TF_FinishOperation, which reports the first.
#include "runtime/c_api/NewOperation.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <set>

using namespace lathe;
using namespace lathe::c_api;

namespace {

void fail(TF_OperationDescription &desc, std::string_view message) {
  if (desc.problem.ok())
    desc.problem = absl::InvalidArgumentError(std::string(message));
}

/// The inputs by argument, as the op has them; INVALID_ARGUMENT when they are too few, too many, or single where a list belongs.
absl::Status groupInputs(const TF_OperationDescription &desc, const ops::OpInfo &op, std::vector<std::vector<Endpoint>> *args) {
  if (desc.inputs.size() != op.inputs.size())
    return absl::InvalidArgumentError(absl::StrCat(desc.inputs.size(), " inputs were added, expected ", op.inputs.size()));
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    const bool wantsList = !op.inputs[i].numberAttr.empty() || !op.inputs[i].typeListAttr.empty();
    if (wantsList != desc.inputs[i].isList)
      return absl::InvalidArgumentError(absl::StrCat("input '", std::string(op.inputs[i].name), "' is ", wantsList ? "a list" : "a single value",
                                                     ", found ", wantsList ? "a single value" : "a list"));
    std::vector<Endpoint> values;
    for (TF_Output output : desc.inputs[i].values) {
      auto value = checkedEndpoint(output, desc.graph, absl::StrCat("input '", std::string(op.inputs[i].name), "'"));
      if (!value.ok())
        return absl::InvalidArgumentError(value.status().message());
      values.push_back(*value);
    }
    args->push_back(std::move(values));
  }
  return absl::OkStatus();
}

/// "loc:@NAME" for each operation to be near, beside those that the attribute names already.
void addColocation(const std::set<std::string> &names, tf::NodeDef *def) {
  if (names.empty())
    return;
  std::set<std::string> all = names;
  tf::AttrValue &value = (*def->mutable_attr())["_class"];
  for (const std::string &s : value.list().s())
    all.insert(s);
  value.mutable_list()->clear_s();
  for (const std::string &s : all)
    value.mutable_list()->add_s(s);
}

absl::StatusOr<Node *> finish(TF_OperationDescription &desc) {
  const std::string &name = desc.def.name(), &type = desc.def.op();
  auto failed = [&](const absl::Status &s) { return graphdef::atNode(name, type, s); };
  const ops::OpInfo *op = desc.graph->graph.findOp(type);
  if (!op)
    return failed(absl::InvalidArgumentError(absl::StrCat("op type '", type, "' is not registered")));
  if (desc.graph->graph.find(name))
    return failed(absl::InvalidArgumentError(absl::StrCat("duplicate node name in graph: '", name, "'")));
  if (!desc.problem.ok())
    return failed(desc.problem);
  std::vector<std::vector<Endpoint>> args;
  if (absl::Status s = groupInputs(desc, *op, &args); !s.ok())
    return failed(s);
  graphdef::NodeSpec spec;
  spec.def = desc.def;
  if (absl::Status s = graphdef::inferAttrs(*op, args, &spec.def); !s.ok())
    return failed(s);
  addColocation(desc.colocated, &spec.def);
  for (const std::vector<Endpoint> &values : args)
    spec.inputs.insert(spec.inputs.end(), values.begin(), values.end());
  for (TF_Operation *control : desc.controls) {
    if (!control || graphOf(nodeOf(control)) != desc.graph)
      return failed(absl::InvalidArgumentError("a control input is missing, or in another graph"));
    spec.controls.push_back(nodeOf(control));
  }
  return addNode(*desc.graph, std::move(spec));
}

} // namespace

namespace lathe::c_api {

tf::AttrValue *newAttr(TF_OperationDescription *desc, const char *name) {
  if (!desc)
    return nullptr;
  if (!name) {
    fail(*desc, "an attribute without a name was set");
    return nullptr;
  }
  tf::AttrValue &value = (*desc->def.mutable_attr())[name];
  value.Clear();
  return &value;
}

void failAttr(TF_OperationDescription *desc, const char *name, std::string_view why) {
  if (desc)
    fail(*desc, absl::StrCat("attribute '", textOf(name), "': ", std::string(why)));
}

} // namespace lathe::c_api

extern "C" {

TF_OperationDescription *TF_NewOperationLocked(TF_Graph *graph, const char *op_type, const char *oper_name) {
  return TF_NewOperation(graph, op_type, oper_name);
}

TF_OperationDescription *TF_NewOperation(TF_Graph *graph, const char *op_type, const char *oper_name) {
  if (!graph)
    return nullptr;
  auto *desc = new TF_OperationDescription;
  desc->graph = graph;
  desc->def.set_op(textOf(op_type));
  desc->def.set_name(textOf(oper_name));
  return desc;
}

void TF_SetDevice(TF_OperationDescription *desc, const char *device) {
  if (desc)
    desc->def.set_device(textOf(device));
}

void TF_AddInput(TF_OperationDescription *desc, TF_Output input) {
  if (desc)
    desc->inputs.push_back({{input}, false});
}

void TF_AddInputList(TF_OperationDescription *desc, const TF_Output *inputs, int num_inputs) {
  if (!desc)
    return;
  if (num_inputs < 0 || (num_inputs > 0 && !inputs))
    return fail(*desc, "a list of inputs is missing");
  desc->inputs.push_back({std::vector<TF_Output>(inputs, inputs + num_inputs), true});
}

void TF_AddControlInput(TF_OperationDescription *desc, TF_Operation *input) {
  if (desc)
    desc->controls.push_back(input);
}

void TF_ColocateWith(TF_OperationDescription *desc, TF_Operation *op) {
  if (!desc)
    return;
  if (!op)
    return fail(*desc, "to be colocated with no operation");
  desc->colocated.insert(absl::StrCat("loc:@", nodeOf(op)->name()));
}

TF_Operation *TF_FinishOperationLocked(TF_OperationDescription *desc, TF_Status *status) { return TF_FinishOperation(desc, status); }

TF_Operation *TF_FinishOperation(TF_OperationDescription *desc, TF_Status *status) {
  std::unique_ptr<TF_OperationDescription> own(desc);
  if (!present(status, "desc", desc))
    return nullptr;
  std::lock_guard<std::mutex> lock(desc->graph->mutex);
  auto node = finish(*desc);
  set(status, node.status());
  return node.ok() ? operationOf(*node) : nullptr;
}

} // extern "C"
