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
#include "ops/Flags.h"
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

/// Ops that cost nothing by themselves.
bool isFree(StringRef op) { return ops::is(op, ops::Flag::Free) || op == "ReadVariableOp"; }

class MarkForCompilation : public impl::MarkForCompilationBase<MarkForCompilation> {
public:
  using MarkForCompilationBase::MarkForCompilationBase;
  void runOnOperation() override;

private:
  friend class FunctionClusters;
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
      blocks |= ops::is(node.getOp(), ops::Flag::Blocks);
      releases |= ops::is(node.getOp(), ops::Flag::Releases);
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
    if (auto node = dyn_cast<graph::NodeOp>(op); node && ops::is(node.getOp(), ops::Flag::Blocks))
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
  if (source && !ops::is(source.getOp(), ops::Flag::Argument))
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

namespace {

/// The clusters of one function.
class FunctionClusters {
public:
  FunctionClusters(MarkForCompilation &pass, Policy &policy) : pass(pass), policy(policy) {
    for (const std::string &name : pass.force)
      forced.insert(name);
    for (const std::string &name : pass.isolate)
      isolated.insert(name);
  }

  /// Marks the nodes of `func`; the first cluster gets the number `nextCluster`, which is counted up. Fails with an error at
  /// a node that must be compiled and cannot be.
  LogicalResult run(graph::FuncOp func, int &nextCluster);

private:
  LogicalResult judge();
  void tieHandles();
  bool drop(unsigned i, const Twine &text);
  std::vector<Unit> chooseUnits();
  bool agreeOnTies(ArrayRef<Unit> units);
  void addEdges();
  bool contractUnits(ArrayRef<Unit> units);
  bool contractTies(ArrayRef<Unit> units);
  bool tryForm();
  bool canJoin(unsigned a, unsigned b);
  void joinNeighbours();
  void joinSiblings();
  std::map<unsigned, std::vector<unsigned>> members();
  std::vector<std::vector<unsigned>> worthwhile();

