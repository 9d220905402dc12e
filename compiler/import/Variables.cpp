//===- Variables.cpp - the checkpoint's values of variables ---------------===//
//
// Three sources, best first: what the graph's own restore ops assign (RestoreV2 → Assign), a tensor of the variable's
// own name, and the full names in the checkpoint's object graph.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/Variables.h"
#include "ops/Flags.h"

using llvm::StringRef;
using llvm::Twine;

namespace lathe::import {

// Identities and casts between RestoreV2 and the assignment.
static constexpr int kMaxChain = 8;

static std::string keyOf(const tf::NodeDef &variable) {
  auto name = variable.attr().find("shared_name");
  return name != variable.attr().end() && !name->second.s().empty() ? name->second.s() : variable.name();
}

static bool isVariable(StringRef op) { return ops::is(op, ops::Flag::Variable); }

Checkpoint::Checkpoint(const Model &model, Library &library, Problems &problems) {
  if (model.checkpoint.empty())
    return;
  auto opened = TensorBundleReader::open(model.checkpoint);
  if (!opened.ok()) {
    problems.add(Twine("checkpoint ") + printable(model.checkpoint) + ": " + std::string(opened.status().message()));
    return;
  }
  bundle = std::move(*opened);
  readObjectGraph();

  const Body *main = library.getMain();
  if (!main)
    return;
  collectRestores(*main, [](int) { return -1; }, *main);
  StringRef node;
  int64_t port;
  if (!splitTensorName(model.meta->saver_def().restore_op_name(), node, port))
    return;
  auto it = main->nodeIndex.find(node);
  if (it == main->nodeIndex.end())
    return;
  const tf::NodeDef &call = *main->defs[it->second];
  auto f = call.attr().find("f");
  if (f == call.attr().end() || !f->second.has_func() || !library.isFunction(f->second.func().name()))
    return;
  const Body *function = library.getFunction(f->second.func().name(), main->id(it->second));
  if (!function)
    return;
  const std::vector<InputRef> &inputs = main->nodes[it->second].inputs;
  collectRestores(
      *function, [&](int arg) { return arg < static_cast<int>(inputs.size()) ? inputs[arg].node : -1; }, *main);
}

void Checkpoint::collectRestores(const Body &body, llvm::function_ref<int(int)> mainNodeOf, const Body &main) {
  auto through = [&](InputRef ref) {
    for (int i = 0; i < kMaxChain && ref.node >= 0; ++i) {
      StringRef op = body.defs[ref.node]->op();
      if ((!ops::is(op, ops::Flag::Passes) && op != "Cast") || body.nodes[ref.node].inputs.size() != 1)
        break;
      ref = body.nodes[ref.node].inputs[0];
    }
    return ref;
  };
  for (size_t i = 0; i < body.defs.size(); ++i) {
    StringRef op = body.defs[i]->op();
    if (!ops::is(op, ops::Flag::Assigns) || body.nodes[i].inputs.size() < 2)
      continue;
    InputRef value = through(body.nodes[i].inputs[1]), target = through(body.nodes[i].inputs[0]);
    if (value.node < 0 || body.defs[value.node]->op() != "RestoreV2" || body.nodes[value.node].inputs.size() < 2)
      continue;
    InputRef names = body.nodes[value.node].inputs[1];
    if (names.node < 0 || body.defs[names.node]->op() != "Const")
      continue;
    auto list = body.defs[names.node]->attr().find("value");
    if (list == body.defs[names.node]->attr().end() || value.index >= list->second.tensor().string_val_size())
      continue;
    const tf::NodeDef *variable = nullptr;
    if (target.node >= 0)
      variable = body.defs[target.node];
    else if (int node = mainNodeOf(-1 - target.node); node >= 0)
      variable = main.defs[node];
    if (variable && isVariable(variable->op()))
      restored.try_emplace(keyOf(*variable), list->second.tensor().string_val(static_cast<int>(value.index)));
  }
}

void Checkpoint::readObjectGraph() {
  static constexpr const char *kKey = "_CHECKPOINTABLE_OBJECT_GRAPH";
  if (!bundle->find(kKey))
    return;
  absl::StatusOr<Tensor> bytes = bundle->read(kKey);
  tf::TrackableObjectGraph graph;
  // an aid only: a broken one leaves the other sources
  if (!bytes.ok() || bytes->strings().size() != 1 || !graph.ParseFromString(bytes->strings()[0]))
    return;
  for (const auto &object : graph.nodes())
    for (const auto &tensor : object.attributes())
      if (tensor.name() == "VARIABLE_VALUE" && !tensor.full_name().empty())
        byFullName.try_emplace(tensor.full_name(), tensor.checkpoint_key());
}

std::string Checkpoint::findKey(StringRef variableKey) const {
  if (!bundle)
    return "";
  for (auto *map : {&restored, &byFullName}) {
    auto it = map->find(variableKey);
    if (it != map->end() && bundle->find(it->second))
      return it->second;
    if (map == &restored && bundle->find(variableKey.str()))
      return variableKey.str();
  }
  return "";
}

} // namespace lathe::import
