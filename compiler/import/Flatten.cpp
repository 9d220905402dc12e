//===- Flatten.cpp - what an entry needs, calls inlined -------------------===//
//
// Works from the outputs back, with worklists only: neither the depth of a graph nor of its calls meets recursion. A
// call is never a node of the result; a reference to its output is followed into the callee and, at the callee's
// arguments, out again.
//
// Control edges and calls. What a call must run besides its outputs (control_ret; for functions without them, their
// stateful nodes) becomes a target of the flat graph. An edge from a call becomes an edge from a NoOp after all of
// the callee's effects and outputs. An edge to a call becomes one to each stateful node of the callee.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/Flatten.h"

#include "llvm/ADT/StringSet.h"

#include <algorithm>

using llvm::StringRef;
using llvm::Twine;

namespace lathe::import {

static constexpr size_t kMaxFunctions = 20'000;
// A reference that passes this many calls without reaching a node goes round in a circle.
static constexpr int kMaxHops = 100'000;
// Between a variable's handle and its use; each use is followed on its own.
static constexpr int kMaxHandleHops = 1000;

static bool isCallOp(StringRef op) { return op == "PartitionedCall" || op == "StatefulPartitionedCall"; }

bool isVariableHandle(StringRef op) { return op == "VarHandleOp"; }
bool isVariableReference(StringRef op) { return op == "VariableV2" || op == "Variable"; }

bool readsVariable(StringRef op) {
  return op == "ReadVariableOp" || op == "ResourceGather" || op == "ResourceGatherNd" || op == "VariableShape" ||
         op == "VarIsInitializedOp";
}

/// Ops of which a function keeps the instances that nobody consumes.
static bool hasEffect(const ops::OpInfo &info, StringRef op) {
  if (!info.isStateful || readsVariable(op))
    return false;
  if (op == "Assert" || op == "Print" || op == "PrintV2" || op == "Abort" || op == "If" || op == "While" ||
      op == "Case" || op == "For")
    return true;
  for (const ops::Arg &arg : info.inputs)
    if (arg.isRef || arg.type == DType::Resource)
      return !StringRef(op).contains("Find") && !StringRef(op).contains("Size") && !StringRef(op).contains("Read");
  return false;
}

std::string variableKey(const Instance &variable) {
  AttrLookup attrs(variable.def, variable.attrScope);
  const tf::AttrValue *name = attrs.find("shared_name");
  if (name && !name->s().empty() && name->s() != "cd2c89b7-88b7-44c8-ad83-06c2a9158347") // TensorFlow's anonymous name
    return name->s();
  return variable.name;
}

std::string findVariable(const FlatGraph &graph, Ref ref, bool *through) {
  for (int hops = 0; hops < kMaxHandleHops; ++hops) {
    if (ref.isArgument())
      return static_cast<size_t>(ref.argument()) < graph.bindings.size() ? graph.bindings[ref.argument()] : "";
    const Instance &instance = graph.instances[ref.instance];
    if (isVariableHandle(instance.op) || isVariableReference(instance.op))
      return variableKey(instance);
    bool conditional = instance.op == "Switch" || instance.op == "RefSwitch" || instance.op == "Enter" ||
                       instance.op == "RefEnter";
    if (through)
      *through |= conditional;
    if ((!conditional && instance.op != "Identity" && instance.op != "RefIdentity" && instance.op != "_EagerConst") ||
        instance.inputs.empty())
      return "";
    ref = instance.inputs[0];
  }
  return "";
}

//===----------------------------------------------------------------------===//
// FlatBuilder
//===----------------------------------------------------------------------===//

namespace {
/// An output of a node within a scope, not yet followed; node -1 - k is flat argument k of the scope's function.
struct RawRef {
  int scope, node, port;
};

/// The flat outputs (or arguments) of a node.
struct FlatSignature {
  std::vector<DType> types;
  std::vector<int64_t> offsets; // of each argument of the signature, and the total
};

struct Scope {
  const Body *body = nullptr;
  int parent = -1, callNode = -1;
  std::string prefix;
  AttrLookup::Map attrs;
  FlatSignature args;
  llvm::DenseMap<int, int> children;  // call node -> scope, -1: bad
  llvm::DenseMap<int, int> instances; // node -> instance, -1: bad
  llvm::DenseMap<int, int> callEnds;  // call node -> NoOp instance
  std::map<int, FlatSignature> outputs;
  std::vector<int> entryControls;     // instances that must have run before the call's effects
  bool hasEntryControls = false;
};
} // namespace

class FlatBuilder {
public:
  explicit FlatBuilder(Flattener &flattener)
      : flattener(flattener), library(flattener.library), problems(flattener.problems),
        graph(std::make_unique<FlatGraph>()) {}

