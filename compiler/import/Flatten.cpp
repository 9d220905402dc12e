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
#include "compiler/import/CallSize.h"
#include "compiler/import/FlatBuilder.h"
#include "ops/Flags.h"

#include <algorithm>

using llvm::StringRef;
using llvm::Twine;

namespace lathe::import {

static constexpr size_t kMaxFunctions = 20'000;
// Between a variable's handle and its use; each use is followed on its own.
static constexpr int kMaxHandleHops = 1000;

bool isVariableHandle(StringRef op) { return ops::is(op, ops::Flag::Handle); }
bool isVariableReference(StringRef op) { return ops::is(op, ops::Flag::RefVariable); }

bool readsVariable(StringRef op) { return ops::is(op, ops::Flag::ReadsVariable); }

bool handsOn(const Instance &instance) {
  return !instance.inputs.empty() && ((ops::is(instance.op, ops::Flag::Passes) && instance.inputs.size() == 1) ||
                                      ops::is(instance.op, ops::Flag::Gates));
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
    if (through)
      *through |= ops::is(instance.op, ops::Flag::Gates);
    if (!handsOn(instance))
      return "";
    ref = instance.inputs[0];
  }
  return "";
}

//===----------------------------------------------------------------------===//
// Flattener
//===----------------------------------------------------------------------===//

Flattener::Flattener(Library &library, Problems &problems, int64_t maxNodes)
    : library(library), problems(problems), nodesLeft(maxNodes), sizes(std::make_unique<CallSize>(library)) {}

Flattener::~Flattener() = default;

bool Flattener::takeNode(const NodeId &id, size_t nameSize, size_t numOutputs) {
  nodesLeft -= static_cast<int64_t>(1 + nameSize / 128 + numOutputs / 8);
  if (nodesLeft >= 0)
    return true;
  reportTooMany(id);
  return false;
}

void Flattener::reportTooMany(const NodeId &id) {
  if (!outOfNodes)
    problems.add(id, "inlining functions gives more nodes than the limit");
  outOfNodes = true;
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
  for (; nextRequest < requests.size() && !outOfNodes; ++nextRequest) {
    const Body &body = *requests[nextRequest].body;
    if (sizes->ofFunction(body) > nodesLeft)
      reportTooMany({body.name, "function", ""});
    else
      functions.push_back(FlatBuilder(*this).buildFunction(requests[nextRequest]));
  }
}

std::unique_ptr<FlatGraph> Flattener::flattenEntry(const EntrySpec &spec) {
  if (sizes->ofEntry(spec) > nodesLeft && sizes->largestCall() >= 0) {
    reportTooMany(library.getMain()->id(sizes->largestCall()));
    return nullptr;
  }
  return FlatBuilder(*this).buildEntry(spec);
}

} // namespace lathe::import
