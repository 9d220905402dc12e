#include "passes/cluster/ControlFlowUnits.h"

#include "passes/cluster/Outline.h"
#include "passes/cluster/Policy.h"
#include "llvm/ADT/EquivalenceClasses.h"

#include <algorithm>

using namespace mlir;

namespace lathe::cluster {

namespace {

class Finder {
public:
  Finder(ArrayRef<graph::NodeOp> nodes, const DenseMap<Operation *, unsigned> &index, const Regions &regions)
      : nodes(nodes), index(index), regions(regions) {}

  void findLoops(std::vector<Unit> &units);
  void findConditionals(std::vector<Unit> &units);

private:
  /// Whether all users of a node's results are among the members.
  bool isHidden(unsigned node, const std::set<unsigned> &members) const {
    for (Operation *user : nodes[node]->getUsers())
      if (auto it = index.find(user); it == index.end() || !members.count(it->second))
        return false;
    return true;
  }
  bool isComplete(const std::set<unsigned> &members, const Region &outer) const;

  Value input(unsigned node, unsigned i) const { return graph::NodeOp(nodes[node]).getInputs()[i]; }
  bool isSwitch(unsigned node) const { return isOp(nodes[node], "Switch") && graph::NodeOp(nodes[node]).getInputs().size() == 2; }