  std::unique_ptr<FlatGraph> buildEntry(const Flattener::EntrySpec &spec);
  std::unique_ptr<FlatGraph> buildFunction(const Flattener::Request &request);

private:
  const Body *calleeOf(int scope, int node, const tf::NameAttrList *&attrs);
  bool isCall(int scope, int node);
  int childScope(int scope, int node);
  const FlatSignature *outputsOf(int scope, int node);
  bool flatten(const ops::OpInfo &info, const std::vector<ops::Arg> &args, const AttrLookup &attrs, const NodeId &id,
               FlatSignature &signature);
  bool toRaw(int scope, const InputRef &ref, int user, RawRef &raw);
  bool follow(RawRef raw, Ref &ref);
  int instanceOf(int scope, int node);
  int controlOf(int scope, int node);
  void complete(int instance);
  void addControl(std::vector<int> &controls, int instance);
  void addEffects(int scope);
  const std::vector<int> &entryControlsOf(int scope);
  bool isFed(int scope, int node) const;
  static bool hasFunctions(const Instance &instance);
  void requestFunctions(Instance &instance);
  bool checkInputs(const Instance &instance, int scope, int node);
  void drain();
  std::unique_ptr<FlatGraph> finish(bool ok);
  NodeId idOf(int scope, int node) { return scopes[scope].body->id(node); }

