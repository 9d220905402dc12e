//===- FusionPlan.cpp - which operations of a block share a kernel ----------===//
//
// Cores take their epilogues first, then row-wise groups and reductions form,
// then every remaining op, last to first, joins its consumers or starts a group.
// Joining the only consumer can never close a cycle; all other merges are checked.
//
//===----------------------------------------------------------------------===//

#include "passes/fusion/FusionPlan.h"

#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Marks.h"
#include "passes/fusion/CoreOps.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallSet.h"

#include <queue>

using namespace mlir;
using namespace lathe;

StringRef lathe::describe(Refusal refusal) {
  switch (refusal) {
  case Refusal::None:
    return "fused";
  case Refusal::TooManyOps:
    return "the kernel has too many operations already";
  case Refusal::Replicated:
    return "its consumer reads each element many times";
  case Refusal::Strided:
    return "it is expensive and its consumer reads it out of order";
  case Refusal::CoreOperand:
    return "its consumer reads it in the inner loop of a product or window";
  case Refusal::OtherShape:
    return "its consumer's loops run over another shape";
  case Refusal::NotElemental:
    return "it has a loop nest of its own";
  case Refusal::NeededElsewhere:
    return "several kernels need it";
  case Refusal::Cycle:
    return "two kernels would wait for each other";
  }
  return "";
}

FusionPlan::FusionPlan(Block &block, FusionLimits limits) : limits(limits) {
  buildNodes(block);
  if (!limits.fuse) {
    planAlone();
    return;
  }
  absorbOperands();
  planCores();
  planRows();
  planReduces();
  planProducers();
  mergeSiblings();
}

/// True for ops that write symbols or may stop the program.
static bool hasOrder(Operation *op) { return !isMemoryEffectFree(op); }

void FusionPlan::buildNodes(Block &block) {
  DenseMap<Operation *, unsigned> index;
  for (Operation &op : block.without_terminator()) {
    index[&op] = nodes.size();
    FusionNode &node = nodes.emplace_back();
    node.op = &op;
    node.cls = classify(&op);
    node.cost = elementCost(&op);
  }
  clusters.emplace(nodes.size());
  for (unsigned i = 0; i < nodes.size(); ++i) {
    SmallVector<unsigned> users;
    for (Operation *user : nodes[i].op->getUsers()) {
      Operation *here = block.findAncestorOpInBlock(*user);
      if (!here || here->hasTrait<OpTrait::IsTerminator>())
        nodes[i].escapes = true;
      else
        users.push_back(index.lookup(here));
    }
    llvm::sort(users);
    users.erase(llvm::unique(users), users.end());
    nodes[i].users.assign(users.begin(), users.end());
    for (unsigned user : users) {
      nodes[user].producers.push_back(i);
      clusters->addEdge(i, user);
    }
  }
  for (unsigned i = nodes.size(); i-- > 0;) {
    auto seldom = [&](unsigned user) {
      auto select = dyn_cast<hlo::SelectOp>(nodes[user].op);
      return nodes[user].aside || (select && select->hasAttr(hlo::shortcutAttr) && select.getOnTrue().getDefiningOp() == nodes[i].op &&
                                   select.getPred().getDefiningOp() != nodes[i].op && select.getOnFalse().getDefiningOp() != nodes[i].op);
    };
    nodes[i].aside = !nodes[i].escapes && !nodes[i].users.empty() && llvm::all_of(nodes[i].users, seldom);
  }
  // Ops with effects keep their order, and what has run-time sizes stays behind the ops that may set them.
  int last = -1;
  for (unsigned i = 0; i < nodes.size(); ++i) {
    Operation *op = nodes[i].op;
    bool ordered = hasOrder(op);
    bool dynamic = llvm::any_of(op->getResultTypes(), [](Type t) {
      auto type = dyn_cast<RankedTensorType>(t);
      return type && !type.hasStaticShape();
    });
    if (last >= 0 && (ordered || dynamic || op->getNumRegions() || isa<hlo::SizeOp>(op)))
      clusters->addEdge(last, i);
    if (ordered)
      last = i;
  }
}

unsigned FusionPlan::sizeOf(ArrayRef<unsigned> members) const {
  const unsigned aside = llvm::count_if(members, [&](unsigned m) { return nodes[m].aside; });
  return members.size() - aside + aside / limits.asideAsOne;
}

