//===- FunctionalizeConditionals.cpp - Switch and Merge into If nodes -----===//
//
// State of a node: the predicates, with their values, under which it runs at all. Switch adds one, Merge of the two
// sides of one predicate takes it away. Predicates are equal when they are the same value, looked at through Identity
// and Switch.
//
// The Merges of one predicate, state and level become one If, deepest state first. Level: how many such Merges lie on
// the longest path to a node. Merges of one level do not depend on each other, so an If for them closes no cycle.
//
//===----------------------------------------------------------------------===//
#include "passes/cluster/Outline.h"

#include "dialects/graph/Types.h"
#include "mlir/IR/Builders.h"

#include <climits>
#include <map>

using namespace mlir;

namespace lathe::cluster {

static constexpr size_t kMaxDepth = 100;
// Identities between a predicate and its use.
static constexpr int kMaxHops = 1000;

namespace {
struct Literal {
  Value predicate;
  bool value;
  bool operator==(const Literal &o) const { return predicate == o.predicate && value == o.value; }
};

struct State {
  SmallVector<Literal, 4> literals; // outermost first
  bool dead = false;                // never runs

  std::optional<bool> find(Value predicate) const {
    for (const Literal &l : literals)
      if (l.predicate == predicate)
        return l.value;
    return std::nullopt;
  }
};
using StatePtr = std::shared_ptr<const State>;

/// What one Merge, or a node that must run on one side only, needs of its If.
struct Joint {
  graph::NodeOp node;
  Value predicate;
  Value sides[2];   // the Merge's inputs, by the predicate's value
  int inputs[2] = {-1, -1};
  StatePtr state;   // of the joint
  int control = -1; // for a node that is no Merge: the side it runs on
  int level = 0;
};

class ConditionalFunctionalizer {
public:
  ConditionalFunctionalizer(graph::FuncOp func, ModuleOp module, SymbolTable &symbols,
                            SmallVectorImpl<graph::FuncOp> &created)
      : func(func), module(module), symbols(symbols), created(created), empty(std::make_shared<State>()) {}

  LogicalResult run(unsigned &count);

private:
  LogicalResult findStates();
  LogicalResult findMergeState(graph::NodeOp merge);
  bool forwardMerges();
  void forwardSwitches();
  StatePtr stateOf(Value value);
  FailureOr<StatePtr> join(StatePtr a, StatePtr b, Operation *op);
  void findLevels(size_t depth);
  LogicalResult convert(ArrayRef<Joint *> group);
  Value choosePredicate(const Joint &joint);
  LogicalResult checkRest();

