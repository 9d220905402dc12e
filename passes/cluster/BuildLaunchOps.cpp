//===- BuildLaunchOps.cpp - calls of clusters become launches -------------===//
//
// Before: StatefulPartitionedCall with graph.cluster. After: LatheLaunch (runtime/abi/cluster_compiler.h), whose last
// operands are the handles of the variables that the cluster works on; its function has the same order.
//
//===----------------------------------------------------------------------===//
#include "dialects/graph/ClusterAttrs.h"
#include "ops/Flags.h"
#include "passes/cluster/Outline.h"
#include "passes/cluster/Passes.h"
#include "passes/cluster/Policy.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace lathe::cluster {

#define GEN_PASS_DEF_BUILDLAUNCHOPS
#include "passes/cluster/Passes.h.inc"

namespace {

/// How a cluster uses the variable behind an argument.
struct VariableUse {
  bool reads = false, writes = false;
};

bool isHandleArgument(BlockArgument arg) {
  if (isHandle(arg))
    return true;
  return llvm::any_of(arg.getUses(), [](OpOperand &use) {
    auto node = dyn_cast<graph::NodeOp>(use.getOwner());
    return node && isReferenceInput(node, use.getOperandNumber());
  });
}

VariableUse findUse(BlockArgument arg, SymbolTable &symbols, int depth = 0);

/// What a call does with a variable that it is given; nothing for other nodes, and for calls in calls in calls ...
std::optional<VariableUse> useOfCall(OpOperand &use, SymbolTable &symbols, int depth) {
  auto node = dyn_cast<graph::NodeOp>(use.getOwner());
  if (!node || depth > 16 || !ops::is(node.getOp(), ops::Flag::Call))
    return std::nullopt;
  auto callee = node.getNodeAttr<graph::FuncAttr>("f");
  auto func = callee ? symbols.lookup<graph::FuncOp>(callee.getName().getValue()) : graph::FuncOp();
  if (!func || use.getOperandNumber() >= func.getNumArguments())
    return std::nullopt;
  return findUse(func.getBody().front().getArgument(use.getOperandNumber()), symbols, depth + 1);
}

/// Whether a loop that a handle enters, or what it runs in turn, gives the variable a value.
bool mayAssign(Value handle, SymbolTable &symbols, int depth = 0) {
  if (depth > 16)
    return true;
  return llvm::any_of(handle.getUses(), [&](OpOperand &use) {
    auto node = dyn_cast<graph::NodeOp>(use.getOwner());
    if (!node)
      return false;
    unsigned i = use.getOperandNumber();
    if (i == 0 && ops::is(node.getOp(), ops::Flag::Assigns))
      return true;
    if (isOp(node, "Enter") || isOp(node, "Switch") || ops::is(node.getOp(), ops::Flag::Passes))
      return llvm::any_of(node.getOutputs(), [&](Value v) { return mayAssign(v, symbols, depth + 1); });
    return llvm::any_of(Policy::functionsOf(node), [&](FlatSymbolRefAttr name) {
      auto func = symbols.lookup<graph::FuncOp>(name.getValue());
      if (!func || func.getNumArguments() > node.getInputs().size())
        return false;
      // a branch takes all inputs but the first
      unsigned first = static_cast<unsigned>(node.getInputs().size()) - func.getNumArguments();
      return i >= first && mayAssign(func.getBody().front().getArgument(i - first), symbols, depth + 1);
    });
  });
}

VariableUse findUse(BlockArgument arg, SymbolTable &symbols, int depth) {
  VariableUse result;
  SmallVector<Operation *> work;
  DenseSet<Operation *> afterWrite;
  for (OpOperand &use : arg.getUses()) {
    auto node = dyn_cast<graph::NodeOp>(use.getOwner());
    std::optional<VariableUse> call = useOfCall(use, symbols, depth);
    bool assigns = node && use.getOperandNumber() == 0 && ops::is(node.getOp(), ops::Flag::Assigns);
    if (!assigns && !(call && call->writes))
      continue;
    result.writes = true;
    work.push_back(node);
  }
  // whoever waits for an assignment finds its value
  while (!work.empty())
    for (Operation *user : work.pop_back_val()->getUsers())
      if (afterWrite.insert(user).second)
        work.push_back(user);
  for (OpOperand &use : arg.getUses()) {
    auto node = dyn_cast<graph::NodeOp>(use.getOwner());
    bool isWrite = node && use.getOperandNumber() == 0 && ops::is(node.getOp(), ops::Flag::Assigns);
    // behind a condition the value may never be asked for: tf.cond(is_initialized(v), ...); a loop may assign it first
    bool mayRead = isOp(use.getOwner(), "Switch") || (node && ops::is(node.getOp(), ops::Flag::Branch)) ||
                   (isOp(use.getOwner(), "Enter") && mayAssign(node.getOutputs()[0], symbols)) ||
                   (node && ops::is(node.getOp(), ops::Flag::Loop) && mayAssign(arg, symbols));
    if (std::optional<VariableUse> call = useOfCall(use, symbols, depth); call && !call->reads)
      continue;
    result.reads |= !isWrite && !mayRead && !afterWrite.contains(use.getOwner());
  }
  return result;
}

class BuildLaunchOps : public impl::BuildLaunchOpsBase<BuildLaunchOps> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    SmallVector<graph::NodeOp> calls;
    getOperation().walk([&](graph::NodeOp node) {
      if (node.getOp() == "StatefulPartitionedCall" && node->hasAttr(graph::kClusterAttr))
        calls.push_back(node);
    });
    for (graph::NodeOp call : calls)
      build(call, symbols);
  }

  void build(graph::NodeOp call, SymbolTable &symbols) {
    auto callee = call.getNodeAttr<graph::FuncAttr>("f");
    auto func = symbols.lookup<graph::FuncOp>(callee.getName().getValue());
    Block &block = func.getBody().front();
    SmallVector<unsigned> order, handles;
    for (BlockArgument arg : block.getArguments())
      (isHandleArgument(arg) ? handles : order).push_back(arg.getArgNumber());
    order.append(handles);
    unsigned count = static_cast<unsigned>(order.size());
    SmallVector<Type> types;
    SmallVector<Value> inputs;
    SmallVector<bool> reads, writes;
    for (unsigned old : order) {
      BlockArgument arg = block.getArgument(old);
      types.push_back(arg.getType());
      inputs.push_back(call.getInputs()[old]);
      block.addArgument(arg.getType(), arg.getLoc());
    }
    for (auto [i, old] : llvm::enumerate(order))
      block.getArgument(old).replaceAllUsesWith(block.getArgument(count + static_cast<unsigned>(i)));
    block.eraseArguments(0, count);
    func.setFunctionType(FunctionType::get(&getContext(), types, func.getResultTypes()));
    for (size_t i = 0; i < handles.size(); ++i) {
      VariableUse use = findUse(block.getArgument(static_cast<unsigned>(count - handles.size() + i)), symbols);
      reads.push_back(use.reads);
      writes.push_back(use.writes);
    }
    OpBuilder builder(call);
    auto bools = [&](ArrayRef<bool> values) {
      SmallVector<Attribute> attrs;
      for (bool value : values)
        attrs.push_back(builder.getBoolAttr(value));
      return builder.getArrayAttr(attrs);
    };
    NamedAttrList attrs;
    attrs.set("cluster", func.getSymNameAttr());
    attrs.set("function", callee);
    attrs.set("variables", builder.getI64IntegerAttr(static_cast<int64_t>(handles.size())));
    attrs.set("reads", bools(reads));
    attrs.set("writes", bools(writes));
    SmallVector<Type> resultTypes(call.getOutputs().getTypes());
    auto launch = graph::NodeOp::create(builder, call.getLoc(), resultTypes, "LatheLaunch", inputs, call.getControls(),
                                        attrs.getDictionary(&getContext()));
    launch->setAttr(graph::kNewNodeAttr, builder.getUnitAttr());
    if (Attribute device = call->getAttr(graph::kDeviceAttr))
      launch->setAttr(graph::kDeviceAttr, device);
    call.replaceAllUsesWith(launch->getResults());
    call.erase();
    ++numLaunches;
    numVariables += static_cast<unsigned>(handles.size());
  }
};
} // namespace

} // namespace lathe::cluster
