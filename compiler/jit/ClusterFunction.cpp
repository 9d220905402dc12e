#include "compiler/jit/ClusterFunction.h"

#include "compiler/import/Library.h"
#include "ops/Flags.h"
#include "ops/Registry.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <set>

using llvm::StringRef;

namespace lathe {

std::string clusterArgName(size_t i) { return "arg" + std::to_string(i); }

namespace {

using FunctionMap = llvm::StringMap<const tf::FunctionDef *>;

/// Flat index of output `index` of the output argument `name`; -1 when there is none.
int64_t flatOutput(const tf::NodeDef &node, StringRef name, int64_t index, const FunctionMap &functions) {
  if (ops::is(node.op(), ops::Flag::Call))
    return index;
  if (const tf::FunctionDef *function = functions.lookup(node.op())) {
    for (int i = 0; i < function->signature().output_arg_size(); ++i)
      if (function->signature().output_arg(i).name() == name)
        return i + index; // lists as outputs are refused where the function is read
    return -1;
  }
  const ops::OpInfo *info = ops::findOp(node.op());
  if (!info)
    return -1;
  import::AttrLookup attrs(&node, nullptr);
  std::vector<int64_t> counts;
  if (!ops::resolveTypes(*info, info->outputs, attrs, &counts).ok())
    return -1;
  int64_t offset = 0;
  for (size_t i = 0; i < info->outputs.size(); ++i) {
    if (info->outputs[i].name == std::string_view(name.data(), name.size()))
      return index < counts[i] ? offset + index : -1;
    offset += counts[i];
  }
  return -1;
}

/// Copies the functions that nodes of `out` may need, those these need, and gradients of their own that they have.
void copyFunctions(const FunctionMap &functions, const tf::FunctionDefLibrary &library, tf::GraphDef &out) {
  std::set<std::string> seen;
  llvm::StringMap<const tf::GradientDef *> gradients;
  for (const tf::GradientDef &g : library.gradient())
    gradients[g.function_name()] = &g;
  std::vector<const tf::FunctionDef *> work;
  auto want = [&](const std::string &name) {
    const tf::FunctionDef *function = functions.lookup(name);
    if (function && seen.insert(name).second)
      work.push_back(function);
  };
  auto scan = [&](const tf::NodeDef &node) {
    want(node.op());
    for (const auto &[key, value] : node.attr()) {
      if (value.has_func())
        want(value.func().name());
      for (const tf::NameAttrList &f : value.list().func())
        want(f.name());
    }
  };
  for (const tf::NodeDef &node : out.node())
    scan(node);
  while (!work.empty()) {
    const tf::FunctionDef *function = work.back();
    work.pop_back();
    *out.mutable_library()->add_function() = *function;
    for (const tf::NodeDef &node : function->node_def())
      scan(node);
    if (const tf::GradientDef *gradient = gradients.lookup(function->signature().name())) {
      *out.mutable_library()->add_gradient() = *gradient;
      want(gradient->gradient_func());
    }
  }
  // found in an order that hash maps decide
  auto &list = *out.mutable_library()->mutable_function();
  std::sort(list.pointer_begin(), list.pointer_end(), [](const tf::FunctionDef *a, const tf::FunctionDef *b) {
    return a->signature().name() < b->signature().name();
  });
  auto &own = *out.mutable_library()->mutable_gradient();
  std::sort(own.pointer_begin(), own.pointer_end(), [](const tf::GradientDef *a, const tf::GradientDef *b) {
    return a->function_name() < b->function_name();
  });
}

void setShape(tf::TensorShapeProto &shape, const lathe_cluster_arg &arg) {
  if (arg.rank < 0)
    shape.set_unknown_rank(true);
  for (int32_t d = 0; d < arg.rank; ++d)
    shape.add_dim()->set_size(arg.dims[d]);
}

} // namespace

llvm::Expected<LaunchGraph> buildLaunchGraph(const tf::GraphDef &library, const std::string &name,
                                               llvm::ArrayRef<const lathe_cluster_arg *> args) {
  FunctionMap functions;
  for (const tf::FunctionDef &function : library.library().function())
    functions[function.signature().name()] = &function;
  const tf::FunctionDef *function = functions.lookup(name);
  if (!function)
    return llvm::createStringError("function '" + import::printable(name) + "' does not exist");
  auto problem = [&](const std::string &text) {
    return llvm::createStringError("function '" + import::printable(name) + "': " + text);
  };
  const tf::OpDef &signature = function->signature();
  if (static_cast<size_t>(signature.input_arg_size()) != args.size())
    return problem("expected " + std::to_string(signature.input_arg_size()) + " arguments, got " +
                   std::to_string(args.size()));
  for (const auto *list : {&signature.input_arg(), &signature.output_arg()})
    for (const tf::OpDef::ArgDef &arg : *list)
      if (arg.type() == tf::DT_INVALID)
        return problem("argument '" + import::printable(arg.name()) + "' has no type of its own");

  LaunchGraph result;
  tf::GraphDef &graph = result.graph;
  llvm::StringSet<> names;
  llvm::StringMap<const tf::NodeDef *> nodes;
  for (const tf::NodeDef &node : function->node_def()) {
    names.insert(node.name());
    nodes[node.name()] = &node;
  }
  llvm::StringMap<std::string> argNodes;
  for (size_t i = 0; i < args.size(); ++i) {
    const lathe_cluster_arg &arg = *args[i];
    tf::NodeDef &node = *graph.add_node();
    node.set_name(clusterArgName(i));
    while (!names.insert(node.name()).second)
      node.set_name(node.name() + "_");
    const tf::OpDef::ArgDef &declared = signature.input_arg(static_cast<int>(i));
    bool isReference = declared.is_ref();
    node.set_op(!arg.is_variable ? "Placeholder" : isReference ? "VariableV2" : "VarHandleOp");
    auto &attrs = *node.mutable_attr();
    attrs["dtype"].set_type(static_cast<tf::DataType>(arg.dtype));
    setShape(*attrs["shape"].mutable_shape(), arg);
    if (arg.is_variable) {
      size_t same = arg.struct_size >= sizeof(lathe_cluster_arg) && arg.same_as > 0 ? size_t(arg.same_as - 1) : i;
      attrs["shared_name"].set_s(clusterArgName(same));
    }
    argNodes[declared.name()] = node.name();
    result.arguments.push_back(node.name());
  }
  // "arg", "node:output:index" -> "arg", "node:index"
  auto convert = [&](StringRef text, std::string &out) {
    auto [first, rest] = text.split(':');
    if (auto arg = argNodes.find(first); arg != argNodes.end() && !nodes.count(first)) {
      out = arg->second;
      return rest.empty() || rest == "0";
    }
    const tf::NodeDef *node = nodes.lookup(first);
    if (!node)
      return false;
    auto [output, number] = rest.split(':');
    int64_t index = 0;
    if (rest.empty() || (number.empty() && !output.getAsInteger(10, index))) {
      // already flat
    } else if (!number.empty() && (number.getAsInteger(10, index) || index < 0)) {
      return false;
    } else {
      index = flatOutput(*node, output, index, functions);
    }
    out = first.str() + ":" + std::to_string(index);
    return index >= 0;
  };
  for (const tf::NodeDef &from : function->node_def()) {
    tf::NodeDef &node = *graph.add_node();
    node = from;
    node.clear_input();
    for (const std::string &input : from.input()) {
      StringRef text = input;
      if (text.consume_front("^")) {
        auto arg = argNodes.find(text);
        node.add_input("^" + (arg != argNodes.end() && !nodes.count(text) ? arg->second : text.str()));
        continue;
      }
      std::string converted;
      if (!convert(text, converted))
        return problem("input '" + import::printable(input) + "' of node '" + import::printable(from.name()) +
                       "' does not exist");
      node.add_input(converted);
    }
  }
  for (const tf::OpDef::ArgDef &output : signature.output_arg()) {
    auto it = function->ret().find(output.name());
    std::string converted;
    if (it == function->ret().end() || !convert(it->second, converted))
      return problem("result '" + import::printable(output.name()) + "' does not exist");
    if (StringRef(converted).contains(':'))
      result.results.push_back(converted);
    else
      result.results.push_back(converted + ":0");
  }
  std::set<std::string> targets;
  for (const auto &[key, node] : function->control_ret())
    targets.insert(node);
  result.targets.assign(targets.begin(), targets.end());
  copyFunctions(functions, library.library(), graph);
  return result;
}

} // namespace lathe
