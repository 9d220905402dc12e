// ConditionalAccumulator, ResourceConditionalAccumulator and what applies to and takes from them.
#include "runtime/core/Elements.h"
#include "runtime/kernels/accumulators/Accumulator.h"

namespace lathe::rt {
namespace {

class DenseAccumulator : public Accumulator {
public:
  using Accumulator::Accumulator;
  std::string describe() const override { return "ConditionalAccumulator"; }

protected:
  absl::Status validate(const Tuple &gradient, bool first) override {
    const Tensor &t = gradient[0];
    if (!isCompatible(shape, t.dims()) || (!first && t.dims() != sum.dims()))
      return absl::InvalidArgumentError(absl::StrCat("Shape mismatch: expected ",
                                                     first ? shapeToString(shape) : dimsToString(sum.dims()), ", got ",
                                                     dimsToString(t.dims())));
    return absl::OkStatus();
  }
  void assign(const Tuple &gradient) override { sum = gradient[0].clone(); }
  void add(const Tuple &gradient) override { addInto(sum, 0, gradient[0], 0, sum.numElements()); }
  Tuple finish(int64_t count) override {
    if (mean)
      divideBy(sum, 0, sum.numElements(), count);
    return {std::move(sum)};
  }

private:
  Tensor sum;
};

absl::Status applyGradient(KernelContext &context) {
  auto accumulator = context.resource<Accumulator>(0);
  if (!accumulator.ok())
    return accumulator.status();
  if (!dynamic_cast<DenseAccumulator *>(accumulator->get()))
    return absl::InvalidArgumentError("the accumulator takes sparse gradients");
  auto step = integerScalar(context.input(1), "local_step");
  if (!step.ok())
    return step.status();
  Tensor gradient = context.input(2);
  if (gradient.dtype() != (*accumulator)->type)
    return absl::InvalidArgumentError(absl::StrCat("expected a gradient of type ", dtypeName((*accumulator)->type),
                                                   ", found ", dtypeName(gradient.dtype())));
  return (*accumulator)->apply(*step, {gradient});
}

LATHE_HOST_KERNEL(ConditionalAccumulator, AccumulatorNode<DenseAccumulator>);
LATHE_HOST_KERNEL(ResourceConditionalAccumulator, AccumulatorNode<DenseAccumulator>);
LATHE_HOST_FUNCTION(AccumulatorApplyGradient, applyGradient);
LATHE_HOST_FUNCTION(ResourceAccumulatorApplyGradient, applyGradient);
LATHE_HOST_KERNEL(AccumulatorTakeGradient, TakeGradient);
LATHE_HOST_KERNEL(ResourceAccumulatorTakeGradient, TakeGradient);

} // namespace
} // namespace lathe::rt
