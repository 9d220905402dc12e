// Preparing and executing runs.
#include "runtime/session/Core.h"

#include "runtime/core/Compute.h"
#include "runtime/device.h"

#include "absl/strings/str_cat.h"

#include <chrono>
#include <deque>

namespace lathe::rt {

int64_t newStepId();

namespace {

absl::Status closed() { return absl::CancelledError("Session has been closed."); }

/// With its length: a name may hold anything, also what stands between two.
void appendName(std::string *key, char tag, const std::string &name) {
  size_t size = name.size();
  key->push_back(tag);
  key->append(reinterpret_cast<const char *>(&size), sizeof(size));
  key->append(name);
}

void appendNames(std::string *key, char tag, const std::vector<std::string> &names) {
  for (const std::string &name : names)
    appendName(key, tag, name);
}

} // namespace

SessionCore::SessionCore(const SessionOptions &o)
    : devices(o.devices ? o.devices : std::make_shared<DeviceSet>(o)), options(o) {}

SessionCore::~SessionCore() = default;

absl::Status SessionCore::create(const tf::GraphDef &def) {
  if (graph && !graph->snapshot()->nodes.empty())
    return absl::AlreadyExistsError("A Graph has already been created for this session.");
  return extend(def);
}

absl::Status SessionCore::adopt(SharedGraph shared) {
  if (graph && !graph->snapshot()->nodes.empty())
    return absl::AlreadyExistsError("A Graph has already been created for this session.");
  if (!devices->status.ok())
    return devices->status;
  graph = std::move(shared);
  return absl::OkStatus();
}

absl::Status SessionCore::extend(const tf::GraphDef &def) {
  if (running.load() >= kClosed)
    return closed();
  if (!devices->status.ok())
    return devices->status;
  if (!graph) {
    GraphLimits limits;
    limits.maxConstantBytes = options.maxConstantBytes;
    graph = std::make_shared<GraphStore>(limits);
  }
  return graph->extend(def);
}

absl::StatusOr<std::shared_ptr<const Prepared>> SessionCore::prepare(const std::vector<std::string> &feeds,
                                                                     const std::vector<std::string> &fetches,
                                                                     const std::vector<std::string> &targets, bool inParts) {
  if (!graph)
    return absl::InvalidArgumentError("Session was not created with a graph before Run()!");
  std::string key(inParts ? 1 : 0, '\4');
  appendNames(&key, '\1', feeds);
  appendNames(&key, '\2', fetches);
  appendNames(&key, '\3', targets);
  {
    std::shared_lock<std::shared_mutex> lock(mutex);
    if (auto it = prepared.find(key); it != prepared.end())
      return it->second;
  }
  std::lock_guard<std::mutex> one(building);
  {
    std::shared_lock<std::shared_mutex> lock(mutex);
    if (auto it = prepared.find(key); it != prepared.end())
      return it->second;
  }
  if (fetches.empty() && targets.empty())
    return absl::InvalidArgumentError("Must specify at least one target to fetch or execute.");
  std::shared_ptr<const GraphSnapshot> snapshot = graph->snapshot();
  auto body = prune(*snapshot, feeds, fetches, targets, graph->limits);
  if (!body.ok())
    return body.status();
  auto made = std::make_shared<Prepared>();
  made->feeds = feeds;
  made->argTypes = body->argTypes;
  made->numResults = static_cast<int>(fetches.size());
  if (preparedFor && preparedFor->library != snapshot->library)
    functions.clear();
  preparedFor = snapshot;
  std::vector<Device *> all;
  for (auto &device : devices->devices)
    all.push_back(device.get());
  auto placement = placeNodes(body->graph, *snapshot->library, all, {options.allowSoftPlacement, options.compiler, &devices->placed}, graph->limits);
  if (!placement.ok())
    return placement.status();
  auto parts = partition(*std::move(body), *placement, *snapshot->library, all, graph->limits);
  if (!parts.ok())
    return parts.status();
  for (Part &part : *parts) {
    Device *device = devices->devices[part.device].get();
    ResourceManager *resources = &device->resources();
    if (!device->memory())
      device = nullptr;
    std::shared_ptr<Functions> &callers = functions[device];
    if (!callers)
      callers = std::make_shared<Functions>(snapshot->library, options, devices, graph->limits, device);
    Builder builder(options, devices, graph->limits, device);
    auto executable = builder.build(std::move(part.body), snapshot->library, callers, &segments[part.device], inParts, resources);
    if (!executable.ok())
      return executable.status();
    made->parts.push_back({*std::move(executable), resources, device, callers});
  }
  std::unique_lock<std::shared_mutex> lock(mutex);
  prepared[key] = made;
  return std::shared_ptr<const Prepared>(std::move(made));
}

absl::Status settle(const Prepared &prepared) {
  absl::Status status;
  for (const Prepared::OnDevice &part : prepared.parts)
    if (std::shared_ptr<DeviceMemory> memory = part.device ? part.device->memory() : nullptr)
      if (absl::Status s = memory->settle(); status.ok())
        status = std::move(s);
  return status;
}

absl::Status SessionCore::beginStep() {
  if (running.fetch_add(1, std::memory_order_acq_rel) < kClosed)
    return absl::OkStatus();
  endStep();
  return closed();
}

void SessionCore::endStep() {
  if (running.fetch_sub(1, std::memory_order_acq_rel) - 1 == kClosed) {
    std::lock_guard<std::mutex> lock(idleMutex);
    idle.notify_all();
  }
}

absl::Status SessionCore::close() {
  if (running.load() < kClosed)
    running.fetch_or(kClosed);
  closing.cancel();
  {
    std::unique_lock<std::mutex> lock(idleMutex);
    idle.wait(lock, [&] { return running.load(std::memory_order_acquire) == kClosed; });
  }
  // runs in parts that nobody finished hold the session
  std::unordered_map<std::string, std::shared_ptr<PartialRun>> unfinished;
  std::unique_lock<std::shared_mutex> lock(mutex);
  unfinished.swap(partial);
  lock.unlock();
  return absl::OkStatus();
}

namespace {

/// A run of one kernel between arguments and results, on this thread.
absl::Status runDirect(const Executable &executable, const DirectRun &plan, const StepOptions &o, SimpleCallFrame &frame) {
  const ExecNode &item = executable.nodes()[plan.node];
  KernelContext context;
  context.node = item.info;
  context.resources = o.resources;
  context.stepResources = o.stepResources;
  context.functions = o.functions;
  context.cancellation = o.cancellation;
  context.stepId = o.stepId;
  context.inputs.reserve(plan.args.size());
  for (int arg : plan.args)
    context.inputs.emplace_back(frame.args[arg]);
  context.outputs.resize(item.numOutputs);
  if (absl::Status s = computeGuarded(*item.kernel, context); !s.ok())
    return atNode(item.info->name, item.info->op, s);
  for (size_t i = 0; i < plan.results.size(); ++i)
    frame.results[i] = plan.results[i] < 0 ? frame.args[-1 - plan.results[i]] : context.outputs[plan.results[i]].tensor;
  return absl::OkStatus();
}

} // namespace

absl::Status SessionCore::execute(const Prepared &p, const RunOptions &how, SimpleCallFrame &frame, RunMetadata *metadata) {
  for (size_t i = 0; i < p.argTypes.size(); ++i)
    if (frame.args[i].dtype() != p.argTypes[i])
      return absl::InvalidArgumentError(absl::StrCat("tensor '", p.feeds[i], "' is of type ", dtypeName(p.argTypes[i]), ", fed as ",
                                                     dtypeName(frame.args[i].dtype())));
  frame.results.resize(p.numResults);
  bool plain = how.timeoutMs <= 0 && !how.cancellation && how.traceLevel == RunOptions::NoTrace && p.parts.size() == 1 && !p.parts[0].device;
  if (const DirectRun *plan = plain ? p.parts[0].executable->direct() : nullptr) {
    // nothing could cancel a kernel that has begun, and beginStep() has seen that the session is open
    ResourceManager stepResources;
    StepFunctions callers(p.parts[0].functions.get(), 1, nullptr, &stepResources);
    StepOptions o;
    o.resources = p.parts[0].resources;
    o.stepResources = &stepResources;
    o.functions = &callers;
    o.stepId = newStepId();
    absl::Status status = runDirect(*p.parts[0].executable, *plan, o, frame);
    for (size_t i = 0; status.ok() && i < frame.results.size(); ++i)
      if (!frame.results[i].valid())
        return absl::InternalError("a fetch was not computed: a kernel left an output out");
    return status;
  }
  Cancellation cancellation;
  Cancellation::Token closeToken, userToken;
  if (!closing.add(&closeToken, [&] { cancellation.cancel(); }))
    return closed();
  if (how.cancellation && !how.cancellation->add(&userToken, [&] { cancellation.cancel(); })) {
    closing.remove(closeToken);
    return absl::CancelledError("the run was cancelled");
  }
  bool trace = metadata && how.traceLevel != RunOptions::NoTrace;
  StepStats stats;
  ResourceManager stepResources;
  std::deque<StepFunctions> callers; // one a part
  for (const Prepared::OnDevice &part : p.parts)
    callers.emplace_back(part.functions.get(), 1, trace ? &stats : nullptr, &stepResources);
  StepOptions o;
  o.pool = &devices->pool;
  o.resources = &devices->resources;
  o.stepResources = &stepResources;
  o.cancellation = &cancellation;
  o.stats = trace ? &stats : nullptr;
  o.stepId = newStepId();
  auto began = std::chrono::steady_clock::now().time_since_epoch();
  Rendezvous rendezvous;
  Cancellation::Token abortToken;
  bool several = p.parts.size() > 1;
  if (several) {
    o.rendezvous = &rendezvous;
    cancellation.add(&abortToken, [&] { rendezvous.abort(absl::CancelledError("the step was cancelled")); });
  }
  std::mutex doneMutex;
  std::condition_variable doneSignal;
  size_t open = p.parts.size();
  bool isDone = false, timedOut = false;
  absl::Status status;
  auto whenDone = [&](absl::Status s) {
    std::lock_guard<std::mutex> lock(doneMutex);
    // what the others say once they are cancelled is not the cause
    if (!s.ok() && (status.ok() || (status.code() == absl::StatusCode::kCancelled && s.code() != absl::StatusCode::kCancelled)))
      status = std::move(s);
    isDone = --open == 0;
    if (isDone)
      doneSignal.notify_one(); // under the lock: the waiter owns the signal
  };
  std::vector<std::unique_ptr<Step>> others;
  auto onPart = [&](size_t i) {
    o.device = p.parts[i].device;
    o.resources = p.parts[i].resources;
    o.functions = &callers[i];
    o.hostFunctions = &callers[i].onHost;
  };
  for (size_t i = 1; i < p.parts.size(); ++i) {
    onPart(i);
    others.push_back(std::make_unique<Step>(p.parts[i].executable, o, frame));
    devices->pool.schedule([&whenDone, step = others.back().get()] { step->start(whenDone); });
  }
  onPart(0);
  Step step(p.parts[0].executable, o, frame);
  // with a timeout this thread only waits
  if (how.timeoutMs > 0)
    devices->pool.schedule([&] { step.start(whenDone); });
  else
    step.start(whenDone);
  {
    std::unique_lock<std::mutex> lock(doneMutex);
    if (how.timeoutMs > 0 && !doneSignal.wait_for(lock, std::chrono::milliseconds(how.timeoutMs), [&] { return isDone; })) {
      timedOut = true;
      lock.unlock();
      cancellation.cancel();
      lock.lock();
    }
    doneSignal.wait(lock, [&] { return isDone; });
  }
  closing.remove(closeToken);
  if (how.cancellation)
    how.cancellation->remove(userToken);
  if (trace) {
    int64_t start = std::chrono::duration_cast<std::chrono::nanoseconds>(began).count();
    for (const NodeTime &t : stats.times)
      metadata->stepStats.push_back({t.node->name, t.node->op, t.node->device, (t.startNanos - start) / 1000, t.endNanos - t.startNanos, t.thread});
  }
  if (status.ok())
    for (const Tensor &result : frame.results)
      if (!result.valid() && status.ok())
        status = absl::InternalError("a fetch was not computed: nodes wait for each other");
  if (status.ok())
    status = bringToHost(frame.results);
  if (absl::Status s = settle(p); status.ok())
    status = std::move(s);
  if (timedOut && !status.ok())
    return absl::DeadlineExceededError(absl::StrCat("Timed out waiting for notification after ", how.timeoutMs, " ms"));
  if (!status.ok() && running.load(std::memory_order_relaxed) >= kClosed && status.code() == absl::StatusCode::kCancelled)
    return closed();
  return status;
}

absl::Status SessionCore::run(const RunOptions &how, const Session::Feeds &feeds, const std::vector<std::string> &fetches,
                              const std::vector<std::string> &targets, std::vector<Tensor> *outputs, RunMetadata *metadata) {
  if (absl::Status s = beginStep(); !s.ok())
    return s;
  SimpleCallFrame frame;
  frame.args.reserve(feeds.size());
  std::string key;
  key.reserve(256);
  for (auto &[name, value] : feeds) {
    appendName(&key, '\1', name);
    frame.args.push_back(value);
  }
  appendNames(&key, '\2', fetches);
  appendNames(&key, '\3', targets);
  std::shared_ptr<const Prepared> known;
  {
    std::shared_lock<std::shared_mutex> lock(mutex);
    if (auto it = prepared.find(key); it != prepared.end())
      known = it->second;
  }
  absl::Status status;
  if (!known) {
    std::vector<std::string> names;
    for (auto &feed : feeds)
      names.push_back(feed.first);
    auto p = prepare(names, fetches, targets);
    status = p.status();
    if (p.ok())
      known = *std::move(p);
  }
  if (status.ok())
    status = execute(*known, how, frame, metadata);
  if (status.ok() && outputs)
    *outputs = std::move(frame.results);
  endStep();
  return status;
}

absl::Status SessionCore::makeCallable(const CallableOptions &o, int64_t *handle) {
  auto p = prepare(o.feeds, o.fetches, o.targets);
  if (!p.ok())
    return p.status();
  auto callable = std::make_shared<Callable>();
  callable->prepared = *std::move(p);
  callable->options = o.runOptions;
  std::unique_lock<std::shared_mutex> lock(mutex);
  *handle = nextHandle++;
  callables[*handle] = std::move(callable);
  return absl::OkStatus();
}

absl::Status SessionCore::runCallable(int64_t handle, const std::vector<Tensor> &feeds, std::vector<Tensor> *outputs, RunMetadata *metadata) {
  std::shared_ptr<const Callable> callable;
  {
    std::shared_lock<std::shared_mutex> lock(mutex);
    if (auto it = callables.find(handle); it != callables.end())
      callable = it->second;
  }
  if (!callable)
    return absl::InvalidArgumentError("No such callable handle: it was released or never made");
  if (feeds.size() != callable->prepared->argTypes.size())
    return absl::InvalidArgumentError(absl::StrCat("expected ", callable->prepared->argTypes.size(), " feed tensors, got ", feeds.size()));
  if (absl::Status s = beginStep(); !s.ok())
    return s;
  SimpleCallFrame frame;
  frame.args = feeds;
  absl::Status status = execute(*callable->prepared, callable->options, frame, metadata);
  if (status.ok() && outputs)
    *outputs = std::move(frame.results);
  endStep();
  return status;
}

absl::Status SessionCore::releaseCallable(int64_t handle) {
  std::unique_lock<std::shared_mutex> lock(mutex);
  return callables.erase(handle) ? absl::OkStatus() : absl::InvalidArgumentError("No such callable handle");
}

} // namespace lathe::rt
