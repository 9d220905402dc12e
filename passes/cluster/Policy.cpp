#include "passes/cluster/Policy.h"

#include "ops/Flags.h"
#include "ops/Registry.h"
#include "passes/cluster/Outline.h"
#include "passes/cluster/Regions.h"
#include "passes/legalize/Legalize.h"

using namespace mlir;

namespace lathe::cluster {

static const ops::OpInfo *infoOf(graph::NodeOp node) {
  StringRef op = node.getOp();
  return ops::findOp(std::string_view(op.data(), op.size()));
}

static Type elementOf(Value value) {
  auto tensor = dyn_cast<TensorType>(value.getType());
  return tensor ? tensor.getElementType() : Type();
}

bool isHostType(Value value) {
  return isa_and_nonnull<graph::StringType, graph::ResourceType, graph::VariantType>(elementOf(value));
}

bool isHandle(Value value) { return isa_and_nonnull<graph::ResourceType, graph::VariantType>(elementOf(value)); }

/// The argument that a flat input or output belongs to: lists come last or stand alone where references occur.
static const ops::Arg *argOf(const std::vector<ops::Arg> &args, unsigned i) {
  return i < args.size() ? &args[i] : nullptr;
}

bool isReferenceInput(graph::NodeOp node, unsigned i) {
  const ops::OpInfo *info = infoOf(node);
  const ops::Arg *arg = info ? argOf(info->inputs, i) : nullptr;
  // RefMerge's inputs are a list of references
  return (arg && arg->isRef) || (info && info->inputs.size() == 1 && info->inputs[0].isRef);
}

bool isReferenceOutput(Value value) {
  auto node = value.getDefiningOp<graph::NodeOp>();
  if (!node)
    return false;
  const ops::OpInfo *info = infoOf(node);
  const ops::Arg *arg = info ? argOf(info->outputs, cast<OpResult>(value).getResultNumber()) : nullptr;
  return arg && arg->isRef;
}

bool isVariableNode(Operation *op) {
  auto node = dyn_cast_or_null<graph::NodeOp>(op);
  if (!node)
    return false;
  StringRef name = node.getOp();
  return ops::is(name, ops::Flag::Variable) || ops::is(name, ops::Flag::Temporary);
}

bool takesTexts(Operation *op) {
  auto node = dyn_cast_or_null<graph::NodeOp>(op);
  return node && ops::is(node.getOp(), ops::Flag::Texts);
}

bool Policy::isFunctional(graph::NodeOp node) {
  for (NamedAttribute attr : node.getAttrs()) {
    if (isa<graph::FuncAttr>(attr.getValue()))
      return true;
    if (auto list = dyn_cast<ArrayAttr>(attr.getValue()))
      if (!list.empty() && isa<graph::FuncAttr>(list[0]))
        return true;
  }
  return false;
}

SmallVector<FlatSymbolRefAttr> Policy::functionsOf(graph::NodeOp node) {
  SmallVector<FlatSymbolRefAttr> names;
  for (NamedAttribute attr : node.getAttrs()) {
    if (auto func = dyn_cast<graph::FuncAttr>(attr.getValue()))
      names.push_back(func.getName());
    else if (auto list = dyn_cast<ArrayAttr>(attr.getValue()))
      for (Attribute element : list)
        if (auto func = dyn_cast<graph::FuncAttr>(element))
          names.push_back(func.getName());
  }
  return names;
}

bool Policy::hasHostKernel(graph::NodeOp node) const {
  StringRef op = node.getOp();
  if (!options.hostOps.contains(op))
    return false;
  const ops::OpInfo *info = infoOf(node);
  if (!legalize::hasHandler(op) || isFunctional(node) || isControlFlow(node) || !info || info->isStateful ||
      info->touchesResources() || llvm::any_of(node->getOperands(), isHostType) ||
      llvm::any_of(node.getOutputs(), isHostType))
    return true;
  return ops::is(op, ops::Flag::Free);
}

/// Recursion ends: the importer refuses functions that call themselves.
bool Policy::argumentIsVariable(graph::FuncOp func, unsigned arg) {
  auto [it, isNew] = arguments.try_emplace({func.getSymName().str(), arg}, true);
  if (!isNew)
    return it->second;
  bool ok = true;
  for (OpOperand &use : func.getBody().front().getArgument(arg).getUses()) {
    auto node = dyn_cast<graph::NodeOp>(use.getOwner());
    if (!node) // handed on, as by the body of a loop
      continue;
    if (node.getOp() == "Identity")
      ok = false; // legal, but needs another look at its users; rare
    else
      ok &= usesVariable(node, use.getOperandNumber());
  }
  return arguments[{func.getSymName().str(), arg}] = ok;
}

bool Policy::usesVariable(graph::NodeOp node, unsigned i) {
  if (!isa_and_nonnull<graph::ResourceType>(elementOf(node->getOperand(i))))
    return isReferenceInput(node, i);
  if (!isFunctional(node))
    return ops::is(node.getOp(), ops::Flag::UsesVariable);
  for (FlatSymbolRefAttr name : functionsOf(node)) {
    auto func = symbols.lookup<graph::FuncOp>(name.getValue());
    if (!func)
      return false;
    size_t first = node.getInputs().size() - func.getNumArguments();
    if (node.getInputs().size() < func.getNumArguments() || i < first ||
        !argumentIsVariable(func, static_cast<unsigned>(i - first)))
      return false;
  }
  return true;
}

const Verdict &Policy::judgeFunction(FlatSymbolRefAttr name) {
  auto [it, isNew] = functions.try_emplace(name.getValue().str());
  if (!isNew)
    return it->second;
  Verdict verdict;
  auto func = symbols.lookup<graph::FuncOp>(name.getValue());
  if (!func) {
    verdict = {Refusal::Function, "function '" + name.getValue().str() + "' is not known"};
  } else {
    for (auto node : func.getBody().getOps<graph::NodeOp>()) {
      Verdict inner = judge(node, true);
      if (inner)
        continue;
      verdict = {Refusal::Function, "function '" + name.getValue().str() + "' holds node '" +
                                        node.getNodeName().str() + "' (" + node.getOp().str() + "): " + inner.text};
      break;
    }
  }
  return functions[name.getValue().str()] = verdict;
}

Verdict Policy::judge(graph::NodeOp node, bool inFunction) {
  StringRef op = node.getOp();
  if (!inFunction && options.forbid.contains(node.getNodeName()))
    return {Refusal::Forbidden, "forbidden"};
  if (isControlFlow(node)) {
    // bodies of functions are made functional when they are compiled
    if (inFunction && ops::is(op, ops::Flag::Frames))
      return {};
    return {Refusal::ControlFlow, "v1 control flow"};
  }
  if (ops::is(op, ops::Flag::End) || ops::is(op, ops::Flag::Feedable) || isVariableNode(node))
    return {Refusal::Endpoint, "an end of the graph, or a variable itself"};
  if (ops::is(op, ops::Flag::AsksVariable))
    return {Refusal::Stateful, "asks about the variable itself"};
  const ops::OpInfo *info = infoOf(node);
  bool functional = isFunctional(node);
  bool isCall = functional && (ops::is(op, ops::Flag::Call) || !info);
  if (!isCall && (!legalize::hasHandler(op) || (info && info->isHost)))
    return {Refusal::NoCompiledForm, legalize::whyNotCompilable(op)};
  if (takesTexts(node) && !inFunction && hasHostKernel(node))
    return {Refusal::HostKernel, "the message is made by a host kernel"};
  // queue runners tell the end of an input by OUT_OF_RANGE; a failed check of compiled code is INVALID_ARGUMENT
  if (ops::is(op, ops::Flag::EndsInput) && !inFunction && hasHostKernel(node))
    return {Refusal::HostKernel, "its error is the end of an input"};
  for (Value value : node.getInputs())
    if (isa_and_nonnull<graph::StringType>(elementOf(value)) && !(takesTexts(node) && isOp(value, "Const")))
      return {Refusal::HostType, "takes strings"};
  for (Value value : node.getOutputs())
    if (isa_and_nonnull<graph::StringType>(elementOf(value))) {
      bool forTexts = inFunction && op == "Const" && llvm::all_of(value.getUsers(), takesTexts);
      if (!forTexts)
        return {Refusal::HostType, "gives strings"};
    }
  for (auto [i, value] : llvm::enumerate(node.getInputs())) {
    bool isVariable = isa_and_nonnull<graph::ResourceType>(elementOf(value)) &&
                      usesVariable(node, static_cast<unsigned>(i));
    if (isVariable || !isa_and_nonnull<graph::ResourceType>(elementOf(value)))
      continue;
    if (isVariableNode(value.getDefiningOp()))
      return {Refusal::HostHandle, "hands the variable on in a way that cannot be followed"};
  }
  bool touches = info && info->touchesResources();
  if (info && info->isStateful && !touches && !functional && hasHostKernel(node))
    return {Refusal::Stateful, "keeps state in its host kernel"};
  if (functional)
    for (FlatSymbolRefAttr name : functionsOf(node))
      if (const Verdict &verdict = judgeFunction(name); !verdict)
        return verdict;
  if (!inFunction && options.neededOnly && hasHostKernel(node))
    return {Refusal::HostKernel, "has a host kernel"};
  return {};
}

} // namespace lathe::cluster
