// Conditional accumulators: sum gradients, and give their mean (or sum) once enough of them came.
#ifndef LATHE_RUNTIME_KERNELS_ACCUMULATORS_ACCUMULATOR_H
#define LATHE_RUNTIME_KERNELS_ACCUMULATORS_ACCUMULATOR_H

#include "runtime/core/Kernel.h"

#include <deque>

namespace lathe::rt {

class Accumulator : public Resource, public std::enable_shared_from_this<Accumulator> {
public:
  using Tuple = std::vector<Tensor>;
  using TupleDone = std::function<void(absl::StatusOr<Tuple>)>;

  Accumulator(DType type, PartialShape shape, bool mean) : type(type), shape(std::move(shape)), mean(mean) {}
  const DType type;
  const PartialShape shape;
  const bool mean;

  /// Adds a gradient, unless it was computed at a step before the present one. INVALID_ARGUMENT for another shape.
  absl::Status apply(int64_t localStep, const Tuple &gradient);
  /// Waits until `required` gradients came; then gives the result, forgets it and moves the step on.
  void take(int64_t required, Cancellation *cancellation, TupleDone done);
  void setStep(int64_t step);
  int64_t count() const;

protected:
  // Called with the lock held.
  virtual absl::Status validate(const Tuple &gradient, bool first) = 0;
  virtual void assign(const Tuple &gradient) = 0;
  virtual void add(const Tuple &gradient) = 0;
  /// The accumulated value, divided if it is a mean; leaves nothing behind.
  virtual Tuple finish(int64_t count) = 0;

private:
  struct Taker {
    int64_t required;
    TupleDone done;
    Cancellation *cancellation;
    Cancellation::Token token = 0;
    bool hasToken = false, finished = false;
    absl::StatusOr<Tuple> result = absl::CancelledError("TakeGrad operation was cancelled");
  };
  using TakerPtr = std::shared_ptr<Taker>;
  void advance(std::vector<TakerPtr> &finished);
  static void complete(const std::vector<TakerPtr> &finished);
  void cancel(const TakerPtr &taker);

  mutable std::mutex mutex;
  std::deque<TakerPtr> takers;
  int64_t applied = 0, step = 0;
};

/// Makes an accumulator of class T (constructed from type, shape, mean).
template <typename T>
class AccumulatorNode : public ResourceKernel<Accumulator> {
public:
  explicit AccumulatorNode(KernelInit &init)
      : ResourceKernel(init), type(init.attr<DType>("dtype")), shape(init.attr<PartialShape>("shape")) {
    std::string reduction = init.attr<std::string>("reduction_type");
    mean = reduction == "MEAN";
    if (!mean && reduction != "SUM")
      init.fail(absl::InvalidArgumentError(absl::StrCat("reduction_type must be MEAN or SUM, found ", reduction)));
    if (type != DType::Float32 && type != DType::Float64 && type != DType::Float16 && type != DType::BFloat16)
      init.fail(absl::UnimplementedError(absl::StrCat("accumulators of ", dtypeName(type), " are not supported")));
  }

protected:
  absl::StatusOr<std::shared_ptr<Accumulator>> create(KernelContext &) override {
    return std::make_shared<T>(type, shape, mean);
  }
  absl::Status check(const Accumulator &found) override {
    if (!dynamic_cast<const T *>(&found) || found.type != type || found.shape != shape || found.mean != mean)
      return absl::InvalidArgumentError(absl::StrCat("shared accumulator '", name, "' has other attributes"));
    return absl::OkStatus();
  }

private:
  DType type;
  PartialShape shape;
  bool mean;
};

/// a += b (equal shapes), and a /= divisor, in the type's own precision.
void addInto(Tensor &a, int64_t aAt, const Tensor &b, int64_t bAt, int64_t count);
void divideBy(Tensor &a, int64_t at, int64_t count, int64_t divisor);

/// TakeGradient of either kind: the outputs are the accumulator's tuple.
class TakeGradient : public AsyncHostKernel {
public:
  explicit TakeGradient(KernelInit &) {}
  void computeAsync(KernelContext &context, Done done) override;
};

} // namespace lathe::rt

#endif
