// ChooseFastestDataset, ChooseFastestBranchDataset: one of several that have the same elements. FilterByLastComponentDataset.
// AutoShardDataset.
#include "runtime/kernels/Common.h"
#include "runtime/kernels/data/Holding.h"

namespace lathe::rt {
namespace {

/// The first: which is the fastest, TensorFlow finds out by experiments.
class FastestNode : public DatasetNode {
public:
  using DatasetNode::DatasetNode;
  absl::StatusOr<std::shared_ptr<Dataset>> make(KernelContext &context) override {
    struct First : UnaryDataset {
      using UnaryDataset::UnaryDataset;
      absl::StatusOr<IteratorPtr> iterate(const IteratorEnv &env) const override { return input->iterate(env); }
    };
    DatasetPtr first;
    for (const Tensor &t : context.inputList("input_datasets")) {
      LATHE_TRY_VALUE(input, datasetFrom(t));
      if (input->spec.types != spec.types)
        return invalid("the datasets to choose from have other types than output_types");
      if (first && first->cardinality() >= 0 && input->cardinality() >= 0 && first->cardinality() != input->cardinality())
        return invalid("The datasets to choose from must have the same number of elements, found ", first->cardinality(), " and ",
                       input->cardinality());
      if (!first)
        first = input;
    }
    if (!first)
      return invalid("there is no dataset to choose");
    return std::make_shared<First>(spec, first);
  }
};
LATHE_HOST_KERNEL(ChooseFastestDataset, FastestNode);
LATHE_HOST_KERNEL(ExperimentalChooseFastestDataset, FastestNode);

/// What a function makes of the whole input.
class BranchDataset : public UnaryDataset {
public:
  BranchDataset(Spec spec, DatasetPtr input, CapturedFunction branch, std::optional<double> ratio)
      : UnaryDataset(std::move(spec), std::move(input)), branch(std::move(branch)), ratio(ratio) {}
  int64_t cardinality() const override {
    int64_t n = input->cardinality();
    return n < 0 || !ratio ? n : static_cast<int64_t>(static_cast<double>(n) * *ratio);
  }
  absl::StatusOr<IteratorPtr> iterate(const IteratorEnv &env) const override {
    class Iterator : public IteratorOf<BranchDataset> {
    public:
      using IteratorOf::IteratorOf;
      absl::StatusOr<bool> next(Element &element) override {
        if (!made) {
          LATHE_TRY_VALUE(result, dataset->branch.call({datasetTensor(dataset->input)}, env));
          if (result.size() != 1)
            return invalid("a branch must return a single dataset");
          LATHE_TRY_VALUE(chosen, datasetFrom(result[0]));
          LATHE_TRY_VALUE(opened, chosen->iterate(env));
          made = std::move(opened);
        }
        return made->next(element);
      }
      IteratorPtr made;
    };
    return IteratorPtr(new Iterator(this, env));
  }
  const CapturedFunction branch;
  const std::optional<double> ratio;
};

class BranchNode : public DatasetNode {
public:
  explicit BranchNode(KernelInit &init)
      : DatasetNode(init), branches(init.attr<std::vector<FunctionRefPtr>>("branches")),
        lengths(init.attr<std::vector<int64_t>>("other_arguments_lengths")), elements(init.attr<int64_t>("num_elements_per_branch")) {
    if (branches.empty() || branches.size() != lengths.size())
      init.fail(invalid("expected as many branches as lengths of their arguments, found ", branches.size(), " and ", lengths.size()));
  }
  absl::StatusOr<std::shared_ptr<Dataset>> make(KernelContext &context) override {
    LATHE_TRY_VALUE(input, datasetFrom(context.input(0)));
    LATHE_TRY_VALUE(numerator, number(context, "ratio_numerator"));
    LATHE_TRY_VALUE(denominator, number(context, "ratio_denominator"));
    if (numerator <= 0 || denominator <= 0)
      return invalid("`ratio_numerator` and `ratio_denominator` must be greater than zero.");
    if (elements % denominator != 0)
      return invalid("`num_elements_per_branch` must be divisible by `ratio_denominator`.");
    std::vector<Tensor> others = context.inputList("other_arguments");
    if (lengths[0] < 0 || lengths[0] > static_cast<int64_t>(others.size()))
      return invalid("a branch takes ", lengths[0], " of ", others.size(), " arguments");
    others.resize(static_cast<size_t>(lengths[0]));
    return std::make_shared<BranchDataset>(spec, input, CapturedFunction(caller, branches[0], std::move(others)),
                                           static_cast<double>(numerator) / static_cast<double>(denominator));
  }

private:
  const std::vector<FunctionRefPtr> branches;
  const std::vector<int64_t> lengths;
  const int64_t elements;
};
LATHE_HOST_KERNEL(ChooseFastestBranchDataset, BranchNode);

/// Elements whose last component is true, without it.
class LastComponentDataset : public UnaryDataset {
public:
  using UnaryDataset::UnaryDataset;
  int64_t cardinality() const override { return kUnknown; }
  absl::StatusOr<IteratorPtr> iterate(const IteratorEnv &env) const override {
    class Iterator : public UnaryIterator<LastComponentDataset> {
    public:
      using UnaryIterator::UnaryIterator;
      absl::StatusOr<bool> next(Element &element) override {
        for (;;) {
          LATHE_TRY(checkCancelled(env));
          LATHE_TRY_VALUE(any, input->next(element));
          if (!any)
            return false;
          if (element.empty() || element.back().dtype() != DType::Bool || element.back().numElements() != 1)
            return invalid("the last component of an element must be a scalar bool");
          bool kept = *element.back().data<bool>();
          element.pop_back();
          if (kept)
            return true;
        }
      }
    };
    return iterateInput<Iterator>(this, env);
  }
};

absl::StatusOr<std::shared_ptr<Dataset>> byLastComponent(const Dataset::Spec &spec, DatasetPtr input, KernelContext &) {
  if (input->spec.types.size() != spec.types.size() + 1)
    return invalid("expected one component more in the input than in the output");
  return std::make_shared<LastComponentDataset>(spec, std::move(input));
}
LATHE_HOST_KERNEL(FilterByLastComponentDataset, UnaryNode<byLastComponent>);

/// One worker has all. For several TensorFlow rewrites the graph so that each reads files of its own; the policies that do not are here.
class AutoShardNode : public DatasetNode {
public:
  explicit AutoShardNode(KernelInit &init) : DatasetNode(init), policy(init.attr<int64_t>("auto_shard_policy")) {}
  absl::StatusOr<std::shared_ptr<Dataset>> make(KernelContext &context) override {
    enum Policy { Off = -1, Auto = 0, File = 1, Data = 2, Hint = 3 };
    LATHE_TRY_VALUE(input, datasetFrom(context.input(0)));
    LATHE_TRY_VALUE(workers, number(context, "num_workers"));
    LATHE_TRY_VALUE(index, number(context, "index"));
    if (workers < 1 || index < 0 || index >= workers)
      return invalid("index should be >= 0 and < ", workers, ", currently ", index);
    if (workers > 1 && policy != Off && policy != Data)
      return absl::UnimplementedError("sharding by files is not supported: shard the dataset itself, or choose the policy DATA");
    return std::make_shared<Part>(spec, input, policy == Off ? 1 : workers, policy == Off ? 0 : index);
  }

private:
  /// Each `step`-th element from `first` on.
  struct Part : UnaryDataset {
    Part(Spec spec, DatasetPtr input, int64_t step, int64_t first) : UnaryDataset(std::move(spec), std::move(input)), step(step), first(first) {}
    int64_t cardinality() const override {
      int64_t n = input->cardinality();
      return n < 0 ? n : n / step + (first < n % step);
    }
    absl::StatusOr<IteratorPtr> iterate(const IteratorEnv &env) const override {
      struct Iterator : UnaryIterator<Part> {
        using UnaryIterator::UnaryIterator;
        absl::StatusOr<bool> next(Element &element) override {
          for (;; ++at) {
            LATHE_TRY(checkCancelled(env));
            LATHE_TRY_VALUE(any, input->next(element));
            if (!any)
              return false;
            if (at % dataset->step == dataset->first)
              return ++at, true;
          }
        }
        int64_t at = 0;
      };
      return iterateInput<Iterator>(this, env);
    }
    const int64_t step, first;
  };
  const int64_t policy;
};
LATHE_HOST_KERNEL(AutoShardDataset, AutoShardNode);
LATHE_HOST_KERNEL(ExperimentalAutoShardDataset, AutoShardNode);

} // namespace
} // namespace lathe::rt
