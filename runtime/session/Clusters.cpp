// Compiling clusters per signature and running them.
#include "runtime/session/Clusters.h"

#include "runtime/device.h"
#include "runtime/session/DeviceValues.h"

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <set>

namespace lathe::rt {

struct ClusterVariant {
  struct Arg {
    DType type = DType::Invalid;
    bool constant = false, dynamic = false, isVariable = false;
    std::vector<int64_t> dims;
    Tensor value; ///< of constants
    bool assigned = true; ///< variables only
  };
  std::vector<Arg> args; ///< arguments, then variables
  lathe_compiled compiled = {};
  std::unique_ptr<ModuleCall> call;
  std::unique_ptr<DeviceRuns> runs; ///< of the device, if it has some
  std::vector<int> inputs;    ///< the module's inputs as arguments
  std::vector<int> variables; ///< the module's variables as variables of the cluster
  const ClusterVariant *next = nullptr;
};

namespace {

/// `a` lies on the host.
bool sameContent(const Tensor &a, const Tensor &b) {
  if (a.dtype() == DType::String)
    return a.strings() == b.strings();
  if (memoryOf(b)) {
    auto known = hostTensor(b);
    return known.ok() && sameContent(a, *known);
  }
  return a.data() == b.data() || std::memcmp(a.data(), b.data(), a.sizeBytes()) == 0;
}

bool dimsFit(const ClusterVariant::Arg &arg, const std::vector<int64_t> &dims) {
  if (arg.dims == dims)
    return true;
  if (!arg.dynamic || arg.dims.size() != dims.size() || dims.empty())
    return false;
  return std::equal(dims.begin() + 1, dims.end(), arg.dims.begin() + 1);
}

bool fits(const ClusterVariant &v, const std::vector<Tensor> &args, const std::vector<std::shared_ptr<Variable>> &variables) {
  for (size_t i = 0; i < args.size(); ++i) {
    const ClusterVariant::Arg &arg = v.args[i];
    if (arg.type != args[i].dtype() || !dimsFit(arg, args[i].dims()) || (arg.constant && !sameContent(arg.value, args[i])))
      return false;
  }
  for (size_t i = 0; i < variables.size(); ++i) {
    const ClusterVariant::Arg &arg = v.args[args.size() + i];
    const Tensor &value = variables[i]->value;
    if (arg.assigned != value.valid() || (value.valid() && (arg.type != value.dtype() || arg.dims != value.dims())))
      return false;
  }
  return true;
}

/// Locks each variable once, in the order of addresses.
class LockAll {
public:
  explicit LockAll(const std::vector<std::shared_ptr<Variable>> &variables) {
    for (auto &v : variables)
      all.push_back(v.get());
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    for (Variable *v : all)
      v->mutex.lock();
  }
  ~LockAll() {
    for (Variable *v : all)
      v->mutex.unlock();
  }

private:
  std::vector<Variable *> all;
};

/// "arg12" -> 12, -1 for other names.
int argNumber(const char *name) {
  if (std::strncmp(name, "arg", 3) != 0 || !name[3])
    return -1;
  char *end = nullptr;
  long n = std::strtol(name + 3, &end, 10);
  return *end || n < 0 || n > 1'000'000 ? -1 : static_cast<int>(n);
}

std::string take(const lathe_cluster_compiler *compiler, lathe_bytes &bytes) {
  std::string text(bytes.data ? bytes.data : "", bytes.data ? bytes.size : 0);
  if (bytes.data)
    compiler->release_bytes(compiler->context, &bytes);
  return text;
}

} // namespace

/// What an attempt to compile had: sizes, types, and the values that the compiler fixed.
struct Cluster::Failure {
  std::string key, failedNode;
  std::vector<std::pair<size_t, Tensor>> values; ///< by argument
  absl::Status status;
};

namespace {

constexpr int64_t kMaxFixedBytes = 8192; // of a value that the compiler may fix
constexpr size_t kMaxFailures = 64;

std::string failureKey(const std::vector<Tensor> &args, const std::vector<std::shared_ptr<Variable>> &variables) {
  std::string key;
  auto add = [&](DType type, const Tensor &t) {
    absl::StrAppend(&key, static_cast<int>(type), t.valid() ? dimsToString(t.dims()) : "-", ";");
  };
  for (const Tensor &t : args)
    add(t.dtype(), t);
  LockAll locked(variables);
  for (auto &v : variables)
    add(v->dtype, v->value);
  return key;
}

} // namespace

Cluster::Cluster(const lathe_cluster_compiler *compiler, std::string graph, std::string function, ClusterOptions options)
    : compiler(compiler), graph(std::move(graph)), function(std::move(function)), options(std::move(options)) {}

Cluster::~Cluster() {
  for (const ClusterVariant *v = newest.load(); v;) {
    const ClusterVariant *next = v->next;
    auto *own = const_cast<ClusterVariant *>(v);
    own->runs.reset(); // before the module
    compiler->release_compiled(compiler->context, &own->compiled);
    delete own;
    v = next;
  }
}

int Cluster::numVariants() const {
  int n = 0;
  for (const ClusterVariant *v = newest.load(std::memory_order_acquire); v; v = v->next)
    ++n;
  return n;
}

const ClusterVariant *Cluster::find(const std::vector<Tensor> &args, const std::vector<std::shared_ptr<Variable>> &variables) const {
  for (const ClusterVariant *v = newest.load(std::memory_order_acquire); v; v = v->next)
    if (fits(*v, args, variables))
      return v;
  return nullptr;
}

absl::StatusOr<const ClusterVariant *> Cluster::compile(const std::vector<Tensor> &args,
                                                        const std::vector<std::shared_ptr<Variable>> &variables,
                                                        std::string *failedNode) {
  std::lock_guard<std::mutex> lock(compiling);
  auto made = std::make_unique<ClusterVariant>();
  std::vector<Tensor> held = args; // what the request points to
  for (Tensor &t : held)
    if (memoryOf(t) && t.sizeBytes() > kMaxFixedBytes)
      t = Tensor(); // nothing is fixed that large
  if (absl::Status s = bringToHost(held); !s.ok())
    return s;
  held.resize(args.size() + variables.size());
  {
    LockAll locked(variables);
    if (const ClusterVariant *v = find(args, variables))
      return v; // someone else was faster
    for (const Tensor &t : args) {
      ClusterVariant::Arg arg;
      arg.type = t.dtype();
      arg.dims = t.dims();
      made->args.push_back(std::move(arg));
    }
    for (auto &v : variables) {
      ClusterVariant::Arg arg;
      arg.isVariable = true;
      arg.assigned = v->value.valid();
      arg.type = v->dtype;
      arg.dims = v->value.dims();
      made->args.push_back(std::move(arg));
    }
  }
  std::vector<lathe_cluster_arg> infos(made->args.size());
  std::vector<const lathe_cluster_arg *> pointers;
  for (size_t i = 0; i < infos.size(); ++i) {
    const ClusterVariant::Arg &arg = made->args[i];
    infos[i].struct_size = sizeof(lathe_cluster_arg);
    infos[i].dtype = static_cast<int32_t>(arg.type);
    infos[i].is_variable = arg.isVariable;
    infos[i].rank = arg.isVariable && !arg.assigned ? -1 : static_cast<int32_t>(arg.dims.size());
    infos[i].dims = arg.dims.data();
    infos[i].data = held[i].valid() ? held[i].data() : nullptr;
    for (size_t k = args.size(); k < i && !infos[i].same_as; ++k)
      if (variables[k - args.size()] == variables[i - args.size()])
        infos[i].same_as = static_cast<int32_t>(k) + 1;
    pointers.push_back(&infos[i]);
  }
  lathe_compile_request request = {};
  request.struct_size = sizeof(request);
  request.num_args = static_cast<int32_t>(infos.size());
  request.graph = {graph.data(), graph.size()};
  request.function = function.c_str();
  request.args = pointers.data();
  request.threads = options.threads;
  request.dynamic_dims = options.dynamicDims;
  request.cache_dir = options.cacheDir.empty() ? nullptr : options.cacheDir.c_str();
  request.cpu = options.cpu.empty() ? nullptr : options.cpu.c_str();
  request.backend = options.backend.empty() ? nullptr : options.backend.c_str();
  lathe_bytes error = {};
  made->compiled.struct_size = sizeof(made->compiled);
  if (int32_t code = compiler->compile(compiler->context, &request, &made->compiled, &error)) {
    std::string text = take(compiler, error);
    *failedNode = made->compiled.failed_node ? made->compiled.failed_node : "";
    auto failure = std::make_shared<Failure>();
    for (size_t i = 0; i < args.size(); ++i)
      if (held[i].valid() && made->compiled.constant && made->compiled.constant[i])
        failure->values.emplace_back(i, held[i]);
    compiler->release_compiled(compiler->context, &made->compiled);
    failure->key = failureKey(args, variables);
    failure->failedNode = *failedNode;
    failure->status = moduleStatus(code, text.c_str());
    absl::Status status = failure->status;
    std::lock_guard<std::mutex> known(failuresMutex);
    if (failures.size() >= kMaxFailures)
      failures.erase(failures.begin());
    failures.push_back(std::move(failure));
    anyFailure.store(true, std::memory_order_release);
    return status;
  }
  const lathe_module &module = *made->compiled.module;
  auto refuse = [&](const std::string &why) {
    compiler->release_compiled(compiler->context, &made->compiled);
    return absl::InternalError("the compiled cluster " + why);
  };
  for (size_t i = 0; i < made->args.size() && made->compiled.constant; ++i)
    if (made->compiled.constant[i]) {
      if (i < args.size() && !held[i].valid())
        return refuse(absl::StrCat("has fixed argument ", i, ", which it was not given"));
      made->args[i].constant = true;
      made->args[i].value = held[i];
    }
  for (size_t i = 0; i < made->args.size() && made->compiled.dynamic; ++i)
    made->args[i].dynamic = made->compiled.dynamic[i] != 0;
  made->call = std::make_unique<ModuleCall>(&module, 0);
  for (int i = 0; i < module.entries[0]->num_inputs; ++i) {
    int n = argNumber(module.entries[0]->inputs[i]->name);
    if (n < 0 || n >= static_cast<int>(args.size()))
      return refuse(absl::StrCat("has an input '", module.entries[0]->inputs[i]->name, "'"));
    made->inputs.push_back(n);
  }
  for (int i = 0; i < module.num_variables; ++i) {
    int n = argNumber(module.variables[i]->tensor->name) - static_cast<int>(args.size());
    if (n < 0 || n >= static_cast<int>(variables.size()))
      return refuse(absl::StrCat("has a variable '", module.variables[i]->tensor->name, "'"));
    made->variables.push_back(n);
  }
  if (options.device && made->compiled.device)
    made->runs = options.device->prepareRuns(*made->compiled.device);
  made->next = newest.load(std::memory_order_relaxed);
  newest.store(made.get(), std::memory_order_release);
  return made.release();
}

std::shared_ptr<const Cluster::Failure> Cluster::findFailure(const std::vector<Tensor> &args,
                                                             const std::vector<std::shared_ptr<Variable>> &variables) const {
  if (!anyFailure.load(std::memory_order_acquire))
    return nullptr;
  std::string key = failureKey(args, variables);
  std::lock_guard<std::mutex> lock(failuresMutex);
  for (auto &failure : failures)
    if (failure->key == key && std::all_of(failure->values.begin(), failure->values.end(),
                                           [&](auto &value) { return sameContent(value.second, args[value.first]); }))
      return failure;
  return nullptr;
}

absl::Status Cluster::run(const std::vector<Tensor> &args, const std::vector<std::shared_ptr<Variable>> &variables,
                          const std::vector<bool> &writes, WorkerPool *background, std::vector<Tensor> *results,
                          ClusterOutcome *outcome) {
  const ClusterVariant *variant = nullptr;
  for (int attempt = 0;; ++attempt) {
    if (variables.empty())
      variant = find(args, variables);
    if (!variant || !variables.empty()) {
      LockAll locked(variables);
      variant = find(args, variables);
      if (variant && !variables.empty()) {
        // in place: readers that share a buffer keep the old one
        std::vector<void *> pointers;
        for (size_t i = 0; i < variant->variables.size(); ++i) {
          Variable &v = *variables[variant->variables[i]];
          if (absl::Status s = prepareVariable(v, *variant->compiled.module->variables[i]->tensor); !s.ok())
            return s;
          pointers.push_back(v.value.data());
        }
        absl::Status status = runOn(*variant, args, pointers.data(), results);
        for (size_t i = 0; i < variables.size(); ++i)
          if (!variant->args[args.size() + i].assigned && (!status.ok() || (i < writes.size() && !writes[i])))
            variables[i]->value = Tensor(); // it never had a value
        return status;
      }
    }
    if (variant)
      break;
    if (attempt == 8)
      return absl::AbortedError("the shapes of variables change faster than their clusters compile");
    if (auto failure = findFailure(args, variables)) {
      outcome->notCompiled = true;
      outcome->failedNode = failure->failedNode;
      return failure->status;
    }
    if (background) {
      outcome->notCompiled = outcome->pending = true;
      if (!inBackground.exchange(true, std::memory_order_acq_rel))
        background->schedule([self = shared_from_this(), args, variables] {
          std::string node;
          (void)self->compile(args, variables, &node).ok(); // a failure is kept for the next run
          self->inBackground.store(false, std::memory_order_release);
        });
      return absl::UnavailableError("the cluster is being compiled");
    }
    auto compiled = compile(args, variables, &outcome->failedNode);
    if (!compiled.ok()) {
      outcome->notCompiled = true;
      return compiled.status();
    }
    variant = variables.empty() ? *compiled : nullptr;
    if (variant)
      break;
  }
  return runOn(*variant, args, nullptr, results);
}

absl::Status Cluster::runOn(const ClusterVariant &variant, const std::vector<Tensor> &args, void *const *pointers,
                            std::vector<Tensor> *results) const {
  absl::InlinedVector<const Tensor *, 8> inputs;
  for (int n : variant.inputs)
    inputs.push_back(&args[n]);
  return variant.call->run(inputs, pointers, options.intraOp, results, options.device, variant.runs.get());
}

/// Gives a variable, whose mutex is held, a buffer of its own in the memory of the module that is about to change it.
absl::Status Cluster::prepareVariable(Variable &v, const lathe_tensor_info &info) const {
  std::shared_ptr<DeviceMemory> memory = options.device ? options.device->memory() : nullptr;
  if (!v.value.valid()) {
    if (std::any_of(info.dims, info.dims + info.rank, [](int64_t d) { return d < 0; }))
      return absl::FailedPreconditionError("a variable that is not initialized");
    Tensor zeros = Tensor::allocate(static_cast<DType>(info.dtype), std::vector<int64_t>(info.dims, info.dims + info.rank));
    auto made = memory ? memory->fromHost(zeros) : std::move(zeros);
    if (!made.ok())
      return made.status();
    v.value = *std::move(made);
    return absl::OkStatus();
  }
  DeviceMemory *where = memoryOf(v.value);
  if (where != memory.get()) { // of the host, or of another device
    auto moved = memory ? memory->fromAny(v.value) : hostTensor(v.value);
    if (!moved.ok())
      return moved.status();
    v.value = *std::move(moved);
  }
  if (!memory) {
    v.writable();
  } else if (!v.value.isUnique()) {
    auto own = memory->clone(v.value);
    if (!own.ok())
      return own.status();
    v.value = *std::move(own);
  }
  return absl::OkStatus();
}

WorkerPool &ClusterCache::background() {
  std::call_once(started, [&] { pool = std::make_unique<WorkerPool>(1); });
  return *pool;
}

std::shared_ptr<Cluster> ClusterCache::get(const lathe_cluster_compiler *compiler, std::string graph, const std::string &function,
                                           const ClusterOptions &options) {
  // the text itself is the key: no two clusters can be taken for each other
  std::string key = absl::StrCat(options.threads, ";", options.dynamicDims, ";", options.backend, ";", options.cpu, ";",
                                 options.device ? options.device->name() : "", ";", function, ";", graph);
  std::lock_guard<std::mutex> lock(mutex);
  std::shared_ptr<Cluster> &cluster = clusters[key];
  if (!cluster)
    cluster = std::make_shared<Cluster>(compiler, std::move(graph), function, options);
  return cluster;
}

namespace {

class LaunchKernel : public HostKernel {
public:
  LaunchKernel(std::shared_ptr<Cluster> cluster, const NodeInfo &node, std::unique_ptr<ClusterFallback> fallback, WorkerPool *background)
      : cluster(std::move(cluster)), fallback(std::move(fallback)), background(background),
        function(*attrOf<FunctionRefPtr>(node, "function")), numArgs(static_cast<int>(attrOf<std::vector<DType>>(node, "Targs")->size())) {
    if (const auto *list = attrOf<std::vector<bool>>(node, "reads"))
      reads = *list;
    if (const auto *list = attrOf<std::vector<bool>>(node, "writes"))
      writes = *list;
    if (const auto *list = attrOf<std::vector<DType>>(node, "Tresults"))
      types = *list;
  }

