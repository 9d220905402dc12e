// Devices, building, and calls of functions.
#include "runtime/session/Core.h"

#include "runtime/cuda/device/CudaDevice.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace lathe::rt {

namespace {

constexpr int kMaxCallDepth = 2000; // of functions calling functions
constexpr int kMaxStackDepth = 16;  // of those, on one thread's stack
constexpr int kMaxIsolated = 8;     // nodes taken out of a cluster one after the other

int interOpThreads(const SessionOptions &options) {
  int n = options.interOpThreads > 0 ? options.interOpThreads : static_cast<int>(std::thread::hardware_concurrency());
  return std::clamp(n, 2, 256);
}

std::atomic<int64_t> nextStep{1};

} // namespace

int64_t newStepId() { return nextStep.fetch_add(1, std::memory_order_relaxed); }

namespace {

std::atomic<uint64_t> lives{1};

std::vector<std::unique_ptr<Device>> makeDevices(int count) {
  std::vector<std::unique_ptr<Device>> all;
  for (int i = 0; i < std::clamp(count, 1, 1024); ++i)
    all.push_back(std::make_unique<CpuDevice>(i, lives.fetch_add(1)));
  return all;
}

} // namespace

DeviceSet::DeviceSet(const SessionOptions &options)
    : devices(makeDevices(options.cpuDevices)), resources(devices[0]->resources()), pool(interOpThreads(options)),
      intraOp(std::max(1, options.intraOpThreads)) {
  std::vector<std::unique_ptr<Device>> made;
  for (int ordinal : options.gpus) {
    auto gpu = makeCudaDevice(static_cast<int64_t>(made.size()), ordinal, lives.fetch_add(1));
    if (!gpu.ok()) {
      status = gpu.status();
      return;
    }
    made.push_back(*std::move(gpu));
  }
  for (auto &gpu : made)
    devices.push_back(std::move(gpu));
}

namespace {

class ValueFrame : public CallFrame {
public:
  bool takeReadyArg(int index, Value *value) override {
    *value = args[index];
    return true;
  }
  bool takeArg(int index, Value *value, std::function<void(absl::StatusOr<Tensor>)>) override { return takeReadyArg(index, value); }
  absl::Status setResult(int index, Tensor value) override {
    results[index] = std::move(value);
    return absl::OkStatus();
  }
  std::vector<Value> args;
  std::vector<Tensor> results;
};

/// Runs the function of a cluster that does not compile, on this thread alone: around the node that failed what is left is
/// clustered again; where that is not known, or a few of them failed already, each node is a cluster of its own.
class NodeByNode : public ClusterFallback {
public:
  NodeByNode(std::shared_ptr<const Library> library, const SessionOptions &options, std::shared_ptr<DeviceSet> devices, GraphLimits limits,
             Device *device, int depth)
      : library(std::move(library)), options(options), devices(std::move(devices)), limits(limits), device(device), depth(depth) {}

  absl::StatusOr<std::vector<Tensor>> run(const FunctionRef &function, std::vector<Value> args, const std::string &failedNode,
                                          KernelContext &context) override {
    auto made = build(function, failedNode);
    if (!made.ok())
      return made.status();
    std::shared_ptr<const Executable> executable = *std::move(made);
    ValueFrame frame;
    frame.args = std::move(args);
    frame.results.resize(numResults);
    StepOptions o;
    o.device = device;
    o.resources = context.resources;
    o.stepResources = context.stepResources;
    Cancellation cancellation;
    o.cancellation = &cancellation;
    StepFunctions callers(functions.get(), 1, nullptr, context.stepResources);
    o.functions = &callers;
    o.hostFunctions = &callers.onHost;
    o.stepId = context.stepId;
    Step step(executable, o, frame);
    std::mutex doneMutex;
    std::condition_variable signal;
    bool isDone = false;
    absl::Status status;
    step.start([&](absl::Status s) {
      std::lock_guard<std::mutex> lock(doneMutex);
      status = std::move(s);
      isDone = true;
      signal.notify_one();
    });
    std::unique_lock<std::mutex> lock(doneMutex);
    signal.wait(lock, [&] { return isDone; });
    if (!status.ok())
      return status;
    return std::move(frame.results);
  }

private:
  /// One executable per node that failed; "" is the one of single nodes.
  absl::StatusOr<std::shared_ptr<const Executable>> build(const FunctionRef &function, const std::string &failedNode) {
    std::lock_guard<std::mutex> lock(mutex);
    const tf::FunctionDef *f = library->find(function.name);
    bool singly = failedNode.empty() || depth >= kMaxIsolated || !f || f->node_def_size() < 2;
    std::shared_ptr<const Executable> &executable = executables[singly ? "" : failedNode];
    if (executable)
      return executable;
    auto body = instantiate(*library, function, limits);
    if (!body.ok())
      return body.status();
    numResults = body->resultTypes.size();
    if (!functions)
      functions = std::make_shared<Functions>(library, options, devices, limits, device);
    SessionOptions how = options;
    if (!singly)
      absl::StrAppend(&how.clusterFlags, how.clusterFlags.empty() ? "" : ";", "isolate=", failedNode);
    Builder builder(how, devices, limits, device, depth + 1);
    auto built = builder.build(*std::move(body), library, functions, nullptr, singly);
    if (!built.ok())
      return built.status();
    executable = *std::move(built);
    return executable;
  }

