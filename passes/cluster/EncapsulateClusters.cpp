//===- EncapsulateClusters.cpp - clusters become functions ----------------===//
//
// Before: nodes that carry the same graph.cluster. After: a private graph.func for each cluster and a call of it
// (StatefulPartitionedCall with graph.cluster) in the place of the first node.
//
// Constants are copied into each cluster that uses them, so that their values are known there. A reference that leaves
// the cluster is replaced by the variable's own, behind the call. Nodes that the graph returns or has as targets keep
// their names: an Identity or NoOp behind the call.
//
//===----------------------------------------------------------------------===//
#include "dialects/graph/ClusterAttrs.h"
#include "dialects/graph/Types.h"
#include "ops/Flags.h"
#include "passes/cluster/Outline.h"
#include "passes/cluster/Passes.h"
#include "passes/cluster/Policy.h"

#include "llvm/ADT/MapVector.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace lathe::cluster {

#define GEN_PASS_DEF_ENCAPSULATECLUSTERS
#include "passes/cluster/Passes.h.inc"

namespace {

class Encapsulator {
public:
  Encapsulator(graph::FuncOp func, SymbolTable &symbols, StringRef name, SmallVector<graph::NodeOp> nodes)
      : func(func), symbols(symbols), clusterName(name), nodes(std::move(nodes)), builder(func.getContext()) {}

  void run();

private:
  bool inside(Operation *op) const { return members.contains(op); }
  void cloneConstants();
  void keepNames();
  Value variableOf(Value output);
  bool isUpdatedOutside(Value variable);
  void replaceReferences();

  graph::FuncOp func;
  SymbolTable &symbols;
  StringRef clusterName;
  SmallVector<graph::NodeOp> nodes;
  DenseSet<Operation *> members;
  OpBuilder builder;
};

} // namespace

void Encapsulator::cloneConstants() {
  DenseMap<Operation *, graph::NodeOp> clones;
  // `nodes` grows: constants may wait for constants
  for (size_t i = 0; i < nodes.size(); ++i)
    for (OpOperand &operand : nodes[i]->getOpOperands()) {
      auto constant = operand.get().getDefiningOp<graph::NodeOp>();
      if (!constant || inside(constant) || constant.getOp() != "Const" ||
          isa<graph::ControlType>(operand.get().getType()) || (isHostType(constant.getOutputs()[0]) && !takesTexts(nodes[i])))
        continue;
      graph::NodeOp &clone = clones[constant];
      if (!clone) {
        builder.setInsertionPoint(constant);
        clone = cast<graph::NodeOp>(builder.clone(*constant));
        members.insert(clone);
        nodes.push_back(clone);
      }
      nodes[i]->setOperand(operand.getOperandNumber(), clone.getOutputs()[0]);
    }
  for (auto &[original, clone] : clones)
    if (original->use_empty())
      original->erase();
}

/// The variable behind a reference output.
Value Encapsulator::variableOf(Value output) {
  Value root = output;
  while (auto from = root.getDefiningOp<graph::NodeOp>()) {
    if (!inside(from) || from.getInputs().empty())
      break;
    root = from.getInputs()[0];
  }
  return root;
}

/// Whether something outside may write to a variable once the cluster has run.
bool Encapsulator::isUpdatedOutside(Value variable) {
  return llvm::any_of(variable.getUses(), [&](OpOperand &use) {
    auto user = dyn_cast<graph::NodeOp>(use.getOwner());
    return user && !inside(user) && isReferenceInput(user, use.getOperandNumber());
  });
}

/// A reference output that the outside uses as one: the variable itself, once the cluster has run. So it is where the outside reads it after
/// something else, if what it holds may have changed by then.
void Encapsulator::replaceReferences() {
  for (bool reads : {false, true})
    for (graph::NodeOp node : nodes)
      for (Value output : node.getOutputs()) {
        if (!isReferenceOutput(output))
          continue;
        Value variable = variableOf(output);
        Operation *holder = variable.getDefiningOp();
        if (reads && (!isUpdatedOutside(variable) || (holder && inside(holder))))
          continue;
        auto readsLater = [](graph::NodeOp user) { return !user.getControls().empty() || user.getInputs().size() > 1; };
        SmallVector<OpOperand *> uses;
        for (OpOperand &use : output.getUses())
          if (auto user = dyn_cast<graph::NodeOp>(use.getOwner()))
            if (!inside(user) && (reads ? readsLater(user) : isReferenceInput(user, use.getOperandNumber())))
              uses.push_back(&use);
        for (OpOperand *use : uses) {
          auto user = cast<graph::NodeOp>(use->getOwner());
          use->set(variable);
          user.getControlsMutable().append(node.getControl());
        }
      }
}

