//===- FunctionalizeLoops.cpp - frames into While nodes -------------------===//
//
// Frame: the nodes between the Enters of one name and their Exits; frames nest. A loop variable is a Merge of an Enter
// and a NextIteration; what enters without a Merge, or is used from outside without an Enter, is invariant.
//
//   Enter ─► Merge ─► ... ─► LoopCond              While(enter values, invariants)
//              └─► Switch ─0─► Exit           ⇒      cond: Merge values → LoopCond's input
//                    └──1──► ... ─► NextIteration   body: Switch:1 → NextIteration's inputs, invariants as they came
//
// Work between Merge and Switch is done in the condition and, where the body uses it, again in the body.
//
//===----------------------------------------------------------------------===//
#include "passes/cluster/Outline.h"

#include "dialects/graph/Types.h"
#include "mlir/IR/Builders.h"

#include <map>

using namespace mlir;

namespace lathe::cluster {

static constexpr int kMaxDepth = 100;

namespace {
struct Frame {
  std::string name;
  Frame *parent = nullptr;
  int depth = 0;
  SmallVector<graph::NodeOp> enters, exits, loopConds, merges;
};

struct LoopVariable {
  graph::NodeOp merge, next;
  Value initial;
};

class LoopFunctionalizer {
public:
  LoopFunctionalizer(graph::FuncOp func, ModuleOp module, SymbolTable &symbols,
                     SmallVectorImpl<graph::FuncOp> &created)
      : func(func), module(module), symbols(symbols), created(created) {}

  LogicalResult run(unsigned &count);

private:
  LogicalResult findFrames();
  LogicalResult convert(Frame &frame);
  FailureOr<SmallVector<LoopVariable>> findVariables(Frame &frame);
  Resolution resolve(Frame &frame, graph::NodeOp loopCond, const DenseMap<Operation *, int> &variableOf, Value value);

