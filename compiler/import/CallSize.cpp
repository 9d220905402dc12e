//===- CallSize.cpp - how many nodes inlining makes at least --------------===//
//
// Wherever it is not known what an edge leads to (lists of arguments, functions that are attributes), less is counted:
// a graph is refused only for nodes that it certainly has.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/CallSize.h"

#include "compiler/import/FlatBuilder.h"
#include "llvm/ADT/DenseSet.h"

#include <algorithm>
#include <set>

using llvm::StringRef;

namespace lathe::import {

// More are not counted: the sum is beyond any limit, or the functions have so many outputs that counting takes longer
// than expanding would.
static constexpr int64_t kEnough = int64_t(1) << 40, kMaxSteps = 20'000'000;

/// Goes from roots of one body back to what they need.
class CallSize::Walk {
public:
  Walk(CallSize &sizes, const Body &body) : sizes(sizes), body(body) { sizes.steps += 1; }

  llvm::DenseSet<int> fedNodes;
  std::set<std::pair<int, int64_t>> feeds;

  void need(const InputRef &ref) {
    if (ref.node < 0) {
      if (arguments.insert(-1 - ref.node).second)
        part.args.push_back(-1 - ref.node);
      return;
    }
    if (feeds.count({ref.node, ref.index}))
      return;
    if (!isCall(ref.node))
      return needNode(ref.node);
    const Body *callee = calleeOf(ref.node);
    needCall(ref.node, callee, callee ? outputOf(ref, *callee) : kEffects);
  }

  void needControl(int node) {
    if (fedNodes.count(node))
      return;
    isCall(node) ? needCall(node, calleeOf(node), kEverything) : needNode(node);
  }

  void needEffects() {
    if (!body.controlReturns.empty()) {
      sizes.steps += static_cast<int64_t>(body.controlReturns.size());
      for (int node : body.controlReturns)
        needEffect(node);
      return;
    }
    if (!body.signature || !body.signature->is_stateful())
      return;
    sizes.steps += static_cast<int64_t>(body.defs.size());
    for (size_t node = 0; node < body.defs.size(); ++node)
      if (body.defs[node]->op() != "PartitionedCall")
        needEffect(static_cast<int>(node));
  }

  Part finish() {
    while (!work.empty() && sizes.steps < kMaxSteps) {
      int node = work.back();
      work.pop_back();
      sizes.steps += 1 + static_cast<int64_t>(body.nodes[node].inputs.size() + body.nodes[node].controls.size());
      for (const InputRef &input : body.nodes[node].inputs)
        need(input);
      for (int control : body.nodes[node].controls)
        needControl(control);
    }
    int64_t most = 0;
    for (auto [node, size] : calls) {
      part.nodes = std::min(kEnough, part.nodes + 1 + size);
      if (size > most)
        most = size, largest = node;
    }
    return std::move(part);
  }

  int largest = -1;

private:
  bool isCall(int node) const {
    const std::string &op = body.defs[node]->op();
    return isCallOp(op) || sizes.library.isFunction(op);
  }

  /// Null also where the function is not known before the caller is.
  const Body *calleeOf(int node) const {
    const tf::NodeDef &def = *body.defs[node];
    StringRef name = def.op();
    if (!sizes.library.isFunction(name)) {
      auto f = def.attr().find("f");
      if (f == def.attr().end() || !f->second.has_func())
        return nullptr;
      name = f->second.func().name();
    }
    return sizes.library.isFunction(name) ? sizes.library.getFunction(name, body.id(node)) : nullptr;
  }

  static bool isList(const tf::OpDef::ArgDef &arg) { return !arg.number_attr().empty() || !arg.type_list_attr().empty(); }
  static bool hasLists(const google::protobuf::RepeatedPtrField<tf::OpDef::ArgDef> &args) {
    return std::any_of(args.begin(), args.end(), isList);
  }

  int outputOf(const InputRef &ref, const Body &callee) const {
    const auto &outputs = callee.signature->output_arg();
    if (!ref.outArg.empty() && !isCallOp(body.defs[ref.node]->op())) {
      for (int i = 0; i < outputs.size(); ++i)
        if (outputs[i].name() == ref.outArg)
          return i;
      return kEffects;
    }
    return ref.index < outputs.size() && !hasLists(outputs) ? static_cast<int>(ref.index) : kEffects;
  }

  void needNode(int node) {
    if (!nodes.insert(node).second)
      return;
    ++part.nodes;
    work.push_back(node);
  }

  void needEffect(int node) {
    if (isCall(node))
      return needCall(node, calleeOf(node), kEffects);
    if (const ops::OpInfo *info = ops::findOp(body.defs[node]->op()); info && hasEffect(*info, body.defs[node]->op()))
      needNode(node);
  }

  void needCall(int node, const Body *callee, int output) {
    if (!callee || !seenCalls.insert({node, output}).second)
      return;
    const Part &inner = sizes.measure(*callee, output);
    int64_t &size = calls[node];
    size = std::max(size, inner.nodes);
    const std::vector<InputRef> &inputs = body.nodes[node].inputs;
    if (inputs.size() != static_cast<size_t>(callee->signature->input_arg_size()) || hasLists(callee->signature->input_arg()))
      return;
    sizes.steps += 1 + static_cast<int64_t>(inner.args.size());
    for (int arg : inner.args)
      waiting.push_back(inputs[arg]);
    // an argument may lead to another call, and so on: a list instead of recursion along a chain of calls
    if (followed)
      return;
    followed = true;
    while (!waiting.empty()) {
      InputRef next = waiting.back();
      waiting.pop_back();
      need(next);
    }
    followed = false;
  }

  CallSize &sizes;
  const Body &body;
  Part part;
  llvm::DenseSet<int> nodes, arguments;
  std::set<std::pair<int, int>> seenCalls;
  std::map<int, int64_t> calls;
  std::vector<int> work;
  std::vector<InputRef> waiting;
  bool followed = false;
};

/// Recursion is bounded: Library refuses functions that nest deeper than 200 calls.
const CallSize::Part &CallSize::measure(const Body &body, int output) {
  auto [it, isNew] = parts.try_emplace({&body, output});
  if (!isNew || steps >= kMaxSteps)
    return it->second;
  Walk walk(*this, body);
  walk.needEffects();
  if (output >= 0)
    walk.need(body.returns[output]);
  if (output == kEverything) {
    for (const InputRef &returned : body.returns)
      walk.need(returned);
    for (int node : body.controlReturns)
      walk.needControl(node);
  }
  return it->second = walk.finish();
}

int64_t CallSize::ofFunction(const Body &function) {
  Walk walk(*this, function);
  walk.needEffects();
  for (const InputRef &returned : function.returns)
    walk.need(returned);
  return walk.finish().nodes;
}

int64_t CallSize::ofEntry(const Flattener::EntrySpec &spec) {
  const Body *main = library.getMain();
  if (!main)
    return 0;
  Walk walk(*this, *main);
  auto feed = [&](const MainTensor &tensor) {
    walk.fedNodes.insert(tensor.node);
    walk.feeds.insert({tensor.node, tensor.port});
  };
  for (const MainTensor &tensor : spec.feeds)
    feed(tensor);
  for (auto &[tensor, value] : spec.constants)
    feed(tensor);
  for (const MainTensor &output : spec.outputs)
    walk.need({output.node, StringRef(), output.port});
  for (int target : spec.targets)
    walk.needControl(target);
  int64_t nodes = walk.finish().nodes;
  largest = walk.largest;
  return nodes;
}

} // namespace lathe::import
