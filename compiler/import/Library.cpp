//===- Library.cpp - indexed graphs and functions -------------------------===//
#include "compiler/import/Library.h"

#include "llvm/ADT/StringSet.h"

#include <algorithm>

using llvm::StringRef;
using llvm::Twine;

namespace lathe::import {

// Nested calls and control flow; passes recurse over regions this deep.
static constexpr int kMaxCallDepth = 200;
static constexpr size_t kMaxNameLength = 1 << 16;

bool splitTensorName(StringRef text, StringRef &node, int64_t &port) {
  auto [name, number] = text.rsplit(':');
  node = name;
  port = 0;
  return number.empty() ? !text.contains(':') : !number.getAsInteger(10, port) && port >= 0 && port <= INT32_MAX;
}

//===----------------------------------------------------------------------===//
// AttrLookup
//===----------------------------------------------------------------------===//

const tf::AttrValue *AttrLookup::resolve(const tf::AttrValue &value) const {
  if (value.value_case() != tf::AttrValue::kPlaceholder)
    return &value;
  if (!scope)
    return nullptr;
  auto it = scope->find(value.placeholder());
  return it == scope->end() ? nullptr : it->second;
}

const tf::AttrValue *AttrLookup::find(std::string_view name) const {
  std::string key(name);
  if (!node) {
    auto it = scope->find(key);
    return it == scope->end() ? nullptr : it->second;
  }
  auto it = node->attr().find(key);
  return it == node->attr().end() ? nullptr : resolve(it->second);
}

const tf::AttrValue *AttrLookup::find(std::string_view name, tf::AttrValue::ValueCase kind) const {
  const tf::AttrValue *value = find(name);
  return value && value->value_case() == kind ? value : nullptr;
}

std::optional<int64_t> AttrLookup::intAttr(std::string_view name) const {
  const tf::AttrValue *value = find(name, tf::AttrValue::kI);
  if (!value)
    return std::nullopt;
  return value->i();
}

std::optional<DType> AttrLookup::typeAttr(std::string_view name) const {
  const tf::AttrValue *value = find(name, tf::AttrValue::kType);
  if (!value)
    return std::nullopt;
  return toDType(value->type());
}

std::optional<std::vector<DType>> AttrLookup::typeListAttr(std::string_view name) const {
  const tf::AttrValue *value = find(name, tf::AttrValue::kList);
  if (!value)
    return std::nullopt;
  std::vector<DType> types;
  for (int type : value->list().type())
    types.push_back(toDType(type));
  return types;
}

std::optional<std::string> AttrLookup::stringAttr(std::string_view name) const {
  const tf::AttrValue *value = find(name, tf::AttrValue::kS);
  if (!value)
    return std::nullopt;
  return value->s();
}

std::optional<int64_t> AttrLookup::listSize(std::string_view name) const {
  const tf::AttrValue *value = find(name, tf::AttrValue::kList);
  if (!value)
    return std::nullopt;
  const tf::AttrValue::ListValue &list = value->list();
  // only one of them has elements
  return list.s_size() + list.i_size() + list.f_size() + list.b_size() + list.type_size() + list.shape_size() +
         list.tensor_size() + list.func_size();
}

//===----------------------------------------------------------------------===//
// Library
//===----------------------------------------------------------------------===//

Library::Library(const tf::GraphDef &graph, Problems &problems) : graph(graph), problems(problems) {
  for (const tf::FunctionDef &function : graph.library().function())
    if (!functions.try_emplace(function.signature().name(), &function).second)
      problems.add(Twine("function '") + printable(function.signature().name()) + "' is defined twice");
}

const Body *Library::getMain() {
  if (!mainBody)
    mainBody = index(graph.node(), nullptr);
  return mainBody.get();
}

const Body *Library::getFunction(StringRef name, const NodeId &user) {
  auto it = functions.find(name);
  if (it == functions.end()) {
    problems.add(user, Twine("refers to function '") + printable(name) + "', which does not exist");
    return nullptr;
  }
  auto known = bodies.find(name);
  if (known != bodies.end())
    return known->second.get();
  std::unique_ptr<Body> body;
  if (checkRecursion(name))
    body = index(it->second->node_def(), it->second);
  return (bodies[name] = std::move(body)).get();
}

bool Library::parseInput(Body &body, const NodeId &id, StringRef text, InputRef &ref) {
  StringRef name = text;
  if (!body.signature) {
    if (!splitTensorName(text, name, ref.index)) {
      problems.add(id, Twine("input '") + printable(text) + "' is no tensor name");
      return false;
    }
  } else {
    // "argument", "argument:index", "node:output:index" or "node:output"
    StringRef rest;
    std::tie(name, rest) = text.split(':');
    if (auto arg = body.argIndex.find(name); arg != body.argIndex.end() && !body.nodeIndex.count(name)) {
      ref.node = -1 - arg->second;
      if (!rest.empty() && (rest.getAsInteger(10, ref.index) || ref.index < 0)) {
        problems.add(id, Twine("input '") + printable(text) + "' is no argument");
        return false;
      }
      return true;
    }
    auto [outArg, number] = rest.split(':');
    if (!number.empty() ? (number.getAsInteger(10, ref.index) || ref.index < 0) : false) {
      problems.add(id, Twine("input '") + printable(text) + "' is no tensor name");
      return false;
    }
    if (number.empty() && !outArg.empty() && !outArg.getAsInteger(10, ref.index) && ref.index >= 0)
      outArg = StringRef();
    ref.outArg = outArg;
  }
  auto it = body.nodeIndex.find(name);
  if (it == body.nodeIndex.end()) {
    problems.add(id, Twine("input '") + printable(text) + "' does not exist");
    return false;
  }
  ref.node = it->second;
  return true;
}

std::unique_ptr<Body> Library::index(const google::protobuf::RepeatedPtrField<tf::NodeDef> &nodes,
                                     const tf::FunctionDef *function) {
  auto body = std::make_unique<Body>();
  bool ok = true;
  if (function) {
    body->function = function;
    body->signature = &function->signature();
    body->name = body->signature->name();
    for (auto [i, arg] : llvm::enumerate(body->signature->input_arg()))
      if (!body->argIndex.try_emplace(arg.name(), static_cast<int>(i)).second) {
        problems.add(Twine("function '") + printable(body->name) + "' has two arguments named '" +
                     printable(arg.name()) + "'");
        ok = false;
      }
  }
  body->defs.reserve(nodes.size());
  for (const tf::NodeDef &node : nodes) {
    NodeId id{node.name(), node.op(), body->name};
    if (node.name().empty() || node.name()[0] == '^' || node.name().find(':') != std::string::npos ||
        node.name().size() > kMaxNameLength) {
      problems.add(id, "this is no valid node name");
      ok = false;
    } else if (node.op().empty()) {
      problems.add(id, "has no op type");
      ok = false;
    }
    if (!body->nodeIndex.try_emplace(node.name(), static_cast<int>(body->defs.size())).second) {
      problems.add(id, "another node has the same name");
      ok = false;
    }
    body->defs.push_back(&node);
  }
  body->nodes.resize(body->defs.size());
  for (auto [i, node] : llvm::enumerate(nodes)) {
    NodeId id = body->id(static_cast<int>(i));
    for (const std::string &input : node.input()) {
      StringRef text = input;
      if (text.consume_front("^")) {
        // a control edge may name an argument, which is always ready
        auto it = body->nodeIndex.find(text);
        if (it != body->nodeIndex.end()) {
          body->nodes[i].controls.push_back(it->second);
        } else if (!body->argIndex.count(text)) {
          problems.add(id, Twine("control input '^") + printable(text) + "' does not exist");
          ok = false;
        }
        continue;
      }
      InputRef ref;
      ok &= parseInput(*body, id, text, ref);
      body->nodes[i].inputs.push_back(ref);
    }
  }
  if (function) {
    NodeId id{body->name, "function", ""};
    for (const tf::OpDef::ArgDef &output : body->signature->output_arg()) {
      auto it = function->ret().find(output.name());
      InputRef ref;
      if (it == function->ret().end()) {
        problems.add(Twine("function '") + printable(body->name) + "' does not say what it returns as '" +
                     printable(output.name()) + "'");
        ok = false;
      } else {
        ok &= parseInput(*body, id, it->second, ref);
      }
      body->returns.push_back(ref);
    }
    // the map's order is not the file's and changes from run to run
    std::map<std::string, std::string> controlReturns(function->control_ret().begin(), function->control_ret().end());
    for (auto &[name, node] : controlReturns) {
      auto it = body->nodeIndex.find(node);
      if (it == body->nodeIndex.end()) {
        problems.add(Twine("function '") + printable(body->name) + "' returns control of '" + printable(node) +
                     "', which does not exist");
        ok = false;
      } else {
        body->controlReturns.push_back(it->second);
      }
    }
  }
  return ok ? std::move(body) : nullptr;
}

/// Functions that a function's nodes call, by op type or by attribute, in a fixed order.
static std::vector<StringRef> calledFunctions(const tf::FunctionDef &function,
                                              const llvm::StringMap<const tf::FunctionDef *> &functions) {
  llvm::StringSet<> seen;
  std::vector<StringRef> called;
  auto add = [&](StringRef name) {
    if (functions.count(name) && seen.insert(name).second)
      called.push_back(name);
  };
  for (const tf::NodeDef &node : function.node_def()) {
    add(node.op());
    for (const auto &[key, value] : node.attr()) {
      if (value.has_func())
        add(value.func().name());
      for (const tf::NameAttrList &f : value.list().func())
        add(f.name());
    }
  }
  std::sort(called.begin(), called.end());
  return called;
}

bool Library::checkRecursion(StringRef root) {
  // depth-first with a list of our own: the file decides how deep this goes
  struct Frame {
    StringRef name;
    std::vector<StringRef> called;
    size_t next = 0;
    int depth = 0;
  };
  constexpr int kOpen = INT32_MAX, kBad = -1;
  if (auto it = depths.find(root); it != depths.end())
    return it->second != kBad;
  std::vector<Frame> stack;
  auto open = [&](StringRef name) {
    depths[name] = kOpen;
    stack.push_back({name, calledFunctions(*functions.lookup(name), functions)});
  };
  open(root);
  while (!stack.empty()) {
    Frame &frame = stack.back();
    if (frame.next < frame.called.size()) {
      StringRef callee = frame.called[frame.next];
      auto it = depths.find(callee);
      if (it == depths.end()) {
        open(callee);
        continue;
      }
      ++frame.next;
      if (it->second == kOpen) {
        std::string path;
        bool inside = false;
        for (const Frame &f : stack) {
          inside |= f.name == callee;
          if (inside && f.name != callee)
            path += (path.empty() ? " through '" : "', '") + printable(f.name);
        }
        problems.add(Twine("function '") + printable(callee) + "' calls itself" + path + (path.empty() ? "" : "'"));
        frame.depth = kOpen;
      } else if (it->second == kBad) {
        frame.depth = kOpen;
      } else if (frame.depth != kOpen) {
        frame.depth = std::max(frame.depth, it->second + 1);
      }
      continue;
    }
    if (frame.depth != kOpen && frame.depth > kMaxCallDepth) {
      problems.add(Twine("function '") + printable(frame.name) + "' nests calls deeper than " + Twine(kMaxCallDepth) +
                   " levels");
      frame.depth = kOpen;
    }
    depths[frame.name] = frame.depth == kOpen ? kBad : frame.depth;
    stack.pop_back();
  }
  return depths[root] != kBad;
}

const ops::OpInfo &Library::getSignature(const Body &function) {
  std::unique_ptr<ops::OpInfo> &info = signatures[&function];
  if (info)
    return *info;
  info = std::make_unique<ops::OpInfo>();
  const tf::OpDef &def = *function.signature;
  info->name = def.name();
  info->isStateful = def.is_stateful();
  auto convert = [](const google::protobuf::RepeatedPtrField<tf::OpDef::ArgDef> &args, std::vector<ops::Arg> &out) {
    for (const tf::OpDef::ArgDef &arg : args)
      out.push_back({arg.name(), toDType(arg.type()), arg.type_attr(), arg.number_attr(), arg.type_list_attr(),
                     arg.is_ref()});
  };
  convert(def.input_arg(), info->inputs);
  convert(def.output_arg(), info->outputs);
  return *info;
}

} // namespace lathe::import
