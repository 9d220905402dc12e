//===- Outline.cpp - moving parts of a graph into functions ---------------===//
#include "passes/cluster/Outline.h"

#include "dialects/graph/Types.h"
#include "ops/Flags.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace lathe::cluster {

StringRef plainOp(Operation *op) {
  auto node = dyn_cast_or_null<graph::NodeOp>(op);
  if (!node)
    return {};
  StringRef name = node.getOp();
  if (name == "RefSwitch" || name == "RefMerge" || name == "RefEnter" || name == "RefExit" ||
      name == "RefNextIteration" || name == "RefIdentity")
    name.consume_front("Ref");
  return name;
}

static StringRef opOf(Operation *op) {
  auto node = dyn_cast_or_null<graph::NodeOp>(op);
  return node ? node.getOp() : StringRef();
}

bool decidesFrames(Operation *op) { return ops::is(opOf(op), ops::Flag::Frames); }
bool isBackEdge(Operation *from, Operation *to) { return ops::isBackEdge(opOf(from), opOf(to)); }

Type unrankedType(Value value) {
  return UnrankedTensorType::get(cast<TensorType>(value.getType()).getElementType());
}

Value indexConstant(OpBuilder &b, Location loc, int32_t index) {
  auto type = RankedTensorType::get({}, b.getI32Type());
  return graph::NodeOp::create(b, loc, type, "Const", ValueRange(), ValueRange(),
                               b.getDictionaryAttr({b.getNamedAttr("dtype", TypeAttr::get(b.getI32Type())),
                                                    b.getNamedAttr("value", DenseElementsAttr::get(type, index))}))
      .getOutputs()[0];
}

std::string constructName(Operation *op) {
  StringRef name = graph::getNodeName(op->getLoc());
  if (name.empty())
    return isOp(op, "LoopCond") ? "loop" : "conditional";
  size_t slash = name.rfind('/');
  return (slash == StringRef::npos || slash == 0 ? name : name.take_front(slash)).str();
}

FailureOr<std::vector<Operation *>> orderNodes(Block &block) {
  enum : char { New, Open, Done };
  DenseMap<Operation *, char> state;
  std::vector<Operation *> order;
  SmallVector<std::pair<Operation *, unsigned>> stack;
  for (Operation &root : block) {
    if (state[&root] != New)
      continue;
    state[&root] = Open;
    stack.push_back({&root, 0});
    while (!stack.empty()) {
      auto &[op, next] = stack.back();
      if (next == op->getNumOperands()) {
        state[op] = Done;
        order.push_back(op);
        stack.pop_back();
        continue;
      }
      Operation *from = op->getOperand(next++).getDefiningOp();
      if (!from || isBackEdge(from, op))
        continue;
      char &s = state[from];
      if (s == Open)
        return from->emitError("is part of a cycle");
      if (s == New) {
        s = Open;
        stack.push_back({from, 0});
      }
    }
  }
  return order;
}

void cleanUp(graph::FuncOp func) {
  Block &block = func.getBody().front();
  DenseSet<Operation *> needed;
  SmallVector<Operation *> work{block.getTerminator()};
  needed.insert(block.getTerminator());
  while (!work.empty())
    for (Value operand : work.pop_back_val()->getOperands())
      if (Operation *from = operand.getDefiningOp(); from && needed.insert(from).second)
        work.push_back(from);
  SmallVector<Operation *> dead;
  for (Operation &op : block)
    if (!needed.count(&op)) {
      op.dropAllReferences();
      dead.push_back(&op);
    }
  for (Operation *op : dead) {
    op->dropAllUses();
    op->erase();
  }
  // replaced nodes may have known their shapes
  auto ret = cast<graph::ReturnOp>(block.getTerminator());
  func.setFunctionType(FunctionType::get(func.getContext(), func.getArgumentTypes(), ret.getOutputs().getTypes()));
  FailureOr<std::vector<Operation *>> order = orderNodes(block);
  if (succeeded(order))
    for (Operation *op : *order)
      if (op != block.getTerminator())
        op->moveBefore(block.getTerminator());
}

//===----------------------------------------------------------------------===//
// Slice
//===----------------------------------------------------------------------===//

Resolution Slice::resolve(Value value, Value &stands) {
  stands = value;
  // a loop's Switch may stand for a Switch ..., at most as often as there are nodes
  for (unsigned hops = 0; hops < 1'000'000; ++hops) {
    Resolution r = resolver(stands);
    if (r.kind == Resolution::Alias) {
      stands = r.alias;
      continue;
    }
    if (r.kind == Resolution::Outside && isOp(stands, "Const")) {
      outsideConstants.insert(stands.getDefiningOp());
      return Resolution::inside();
    }
    return r;
  }
  ok = false;
  return Resolution::outside();
}

void Slice::addValue(Value value) {
  Value stands;
  Resolution r = resolve(value, stands);
  if (r.kind == Resolution::Outside)
    captures.insert(stands);
  else if (r.kind == Resolution::Inside && nodes.insert(stands.getDefiningOp()))
    work.push_back(stands.getDefiningOp());
  drain();
}

