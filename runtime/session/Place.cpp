// Placement.
#include "ops/Flags.h"
#include "runtime/session/Partition.h"

#include "runtime/session/Clusters.h"
#include "runtime/session/DeviceValues.h"
#include "runtime/session/Executable.h"

#include "absl/strings/str_cat.h"

#include <map>
#include <numeric>
#include <set>

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

namespace {

/// How well a node suits a device that runs compiled code alone.
enum class Fit {
  No,       ///< it has a kernel on the host only
  Neutral,  ///< runs anywhere, and belongs where its neighbours are
  Host,     ///< its kernel is the host's, but reads and gives what could lie there
  Compiled, ///< a module runs it
};

Fit fitOf(const NodeInfo &info, const tf::NodeDef &node, const Library &library, const lathe_cluster_compiler *compiler) {
  for (auto *types : {&info.inputTypes, &info.outputTypes})
    for (DType t : *types)
      if (t == DType::String)
        return Fit::No;
  if (ops::is(node.op(), ops::Flag::Variable))
    return Fit::Compiled; // whatever is done to it in this run
  if (isExecutorOp(node.op()) || hostInputsOfHandler(node.op()) || library.find(node.op()))
    return Fit::Neutral;
  if (!compilesOp(compiler, node.op()))
    return Fit::No;
  // those with a kernel keep something in it, such as the state of random numbers
  return info.info && info.info->isStateful && findKernel(node.op()) ? Fit::Host : Fit::Compiled;
}

class Placer {
public:
  Placer(const tf::GraphDef &graph, const Library &library, const std::vector<Device *> &devices, const PlacementRules &rules,
         const GraphLimits &limits)
      : graph(graph), library(library), devices(devices), rules(rules), limits(limits), n(graph.node_size()), groups(n), users(n), takers(n), fits(n, Fit::Neutral) {
    for (size_t d = 0; d < devices.size() && accelerator < 0; ++d)
      if (devices[d]->memory())
        accelerator = static_cast<int>(d);
  }
  absl::StatusOr<std::vector<int>> run();

private:
  absl::Status readGraph();
  void placeAsBefore();
  absl::Status placeExplicit();
  void note(const std::vector<int> &placement);
  absl::Status refuse(int node, int asked) const;
  absl::Status checkFunctions(const std::vector<int> &placement) const;
  int deviceFor(const DeviceName &wanted) const;
  void placeRest();

  const tf::GraphDef &graph;
  const Library &library;
  const std::vector<Device *> &devices;
  const PlacementRules &rules;
  const GraphLimits &limits;
  const int n;
  int accelerator = -1; ///< the first device with a memory of its own
  Groups groups;
  std::vector<std::vector<int>> users, takers; ///< with control edges, and of tensors alone
  std::vector<Fit> fits;
  std::map<int, int> chosen; ///< by group
  std::vector<int> makers;   ///< of references and resources
  std::map<int, int> alien;  ///< by group: a node that no such device runs
};

absl::Status Placer::readGraph() {
  std::unordered_map<std::string_view, int> index;
  for (int i = 0; i < n; ++i)
    index.emplace(graph.node(i).name(), i);
  for (int i = 0; i < n; ++i) {
    const tf::NodeDef &node = graph.node(i);
    auto info = readNode(node, library, limits, false);
    if (!info.ok())
      return info.status();
    if (accelerator >= 0)
      fits[i] = fitOf(*info, node, library, rules.compiler);
    for (size_t k = 0; k < info->outputTypes.size(); ++k)
      if ((info->outputIsRef[k] || info->outputTypes[k] == DType::Resource) && (makers.empty() || makers.back() != i))
        makers.push_back(i);
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
      takers[from->second].push_back(i);
      if (position < info->inputTypes.size() && (info->inputIsRef[position] || info->inputTypes[position] == DType::Resource))
        groups.join(i, from->second);
      ++position;
    }
  }
  joinLoops(graph, users, groups);
  for (int i = 0; i < n; ++i)
    if (fits[i] == Fit::No)
      alien.emplace(groups.find(i), i);
  return absl::OkStatus();
}

int Placer::deviceFor(const DeviceName &wanted) const {
  for (size_t d = 0; d < devices.size(); ++d)
    if (wanted.matches(devices[d]->parsedName()))
      return static_cast<int>(d);
  return -1;
}

absl::Status Placer::refuse(int i, int asked) const {
  const tf::NodeDef &node = graph.node(i);
  std::string also = asked == i ? "" : absl::StrCat(", which must be with '", graph.node(asked).name(), "'");
  return atNode(node.name(), node.op(),
                absl::InvalidArgumentError(absl::StrCat("Cannot assign a device for operation ", node.name(), also,
                                                        ": Could not satisfy explicit device specification '", graph.node(asked).device(),
                                                        "' because no supported kernel for ", *devices[accelerator]->parsedName().type,
                                                        " devices is available: the op has no compiled form for these types")));
}

void Placer::placeAsBefore() {
  std::lock_guard<std::mutex> lock(rules.placed->mutex);
  for (int i : makers)
    if (auto it = rules.placed->devices.find(graph.node(i).name()); it != rules.placed->devices.end())
      chosen.try_emplace(groups.find(i), it->second);
}