  MarkForCompilation &pass;
  Policy &policy;
  llvm::StringSet<> forced, isolated;
  Regions regions;
  std::vector<graph::NodeOp> nodes;
  DenseMap<Operation *, unsigned> index;
  std::vector<Kind> ownKinds;           ///< before what a unit makes of them
  std::map<unsigned, Verdict> refusals; ///< of nodes that do not compile
  /// By node: it compiles; it may be part of a unit; it was asked for; it is to be in a cluster.
  std::vector<char> compiles, inUnits, must, wanted;
  std::vector<std::pair<unsigned, unsigned>> ties; ///< nodes that share a handle which is no variable
  /// Of the round under way.
  std::vector<Kind> kinds;
  std::optional<AcyclicGraph> graph;
  std::set<std::vector<unsigned>> badUnits; ///< of all rounds
  unsigned firstFrame = 0;                  ///< behind the nodes the graph has the frames
};

/// Which nodes compile by themselves.
LogicalResult FunctionClusters::judge() {
  const bool off = pass.mode == ClusteringMode::None;
  bool ok = true;
  for (size_t i = 0; i < nodes.size(); ++i) {
    Verdict verdict = policy.judge(nodes[i]);
    auto mustAttr = nodes[i].getNodeAttr<BoolAttr>("_XlaMustCompile");
    must[i] = (mustAttr && mustAttr.getValue()) || forced.contains(nodes[i].getNodeName());
    if (verdict && off && !must[i])
      verdict = {Refusal::Forbidden, "clustering is off"};
    // what has a host kernel compiles too where it has to
    if (!verdict && verdict.refusal == Refusal::HostKernel && must[i])
      verdict = {};
    compiles[i] = static_cast<bool>(verdict);
    inUnits[i] = !off && !isolated.contains(nodes[i].getNodeName()) &&
                 (verdict || (verdict.refusal == Refusal::HostKernel && nodes[i].getOp() != "Assert"));
    if (verdict)
      continue;
    if (mustAttr && mustAttr.getValue()) {
      nodes[i].emitError("must be compiled (_XlaMustCompile), but ") << verdict.text;
      ok = false;
    }
    refusals[i] = std::move(verdict);
  }
  return success(ok);
}

/// Takes a node out of clusters for good; false where it was out already.
bool FunctionClusters::drop(unsigned i, const Twine &text) {
  if (!compiles[i] && !inUnits[i])
    return false;
  if (compiles[i])
    refusals[i] = {Refusal::HostHandle, text.str()};
  compiles[i] = inUnits[i] = false;
  return true;
}

/// Handles that are no variables tie nodes to each other; where one enters or leaves the graph its nodes stay outside.
void FunctionClusters::tieHandles() {
  std::vector<std::pair<unsigned, StringRef>> loose;
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
  for (auto &[i, text] : loose)
    drop(i, text);
}

/// The conditionals and loops that may become one op each.
std::vector<Unit> FunctionClusters::chooseUnits() {
  std::vector<Unit> units = findUnits(nodes, index, regions, [&](unsigned i) { return inUnits[i] != 0; });
  llvm::erase_if(units, [&](const Unit &unit) {
    const Kind &first = ownKinds[unit.members[0]];
    bool mixed = llvm::any_of(unit.members, [&](unsigned i) {
      return ownKinds[i].device != first.device || ownKinds[i].blockers != first.blockers;
    });
    // executors run loops too; only what has no other way makes one compile where that is asked for
    bool needless = pass.mode == ClusteringMode::Needed && llvm::none_of(unit.members, [&](unsigned i) {
      return compiles[i] && llvm::any_of(ties, [&](auto &tie) { return tie.first == i || tie.second == i; });
    });
    return mixed || needless || badUnits.count(unit.members);
  });
  return units;
}

/// Whether both ends of each tie are in clusters or outside.
bool FunctionClusters::agreeOnTies(ArrayRef<Unit> units) {
  for (auto [a, b] : ties) {
    if (wanted[a] == wanted[b])
      continue;
    const unsigned in = wanted[a] ? a : b, out = wanted[a] ? b : a;
    if (!drop(in, "the handle it shares with '" + Twine(nodes[out].getNodeName()) + "' stays outside"))
      badUnits.insert(unitOf(units, in));
    return false;
  }
  return true;
}

/// A loop ends when all that it was entered with is there, whichever values depend on each other: behind the nodes come
/// the frames, between what enters and what leaves them.
void FunctionClusters::addEdges() {
  graph.emplace(firstFrame + static_cast<unsigned>(regions.numFrames()));
  for (unsigned i = 0; i < nodes.size(); ++i) {
    if (isOp(nodes[i], "Enter"))
      graph->addEdge(i, firstFrame + static_cast<unsigned>(regions.of(nodes[i]).frame));
    else if (isOp(nodes[i], "Exit"))
      graph->addEdge(firstFrame + static_cast<unsigned>(regions.of(nodes[i].getInputs()[0].getDefiningOp()).frame), i);
  }
  for (unsigned i = 0; i < nodes.size(); ++i)
    for (Value operand : nodes[i]->getOperands())
      if (Operation *from = operand.getDefiningOp(); from && !isBackEdge(from, nodes[i]))
        graph->addEdge(index.lookup(from), i);
}

bool FunctionClusters::contractUnits(ArrayRef<Unit> units) {
  for (const Unit &unit : units) {
    std::vector<unsigned> all = unit.members;
    for (int frame : unit.frames)
      all.push_back(firstFrame + static_cast<unsigned>(frame));
    if (!contract(*graph, all)) {
      badUnits.insert(unit.members);
      return false;
    }
  }
  return true;
}

bool FunctionClusters::contractTies(ArrayRef<Unit> units) {
  for (auto [a, b] : ties) {
    if (!wanted[a] || !wanted[b] || (kinds[a] == kinds[b] && graph->merge(a, b)))
      continue;
    if (!drop(a, "cannot be compiled together with '" + Twine(nodes[b].getNodeName()) + "', which shares its handle"))
      badUnits.insert(unitOf(units, a));
    return false;
  }
  return true;
}

/// Forms everything that has to stay together, or takes something out for good and returns false.
bool FunctionClusters::tryForm() {
  kinds = ownKinds;
  for (unsigned i = 0; i < nodes.size(); ++i)
    wanted[i] = compiles[i] && nodes[i].getOp() != "Const";
  std::vector<Unit> units = chooseUnits();
  for (const Unit &unit : units)
    for (unsigned i : unit.members) {
      wanted[i] = true;
      kinds[i].region = unit.region;
    }
  if (!agreeOnTies(units))
    return false;
  addEdges();
  return contractUnits(units) && contractTies(units);
}

bool FunctionClusters::canJoin(unsigned a, unsigned b) {
  return wanted[a] && wanted[b] && kinds[a] == kinds[b] && !isolated.contains(nodes[a].getNodeName()) &&
         !isolated.contains(nodes[b].getNodeName());
}

/// Contracts edges until nothing changes.
void FunctionClusters::joinNeighbours() {
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
          ++pass.refusedCycle;
          if (pass.explain)
            nodes[i].emitRemark("not compiled together with '")
                << nodes[j].getNodeName() << "': a path outside leads from one to the other";
        }
      }
    }
  }
}

