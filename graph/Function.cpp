#include "graph/Function.h"
#include "ops/Flags.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <set>
#include <unordered_map>

namespace lathe::graphdef {
namespace {

constexpr int kMaxDepth = 16; // of functions in attributes

using AttrMap = google::protobuf::Map<std::string, tf::AttrValue>;

/// Values of the placeholders in a function's body.
class Substitution {
public:
  Substitution(const tf::OpDef &signature, const AttrMap &given) : values(given) {
    for (const tf::OpDef::AttrDef &attr : signature.attr())
      if (attr.has_default_value())
        values.insert({attr.name(), attr.default_value()});
  }

  absl::Status apply(tf::AttrValue *value, int depth = 0) const {
    if (depth > kMaxDepth)
      return absl::InvalidArgumentError("functions in attributes are nested too deeply");
    auto inside = [&](tf::NameAttrList *f) {
      for (auto &[name, attr] : *f->mutable_attr())
        if (absl::Status s = apply(&attr, depth + 1); !s.ok())
          return s;
      return absl::OkStatus();
    };
    switch (value->value_case()) {
    case tf::AttrValue::kPlaceholder: {
      auto it = values.find(value->placeholder());
      if (it == values.end())
        return absl::InvalidArgumentError(absl::StrCat("the function is called without its attribute '", value->placeholder(), "'"));
      *value = tf::AttrValue(it->second);
      return absl::OkStatus();
    }
    case tf::AttrValue::kFunc: return inside(value->mutable_func());
    case tf::AttrValue::kList:
      for (tf::NameAttrList &f : *value->mutable_list()->mutable_func())
        if (absl::Status s = inside(&f); !s.ok())
          return s;
      return absl::OkStatus();
    default: return absl::OkStatus();
    }
  }

  /// The flat types of arguments or results, and how many each has.
  absl::StatusOr<std::vector<DType>> types(const ops::OpInfo &op, const std::vector<ops::Arg> &args, std::vector<int64_t> *counts) const {
    return ops::resolveTypes(op, args, AttrLookup(values), counts);
  }

private:
  AttrMap values;
};

class Instantiator {
public:
  Instantiator(const std::shared_ptr<Library> &library, const tf::FunctionDef &function, const AttrMap &attrs)
      : library(library), function(function), substitution(function.signature(), attrs) {}

  absl::StatusOr<FunctionBody> run() {
    body.graph = std::make_unique<Graph>(library);
    for (auto step : {&Instantiator::addArgs, &Instantiator::addNodes, &Instantiator::addResults})
      if (absl::Status s = (this->*step)(); !s.ok())
        return absl::Status(s.code(), absl::StrCat("function '", function.signature().name(), "': ", s.message()));
    return std::move(body);
  }

private:
  std::string fresh(std::string name) {
    while (!names.insert(name).second)
      name += "_";
    return name;
  }

  absl::StatusOr<Node *> addEnd(const char *op, std::string name, DType type, size_t index, std::vector<Endpoint> inputs) {
    NodeSpec spec;
    spec.def.set_name(std::move(name));
    spec.def.set_op(op);
    (*spec.def.mutable_attr())["T"].set_type(static_cast<tf::DataType>(type));
    (*spec.def.mutable_attr())["index"].set_i(static_cast<int64_t>(index));
    spec.inputs = std::move(inputs);
    return body.graph->add(std::move(spec));
  }

  absl::Status addArgs() {
    for (const tf::NodeDef &node : function.node_def())
      names.insert(node.name());
    const ops::OpInfo &op = *library->signature(function.signature().name());
    std::vector<int64_t> counts;
    auto types = substitution.types(op, op.inputs, &counts);
    if (!types.ok())
      return types.status();
    size_t k = 0;
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      auto &list = args[std::string(op.inputs[i].name)];
      for (int64_t j = 0; j < counts[i]; ++j, ++k) {
        std::string arg(op.inputs[i].name);
        auto node = addEnd("_Arg", fresh(counts[i] == 1 ? arg : absl::StrCat(arg, "_", j)), (*types)[k], k, {});
        if (!node.ok())
          return node.status();
        body.args.push_back(*node);
        list.push_back(*node);
      }
    }
    return absl::OkStatus();
  }