  const std::shared_ptr<const Library> library;
  const SessionOptions options;
  const std::shared_ptr<DeviceSet> devices;
  const GraphLimits limits;
  Device *const device;
  std::mutex mutex;
  std::shared_ptr<Functions> functions;
  std::map<std::string, std::shared_ptr<const Executable>> executables;
  const int depth;
  std::atomic<size_t> numResults{0};
};

} // namespace

Builder::Builder(const SessionOptions &options, std::shared_ptr<DeviceSet> d, GraphLimits limits, Device *device, int depth)
    : options(options), compiler(options.compiler), devices(std::move(d)), limits(limits), depth(depth) {
  clusterOptions.mode = options.clusterMode;
  clusterOptions.minSize = options.minClusterSize;
  clusterOptions.flags = options.clusterFlags;
  clusterOptions.cacheDir = options.clusterCacheDir;
  clusterOptions.cpu = options.clusterCpu;
  clusterOptions.backend = options.clusterBackend;
  clusterOptions.device = device;
  if (device) {
    // whatever stays outside of a module has its values fetched and sent
    clusterOptions.mode = std::min(options.clusterMode, 1);
    clusterOptions.minSize = 1;
    if (std::string backend = device->backend(); !backend.empty())
      clusterOptions.backend = backend;
  }
  clusterOptions.dynamicDims = options.dynamicClusters;
  clusterOptions.background = options.backgroundCompile;
  for (const char *flags : {static_cast<const char *>(std::getenv("LATHE_FLAGS")), options.clusterFlags.c_str()})
    if (flags && std::strstr(flags, "background=1"))
      clusterOptions.background = true;
  clusterOptions.threads = options.intraOpThreads;
  if (options.intraOpThreads > 1)
    clusterOptions.intraOp = {ThreadPool::parallelFor, &devices->intraOp, options.intraOpThreads};
}

absl::StatusOr<std::shared_ptr<HostKernel>> Builder::makeKernel(const NodeInfo &node, const std::shared_ptr<const Library> &library,
                                                                const std::shared_ptr<FunctionCaller> &functions, Segment *segment,
                                                                bool singly, ResourceManager *resources) {
  if (node.op == kLaunchOp) {
    // one node alone has nothing to fall back to but its host kernel
    std::unique_ptr<ClusterFallback> fallback;
    if (!singly && attrOf<FunctionRefPtr>(node, "function"))
      if (const tf::FunctionDef *f = library->find((*attrOf<FunctionRefPtr>(node, "function"))->name);
          f && (f->node_def_size() > 1 || (f->node_def_size() == 1 && findKernel(f->node_def(0).op()))))
        fallback = std::make_unique<NodeByNode>(library, options, devices, limits, clusterOptions.device, depth);
    auto made = makeLaunchKernel(node, compiler, *library, devices->clusters, clusterOptions, std::move(fallback));
    if (!made.ok())
      return made.status();
    return std::shared_ptr<HostKernel>(*std::move(made));
  }
  // Kernels of stateful nodes may keep something: one node has one kernel, whatever is fetched.
  bool kept = segment && node.info && node.info->isStateful;
  if (kept)
    if (auto it = segment->find(node.name); it != segment->end())
      return it->second;
  struct Held {
    NodeInfo node; // kernels may refer to it, and kept ones outlive the graph
    std::unique_ptr<HostKernel> kernel;
  };
  auto held = std::make_shared<Held>();
  held->node = node;
  KernelInit init(held->node, resources ? resources : &devices->resources, functions);
  auto made = rt::makeKernel(init);
  if (!made.ok())
    return made.status();
  held->kernel = *std::move(made);
  std::shared_ptr<HostKernel> kernel(held, held->kernel.get());
  if (kept)
    segment->emplace(node.name, kernel);
  return kernel;
}