std::map<unsigned, std::vector<unsigned>> FunctionClusters::members() {
  std::map<unsigned, std::vector<unsigned>> result;
  for (unsigned i = 0; i < nodes.size(); ++i)
    if (wanted[i])
      result[graph->find(i)].push_back(i);
  return result;
}

/// Clusters with nothing between them are one launch less.
void FunctionClusters::joinSiblings() {
  std::vector<unsigned> heads;
  for (auto &[head, list] : members())
    heads.push_back(list.front());
  if (heads.size() > kMaxSiblings)
    return;
  for (size_t a = 0; a < heads.size(); ++a)
    for (size_t b = a + 1; b < heads.size(); ++b)
      if (graph->find(heads[a]) != graph->find(heads[b]) && canJoin(heads[a], heads[b]))
        graph->merge(heads[a], heads[b]);
}

/// The clusters that are worth a launch, in the order of their first nodes.
std::vector<std::vector<unsigned>> FunctionClusters::worthwhile() {
  std::vector<std::vector<unsigned>> clusters;
  for (auto &[head, list] : members()) {
    unsigned size = 0;
    bool needed = false;
    for (unsigned i : list) {
      graph::NodeOp node = nodes[i];
      size += !isFree(node.getOp());
      needed |= must[i] || Policy::isFunctional(node) || !policy.hasHostKernel(node);
    }
    if (needed || size >= pass.minSize) {
      clusters.push_back(list);
      continue;
    }
    ++pass.refusedTooSmall;
    if (pass.explain)
      nodes[list.front()].emitRemark("not compiled: a cluster of ")
          << size << " nodes that count, all with host kernels, is smaller than " << pass.minSize.getValue();
  }
  llvm::sort(clusters);
  return clusters;
}

LogicalResult FunctionClusters::run(graph::FuncOp func, int &nextCluster) {
  if (failed(regions.analyze(func.getBody().front())))
    return failure();
  for (Operation *op : regions.order())
    if (auto node = dyn_cast<graph::NodeOp>(op)) {
      index[op] = static_cast<unsigned>(nodes.size());
      nodes.push_back(node);
    }
  firstFrame = static_cast<unsigned>(nodes.size());
  DenseMap<Operation *, int> blockers = findBlockers(regions.order());
  for (graph::NodeOp node : nodes)
    ownKinds.push_back({regions.of(node), node->getAttr(graph::kDeviceAttr), blockers.lookup(node)});
  for (std::vector<char> *flags : {&compiles, &inUnits, &must, &wanted})
    flags->resize(nodes.size());
  if (failed(judge()))
    return failure();
  tieHandles();
  while (!tryForm()) {
  }
  for (unsigned i = 0; i < nodes.size(); ++i)
    if (!wanted[i] && refusals.count(i))
      pass.refuse(nodes[i], refusals[i].refusal, refusals[i].text);
  joinNeighbours();
  joinSiblings();
  for (const std::vector<unsigned> &list : worthwhile()) {
    auto name = StringAttr::get(func.getContext(), "lathe_cluster_" + Twine(nextCluster++));
    for (unsigned i : list)
      nodes[i]->setAttr(graph::kClusterAttr, name);
    pass.numClusters += 1;
    pass.numNodes += static_cast<unsigned>(list.size());
  }
  return success();
}

} // namespace

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
    if (!func.isPrivate() && failed(FunctionClusters(*this, policy).run(func, nextCluster)))
      return signalPassFailure();
}

} // namespace lathe::cluster
