#include "runtime/session/Executable.h"
#include "ops/Flags.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <map>
#include <set>

namespace lathe::rt {
namespace {

/// More would only be a way to make a small file take much memory.
constexpr int64_t kMaxArguments = 1 << 16;

const std::map<std::string_view, NodeKind> &kinds() {
  static const auto *all = new std::map<std::string_view, NodeKind>{
      {"Const", NodeKind::Const},          {"_Arg", NodeKind::Arg},
      {"_Retval", NodeKind::Retval},       {"Identity", NodeKind::Pass},
      {"RefIdentity", NodeKind::Pass},     {"LoopCond", NodeKind::Pass},
      {"StopGradient", NodeKind::Pass},    {"PreventGradient", NodeKind::Pass},
      {"PlaceholderWithDefault", NodeKind::Pass}, {"GuaranteeConst", NodeKind::Pass}, {"Snapshot", NodeKind::Pass},
      {"NoOp", NodeKind::NoOp},            {"ControlTrigger", NodeKind::Trigger},
      {"Switch", NodeKind::Switch},        {"RefSwitch", NodeKind::Switch},
      {"_SwitchN", NodeKind::Switch},
      {"Merge", NodeKind::Merge},          {"RefMerge", NodeKind::Merge},
      {"Enter", NodeKind::Enter},          {"RefEnter", NodeKind::Enter},
      {"Exit", NodeKind::Exit},            {"RefExit", NodeKind::Exit},
      {"NextIteration", NodeKind::NextIteration}, {"RefNextIteration", NodeKind::NextIteration},
  };
  return *all;
}

} // namespace

bool isExecutorOp(std::string_view op) { return kinds().count(op); }

std::vector<std::string_view> allExecutorOps() {
  std::vector<std::string_view> names;
  for (auto &[name, kind] : kinds())
    names.push_back(name);
  return names;
}

absl::StatusOr<std::shared_ptr<const Executable>> Executable::make(Graph graph, const KernelMaker &makeKernel) {
  auto made = std::make_shared<Executable>();
  made->graph = std::move(graph);
  if (absl::Status s = made->init(makeKernel); !s.ok())
    return s;
  return std::shared_ptr<const Executable>(std::move(made));
}

absl::Status Executable::classify(int index, const KernelMaker &makeKernel) {
  const GraphNode &node = graph.nodes[index];
  ExecNode &item = items[index];
  item.info = &node.info;
  item.numInputs = static_cast<int>(node.inputs.size());
  item.numOutputs = static_cast<int>(node.info.outputTypes.size());
  for (const Endpoint &e : node.inputs)
    item.checksRefs |= graph.nodes[e.node].info.outputIsRef[e.port] || ops::is(graph.nodes[e.node].info.op, ops::Flag::Argument);
  item.passesRefs = node.info.op.rfind("Ref", 0) == 0;
  item.transfers = ops::is(node.info.op, ops::Flag::Transfer);
  auto kind = kinds().find(node.info.op);
  if (kind == kinds().end()) {
    auto kernel = makeKernel(node.info);
    if (!kernel.ok())
      return kernel.status();
    item.kernel = *std::move(kernel);
    item.async = item.kernel->asAsync();
    item.expensive = item.kernel->isExpensive();
    return absl::OkStatus();
  }
  item.kind = kind->second;
  auto intAttr = [&](const char *name, int64_t fallback) {
    const auto *v = attrOf<int64_t>(node.info, name);
    return v ? *v : fallback;
  };
  switch (item.kind) {
  case NodeKind::Const: {
    item.constant = *attrOf<Tensor>(node.info, "value");
    if (item.constant.dtype() != node.info.outputTypes[0])
      return absl::InvalidArgumentError("the value is of another type than 'dtype'");
    break;
  }
  case NodeKind::Arg:
  case NodeKind::Retval: {
    int64_t i = intAttr("index", -1);
    // arguments that nothing uses have no node, so that their number says nothing
    if (i < 0 || i >= kMaxArguments)
      return absl::InvalidArgumentError("bad index");
    item.argIndex = static_cast<int>(i);
    int &count = item.kind == NodeKind::Arg ? args : results;
    count = std::max(count, item.argIndex + 1);
    break;
  }
  case NodeKind::Enter: {
    const auto *constant = attrOf<bool>(node.info, "is_constant");
    item.constantEnter = constant && *constant;
    item.parallelIterations = static_cast<int>(std::clamp<int64_t>(intAttr("parallel_iterations", 10), 1, 1 << 16));
    break;
  }
  default: break;
  }
  return absl::OkStatus();
}

/// Follows Enter and Exit: a node runs in the frame of its inputs.
absl::Status Executable::findFrames() {
  staticFrames.assign(1, {});
  std::map<std::pair<int, std::string>, int> byName;
  auto isBackEdge = [&](int from, int to) {
    return items[from].kind == NodeKind::NextIteration && items[to].kind == NodeKind::Merge;
  };
  std::vector<int> frameAfter(items.size(), 0); ///< the frame in which a node's outputs are
  for (int n : graph.order) {
    ExecNode &item = items[n];
    int frame = -1;
    absl::Status bad;
    auto from = [&](int source) {
      if (isBackEdge(source, n))
        return;
      if (frame < 0)
        frame = frameAfter[source];
      else if (frame != frameAfter[source])
        bad = absl::InvalidArgumentError(absl::StrCat("has inputs from different frames: '", staticFrames[frame].name, "' and '",
                                                      staticFrames[frameAfter[source]].name, "'"));
    };
    for (const Endpoint &e : graph.nodes[n].inputs)
      from(e.node);
    for (int c : graph.nodes[n].controls)
      from(c);
    if (!bad.ok())
      return atNode(item.info->name, item.info->op, bad);
    item.frame = std::max(frame, 0);
    frameAfter[n] = item.frame;
    if (item.kind == NodeKind::Exit) {
      if (item.frame == 0)
        return atNode(item.info->name, item.info->op, absl::InvalidArgumentError("leaves a frame outside of any"));
      frameAfter[n] = staticFrames[item.frame].parent;
    }
    if (item.kind == NodeKind::Enter) {
      const auto *name = attrOf<std::string>(*item.info, "frame_name");
      auto [it, isNew] = byName.try_emplace({item.frame, *name}, static_cast<int>(staticFrames.size()));
      if (isNew) {
        StaticFrame child;
        child.name = *name;
        child.parent = item.frame;
        staticFrames.push_back(std::move(child));
      }
      item.childFrame = it->second;
      ++staticFrames[it->second].numEnters;
      frameAfter[n] = it->second;
    }
  }
  return absl::OkStatus();
}

void Executable::findDirect() {
  DirectRun found;
  found.results.resize(results);
  for (size_t i = 0; i < items.size(); ++i) {
    const ExecNode &item = items[i];
    const GraphNode &node = graph.nodes[i];
    auto fromArg = [&](const Endpoint &e) { return items[e.node].kind == NodeKind::Arg; };
    if (!node.controls.empty())
      return;
    if (item.kind == NodeKind::Arg)
      continue;
    if (item.kind == NodeKind::Kernel && found.node < 0 && !item.async && !item.transfers) {
      found.node = static_cast<int>(i);
      for (const Endpoint &e : node.inputs) {
        if (!fromArg(e))
          return;
        found.args.push_back(items[e.node].argIndex);
      }
    } else if (item.kind != NodeKind::Retval) {
      return;
    }
  }
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i].kind != NodeKind::Retval)
      continue;
    const Endpoint &e = graph.nodes[i].inputs[0];
    if (items[e.node].kind == NodeKind::Arg)
      found.results[items[i].argIndex] = -1 - items[e.node].argIndex;
    else if (e.node == found.node && !items[e.node].info->outputIsRef[e.port])
      found.results[items[i].argIndex] = e.port;
    else
      return;
  }
  if (found.node >= 0)
    directRun = std::move(found);
}