unsigned FusionPlan::newGroup(FusionGroup::Kind kind, unsigned anchor) {
  FusionGroup &group = groups.emplace_back();
  group.kind = kind;
  group.anchor = anchor;
  group.members.push_back(anchor);
  group.shape = dyn_cast<RankedTensorType>(nodes[anchor].op->getResult(0).getType());
  nodes[anchor].group = groups.size() - 1;
  return groups.size() - 1;
}

bool FusionPlan::isMember(unsigned node, unsigned group) const {
  return nodes[node].group == static_cast<int>(group) || llvm::is_contained(nodes[node].copies, group);
}

bool FusionPlan::isOutput(unsigned node, unsigned group) const {
  const FusionNode &n = nodes[node];
  if (n.group != static_cast<int>(group))
    return false;
  if (n.escapes)
    return true;
  for (unsigned user : n.users) {
    const FusionNode &u = nodes[user];
    if (u.absorbed || (u.group < 0 && u.copies.empty()))
      return true;
    if ((u.group >= 0 && u.group != n.group) || llvm::any_of(u.copies, [&](unsigned c) { return c != group; }))
      return true;
  }
  return false;
}

void FusionPlan::note(unsigned node, Refusal refusal) {
  if (nodes[node].refusal == Refusal::None)
    nodes[node].refusal = refusal;
}

bool FusionPlan::join(unsigned node, unsigned group) {
  ClusterGraph::Merge done = clusters->merge(groups[group].anchor, node);
  if (done != ClusterGraph::Merge::Done) {
    note(node, Refusal::Cycle);
    return false;
  }
  memberReadings[{node, group}] = readings(node, group);
  groups[group].members.push_back(node);
  nodes[node].group = group;
  return true;
}

void FusionPlan::copyInto(unsigned node, unsigned group) {
  memberReadings[{node, group}] = readings(node, group);
  groups[group].members.push_back(node);
  nodes[node].copies.push_back(group);
  for (unsigned producer : nodes[node].producers)
    clusters->addEdge(producer, groups[group].anchor);
}

//===----------------------------------------------------------------------===//
// Cores and their epilogues
//===----------------------------------------------------------------------===//

void FusionPlan::absorbOperands() {
  for (unsigned i = 0; i < nodes.size(); ++i) {
    FusionNode &node = nodes[i];
    if (node.escapes || node.users.empty() || !llvm::all_of(node.users, [&](unsigned user) {
          return nodes[user].cls == OpClass::Core && readsThrough(nodes[user].op, node.op);
        }))
      continue;
    node.absorbed = true;
    for (unsigned producer : node.producers)
      for (unsigned user : node.users)
        clusters->addEdge(producer, user);
  }
}

void FusionPlan::growEpilogue(unsigned group, unsigned last, unsigned limit) {
  // Nodes inside so far; how many of their users are still outside; ops waiting, in block order.
  SmallVector<unsigned> inside = {last};
  DenseMap<unsigned, unsigned> outside;
  std::priority_queue<unsigned, std::vector<unsigned>, std::greater<unsigned>> waiting;
  llvm::SmallSet<unsigned, 16> seen;
  unsigned live = 0;
  auto enter = [&](unsigned i) {
    unsigned count = nodes[i].users.size() + nodes[i].escapes;
    outside[i] = count;
    live += count > 0;
    for (unsigned user : nodes[i].users)
      if (seen.insert(user).second)
        waiting.push(user);
  };
  enter(last);
  size_t committed = 1;
  RankedTensorType shape = groups[group].shape;
  while (!waiting.empty() && sizeOf(inside) < limit) {
    unsigned i = waiting.top();
    waiting.pop();
    FusionNode &node = nodes[i];
    if (node.cls != OpClass::Elementwise || node.group >= 0)
      continue;
    if (!sameShape(node.op->getResult(0).getType(), shape)) {
      note(i, Refusal::OtherShape);
      continue;
    }
    // a value of ours may only enter as a full tensor
    bool fits = llvm::all_of(node.op->getOperands(), [&](Value v) {
      Operation *def = v.getDefiningOp();
      bool ours = def && llvm::any_of(inside, [&](unsigned m) { return nodes[m].op == def; });
      return !ours || sameShape(v.getType(), shape);
    });
    if (!fits)
      continue;
    for (unsigned producer : node.producers)
      if (auto it = outside.find(producer); it != outside.end() && --it->second == 0)
        --live;
    inside.push_back(i);
    enter(i);
    if (live == 1)
      committed = inside.size();
  }
  for (unsigned i : ArrayRef(inside).take_front(committed).drop_front())
    join(i, group);
  for (unsigned i : ArrayRef(inside).drop_front(committed))
    note(i, Refusal::NeededElsewhere);
}

