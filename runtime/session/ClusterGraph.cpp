// From a graph to a graph with launches.
#include "runtime/session/Clusters.h"

#include "ops/Absent.h"
#include "runtime/session/DeviceValues.h"
#include "runtime/device.h"
#include "runtime/session/Executable.h"
#include "runtime/session/Partition.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include <algorithm>
#include <unordered_map>
#include <atomic>
#include <unordered_set>

namespace lathe::rt {

bool needsCompiler(const tf::NodeDef &node, const Library &library) {
  return node.op() != kLaunchOp && !isExecutorOp(node.op()) && !findKernel(node.op()) && !library.find(node.op());
}

namespace {

void setType(tf::AttrValue *value, DType type) { value->set_type(static_cast<tf::DataType>(type)); }

constexpr size_t kLargeConstant = 1024; // bytes of a node that no axis, size or bound is as long as

/// The constants of a graph that a node may have to know when it is compiled, by name.
using Constants = std::unordered_map<std::string, tf::NodeDef>;

Constants smallConstants(const tf::GraphDef &graph) {
  Constants found;
  for (const tf::NodeDef &node : graph.node())
    if (node.op() == "Const" && node.ByteSizeLong() <= kLargeConstant)
      found[node.name()] = node;
  return found;
}

/// Makes one node a function and a launch of it, with the constants among its inputs. References among the outputs are the node's own
/// first input, the variable that it updates; they come from a RefIdentity under the node's name, behind the launch.
absl::Status wrapNode(tf::NodeDef node, const Library &library, const GraphLimits &limits, const std::string &functionName,
                      const Constants &constants, tf::GraphDef *graph, tf::FunctionDefLibrary *functions) {
  auto info = readNode(node, library, limits, false);
  if (!info.ok())
    return info.status();
  // what no module can take or give
  for (auto *types : {&info->inputTypes, &info->outputTypes})
    for (DType t : *types)
      if (t == DType::String || t == DType::Variant || (t == DType::Resource && types == &info->outputTypes))
        return atNode(node.name(), node.op(), absl::UnimplementedError(ops::noHostKernel(node.op())));
  tf::FunctionDef *f = functions->add_function();
  tf::OpDef *signature = f->mutable_signature();
  signature->set_name(functionName);
  signature->set_is_stateful(info->info && info->info->isStateful);
  tf::NodeDef *inner = f->add_node_def();
  *inner = node;
  inner->clear_input();
  inner->clear_device();
  tf::NodeDef launch;
  launch.set_op(kLaunchOp);
  launch.set_device(node.device());
  auto *targs = (*launch.mutable_attr())["Targs"].mutable_list();
  auto *thandles = (*launch.mutable_attr())["Thandles"].mutable_list();
  auto *tresults = (*launch.mutable_attr())["Tresults"].mutable_list();

  std::vector<std::string> data, controls;
  for (const std::string &input : node.input())
    (input[0] == '^' ? controls : data).push_back(input);
  if (data.size() != info->inputTypes.size())
    return atNode(node.name(), node.op(),
                  absl::InvalidArgumentError(absl::StrCat("expected ", info->inputTypes.size(), " inputs, found ", data.size())));
  auto isVariable = [&](size_t i) { return info->inputIsRef[i] || info->inputTypes[i] == DType::Resource; };
  auto constantOf = [&](size_t i) -> const tf::NodeDef * {
    auto found = constants.find(std::string(absl::StripSuffix(data[i], ":0")));
    return found == constants.end() || isVariable(i) ? nullptr : &found->second;
  };
  bool allConstant = true; // then the launch would have no inputs, and be in no loop
  for (size_t i = 0; i < data.size(); ++i)
    allConstant = allConstant && constantOf(i);
  std::vector<std::string> names(data.size());
  int variables = 0;
  for (bool wanted : {false, true})
    for (size_t i = 0; i < data.size(); ++i) {
      if (isVariable(i) != wanted)
        continue;
      if (const tf::NodeDef *constant = allConstant ? nullptr : constantOf(i)) {
        tf::NodeDef *copy = f->add_node_def();
        *copy = *constant;
        // in a branch or a loop's turn that does not happen the constant is dead, and with it what reads it
        controls.insert(controls.end(), constant->input().begin(), constant->input().end());
        copy->clear_input();
        copy->clear_device();
        copy->set_name(absl::StrCat(node.name(), "/constant", i));
        names[i] = absl::StrCat(copy->name(), ":output:0");
        continue;
      }
      tf::OpDef::ArgDef *arg = signature->add_input_arg();
      names[i] = absl::StrCat("in", i);
      arg->set_name(names[i]);
      arg->set_type(static_cast<tf::DataType>(info->inputTypes[i]));
      arg->set_is_ref(info->inputIsRef[i]);
      if (wanted) {
        ++variables;
        thandles->add_type(static_cast<tf::DataType>(info->inputTypes[i]));
        (*launch.mutable_attr())["reads"].mutable_list()->add_b(true); // plain assignments have host kernels
      } else
        targs->add_type(static_cast<tf::DataType>(info->inputTypes[i]));
      launch.add_input(data[i]);
    }
  for (const std::string &name : names)
    inner->add_input(name);
  if (info->info && info->info->isStateful)
    (*f->mutable_control_ret())[node.name()] = node.name();
  bool anyRef = false;
  for (const ops::Arg &out : info->info->outputs) {
    ArgRange range = info->outputRange(out.name);
    for (int k = 0; k < range.count; ++k) {
      int port = range.start + k;
      if (info->outputIsRef[port]) {
        anyRef = true;
        continue;
      }
      tf::OpDef::ArgDef *result = signature->add_output_arg();
      result->set_name(absl::StrCat("out", port));
      result->set_type(static_cast<tf::DataType>(info->outputTypes[port]));
      (*f->mutable_ret())[result->name()] = absl::StrCat(node.name(), ":", std::string(out.name), ":", k);
      tresults->add_type(static_cast<tf::DataType>(info->outputTypes[port]));
    }
  }
  for (const std::string &c : controls)
    launch.add_input(c);
  auto &function = *(*launch.mutable_attr())["function"].mutable_func();
  function.set_name(functionName);
  (*launch.mutable_attr())["variables"].set_i(variables);
  (*launch.mutable_attr())["cluster"].set_s(node.name());
  if (!anyRef) {
    launch.set_name(node.name());
    *graph->add_node() = std::move(launch);
    return absl::OkStatus();
  }
  if (info->outputTypes.size() != 1 || data.empty() || !info->inputIsRef[0])
    return atNode(node.name(), node.op(), absl::UnimplementedError(ops::noHostKernel(node.op())));
  (*f->mutable_control_ret())[node.name()] = node.name();
  signature->set_is_stateful(true);
  launch.set_name(node.name() + "/_launch");
  tf::NodeDef *forward = graph->add_node();
  forward->set_name(node.name());
  forward->set_op("RefIdentity");
  setType(&(*forward->mutable_attr())["T"], info->outputTypes[0]);
  forward->add_input(data[0]);
  forward->add_input("^" + launch.name());
  *graph->add_node() = std::move(launch);
  return absl::OkStatus();
}

/// Whether a module may take the place of a host kernel: it has no state, and takes and gives elements alone.
bool moduleServes(const tf::NodeDef &node, const Library &library, const GraphLimits &limits, const lathe_cluster_compiler *compiler) {
  if (isExecutorOp(node.op()) || hostInputsOfHandler(node.op()) || library.find(node.op()) || !compilesOp(compiler, node.op()))
    return false;
  auto info = readNode(node, library, limits, false);
  if (!info.ok() || !info->info || info->info->isStateful)
    return false;
  for (auto *types : {&info->inputTypes, &info->outputTypes})
    for (DType t : *types)
      if (!hasDeviceForm(t))
        return false;
  auto isRef = [](const std::vector<bool> &refs) { return std::find(refs.begin(), refs.end(), true) != refs.end(); };
  return !isRef(info->inputIsRef) && !isRef(info->outputIsRef);
}

std::atomic<int64_t> singles{0}; // names in libraries that may grow from each other

/// Whether there is a host kernel, but not for this node: some are for strings only. Nodes that call functions are not asked:
/// their kernels want the session's caller.
bool kernelRefuses(const tf::NodeDef &node, const Library &library, const GraphLimits &limits) {
  if (!findKernel(node.op()) || isExecutorOp(node.op()))
    return false;
  for (auto &[name, value] : node.attr())
    if (value.has_func() || value.list().func_size())
      return false;
  auto info = readNode(node, library, limits);
  if (!info.ok())
    return false; // told where the graph is built
  ResourceManager none;
  KernelInit init(*info, &none, nullptr);
  return makeKernel(init).status().code() == absl::StatusCode::kUnimplemented;
}

class Released {
public:
  Released(const lathe_cluster_compiler *c, lathe_bytes *b) : compiler(c), bytes(b) {}
  ~Released() {
    if (bytes->data)
      compiler->release_bytes(compiler->context, bytes);
  }

private:
  const lathe_cluster_compiler *compiler;
  lathe_bytes *bytes;
};

/// The compiler's own clustering; the reason when it does not serve.
absl::Status clusterByCompiler(const lathe_cluster_compiler &compiler, const ClusterOptions &options, Body *body,
                               std::shared_ptr<const Library> *library) {
  tf::GraphDef whole = body->graph;
  *whole.mutable_library() = (*library)->proto();
  std::string text = whole.SerializeAsString();
  std::vector<std::string> hostNames;
  for (std::string_view op : allKernels())
    hostNames.emplace_back(op);
  for (std::string_view op : allExecutorOps())
    hostNames.emplace_back(op);
  std::sort(hostNames.begin(), hostNames.end());
  hostNames.erase(std::unique(hostNames.begin(), hostNames.end()), hostNames.end());
  std::vector<const char *> hostOps, targets;
  for (const std::string &name : hostNames)
    hostOps.push_back(name.c_str());
  for (const tf::NodeDef &node : body->graph.node())
    if (node.op() == "_Retval")
      targets.push_back(node.name().c_str());
  for (const std::string &target : body->targets)
    targets.push_back(target.c_str());
  lathe_cluster_options how = {};
  how.struct_size = sizeof(how);
  how.mode = options.mode;
  how.min_size = options.minSize;
  how.num_host_ops = static_cast<int32_t>(hostOps.size());
  how.host_ops = hostOps.data();
  how.flags = options.flags.empty() ? nullptr : options.flags.c_str();
  lathe_cluster_request request = {};
  request.struct_size = sizeof(request);
  request.graph = {text.data(), text.size()};
  request.num_targets = static_cast<int32_t>(targets.size());
  request.targets = targets.data();
  request.options = &how;
  lathe_bytes clustered = {}, error = {};
  int32_t code = compiler.cluster(compiler.context, &request, &clustered, &error);
  Released one(&compiler, &clustered), two(&compiler, &error);
  if (code)
    return absl::Status(static_cast<absl::StatusCode>(code), absl::string_view(error.data ? error.data : "", error.data ? error.size : 0));
  tf::GraphDef result;
  if (clustered.size > INT32_MAX || !result.ParseFromArray(clustered.data, static_cast<int>(clustered.size)))
    return absl::InternalError("the clustered graph does not parse");
  auto extended = Library::extend(*library, result.library());
  if (!extended.ok())
    return extended.status();
  // what is still without a kernel could not be compiled
  std::unordered_set<std::string> names;
  for (const tf::NodeDef &node : result.node())
    names.insert(node.name());
  for (const char *target : targets)
    if (!names.count(target))
      return absl::InternalError(absl::StrCat("clustering lost the node '", target, "'"));
  result.clear_library();
  if (hasCycleAroundLoops(result))
    return absl::InternalError("clustering made a cycle around a loop");
  *library = *std::move(extended);
  body->graph = std::move(result);
  return absl::OkStatus();
}

} // namespace

bool compilesOp(const lathe_cluster_compiler *compiler, const std::string &op) {
  return compiler && compiler->struct_size >= sizeof(lathe_cluster_compiler) && compiler->compiles_op &&
         compiler->compiles_op(compiler->context, op.c_str());
}

absl::Status clusterSingly(tf::GraphDef *graph, tf::FunctionDefLibrary *functions, const Library &library, const GraphLimits &limits,
                           const lathe_cluster_compiler *everything) {
  const Constants constants = smallConstants(*graph);
  tf::GraphDef result;
  *result.mutable_versions() = graph->versions();
  for (tf::NodeDef &node : *graph->mutable_node()) {
    if (!needsCompiler(node, library) && !kernelRefuses(node, library, limits) &&
        (!everything || node.op() == kLaunchOp || !moduleServes(node, library, limits, everything))) {
      result.add_node()->Swap(&node);
      continue;
    }
    if (!ops::findOp(node.op()))
      return atNode(node.name(), node.op(), absl::NotFoundError("op is not known"));
    std::string name;
    do
      name = absl::StrCat("_lathe_single_", singles.fetch_add(1));
    while (library.find(name));
    if (absl::Status s = wrapNode(std::move(node), library, limits, name, constants, &result, functions); !s.ok())
      return s;
  }
  graph->Swap(&result);
  return absl::OkStatus();
}

absl::Status clusterGraph(const lathe_cluster_compiler *compiler, const ClusterOptions &options, Body *body,
                          std::shared_ptr<const Library> *library, const GraphLimits &limits, bool singly) {
  const bool everything = options.device && !singly;
  bool any = everything;
  for (const tf::NodeDef &node : body->graph.node())
    any = any || needsCompiler(node, **library) || kernelRefuses(node, **library, limits);
  bool must = false;
  for (const tf::NodeDef &node : body->graph.node())
    if (auto it = node.attr().find("_XlaMustCompile"); it != node.attr().end())
      must = must || it->second.b();
  if (!compiler || (!any && options.mode == 0) || (!any && !must && options.mode == 2))
    return absl::OkStatus();
  // with clustering off, what has no host kernel is compiled a node at a time
  if (compiler->cluster && !singly && (options.mode != 2 || must))
    (void)clusterByCompiler(*compiler, options, body, library).ok(); // else each node alone
  tf::FunctionDefLibrary singles;
  if (absl::Status s = clusterSingly(&body->graph, &singles, **library, limits, everything ? compiler : nullptr);
      !s.ok())
    return s;
  auto extended = Library::extend(*library, singles);
  if (!extended.ok())
    return extended.status();
  *library = *std::move(extended);
  return absl::OkStatus();
}

} // namespace lathe::rt