  /// Appends what "arg", "arg:1", "node:output:1" or "node:output" (all of a list) names; nodes by `made`.
  absl::Status sources(const std::string &input, std::vector<std::string> *out) const {
    auto unknown = [&] { return absl::InvalidArgumentError(absl::StrCat("input '", input, "' does not exist")); };
    size_t first = input.find(':'), second = first == std::string::npos ? first : input.find(':', first + 1);
    std::string name = input.substr(0, first);
    auto add = [&](const std::string &node, int start, int count, const std::string &number) {
      int index = -1;
      if (!number.empty() && (!absl::SimpleAtoi(number, &index) || index < 0 || index >= count))
        return unknown();
      for (int i = 0; i < count; ++i)
        if (index < 0 || index == i)
          out->push_back(absl::StrCat(node, ":", start + i));
      return absl::OkStatus();
    };
    if (auto arg = args.find(name); arg != args.end() && second == std::string::npos) {
      int index = -1;
      if (first != std::string::npos &&
          (!absl::SimpleAtoi(input.substr(first + 1), &index) || index < 0 || index >= static_cast<int>(arg->second.size())))
        return unknown();
      for (size_t i = 0; i < arg->second.size(); ++i)
        if (index < 0 || index == static_cast<int>(i))
          out->push_back(arg->second[i]->name());
      return absl::OkStatus();
    }
    auto it = ranges.find(second == std::string::npos ? input : input.substr(0, second));
    if (first == std::string::npos || it == ranges.end())
      return unknown();
    return add(name, it->second.first, it->second.second, second == std::string::npos ? "" : input.substr(second + 1));
  }

  absl::Status findRanges(const tf::NodeDef &node) {
    const ops::OpInfo *op = body.graph->findOp(node.op());
    if (!op)
      return absl::NotFoundError("op is not known");
    std::vector<int64_t> counts;
    auto types = ops::resolveTypes(*op, op->outputs, AttrLookup(node.attr()), &counts);
    if (!types.ok())
      return types.status();
    int start = 0;
    for (size_t i = 0; i < op->outputs.size(); ++i) {
      ranges[absl::StrCat(node.name(), ":", std::string(op->outputs[i].name))] = {start, static_cast<int>(counts[i])};
      start += static_cast<int>(counts[i]);
    }
    return absl::OkStatus();
  }

  absl::Status addNodes() {
    tf::GraphDef nodes;
    for (const tf::NodeDef &def : function.node_def()) {
      tf::NodeDef *node = nodes.add_node();
      *node = def;
      node->clear_input();
      absl::Status s;
      for (auto &[name, value] : *node->mutable_attr())
        if (s.ok())
          s = substitution.apply(&value);
      if (s.ok())
        s = findRanges(*node);
      if (!s.ok())
        return atNode(def.name(), def.op(), s);
    }
    for (int i = 0; i < function.node_def_size(); ++i) {
      std::vector<std::string> inputs;
      for (const std::string &input : function.node_def(i).input()) {
        absl::Status s;
        if (!input.empty() && input[0] == '^') {
          auto arg = args.find(input.substr(1));
          if (arg == args.end())
            inputs.push_back(input);
          else if (!arg->second.empty())
            inputs.push_back("^" + arg->second[0]->name());
        } else {
          s = sources(input, &inputs);
        }
        if (!s.ok())
          return atNode(nodes.node(i).name(), nodes.node(i).op(), s);
      }
      for (const std::string &input : inputs)
        nodes.mutable_node(i)->add_input(input);
    }
    return body.graph->extend(nodes);
  }