void FusionPlan::planCores() {
  for (unsigned i = 0; i < nodes.size(); ++i) {
    if (nodes[i].cls != OpClass::Core)
      continue;
    unsigned g = newGroup(FusionGroup::Kind::Core, i), last = i;
    // the transpose behind a product costs nothing: the kernel writes in any order
    if (isa<hlo::DotGeneralOp>(nodes[i].op) && nodes[i].users.size() == 1 && !nodes[i].escapes) {
      unsigned user = nodes[i].users.front();
      if (isa<hlo::TransposeOp>(nodes[user].op) && !nodes[user].absorbed && join(user, g)) {
        groups[g].resultTranspose = user;
        groups[g].shape = cast<RankedTensorType>(nodes[user].op->getResult(0).getType());
        last = user;
      }
    }
    growEpilogue(g, last, limits.maxOps / 2);
  }
}

//===----------------------------------------------------------------------===//
// Rows and reductions
//===----------------------------------------------------------------------===//

/// The dimensions that a reduce removes are the last ones.
static bool reducesTrailing(hlo::ReduceOp op) {
  auto type = cast<RankedTensorType>(op.getInputs().front().getType());
  SmallVector<int64_t> dims(op.getDimensions());
  llvm::sort(dims);
  for (auto [i, d] : llvm::enumerate(dims))
    if (d != type.getRank() - static_cast<int64_t>(dims.size()) + static_cast<int64_t>(i))
      return false;
  return !dims.empty();
}

/// A broadcast of per-row values back over the reduced dimensions.
static bool broadcastsRows(hlo::BroadcastInDimOp op, RankedTensorType row, RankedTensorType full) {
  if (!sameShape(op.getOperand().getType(), row) || !sameShape(op.getType(), full))
    return false;
  for (auto [i, d] : llvm::enumerate(op.getBroadcastDimensions()))
    if (d != static_cast<int64_t>(i))
      return false;
  return true;
}

void FusionPlan::planRows() {
  for (unsigned seed = 0; seed < nodes.size(); ++seed) {
    auto reduce = dyn_cast<hlo::ReduceOp>(nodes[seed].op);
    if (!reduce || nodes[seed].cls != OpClass::Reduce || nodes[seed].group >= 0 ||
        reduce->getNumResults() != 1 || !reducesTrailing(reduce))
      continue;
    auto full = cast<RankedTensorType>(reduce.getInputs().front().getType());
    auto row = cast<RankedTensorType>(reduce.getResult(0).getType());

    // Everything of the two shapes that follows from the reduction.
    SmallVector<unsigned> inside = {seed};
    llvm::SmallSet<unsigned, 32> member, seen;
    member.insert(seed);
    std::priority_queue<unsigned, std::vector<unsigned>, std::greater<unsigned>> waiting;
    auto enter = [&](unsigned i) {
      for (unsigned user : nodes[i].users)
        if (seen.insert(user).second)
          waiting.push(user);
    };
    enter(seed);
    bool back = false;
    while (!waiting.empty() && sizeOf(inside) < limits.maxOps * 3 / 4) {
      unsigned i = waiting.top();
      waiting.pop();
      FusionNode &node = nodes[i];
      if (node.group >= 0)
        continue;
      Type type = node.op->getNumResults() ? node.op->getResult(0).getType() : Type();
      if (node.cls == OpClass::Elementwise) {
        if (!sameShape(type, full) && !sameShape(type, row))
          continue;
        if (!llvm::all_of(node.op->getOperandTypes(), [&](Type t) { return sameShape(t, type); }))
          continue;
      } else if (node.cls == OpClass::Broadcast) {
        if (!broadcastsRows(cast<hlo::BroadcastInDimOp>(node.op), row, full))
          continue;
        back = true;
      } else if (node.cls == OpClass::Reduce) {
        auto other = cast<hlo::ReduceOp>(node.op);
        if (other->getNumResults() != 1 || !sameShape(other.getInputs().front().getType(), full) || !sameShape(type, row) || !reducesTrailing(other))
          continue;
      } else {
        continue;
      }
      inside.push_back(i);
      member.insert(i);
      enter(i);
    }
    if (!back)
      continue;
    unsigned g = newGroup(FusionGroup::Kind::Rows, seed);
    groups[g].shape = full;
    groups[g].rowShape = row;
    for (unsigned i : ArrayRef(inside).drop_front())
      join(i, g);
  }
}

