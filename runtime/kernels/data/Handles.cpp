// Handles that datasets take: caches in memory, thread pools, aggregators of statistics, counters of iterations. What is behind them
// datasets keep themselves, or it is nothing that elements depend on.
#include "runtime/kernels/Common.h"

#include <atomic>

namespace lathe::rt {
namespace {

class Named : public Resource {
public:
  explicit Named(std::string what) : what(std::move(what)) {}
  std::string describe() const override { return what; }

private:
  const std::string what;
};

/// A handle of its own each time, and what would delete it: the handle owns what is behind it.
absl::Status anonymous(KernelContext &context) {
  static std::atomic<int64_t> serial{0};
  const std::string &op = context.node->op;
  context.setOutput(0, makeHandle("", absl::StrCat(op, serial++), std::make_shared<Named>(op)));
  if (context.numOutputs() > 1)
    context.setOutput(1, Tensor::fromObjects(DType::Variant, {}, {nullptr}));
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(AnonymousMemoryCache, anonymous);
LATHE_HOST_FUNCTION(DummyMemoryCache, anonymous);
LATHE_HOST_FUNCTION(DummyIterationCounter, anonymous);

absl::Status nothing(KernelContext &) { return absl::OkStatus(); }
LATHE_HOST_FUNCTION(DeleteMemoryCache, nothing);
LATHE_HOST_FUNCTION(StatsAggregatorSetSummaryWriter, nothing);

class NamedNode : public ResourceKernel<Named> {
public:
  explicit NamedNode(KernelInit &init) : ResourceKernel(init), op(init.node().op) {
    if (init.hasAttr("num_threads") && init.attr<int64_t>("num_threads") <= 0)
      init.fail(invalid("`num_threads` must be greater than zero."));
  }

protected:
  absl::StatusOr<std::shared_ptr<Named>> create(KernelContext &) override { return std::make_shared<Named>(op); }

private:
  const std::string op;
};
LATHE_HOST_KERNEL(ThreadPoolHandle, NamedNode);
LATHE_HOST_KERNEL(ExperimentalThreadPoolHandle, NamedNode);
LATHE_HOST_KERNEL(StatsAggregatorHandle, NamedNode);
LATHE_HOST_KERNEL(StatsAggregatorHandleV2, NamedNode);
LATHE_HOST_KERNEL(ExperimentalStatsAggregatorHandle, NamedNode);

/// A Summary message without values: nothing is measured.
absl::Status summary(KernelContext &context) {
  if (auto any = context.resource<Named>(0); !any.ok())
    return any.status();
  context.setOutput(0, Tensor::fromStrings({}, {""}));
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(StatsAggregatorSummary, summary);
LATHE_HOST_FUNCTION(ExperimentalStatsAggregatorSummary, summary);

} // namespace
} // namespace lathe::rt