absl::Status Executable::init(const KernelMaker &makeKernel) {
  items.resize(graph.nodes.size());
  for (size_t i = 0; i < items.size(); ++i)
    if (absl::Status s = classify(static_cast<int>(i), makeKernel); !s.ok())
      return atNode(graph.nodes[i].info.name, graph.nodes[i].info.op, s);
  if (absl::Status s = findFrames(); !s.ok())
    return s;
  for (size_t i = 0; i < items.size(); ++i) {
    const GraphNode &node = graph.nodes[i];
    ExecNode &item = items[i];
    StaticFrame &frame = staticFrames[item.frame];
    item.pendingIndex = static_cast<int>(frame.pending.size());
    item.inputStart = frame.numInputs;
    frame.numInputs += item.numInputs;
    uint64_t edges = node.inputs.size() + node.controls.size();
    if (item.kind == NodeKind::Merge)
      frame.pending.push_back(1 + 2 * node.controls.size());
    else
      frame.pending.push_back(edges);
    if (edges == 0)
      rootNodes.push_back(static_cast<int>(i));
    for (size_t k = 0; k < node.inputs.size(); ++k)
      items[node.inputs[k].node].edges.push_back({node.inputs[k].port, static_cast<int>(i), static_cast<int>(k), false});
    for (int c : node.controls)
      items[c].edges.push_back({-1, static_cast<int>(i), -1, false});
  }
  for (ExecNode &item : items) {
    std::stable_sort(item.edges.begin(), item.edges.end(), [](auto &a, auto &b) { return a.port < b.port; });
    for (size_t e = 0; e < item.edges.size(); ++e)
      item.edges[e].last = e + 1 == item.edges.size() || item.edges[e + 1].port != item.edges[e].port;
    std::set<int> takers;
    for (const OutEdge &edge : item.edges)
      if (edge.slot >= 0)
        takers.insert(edge.dst);
    item.manyLaunches = item.kind == NodeKind::Arg && takers.size() > 1 &&
                        std::all_of(takers.begin(), takers.end(), [&](int t) { return graph.nodes[t].info.op == kLaunchOp; });
  }
  findDirect();
  return absl::OkStatus();
}

} // namespace lathe::rt