  graph::FuncOp func;
  ModuleOp module;
  SymbolTable &symbols;
  SmallVectorImpl<graph::FuncOp> &created;
  std::vector<std::unique_ptr<Frame>> frames;
  DenseMap<Operation *, Frame *> frameOf; // where the node's results live; absent: outside of all loops
};
} // namespace

LogicalResult LoopFunctionalizer::findFrames() {
  FailureOr<std::vector<Operation *>> order = orderNodes(func.getBody().front());
  if (failed(order))
    return failure();
  std::map<std::pair<std::string, Frame *>, Frame *> byName;
  for (Operation *op : *order) {
    auto node = dyn_cast<graph::NodeOp>(op);
    if (!node)
      continue;
    Frame *frame = nullptr;
    for (Value operand : node->getOperands()) {
      Operation *from = operand.getDefiningOp();
      if (!from || isBackEdge(from, op))
        continue;
      Frame *other = frameOf.lookup(from);
      if (!other || other == frame)
        continue;
      Frame *inner = !frame || other->depth > frame->depth ? other : frame;
      Frame *outer = inner == other ? frame : other;
      for (Frame *f = inner; outer && f != outer; f = f->parent)
        if (!f)
          return node.emitError("has inputs from two different loops");
      frame = inner;
    }
    if (isOp(op, "Enter")) {
      auto name = node.getNodeAttr<StringAttr>("frame_name");
      std::string key = name ? name.getValue().str() : "";
      Frame *&entered = byName[{key, frame}];
      if (!entered) {
        frames.push_back(std::make_unique<Frame>());
        entered = frames.back().get();
        entered->name = key;
        entered->parent = frame;
        entered->depth = frame ? frame->depth + 1 : 1;
        if (entered->depth > kMaxDepth)
          return node.emitError("loops nest too deep");
      }
      entered->enters.push_back(node);
      frameOf[op] = entered;
      continue;
    }
    if (isOp(op, "Exit")) {
      if (!frame)
        return node.emitError("leaves a loop that nothing enters");
      frame->exits.push_back(node);
      frameOf[op] = frame->parent;
      continue;
    }
    frameOf[op] = frame;
    if (isOp(op, "NextIteration") && !frame)
      return node.emitError("is not part of a loop");
    if (!frame)
      continue;
    if (isOp(op, "LoopCond"))
      frame->loopConds.push_back(node);
    if (llvm::any_of(node.getInputs(), [&](Value v) { return isBackEdge(v.getDefiningOp(), op); }))
      frame->merges.push_back(node);
  }
  return success();
}

FailureOr<SmallVector<LoopVariable>> LoopFunctionalizer::findVariables(Frame &frame) {
  SmallVector<LoopVariable> variables;
  for (graph::NodeOp merge : frame.merges) {
    LoopVariable variable;
    variable.merge = merge;
    for (Value input : merge.getInputs()) {
      auto from = input.getDefiningOp<graph::NodeOp>();
      if (isOp(from, "Enter") && frameOf.lookup(from) == &frame && !variable.initial)
        variable.initial = from.getInputs()[0];
      else if (isOp(from, "NextIteration") && frameOf.lookup(from) == &frame && !variable.next)
        variable.next = from;
    }
    if (merge.getInputs().size() != 2 || !variable.initial || !variable.next)
      return merge.emitError("expected a loop variable to merge one Enter and one NextIteration");
    if (!merge.getOutputs()[1].use_empty())
      return merge.emitError("which input a loop variable came from is not supported as a value");
    variables.push_back(variable);
  }
  return variables;
}

Resolution LoopFunctionalizer::resolve(Frame &frame, graph::NodeOp loopCond,
                                       const DenseMap<Operation *, int> &variableOf, Value value) {
  auto node = value.getDefiningOp<graph::NodeOp>();
  if (!node || frameOf.lookup(node) != &frame)
    return Resolution::outside();
  if (isa<graph::ControlType>(value.getType()))
    return Resolution::inside();
  if (auto it = variableOf.find(node); it != variableOf.end())
    return Resolution::arg(it->second);
  if (isOp(node, "Enter") || isOp(node, "LoopCond"))
    return Resolution::as(node.getInputs()[0]);
  if (isOp(node, "Switch") && node.getInputs()[1].getDefiningOp() == loopCond.getOperation())
    return Resolution::as(node.getInputs()[0]);
  return Resolution::inside();
}

LogicalResult LoopFunctionalizer::convert(Frame &frame) {
  if (frame.exits.empty())
    return success(); // nothing uses the loop
  if (frame.loopConds.size() != 1)
    return frame.enters.front().emitError()
           << "expected one LoopCond in loop '" << frame.name << "', found " << frame.loopConds.size();
  graph::NodeOp loopCond = frame.loopConds.front();
  FailureOr<SmallVector<LoopVariable>> variables = findVariables(frame);
  if (failed(variables))
    return failure();
  DenseMap<Operation *, int> variableOf;
  SmallVector<Type> types;
  SmallVector<Value> initial, nextValues, nextControls;
  for (auto [i, variable] : llvm::enumerate(*variables)) {
    variableOf[variable.merge] = static_cast<int>(i);
    types.push_back(unrankedType(variable.merge.getOutputs()[0]));
    initial.push_back(variable.initial);
    nextValues.push_back(variable.next.getInputs()[0]);
    llvm::append_range(nextControls, variable.next.getControls());
  }

  auto resolver = [&](Value value) { return resolve(frame, loopCond, variableOf, value); };
  Slice cond(resolver), body(resolver);
  Value condition = loopCond.getInputs()[0];
  cond.addValue(condition);
  for (Value value : nextValues)
    body.addValue(value);
  for (Value control : nextControls)
    body.addControl(control);
  if (!cond.valid() || !body.valid())
    return loopCond.emitError("is part of a loop that refers to itself");
  llvm::SetVector<Value> invariants = body.captures;
  invariants.insert(cond.captures.begin(), cond.captures.end());
  SmallVector<Value> bodyResults(nextValues);
  llvm::append_range(bodyResults, invariants);

  std::string name = constructName(loopCond);
  graph::FuncOp condFunc = cond.build(module, symbols, name + "_cond", types, invariants, condition, {});
  graph::FuncOp bodyFunc = body.build(module, symbols, name + "_body", types, invariants, bodyResults, nextControls);
  created.push_back(condFunc);
  created.push_back(bodyFunc);

  OpBuilder b(loopCond);
  SmallVector<Value> operands(initial);
  llvm::append_range(operands, invariants);
  llvm::SetVector<Value> controls = cond.outsideControls;
  controls.insert(body.outsideControls.begin(), body.outsideControls.end());
  for (graph::NodeOp enter : frame.enters)
    controls.insert(enter.getControls().begin(), enter.getControls().end());
  SmallVector<Type> resultTypes;
  SmallVector<Attribute> elementTypes;
  for (Value operand : operands) {
    resultTypes.push_back(unrankedType(operand));
    elementTypes.push_back(TypeAttr::get(cast<TensorType>(operand.getType()).getElementType()));
  }
  auto symbol = [&](graph::FuncOp f) {
    return graph::FuncAttr::get(b.getContext(), FlatSymbolRefAttr::get(f.getSymNameAttr()), DictionaryAttr());
  };
  auto loop = graph::NodeOp::create(
      b, graph::makeNodeLoc(b.getContext(), name, "While"), resultTypes, "While", operands, controls.getArrayRef(),
      b.getDictionaryAttr({b.getNamedAttr("T", b.getArrayAttr(elementTypes)),
                           b.getNamedAttr("body", symbol(bodyFunc)), b.getNamedAttr("cond", symbol(condFunc)),
                           b.getNamedAttr("output_shapes", b.getArrayAttr({})),
                           b.getNamedAttr("parallel_iterations", b.getI64IntegerAttr(10))}));
  frameOf[loop] = frame.parent;
  for (graph::NodeOp exit : frame.exits) {
    Value value = exit.getInputs()[0];
    Resolution r = resolver(value);
    for (int hops = 0; r.kind == Resolution::Alias && hops < kMaxDepth; ++hops) {
      value = r.alias;
      r = resolver(value);
    }
    Value result;
    if (r.kind == Resolution::Argument)
      result = loop.getOutputs()[static_cast<unsigned>(r.argument)];
    else if (r.kind == Resolution::Outside)
      result = value;
    else
      return exit.emitError("leaves the loop with a value that is no loop variable");
    exit.getOutputs()[0].replaceAllUsesWith(result);
    exit.getControl().replaceAllUsesWith(loop.getControl());
  }
  return success();
}

LogicalResult LoopFunctionalizer::run(unsigned &count) {
  if (failed(findFrames()))
    return failure();
  // innermost first; the order within a depth is that of the nodes
  std::vector<Frame *> order;
  for (auto &frame : frames)
    order.push_back(frame.get());
  llvm::stable_sort(order, [](Frame *a, Frame *b) { return a->depth > b->depth; });
  for (Frame *frame : order) {
    if (failed(convert(*frame)))
      return failure();
    ++count;
  }
  if (!order.empty())
    cleanUp(func);
  return success();
}

LogicalResult functionalizeLoops(graph::FuncOp func, ModuleOp module, SymbolTable &symbols,
                                 SmallVectorImpl<graph::FuncOp> &created, unsigned &count) {
  return LoopFunctionalizer(func, module, symbols, created).run(count);
}

} // namespace lathe::cluster
