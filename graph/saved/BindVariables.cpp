#include "graph/saved/BindVariables.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace lathe::graphdef {
namespace {

// identities between what is restored and its assignment
constexpr int kMaxChain = 8;

/// The node of an input, without the number of its output; empty for control inputs.
std::string nodeOf(const std::string &input) { return input.empty() || input[0] == '^' ? "" : input.substr(0, input.find(':')); }

class Binder {
public:
  explicit Binder(tf::MetaGraphDef &meta) : meta(meta), objects(meta.object_graph_def()) {}
  void run();

private:
  const tf::NodeDef *node(const std::string &name) const {
    auto it = nodes.find(name);
    return it == nodes.end() ? nullptr : it->second;
  }
  void readRestores();
  std::optional<int> objectOf(const std::string &key);
  void bindCall(tf::NodeDef &call);

  tf::MetaGraphDef &meta;
  const tf::SavedObjectGraph &objects;
  std::unordered_map<std::string, const tf::NodeDef *> nodes;
  std::unordered_map<int, std::unordered_map<std::string, int>> children; ///< of the objects met so far, by name
  std::unordered_map<std::string, std::string> restored; ///< variables: the checkpoint's name of what is assigned
  std::unordered_map<int, std::string> variables;        ///< objects: the variable that is restored
};

/// What the saver's restore function assigns to the variables that it is called with.
void Binder::readRestores() {
  const tf::NodeDef *call = node(nodeOf(meta.saver_def().restore_op_name()));
  if (!call || !call->attr().count("f"))
    return;
  const std::string &name = call->attr().at("f").func().name();
  const tf::FunctionDef *function = nullptr;
  for (const tf::FunctionDef &candidate : meta.graph_def().library().function())
    if (candidate.signature().name() == name)
      function = &candidate;
  if (!function)
    return;
  std::unordered_map<std::string, const tf::NodeDef *> inside;
  for (const tf::NodeDef &n : function->node_def())
    inside[n.name()] = &n;
  std::unordered_map<std::string, int> arguments;
  for (int i = 0; i < function->signature().input_arg_size(); ++i)
    arguments[function->signature().input_arg(i).name()] = i;
  for (const tf::NodeDef &assign : function->node_def()) {
    if (assign.op() != "AssignVariableOp" || assign.input_size() < 2)
      continue;
    auto argument = arguments.find(nodeOf(assign.input(0)));
    if (argument == arguments.end() || argument->second >= call->input_size())
      continue;
    std::string value = assign.input(1);
    auto from = inside.find(nodeOf(value));
    for (int i = 0; i < kMaxChain && from != inside.end() && from->second->op() == "Identity" && from->second->input_size() > 0; ++i) {
      value = from->second->input(0);
      from = inside.find(nodeOf(value));
    }
    // "RestoreV2:tensors:3"
    int port = 0;
    const std::vector<std::string> parts = absl::StrSplit(value, ':');
    if (from == inside.end() || from->second->op() != "RestoreV2" || from->second->input_size() < 2 || parts.size() != 3 ||
        !absl::SimpleAtoi(parts[2], &port))
      continue;
    auto names = inside.find(nodeOf(from->second->input(1)));
    if (names == inside.end() || !names->second->attr().count("value"))
      continue;
    const tf::TensorProto &list = names->second->attr().at("value").tensor();
    if (port >= 0 && port < list.string_val_size())
      restored[nodeOf(call->input(argument->second))] = list.string_val(port);
  }
}

/// The object that a name of the checkpoint leads to, from the root on: "layer/kernel/.ATTRIBUTES/VARIABLE_VALUE".
std::optional<int> Binder::objectOf(const std::string &key) {
  absl::string_view path = key;
  if (!absl::ConsumeSuffix(&path, "/.ATTRIBUTES/VARIABLE_VALUE") || objects.nodes_size() == 0)
    return std::nullopt;
  int at = 0;
  for (absl::string_view step : absl::StrSplit(path, '/')) {
    auto [known, isNew] = children.try_emplace(at);
    if (isNew)
      for (const auto &child : objects.nodes(at).children())
        known->second[child.local_name()] = child.node_id();
    auto next = known->second.find(absl::StrReplaceAll(step, {{".S", "/"}, {"..", "."}}));
    if (next == known->second.end() || next->second < 0 || next->second >= objects.nodes_size())
      return std::nullopt;
    at = next->second;
  }
  return at;
}

void Binder::bindCall(tf::NodeDef &call) {
  auto f = call.attr().find("f");
  if (f == call.attr().end())
    return;
  auto function = objects.concrete_functions().find(f->second.func().name());
  if (function == objects.concrete_functions().end())
    return;
  std::vector<int> inputs;
  for (int i = 0; i < call.input_size(); ++i)
    if (!nodeOf(call.input(i)).empty())
      inputs.push_back(i);
  const auto &bound = function->second.bound_inputs();
  if (bound.size() > static_cast<int>(inputs.size()))
    return;
  for (int i = 0; i < bound.size(); ++i) {
    const int input = inputs[inputs.size() - static_cast<size_t>(bound.size() - i)];
    const tf::NodeDef *now = node(nodeOf(call.input(input)));
    auto own = variables.find(bound.Get(i));
    if (!now || now->op() != "VarHandleOp" || restored.count(now->name()) || own == variables.end())
      continue;
    const tf::NodeDef *then = node(own->second);
    if (then && then->op() == "VarHandleOp" && then->attr().count("dtype") && now->attr().count("dtype") &&
        then->attr().at("dtype").type() == now->attr().at("dtype").type())
      call.set_input(input, own->second);
  }
}

void Binder::run() {
  if (objects.concrete_functions().empty() || meta.saver_def().restore_op_name().empty())
    return;
  for (const tf::NodeDef &n : meta.graph_def().node())
    nodes[n.name()] = &n;
  readRestores();
  for (const auto &[variable, key] : restored)
    if (std::optional<int> object = objectOf(key))
      variables.emplace(*object, variable);
  if (variables.empty())
    return;
  for (tf::NodeDef &n : *meta.mutable_graph_def()->mutable_node())
    if (n.op() == "PartitionedCall" || n.op() == "StatefulPartitionedCall")
      bindCall(n);
}

} // namespace

void bindVariables(tf::MetaGraphDef &meta) { Binder(meta).run(); }

} // namespace lathe::graphdef
