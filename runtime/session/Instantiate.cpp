// Bodies of functions: attributes put in, inputs by name made inputs by position.
#include "runtime/session/Graph.h"

#include "runtime/session/ProtoValues.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include <unordered_set>

namespace lathe::rt {
namespace {

constexpr int kMaxDepth = 16; // of functions in attributes

/// Values of the placeholders in a function's body.
class Instance {
public:
  Instance(const tf::FunctionDef &function, const FunctionRef &ref) : function(function), ref(ref) {}

  absl::Status attr(const std::string &name, tf::AttrValue *out) const {
    if (auto it = ref.attrs.find(name); it != ref.attrs.end())
      return writeAttrProto(it->second, out);
    for (const auto &a : function.signature().attr())
      if (a.name() == name && a.has_default_value()) {
        *out = a.default_value();
        return absl::OkStatus();
      }
    return absl::InvalidArgumentError(absl::StrCat("function '", ref.name, "' is called without its attribute '", name, "'"));
  }

  absl::Status substitute(tf::AttrValue *value, int depth = 0) const {
    if (depth > kMaxDepth)
      return absl::InvalidArgumentError("functions in attributes are nested too deeply");
    if (value->value_case() == tf::AttrValue::kPlaceholder) {
      std::string name = value->placeholder();
      return attr(name, value);
    }
    auto inside = [&](tf::NameAttrList *f) {
      for (auto &[name, a] : *f->mutable_attr())
        if (absl::Status s = substitute(&a, depth + 1); !s.ok())
          return s;
      return absl::OkStatus();
    };
    if (value->value_case() == tf::AttrValue::kFunc)
      return inside(value->mutable_func());
    if (value->value_case() == tf::AttrValue::kList)
      for (auto &f : *value->mutable_list()->mutable_func())
        if (absl::Status s = inside(&f); !s.ok())
          return s;
    return absl::OkStatus();
  }

  /// Types of one declared argument or result.
  absl::Status types(const tf::OpDef::ArgDef &arg, std::vector<DType> *out) const {
    auto number = [](int t) { return dtypeFromNumber(t).value_or(DType::Invalid); };
    DType type = number(arg.type());
    tf::AttrValue value;
    if (!arg.type_list_attr().empty()) {
      if (absl::Status s = attr(arg.type_list_attr(), &value); !s.ok())
        return s;
      for (int t : value.list().type())
        out->push_back(number(t));
      return absl::OkStatus();
    }
    if (!arg.type_attr().empty()) {
      if (absl::Status s = attr(arg.type_attr(), &value); !s.ok())
        return s;
      type = number(value.type());
    }
    int64_t count = 1;
    if (!arg.number_attr().empty()) {
      if (absl::Status s = attr(arg.number_attr(), &value); !s.ok())
        return s;
      count = value.i();
      if (count < 0 || count > 1'000'000)
        return absl::InvalidArgumentError(absl::StrCat("argument '", arg.name(), "' of function '", ref.name, "' has ", count, " parts"));
    }
    if (type == DType::Invalid)
      return absl::InvalidArgumentError(absl::StrCat("argument '", arg.name(), "' of function '", ref.name, "' has no type"));
    out->insert(out->end(), count, type);
    return absl::OkStatus();
  }

  const tf::FunctionDef &function;
  const FunctionRef &ref;
};

class Instantiator {
public:
  Instantiator(const Library &library, const tf::FunctionDef &function, const FunctionRef &ref, const GraphLimits &limits)
      : library(library), limits(limits), instance(function, ref) {}
  absl::StatusOr<Body> run();

private:
  struct Source {
    std::string node;
    ArgRange range;
  };
  absl::Status addArgs();
  absl::Status addNodes();
  absl::Status addResults();
  void keepNeeded();
  absl::Status sources(const std::string &input, std::vector<std::string> *out) const;