void FusionPlan::planReduces() {
  DenseMap<Value, SmallVector<unsigned, 2>> byInput;
  for (unsigned i = 0; i < nodes.size(); ++i) {
    if (nodes[i].cls != OpClass::Reduce || nodes[i].group >= 0)
      continue;
    auto reduce = cast<hlo::ReduceOp>(nodes[i].op);
    // a sibling over the same input shares its loop
    bool joined = false;
    for (Value input : reduce.getInputs())
      for (unsigned g : byInput.lookup(input)) {
        auto other = cast<hlo::ReduceOp>(nodes[groups[g].anchor].op);
        if (!joined && other.getDimensions() == reduce.getDimensions() &&
            sameShape(other.getInputs().front().getType(), input.getType()) &&
            sizeOf(groups[g].members) < limits.maxOps / 2)
          joined = join(i, g);
      }
    if (joined)
      continue;
    unsigned g = newGroup(FusionGroup::Kind::Reduce, i);
    for (Value input : reduce.getInputs())
      byInput[input].push_back(g);
    if (nodes[i].op->getNumResults() == 1)
      growEpilogue(g, i, limits.maxOps / 2);
  }
}

//===----------------------------------------------------------------------===//
// Producers, last to first
//===----------------------------------------------------------------------===//

unsigned FusionPlan::readings(unsigned index, unsigned g) const {
  unsigned moved = 0, inPlace = 0;
  for (unsigned user : nodes[index].users) {
    if (!isMember(user, g))
      continue;
    auto it = memberReadings.find({user, g});
    unsigned times = it == memberReadings.end() ? 1 : it->second;
    if (nodes[user].cls == OpClass::Index)
      moved += times;
    else
      inPlace = std::max(inPlace, times);
  }
  // Without a bound operations that cost nothing would double it until it overflows.
  return std::clamp(moved + inPlace, 1u, 1u << 16);
}

/// Neighbours of the result lie apart in the operand.
static bool turnsRows(hlo::TransposeOp op) {
  auto type = cast<RankedTensorType>(op.getOperand().getType());
  for (int64_t d : llvm::reverse(op.getPermutation()))
    if (type.getDimSize(d) != 1)
      return llvm::any_of(llvm::seq(d + 1, type.getRank()),
                          [&](int64_t e) { return type.getDimSize(e) != 1; });
  return false;
}

bool FusionPlan::isPadded(unsigned index, unsigned g) const {
  SmallVector<unsigned> work{index};
  llvm::SmallDenseSet<unsigned> seen;
  while (!work.empty())
    for (unsigned user : nodes[work.pop_back_val()].users)
      if (isMember(user, g) && seen.insert(user).second) {
        if (isa<hlo::PadOp>(nodes[user].op))
          return true;
        work.push_back(user);
      }
  return false;
}

