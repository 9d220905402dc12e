// Scheduling and running nodes. Frames are in StepFrames.cpp.
#include "runtime/core/Compute.h"
#include "runtime/core/InvalidUse.h"
#include "runtime/device.h"
#include "runtime/session/DeviceValues.h"
#include "runtime/session/StepFrames.h"

#include "absl/strings/str_cat.h"

#include <chrono>
#include <new>
#include <thread>

namespace lathe::rt {

namespace {

int64_t nanosNow() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

absl::Status deadResult(const NodeInfo &node) {
  return absl::InvalidArgumentError(absl::StrCat("the tensor fetched by '", node.name, "' was not computed: it is on a branch that was not taken"));
}

/// The output that an index takes: without a branch of that number the last one.
int branchOf(int32_t index, int branches) { return index >= 0 && index < branches ? index : branches - 1; }

} // namespace

/// A kernel that has not called back. Whoever comes second, the starter or the callback, goes on with the step.
struct Step::AsyncCall {
  Step *step;
  Tagged tagged;
  KernelContext context;
  absl::Status status;
  int64_t startNanos = 0;
  std::atomic<bool> met{false}, answered{false};
};

Step::Step(std::shared_ptr<const Executable> e, const StepOptions &options, CallFrame &frame)
    : executable(std::move(e)), opts(options), callFrame(frame) {}

Step::~Step() = default;

void Step::start(Done whenDone) {
  done = std::move(whenDone);
  root = std::make_unique<Frame>(executable->frames()[0], 0);
  Iteration *first = root->open(0);
  Ready ready;
  for (int n : executable->roots())
    ready.push_back({n, root.get(), first, false});
  if (ready.empty())
    return end();
  active.store(static_cast<int64_t>(ready.size()), std::memory_order_relaxed);
  Ready queue;
  settle(ready, queue);
  loop(std::move(queue));
}

/// Distributes ready nodes: cheap ones to this thread's queue, one expensive one too if there is nothing else to do.
void Step::settle(Ready &ready, Ready &queue) {
  const std::vector<ExecNode> &nodes = executable->nodes();
  const Tagged *kept = nullptr;
  for (const Tagged &t : ready) {
    if (t.dead || !nodes[t.node].expensive || !opts.pool) {
      queue.push_back(t);
      continue;
    }
    if (kept)
      opts.pool->schedule([this, moved = *kept] { loop({moved}); });
    kept = &t;
  }
  if (kept)
    queue.push_back(*kept);
  ready.clear();
}

void Step::loop(Ready queue) {
  const std::vector<ExecNode> &nodes = executable->nodes();
  KernelContext context;
  Ready ready;
  size_t head = 0;
  while (head < queue.size()) {
    Tagged t = queue[head++];
    if (head == queue.size() || head > 4096) { // a loop's queue may never run empty
      queue.erase(queue.begin(), queue.begin() + head);
      head = 0;
    }
    absl::Status ran;
    if (failed.load(std::memory_order_acquire)) {
      // drop it
    } else if (opts.cancellation && opts.cancellation->isCancelled()) {
      fail(nodes[t.node], absl::CancelledError("the step was cancelled"));
    } else {
      if (!run(t, context, ran))
        continue; // the callback goes on
      if (ran.ok())
        ran = finishNode(t, context, ready);
      if (!ran.ok()) {
        fail(nodes[t.node], ran);
        ready.clear();
      }
    }
    int64_t more = static_cast<int64_t>(ready.size()) - 1;
    if (more > 0)
      active.fetch_add(more, std::memory_order_relaxed);
    if (more < 0 && active.fetch_sub(1, std::memory_order_acq_rel) == 1)
      return end();
    if (more >= 0)
      settle(ready, queue);
  }
}

void Step::end() {
  absl::Status result;
  {
    std::lock_guard<std::mutex> lock(statusMutex);
    result = status;
  }
  Done callback = std::move(done);
  callback(std::move(result)); // may destroy this
}

void Step::fail(const ExecNode &item, const absl::Status &why) {
  {
    std::lock_guard<std::mutex> lock(statusMutex);
    // nodes that were cancelled because of another one's failure do not hide it
    if (status.ok())
      status = atNode(item.info->name, item.info->op, why);
  }
  if (failed.exchange(true, std::memory_order_acq_rel))
    return;
  if (opts.cancellation)
    opts.cancellation->cancel();
}

/// Takes the inputs out of their slots.
void Step::prepare(const Tagged &t, KernelContext &context) {
  const ExecNode &item = executable->nodes()[t.node];
  context.node = item.info;
  context.inputs.resize(item.numInputs);
  context.outputs.clear();
  context.outputs.resize(item.numOutputs);
  if (t.dead)
    return;
  Value *slots = t.iteration->inputs.get() + item.inputStart;
  for (int i = 0; i < item.numInputs; ++i) {
    context.inputs[i] = std::move(slots[i]);
    slots[i] = Value();
  }
}

absl::Status Step::checkRefs(const ExecNode &item, KernelContext &context) {
  for (int i = 0; i < item.numInputs; ++i) {
    const std::shared_ptr<Variable> &ref = context.inputs[i].ref;
    if (!ref) {
      if (item.info->inputIsRef[i] && item.kind != NodeKind::Merge)
        return absl::InvalidArgumentError(absl::StrCat("input ", i, " has to be a reference"));
      continue;
    }
    bool wantsRef = item.kernel ? item.info->inputIsRef[i] : item.passesRefs;
    if (wantsRef && (!item.kernel || item.kernel->allowsUninitialized(i)))
      continue;
    if (item.info->inputTypes[i] == DType::Invalid)
      continue; // a variable of a launch, which looks itself
    std::lock_guard<std::mutex> lock(ref->mutex);
    if (!ref->value.valid())
      return absl::FailedPreconditionError("Attempting to use uninitialized value");
  }
  return absl::OkStatus();
}

/// False when the node finishes later.
bool Step::run(const Tagged &t, KernelContext &context, absl::Status &result) {
  const ExecNode &item = executable->nodes()[t.node];
  prepare(t, context);
  if (t.dead && !item.transfers) {
    if (item.kind == NodeKind::Retval)
      result = deadResult(*item.info);
    return true;
  }
  if (item.checksRefs)
    if (result = checkRefs(item, context); !result.ok())
      return true;
  // what goes through: references only where declared
  auto through = [&](int i) { return item.passesRefs ? std::move(context.inputs[i]) : Value(context.input(i)); };
  switch (item.kind) {
  case NodeKind::Const: context.outputs[0] = Value(item.constant); return true;
  case NodeKind::Pass:
  case NodeKind::Enter:
  case NodeKind::Exit:
  case NodeKind::NextIteration: context.outputs[0] = through(0); return true;
  case NodeKind::NoOp:
  case NodeKind::Trigger: return true;
  case NodeKind::Switch: {
    Tensor pred = context.input(1);
    if (auto known = hostTensor(pred); known.ok())
      pred = *std::move(known);
    else
      result = known.status();
    if (!result.ok())
      return true;
    if (pred.numElements() != 1)
      result = absl::InvalidArgumentError(absl::StrCat("the condition has to be a scalar, found shape ", dimsToString(pred.dims())));
    else if (pred.dtype() == DType::Int32)
      context.outputs[branchOf(*pred.data<int32_t>(), item.numOutputs)] = through(0);
    else
      context.outputs[*pred.data<bool>() ? 1 : 0] = through(0);
    return true;
  }
  case NodeKind::Merge:
    for (int i = 0; i < item.numInputs; ++i)
      if (context.inputs[i].present()) {
        context.outputs[0] = through(i);
        context.outputs[1] = Value(Tensor::scalar<int32_t>(DType::Int32, i));
        return true;
      }
    result = absl::InternalError("no input is alive");
    return true;
  case NodeKind::Retval: result = callFrame.setResult(item.argIndex, context.input(0)); return true;
  case NodeKind::Arg: {
    Value value;
    std::unique_ptr<AsyncCall> call;
    AsyncCall *raw = nullptr;
    bool ready = callFrame.takeReadyArg(item.argIndex, &value);
    if (!ready) {
      call = std::make_unique<AsyncCall>();
      call->step = this;
      call->tagged = t;
      raw = call.get();
    }
    if (!ready && !callFrame.takeArg(item.argIndex, &value, [raw](absl::StatusOr<Tensor> v) {
          raw->context.outputs.resize(1);
          if (v.ok())
            raw->context.outputs[0] = Value(*std::move(v));
          else
            raw->status = v.status();
          raw->step->resume(raw);
        })) {
      call.release();
      return false;
    }
    if (DType type = value.ref ? value.ref->dtype : value.tensor.dtype(); type != item.info->outputTypes[0])
      result = absl::InvalidArgumentError(absl::StrCat("expected a value of type ", dtypeName(item.info->outputTypes[0]), ", got ",
                                                       dtypeName(type)));
    else if (opts.device && item.manyLaunches && !value.ref && !staysOnHost(value.tensor)) {
      // one copy for all of them
      auto there = opts.device->memory()->fromAny(value.tensor);
      if (there.ok())
        value.tensor = *std::move(there);
      else
        result = there.status();
    }
    context.outputs[0] = std::move(value);
    return true;
  }
  case NodeKind::Kernel: break;
  }
  context.resources = opts.resources;
  context.stepResources = opts.stepResources;
  context.cancellation = opts.cancellation;
  context.functions = opts.functions;
  context.stepId = opts.stepId;
  context.executor = this;
  if (opts.device && item.info->op != kLaunchOp) {
    if (opts.hostFunctions && !hostInputsOfHandler(item.info->op))
      context.functions = opts.hostFunctions;
    if (result = bringInputsToHost(context); !result.ok())
      return true;
  }
  if (t.frame != root.get()) {
    context.frame = t.frame->id;
    context.iteration = t.iteration->number;
  } else if (!context.frame.empty()) {
    context.frame.clear();
    context.iteration = 0;
  }
  if (opts.pool && !context.schedule)
    context.schedule = [pool = opts.pool](std::function<void()> work) { pool->schedule(std::move(work)); };
  if (item.async)
    return startAsync(t, context, result);
  result = runKernel(item, context);
  return true;
}

absl::Status Step::runKernel(const ExecNode &item, KernelContext &context) {
  if (!opts.stats)
    return computeGuarded(*item.kernel, context);
  NodeTime time{item.info, nanosNow(), 0, std::hash<std::thread::id>()(std::this_thread::get_id())};
  absl::Status s = computeGuarded(*item.kernel, context);
  time.endNanos = nanosNow();
  opts.stats->add(time);
  return s;
}

bool Step::startAsync(const Tagged &t, KernelContext &context, absl::Status &result) {
  auto *call = new AsyncCall;
  call->step = this;
  call->tagged = t;
  call->context = std::move(context);
  context = KernelContext();
  if (opts.stats)
    call->startNanos = nanosNow();
  auto answer = [call](absl::Status s) {
    if (call->answered.exchange(true, std::memory_order_acq_rel))
      return;
    call->status = std::move(s);
    if (!call->met.exchange(true, std::memory_order_acq_rel))
      return; // the starter is still there and goes on
    call->step->resume(call);
  };
  absl::Status thrown;
  try {
    executable->nodes()[t.node].async->computeAsync(call->context, answer);
  } catch (const std::bad_alloc &) {
    thrown = absl::ResourceExhaustedError("out of memory");
  } catch (const InvalidUse &e) {
    thrown = absl::InvalidArgumentError(e.what());
  }
  if (!thrown.ok() && !call->answered.exchange(true, std::memory_order_acq_rel)) {
    result = std::move(thrown);
    return true; // what the kernel began may still look at the call, which is left to it
  }
  if (!call->met.exchange(true, std::memory_order_acq_rel))
    return false;
  context = std::move(call->context);
  result = std::move(call->status);
  if (opts.stats)
    opts.stats->add({executable->nodes()[t.node].info, call->startNanos, nanosNow(), std::hash<std::thread::id>()(std::this_thread::get_id())});
  delete call;
  return true;
}

/// Goes on after a callback, on a thread of the pool: the callback's thread may hold locks or be deep in another step.
void Step::resume(AsyncCall *call) {
  auto work = [call] {
    Step *step = call->step;
    const Tagged t = call->tagged;
    const ExecNode &item = step->executable->nodes()[t.node];
    if (step->opts.stats)
      step->opts.stats->add({item.info, call->startNanos, nanosNow(), std::hash<std::thread::id>()(std::this_thread::get_id())});
    Ready ready;
    if (!step->failed.load(std::memory_order_acquire)) {
      absl::Status s = call->status;
      if (s.ok())
        s = step->finishNode(t, call->context, ready);
      if (!s.ok()) {
        step->fail(item, s);
        ready.clear();
      }
    }
    delete call;
    int64_t more = static_cast<int64_t>(ready.size()) - 1;
    if (more > 0)
      step->active.fetch_add(more, std::memory_order_relaxed);
    if (more < 0) {
      if (step->active.fetch_sub(1, std::memory_order_acq_rel) == 1)
        step->end();
      return;
    }
    Ready queue;
    step->settle(ready, queue);
    step->loop(std::move(queue));
  };
  if (opts.pool)
    opts.pool->schedule(work);
  else
    work();
}

/// After a node has run: outputs go to their consumers.
absl::Status Step::finishNode(const Tagged &t, KernelContext &context, Ready &ready) {
  const ExecNode &item = executable->nodes()[t.node];
  Tagged sent = t;
  if (item.transfers)
    sent.dead = t.dead || (item.numOutputs && !context.outputs[0].present());
  if (absl::Status known = context.outputsKnown(); !known.ok())
    return known;
  if (!sent.dead && item.kind == NodeKind::Kernel)
    for (int i = 0; i < item.numOutputs; ++i) {
      const Value &v = context.outputs[i];
      if (!v.present())
        return absl::InternalError(absl::StrCat("output ", i, " was not set"));
      if (!v.ref && v.tensor.dtype() != item.info->outputTypes[i])
        return absl::InternalError(absl::StrCat("output ", i, " is of type ", dtypeName(v.tensor.dtype()), ", declared ",
                                                dtypeName(item.info->outputTypes[i])));
    }
  context.inputs.clear(); // buffers that nobody else needs go now, and outputs' consumers may own theirs alone
  propagate(sent, context.outputs, ready);
  return absl::OkStatus();
}

} // namespace lathe::rt
