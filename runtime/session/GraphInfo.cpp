#include "runtime/session/GraphInfo.h"

#include "ops/Flags.h"

#include "runtime/session/Graph.h"

#include "absl/strings/str_cat.h"

#include <climits>
#include <set>

namespace lathe {
namespace {

bool onVariants(const ops::OpInfo &op) {
  for (const auto *args : {&op.inputs, &op.outputs})
    for (const ops::Arg &arg : *args)
      if (arg.type == DType::Variant)
        return true;
  return false;
}

/// Ops that hold on to tensors, by what the table says; unknown ops might do anything.
bool keepsTensors(std::string_view op) {
  const ops::OpInfo *info = ops::findOp(op);
  return !info || (!ops::is(op, ops::Flag::Forgets) && (info->isStateful || info->touchesResources() || onVariants(*info)));
}

/// Functions that a node calls, by its attributes.
template <typename F>
void forEachFunction(const tf::NodeDef &node, F use) {
  for (auto &[name, value] : node.attr()) {
    if (value.has_func())
      use(value.func().name());
    for (auto &f : value.list().func())
      use(f.name());
  }
}

/// Whether a node or what it calls holds on to tensors. Each function is looked at once.
bool nodeKeeps(const tf::NodeDef &node, const rt::Library &library, std::set<std::string> &seen) {
  std::vector<const tf::NodeDef *> todo = {&node};
  while (!todo.empty()) {
    const tf::NodeDef *n = todo.back();
    todo.pop_back();
    bool calls = false;
    auto enter = [&](const std::string &name) {
      const tf::FunctionDef *f = library.find(name);
      if (!f)
        return;
      calls = true;
      if (seen.insert(name).second)
        for (auto &inner : f->node_def())
          todo.push_back(&inner);
    };
    enter(n->op());
    forEachFunction(*n, enter);
    // what a call does its function's nodes say
    if (!calls && keepsTensors(n->op()))
      return true;
  }
  return false;
}

} // namespace

struct GraphInfo::Consumers {
  std::shared_ptr<const rt::GraphSnapshot> snapshot;
  std::vector<std::vector<int>> of; ///< nodes that take an output of a node
  std::unordered_map<int, bool> answers; ///< guarded by the owner's mutex
};

GraphInfo::GraphInfo(SharedGraph g) : graph(std::move(g)) {}
GraphInfo::~GraphInfo() = default;

absl::StatusOr<NodeSummary> GraphInfo::node(const std::string &name) const {
  auto snapshot = graph->snapshot();
  auto it = snapshot->index.find(name);
  if (it == snapshot->index.end())
    return absl::NotFoundError(absl::StrCat("the graph has no node '", name, "'"));
  const tf::NodeDef &def = *snapshot->nodes[it->second];
  auto info = rt::readNode(def, *snapshot->library, graph->limits, false);
  if (!info.ok())
    return rt::atNode(def.name(), def.op(), info.status());
  NodeSummary summary;
  summary.op = def.op();
  summary.device = def.device();
  summary.outputs = info->outputTypes;
  if (auto shape = info->attrs.find("shape"); shape != info->attrs.end())
    if (auto *dims = std::get_if<rt::PartialShape>(&shape->second))
      summary.shape = *dims;
  if (auto value = def.attr().find("value"); def.op() == "Const" && value != def.attr().end()) {
    summary.shape.emplace();
    for (auto &dim : value->second.tensor().tensor_shape().dim())
      summary.shape->push_back(dim.size());
  }
  if (ops::is(def.op(), ops::Flag::OldUnknown) && summary.shape && summary.shape->empty() && snapshot->versions.producer() < 24)
    summary.shape.reset();
  return summary;
}

std::vector<std::pair<std::string, std::string>> GraphInfo::nodes() const {
  std::vector<std::pair<std::string, std::string>> all;
  for (auto &node : graph->snapshot()->nodes)
    all.emplace_back(node->name(), node->op());
  return all;
}

absl::StatusOr<std::string> GraphInfo::serialize() const {
  auto snapshot = graph->snapshot();
  tf::GraphDef def;
  for (auto &node : snapshot->nodes)
    *def.add_node() = *node;
  *def.mutable_library() = snapshot->library->proto();
  *def.mutable_versions() = snapshot->versions;
  if (def.ByteSizeLong() > INT_MAX)
    return absl::ResourceExhaustedError("the graph is larger than 2 GB, which a GraphDef cannot be");
  return def.SerializeAsString();
}

GraphInfo::Consumers &GraphInfo::consumers() const {
  auto snapshot = graph->snapshot();
  if (known && known->snapshot == snapshot)
    return *known;
  auto made = std::make_unique<Consumers>();
  made->snapshot = snapshot;
  made->of.resize(snapshot->nodes.size());
  for (size_t i = 0; i < snapshot->nodes.size(); ++i)
    for (const std::string &input : snapshot->nodes[i]->input()) {
      rt::TensorName from = rt::parseTensorName(input);
      auto it = snapshot->index.find(from.node);
      if (from.port >= 0 && it != snapshot->index.end())
        made->of[it->second].push_back(static_cast<int>(i));
    }
  known = std::move(made);
  return *known;
}

bool GraphInfo::keeps(const Consumers &c, int start) {
  std::vector<bool> seen(c.of.size());
  std::vector<int> todo = {start};
  std::set<std::string> functions;
  seen[start] = true;
  while (!todo.empty()) {
    int n = todo.back();
    todo.pop_back();
    for (int user : c.of[n]) {
      if (seen[user])
        continue;
      seen[user] = true;
      if (nodeKeeps(*c.snapshot->nodes[user], *c.snapshot->library, functions))
        return true;
      todo.push_back(user);
    }
  }
  return false;
}

bool GraphInfo::mayKeep(const std::string &tensor) const {
  std::lock_guard<std::mutex> lock(mutex);
  Consumers &c = consumers();
  auto it = c.snapshot->index.find(rt::parseTensorName(tensor).node);
  if (it == c.snapshot->index.end())
    return true;
  if (auto answer = c.answers.find(it->second); answer != c.answers.end())
    return answer->second;
  return c.answers[it->second] = keeps(c, it->second);
}

} // namespace lathe
