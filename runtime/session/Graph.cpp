// Reading, extending and resolving graphs.
#include "runtime/session/Graph.h"

#include "runtime/session/ProtoValues.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <unordered_set>

namespace lathe::rt {

absl::StatusOr<std::shared_ptr<const Library>> Library::extend(const std::shared_ptr<const Library> &base,
                                                               const tf::FunctionDefLibrary &more) {
  if (more.function_size() == 0 && more.gradient_size() == 0)
    return base;
  auto made = std::make_shared<Library>(*base);
  for (const tf::FunctionDef &f : more.function()) {
    const std::string &name = f.signature().name();
    auto it = made->functions.find(name);
    if (it == made->functions.end())
      made->functions.emplace(name, std::make_shared<tf::FunctionDef>(f));
    else if (it->second->SerializeAsString() != f.SerializeAsString())
      it->second = std::make_shared<tf::FunctionDef>(f); // messages with maps serialise in any order; the newest counts
  }
  for (const tf::GradientDef &g : more.gradient())
    made->gradients[g.function_name()] = g.gradient_func();
  return std::shared_ptr<const Library>(std::move(made));
}

const tf::FunctionDef *Library::find(std::string_view name) const {
  auto it = functions.find(std::string(name));
  return it == functions.end() ? nullptr : it->second.get();
}

std::string Library::gradientOf(std::string_view name) const {
  auto it = gradients.find(std::string(name));
  return it == gradients.end() ? std::string() : it->second;
}

tf::FunctionDefLibrary Library::proto() const {
  std::vector<std::string_view> names;
  for (auto &[name, f] : functions)
    names.push_back(name);
  std::sort(names.begin(), names.end());
  tf::FunctionDefLibrary all;
  for (std::string_view name : names)
    *all.add_function() = *find(name);
  for (auto &[name, gradient] : gradients) {
    tf::GradientDef *g = all.add_gradient();
    g->set_function_name(name);
    g->set_gradient_func(gradient);
  }
  return all;
}

TensorName parseTensorName(std::string_view text) {
  TensorName name;
  if (!text.empty() && text[0] == '^')
    return {std::string(text.substr(1)), -1};
  size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon + 1 == text.size() || text.size() - colon > 8 ||
      text.find_first_not_of("0123456789", colon + 1) != std::string_view::npos)
    return {std::string(text), 0};
  return {std::string(text.substr(0, colon)), std::stoi(std::string(text.substr(colon + 1)))};
}

namespace {

/// Maps in a fixed order, which plain serialisation does not promise.
std::string fixedText(const tf::FunctionDef &f) {
  std::string text;
  {
    google::protobuf::io::StringOutputStream stream(&text);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    f.SerializeToCodedStream(&coded);
  }
  return text;
}

} // namespace

absl::Status GraphStore::extend(const tf::GraphDef &more) {
  std::lock_guard<std::mutex> lock(mutex);
  auto next = std::make_shared<GraphSnapshot>();
  for (const tf::FunctionDef &f : more.library().function())
    if (const tf::FunctionDef *known = current->library->find(f.signature().name()); known && fixedText(*known) != fixedText(f))
      return absl::InvalidArgumentError(absl::StrCat("Cannot add function '", f.signature().name(),
                                                     "' because a different function with the same name already exists."));
  for (const tf::GradientDef &g : more.library().gradient())
    if (std::string known = current->library->gradientOf(g.function_name()); !known.empty() && known != g.gradient_func())
      return absl::InvalidArgumentError(absl::StrCat("Cannot assign gradient function '", g.gradient_func(), "' to '", g.function_name(),
                                                     "' because it already has gradient function '", known, "'"));
  auto library = Library::extend(current->library, more.library());
  if (!library.ok())
    return library.status();
  next->library = *std::move(library);
  if (static_cast<int64_t>(current->nodes.size()) + more.node_size() > limits.maxNodes)
    return absl::ResourceExhaustedError(absl::StrCat("a graph of more than ", limits.maxNodes, " nodes"));
  next->nodes = current->nodes;
  next->versions = more.has_versions() ? more.versions() : current->versions;
  for (const tf::NodeDef &node : more.node())
    next->nodes.push_back(std::make_shared<tf::NodeDef>(node));
  for (size_t i = 0; i < next->nodes.size(); ++i)
    if (!next->index.emplace(next->nodes[i]->name(), static_cast<int>(i)).second)
      return absl::InvalidArgumentError(absl::StrCat("two nodes are named '", next->nodes[i]->name(), "'"));
  for (const tf::NodeDef &node : more.node()) {
    if (node.name().empty())
      return absl::InvalidArgumentError(absl::StrCat("a node of op '", node.op(), "' has no name"));
    if (!ops::findOp(node.op()) && !next->library->find(node.op()) && node.op() != kLaunchOp)
      return atNode(node.name(), node.op(), absl::NotFoundError("op is not known"));
    for (const std::string &input : node.input())
      if (!next->index.count(parseTensorName(input).node))
        return atNode(node.name(), node.op(), absl::InvalidArgumentError(absl::StrCat("input '", input, "' does not exist")));
  }
  current = std::move(next);
  return absl::OkStatus();
}