Refusal FusionPlan::refuse(unsigned index, unsigned g) const {
  const FusionNode &node = nodes[index];
  const FusionGroup &group = groups[g];
  // gathers are for loops over their own shape
  if (!isElemental(node.cls) || (isa<hlo::GatherOp>(node.op) && group.kind != FusionGroup::Kind::Loop))
    return Refusal::NotElemental;
  if (sizeOf(group.members) >= limits.maxOps)
    return Refusal::TooManyOps;
  Value result = node.op->getResult(0);
  bool broadcast = node.cls == OpClass::Broadcast;
  bool elementwise = node.cls == OpClass::Elementwise;
  if (elementwise && node.cost > 0 && readings(index, g) > limits.maxReadings)
    return Refusal::Replicated;
  if (group.kind == FusionGroup::Kind::Core) {
    if (!sameShape(result.getType(), group.shape) || !(broadcast || elementwise))
      return Refusal::OtherShape;
  } else if (group.kind == FusionGroup::Kind::Rows) {
    bool full = sameShape(result.getType(), group.shape), row = sameShape(result.getType(), group.rowShape);
    if (!(full || row) || !(broadcast || elementwise))
      return Refusal::OtherShape;
    if (elementwise &&
        !llvm::all_of(node.op->getOperandTypes(), [&](Type t) { return sameShape(t, result.getType()); }))
      return Refusal::OtherShape;
  }
  for (unsigned user : node.users) {
    if (!isMember(user, g))
      continue;
    Operation *op = nodes[user].op;
    // what a gather picks from lies in memory
    if (isa<hlo::GatherOp>(op) && node.cls != OpClass::Generator)
      return Refusal::Replicated;
    if (nodes[user].cls == OpClass::Core || static_cast<int>(user) == group.resultTranspose)
      return Refusal::CoreOperand;
    // of a broadcast inside rows or an epilogue only per-row values are computed in place
    if (nodes[user].cls == OpClass::Broadcast && group.kind != FusionGroup::Kind::Loop) {
      bool rows = group.kind == FusionGroup::Kind::Rows &&
                  broadcastsRows(cast<hlo::BroadcastInDimOp>(op), group.rowShape, group.shape);
      if (!rows)
        return Refusal::Replicated;
      continue;
    }
    if (replicatesOperand(op, result) && node.cost > 0)
      return Refusal::Replicated;
    if (nodes[user].cls == OpClass::Reduce && llvm::is_contained(cast<hlo::ReduceOp>(op).getInitValues(), result))
      return Refusal::Replicated;
    if (isa<hlo::TransposeOp, hlo::ReverseOp, hlo::PadOp>(op) && node.cost >= 10)
      return Refusal::Strided;
  }
  if (auto transpose = dyn_cast<hlo::TransposeOp>(node.op);
      transpose && turnsRows(transpose) && isPadded(index, g))
    return Refusal::Strided;
  return Refusal::None;
}

void FusionPlan::planProducers() {
  for (unsigned i = nodes.size(); i-- > 0;) {
    FusionNode &node = nodes[i];
    if (!isElemental(node.cls) || node.cls == OpClass::Generator || node.group >= 0 || node.absorbed)
      continue;
    bool stored = node.escapes;
    SmallVector<unsigned, 4> takers;
    for (unsigned user : node.users) {
      const FusionNode &u = nodes[user];
      SmallVector<unsigned, 4> in(u.copies.begin(), u.copies.end());
      if (u.group >= 0)
        in.push_back(u.group);
      if (in.empty() || u.absorbed) {
        stored = true;
        continue;
      }
      for (unsigned g : in) {
        if (llvm::is_contained(takers, g))
          continue;
        Refusal refusal = refuse(i, g);
        if (refusal != Refusal::None) {
          note(i, refusal);
          stored = true;
        } else {
          takers.push_back(g);
        }
      }
    }
    // a consumer that takes it once and refuses it another time (two places in one group) was counted once
    llvm::sort(takers);

    if (!stored && takers.size() == 1 && join(i, takers.front()))
      continue;
    if (takers.size() > (stored ? 0u : 1u)) {
      bool moves = node.cost == 0 && (node.cls == OpClass::Broadcast || (node.cls == OpClass::Index && !stored));
      bool cheap = node.cost <= 1 && !stored && takers.size() <= 2;
      if (moves || cheap) {
        for (unsigned g : takers)
          copyInto(i, g);
        if (!stored)
          continue;
      } else {
        // one of the consumers computes it and stores it for the others
        bool joined = false;
        for (unsigned g : takers) {
          const FusionGroup &group = groups[g];
          bool loop = group.kind == FusionGroup::Kind::Loop;
          bool rows = group.kind == FusionGroup::Kind::Rows;
          Type type = node.op->getResult(0).getType();
          if ((loop || rows) && sameShape(type, group.shape) && join(i, g)) {
            joined = true;
            break;
          }
        }
        if (joined)
          continue;
        note(i, Refusal::NeededElsewhere);
      }
    }
    // by itself a gather has a kernel of its own already
    if ((node.users.empty() && !node.escapes) || isa<hlo::GatherOp>(node.op))
      continue;
    newGroup(FusionGroup::Kind::Loop, i);
  }
  // numbers and splats that no kernel makes for itself
  for (unsigned i = 0; i < nodes.size(); ++i) {
    FusionNode &node = nodes[i];
    if (node.cls != OpClass::Generator || isa<hlo::ConstantOp>(node.op))
      continue;
    bool stored = node.escapes || llvm::any_of(node.users, [&](unsigned user) {
      return nodes[user].absorbed || nodes[user].cls == OpClass::Core ||
             (nodes[user].group < 0 && nodes[user].copies.empty());
    });
    if (stored)
      newGroup(FusionGroup::Kind::Loop, i);
  }
}

