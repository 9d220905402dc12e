//===- FlatCalls.cpp - edges into and out of calls ------------------------===//
#include "compiler/import/FlatBuilder.h"

using llvm::StringRef;
using llvm::Twine;

namespace lathe::import {

// A reference that passes this many calls without reaching a node goes round in a circle.
static constexpr int kMaxHops = 100'000;

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
    AttrLookup attrs(&def, &s.attrs);
    absl::Status allowed = info ? ops::checkAttrs(*info, attrs) : absl::NotFoundError("unknown op type");
    if (!allowed.ok())
      problems.add(idOf(scope, node), Twine(std::string(allowed.message())));
    ok = allowed.ok() && flatten(*info, info->outputs, attrs, idOf(scope, node), signature);
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

} // namespace lathe::import
