// FlatMapDataset, InterleaveDataset, ParallelInterleaveDataset (V1-V4): datasets that a function makes of each element,
// `cycle` of them open at once, `block` elements taken from each in turn. The parallel forms keep the deterministic order.
// DirectedInterleaveDataset: a dataset of numbers says from which input each element comes.
#include "runtime/kernels/data/Holding.h"

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

class DirectedInterleaveDataset : public Dataset {
public:
  DirectedInterleaveDataset(Spec spec, DatasetPtr selector, std::vector<DatasetPtr> inputs, bool stopOnEmpty)
      : Dataset(std::move(spec)), selector(std::move(selector)), inputs(std::move(inputs)), stopOnEmpty(stopOnEmpty) {}
  int64_t cardinality() const override {
    for (const DatasetPtr &input : inputs)
      if (input->cardinality() == kInfinite)
        return kInfinite;
    return kUnknown;
  }

  absl::StatusOr<IteratorPtr> iterate(const IteratorEnv &env) const override {
    class Iterator : public IteratorOf<DirectedInterleaveDataset> {
    public:
      using IteratorOf::IteratorOf;
      absl::StatusOr<bool> next(Element &element) override {
        while (active > 0) {
          if (absl::Status status = checkCancelled(env); !status.ok())
            return status;
          Element choice;
          auto any = selector->next(choice);
          if (!any.ok())
            return any.status();
          if (!*any)
            break;
          if (choice.size() != 1 || choice[0].dtype() != DType::Int64 || choice[0].numElements() != 1)
            return absl::InvalidArgumentError("the selector must give int64 scalars");
          int64_t chosen = *choice[0].data<int64_t>();
          if (chosen < 0 || chosen >= static_cast<int64_t>(inputs.size()))
            return absl::InvalidArgumentError(absl::StrCat("Selector index out of range: ", chosen, " >= ", inputs.size()));
          if (!inputs[chosen])
            continue; // it came to its end: the number is passed over
          any = inputs[chosen]->next(element);
          if (!any.ok() || *any)
            return any;
          inputs[chosen].reset();
          --active;
          if (dataset->stopOnEmpty)
            break;
        }
        active = 0;
        return false;
      }
      IteratorPtr selector;
      std::vector<IteratorPtr> inputs;
      size_t active = 0;
    };
    auto directed = std::make_unique<Iterator>(this, env);
    auto opened = selector->iterate(env);
    if (!opened.ok())
      return opened.status();
    directed->selector = *std::move(opened);
    for (const DatasetPtr &input : inputs) {
      auto iterator = input->iterate(env);
      if (!iterator.ok())
        return iterator.status();
      directed->inputs.push_back(*std::move(iterator));
    }
    directed->active = inputs.size();
    return IteratorPtr(std::move(directed));
  }
  const DatasetPtr selector;
  const std::vector<DatasetPtr> inputs;
  const bool stopOnEmpty;
};

class DirectedNode : public DatasetNode {
public:
  using DatasetNode::DatasetNode;
  absl::StatusOr<std::shared_ptr<Dataset>> make(KernelContext &context) override {
    auto selector = datasetFrom(context.input(0));
    if (!selector.ok())
      return selector.status();
    std::vector<DatasetPtr> inputs;
    for (const Tensor &t : context.inputList("data_input_datasets")) {
      auto input = datasetFrom(t);
      if (!input.ok())
        return input.status();
      inputs.push_back(*std::move(input));
      if (inputs.back()->spec.types != inputs[0]->spec.types)
        return absl::InvalidArgumentError("the datasets to choose from have different output_types");
    }
    const bool *stop = attrOf<bool>(*context.node, "stop_on_empty_dataset");
    return std::make_shared<DirectedInterleaveDataset>(spec, *std::move(selector), std::move(inputs), stop && *stop);
  }
};

LATHE_HOST_KERNEL(DirectedInterleaveDataset, DirectedNode);
LATHE_HOST_KERNEL(ExperimentalDirectedInterleaveDataset, DirectedNode);
LATHE_HOST_KERNEL(FlatMapDataset, InterleaveNode<true>);
LATHE_HOST_KERNEL(InterleaveDataset, InterleaveNode<false>);
LATHE_HOST_KERNEL(ParallelInterleaveDataset, InterleaveNode<false>);
LATHE_HOST_KERNEL(ExperimentalParallelInterleaveDataset, InterleaveNode<false>);
LATHE_HOST_KERNEL(LegacyParallelInterleaveDatasetV2, InterleaveNode<false>);
LATHE_HOST_KERNEL(ParallelInterleaveDatasetV2, InterleaveNode<false>);
LATHE_HOST_KERNEL(ParallelInterleaveDatasetV3, InterleaveNode<false>);
LATHE_HOST_KERNEL(ParallelInterleaveDatasetV4, InterleaveNode<false>);

} // namespace
} // namespace lathe::rt