  absl::Status compute(KernelContext &context) override {
    std::vector<Tensor> args(numArgs);
    for (int i = 0; i < numArgs; ++i)
      args[i] = context.inputs[i].ref ? context.input(i) : std::move(context.inputs[i].tensor);
    std::vector<std::shared_ptr<Variable>> variables;
    for (int i = numArgs; i < context.numInputs(); ++i) {
      if (context.inputs[i].ref) {
        variables.push_back(context.refInput(i));
      } else {
        auto variable = context.resource<Variable>(i);
        if (!variable.ok())
          return variable.status();
        variables.push_back(*std::move(variable));
      }
      size_t v = variables.size() - 1;
      if (v < reads.size() && reads[v]) {
        std::lock_guard<std::mutex> lock(variables[v]->mutex);
        if (!variables[v]->value.valid())
          return absl::FailedPreconditionError(absl::StrCat("Attempting to use uninitialized value, variable ", v, " of the cluster"));
      }
    }
    std::vector<Tensor> results;
    ClusterOutcome outcome;
    absl::Status status;
    if (hostOnly.load(std::memory_order_relaxed))
      outcome.notCompiled = true;
    else
      status = cluster->run(args, variables, writes, background, &results, &outcome);
    // Compiled code takes sizes for equal, and lists for bounded, that host kernels do not. Where it gives up and has
    // changed nothing, they have the last word; an error that they confirm is not tried again.
    bool retried = !status.ok() && !outcome.notCompiled && fallback && !writesAny(variables.size()) && !confirmed.load(std::memory_order_relaxed);
    if ((outcome.notCompiled && fallback) || retried) {
      std::vector<Value> values(args.begin(), args.end());
      for (int i = numArgs; i < context.numInputs(); ++i)
        values.push_back(context.inputs[i]);
      auto other = fallback->run(*function, std::move(values), outcome.failedNode, context);
      if (!other.ok() && retried)
        confirmed.store(true, std::memory_order_relaxed);
      if (!other.ok())
        return retried ? status : other.status();
      if (retried && ++gaveUp >= kMaxRetries)
        hostOnly.store(true, std::memory_order_relaxed);
      results = *std::move(other);
      status = absl::OkStatus();
    }
    if (!status.ok())
      return status;
    if (static_cast<int>(results.size()) != context.numOutputs())
      return absl::InternalError(absl::StrCat("the cluster has ", results.size(), " results, expected ", context.numOutputs()));
    for (size_t i = 0; i < results.size(); ++i) {
      // compiled code knows quantised types only by what carries them
      if (i < types.size() && isQuantized(types[i]) && results[i].valid() && results[i].dtype() == dtypeCarrier(types[i]))
        results[i] = results[i].bitcast(types[i]);
      context.setOutput(static_cast<int>(i), std::move(results[i]));
    }
    return absl::OkStatus();
  }

private:
  /// Whether running again could change a variable twice.
  bool writesAny(size_t count) const {
    return count > writes.size() || std::find(writes.begin(), writes.end(), true) != writes.end();
  }