absl::StatusOr<std::shared_ptr<const Executable>> Builder::build(Body body, std::shared_ptr<const Library> library,
                                                                 std::shared_ptr<FunctionCaller> functions, Segment *segment,
                                                                 bool singly, ResourceManager *resources) {
  if (absl::Status s = clusterGraph(compiler, clusterOptions, &body, &library, limits, singly); !s.ok())
    return s;
  auto graph = buildGraph(body.graph, *library, limits);
  if (!graph.ok())
    return graph.status();
  body.graph.Clear();
  return Executable::make(*std::move(graph),
                          [&](const NodeInfo &node) { return makeKernel(node, library, functions, segment, singly, resources); });
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

namespace {

struct KeyWriter {
  std::string *out;
  void operator()(std::monostate) { out->append("[]"); }
  void operator()(int64_t v) { absl::StrAppend(out, v); }
  void operator()(float v) { absl::StrAppend(out, v); }
  void operator()(bool v) { out->append(v ? "true" : "false"); }
  void operator()(const std::string &v) { absl::StrAppend(out, v.size(), ":", v); }
  void operator()(DType v) { absl::StrAppend(out, static_cast<int>(v)); }
  void operator()(const PartialShape &v) { out->append(shapeToString(v)); }
  void operator()(const Tensor &v) {
    absl::StrAppend(out, static_cast<int>(v.dtype()), dimsToString(v.dims()));
    if (v.dtype() == DType::String)
      for (const std::string &s : v.strings())
        (*this)(s);
    else if (v.sizeBytes())
      out->append(static_cast<const char *>(v.data()), v.sizeBytes());
  }
  void operator()(const FunctionRefPtr &v) { out->append(functionKey(*v)); }
  template <typename T>
  void operator()(const std::vector<T> &list) {
    out->push_back('[');
    for (const auto &v : list) {
      (*this)(static_cast<T>(v));
      out->push_back(',');
    }
    out->push_back(']');
  }
};

} // namespace

std::string functionKey(const FunctionRef &function) {
  std::string key = function.name;
  for (auto &[name, value] : function.attrs) {
    absl::StrAppend(&key, ";", name, "=");
    std::visit(KeyWriter{&key}, value);
  }
  return key;
}

Functions::Functions(std::shared_ptr<const Library> library, SessionOptions options, std::shared_ptr<DeviceSet> devices, GraphLimits limits,
                     Device *device)
    : library(std::move(library)), options(std::move(options)), devices(std::move(devices)), limits(limits), device(device) {}

absl::Status Functions::signature(const FunctionRef &function, std::vector<DType> *args, std::vector<DType> *results) {
  return functionSignature(*library, function, args, results);
}

absl::StatusOr<std::shared_ptr<const Functions::Callee>> Functions::find(const FunctionRef &function) {
  std::string key = function.attrs.empty() ? function.name : functionKey(function);
  {
    std::shared_lock<std::shared_mutex> lock(mutex);
    if (auto it = callees.find(key); it != callees.end())
      return it->second;
  }
  std::lock_guard<std::mutex> one(building);
  {
    std::shared_lock<std::shared_mutex> lock(mutex);
    if (auto it = callees.find(key); it != callees.end())
      return it->second;
  }
  auto body = instantiate(*library, function, limits);
  if (!body.ok())
    return body.status();
  auto callee = std::make_shared<Callee>();
  callee->args = body->argTypes;
  callee->results = body->resultTypes;
  Builder builder(options, devices, limits, device);
  // kernels hold the caller weakly through the step's own; the strong one would be a cycle
  auto executable = builder.build(*std::move(body), library, std::shared_ptr<FunctionCaller>(std::shared_ptr<void>(), this), nullptr, false,
                                  device ? &device->resources() : nullptr);
  if (!executable.ok())
    return executable.status();
  callee->executable = *std::move(executable);
  std::unique_lock<std::shared_mutex> lock(mutex);
  callees[key] = callee;
  return std::shared_ptr<const Callee>(std::move(callee));
}

namespace {

thread_local int stackDepth = 0;

/// One call of a function, until it has answered.
struct Call {
  std::shared_ptr<Functions> functions;
  SimpleCallFrame frame;
  ResourceManager own; ///< of a call that no step makes
  Cancellation cancellation, *outer = nullptr;
  Cancellation::Token token = 0;
  std::unique_ptr<StepFunctions> callers;
  std::unique_ptr<Step> step;
  FunctionCaller::Done done;

  static void finish(Call *call, absl::Status status) {
    std::unique_ptr<Call> owned(call);
    if (owned->outer)
      owned->outer->remove(owned->token);
    FunctionCaller::Done done = std::move(owned->done);
    std::vector<Tensor> results = std::move(owned->frame.results);
    owned.reset();
    if (status.ok())
      done(std::move(results));
    else
      done(status);
  }
};

} // namespace

void Functions::call(const FunctionRef &function, std::vector<Tensor> args, Cancellation *cancellation, Done done) {
  if (device)
    done = withHostResults(std::move(done));
  callAt(1, nullptr, nullptr, function, std::move(args), cancellation, std::move(done));
}

void Functions::callAt(int depth, StepStats *stats, ResourceManager *stepResources, const FunctionRef &function, std::vector<Tensor> args,
                       Cancellation *cancellation, Done done) {
  if (depth > kMaxCallDepth)
    return done(absl::ResourceExhaustedError(absl::StrCat("functions call each other more than ", kMaxCallDepth, " deep, last '",
                                                          function.name, "'")));
  auto callee = find(function);
  if (!callee.ok())
    return done(callee.status());
  const std::vector<DType> &types = (*callee)->args;
  if (args.size() != types.size())
    return done(absl::InvalidArgumentError(absl::StrCat("function '", function.name, "' takes ", types.size(), " arguments, got ", args.size())));
  for (size_t i = 0; i < types.size(); ++i)
    if (args[i].dtype() != types[i])
      return done(absl::InvalidArgumentError(absl::StrCat("argument ", i, " of function '", function.name, "' is of type ",
                                                          dtypeName(args[i].dtype()), ", expected ", dtypeName(types[i]))));
  auto *call = new Call;
  call->functions = shared_from_this();
  call->frame.args = std::move(args);
  call->frame.results.resize((*callee)->results.size());
  call->done = std::move(done);
  if (!stepResources)
    stepResources = &call->own;
  call->callers = std::make_unique<StepFunctions>(this, depth + 1, stats, stepResources);
  if (cancellation) {
    if (!cancellation->add(&call->token, [call] { call->cancellation.cancel(); }))
      return Call::finish(call, absl::CancelledError("the step was cancelled"));
    call->outer = cancellation;
  }
  StepOptions how;
  how.pool = &devices->pool;
  how.device = device;
  how.resources = device ? &device->resources() : &devices->resources;
  how.stepResources = stepResources;
  how.cancellation = &call->cancellation;
  how.functions = call->callers.get();
  how.hostFunctions = &call->callers->onHost;
  how.stats = stats;
  how.stepId = newStepId();
  how.depth = depth;
  call->step = std::make_unique<Step>((*callee)->executable, how, call->frame);
  auto begin = [call] {
    ++stackDepth;
    call->step->start([call](absl::Status status) { Call::finish(call, std::move(status)); });
    --stackDepth;
  };
  if (stackDepth < kMaxStackDepth)
    begin();
  else
    devices->pool.schedule(begin);
}

} // namespace lathe::rt