/// Stand-ins under the old names for nodes that the graph's return refers to.
void Encapsulator::keepNames() {
  Operation *terminator = func.getBody().front().getTerminator();
  for (graph::NodeOp node : nodes) {
    SmallVector<OpOperand *> uses;
    int64_t last = -1;
    for (OpResult result : node->getResults())
      for (OpOperand &use : result.getUses())
        if (use.getOwner() == terminator) {
          uses.push_back(&use);
          if (!isa<graph::ControlType>(result.getType()))
            last = std::max<int64_t>(last, result.getResultNumber());
        }
    if (uses.empty())
      continue;
    builder.setInsertionPoint(terminator);
    SmallVector<Value> inputs;
    SmallVector<Type> types;
    for (int64_t port = 0; port <= last; ++port) {
      // outputs that nobody asked for are not computed: any other value holds their place
      Value value = node.getOutputs()[static_cast<unsigned>(port)];
      bool asked = llvm::any_of(uses, [&](OpOperand *use) { return use->get() == value; });
      inputs.push_back(asked ? value : node.getOutputs()[static_cast<unsigned>(last)]);
      types.push_back(inputs.back().getType());
    }
    StringRef op = last < 0 ? "NoOp" : last == 0 ? "Identity" : "IdentityN";
    auto stand = graph::NodeOp::create(
        builder, node.getLoc(), types, op, inputs,
        last < 0 ? ValueRange(node.getControl()) : ValueRange(), DictionaryAttr());
    stand->setAttr(graph::kNewNodeAttr, builder.getUnitAttr());
    if (Attribute device = node->getAttr(graph::kDeviceAttr))
      stand->setAttr(graph::kDeviceAttr, device);
    for (OpOperand *use : uses)
      use->set(isa<graph::ControlType>(use->get().getType())
                   ? Value(stand.getControl())
                   : Value(stand.getOutputs()[cast<OpResult>(use->get()).getResultNumber()]));
  }
}