  absl::Status addResults() {
    const ops::OpInfo &op = *library->signature(function.signature().name());
    std::vector<int64_t> counts;
    auto types = substitution.types(op, op.outputs, &counts);
    if (!types.ok())
      return types.status();
    size_t k = 0;
    for (size_t i = 0; i < op.outputs.size(); ++i) {
      std::string name(op.outputs[i].name);
      auto it = function.ret().find(name);
      if (it == function.ret().end())
        return absl::InvalidArgumentError(absl::StrCat("does not give its result '", name, "'"));
      std::vector<std::string> from;
      if (absl::Status s = sources(it->second, &from); !s.ok())
        return s;
      if (static_cast<int64_t>(from.size()) != counts[i])
        return absl::InvalidArgumentError(absl::StrCat("result '", name, "' has ", counts[i], " parts, found ", from.size()));
      for (size_t j = 0; j < from.size(); ++j, ++k) {
        auto node = addEnd("_Retval", fresh(from.size() == 1 ? name : absl::StrCat(name, "_", j)), (*types)[k], k,
                           {body.graph->findEndpoint(from[j])});
        if (!node.ok())
          return node.status();
        body.results.push_back(*node);
      }
    }
    std::set<std::string> controls; // the map's order changes from run to run
    for (auto &[name, node] : function.control_ret())
      controls.insert(node);
    for (const std::string &name : controls) {
      Node *node = body.graph->find(name);
      if (!node)
        return absl::InvalidArgumentError(absl::StrCat("returns control of '", name, "', which does not exist"));
      body.controlResults.push_back(node);
    }
    return absl::OkStatus();
  }

  const std::shared_ptr<Library> &library;
  const tf::FunctionDef &function;
  Substitution substitution;
  FunctionBody body;
  std::set<std::string> names;
  std::unordered_map<std::string, std::vector<Node *>> args;
  std::unordered_map<std::string, std::pair<int, int>> ranges; ///< "node:output" -> first port, count
};

/// "node:output:index" for an endpoint inside a body.
std::string bodyInput(const Endpoint &e) {
  if (ops::is(e.node->op(), ops::Flag::Argument))
    return e.node->name();
  for (const ops::Arg &arg : e.node->info().outputs) {
    auto [start, count] = e.node->outputRange(arg.name);
    if (e.index >= start && e.index < start + count)
      return absl::StrCat(e.node->name(), ":", std::string(arg.name), ":", e.index - start);
  }
  return e.name();
}

} // namespace

std::vector<DType> FunctionBody::argTypes() const {
  std::vector<DType> types;
  for (const Node *arg : args)
    types.push_back(arg->outputType(0));
  return types;
}

std::vector<DType> FunctionBody::resultTypes() const {
  std::vector<DType> types;
  for (const Node *result : results)
    types.push_back(result->inputType(0));
  return types;
}

absl::StatusOr<FunctionBody> instantiate(const std::shared_ptr<Library> &library, const tf::NameAttrList &function) {
  const tf::FunctionDef *def = library->find(function.name());
  if (!def)
    return absl::NotFoundError(absl::StrCat("function '", function.name(), "' is not in the library"));
  return Instantiator(library, *def, function.attr()).run();
}

absl::StatusOr<tf::FunctionDef> toFunction(const FunctionBody &body, std::string_view name) {
  tf::FunctionDef f;
  tf::OpDef *signature = f.mutable_signature();
  signature->set_name(std::string(name));
  for (const Node *arg : body.args) {
    tf::OpDef::ArgDef *def = signature->add_input_arg();
    def->set_name(arg->name());
    def->set_type(static_cast<tf::DataType>(arg->outputType(0)));
  }
  for (const Node *result : body.results) {
    tf::OpDef::ArgDef *def = signature->add_output_arg();
    def->set_name(result->name());
    def->set_type(static_cast<tf::DataType>(result->inputType(0)));
    (*f.mutable_ret())[result->name()] = bodyInput(result->input(0));
  }
  auto order = topologicalOrder(*body.graph);
  if (!order.ok())
    return order.status();
  for (const Node *node : *order) {
    if (ops::is(node->op(), ops::Flag::End))
      continue;
    tf::NodeDef *def = f.add_node_def();
    *def = node->toProto();
    def->clear_input();
    for (const Endpoint &e : node->inputs())
      def->add_input(bodyInput(e));
    for (const Node *c : node->controls())
      def->add_input("^" + c->name());
    if (node->info().isStateful)
      signature->set_is_stateful(true);
  }
  for (const Node *node : body.controlResults) {
    (*f.mutable_control_ret())[node->name()] = node->name();
    signature->add_control_output(node->name());
  }
  return f;
}

} // namespace lathe::graphdef