/// Edges from control flow's own nodes order nothing: what they stand for is computed by the construct itself. A Merge that ends a condition
/// stands for all that its sides do.
static bool isPivot(Operation *op) {
  if (isOp(op, "Identity")) {
    auto node = cast<graph::NodeOp>(op);
    Operation *from = node.getInputs().empty() ? nullptr : node.getInputs()[0].getDefiningOp();
    return (isOp(from, "Switch") || isOp(from, "Merge")) && isPivot(from) && node.getControls().empty();
  }
  if (isOp(op, "Merge"))
    return llvm::any_of(cast<graph::NodeOp>(op).getInputs(), [&](Value v) { return isBackEdge(v.getDefiningOp(), op); });
  return decidesFrames(op) && !isOp(op, "Exit");
}

void Slice::addControl(Value control) {
  Operation *op = control.getDefiningOp();
  if (isPivot(op))
    return;
  Resolution r = resolver(control);
  if (r.kind == Resolution::Outside)
    outsideControls.insert(control);
  else if (r.kind == Resolution::Inside && nodes.insert(op))
    work.push_back(op);
  drain();
}

void Slice::drain() {
  while (!work.empty()) {
    auto node = cast<graph::NodeOp>(work.pop_back_val());
    // a constant taken in from outside leaves its edges behind
    if (outsideConstants.contains(node))
      continue;
    for (Value input : node.getInputs()) {
      Value stands;
      Resolution r = resolve(input, stands);
      if (r.kind == Resolution::Outside)
        captures.insert(stands);
      else if (r.kind == Resolution::Inside && nodes.insert(stands.getDefiningOp()))
        work.push_back(stands.getDefiningOp());
    }
    for (Value control : node.getControls()) {
      if (isPivot(control.getDefiningOp()))
        continue;
      Resolution r = resolver(control);
      if (r.kind == Resolution::Outside)
        outsideControls.insert(control);
      else if (r.kind == Resolution::Inside && nodes.insert(control.getDefiningOp()))
        work.push_back(control.getDefiningOp());
    }
  }
}

graph::FuncOp Slice::build(ModuleOp module, SymbolTable &symbols, StringRef name, ArrayRef<Type> argTypes,
                           const llvm::SetVector<Value> &allCaptures, ValueRange outputs, ValueRange targets) {
  OpBuilder b(module.getContext());
  SmallVector<Type> types(argTypes), resultTypes;
  for (Value capture : allCaptures)
    types.push_back(unrankedType(capture));
  Location loc = NameLoc::get(b.getStringAttr(name));
  auto func = graph::FuncOp::create(b, loc, name, b.getFunctionType(types, {}));
  func.setSymVisibility("private");
  symbols.insert(func, module.getBody()->end());
  Block &block = func.getBody().front();
  b.setInsertionPointToEnd(&block);

  IRMapping map; // of values inside and captures
  for (auto [i, capture] : llvm::enumerate(allCaptures))
    map.map(capture, block.getArgument(static_cast<unsigned>(argTypes.size() + i)));
  SmallVector<std::pair<graph::NodeOp, graph::NodeOp>> clones;
  for (Operation *op : nodes) {
    auto old = cast<graph::NodeOp>(op);
    // operands follow once all clones exist: the order of nodes in a graph is free
    auto clone = graph::NodeOp::create(b, old.getLoc(), old.getOutputs().getTypes(), old.getOp(), ValueRange(),
                                       ValueRange(), old.getAttrs());
    for (auto [from, to] : llvm::zip(old->getResults(), clone->getResults()))
      map.map(from, to);
    clones.push_back({old, clone});
  }
  auto lookup = [&](Value value) -> Value {
    Value stands;
    Resolution r = resolve(value, stands);
    if (r.kind == Resolution::Argument)
      return block.getArgument(static_cast<unsigned>(r.argument));
    return map.lookupOrNull(stands);
  };
  auto mapControls = [&](ValueRange controls) {
    SmallVector<Value> mapped;
    for (Value control : controls)
      if (Value to = map.lookupOrNull(control); to && !isPivot(control.getDefiningOp()))
        mapped.push_back(to);
    return mapped;
  };
  for (auto &[old, clone] : clones) {
    SmallVector<Value> inputs;
    for (Value input : old.getInputs())
      inputs.push_back(lookup(input));
    clone.getInputsMutable().assign(inputs);
    if (!outsideConstants.contains(old))
      clone.getControlsMutable().assign(mapControls(old.getControls()));
  }
  SmallVector<Value> results;
  for (Value output : outputs) {
    Value value = lookup(output);
    // both sides of a conditional, and each turn of a loop, give the same type
    if (value.getType() != unrankedType(output)) {
      auto identity = graph::NodeOp::create(
          b, value.getLoc(), unrankedType(output), "Identity", value, ValueRange(),
          b.getDictionaryAttr(b.getNamedAttr("T", TypeAttr::get(cast<TensorType>(value.getType()).getElementType()))));
      value = identity.getOutputs()[0];
    }
    results.push_back(value);
    resultTypes.push_back(value.getType());
  }
  graph::ReturnOp::create(b, loc, results, mapControls(targets));
  func.setFunctionType(b.getFunctionType(types, resultTypes));
  return func;
}

} // namespace lathe::cluster