std::shared_ptr<const GraphSnapshot> GraphStore::snapshot() const {
  std::lock_guard<std::mutex> lock(mutex);
  return current;
}

absl::StatusOr<NodeInfo> readNode(const tf::NodeDef &def, const Library &library, const GraphLimits &limits,
                                  bool withTensors) {
  NodeInfo node;
  node.name = def.name();
  node.op = def.op();
  node.device = def.device();
  auto failed = [&](const absl::Status &s) { return atNode(def.name(), def.op(), s); };
  if (withTensors) {
    if (absl::Status s = readNodeAttrs(def, limits.maxConstantBytes, &node.attrs); !s.ok())
      return failed(s);
  } else {
    tf::NodeDef light;
    for (auto &[name, value] : def.attr())
      if (value.value_case() != tf::AttrValue::kTensor)
        (*light.mutable_attr())[name] = value;
      else
        node.attrs.emplace(name, Tensor());
    if (absl::Status s = readNodeAttrs(light, limits.maxConstantBytes, &node.attrs); !s.ok())
      return failed(s);
  }
  if (node.op == kLaunchOp) {
    for (const char *list : {"Targs", "Tresults"})
      if (auto it = node.attrs.find(list); it == node.attrs.end() || !fitsAttrType("list(type)", it->second))
        return failed(absl::InvalidArgumentError(absl::StrCat("attribute '", list, "' is missing")));
    const auto *variables = attrOf<int64_t>(node, "variables");
    int64_t count = variables ? *variables : 0;
    if (count < 0 || count > def.input_size() || !attrOf<FunctionRefPtr>(node, "function"))
      return failed(absl::InvalidArgumentError("not a launch of a cluster"));
    node.inputTypes = *attrOf<std::vector<DType>>(node, "Targs");
    node.inputTypes.resize(node.inputTypes.size() + count, DType::Invalid); // resources or references
    node.outputTypes = *attrOf<std::vector<DType>>(node, "Tresults");
    node.inputIsRef.assign(node.inputTypes.size(), false);
    node.outputIsRef.assign(node.outputTypes.size(), false);
    return node;
  }
  if (!ops::findOp(node.op))
    if (const tf::FunctionDef *f = library.find(node.op)) {
      auto ref = std::make_shared<FunctionRef>();
      ref->name = node.op;
      for (auto &[name, value] : node.attrs)
        if (name[0] != '_')
          ref->attrs.emplace(name, value);
      std::vector<DType> args, results;
      if (absl::Status s = functionSignature(library, *ref, &args, &results); !s.ok())
        return failed(s);
      node.attrs = {{"Tin", args}, {"Tout", results}, {"f", FunctionRefPtr(std::move(ref))}};
      node.op = f->signature().is_stateful() ? "StatefulPartitionedCall" : "PartitionedCall";
    }
  if (absl::Status s = resolveNode(node); !s.ok())
    return failed(s);
  return node;
}

absl::StatusOr<Graph> buildGraph(const tf::GraphDef &def, const Library &library, const GraphLimits &limits) {
  Graph graph;
  graph.nodes.resize(def.node_size());
  std::unordered_map<std::string_view, int> index;
  for (int i = 0; i < def.node_size(); ++i) {
    if (!index.emplace(def.node(i).name(), i).second)
      return absl::InvalidArgumentError(absl::StrCat("two nodes are named '", def.node(i).name(), "'"));
    auto info = readNode(def.node(i), library, limits);
    if (!info.ok())
      return info.status();
    graph.nodes[i].info = *std::move(info);
  }
  for (int i = 0; i < def.node_size(); ++i) {
    GraphNode &node = graph.nodes[i];
    auto failed = [&](const absl::Status &s) { return atNode(node.info.name, node.info.op, s); };
    for (const std::string &input : def.node(i).input()) {
      TensorName name = parseTensorName(input);
      auto it = index.find(name.node);
      if (it == index.end())
        return failed(absl::InvalidArgumentError(absl::StrCat("input '", input, "' does not exist")));
      if (name.port < 0)
        node.controls.push_back(it->second);
      else
        node.inputs.push_back({it->second, name.port});
    }
    std::sort(node.controls.begin(), node.controls.end());
    node.controls.erase(std::unique(node.controls.begin(), node.controls.end()), node.controls.end());
  }
  if (absl::Status s = finishGraph(graph); !s.ok())
    return s;
  return graph;
}

} // namespace lathe::rt