  graph::FuncOp func;
  ModuleOp module;
  SymbolTable &symbols;
  SmallVectorImpl<graph::FuncOp> &created;
  StatePtr empty;
  std::vector<Operation *> order;
  DenseMap<Operation *, StatePtr> states;
  std::vector<Joint> joints;
  std::vector<std::pair<graph::NodeOp, int>> forwards; // Merges of which only one input can be alive
};
} // namespace

static Value canonicalPredicate(Value value) {
  for (int hops = 0; hops < kMaxHops; ++hops) {
    auto node = value.getDefiningOp<graph::NodeOp>();
    if (!node || (!isOp(node, "Identity") && !isOp(node, "Switch")) || node.getInputs().empty())
      break;
    value = node.getInputs()[0];
  }
  return value;
}

static std::optional<bool> constantPredicate(Value value) {
  auto node = value.getDefiningOp<graph::NodeOp>();
  if (!isOp(node, "Const"))
    return std::nullopt;
  auto elements = node.getNodeAttr<DenseElementsAttr>("value");
  if (!elements || !elements.getElementType().isInteger(1) || elements.getNumElements() != 1)
    return std::nullopt;
  return *elements.getValues<bool>().begin();
}

FailureOr<StatePtr> ConditionalFunctionalizer::join(StatePtr a, StatePtr b, Operation *op) {
  if (a == b || b->literals.empty())
    return b->dead ? b : a;
  if (a->literals.empty())
    return a->dead ? a : b;
  State joined = *a;
  joined.dead |= b->dead;
  bool grew = false;
  for (const Literal &l : b->literals) {
    std::optional<bool> known = joined.find(l.predicate);
    if (!known) {
      joined.literals.push_back(l);
      grew = true;
    } else if (*known != l.value) {
      joined.dead = true;
    }
  }
  if (!grew && joined.dead == a->dead)
    return a;
  if (joined.literals.size() > kMaxDepth)
    return op->emitError("conditionals nest too deep");
  return StatePtr(std::make_shared<State>(std::move(joined)));
}

StatePtr ConditionalFunctionalizer::stateOf(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return empty;
  StatePtr state = states.lookup(op);
  if (!state)
    state = empty;
  if (!isOp(op, "Switch") || isa<graph::ControlType>(value.getType()))
    return state;
  auto node = cast<graph::NodeOp>(op);
  bool side = cast<OpResult>(value).getResultNumber() == 1;
  Value predicate = canonicalPredicate(node.getInputs()[1]);
  std::optional<bool> known = constantPredicate(predicate);
  if (!known)
    known = state->find(predicate);
  if (known && *known == side)
    return state;
  State switched = *state;
  if (known)
    switched.dead = true;
  else
    switched.literals.push_back({predicate, side});
  return std::make_shared<State>(std::move(switched));
}

LogicalResult ConditionalFunctionalizer::findMergeState(graph::NodeOp merge) {
  SmallVector<std::pair<int, StatePtr>> alive;
  for (auto [i, input] : llvm::enumerate(merge.getInputs()))
    if (StatePtr state = stateOf(input); !state->dead)
      alive.push_back({static_cast<int>(i), state});
  if (alive.size() < 2) {
    states[merge] = alive.empty() ? stateOf(merge.getInputs()[0]) : alive[0].second;
    if (!alive.empty())
      forwards.push_back({merge, alive[0].first});
    return success();
  }
  if (alive.size() > 2)
    return merge.emitError() << "expected a Merge of two sides, found " << alive.size();
  State &a = const_cast<State &>(*alive[0].second), &b = const_cast<State &>(*alive[1].second);
  Joint joint;
  joint.node = merge;
  std::optional<bool> sideOfA;
  for (const Literal &l : llvm::reverse(a.literals))
    if (std::optional<bool> other = b.find(l.predicate); !sideOfA && other && *other != l.value) {
      joint.predicate = l.predicate;
      sideOfA = l.value;
    }
  // a side that depends on nothing is alive always: it is taken when the other one is not
  if (!sideOfA && a.literals.size() != b.literals.size()) {
    const State &deeper = a.literals.size() > b.literals.size() ? a : b;
    joint.predicate = deeper.literals.back().predicate;
    sideOfA = &deeper == &a ? deeper.literals.back().value : !deeper.literals.back().value;
  }
  if (!sideOfA)
    return merge.emitError("merges values that are not the two sides of one condition");
  State merged;
  for (const Literal &l : a.literals)
    if (l.predicate != joint.predicate && b.find(l.predicate) == l.value)
      merged.literals.push_back(l);
  joint.inputs[*sideOfA] = alive[0].first;
  joint.inputs[!*sideOfA] = alive[1].first;
  for (int side : {0, 1})
    joint.sides[side] = merge.getInputs()[static_cast<unsigned>(joint.inputs[side])];
  joint.state = std::make_shared<State>(std::move(merged));
  states[merge] = joint.state;
  joints.push_back(joint);
  return success();
}

LogicalResult ConditionalFunctionalizer::findStates() {
  FailureOr<std::vector<Operation *>> found = orderNodes(func.getBody().front());
  if (failed(found))
    return failure();
  order = std::move(*found);
  states.clear();
  joints.clear();
  forwards.clear();
  for (Operation *op : order) {
    auto node = dyn_cast<graph::NodeOp>(op);
    if (!node)
      continue;
    if (isOp(op, "Switch") && node.getInputs().size() != 2)
      return node.emitError("expected a Switch of two inputs");
    if (isOp(op, "Merge") && !node.getInputs().empty()) {
      if (failed(findMergeState(node)))
        return failure();
      continue;
    }
    StatePtr state = empty;
    for (Value operand : node->getOperands()) {
      FailureOr<StatePtr> joined = join(state, stateOf(operand), op);
      if (failed(joined))
        return failure();
      state = *joined;
    }
    if (!state->literals.empty() || state->dead)
      states[op] = state;
  }
  // targets that run on one side only
  auto ret = cast<graph::ReturnOp>(func.getBody().front().getTerminator());
  for (Value target : ret.getTargets()) {
    auto node = target.getDefiningOp<graph::NodeOp>();
    StatePtr state = stateOf(target);
    if (state->literals.empty() || state->dead)
      continue;
    Joint joint;
    joint.node = node;
    joint.predicate = state->literals.back().predicate;
    joint.control = state->literals.back().value;
    State outer = *state;
    outer.literals.pop_back();
    joint.state = std::make_shared<State>(std::move(outer));
    joints.push_back(joint);
  }
  return success();
}

/// Merges whose other input is dead for a constant predicate. True when there were any.
bool ConditionalFunctionalizer::forwardMerges() {
  for (auto [merge, input] : forwards) {
    OpBuilder b(merge);
    if (!merge.getOutputs()[1].use_empty())
      merge.getOutputs()[1].replaceAllUsesWith(indexConstant(b, merge.getLoc(), input));
    Value value = merge.getInputs()[static_cast<unsigned>(input)];
    auto identity = graph::NodeOp::create(
        b, merge.getLoc(), merge.getOutputs()[0].getType(), "Identity", value, merge.getControls(),
        b.getDictionaryAttr(b.getNamedAttr("T", TypeAttr::get(cast<TensorType>(value.getType()).getElementType()))));
    merge.getOutputs()[0].replaceAllUsesWith(identity.getOutputs()[0]);
    merge.getControl().replaceAllUsesWith(identity.getControl());
    merge.erase();
  }
  bool any = !forwards.empty();
  forwards.clear();
  return any;
}

/// Switches on constants hand their data on; the other side stays with the Switch and is dead.
void ConditionalFunctionalizer::forwardSwitches() {
  for (graph::NodeOp node : llvm::to_vector(func.getBody().front().getOps<graph::NodeOp>())) {
    if (!isOp(node, "Switch") || node.getInputs().size() != 2)
      continue;
    std::optional<bool> known = constantPredicate(canonicalPredicate(node.getInputs()[1]));
    if (!known)
      continue;
    OpBuilder b(node);
    Value data = node.getInputs()[0], result = node.getOutputs()[*known];
    auto identity = graph::NodeOp::create(
        b, node.getLoc(), result.getType(), "Identity", data, node.getControls(),
        b.getDictionaryAttr(b.getNamedAttr("T", TypeAttr::get(cast<TensorType>(data.getType()).getElementType()))));
    result.replaceAllUsesWith(identity.getOutputs()[0]);
    node.getControl().replaceAllUsesWith(identity.getControl());
  }
}

void ConditionalFunctionalizer::findLevels(size_t depth) {
  DenseMap<Operation *, int> levels;
  DenseMap<Operation *, Joint *> jointOf;
  for (Joint &joint : joints)
    if (joint.state->literals.size() == depth && joint.control < 0)
      jointOf[joint.node] = &joint;
  for (Operation *op : order) {
    int level = 0;
    for (Value operand : op->getOperands())
      if (Operation *from = operand.getDefiningOp())
        level = std::max(level, levels.lookup(from));
    if (Joint *joint = jointOf.lookup(op))
      joint->level = ++level;
    if (level)
      levels[op] = level;
  }
  for (Joint &joint : joints)
    if (joint.control >= 0)
      joint.level = levels.lookup(joint.node) + 1;
}

/// A value of the predicate that is computed where the If belongs: the operand of a Switch in the If's own state.
Value ConditionalFunctionalizer::choosePredicate(const Joint &joint) {
  Value best = joint.predicate;
  size_t bestSize = 0;
  for (Operation *op : order) {
    if (!isOp(op, "Switch"))
      continue;
    Value operand = cast<graph::NodeOp>(op).getInputs()[1];
    if (canonicalPredicate(operand) != joint.predicate)
      continue;
    StatePtr state = stateOf(operand);
    bool within = !state->dead && llvm::all_of(state->literals, [&](const Literal &l) {
      return joint.state->find(l.predicate) == l.value;
    });
    if (within && state->literals.size() > bestSize) {
      best = operand;
      bestSize = state->literals.size();
    }
  }
  return best;
}

LogicalResult ConditionalFunctionalizer::convert(ArrayRef<Joint *> group) {
  Joint &first = *group.front();
  OpBuilder b(first.node);
  Value predicate = choosePredicate(first);
  SmallVector<Value> outputs[2], targets[2], results;
  SmallVector<Type> types;
  SmallVector<Attribute> elementTypes;
  auto addOutput = [&](Value result, Value falseSide, Value trueSide) {
    results.push_back(result);
    outputs[0].push_back(falseSide);
    outputs[1].push_back(trueSide);
    types.push_back(unrankedType(result));
    elementTypes.push_back(TypeAttr::get(cast<TensorType>(result.getType()).getElementType()));
  };
  for (Joint *joint : group) {
    if (joint->control >= 0) {
      targets[joint->control].push_back(joint->node.getControl());
      continue;
    }
    addOutput(joint->node.getOutputs()[0], joint->sides[0], joint->sides[1]);
    Value index = joint->node.getOutputs()[1];
    if (index.use_empty())
      continue;
    Value indices[2];
    for (int side : {0, 1})
      indices[side] = indexConstant(b, joint->node.getLoc(), joint->inputs[side]);
    addOutput(index, indices[0], indices[1]);
  }

  llvm::SetVector<Value> captures;
  llvm::SetVector<Value> controls;
  std::optional<Slice> slices[2];
  for (int side : {1, 0}) {
    slices[side].emplace([&, side](Value value) {
      auto node = value.getDefiningOp<graph::NodeOp>();
      if (!node)
        return Resolution::outside();
      if (isOp(node, "Switch") && !isa<graph::ControlType>(value.getType()) &&
          canonicalPredicate(node.getInputs()[1]) == first.predicate)
        return Resolution::as(node.getInputs()[0]);
      StatePtr state = states.lookup(node);
      return state && state->find(first.predicate) == (side == 1) ? Resolution::inside() : Resolution::outside();
    });
    for (Value value : outputs[side])
      slices[side]->addValue(value);
    for (Value target : targets[side])
      slices[side]->addControl(target);
    if (!slices[side]->valid())
      return first.node.emitError("is part of a conditional that refers to itself");
    captures.insert(slices[side]->captures.begin(), slices[side]->captures.end());
    controls.insert(slices[side]->outsideControls.begin(), slices[side]->outsideControls.end());
  }
  std::string name = constructName(first.node);
  SmallVector<Value> operands{predicate};
  SmallVector<Attribute> inputTypes;
  for (Value capture : captures) {
    operands.push_back(capture);
    inputTypes.push_back(TypeAttr::get(cast<TensorType>(capture.getType()).getElementType()));
  }
  Attribute branches[2];
  for (int side : {1, 0}) {
    graph::FuncOp branch = slices[side]->build(module, symbols, name + (side ? "_then" : "_else"), {}, captures,
                                               outputs[side], targets[side]);
    created.push_back(branch);
    branches[side] = graph::FuncAttr::get(b.getContext(), FlatSymbolRefAttr::get(branch.getSymNameAttr()),
                                          DictionaryAttr());
  }
  Type predicateType = cast<TensorType>(predicate.getType()).getElementType();
  auto conditional = graph::NodeOp::create(
      b, graph::makeNodeLoc(b.getContext(), name, "If"), types, "If", operands, controls.getArrayRef(),
      b.getDictionaryAttr({b.getNamedAttr("Tcond", TypeAttr::get(predicateType)),
                           b.getNamedAttr("Tin", b.getArrayAttr(inputTypes)),
                           b.getNamedAttr("Tout", b.getArrayAttr(elementTypes)),
                           b.getNamedAttr("else_branch", branches[0]),
                           b.getNamedAttr("output_shapes", b.getArrayAttr({})),
                           b.getNamedAttr("then_branch", branches[1])}));
  for (auto [result, value] : llvm::zip(results, conditional.getOutputs()))
    result.replaceAllUsesWith(value);
  auto ret = cast<graph::ReturnOp>(func.getBody().front().getTerminator());
  for (Joint *joint : group) {
    if (joint->control < 0) {
      joint->node.getControl().replaceAllUsesWith(conditional.getControl());
      continue;
    }
    for (OpOperand &use : ret->getOpOperands())
      if (use.get() == joint->node.getControl())
        use.set(conditional.getControl());
  }
  return success();
}

LogicalResult ConditionalFunctionalizer::checkRest() {
  for (graph::NodeOp node : func.getBody().front().getOps<graph::NodeOp>())
    if (decidesFrames(node))
      return node.emitError("an output or target depends on which side of this condition is taken");
  return success();
}

LogicalResult ConditionalFunctionalizer::run(unsigned &count) {
  bool hasAny = llvm::any_of(func.getBody().front(),
                             [](Operation &op) { return isOp(&op, "Switch") || isOp(&op, "Merge"); });
  if (!hasAny)
    return success();
  forwardSwitches();
  while (true) {
    if (failed(findStates()))
      return failure();
    if (forwardMerges())
      continue;
    if (joints.empty())
      break;
    size_t depth = 0;
    for (const Joint &joint : joints)
      depth = std::max(depth, joint.state->literals.size());
    findLevels(depth);
    int level = INT_MAX;
    for (const Joint &joint : joints)
      if (joint.state->literals.size() == depth)
        level = std::min(level, joint.level);
    std::vector<SmallVector<Joint *>> groups;
    std::map<std::vector<uintptr_t>, size_t> groupOf;
    for (Joint &joint : joints) {
      // later levels see other values once this one's Merges are replaced
      if (joint.state->literals.size() != depth || joint.level != level)
        continue;
      std::vector<uintptr_t> key{reinterpret_cast<uintptr_t>(joint.predicate.getAsOpaquePointer())};
      for (const Literal &l : joint.state->literals) {
        key.push_back(reinterpret_cast<uintptr_t>(l.predicate.getAsOpaquePointer()));
        key.push_back(l.value);
      }
      auto [it, isNew] = groupOf.try_emplace(std::move(key), groups.size());
      if (isNew)
        groups.emplace_back();
      groups[it->second].push_back(&joint);
    }
    for (SmallVector<Joint *> &group : groups) {
      if (failed(convert(group)))
        return failure();
      ++count;
    }
    cleanUp(func);
  }
  cleanUp(func);
  return checkRest();
}

LogicalResult functionalizeConditionals(graph::FuncOp func, ModuleOp module, SymbolTable &symbols,
                                        SmallVectorImpl<graph::FuncOp> &created, unsigned &count) {
  return ConditionalFunctionalizer(func, module, symbols, created).run(count);
}

} // namespace lathe::cluster
