// The part of a graph that a run needs.
#include "ops/Flags.h"
#include "runtime/session/Graph.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <map>

namespace lathe::rt {
namespace {

/// The name of a node that is in no snapshot.
std::string freshName(const GraphSnapshot &graph, std::string name) {
  for (std::replace(name.begin(), name.end(), ':', '_'); graph.index.count(name);)
    name += "_";
  return name;
}

void setType(tf::NodeDef *node, const char *attr, DType type) {
  (*node->mutable_attr())[attr].set_type(static_cast<tf::DataType>(type));
}

class Pruner {
public:
  Pruner(const GraphSnapshot &graph, const GraphLimits &limits) : graph(graph), limits(limits), needed(graph.nodes.size()) {}

  absl::StatusOr<Body> run(const std::vector<std::string> &feeds, const std::vector<std::string> &fetches,
                           const std::vector<std::string> &targets);

private:
  absl::StatusOr<DType> typeOf(const TensorName &name);
  absl::StatusOr<int> find(const std::string &name, const char *what);
  std::string rewrite(const std::string &input) const;
  void visit(const std::string &input);
  void need(int node);

  const GraphSnapshot &graph;
  const GraphLimits &limits;
  std::map<std::pair<int, int>, std::string> fed; ///< node and port -> name of the _Arg node
  std::vector<bool> needed;
  std::vector<int> work;
};

absl::StatusOr<int> Pruner::find(const std::string &name, const char *what) {
  auto it = graph.index.find(name);
  if (it == graph.index.end())
    return absl::NotFoundError(absl::StrCat(what, " '", name, "' is not in the graph"));
  return it->second;
}

absl::StatusOr<DType> Pruner::typeOf(const TensorName &name) {
  auto node = find(name.node, "tensor");
  if (!node.ok()) // TensorFlow's code: NOT_FOUND is for targets
    return absl::InvalidArgumentError(node.status().message());
  auto info = readNode(*graph.nodes[*node], *graph.library, limits, false);
  if (!info.ok())
    return info.status();
  if (name.port < 0 || name.port >= static_cast<int>(info->outputTypes.size()))
    return absl::InvalidArgumentError(absl::StrCat("node '", name.node, "' (", info->op, ") has no output ", name.port));
  return info->outputTypes[name.port];
}

/// The input of a node in the pruned graph.
std::string Pruner::rewrite(const std::string &input) const {
  TensorName name = parseTensorName(input);
  int node = graph.index.at(name.node);
  if (name.port >= 0) {
    auto it = fed.find({node, name.port});
    return it == fed.end() ? input : it->second;
  }
  const std::string &op = graph.nodes[node]->op();
  if (ops::is(op, ops::Flag::Placeholder))
    if (auto it = fed.find({node, 0}); it != fed.end())
      return "^" + it->second;
  return input;
}

void Pruner::need(int node) {
  if (!needed[node]) {
    needed[node] = true;
    work.push_back(node);
  }
}

void Pruner::visit(const std::string &input) {
  if (rewrite(input) == input)
    need(graph.index.at(parseTensorName(input).node));
}

absl::StatusOr<Body> Pruner::run(const std::vector<std::string> &feeds, const std::vector<std::string> &fetches,
                                 const std::vector<std::string> &targets) {
  Body body;
  *body.graph.mutable_versions() = graph.versions;
  for (const std::string &feed : feeds) {
    TensorName name = parseTensorName(feed);
    auto type = typeOf(name);
    if (!type.ok())
      return type.status();
    std::string arg = freshName(graph, absl::StrCat("_arg_", name.node, "_", name.port));
    if (!fed.emplace(std::make_pair(graph.index.at(name.node), name.port), arg).second)
      return absl::InvalidArgumentError(absl::StrCat("tensor '", feed, "' is fed twice"));
    tf::NodeDef *node = body.graph.add_node();
    node->set_name(arg);
    node->set_op("_Arg");
    setType(node, "T", *type);
    (*node->mutable_attr())["index"].set_i(static_cast<int64_t>(body.argTypes.size()));
    body.argTypes.push_back(*type);
  }
  std::vector<std::string> sources;
  for (const std::string &fetch : fetches) {
    TensorName name = parseTensorName(fetch);
    auto type = typeOf(name);
    if (!type.ok())
      return type.status();
    body.resultTypes.push_back(*type);
    sources.push_back(name.port == 0 ? name.node : absl::StrCat(name.node, ":", name.port));
    visit(sources.back());
  }
  for (const std::string &target : targets) {
    TensorName name = parseTensorName(target);
    auto node = find(name.node, "target");
    if (!node.ok())
      return node.status();
    body.targets.push_back(name.node);
    need(*node);
  }
  while (!work.empty()) {
    int node = work.back();
    work.pop_back();
    for (const std::string &input : graph.nodes[node]->input())
      visit(input);
  }
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!needed[i])
      continue;
    tf::NodeDef *node = body.graph.add_node();
    *node = *graph.nodes[i];
    for (int k = 0; k < node->input_size(); ++k)
      node->set_input(k, rewrite(node->input(k)));
  }
  for (size_t i = 0; i < fetches.size(); ++i) {
    tf::NodeDef *node = body.graph.add_node();
    node->set_name(freshName(graph, absl::StrCat("_retval_", fetches[i], "_", i)));
    node->set_op("_Retval");
    node->add_input(rewrite(sources[i]));
    setType(node, "T", body.resultTypes[i]);
    (*node->mutable_attr())["index"].set_i(static_cast<int64_t>(i));
  }
  return body;
}

} // namespace

absl::StatusOr<Body> prune(const GraphSnapshot &graph, const std::vector<std::string> &feeds,
                           const std::vector<std::string> &fetches, const std::vector<std::string> &targets,
                           const GraphLimits &limits) {
  return Pruner(graph, limits).run(feeds, fetches, targets);
}

} // namespace lathe::rt