  const Library &library;
  const GraphLimits &limits;
  Instance instance;
  Body body;
  std::unordered_map<std::string, std::vector<std::string>> args; ///< argument -> _Arg nodes
  std::unordered_map<std::string, Source> outputs;                ///< "node:output" -> ports
  std::unordered_set<std::string> names;
  std::vector<std::string> roots;
};

std::string fresh(const std::unordered_set<std::string> &taken, std::string name) {
  while (taken.count(name))
    name += "_";
  return name;
}

void setType(tf::NodeDef *node, DType type) { (*node->mutable_attr())["T"].set_type(static_cast<tf::DataType>(type)); }

absl::Status Instantiator::addArgs() {
  for (const auto &node : instance.function.node_def())
    names.insert(node.name());
  for (const auto &arg : instance.function.signature().input_arg()) {
    std::vector<DType> types;
    if (absl::Status s = instance.types(arg, &types); !s.ok())
      return s;
    for (size_t i = 0; i < types.size(); ++i) {
      std::string name = fresh(names, types.size() == 1 ? arg.name() : absl::StrCat(arg.name(), "_", i));
      names.insert(name);
      tf::NodeDef *node = body.graph.add_node();
      node->set_name(name);
      node->set_op("_Arg");
      setType(node, types[i]);
      (*node->mutable_attr())["index"].set_i(static_cast<int64_t>(body.argTypes.size()));
      body.argTypes.push_back(types[i]);
      args[arg.name()].push_back(name);
    }
    args[arg.name()];
  }
  return absl::OkStatus();
}

/// "arg", "arg:1", "node:output:1", "node:output" (all of a list), "^node".
absl::Status Instantiator::sources(const std::string &input, std::vector<std::string> *out) const {
  if (!input.empty() && input[0] == '^') {
    std::string node = input.substr(1);
    auto arg = args.find(node);
    out->push_back(arg != args.end() && !arg->second.empty() ? "^" + arg->second[0] : input);
    return absl::OkStatus();
  }
  auto unknown = [&] { return absl::InvalidArgumentError(absl::StrCat("input '", input, "' does not exist")); };
  size_t first = input.find(':'), second = first == std::string::npos ? first : input.find(':', first + 1);
  std::string node = input.substr(0, first);
  if (auto arg = args.find(node); arg != args.end() && second == std::string::npos) {
    int index = -1;
    if (first != std::string::npos && (!absl::SimpleAtoi(input.substr(first + 1), &index) || index < 0 ||
                                       index >= static_cast<int>(arg->second.size())))
      return unknown();
    if (index >= 0)
      out->push_back(arg->second[index]);
    else
      out->insert(out->end(), arg->second.begin(), arg->second.end());
    return absl::OkStatus();
  }
  std::string key = second == std::string::npos ? input : input.substr(0, second);
  auto it = outputs.find(key);
  if (it == outputs.end())
    return unknown();
  const ArgRange &range = it->second.range;
  int index = -1;
  if (second != std::string::npos &&
      (!absl::SimpleAtoi(input.substr(second + 1), &index) || index < 0 || index >= range.count))
    return unknown();
  for (int i = 0; i < range.count; ++i)
    if (index < 0 || i == index)
      out->push_back(range.start + i == 0 ? node : absl::StrCat(node, ":", range.start + i));
  return absl::OkStatus();
}

absl::Status Instantiator::addNodes() {
  int first = body.graph.node_size();
  for (const auto &def : instance.function.node_def()) {
    tf::NodeDef *node = body.graph.add_node();
    *node = def;
    node->clear_input();
    for (auto &[name, value] : *node->mutable_attr())
      if (absl::Status s = instance.substitute(&value); !s.ok())
        return atNode(def.name(), def.op(), s);
    auto info = readNode(*node, library, limits, false);
    if (!info.ok())
      return info.status();
    auto add = [&](const std::string &output, ArgRange range) {
      outputs[node->name() + ":" + output] = {node->name(), range};
    };
    if (const ops::OpInfo *op = ops::findOp(def.op())) {
      for (const ops::Arg &arg : op->outputs)
        add(std::string(arg.name), info->outputRange(arg.name));
      if (op->isStateful)
        roots.push_back(node->name());
    } else {
      const tf::FunctionDef *callee = library.find(def.op());
      const auto *f = attrOf<FunctionRefPtr>(*info, "f");
      Instance inner(*callee, **f);
      int start = 0;
      for (const auto &arg : callee->signature().output_arg()) {
        std::vector<DType> types;
        if (absl::Status s = inner.types(arg, &types); !s.ok())
          return s;
        add(arg.name(), {start, static_cast<int>(types.size())});
        start += static_cast<int>(types.size());
      }
      if (callee->signature().is_stateful())
        roots.push_back(node->name());
    }
  }
  for (int i = first; i < body.graph.node_size(); ++i) {
    tf::NodeDef *node = body.graph.mutable_node(i);
    std::vector<std::string> inputs;
    for (const std::string &input : instance.function.node_def(i - first).input())
      if (absl::Status s = sources(input, &inputs); !s.ok())
        return atNode(node->name(), node->op(), s);
    for (const std::string &input : inputs)
      node->add_input(input);
  }
  return absl::OkStatus();
}

absl::Status Instantiator::addResults() {
  const tf::FunctionDef &f = instance.function;
  for (const auto &result : f.signature().output_arg()) {
    std::vector<DType> types;
    if (absl::Status s = instance.types(result, &types); !s.ok())
      return s;
    auto it = f.ret().find(result.name());
    if (it == f.ret().end())
      return absl::InvalidArgumentError(absl::StrCat("function '", instance.ref.name, "' does not give its result '", result.name(), "'"));
    std::vector<std::string> from;
    if (absl::Status s = sources(it->second, &from); !s.ok())
      return absl::InvalidArgumentError(absl::StrCat("function '", instance.ref.name, "': ", s.message()));
    if (from.size() != types.size())
      return absl::InvalidArgumentError(absl::StrCat("function '", instance.ref.name, "': result '", result.name(), "' has ", types.size(),
                                                     " parts, found ", from.size()));
    for (size_t i = 0; i < types.size(); ++i) {
      tf::NodeDef *node = body.graph.add_node();
      std::string name = fresh(names, absl::StrCat("_retval_", result.name(), "_", i));
      names.insert(name);
      node->set_name(name);
      node->set_op("_Retval");
      node->add_input(from[i]);
      setType(node, types[i]);
      (*node->mutable_attr())["index"].set_i(static_cast<int64_t>(body.resultTypes.size()));
      body.resultTypes.push_back(types[i]);
      roots.push_back(name);
    }
  }
  for (auto &[name, node] : f.control_ret())
    roots.push_back(node);
  return absl::OkStatus();
}

void Instantiator::keepNeeded() {
  std::unordered_map<std::string, int> index;
  for (int i = 0; i < body.graph.node_size(); ++i)
    index[body.graph.node(i).name()] = i;
  std::vector<bool> needed(body.graph.node_size());
  std::vector<int> work;
  auto need = [&](const std::string &name) {
    auto it = index.find(name);
    if (it == index.end() || needed[it->second])
      return;
    needed[it->second] = true;
    work.push_back(it->second);
  };
  for (const std::string &root : roots)
    need(root);
  while (!work.empty()) {
    int i = work.back();
    work.pop_back();
    for (const std::string &input : body.graph.node(i).input())
      need(parseTensorName(input).node);
  }
  tf::GraphDef kept;
  for (int i = 0; i < body.graph.node_size(); ++i)
    if (needed[i])
      kept.add_node()->Swap(body.graph.mutable_node(i));
  body.graph.Swap(&kept);
  for (const std::string &root : roots)
    if (index.count(root) && root.rfind("_retval_", 0) != 0)
      body.targets.push_back(root);
}

absl::StatusOr<Body> Instantiator::run() {
  for (auto step : {&Instantiator::addArgs, &Instantiator::addNodes, &Instantiator::addResults})
    if (absl::Status s = (this->*step)(); !s.ok())
      return s;
  keepNeeded();
  return std::move(body);
}

} // namespace

absl::StatusOr<Body> instantiate(const Library &library, const FunctionRef &ref, const GraphLimits &limits) {
  const tf::FunctionDef *function = library.find(ref.name);
  if (!function)
    return absl::NotFoundError(absl::StrCat("function '", ref.name, "' is not in the library"));
  return Instantiator(library, *function, ref, limits).run();
}

absl::Status functionSignature(const Library &library, const FunctionRef &ref, std::vector<DType> *args,
                               std::vector<DType> *results) {
  const tf::FunctionDef *function = library.find(ref.name);
  if (!function)
    return absl::NotFoundError(absl::StrCat("function '", ref.name, "' is not in the library"));
  Instance instance(*function, ref);
  for (const auto &arg : function->signature().input_arg())
    if (absl::Status s = instance.types(arg, args); !s.ok())
      return s;
  for (const auto &arg : function->signature().output_arg())
    if (absl::Status s = instance.types(arg, results); !s.ok())
      return s;
  return absl::OkStatus();
}

} // namespace lathe::rt