  Flattener &flattener;
  Library &library;
  Problems &problems;
  std::unique_ptr<FlatGraph> graph;
  std::deque<Scope> scopes; // references stay valid while it grows
  std::map<MainTensor, Ref> feeds;
  llvm::DenseMap<int, bool> fedNodes;
  std::vector<std::pair<int, int>> places; // instance -> scope, node
  std::vector<int> incomplete, pendingFunctions;
  struct PendingEnd {
    int instance, scope, node;
  };
  std::vector<PendingEnd> pendingEnds;
  std::vector<int> pendingEffects;
  bool failed = false;
};

bool FlatBuilder::isFed(int scope, int node) const { return scope == 0 && fedNodes.count(node); }

/// The function that a node calls, or null with or without a report; `attrs` is what it is instantiated with, null for
/// a node whose op type is the function's name.
const Body *FlatBuilder::calleeOf(int scope, int node, const tf::NameAttrList *&attrs) {
  Scope &s = scopes[scope];
  const tf::NodeDef &def = *s.body->defs[node];
  attrs = nullptr;
  if (library.isFunction(def.op()))
    return library.getFunction(def.op(), idOf(scope, node));
  const tf::AttrValue *f = AttrLookup(&def, &s.attrs).find("f");
  if (!f || !f->has_func()) {
    problems.add(idOf(scope, node), "has no function to call in attribute 'f'");
    return nullptr;
  }
  attrs = &f->func();
  return library.getFunction(attrs->name(), idOf(scope, node));
}

bool FlatBuilder::isCall(int scope, int node) {
  const std::string &op = scopes[scope].body->defs[node]->op();
  return isCallOp(op) || library.isFunction(op);
}

bool FlatBuilder::flatten(const ops::OpInfo &info, const std::vector<ops::Arg> &args, const AttrLookup &attrs,
                          const NodeId &id, FlatSignature &signature) {
  std::vector<int64_t> counts;
  absl::StatusOr<std::vector<DType>> types = ops::resolveTypes(info, args, attrs, &counts);
  if (!types.ok()) {
    problems.add(id, Twine(std::string(types.status().message())));
    return false;
  }
  signature.types = std::move(*types);
  signature.offsets.assign(1, 0);
  for (int64_t count : counts)
    signature.offsets.push_back(signature.offsets.back() + count);
  for (DType type : signature.types)
    if (type == DType::Invalid) {
      problems.add(id, "has an input or output of an unknown type");
      return false;
    }
  return true;
}

int FlatBuilder::childScope(int scope, int node) {
  auto known = scopes[scope].children.find(node);
  if (known != scopes[scope].children.end())
    return known->second;
  int &result = scopes[scope].children[node];
  result = -1;
  const tf::NameAttrList *call = nullptr;
  const Body *body = calleeOf(scope, node, call);
  size_t nameSize = scopes[scope].prefix.size() + scopes[scope].body->defs[node]->name().size();
  if (!body || !flattener.takeNode(idOf(scope, node), nameSize, 0)) {
    failed = true;
    return -1;
  }
  const tf::NodeDef &def = *scopes[scope].body->defs[node];
  Scope child;
  child.body = body;
  child.parent = scope;
  child.callNode = node;
  child.prefix = scopes[scope].prefix + def.name() + "/";
  AttrLookup caller(&def, &scopes[scope].attrs);
  for (const auto &[name, value] : call ? call->attr() : def.attr())
    if (const tf::AttrValue *resolved = caller.resolve(value))
      child.attrs[name] = resolved;
  const ops::OpInfo &signature = library.getSignature(*body);
  if (!flatten(signature, signature.inputs, AttrLookup(nullptr, &child.attrs), idOf(scope, node), child.args)) {
    failed = true;
    return -1;
  }
  size_t given = scopes[scope].body->nodes[node].inputs.size();
  if (given != child.args.types.size()) {
    problems.add(idOf(scope, node), Twine("expected ") + Twine(child.args.types.size()) + " inputs for function '" +
                                        printable(body->name) + "', found " + Twine(given));
    failed = true;
    return -1;
  }
  int index = static_cast<int>(scopes.size());
  scopes.push_back(std::move(child));
  scopes[scope].children[node] = index;
  pendingEffects.push_back(index);
  return index;
}

const FlatSignature *FlatBuilder::outputsOf(int scope, int node) {
  Scope &s = scopes[scope];
  auto known = s.outputs.find(node);
  if (known != s.outputs.end())
    return &known->second;
  FlatSignature signature;
  const tf::NodeDef &def = *s.body->defs[node];
  bool ok;
  if (isCall(scope, node)) {
    int child = childScope(scope, node);
    if (child < 0)
      return nullptr;
    const ops::OpInfo &info = library.getSignature(*scopes[child].body);
    ok = flatten(info, info.outputs, AttrLookup(nullptr, &scopes[child].attrs), idOf(scope, node), signature);
  } else {
    const ops::OpInfo *info = ops::findOp(def.op());
    ok = info != nullptr;
    if (ok)
      ok = flatten(*info, info->outputs, AttrLookup(&def, &s.attrs), idOf(scope, node), signature);
    else
      problems.add(idOf(scope, node), "unknown op type");
  }
  if (!ok) {
    failed = true;
    return nullptr;
  }
  return &(s.outputs[node] = std::move(signature));
}

/// Resolves the names of function bodies ("node:output:index") to flat ports.
bool FlatBuilder::toRaw(int scope, const InputRef &ref, int user, RawRef &raw) {
  Scope &s = scopes[scope];
  auto fail = [&](const Twine &text) {
    NodeId id = user >= 0 ? idOf(scope, user) : NodeId{s.body->name, "function", ""};
    problems.add(id, text);
    failed = true;
    return false;
  };
  if (ref.node < 0) {
    int arg = -1 - ref.node;
    int64_t flat = s.args.offsets[arg] + ref.index;
    if (flat >= s.args.offsets[arg + 1])
      return fail(Twine("refers to element ") + Twine(ref.index) + " of argument '" +
                  printable(s.body->signature->input_arg(arg).name()) + "', which has " +
                  Twine(s.args.offsets[arg + 1] - s.args.offsets[arg]));
    raw = {scope, static_cast<int>(-1 - flat), 0};
    return true;
  }
  int64_t port = ref.index;
  if (!ref.outArg.empty()) {
    const FlatSignature *signature = outputsOf(scope, ref.node);
    if (!signature)
      return false;
    // PartitionedCall has one list of outputs; a node of the function's own type has the function's
    const std::string &op = s.body->defs[ref.node]->op();
    const ops::OpInfo *info = library.isFunction(op) ? &library.getSignature(*scopes[childScope(scope, ref.node)].body)
                                                     : ops::findOp(op);
    size_t arg = 0, numArgs = info ? info->outputs.size() : 0;
    while (arg < numArgs && std::string_view(ref.outArg.data(), ref.outArg.size()) != info->outputs[arg].name)
      ++arg;
    int64_t from = 0, to = 0;
    if (arg < numArgs && isCallOp(op)) {
      to = static_cast<int64_t>(signature->types.size());
    } else if (arg < numArgs) {
      from = signature->offsets[arg];
      to = signature->offsets[arg + 1];
    }
    if (from + port >= to)
      return fail(Twine("refers to output '") + printable(ref.outArg) + ":" + Twine(port) + "' of '" +
                  printable(s.body->defs[ref.node]->name()) + "', which it does not have");
    port += from;
  }
  if (port > INT32_MAX)
    return fail("refers to an output that does not exist");
  raw = {scope, ref.node, static_cast<int>(port)};
  return true;
}

/// Follows calls in and out until a node or an argument of the whole graph; makes the instance.
bool FlatBuilder::follow(RawRef raw, Ref &ref) {
  for (int hops = 0; hops < kMaxHops; ++hops) {
    Scope &s = scopes[raw.scope];
    if (raw.node < 0) {
      if (s.parent < 0) {
        ref = {raw.node, 0};
        return true;
      }
      int arg = -1 - raw.node, call = s.callNode;
      if (!toRaw(s.parent, scopes[s.parent].body->nodes[call].inputs[arg], call, raw))
        return false;
      continue;
    }
    if (raw.scope == 0) {
      auto fed = feeds.find({raw.node, raw.port});
      if (fed != feeds.end()) {
        ref = fed->second;
        return true;
      }
    }
    if (isCall(raw.scope, raw.node)) {
      const FlatSignature *outputs = outputsOf(raw.scope, raw.node);
      int child = outputs ? childScope(raw.scope, raw.node) : -1;
      if (child < 0)
        return false;
      if (raw.port >= static_cast<int>(outputs->types.size())) {
        problems.add(idOf(raw.scope, raw.node), Twine("has no output ") + Twine(raw.port));
        failed = true;
        return false;
      }
      auto arg = std::upper_bound(outputs->offsets.begin(), outputs->offsets.end(), raw.port) - 1;
      InputRef returned = scopes[child].body->returns[arg - outputs->offsets.begin()];
      returned.index += raw.port - *arg;
      if (!toRaw(child, returned, -1, raw))
        return false;
      continue;
    }
    const FlatSignature *outputs = outputsOf(raw.scope, raw.node);
    if (!outputs)
      return false;
    if (raw.port >= static_cast<int>(outputs->types.size())) {
      problems.add(idOf(raw.scope, raw.node), Twine("has no output ") + Twine(raw.port));
      failed = true;
      return false;
    }
    int instance = instanceOf(raw.scope, raw.node);
    if (instance < 0)
      return false;
    ref = {instance, raw.port};
    return true;
  }
  problems.add(idOf(raw.scope, std::max(raw.node, 0)), "is part of a cycle of function calls");
  failed = true;
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
    DType found = ref.isArgument() ? graph->argTypes[ref.argument()]
                                   : graph->instances[ref.instance].outTypes[ref.port];
    if (found != signature.types[i]) {
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
  if (instance.op == "Placeholder" || instance.op == "PlaceholderV2") {
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
  if (instance.op == "While" || instance.op == "StatelessWhile")
    first = 0;
  else if (instance.op == "If" || instance.op == "StatelessIf" || instance.op == "Case" ||
           instance.op == "StatelessCase")
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

/// What a callee runs besides what its outputs need.
void FlatBuilder::addEffects(int scope) {
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

//===----------------------------------------------------------------------===//
// Flattener
//===----------------------------------------------------------------------===//

bool Flattener::takeNode(const NodeId &id, size_t nameSize, size_t numOutputs) {
  nodesLeft -= static_cast<int64_t>(1 + nameSize / 128 + numOutputs / 8);
  if (nodesLeft >= 0)
    return true;
  if (!outOfNodes)
    problems.add(id, "inlining functions gives more nodes than the limit");
  outOfNodes = true;
  return false;
}

const std::vector<DType> *Flattener::mainOutputs(int node) {
  auto known = mainTypes.find(node);
  if (known != mainTypes.end())
    return known->second ? &*known->second : nullptr;
  std::optional<std::vector<DType>> &types = mainTypes[node];
  const Body *main = library.getMain();
  const tf::NodeDef &def = *main->defs[node];
  const ops::OpInfo *info = nullptr;
  AttrLookup::Map none, callAttrs;
  AttrLookup attrs(&def, &none);
  if (isCallOp(def.op()) || library.isFunction(def.op())) {
    const tf::AttrValue *f = attrs.find("f");
    bool direct = library.isFunction(def.op());
    if (!direct && (!f || !f->has_func()))
      return nullptr; // said where the node is flattened
    const Body *callee = library.getFunction(direct ? def.op() : f->func().name(), main->id(node));
    if (!callee)
      return nullptr;
    for (const auto &[key, value] : direct ? def.attr() : f->func().attr())
      callAttrs[key] = &value;
    info = &library.getSignature(*callee);
    attrs = AttrLookup(nullptr, &callAttrs);
  } else if (!(info = ops::findOp(def.op()))) {
    problems.add(main->id(node), "unknown op type");
    return nullptr;
  }
  absl::StatusOr<std::vector<DType>> resolved = ops::resolveTypes(*info, info->outputs, attrs);
  if (!resolved.ok()) {
    problems.add(main->id(node), Twine(std::string(resolved.status().message())));
    return nullptr;
  }
  types = std::move(*resolved);
  return &*types;
}

int Flattener::requestFunction(const tf::NameAttrList &function, const AttrLookup &caller, const NodeId &user,
                               std::vector<std::string> bindings) {
  const Body *body = library.getFunction(function.name(), user);
  if (!body)
    return -1;
  Request request;
  request.body = body;
  std::map<std::string, std::string> attrTexts;
  // instantiations differ only in attributes that the function declares
  for (const tf::OpDef::AttrDef &attr : body->signature->attr()) {
    auto it = function.attr().find(attr.name());
    const tf::AttrValue *value = it == function.attr().end() ? nullptr : caller.resolve(it->second);
    if (!value)
      continue;
    request.attrs[attr.name()] = value;
    attrTexts[attr.name()] = value->SerializeAsString();
  }
  if (bindings.size() != static_cast<size_t>(body->signature->input_arg_size()))
    bindings.clear(); // arguments that are lists
  std::string key = function.name();
  auto append = [&](StringRef text) { key += std::to_string(text.size()) + ":" + text.str(); };
  for (auto &[name, text] : attrTexts) {
    append(name);
    append(text);
  }
  key += '|';
  for (const std::string &binding : bindings)
    append(binding);
  auto [it, isNew] = functionIds.try_emplace(key, static_cast<int>(requests.size()));
  if (isNew) {
    if (requests.size() >= kMaxFunctions) {
      problems.add(user, "uses more functions than the limit");
      return it->second = -1;
    }
    request.bindings = std::move(bindings);
    requests.push_back(std::move(request));
  }
  return it->second;
}

void Flattener::flattenFunctions() {
  for (; nextRequest < requests.size() && !outOfNodes; ++nextRequest)
    functions.push_back(FlatBuilder(*this).buildFunction(requests[nextRequest]));
}

std::unique_ptr<FlatGraph> Flattener::flattenEntry(const EntrySpec &spec) {
  return FlatBuilder(*this).buildEntry(spec);
}

} // namespace lathe::import