  static constexpr int kMaxRetries = 3; // after so many, compiled code is not tried any more
  std::atomic<bool> confirmed{false}, hostOnly{false};
  std::atomic<int> gaveUp{0};
  const std::shared_ptr<Cluster> cluster;
  const std::unique_ptr<ClusterFallback> fallback;
  WorkerPool *const background; ///< null: compile when asked
  const FunctionRefPtr function;
  const int numArgs;
  std::vector<bool> reads, writes; ///< per variable; empty: not known
  std::vector<DType> types;        ///< of the results
};

void namesIn(const tf::AttrValue &value, std::deque<std::string> &work, int depth = 0) {
  if (depth > 16)
    return;
  auto add = [&](const tf::NameAttrList &f) {
    work.push_back(f.name());
    for (auto &[name, inner] : f.attr())
      namesIn(inner, work, depth + 1);
  };
  if (value.has_func())
    add(value.func());
  if (value.has_list())
    for (const auto &f : value.list().func())
      add(f);
}

/// What a node may call by its op or attributes.
void namesIn(const tf::NodeDef &node, std::deque<std::string> &work) {
  work.push_back(node.op());
  for (auto &[attr, value] : node.attr())
    namesIn(value, work);
}

/// Those of `work` that are functions, all that they call, and what is the gradient of one.
std::set<std::string> reach(const Library &library, std::deque<std::string> work) {
  std::set<std::string> names;
  while (!work.empty()) {
    std::string name = std::move(work.front());
    work.pop_front();
    const tf::FunctionDef *f = library.find(name);
    if (!f || !names.insert(name).second)
      continue;
    for (const tf::NodeDef &node : f->node_def())
      namesIn(node, work);
    work.push_back(library.gradientOf(name));
  }
  return names;
}

/// The function and all it calls, as a GraphDef.
std::string closure(const Library &library, const std::string &function) {
  tf::GraphDef graph;
  for (const std::string &name : reach(library, {function})) {
    *graph.mutable_library()->add_function() = *library.find(name);
    if (std::string gradient = library.gradientOf(name); !gradient.empty()) {
      tf::GradientDef *g = graph.mutable_library()->add_gradient();
      g->set_function_name(name);
      g->set_gradient_func(std::move(gradient));
    }
  }
  // maps in a fixed order: the text is the key of caches
  std::string text;
  {
    google::protobuf::io::StringOutputStream stream(&text);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    graph.SerializeToCodedStream(&coded);
  }
  return text;
}

} // namespace

std::set<std::string> functionsBehind(const Library &library, const tf::NodeDef &node) {
  std::deque<std::string> work;
  namesIn(node, work);
  return reach(library, std::move(work));
}

absl::StatusOr<std::unique_ptr<HostKernel>> makeLaunchKernel(const NodeInfo &node, const lathe_cluster_compiler *compiler,
                                                             const Library &library, ClusterCache &cache,
                                                             const ClusterOptions &options,
                                                             std::unique_ptr<ClusterFallback> fallback) {
  const FunctionRefPtr &function = *attrOf<FunctionRefPtr>(node, "function");
  if (!compiler || !compiler->compile)
    return absl::UnimplementedError("no host kernel, and no compiler at hand");
  if (!library.find(function->name))
    return absl::NotFoundError(absl::StrCat("function '", function->name, "' is not in the library"));
  auto cluster = cache.get(compiler, closure(library, function->name), function->name, options);
  // what only a compiler can run has to wait for it
  bool allHost = true;
  for (const tf::NodeDef &inner : library.find(function->name)->node_def())
    allHost = allHost && !needsCompiler(inner, library);
  WorkerPool *background = options.background && fallback && allHost ? &cache.background() : nullptr;
  return std::unique_ptr<HostKernel>(std::make_unique<LaunchKernel>(std::move(cluster), node, std::move(fallback), background));
}

} // namespace lathe::rt
