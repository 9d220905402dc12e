// Ops that call functions of the library: PartitionedCall, If, Case, While, For. All asynchronous; loops do not grow the stack,
// whether the callee answers at once or from another thread.
#include "runtime/core/Kernel.h"
#include "runtime/device.h"

#include <atomic>

namespace lathe::rt {
namespace {

using Results = absl::StatusOr<std::vector<Tensor>>;

std::vector<Tensor> inputsFrom(KernelContext &context, int first) {
  std::vector<Tensor> values;
  for (int i = first; i < context.numInputs(); ++i)
    values.push_back(context.input(i));
  return values;
}

absl::Status setOutputs(KernelContext &context, Results results) {
  if (!results.ok())
    return results.status();
  if (static_cast<int>(results->size()) != context.numOutputs())
    return absl::InvalidArgumentError(absl::StrCat("the function has ", results->size(), " results, expected ", context.numOutputs()));
  for (int i = 0; i < context.numOutputs(); ++i)
    context.setOutput(i, std::move((*results)[i]));
  return absl::OkStatus();
}

/// Whether a tensor counts as true: a scalar by its value, others when they have elements.
absl::StatusOr<bool> truth(const Tensor &t) {
  if (t.rank() > 0)
    return t.numElements() > 0;
  switch (t.dtype()) {
  case DType::Bool: return *t.data<bool>();
  case DType::Float32: return *t.data<float>() != 0;
  case DType::Float64: return *t.data<double>() != 0;
  case DType::Int32: return *t.data<int32_t>() != 0;
  case DType::Int64: return *t.data<int64_t>() != 0;
  case DType::Int16: return *t.data<int16_t>() != 0;
  case DType::Int8:
  case DType::UInt8: return *t.data<uint8_t>() != 0;
  case DType::String: return !t.strings()[0].empty();
  default:
    return absl::InvalidArgumentError(absl::StrCat("a condition of type ", dtypeName(t.dtype()), " is not supported"));
  }
}

class CallKernel : public AsyncHostKernel {
public:
  explicit CallKernel(KernelInit &init) : function(init.attr<FunctionRefPtr>("f")) {}
  void computeAsync(KernelContext &context, Done done) override {
    context.functions->call(*function, inputsFrom(context, 0), context.cancellation,
                            [&context, done](Results results) { done(setOutputs(context, std::move(results))); });
  }
  bool isExpensive() const override { return true; }

private:
  const FunctionRefPtr function;
};

/// RemoteCall(target, args...): functions run here, whatever device is named.
class RemoteCallKernel : public AsyncHostKernel {
public:
  explicit RemoteCallKernel(KernelInit &init) : function(init.attr<FunctionRefPtr>("f")) {}
  void computeAsync(KernelContext &context, Done done) override {
    context.functions->call(*function, inputsFrom(context, 1), context.cancellation,
                            [&context, done](Results results) { done(setOutputs(context, std::move(results))); });
  }

private:
  const FunctionRefPtr function;
};

class IfKernel : public AsyncHostKernel {
public:
  explicit IfKernel(KernelInit &init)
      : thenBranch(init.attr<FunctionRefPtr>("then_branch")), elseBranch(init.attr<FunctionRefPtr>("else_branch")) {}
  void computeAsync(KernelContext &context, Done done) override {
    auto condition = truth(context.input(0));
    if (!condition.ok())
      return done(condition.status());
    context.functions->call(*condition ? *thenBranch : *elseBranch, inputsFrom(context, 1), context.cancellation,
                            [&context, done](Results results) { done(setOutputs(context, std::move(results))); });
  }

private:
  const FunctionRefPtr thenBranch, elseBranch;
};

class CaseKernel : public AsyncHostKernel {
public:
  explicit CaseKernel(KernelInit &init) : branches(init.attr<std::vector<FunctionRefPtr>>("branches")) {
    if (branches.empty())
      init.fail(absl::InvalidArgumentError("there is no branch"));
  }
  void computeAsync(KernelContext &context, Done done) override {
    Tensor index = context.input(0);
    if (index.numElements() != 1)
      return done(absl::InvalidArgumentError("the branch index has to be a scalar"));
    int64_t branch = *index.data<int32_t>();
    if (branch < 0 || branch >= static_cast<int64_t>(branches.size()))
      branch = static_cast<int64_t>(branches.size()) - 1;
    context.functions->call(*branches[branch], inputsFrom(context, 1), context.cancellation,
                            [&context, done](Results results) { done(setOutputs(context, std::move(results))); });
  }

private:
  const std::vector<FunctionRefPtr> branches;
};

/// A sequence of calls in which each one's results decide the next.
class CallLoop : public std::enable_shared_from_this<CallLoop> {
public:
  CallLoop(KernelContext &context, AsyncHostKernel::Done done) : context(context), done(std::move(done)) {}
  virtual ~CallLoop() = default;

  void advance() {
    for (;;) {
      std::vector<Tensor> args;
      const FunctionRef *function = next(args);
      if (!function)
        return done(setOutputs(context, std::move(state)));
      auto answer = std::make_shared<Answer>();
      context.functions->call(*function, std::move(args), context.cancellation,
                              [self = shared_from_this(), answer](Results results) {
                                answer->results = std::move(results);
                                if (answer->met.exchange(true, std::memory_order_acq_rel) && self->take(*answer))
                                  self->advance();
                              });
      if (!answer->met.exchange(true, std::memory_order_acq_rel))
        return; // the callback goes on
      if (!take(*answer))
        return;
    }
  }

protected:
  /// The function to call with its arguments, or null when the loop is over.
  virtual const FunctionRef *next(std::vector<Tensor> &args) = 0;
  virtual absl::Status accept(std::vector<Tensor> results) = 0;

