//===- FlatBuilder.cpp - the instances of one flat graph ------------------===//
#include "compiler/import/FlatBuilder.h"

#include <algorithm>

using llvm::StringRef;
using llvm::Twine;

namespace lathe::import {

bool hasEffect(const ops::OpInfo &info, StringRef op) {
  if (!info.isStateful || readsVariable(op))
    return false;
  if (ops::is(op, ops::Flag::Outside))
    return true;
  for (const ops::Arg &arg : info.inputs)
    if (arg.isRef || arg.type == DType::Resource)
      return !StringRef(op).contains("Find") && !StringRef(op).contains("Size") && !StringRef(op).contains("Read");
  return false;
}

int FlatBuilder::instanceOf(int scope, int node) {
  auto known = scopes[scope].instances.find(node);
  if (known != scopes[scope].instances.end())
    return known->second;
  scopes[scope].instances[node] = -1;
  const FlatSignature *outputs = outputsOf(scope, node);
  size_t nameSize = scopes[scope].prefix.size() + scopes[scope].body->defs[node]->name().size();
  if (!outputs || !flattener.takeNode(idOf(scope, node), nameSize, outputs->types.size())) {
    failed = true;
    return -1;
  }
  Scope &s = scopes[scope];
  const tf::NodeDef &def = *s.body->defs[node];
  Instance instance;
  instance.def = &def;
  instance.info = ops::findOp(def.op());
  instance.name = s.prefix + def.name();
  // ops that have two names
  instance.op = def.op() == "XlaWhile"   ? "While"
                : def.op() == "Variable" ? "VariableV2"
                                         : StringRef(def.op());
  instance.function = s.body->name;
  instance.attrScope = &s.attrs;
  instance.outTypes = outputs->types;
  int index = static_cast<int>(graph->instances.size());
  graph->instances.push_back(std::move(instance));
  places.push_back({scope, node});
  incomplete.push_back(index);
  s.instances[node] = index;
  return index;
}

/// The instance that an edge from this node comes from; -1 when there is nothing to wait for.
int FlatBuilder::controlOf(int scope, int node) {
  if (isFed(scope, node))
    return -1;
  if (!isCall(scope, node))
    return instanceOf(scope, node);
  auto known = scopes[scope].callEnds.find(node);
  if (known != scopes[scope].callEnds.end())
    return known->second;
  if (childScope(scope, node) < 0 || !flattener.takeNode(idOf(scope, node), scopes[scope].prefix.size(), 0))
    return -1;
  Instance end;
  end.info = ops::findOp("NoOp");
  end.name = scopes[scope].prefix + scopes[scope].body->defs[node]->name();
  end.op = "NoOp";
  end.function = scopes[scope].body->name;
  int index = static_cast<int>(graph->instances.size());
  graph->instances.push_back(std::move(end));
  places.push_back({scope, -1});
  scopes[scope].callEnds[node] = index;
  pendingEnds.push_back({index, scope, node});
  return index;
}

void FlatBuilder::addControl(std::vector<int> &controls, int instance) {
  if (instance >= 0 && std::find(controls.begin(), controls.end(), instance) == controls.end())
    controls.push_back(instance);
}

const std::vector<int> &FlatBuilder::entryControlsOf(int scope) {
  // from the outermost scope in, without recursion
  std::vector<int> chain;
  for (int s = scope; s >= 0 && !scopes[s].hasEntryControls; s = scopes[s].parent)
    chain.push_back(s);
  for (int s : llvm::reverse(chain)) {
    scopes[s].hasEntryControls = true;
    if (scopes[s].parent < 0)
      continue;
    std::vector<int> controls = scopes[scopes[s].parent].entryControls;
    for (int control : scopes[scopes[s].parent].body->nodes[scopes[s].callNode].controls)
      addControl(controls, controlOf(scopes[s].parent, control));
    scopes[s].entryControls = std::move(controls);
  }
  return scopes[scope].entryControls;
}

/// Freezing makes a constant of a variable and may leave what assigned it: then there is nothing to write to.
static bool assignsConstant(const FlatGraph &graph, const Instance &instance, size_t input) {
  if (input != 0 || (instance.op != "AssignVariableOp" && instance.op != "AssignAddVariableOp" && instance.op != "AssignSubVariableOp"))
    return false;
  const Ref &ref = instance.inputs[input];
  return !ref.isArgument() && graph.instances[ref.instance].op == "Const";
}

bool FlatBuilder::checkInputs(const Instance &instance, int scope, int node) {
  FlatSignature signature;
  AttrLookup attrs(instance.def, instance.attrScope);
  if (!flatten(*instance.info, instance.info->inputs, attrs, instance.id(), signature))
    return false;
  if (signature.types.size() != instance.inputs.size()) {
    problems.add(instance.id(), Twine("expected ") + Twine(signature.types.size()) + " inputs, found " +
                                    Twine(instance.inputs.size()));
    return false;
  }
  for (auto [i, ref] : llvm::enumerate(instance.inputs)) {
    const std::vector<DType> *outputs = ref.isArgument() ? nullptr : &graph->instances[ref.instance].outTypes;
    if (outputs && static_cast<size_t>(ref.port) >= outputs->size()) {
      problems.add(instance.id(), Twine("expected output ") + Twine(ref.port) + " of its input " + Twine(i) + ", which has " +
                                      Twine(outputs->size()));
      return false;
    }
    DType found = outputs ? (*outputs)[ref.port] : graph->argTypes[ref.argument()];
    if (found != signature.types[i] && !assignsConstant(*graph, instance, i)) {
      problems.add(instance.id(), Twine("expected input ") + Twine(i) + " to be " + dtypeName(signature.types[i]) +
                                      ", found " + dtypeName(found));
      return false;
    }
  }
  return true;
}

/// Finds the inputs of an instance, which makes those instances in turn.
void FlatBuilder::complete(int index) {
  auto [scope, node] = places[index];
  const BodyNode &body = scopes[scope].body->nodes[node];
  std::vector<Ref> inputs;
  bool ok = true;
  for (const InputRef &input : body.inputs) {
    RawRef raw;
    Ref ref;
    ok &= toRaw(scope, input, node, raw) && follow(raw, ref);
    inputs.push_back(ref);
  }
  std::vector<int> controls;
  for (int control : body.controls)
    addControl(controls, controlOf(scope, control));
  const ops::OpInfo &info = *graph->instances[index].info;
  if (info.isStateful || info.touchesResources())
    for (int control : entryControlsOf(scope))
      addControl(controls, control);
  Instance &instance = graph->instances[index];
  instance.inputs = std::move(inputs);
  instance.controls = std::move(controls);
  if (ops::is(instance.op, ops::Flag::Placeholder)) {
    problems.add(instance.id(), Twine("is needed but not fed; pass --input ") + printable(instance.name));
    failed = true;
  }
  if (!ok || !checkInputs(instance, scope, node)) {
    failed = true;
    return;
  }
  // bindings look at inputs of inputs, which are not all known yet
  if (hasFunctions(instance))
    pendingFunctions.push_back(index);
}

static bool isFunctional(const tf::AttrValue &value) { return value.has_func() || value.list().func_size(); }

bool FlatBuilder::hasFunctions(const Instance &instance) {
  AttrLookup attrs(instance.def, instance.attrScope);
  for (const auto &[name, value] : instance.def->attr())
    if (const tf::AttrValue *resolved = attrs.resolve(value); resolved && isFunctional(*resolved))
      return true;
  return false;
}

void FlatBuilder::requestFunctions(Instance &instance) {
  AttrLookup attrs(instance.def, instance.attrScope);
  std::map<std::string, const tf::AttrValue *> sorted;
  for (const auto &[name, value] : instance.def->attr())
    if (!StringRef(name).starts_with("_"))
      if (const tf::AttrValue *resolved = attrs.resolve(value); resolved && isFunctional(*resolved))
        sorted[name] = resolved;
  size_t first = SIZE_MAX; // of the operands that the functions take
  if (ops::is(instance.op, ops::Flag::Loop))
    first = 0;
  else if (ops::is(instance.op, ops::Flag::Branch))
    first = 1;
  std::vector<std::string> bindings;
  bool anyBinding = false;
  for (size_t i = first; i < instance.inputs.size(); ++i) {
    bindings.push_back(findVariable(*graph, instance.inputs[i]));
    anyBinding |= !bindings.back().empty();
  }
  if (!anyBinding)
    bindings.clear();
  for (auto &[name, value] : sorted) {
    auto request = [&](const tf::NameAttrList &function) {
      int id = flattener.requestFunction(function, attrs, instance.id(), bindings);
      failed |= id < 0;
      instance.functions.push_back({&function, id});
    };
    if (value->has_func())
      request(value->func());
    for (const tf::NameAttrList &function : value->list().func())
      request(function);
  }
}

/// What a call waits for runs, also where no node of the callee has to wait for it.
void FlatBuilder::addControlsOfCall(int scope) {
  int parent = scopes[scope].parent;
  if (parent < 0)
    return;
  const Body &caller = *scopes[parent].body;
  for (int control : caller.nodes[scopes[scope].callNode].controls) {
    const std::string &op = caller.defs[control]->op();
    int instance = op == "Const" || ops::is(op, ops::Flag::Placeholder) ? -1 : controlOf(parent, control);
    if (instance >= 0)
      graph->targets.push_back(instance);
  }
}

/// What a callee runs besides what its outputs need.
void FlatBuilder::addEffects(int scope) {
  addControlsOfCall(scope);
  const Body &body = *scopes[scope].body;
  auto add = [&](int node) {
    if (isCall(scope, node)) {
      childScope(scope, node); // its own effects follow
      return;
    }
    int instance = instanceOf(scope, node);
    if (instance >= 0)
      graph->targets.push_back(instance);
  };
  if (!body.controlReturns.empty()) {
    for (int node : body.controlReturns)
      if (isCall(scope, node))
        add(node);
      else if (const ops::OpInfo *info = ops::findOp(body.defs[node]->op());
               !info || hasEffect(*info, body.defs[node]->op()))
        add(node);
    return;
  }
  if (!body.signature->is_stateful())
    return;
  for (size_t node = 0; node < body.defs.size(); ++node) {
    const std::string &op = body.defs[node]->op();
    const ops::OpInfo *info = ops::findOp(op);
    if (isCall(scope, static_cast<int>(node)) ? op != "PartitionedCall" : info && hasEffect(*info, op))
      add(static_cast<int>(node));
  }
}

void FlatBuilder::drain() {
  while (!flattener.outOfNodes) {
    if (!incomplete.empty()) {
      int index = incomplete.back();
      incomplete.pop_back();
      complete(index);
    } else if (!pendingFunctions.empty()) {
      int index = pendingFunctions.back();
      pendingFunctions.pop_back();
      requestFunctions(graph->instances[index]);
    } else if (!pendingEffects.empty()) {
      int scope = pendingEffects.back();
      pendingEffects.pop_back();
      addEffects(scope);
    } else if (!pendingEnds.empty()) {
      PendingEnd end = pendingEnds.back();
      pendingEnds.pop_back();
      int child = childScope(end.scope, end.node);
      std::vector<int> controls;
      const Body &body = *scopes[child].body;
      for (int node : body.controlReturns)
        addControl(controls, controlOf(child, node));
      if (const FlatSignature *outputs = outputsOf(end.scope, end.node))
        for (size_t port = 0; port < outputs->types.size(); ++port) {
          Ref ref;
          if (follow({end.scope, end.node, static_cast<int>(port)}, ref) && !ref.isArgument())
            addControl(controls, ref.instance);
        }
      for (int control : scopes[end.scope].body->nodes[end.node].controls)
        addControl(controls, controlOf(end.scope, control));
      graph->instances[end.instance].controls = std::move(controls);
    } else {
      break;
    }
  }
}

std::unique_ptr<FlatGraph> FlatBuilder::finish(bool ok) {
  drain();
  std::sort(graph->targets.begin(), graph->targets.end());
  graph->targets.erase(std::unique(graph->targets.begin(), graph->targets.end()), graph->targets.end());
  if (!ok || failed || flattener.outOfNodes)
    return nullptr;
  // scopes die with the builder, their attributes are still needed
  auto kept = std::make_shared<std::deque<Scope>>(std::move(scopes));
  graph->owner = kept;
  return std::move(graph);
}

std::unique_ptr<FlatGraph> FlatBuilder::buildEntry(const Flattener::EntrySpec &spec) {
  Scope root;
  root.body = library.getMain();
  if (!root.body)
    return nullptr;
  scopes.push_back(std::move(root));
  bool ok = true;
  for (auto [i, feed] : llvm::enumerate(spec.feeds)) {
    const std::vector<DType> *types = flattener.mainOutputs(feed.node);
    graph->argTypes.push_back(types ? (*types)[feed.port] : DType::Invalid);
    ok &= types != nullptr;
    feeds[feed] = {-1 - static_cast<int>(i), 0};
    fedNodes[feed.node] = true;
  }
  for (auto &[feed, tensor] : spec.constants) {
    Instance constant;
    constant.constant = tensor;
    constant.info = ops::findOp("Const");
    constant.name = scopes[0].body->defs[feed.node]->name();
    constant.op = "Const";
    constant.outTypes = {tensor->dtype()};
    feeds[feed] = {static_cast<int>(graph->instances.size()), 0};
    fedNodes[feed.node] = true;
    graph->instances.push_back(std::move(constant));
    places.push_back({0, -1});
  }
  for (const MainTensor &output : spec.outputs) {
    Ref ref;
    ok &= follow({0, output.node, output.port}, ref);
    graph->outputs.push_back(ref);
  }
  for (int target : spec.targets) {
    int instance = controlOf(0, target);
    if (instance >= 0)
      graph->targets.push_back(instance);
  }
  return finish(ok);
}

std::unique_ptr<FlatGraph> FlatBuilder::buildFunction(const Flattener::Request &request) {
  const Body &body = *request.body;
  Scope root;
  root.body = &body;
  root.attrs = request.attrs;
  const ops::OpInfo &signature = library.getSignature(body);
  NodeId id{body.name, "function", ""};
  FlatSignature outputs;
  if (!flatten(signature, signature.inputs, AttrLookup(nullptr, &root.attrs), id, root.args) ||
      !flatten(signature, signature.outputs, AttrLookup(nullptr, &root.attrs), id, outputs))
    return nullptr;
  graph->functionName = body.name;
  graph->argTypes = root.args.types;
  graph->bindings = request.bindings;
  for (size_t arg = 0; arg + 1 < root.args.offsets.size(); ++arg)
    for (int64_t i = root.args.offsets[arg]; i < root.args.offsets[arg + 1]; ++i)
      graph->argNames.push_back(body.signature->input_arg(static_cast<int>(arg)).name());
  scopes.push_back(std::move(root));
  bool ok = true;
  for (size_t arg = 0; arg < body.returns.size(); ++arg)
    for (int64_t i = outputs.offsets[arg]; i < outputs.offsets[arg + 1]; ++i) {
      InputRef returned = body.returns[arg];
      returned.index += i - outputs.offsets[arg];
      RawRef raw;
      Ref ref;
      ok &= toRaw(0, returned, -1, raw) && follow(raw, ref);
      graph->outputs.push_back(ref);
      graph->outputNames.push_back(body.signature->output_arg(static_cast<int>(arg)).name());
    }
  pendingEffects.push_back(0);
  return finish(ok);
}

} // namespace lathe::import