void Placer::note(const std::vector<int> &placement) {
  std::lock_guard<std::mutex> lock(rules.placed->mutex);
  for (int i : makers)
    rules.placed->devices.try_emplace(graph.node(i).name(), placement[i]);
}

absl::Status Placer::placeExplicit() {
  for (int i = 0; i < n; ++i) {
    const tf::NodeDef &node = graph.node(i);
    if (node.device().empty())
      continue;
    auto wanted = DeviceName::parse(node.device());
    if (!wanted.ok())
      return atNode(node.name(), node.op(), wanted.status());
    int device = deviceFor(*wanted);
    if (accelerator >= 0 && device >= 0 && !wanted->type && !wanted->id)
      continue; // "/job:localhost" leaves it to us
    if (device < 0 && !rules.soft)
      return atNode(node.name(), node.op(),
                    absl::InvalidArgumentError(absl::StrCat("Cannot assign a device for operation ", node.name(), ": it was explicitly assigned to ",
                                                            node.device(), " but there is no such device")));
    device = std::max(device, 0);
    if (devices[device]->memory())
      if (auto it = alien.find(groups.find(i)); it != alien.end()) {
        if (!rules.soft)
          return refuse(it->second, i);
        device = 0;
      }
    auto [it, isNew] = chosen.try_emplace(groups.find(i), device);
    if (!isNew && it->second != device && !rules.soft)
      return atNode(node.name(), node.op(), absl::InvalidArgumentError("Cannot colocate nodes that were assigned to different devices"));
  }
  return absl::OkStatus();
}

/// What nobody placed goes to the accelerator where a module runs it; what runs anywhere goes where the tensors that it takes or
/// gives are, the accelerator first.
void Placer::placeRest() {
  std::map<int, bool> open; ///< groups, and whether a module runs some of it
  for (int i = 0; i < n; ++i)
    if (int g = groups.find(i); !chosen.count(g) && !alien.count(g))
      open[g] |= fits[i] == Fit::Compiled;
  // what a random op makes stays on the host, unless it is part of something larger
  for (int i = 0; i < n; ++i)
    if (fits[i] == Fit::Host)
      if (auto it = open.find(groups.find(i)); it != open.end() && !it->second)
        open.erase(it);
  std::vector<std::vector<int>> producers(n), members(n);
  for (int i = 0; i < n; ++i) {
    members[groups.find(i)].push_back(i);
    for (int taker : takers[i])
      producers[taker].push_back(i);
  }
  std::vector<int> work;
  auto take = [&](int group) {
    open.erase(group);
    chosen[group] = accelerator;
    work.push_back(group);
  };
  for (auto &[group, device] : std::map<int, int>(chosen))
    if (device == accelerator)
      work.push_back(group);
  for (auto &[group, compiled] : std::map<int, bool>(open))
    if (compiled)
      take(group);
  while (!work.empty()) {
    int group = work.back();
    work.pop_back();
    for (int member : members[group])
      for (auto *neighbours : {&producers[member], &takers[member]})
        for (int other : *neighbours)
          if (open.count(groups.find(other)))
            take(groups.find(other));
  }
}

/// Bodies run where their caller is; who insists on another device for a node of one is told.
absl::Status Placer::checkFunctions(const std::vector<int> &placement) const {
  std::set<std::pair<std::string, int>> checked;
  for (int i = 0; i < n; ++i) {
    const Device &here = *devices[placement[i]];
    for (const std::string &name : functionsBehind(library, graph.node(i))) {
      if (!checked.emplace(name, placement[i]).second)
        continue;
      for (const tf::NodeDef &inner : library.find(name)->node_def()) {
        auto wanted = DeviceName::parse(inner.device());
        if (!wanted.ok())
          return atNode(inner.name(), inner.op(), wanted.status());
        if (!wanted->matches(here.parsedName()))
          return atNode(inner.name(), inner.op(),
                        absl::InvalidArgumentError(
                            absl::StrCat("Cannot assign a device for operation ", inner.name(), " of function '", name,
                                         "': it was explicitly assigned to '", inner.device(), "', but its caller '", graph.node(i).name(),
                                         "' is on ", here.name(), ", and bodies of functions run where their caller is")));
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int>> Placer::run() {
  if (absl::Status s = readGraph(); !s.ok())
    return s;
  const bool remembers = accelerator >= 0 && rules.placed;
  if (remembers)
    placeAsBefore();
  if (absl::Status s = placeExplicit(); !s.ok())
    return s;
  if (accelerator >= 0)
    placeRest();
  std::vector<int> placement(n, 0);
  for (int i = 0; i < n; ++i)
    if (auto it = chosen.find(groups.find(i)); it != chosen.end())
      placement[i] = it->second;
  if (!rules.soft)
    if (absl::Status s = checkFunctions(placement); !s.ok())
      return s;
  if (remembers)
    note(placement);
  return placement;
}

} // namespace

absl::StatusOr<std::vector<int>> placeNodes(const tf::GraphDef &graph, const Library &library, const std::vector<Device *> &devices,
                                            const PlacementRules &rules, const GraphLimits &limits) {
  if (devices.size() == 1 && rules.soft)
    return std::vector<int>(graph.node_size(), 0);
  return Placer(graph, library, devices, rules, limits).run();
}

} // namespace lathe::rt
