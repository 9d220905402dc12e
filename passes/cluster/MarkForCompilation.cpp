//===- MarkForCompilation.cpp - which nodes form clusters -----------------===//
//
// Before: graph.node ops. After: those that are to be compiled together carry the same graph.cluster.
//
// Policy says which nodes compile at all. Nodes joined by a list or another handle that is no variable stay together or
// outside. Then edges are contracted, from the inputs on, as long as no path leads around (AcyclicGraph), between nodes of
// one frame, liveness, device and set of blocking inputs. Clusters that are not worth a launch are dropped.
//
//===----------------------------------------------------------------------===//
#include "dialects/graph/ClusterAttrs.h"
#include "ops/Registry.h"
#include "passes/cluster/ControlFlowUnits.h"
#include "passes/cluster/Cycles.h"
#include "passes/cluster/Outline.h"
#include "passes/cluster/Passes.h"
#include "passes/cluster/Policy.h"
#include "passes/cluster/Regions.h"

using namespace mlir;

namespace lathe::cluster {

#define GEN_PASS_DEF_MARKFORCOMPILATION
#include "passes/cluster/Passes.h.inc"

namespace {

// Pairs of clusters without an edge between them are looked at up to this many.
constexpr size_t kMaxSiblings = 64;

/// Ops that wait for something which another node of the same run may have to do first.
bool mayBlock(StringRef op) {
  return op.contains("Dequeue") || op.contains("Recv") || op.contains("TakeMany") || op.contains("Unstage") ||
         op.contains("TakeGradient") || op.starts_with("ReaderRead") || op.contains("BarrierTake");
}
bool mayRelease(StringRef op) {
  return op.contains("Enqueue") || op.contains("Send") || op.contains("InsertMany") || op.contains("Stage") ||
         op.contains("ApplyGradient") || op.contains("QueueClose");
}

/// Ops that cost nothing by themselves.
bool isFree(StringRef op) {
  return op == "Identity" || op == "IdentityN" || op == "NoOp" || op == "Const" || op == "StopGradient" ||
         op == "PreventGradient" || op == "Snapshot" || op == "Reshape" || op == "ExpandDims" || op == "Squeeze" ||
         op == "Shape" || op == "ShapeN" || op == "Size" || op == "Rank" || op == "ReadVariableOp";
}

class MarkForCompilation : public impl::MarkForCompilationBase<MarkForCompilation> {
public:
  using MarkForCompilationBase::MarkForCompilationBase;
  void runOnOperation() override;

private:
  LogicalResult markFunction(graph::FuncOp func, Policy &policy, int &nextCluster);
  void refuse(Operation *op, Refusal refusal, const Twine &text);
  void count(Refusal refusal);
};

/// What a node has to share with another to join its cluster.
struct Kind {
  Region region;
  Attribute device;
  int blockers = 0;
  bool operator==(const Kind &o) const { return region == o.region && device == o.device && blockers == o.blockers; }
};

/// For each node the blocking nodes that it waits for, as a number; all zero where nothing in the graph could be what
/// they wait for.
DenseMap<Operation *, int> findBlockers(ArrayRef<Operation *> order) {
  DenseMap<Operation *, int> result;
  bool blocks = false, releases = false;
  for (Operation *op : order)
    if (auto node = dyn_cast<graph::NodeOp>(op)) {
      blocks |= mayBlock(node.getOp());
      releases |= mayRelease(node.getOp());
    }
  if (!blocks || !releases)
    return result;
  std::map<std::set<int>, int> numbers{{{}, 0}};
  std::vector<std::set<int>> sets(1);
  int next = 0;
  for (Operation *op : order) {
    std::set<int> all;
    for (Value operand : op->getOperands())
      if (Operation *from = operand.getDefiningOp()) {
        const std::set<int> &more = sets[result.lookup(from)];
        all.insert(more.begin(), more.end());
      }
    if (auto node = dyn_cast<graph::NodeOp>(op); node && mayBlock(node.getOp()))
      all.insert(next++);
    auto [it, isNew] = numbers.try_emplace(all, static_cast<int>(sets.size()));
    if (isNew)
      sets.push_back(all);
    result[op] = it->second;
  }
  return result;
}

/// Whether a handle comes from a variable, or goes to ops on variables only: an argument of clusters.
bool isVariableHandle(Value handle, Policy &policy) {
  auto passesOn = [](Operation *op) { return isControlFlow(op) || isOp(op, "Identity"); };
  Value root = handle;
  for (int hops = 0; hops < 1000; ++hops) {
    auto from = root.getDefiningOp<graph::NodeOp>();
    if (!from || !passesOn(from) || from.getInputs().empty())
      break;
    root = from.getInputs()[0];
  }
  if (isVariableNode(root.getDefiningOp()))
    return true;
  auto source = root.getDefiningOp<graph::NodeOp>();
  if (source && source.getOp() != "_Arg")
    return false;
  SmallVector<Value> work{root};
  DenseSet<Value> seen;
  while (!work.empty())
    for (OpOperand &use : work.pop_back_val().getUses()) {
      auto user = dyn_cast<graph::NodeOp>(use.getOwner());
      if (!user)
        continue;
      if (passesOn(user)) {
        for (Value output : user.getOutputs())
          if (isHandle(output) && seen.insert(output).second)
            work.push_back(output);
      } else if (!policy.usesVariable(user, use.getOperandNumber())) {
        return false;
      }
    }
  return true;
}

/// Merges the members, nearest neighbours first; false when a path outside keeps some apart.
bool contract(AcyclicGraph &graph, ArrayRef<unsigned> members) {
  std::set<unsigned> groups(members.begin(), members.end());
  for (bool changed = true; changed;) {
    changed = false;
    for (unsigned i : members)
      for (unsigned from : graph.predecessors(i)) {
        unsigned to = graph.find(i);
        from = graph.find(from);
        if (from == to || !groups.count(from) || !graph.merge(from, to))
          continue;
        groups.erase(from);
        groups.erase(to);
        groups.insert(graph.find(to));
        changed = true;
      }
  }
  for (unsigned i : members)
    if (!graph.merge(members.front(), i))
      return false;
  return true;
}

/// The members of the unit that a node belongs to.
std::vector<unsigned> unitOf(ArrayRef<Unit> units, unsigned node) {
  for (const Unit &unit : units)
    if (llvm::is_contained(unit.members, node))
      return unit.members;
  return {};
}

} // namespace

void MarkForCompilation::count(Refusal refusal) {
  switch (refusal) {
  case Refusal::None: break;
  case Refusal::NoCompiledForm: ++refusedNoCompiledForm; break;
  case Refusal::HostType: ++refusedHostType; break;
  case Refusal::HostHandle: ++refusedHostHandle; break;
  case Refusal::ControlFlow: ++refusedControlFlow; break;
  case Refusal::Endpoint: ++refusedEndpoint; break;
  case Refusal::Stateful: ++refusedStateful; break;
  case Refusal::Function: ++refusedFunction; break;
  case Refusal::Forbidden: ++refusedForbidden; break;
  case Refusal::HostKernel: ++refusedHostKernel; break;
  }
}

void MarkForCompilation::refuse(Operation *op, Refusal refusal, const Twine &text) {
  count(refusal);
  if (explain && refusal != Refusal::Endpoint)
    op->emitRemark("not compiled: ") << text;
}

LogicalResult MarkForCompilation::markFunction(graph::FuncOp func, Policy &policy, int &nextCluster) {
  Block &block = func.getBody().front();
  Regions regions;
  if (failed(regions.analyze(block)))
    return failure();
  std::vector<graph::NodeOp> nodes;
  DenseMap<Operation *, unsigned> index;
  for (Operation *op : regions.order())
    if (auto node = dyn_cast<graph::NodeOp>(op)) {
      index[op] = static_cast<unsigned>(nodes.size());
      nodes.push_back(node);
    }
  DenseMap<Operation *, int> blockers = findBlockers(regions.order());
  std::vector<Kind> ownKinds;
  std::map<unsigned, Verdict> refusals;
  for (graph::NodeOp node : nodes)
    ownKinds.push_back({regions.of(node), node->getAttr(graph::kDeviceAttr), blockers.lookup(node)});

  llvm::StringSet<> forced, isolated;
  for (const std::string &name : force)
    forced.insert(name);
  for (const std::string &name : isolate)
    isolated.insert(name);
  std::vector<char> compiles(nodes.size()), inUnits(nodes.size()), must(nodes.size()), wanted(nodes.size());
  bool ok = true;
  for (size_t i = 0; i < nodes.size(); ++i) {
    Verdict verdict = policy.judge(nodes[i]);
    auto mustAttr = nodes[i].getNodeAttr<BoolAttr>("_XlaMustCompile");
    must[i] = (mustAttr && mustAttr.getValue()) || forced.contains(nodes[i].getNodeName());
    if (verdict && mode == ClusteringMode::None && !must[i])
      verdict = {Refusal::Forbidden, "clustering is off"};
    // what has a host kernel compiles too where it has to
    if (!verdict && verdict.refusal == Refusal::HostKernel && must[i])
      verdict = {};
    compiles[i] = static_cast<bool>(verdict);
    inUnits[i] = mode != ClusteringMode::None && !isolated.contains(nodes[i].getNodeName()) &&
                 (verdict || (verdict.refusal == Refusal::HostKernel && nodes[i].getOp() != "Assert"));
    if (verdict)
      continue;
    if (mustAttr && mustAttr.getValue()) {
      nodes[i].emitError("must be compiled (_XlaMustCompile), but ") << verdict.text;
      ok = false;
    }
    refusals[i] = std::move(verdict);
  }
  if (!ok)
    return failure();

  // handles that are no variables tie nodes to each other
  std::vector<std::pair<unsigned, unsigned>> ties;
  std::vector<std::pair<unsigned, std::string>> loose;
  for (unsigned i = 0; i < nodes.size(); ++i) {
    for (Value output : nodes[i].getOutputs()) {
      if (!isHandle(output) || isVariableHandle(output, policy))
        continue;
      for (OpOperand &use : output.getUses()) {
        auto user = dyn_cast<graph::NodeOp>(use.getOwner());
        if (!user)
          loose.push_back({i, "its handle is a result of the graph"});
        else if (!policy.usesVariable(user, use.getOperandNumber()))
          ties.push_back({i, index.lookup(user)});
      }
    }
    for (auto [k, input] : llvm::enumerate(nodes[i].getInputs()))
      if (isHandle(input) && isa<BlockArgument>(input) && !isVariableHandle(input, policy) &&
          !policy.usesVariable(nodes[i], static_cast<unsigned>(k)))
        loose.push_back({i, "takes a handle that is an argument of the graph"});
  }
  auto drop = [&](unsigned i, const Twine &text) {
    if (!compiles[i] && !inUnits[i])
      return false;
    if (compiles[i])
      refusals[i] = {Refusal::HostHandle, text.str()};
    compiles[i] = inUnits[i] = false;
    return true;
  };
  for (auto &[i, text] : loose)
    drop(i, text);

  // each round either forms everything that has to stay together or takes something out for good
  std::optional<AcyclicGraph> graph;
  std::vector<Kind> kinds;
  std::set<std::vector<unsigned>> badUnits;
  auto tryForm = [&]() {
    kinds = ownKinds;
    for (unsigned i = 0; i < nodes.size(); ++i)
      wanted[i] = compiles[i] && nodes[i].getOp() != "Const";
    std::vector<Unit> units = findUnits(nodes, index, regions, [&](unsigned i) { return inUnits[i] != 0; });
    llvm::erase_if(units, [&](const Unit &unit) {
      bool mixed = llvm::any_of(unit.members, [&](unsigned i) {
        return ownKinds[i].device != ownKinds[unit.members[0]].device ||
               ownKinds[i].blockers != ownKinds[unit.members[0]].blockers;
      });
      // executors run loops too; only what has no other way makes one compile where that is asked for
      bool needless = mode == ClusteringMode::Needed && llvm::none_of(unit.members, [&](unsigned i) {
        return compiles[i] && llvm::any_of(ties, [&](auto &tie) { return tie.first == i || tie.second == i; });
      });
      return mixed || needless || badUnits.count(unit.members);
    });
    for (const Unit &unit : units)
      for (unsigned i : unit.members) {
        wanted[i] = true;
        kinds[i].region = unit.region;
      }
    for (auto [a, b] : ties)
      if (wanted[a] != wanted[b]) {
        if (drop(wanted[a] ? a : b, "the handle it shares with '" +
                                        Twine(nodes[wanted[a] ? b : a].getNodeName()) + "' stays outside"))
          return false;
        badUnits.insert(unitOf(units, wanted[a] ? a : b));
        return false;
      }
    // a loop ends when all that it was entered with is there, whichever values depend on each other: behind the nodes come
    // the frames, between what enters and what leaves them
    unsigned firstFrame = static_cast<unsigned>(nodes.size());
    graph.emplace(firstFrame + static_cast<unsigned>(regions.numFrames()));
    for (unsigned i = 0; i < nodes.size(); ++i) {
      if (isOp(nodes[i], "Enter"))
        graph->addEdge(i, firstFrame + static_cast<unsigned>(regions.of(nodes[i]).frame));
      else if (isOp(nodes[i], "Exit"))
        graph->addEdge(firstFrame + static_cast<unsigned>(regions.of(nodes[i].getInputs()[0].getDefiningOp()).frame), i);
    }
    for (unsigned i = 0; i < nodes.size(); ++i)
      for (Value operand : nodes[i]->getOperands())
        if (Operation *from = operand.getDefiningOp(); from && !(isOp(nodes[i], "Merge") && isOp(from, "NextIteration")))
          graph->addEdge(index.lookup(from), i);
    for (const Unit &unit : units) {
      std::vector<unsigned> all = unit.members;
      for (int frame : unit.frames)
        all.push_back(firstFrame + static_cast<unsigned>(frame));
      if (!contract(*graph, all)) {
        badUnits.insert(unit.members);
        return false;
      }
    }
    for (auto [a, b] : ties) {
      if (!wanted[a] || !wanted[b] || (kinds[a] == kinds[b] && graph->merge(a, b)))
        continue;
      if (!drop(a, "cannot be compiled together with '" + Twine(nodes[b].getNodeName()) +
                       "', which shares its handle"))
        badUnits.insert(unitOf(units, a));
      return false;
    }
    return true;
  };
  while (!tryForm()) {
  }
  for (unsigned i = 0; i < nodes.size(); ++i)
    if (!wanted[i] && refusals.count(i))
      refuse(nodes[i], refusals[i].refusal, refusals[i].text);

  auto canJoin = [&](unsigned a, unsigned b) {
    return wanted[a] && wanted[b] && kinds[a] == kinds[b] && !isolated.contains(nodes[a].getNodeName()) &&
           !isolated.contains(nodes[b].getNodeName());
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (unsigned i = 0; i < nodes.size(); ++i) {
      if (!wanted[i])
        continue;
      for (Value operand : nodes[i]->getOperands()) {
        Operation *from = operand.getDefiningOp();
        if (!from)
          continue;
        unsigned j = index.lookup(from);
        if (graph->find(i) == graph->find(j) || !canJoin(j, i))
          continue;
        bool merged = graph->merge(j, i);
        changed |= merged;
        if (!merged) {
          ++refusedCycle;
          if (explain)
            nodes[i].emitRemark("not compiled together with '")
                << nodes[j].getNodeName() << "': a path outside leads from one to the other";
        }
      }
    }
  }

  // clusters with nothing between them are one launch less
  std::map<unsigned, std::vector<unsigned>> members;
  for (unsigned i = 0; i < nodes.size(); ++i)
    if (wanted[i])
      members[graph->find(i)].push_back(i);
  std::vector<unsigned> heads;
  for (auto &[head, list] : members)
    heads.push_back(list.front());
  if (heads.size() <= kMaxSiblings)
    for (size_t a = 0; a < heads.size(); ++a)
      for (size_t b = a + 1; b < heads.size(); ++b)
        if (graph->find(heads[a]) != graph->find(heads[b]) && canJoin(heads[a], heads[b]))
          graph->merge(heads[a], heads[b]);
  members.clear();
  for (unsigned i = 0; i < nodes.size(); ++i)
    if (wanted[i])
      members[graph->find(i)].push_back(i);

  std::vector<std::vector<unsigned>> clusters;
  for (auto &[head, list] : members) {
    unsigned size = 0;
    bool worthwhile = false;
    for (unsigned i : list) {
      graph::NodeOp node = nodes[i];
      size += !isFree(node.getOp());
      worthwhile |= must[i] || Policy::isFunctional(node) || !policy.hasHostKernel(node);
    }
    if (worthwhile || size >= minSize) {
      clusters.push_back(list);
      continue;
    }
    ++refusedTooSmall;
    if (explain)
      nodes[list.front()].emitRemark("not compiled: a cluster of ")
          << size << " nodes that count, all with host kernels, is smaller than " << minSize.getValue();
  }
  llvm::sort(clusters);
  Builder builder(&getContext());
  for (const std::vector<unsigned> &list : clusters) {
    auto name = builder.getStringAttr("lathe_cluster_" + Twine(nextCluster++));
    for (unsigned i : list)
      nodes[i]->setAttr(graph::kClusterAttr, name);
    numClusters += 1;
    numNodes += static_cast<unsigned>(list.size());
  }
  return success();
}

void MarkForCompilation::runOnOperation() {
  PolicyOptions policyOptions;
  policyOptions.neededOnly = mode == ClusteringMode::Needed;
  for (const std::string &op : hostOps)
    policyOptions.hostOps.insert(op);
  for (const std::string &name : forbid)
    policyOptions.forbid.insert(name);
  Policy policy(getOperation(), std::move(policyOptions));
  int nextCluster = 0;
  for (auto func : getOperation().getOps<graph::FuncOp>())
    if (!func.isPrivate() && failed(markFunction(func, policy, nextCluster)))
      return signalPassFailure();
}

} // namespace lathe::cluster