  KernelContext &context;
  std::vector<Tensor> state;

private:
  struct Answer {
    Results results = absl::InternalError("no answer");
    std::atomic<bool> met{false};
  };
  bool take(Answer &answer) {
    absl::Status status = answer.results.status();
    if (status.ok())
      status = accept(*std::move(answer.results));
    if (!status.ok())
      done(status);
    return status.ok();
  }
  AsyncHostKernel::Done done;
};

class WhileLoop : public CallLoop {
public:
  WhileLoop(KernelContext &context, AsyncHostKernel::Done done, FunctionRefPtr condition, FunctionRefPtr body)
      : CallLoop(context, std::move(done)), condition(std::move(condition)), body(std::move(body)) {
    state = inputsFrom(context, 0);
    context.inputs.clear(); // bodies may update in place
  }

protected:
  const FunctionRef *next(std::vector<Tensor> &args) override {
    if (phase == Over)
      return nullptr;
    if (phase == Body)
      args = std::move(state);
    else
      args = state;
    return phase == Body ? body.get() : condition.get();
  }
  absl::Status accept(std::vector<Tensor> results) override {
    if (phase == Body) {
      state = std::move(results);
      phase = Condition;
      return absl::OkStatus();
    }
    if (results.size() != 1)
      return absl::InvalidArgumentError(absl::StrCat("the condition has ", results.size(), " results, expected 1"));
    // TensorFlow's Switch refuses others; a tensor that has elements would be true for ever
    if (results[0].rank() > 0)
      return absl::InvalidArgumentError(absl::StrCat("the condition of a loop must be a scalar, but it has shape ", dimsToString(results[0].dims())));
    auto known = hostTensor(results[0]); // functions run where the loop is
    if (!known.ok())
      return known.status();
    auto value = truth(*known);
    phase = value.ok() && *value ? Body : Over;
    return value.status();
  }

private:
  enum { Condition, Body, Over } phase = Condition;
  const FunctionRefPtr condition, body;
};

class WhileKernel : public AsyncHostKernel {
public:
  explicit WhileKernel(KernelInit &init) : condition(init.attr<FunctionRefPtr>("cond")), body(init.attr<FunctionRefPtr>("body")) {}
  void computeAsync(KernelContext &context, Done done) override {
    std::make_shared<WhileLoop>(context, std::move(done), condition, body)->advance();
  }

private:
  const FunctionRefPtr condition, body;
};

class ForLoop : public CallLoop {
public:
  ForLoop(KernelContext &context, AsyncHostKernel::Done done, FunctionRefPtr body, int64_t start, int64_t limit, int64_t delta)
      : CallLoop(context, std::move(done)), body(std::move(body)), i(start), limit(limit), delta(delta) {
    state = inputsFrom(context, 3);
  }

protected:
  const FunctionRef *next(std::vector<Tensor> &args) override {
    if (delta > 0 ? i >= limit : i <= limit)
      return nullptr;
    args.push_back(Tensor::scalar<int32_t>(DType::Int32, static_cast<int32_t>(i)));
    for (Tensor &t : state)
      args.push_back(std::move(t));
    return body.get();
  }
  absl::Status accept(std::vector<Tensor> results) override {
    state = std::move(results);
    i += delta;
    return absl::OkStatus();
  }

private:
  const FunctionRefPtr body;
  int64_t i;
  const int64_t limit, delta;
};

class ForKernel : public AsyncHostKernel {
public:
  explicit ForKernel(KernelInit &init) : body(init.attr<FunctionRefPtr>("body")) {}
  void computeAsync(KernelContext &context, Done done) override {
    int64_t bounds[3];
    for (int i = 0; i < 3; ++i) {
      Tensor t = context.input(i);
      if (t.rank() != 0)
        return done(absl::InvalidArgumentError("start, limit and delta have to be scalars"));
      bounds[i] = *t.data<int32_t>();
    }
    auto [start, limit, delta] = bounds;
    if ((start < limit && delta <= 0) || (start > limit && delta >= 0) || delta == 0)
      return done(absl::InvalidArgumentError(
          absl::StrCat("a loop from ", start, " to ", limit, " by ", delta, " does not end")));
    std::make_shared<ForLoop>(context, std::move(done), body, start, limit, delta)->advance();
  }

private:
  const FunctionRefPtr body;
};

LATHE_HOST_KERNEL(PartitionedCall, CallKernel);
LATHE_HOST_KERNEL(StatefulPartitionedCall, CallKernel);
LATHE_HOST_KERNEL(RemoteCall, RemoteCallKernel);
LATHE_HOST_KERNEL(If, IfKernel);
LATHE_HOST_KERNEL(StatelessIf, IfKernel);
LATHE_HOST_KERNEL(Case, CaseKernel);
LATHE_HOST_KERNEL(StatelessCase, CaseKernel);
LATHE_HOST_KERNEL(While, WhileKernel);
LATHE_HOST_KERNEL(StatelessWhile, WhileKernel);
LATHE_HOST_KERNEL(For, ForKernel);

} // namespace
} // namespace lathe::rt
