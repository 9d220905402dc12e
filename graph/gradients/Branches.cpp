// A Switch adds a side to what reads it; a Merge leaves what its inputs have in common. A value of one side goes to a list that passes
// the same switches, and a Merge behind them joins the list with what came by another side.
#include "graph/gradients/Branches.h"
#include "ops/Flags.h"

#include <algorithm>

namespace lathe::graphdef {
namespace {

bool same(const Side &a, const Side &b) { return a.predicate == b.predicate && a.isTrue == b.isTrue; }

bool isSwitch(const Node &node) { return ops::is(node.op(), ops::Flag::Switch); }
bool isMerge(const Node &node) { return ops::is(node.op(), ops::Flag::Merge); }

/// What is handed on as the predicate: the switches of one conditional read it through different nodes.
Endpoint source(Endpoint e) {
  while (ops::is(e.node->op(), ops::Flag::Passes) && e.index < e.node->numInputs())
    e = e.node->input(e.index);
  return e;
}

size_t common(const std::vector<Side> &a, const std::vector<Side> &b) {
  size_t n = 0;
  while (n < a.size() && n < b.size() && same(a[n], b[n]))
    ++n;
  return n;
}

} // namespace

void Branches::read(std::vector<Side> *mine, const std::vector<Side> &more, const Node *node) {
  if (common(*mine, more) < std::min(mine->size(), more.size()))
    opposed[node->id()] = true;
  if (more.size() > mine->size())
    *mine = more;
}

absl::Status Branches::find(const Graph &graph) {
  auto order = topologicalOrder(graph);
  if (!order.ok())
    return order.status();
  sides.assign(graph.maxId(), {});
  opposed.assign(graph.maxId(), false);
  for (const Node *node : *order) {
    std::vector<Side> mine;
    for (int i = 0; i < node->numInputs(); ++i) {
      const std::vector<Side> theirs = of(node->input(i));
      if (!isMerge(*node))
        read(&mine, theirs, node);
      else if (i == 0)
        mine = theirs;
      else
        mine.resize(common(mine, theirs));
    }
    for (const Node *control : node->controls())
      read(&mine, sides[control->id()], node);
    sides[node->id()] = std::move(mine);
  }
  return absl::OkStatus();
}

std::vector<Side> Branches::of(const Endpoint &e) const {
  if (e.node->id() >= static_cast<int>(sides.size()))
    return {};
  std::vector<Side> out = sides[e.node->id()];
  if (isSwitch(*e.node))
    out.push_back({source(e.node->input(1)), e.index == 1});
  return out;
}

absl::Status Branches::check(const Endpoint &e) const {
  if (e.node->id() < static_cast<int>(opposed.size()) && opposed[e.node->id()])
    return atNode(e.node->name(), e.node->op(), absl::UnimplementedError("reads both sides of a Switch, so that it never runs"));
  return absl::OkStatus();
}

absl::Status Branches::close(std::vector<Endpoint> *values) const {
  std::set<Endpoint> seen(values->begin(), values->end());
  for (size_t i = 0; i < values->size(); ++i) {
    if ((*values)[i].node->op() == "Const")
      continue; // is written again where it is needed
    if (absl::Status s = check((*values)[i]); !s.ok())
      return s;
    for (const Side &side : of((*values)[i]))
      if (seen.insert(side.predicate).second)
        values->push_back(side.predicate);
  }
  // a predicate lies on fewer sides than what it decides about
  std::stable_sort(values->begin(), values->end(), [&](const Endpoint &a, const Endpoint &b) { return of(a).size() < of(b).size(); });
  return absl::OkStatus();
}

Val onSides(const std::vector<Side> &sides, const std::map<Endpoint, Endpoint> &known, Val list, const std::function<Val(Val)> &make) {
  std::vector<Val> others;
  for (const Side &side : sides) {
    auto predicate = known.find(side.predicate);
    if (!list || predicate == known.end()) {
      if (list)
        list.emitter->fail(absl::InternalError("the predicate of a Switch is not known where its side is taken"));
      return Val();
    }
    Val choice = call("Switch", {list, Val(*list.emitter, predicate->second)});
    others.push_back(choice.at(side.isTrue ? 0 : 1));
    list = choice.at(side.isTrue ? 1 : 0);
  }
  list = make(list);
  for (auto it = others.rbegin(); it != others.rend(); ++it)
    list = call("Merge", {std::vector<Val>{list, *it}});
  return list;
}

Val pushOnSides(const std::vector<Side> &sides, const std::map<Endpoint, Endpoint> &known, Val list, Endpoint value) {
  return onSides(sides, known, list, [&](Val l) {
    return call("TensorListPushBack", {l, l ? l.emitter->val(value) : Val()});
  });
}

Val popOnSides(const std::vector<Side> &sides, const std::map<Endpoint, Endpoint> &known, Val *list, DType type) {
  Val element;
  *list = onSides(sides, known, *list, [&](Val l) {
    Val popped = call("TensorListPopBack", {l, l ? l.emitter->int32(-1) : Val()}, {{"element_dtype", type}});
    element = popped.at(1);
    return popped;
  });
  return element;
}

} // namespace lathe::graphdef
