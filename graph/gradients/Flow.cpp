// Switches and merges of the first kind of control flow, outside of loops.
#include "graph/gradients/Expr.h"
#include "graph/gradients/Rules.h"
#include "ops/Flags.h"

#include <tuple>

namespace lathe::graphdef {
namespace {

/// What decides whether a value is alive: the predicate of a switch, and which of its sides leads there.
struct Side {
  Endpoint predicate;
  bool isTrue = false;
};

/// The switch on the way up from an input of a merge which no other merge closes.
Side sideOf(Endpoint input) {
  struct At {
    Node *node;
    int port, open; ///< port -1: a control edge; merges that are still open
  };
  std::vector<At> work{{input.node, input.index, 0}};
  std::set<std::tuple<Node *, int, int>> seen;
  while (!work.empty()) {
    At at = work.back();
    work.pop_back();
    if (!seen.insert({at.node, at.port, at.open}).second)
      continue;
    if (ops::is(at.node->op(), ops::Flag::Switch)) {
      if (at.open == 0 && at.port >= 0)
        return {at.node->input(1), at.port == 1};
      --at.open;
    } else if (ops::is(at.node->op(), ops::Flag::Merge)) {
      ++at.open;
    }
    for (const Endpoint &e : at.node->inputs())
      work.push_back({e.node, e.index, at.open});
    for (Node *c : at.node->controls())
      work.push_back({c, -1, at.open});
  }
  return {};
}

bool closesLoop(const Node &merge) {
  for (const Endpoint &e : merge.inputs())
    if (isBackEdge(e.node, &merge))
      return true;
  return false;
}

/// dy goes to the side that was taken.
void merge(Grad &g) {
  if (closesLoop(g.node)) {
    g.fail("it closes a loop that a result lies in; gradients start behind its Exit");
    return;
  }
  Side first = g.node.numInputs() == 2 ? sideOf(g.node.input(0)) : Side();
  Side second = g.node.numInputs() == 2 ? sideOf(g.node.input(1)) : Side();
  Endpoint predicate = first.predicate ? first.predicate : second.predicate;
  if (!predicate) {
    g.fail("no switch was found that decides between its inputs");
    return;
  }
  bool firstIsTrue = first.predicate ? first.isTrue : !second.isTrue;
  Val sides = call("Switch", {g.dy(0), g.e.val(predicate)});
  g.set(0, sides.at(firstIsTrue ? 1 : 0));
  g.set(1, sides.at(firstIsTrue ? 0 : 1));
}

/// The gradients of both sides meet; a side that sends none sends zeros.
void switchGradient(Grad &g) {
  Val sides[2];
  for (int i = 0; i < 2; ++i) {
    if (g.has(i)) {
      sides[i] = g.dy(i);
      continue;
    }
    Val zeros = ZerosLike(g.in(0));
    sides[i] = call("Switch", {zeros, g.in(1)}).at(i);
  }
  g.set(0, call("Merge", {std::vector<Val>{sides[0], sides[1]}}));
}

} // namespace

void addFlowRules(Rules &r) {
  r.add({"Merge", "RefMerge"}, merge);
  r.add({"Switch", "RefSwitch"}, switchGradient);
  // loops have become While before any rule is asked
  r.add({"Enter", "Exit", "NextIteration", "LoopCond"}, [](Grad &g) { g.fail("it is part of no whole loop"); });
}

} // namespace lathe::graphdef