bool FusionPlan::mergeGroups(unsigned a, unsigned b) {
  if (sizeOf(groups[a].members) + sizeOf(groups[b].members) > limits.maxOps)
    return false;
  if (clusters->merge(groups[a].anchor, groups[b].anchor) != ClusterGraph::Merge::Done)
    return false;
  for (unsigned m : groups[b].members) {
    if (nodes[m].group == static_cast<int>(b))
      nodes[m].group = a;
    llvm::replace(nodes[m].copies, b, a);
    // computed for both is computed once; computed for others and stored there is not ours
    if (llvm::is_contained(groups[a].members, m)) {
      if (nodes[m].group == static_cast<int>(a))
        llvm::erase(nodes[m].copies, a);
      else if (llvm::count(nodes[m].copies, a) > 1)
        nodes[m].copies.erase(llvm::find(nodes[m].copies, a));
      continue;
    }
    groups[a].members.push_back(m);
  }
  groups[b].members.clear();
  groups[b].dead = true;
  return true;
}

void FusionPlan::mergeSiblings() {
  // Loops over the same shape that read the same value; nearby ones only.
  for (unsigned i = 0; i < nodes.size(); ++i) {
    if (nodes[i].users.size() < 2 || nodes[i].cls == OpClass::Generator || nodes[i].op->getNumResults() != 1)
      continue;
    SmallVector<unsigned, 8> readers;
    for (unsigned user : nodes[i].users) {
      int g = nodes[user].group;
      if (g < 0 || groups[g].dead || groups[g].kind != FusionGroup::Kind::Loop || nodes[i].group == g ||
          llvm::is_contained(readers, static_cast<unsigned>(g)))
        continue;
      readers.push_back(g);
      if (readers.size() == 16)
        break;
    }
    for (unsigned a = 0; a < readers.size(); ++a)
      for (unsigned b = a + 1; b < readers.size(); ++b)
        if (!groups[readers[a]].dead && !groups[readers[b]].dead &&
            sameShape(groups[readers[a]].shape, groups[readers[b]].shape))
          mergeGroups(readers[a], readers[b]);
  }
}

void FusionPlan::planAlone() {
  for (unsigned i = 0; i < nodes.size(); ++i) {
    FusionNode &node = nodes[i];
    if (node.users.empty() && !node.escapes)
      continue;
    if (node.cls == OpClass::Core)
      newGroup(FusionGroup::Kind::Core, i);
    else if (node.cls == OpClass::Reduce)
      newGroup(FusionGroup::Kind::Reduce, i);
    else if (isElemental(node.cls) && !isa<hlo::ConstantOp, hlo::GatherOp>(node.op))
      newGroup(FusionGroup::Kind::Loop, i);
  }
}

SmallVector<FusionPlan::Step> FusionPlan::order() {
  SmallVector<std::pair<unsigned, Step>> ranked;
  for (auto [g, group] : llvm::enumerate(groups)) {
    if (group.dead)
      continue;
    llvm::sort(group.members);
    group.members.erase(llvm::unique(group.members), group.members.end());
    Step step;
    step.group = g;
    ranked.push_back({clusters->rank(group.anchor), step});
  }
  for (unsigned i = 0; i < nodes.size(); ++i) {
    const FusionNode &node = nodes[i];
    if (node.group >= 0)
      continue;
    Step step;
    step.node = i;
    ranked.push_back({clusters->rank(i), step});
  }
  llvm::sort(ranked, [](const auto &a, const auto &b) { return a.first < b.first; });
  SmallVector<Step> steps;
  for (auto &[rank, step] : ranked)
    steps.push_back(step);
  return steps;
}
