// One execution of an executable: the executor.
//
// Nodes become ready when their last input arrives (an atomic count a node); ready nodes stay on the thread that made them
// ready, only further expensive ones go to the pool. Outside of loops nothing is locked. A node whose input is dead (the
// branch of a Switch that was not taken) is not run and its outputs are dead. Loops of TF1 run in frames: every iteration
// has counts and inputs of its own, up to parallel_iterations are open at once.
#ifndef LATHE_RUNTIME_SESSION_STEP_H
#define LATHE_RUNTIME_SESSION_STEP_H

#include "runtime/session/Executable.h"
#include "runtime/session/WorkerPool.h"

#include <atomic>

namespace lathe::rt {

/// Where a step's arguments come from and its results go.
class CallFrame {
public:
  virtual ~CallFrame() = default;
  /// Takes the value when it is there. Asked once for each argument, before takeArg.
  virtual bool takeReadyArg(int, Value *) { return false; }
  /// True and the value when it is there; else false, and `later` is called once when it arrives.
  virtual bool takeArg(int index, Value *value, std::function<void(absl::StatusOr<Tensor>)> later) = 0;
  virtual absl::Status setResult(int index, Tensor value) = 0;
};

/// All arguments known from the start.
class SimpleCallFrame : public CallFrame {
public:
  /// An argument has one node, which runs once: the value moves.
  bool takeReadyArg(int index, Value *value) override {
    *value = Value(std::move(args[index]));
    return true;
  }
  bool takeArg(int index, Value *value, std::function<void(absl::StatusOr<Tensor>)>) override { return takeReadyArg(index, value); }
  absl::Status setResult(int index, Tensor value) override {
    results[index] = std::move(value);
    return absl::OkStatus();
  }
  std::vector<Tensor> args, results;
};

/// When a node ran, for RunMetadata.
struct NodeTime {
  const NodeInfo *node;
  int64_t startNanos, endNanos;
  uint64_t thread;
};

class StepStats {
public:
  void add(const NodeTime &time) {
    std::lock_guard<std::mutex> lock(mutex);
    times.push_back(time);
  }
  std::mutex mutex;
  std::vector<NodeTime> times;
};

class Device;
class Rendezvous;

struct StepOptions {
  WorkerPool *pool = nullptr;
  Device *device = nullptr; ///< null: the host's memory is all there is
  ResourceManager *resources = nullptr, *stepResources = nullptr;
  Cancellation *cancellation = nullptr; ///< cancelled when the step fails
  FunctionCaller *functions = nullptr;
  FunctionCaller *hostFunctions = nullptr; ///< with a device: for kernels that read what functions return
  Rendezvous *rendezvous = nullptr;
  StepStats *stats = nullptr; ///< null: not wanted
  int64_t stepId = 0;
  int depth = 0; ///< of function calls
};

class Step {
public:
  using Done = std::function<void(absl::Status)>;
  Step(std::shared_ptr<const Executable> executable, const StepOptions &options, CallFrame &frame);
  ~Step();

  /// Begins on this thread and returns when nothing is left to do here; `done` is called once, from the thread that ends the
  /// step, after which the step is not touched any more.
  void start(Done done);

  const StepOptions &options() const { return opts; }

private:
  struct Iteration;
  struct Frame;
  struct AsyncCall;
  struct Tagged {
    int node;
    Frame *frame;
    Iteration *iteration;
    bool dead;
  };
  using Ready = std::vector<Tagged>;

  void loop(Ready queue);
  bool run(const Tagged &t, KernelContext &context, absl::Status &status);
  absl::Status runKernel(const ExecNode &item, KernelContext &context);
  bool startAsync(const Tagged &t, KernelContext &context, absl::Status &status);
  void resume(AsyncCall *call);
  absl::Status checkRefs(const ExecNode &item, KernelContext &context);
  void prepare(const Tagged &t, KernelContext &context);
  void fail(const ExecNode &item, const absl::Status &status);
  absl::Status finishNode(const Tagged &t, KernelContext &context, Ready &ready);
  void settle(Ready &ready, Ready &queue);
  void end();

  void propagate(const Tagged &t, std::vector<Value> &outputs, Ready &ready);
  void activateAll(const ExecNode &item, std::vector<Value> &outputs, bool dead, Frame *frame, Iteration *iteration, Ready &ready);
  void activate(const OutEdge &edge, bool deadEdge, bool fromDeadEnter, Value *value, Frame *frame, Iteration *iteration, Ready &ready);
  void enter(const Tagged &t, std::vector<Value> &outputs, Ready &ready);
  void nextIteration(const Tagged &t, std::vector<Value> &outputs, Ready &ready);
  Iteration *addIteration(Frame *frame, Ready &ready);
  void opDone(Frame *frame, Iteration *iteration, Ready &ready);
  bool cleanUp(Frame *frame, int64_t number, Ready &ready);
  void deleteFrame(Frame *frame, Ready &ready);
  Frame *childFrame(const ExecNode &enter, const Tagged &t);

  const std::shared_ptr<const Executable> executable;
  const StepOptions opts;
  CallFrame &callFrame;
  Done done;
  std::atomic<int64_t> active{0}; ///< nodes that are ready or running
  std::atomic<bool> failed{false};
  std::mutex statusMutex;
  absl::Status status;
  std::unique_ptr<Frame> root;
  std::mutex framesMutex;
  std::vector<std::unique_ptr<Frame>> children;
};

} // namespace lathe::rt

#endif