void Encapsulator::run() {
  for (graph::NodeOp node : nodes)
    members.insert(node);
  keepNames();
  cloneConstants();
  replaceReferences();
  llvm::SetVector<Value> args, controls, results;
  for (graph::NodeOp node : nodes) {
    for (Value input : node.getInputs())
      if (!input.getDefiningOp() || !inside(input.getDefiningOp()))
        args.insert(input);
    for (Value control : node.getControls())
      if (!inside(control.getDefiningOp()))
        controls.insert(control);
    for (Value output : node.getOutputs())
      if (llvm::any_of(output.getUsers(), [&](Operation *user) { return !inside(user); }))
        results.insert(output);
  }
  SmallVector<Type> argTypes, resultTypes;
  for (Value arg : args)
    argTypes.push_back(arg.getType());
  for (Value result : results)
    resultTypes.push_back(result.getType());
  Location loc = graph::makeNodeLoc(builder.getContext(), clusterName, "LatheLaunch");
  builder.setInsertionPointToEnd(func->getParentOfType<ModuleOp>().getBody());
  auto body = graph::FuncOp::create(builder, loc, clusterName, builder.getFunctionType(argTypes, resultTypes));
  body.setSymVisibility("private");
  body->setAttr(graph::kClusterAttr, builder.getStringAttr(clusterName));
  symbols.insert(body);

  builder.setInsertionPoint(nodes.front());
  auto call = graph::NodeOp::create(
      builder, loc, resultTypes, "StatefulPartitionedCall", args.getArrayRef(), controls.getArrayRef(),
      builder.getDictionaryAttr(builder.getNamedAttr(
          "f", graph::FuncAttr::get(builder.getContext(), FlatSymbolRefAttr::get(body.getSymNameAttr()),
                                    DictionaryAttr()))));
  call->setAttr(graph::kClusterAttr, body.getSymNameAttr());
  call->setAttr(graph::kNewNodeAttr, builder.getUnitAttr());
  if (Attribute device = nodes.front()->getAttr(graph::kDeviceAttr))
    call->setAttr(graph::kDeviceAttr, device);

  Block &block = body.getBody().front();
  auto isOutside = [&](OpOperand &use) { return !inside(use.getOwner()) && use.getOwner() != call; };
  for (graph::NodeOp node : nodes) {
    for (Value output : node.getOutputs())
      if (auto it = llvm::find(results, output); it != results.end())
        output.replaceUsesWithIf(call.getOutputs()[static_cast<unsigned>(it - results.begin())], isOutside);
    node.getControl().replaceUsesWithIf(call.getControl(), isOutside);
    // edges from outside are the call's
    SmallVector<Value> kept;
    for (Value control : node.getControls())
      if (inside(control.getDefiningOp()))
        kept.push_back(control);
    node.getControlsMutable().assign(kept);
    for (auto [i, arg] : llvm::enumerate(args))
      node->replaceUsesOfWith(arg, block.getArgument(static_cast<unsigned>(i)));
    node->removeAttr(graph::kClusterAttr);
    node->moveBefore(&block, block.end());
  }
  // what nothing inside waits for must run all the same
  SmallVector<Value> targets;
  for (graph::NodeOp node : nodes) {
    bool needed = !node->use_empty() || llvm::any_of(node.getOutputs(), [&](Value v) { return results.contains(v); });
    if (!needed)
      targets.push_back(node.getControl());
  }
  builder.setInsertionPointToEnd(&block);
  graph::ReturnOp::create(builder, loc, results.getArrayRef(), targets);
}

namespace {
class EncapsulateClusters : public impl::EncapsulateClustersBase<EncapsulateClusters> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    llvm::StringSet<> taken;
    if (auto library = getOperation()->getAttrOfType<ArrayAttr>(graph::kLibraryAttr))
      for (auto name : library.getAsRange<StringAttr>())
        taken.insert(name.getValue());
    SmallVector<graph::FuncOp> funcs;
    for (auto func : getOperation().getOps<graph::FuncOp>())
      if (!func.isPrivate())
        funcs.push_back(func);
    for (graph::FuncOp func : funcs) {
      // handles of one variable are one handle, or a cluster would take it for two
      llvm::MapVector<StringAttr, SmallVector<graph::NodeOp>> clusters;
      std::map<std::string, graph::NodeOp> handles;
      llvm::StringSet<> nodeNames;
      for (auto node : func.getBody().getOps<graph::NodeOp>()) {
        nodeNames.insert(node.getNodeName());
        if (auto name = node->getAttrOfType<StringAttr>(graph::kClusterAttr))
          clusters[name].push_back(node);
        auto shared = node.getNodeAttr<StringAttr>("shared_name");
        if (!ops::is(node.getOp(), ops::Flag::Handle) || !shared || shared.getValue().empty())
          continue;
        auto container = node.getNodeAttr<StringAttr>("container");
        std::string key = shared.getValue().str() + "|" + (container ? container.getValue().str() : "");
        auto [it, isNew] = handles.try_emplace(key, node);
        if (!isNew && node.getControls().empty())
          node.getOutputs()[0].replaceUsesWithIf(it->second.getOutputs()[0], [](OpOperand &use) {
            return use.getOwner()->hasAttr(graph::kClusterAttr);
          });
      }
      for (auto &[name, nodes] : clusters) {
        std::string unique = name.getValue().str();
        for (unsigned n = 0; symbols.lookup(unique) || taken.contains(unique) || nodeNames.contains(unique); ++n)
          unique = name.getValue().str() + "_" + std::to_string(n);
        Encapsulator(func, symbols, unique, nodes).run();
        ++numFunctions;
      }
    }
  }
};
} // namespace

} // namespace lathe::cluster
