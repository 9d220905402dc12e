// FlatMapDataset, InterleaveDataset, ParallelInterleaveDataset (V1-V4): datasets that a function makes of each element,
// `cycle` of them open at once, `block` elements taken from each in turn. The parallel forms keep the deterministic order.
#include "runtime/kernels/data/Dataset.h"

#include <thread>

namespace lathe::rt {
namespace {

class InterleaveDataset : public UnaryDataset {
public:
  InterleaveDataset(Spec spec, DatasetPtr input, CapturedFunction function, int64_t cycle, int64_t block)
      : UnaryDataset(std::move(spec), std::move(input)), function(std::move(function)), cycle(cycle), block(block) {}
  int64_t cardinality() const override { return kUnknown; }

  absl::StatusOr<IteratorPtr> iterate(const IteratorEnv &env) const override {
    class Iterator : public UnaryIterator<InterleaveDataset> {
    public:
      using UnaryIterator::UnaryIterator;
      absl::StatusOr<bool> next(Element &element) override {
        if (open.empty())
          open.resize(1);
        while (!inputEnded || numOpen > 0) {
          if (open[at]) {
            auto any = open[at]->next(element);
            if (!any.ok())
              return any.status();
            if (*any) {
              if (++taken == dataset->block)
                advance();
              return true;
            }
            open[at].reset();
            --numOpen;
            advance();
          } else if (!inputEnded) {
            if (absl::Status opened = openNext(); !opened.ok())
              return opened;
          } else {
            advance();
          }
        }
        return false;
      }

    private:
      absl::Status openNext() {
        Element args;
        auto any = input->next(args);
        if (!any.ok())
          return any.status();
        if (!*any) {
          inputEnded = true;
          return absl::OkStatus();
        }
        auto result = dataset->function.call(std::move(args), env);
        if (!result.ok())
          return result.status();
        if (result->size() != 1)
          return absl::InvalidArgumentError("`f` must return a single dataset");
        auto inner = datasetFrom((*result)[0]);
        if (!inner.ok())
          return inner.status();
        auto iterator = (*inner)->iterate(env);
        if (!iterator.ok())
          return iterator.status();
        open[at] = *std::move(iterator);
        ++numOpen;
        return absl::OkStatus();
      }
      void advance() {
        taken = 0;
        // slots exist once they are reached: the cycle may be far longer than the input
        if (++at == static_cast<size_t>(dataset->cycle) || (at == open.size() && inputEnded))
          at = 0;
        if (at == open.size())
          open.emplace_back();
      }
      std::vector<IteratorPtr> open;
      size_t at = 0;
      int64_t taken = 0, numOpen = 0;
      bool inputEnded = false;
    };
    return iterateInput<Iterator>(this, env);
  }
  const CapturedFunction function;
  const int64_t cycle, block;
};

template <bool flat>
class InterleaveNode : public DatasetNode {
public:
  using DatasetNode::DatasetNode;
  absl::StatusOr<std::shared_ptr<Dataset>> make(KernelContext &context) override {
    auto input = datasetFrom(context.input(0));
    if (!input.ok())
      return input.status();
    int64_t cycle = 1, block = 1;
    if (!flat) {
      auto askedCycle = number(context, "cycle_length"), askedBlock = number(context, "block_length");
      for (const absl::Status &status : {askedCycle.status(), askedBlock.status()})
        if (!status.ok())
          return status;
      constexpr int64_t kAutotune = -1;
      cycle = *askedCycle == kAutotune ? std::max<int64_t>(2, std::thread::hardware_concurrency()) : *askedCycle;
      block = *askedBlock;
      if (cycle <= 0)
        return absl::InvalidArgumentError("cycle_length must be greater than zero.");
      if (block <= 0)
        return absl::InvalidArgumentError("block_length must be greater than zero.");
    }
    return std::make_shared<InterleaveDataset>(spec, *std::move(input), function(context, "f"), cycle, block);
  }
};

LATHE_HOST_KERNEL(FlatMapDataset, InterleaveNode<true>);
LATHE_HOST_KERNEL(InterleaveDataset, InterleaveNode<false>);
LATHE_HOST_KERNEL(ParallelInterleaveDataset, InterleaveNode<false>);
LATHE_HOST_KERNEL(LegacyParallelInterleaveDatasetV2, InterleaveNode<false>);
LATHE_HOST_KERNEL(ParallelInterleaveDatasetV2, InterleaveNode<false>);
LATHE_HOST_KERNEL(ParallelInterleaveDatasetV3, InterleaveNode<false>);
LATHE_HOST_KERNEL(ParallelInterleaveDatasetV4, InterleaveNode<false>);

} // namespace
} // namespace lathe::rt
