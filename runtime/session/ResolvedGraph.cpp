#include "runtime/session/ResolvedGraph.h"

#include "ops/Flags.h"
#include "runtime/core/Status.h"

#include "absl/strings/str_cat.h"

namespace lathe::rt {

absl::Status atNode(std::string_view name, std::string_view op, const absl::Status &status) {
  if (status.ok() || (status.message().size() > 6 && status.message().substr(0, 6) == "node '"))
    return status; // told already where
  absl::Status s(status.code(), absl::StrCat("node '", std::string(name), "' (", std::string(op), "): ", status.message()));
  setStatusNode(s, name, op);
  return s;
}

namespace {

absl::Status typesAgree(const GraphNode &from, int port, const GraphNode &to, int input) {
  if (port >= static_cast<int>(from.info.outputTypes.size()))
    return absl::InvalidArgumentError(absl::StrCat("input ", input, " is output ", port, " of '", from.info.name, "', which has ",
                                                   from.info.outputTypes.size()));
  DType have = from.info.outputTypes[port], want = to.info.inputTypes[input];
  if (want == DType::Invalid)
    return absl::OkStatus(); // a variable of a launch: handle or reference
  if (have != want)
    return absl::InvalidArgumentError(absl::StrCat("input ", input, " is of type ", dtypeName(have), ", expected ", dtypeName(want)));
  // arguments are looked at when they arrive
  if (to.info.inputIsRef[input] && !from.info.outputIsRef[port] && !ops::is(from.info.op, ops::Flag::Argument))
    return absl::InvalidArgumentError(absl::StrCat("input ", input, " has to be a reference"));
  return absl::OkStatus();
}

/// References go through ops that are declared for plain values too: Switch of a reference, Identity ... are not among
/// them, but v1 graphs put Enter and Merge of references as RefEnter and RefMerge.
absl::Status sortNodes(Graph &graph) {
  size_t n = graph.nodes.size();
  std::vector<std::vector<int>> users(n);
  std::vector<int> pending(n, 0);
  auto isBackEdge = [&](int from, int to) { return ops::isBackEdge(graph.nodes[from].info.op, graph.nodes[to].info.op); };
  for (size_t i = 0; i < n; ++i) {
    auto edge = [&](int from) {
      if (isBackEdge(from, static_cast<int>(i)))
        return;
      users[from].push_back(static_cast<int>(i));
      ++pending[i];
    };
    for (const Endpoint &e : graph.nodes[i].inputs)
      edge(e.node);
    for (int c : graph.nodes[i].controls)
      edge(c);
  }
  for (size_t i = 0; i < n; ++i)
    if (pending[i] == 0)
      graph.order.push_back(static_cast<int>(i));
  for (size_t i = 0; i < graph.order.size(); ++i)
    for (int user : users[graph.order[i]])
      if (--pending[user] == 0)
        graph.order.push_back(user);
  if (graph.order.size() == n)
    return absl::OkStatus();
  for (size_t i = 0; i < n; ++i)
    if (pending[i] > 0)
      return atNode(graph.nodes[i].info.name, graph.nodes[i].info.op, absl::InvalidArgumentError("is part of a cycle or behind one"));
  return absl::InternalError("lost nodes while sorting");
}

} // namespace

absl::Status finishGraph(Graph &graph) {
  for (GraphNode &node : graph.nodes) {
    if (node.inputs.size() != node.info.inputTypes.size())
      return atNode(node.info.name, node.info.op,
                    absl::InvalidArgumentError(absl::StrCat("expected ", node.info.inputTypes.size(), " inputs, found ", node.inputs.size())));
    for (size_t k = 0; k < node.inputs.size(); ++k)
      if (absl::Status s = typesAgree(graph.nodes[node.inputs[k].node], node.inputs[k].port, node, static_cast<int>(k)); !s.ok())
        return atNode(node.info.name, node.info.op, s);
  }
  return sortNodes(graph);
}

} // namespace lathe::rt
