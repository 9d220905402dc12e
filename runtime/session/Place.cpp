// Placement.
#include "runtime/session/Partition.h"

#include "absl/strings/str_cat.h"

#include <map>
#include <numeric>

namespace lathe::rt {
namespace {

class Groups {
public:
  explicit Groups(size_t n) : parent(n) { std::iota(parent.begin(), parent.end(), 0); }
  int find(int i) {
    while (parent[i] != i)
      i = parent[i] = parent[parent[i]];
    return i;
  }
  void join(int a, int b) { parent[find(a)] = find(b); }

private:
  std::vector<int> parent;
};

bool isOp(const tf::NodeDef &node, const char *op) { return node.op() == op || node.op() == std::string("Ref") + op; }

/// All nodes between the Enters and Exits of loops, by outermost frame.
void joinLoops(const tf::GraphDef &graph, const std::vector<std::vector<int>> &users, Groups &groups) {
  std::vector<bool> seen(graph.node_size());
  std::map<std::string, int> first;
  for (int i = 0; i < graph.node_size(); ++i) {
    if (!isOp(graph.node(i), "Enter"))
      continue;
    auto [it, isNew] = first.try_emplace(graph.node(i).attr().count("frame_name") ? graph.node(i).attr().at("frame_name").s() : "", i);
    if (!isNew)
      groups.join(i, it->second);
    std::vector<int> work{i};
    while (!work.empty()) {
      int n = work.back();
      work.pop_back();
      if (seen[n])
        continue;
      seen[n] = true;
      groups.join(n, i);
      if (isOp(graph.node(n), "Exit"))
        continue;
      for (int user : users[n]) {
        groups.join(user, n);
        work.push_back(user);
      }
    }
  }
}

} // namespace

bool hasCycleAroundLoops(const tf::GraphDef &graph) {
  int n = graph.node_size();
  std::unordered_map<std::string_view, int> index;
  for (int i = 0; i < n; ++i)
    index.emplace(graph.node(i).name(), i);
  std::vector<std::vector<int>> users(n), out(n);
  for (int i = 0; i < n; ++i)
    for (const std::string &input : graph.node(i).input())
      if (auto it = index.find(parseTensorName(input).node); it != index.end())
        users[it->second].push_back(i);
  Groups groups(n);
  joinLoops(graph, users, groups);
  std::vector<int> pending(n, 0), ready;
  for (int i = 0; i < n; ++i)
    for (int user : users[i])
      if (int a = groups.find(i), b = groups.find(user); a != b) {
        out[a].push_back(b);
        ++pending[b];
      }
  for (int i = 0; i < n; ++i)
    if (groups.find(i) == i && pending[i] == 0)
      ready.push_back(i);
  size_t done = 0;
  while (!ready.empty()) {
    int i = ready.back();
    ready.pop_back();
    ++done;
    for (int user : out[i])
      if (--pending[user] == 0)
        ready.push_back(user);
  }
  size_t all = 0;
  for (int i = 0; i < n; ++i)
    all += groups.find(i) == i;
  return done != all;
}

absl::StatusOr<std::vector<int>> placeNodes(const tf::GraphDef &graph, const Library &library, const std::vector<const Device *> &devices,
                                            bool soft, const GraphLimits &limits) {
  int n = graph.node_size();
  std::vector<int> placement(n, 0);
  if (devices.size() == 1 && soft)
    return placement;
  std::unordered_map<std::string_view, int> index;
  for (int i = 0; i < n; ++i)
    index.emplace(graph.node(i).name(), i);
  Groups groups(n);
  std::vector<std::vector<int>> users(n);
  for (int i = 0; i < n; ++i) {
    const tf::NodeDef &node = graph.node(i);
    auto info = readNode(node, library, limits, false);
    if (!info.ok())
      return info.status();
    if (auto it = node.attr().find("_class"); it != node.attr().end())
      for (const std::string &text : it->second.list().s())
        if (text.rfind("loc:@", 0) == 0)
          if (auto other = index.find(std::string_view(text).substr(5)); other != index.end())
            groups.join(i, other->second);
    size_t position = 0;
    for (const std::string &input : node.input()) {
      TensorName name = parseTensorName(input);
      auto from = index.find(name.node);
      if (from == index.end())
        return atNode(node.name(), node.op(), absl::InvalidArgumentError(absl::StrCat("input '", input, "' does not exist")));
      users[from->second].push_back(i);
      if (name.port < 0)
        continue;
      if (position < info->inputTypes.size() && (info->inputIsRef[position] || info->inputTypes[position] == DType::Resource))
        groups.join(i, from->second);
      ++position;
    }
  }
  joinLoops(graph, users, groups);
  std::map<int, int> chosen;
  for (int i = 0; i < n; ++i) {
    const tf::NodeDef &node = graph.node(i);
    if (node.device().empty())
      continue;
    auto wanted = DeviceName::parse(node.device());
    if (!wanted.ok())
      return atNode(node.name(), node.op(), wanted.status());
    int device = -1;
    for (size_t d = 0; d < devices.size() && device < 0; ++d)
      if (wanted->matches(devices[d]->parsedName()))
        device = static_cast<int>(d);
    if (device < 0 && !soft)
      return atNode(node.name(), node.op(),
                    absl::InvalidArgumentError(absl::StrCat("Cannot assign a device for operation ", node.name(), ": it was explicitly assigned to ",
                                                            node.device(), " but there is no such device")));
    auto [it, isNew] = chosen.try_emplace(groups.find(i), std::max(device, 0));
    if (!isNew && it->second != std::max(device, 0) && !soft)
      return atNode(node.name(), node.op(), absl::InvalidArgumentError("Cannot colocate nodes that were assigned to different devices"));
  }
  for (int i = 0; i < n; ++i)
    if (auto it = chosen.find(groups.find(i)); it != chosen.end())
      placement[i] = it->second;
  return placement;
}

} // namespace lathe::rt