  ArrayRef<graph::NodeOp> nodes;
  const DenseMap<Operation *, unsigned> &index;
  const Regions &regions;
};

} // namespace

void Finder::findLoops(std::vector<Unit> &units) {
  for (int frame = 1; frame < regions.numFrames(); ++frame) {
    std::set<unsigned> members, exits;
    for (unsigned i = 0; i < nodes.size(); ++i) {
      if (regions.isWithin(regions.of(nodes[i]).frame, frame))
        members.insert(i);
      else if (isOp(nodes[i], "Exit") && regions.of(input(i, 0).getDefiningOp()).frame == frame)
        exits.insert(i);
    }
    bool ok = !exits.empty();
    members.insert(exits.begin(), exits.end());
    for (unsigned i : members)
      ok = ok && (exits.count(i) || isHidden(i, members));
    if (ok)
      units.push_back({{members.begin(), members.end()},
                       {regions.parentFrame(frame), regions.entryLiveness(frame)},
                       {}});
  }
}

/// All that is conditional is hidden, comes from one of the Switches and ends in a Merge.
bool Finder::isComplete(const std::set<unsigned> &members, const Region &outer) const {
  const auto &conditions = regions.conditionsOf(outer.liveness);
  for (unsigned i : members)
    // a reference may be read again after the write, even by the condition: the executor has the order
    if (graph::NodeOp node = nodes[i]; !isControlFlow(node) && !node.getInputs().empty() && isReferenceInput(node, 0))
      return false;
  for (unsigned i : members)
    for (Value operand : nodes[i]->getOperands()) {
      Operation *from = operand.getDefiningOp();
      if (!from || members.count(index.lookup(from)))
        continue;
      const auto &more = regions.conditionsOf(regions.livenessOf(operand));
      if (!std::includes(conditions.begin(), conditions.end(), more.begin(), more.end()))
        return false;
    }
  std::vector<unsigned> work;
  std::set<unsigned> needed;
  for (unsigned i : members) {
    bool isMerge = isOp(nodes[i], "Merge") && regions.of(nodes[i]) == outer;
    if (isMerge) {
      needed.insert(i);
      work.push_back(i);
    } else if (!isHidden(i, members)) {
      return false;
    }
  }
  while (!work.empty()) {
    graph::NodeOp node = nodes[work.back()];
    work.pop_back();
    for (Value operand : node->getOperands())
      if (Operation *from = operand.getDefiningOp())
        if (unsigned i = index.lookup(from); members.count(i) && needed.insert(i).second)
          work.push_back(i);
  }
  // a Switch nobody uses the value of does no harm
  return llvm::all_of(members, [&](unsigned i) { return needed.count(i) || isOp(nodes[i], "Switch"); });
}

void Finder::findConditionals(std::vector<Unit> &units) {
  struct Key {
    Region outer;
    const void *predicate;
    bool operator<(const Key &o) const {
      return std::tie(outer.frame, outer.liveness, predicate) < std::tie(o.outer.frame, o.outer.liveness, o.predicate);
    }
  };
  // in the order of their first Switch: pointers must not decide
  std::map<Key, size_t> seen;
  std::vector<Key> keys;
  for (graph::NodeOp node : nodes)
    if (isOp(node, "Switch") && node.getInputs().size() == 2) {
      Key key{regions.of(node), predicateOf(node.getInputs()[1]).getAsOpaquePointer()};
      if (seen.try_emplace(key, keys.size()).second)
        keys.push_back(key);
    }
  for (const Key &key : keys) {
    const auto &outer = regions.conditionsOf(key.outer.liveness);
    auto isConditional = [&](int liveness) {
      const auto &all = regions.conditionsOf(liveness);
      return (all.count({key.predicate, 0}) || all.count({key.predicate, 1})) &&
             std::includes(all.begin(), all.end(), outer.begin(), outer.end());
    };
    llvm::EquivalenceClasses<unsigned> components;
    for (unsigned i = 0; i < nodes.size(); ++i) {
      Region region = regions.of(nodes[i]);
      bool member = regions.isWithin(region.frame, key.outer.frame) && isConditional(region.liveness);
      if (region == key.outer) {
        member |= isSwitch(i) && predicateOf(input(i, 1)).getAsOpaquePointer() == key.predicate;
        member |= isOp(nodes[i], "Merge") && llvm::any_of(graph::NodeOp(nodes[i]).getInputs(), [&](Value input) {
                    return input.getDefiningOp() && isConditional(regions.livenessOf(input));
                  });
      }
      if (member)
        components.insert(i);
    }
    for (unsigned i = 0; i < nodes.size(); ++i)
      if (components.contains(i))
        for (Value operand : nodes[i]->getOperands())
          if (Operation *from = operand.getDefiningOp())
            if (auto it = index.find(from); it != index.end() && components.contains(it->second))
              components.unionSets(i, it->second);
    std::map<unsigned, std::set<unsigned>> groups;
    for (unsigned i = 0; i < nodes.size(); ++i)
      if (components.contains(i))
        groups[components.getLeaderValue(i)].insert(i);
    for (auto &[leader, members] : groups) {
      bool anyMerge = llvm::any_of(members, [&](unsigned i) {
        return isOp(nodes[i], "Merge") && regions.of(nodes[i]) == key.outer;
      });
      if (anyMerge && isComplete(members, key.outer))
        units.push_back({{members.begin(), members.end()}, key.outer, {}});
    }
  }
}

std::vector<Unit> findUnits(ArrayRef<graph::NodeOp> nodes, const DenseMap<Operation *, unsigned> &index,
                            const Regions &regions, llvm::function_ref<bool(unsigned)> compiles) {
  std::vector<Unit> units, result;
  if (!regions.hasControlFlow())
    return units;
  Finder finder(nodes, index, regions);
  finder.findLoops(units);
  finder.findConditionals(units);
  std::stable_sort(units.begin(), units.end(),
                   [](const Unit &a, const Unit &b) { return a.members.size() > b.members.size(); });
  std::vector<char> taken(nodes.size());
  for (Unit &unit : units) {
    bool ok = llvm::all_of(unit.members, [&](unsigned i) {
      graph::NodeOp node = nodes[i];
      return !taken[i] && (decidesFrames(node) || compiles(i));
    });
    if (!ok)
      continue;
    std::set<int> frames;
    for (unsigned i : unit.members) {
      taken[i] = true;
      for (int f = regions.of(nodes[i]).frame; f != unit.region.frame && f != 0; f = regions.parentFrame(f))
        frames.insert(f);
    }
    unit.frames.assign(frames.begin(), frames.end());
    result.push_back(std::move(unit));
  }
  return result;
}

} // namespace lathe::cluster
