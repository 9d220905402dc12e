// MapDataset, ParallelMapDataset(V2), MapAndBatchDataset, FilterDataset, ParallelFilterDataset, TakeWhileDataset,
// ScanDataset.
#include "runtime/kernels/data/Dataset.h"

#include <condition_variable>
#include <deque>
#include <thread>

namespace lathe::rt {
namespace {

/// What a function's status means for a mapped element: an OUT_OF_RANGE ends the iteration early, unless the number of
/// elements must stay.
absl::StatusOr<bool> mapped(absl::StatusOr<Element> result, bool preserveCardinality, Element &element) {
  if (result.ok()) {
    element = *std::move(result);
    return true;
  }
  if (!absl::IsOutOfRange(result.status()))
    return result.status();
  if (preserveCardinality)
    return absl::InvalidArgumentError(
        absl::StrCat("Function invocation produced OutOfRangeError: ", result.status().message()));
  return false;
}

class MapDataset : public UnaryDataset {
public:
  MapDataset(Spec spec, DatasetPtr input, CapturedFunction function, int64_t parallel, bool preserve)
      : UnaryDataset(std::move(spec), std::move(input)), function(std::move(function)), parallel(parallel),
        preserve(preserve) {}
  int64_t cardinality() const override { return preserve ? input->cardinality() : kUnknown; }

  absl::StatusOr<IteratorPtr> iterate(const IteratorEnv &env) const override {
    if (parallel <= 1)
      return iterateInput<Sequential>(this, env);
    return iterateInput<Parallel>(this, env);
  }

private:
  class Sequential : public UnaryIterator<MapDataset> {
  public:
    using UnaryIterator::UnaryIterator;
    absl::StatusOr<bool> next(Element &element) override {
      Element args;
      auto any = ended ? absl::StatusOr<bool>(false) : input->next(args);
      if (!any.ok() || !*any)
        return any;
      auto result = mapped(dataset->function.call(std::move(args), env), dataset->preserve, element);
      ended = result.ok() && !*result;
      return result;
    }
    bool ended = false;
  };

  /// Keeps a window of calls under way and gives their results in order.
  class Parallel : public UnaryIterator<MapDataset> {
  public:
    using UnaryIterator::UnaryIterator;
    ~Parallel() override {
      for (auto &call : window)
        call->wait();
    }
    absl::StatusOr<bool> next(Element &element) override {
      while (!inputEnded && !ended && static_cast<int64_t>(window.size()) < dataset->parallel) {
        Element args;
        auto any = input->next(args);
        inputEnded = any.ok() && !*any;
        if (inputEnded)
          break;
        auto call = std::make_shared<Call>();
        window.push_back(call);
        if (!any.ok())
          call->finish(any.status(), true);
        else
          dataset->function.callAsync(std::move(args), env,
                                      [call](absl::StatusOr<Element> r) { call->finish(std::move(r), false); });
      }
      if (ended || window.empty())
        return false;
      std::shared_ptr<Call> first = window.front();
      window.pop_front();
      first->wait();
      if (first->ofInput)
        return first->result.status();
      auto result = mapped(std::move(first->result), dataset->preserve, element);
      ended = result.ok() && !*result;
      return result;
    }

  private:
    struct Call {
      std::mutex mutex;
      std::condition_variable ready;
      bool finished = false, ofInput = false;
      absl::StatusOr<Element> result = absl::UnknownError("");
      void finish(absl::StatusOr<Element> r, bool input) {
        std::lock_guard<std::mutex> lock(mutex);
        result = std::move(r);
        ofInput = input;
        finished = true;
        ready.notify_all();
      }
      void wait() {
        std::unique_lock<std::mutex> lock(mutex);
        ready.wait(lock, [&] { return finished; });
      }
    };
    std::deque<std::shared_ptr<Call>> window;
    bool inputEnded = false, ended = false;
  };

  const CapturedFunction function;
  const int64_t parallel;
  const bool preserve;
};

/// Elements for which the predicate holds; `stop`: up to the first for which it does not.
class FilterDataset : public UnaryDataset {
public:
  FilterDataset(Spec spec, DatasetPtr input, CapturedFunction predicate, bool stop)
      : UnaryDataset(std::move(spec), std::move(input)), predicate(std::move(predicate)), stop(stop) {}
  int64_t cardinality() const override { return kUnknown; }
  absl::StatusOr<IteratorPtr> iterate(const IteratorEnv &env) const override {
    class Iterator : public UnaryIterator<FilterDataset> {
    public:
      using UnaryIterator::UnaryIterator;
      absl::StatusOr<bool> next(Element &element) override {
        while (!ended) {
          auto any = input->next(element);
          if (!any.ok() || !*any)
            return any;
          auto result = dataset->predicate.call(element, env);
          if (!result.ok())
            return result.status();
          if (result->size() != 1 || (*result)[0].dtype() != DType::Bool || (*result)[0].numElements() != 1)
            return absl::InvalidArgumentError("Filter predicate `predicate` must return a scalar bool.");
          if (*(*result)[0].data<bool>())
            return true;
          ended = dataset->stop;
        }
        return false;
      }
      bool ended = false;
    };
    return iterateInput<Iterator>(this, env);
  }
  const CapturedFunction predicate;
  const bool stop;
};

/// The function takes the state before each element, and gives the new state before each output.
class ScanDataset : public UnaryDataset {
public:
  ScanDataset(Spec spec, DatasetPtr input, CapturedFunction function, Element initial, bool preserve)
      : UnaryDataset(std::move(spec), std::move(input)), function(std::move(function)), initial(std::move(initial)),
        preserve(preserve) {}
  int64_t cardinality() const override { return preserve ? input->cardinality() : kUnknown; }
  absl::StatusOr<IteratorPtr> iterate(const IteratorEnv &env) const override {
    class Iterator : public UnaryIterator<ScanDataset> {
    public:
      Iterator(const ScanDataset *dataset, const IteratorEnv &env, IteratorPtr input)
          : UnaryIterator(dataset, env, std::move(input)), state(dataset->initial) {}
      absl::StatusOr<bool> next(Element &element) override {
        Element item;
        auto any = ended ? absl::StatusOr<bool>(false) : input->next(item);
        if (!any.ok() || !*any)
          return any;
        Element args = state, result;
        args.insert(args.end(), item.begin(), item.end());
        any = mapped(dataset->function.call(std::move(args), env), dataset->preserve, result);
        ended = any.ok() && !*any;
        if (!any.ok() || ended)
          return any;
        if (result.size() < state.size())
          return absl::InvalidArgumentError("the scan function gives less than its state");
        auto split = result.begin() + static_cast<std::ptrdiff_t>(state.size());
        element.assign(split, result.end());
        state.assign(result.begin(), split);
        return true;
      }
      Element state;
      bool ended = false;
    };
    return iterateInput<Iterator>(this, env);
  }
  const CapturedFunction function;
  const Element initial;
  const bool preserve;
};

int64_t callsAtOnce(int64_t asked) {
  constexpr int64_t kAutotune = -1;
  return asked == kAutotune ? std::max<int64_t>(2, std::thread::hardware_concurrency()) : asked;
}

enum class Kind { Map, ParallelMap, MapAndBatch };
template <Kind kind>
class MapNode : public DatasetNode {
public:
  using DatasetNode::DatasetNode;
  absl::StatusOr<std::shared_ptr<Dataset>> make(KernelContext &context) override {
    auto input = datasetFrom(context.input(0));
    if (!input.ok())
      return input.status();
    int64_t parallel = 1;
    if (kind != Kind::Map) {
      auto asked = number(context, "num_parallel_calls");
      if (!asked.ok())
        return asked.status();
      if (*asked < -1 || *asked == 0)
        return absl::InvalidArgumentError("num_parallel_calls must be greater than zero.");
      parallel = callsAtOnce(*asked);
    }
    const bool *preserve = attrOf<bool>(*context.node, "preserve_cardinality");
    auto map = makeMap(spec, *std::move(input), function(context, "f"), parallel, preserve && *preserve);
    if (kind != Kind::MapAndBatch)
      return map;
    auto size = number(context, "batch_size");
    auto drop = flag(context, "drop_remainder");
    for (const absl::Status &status : {size.status(), drop.status()})
      if (!status.ok())
        return status;
    if (*size <= 0)
      return absl::InvalidArgumentError("batch_size must be greater than zero.");
    return makeBatch(spec, map, *size, *drop);
  }
};

template <bool stop>
class FilterNode : public DatasetNode {
public:
  using DatasetNode::DatasetNode;
  absl::StatusOr<std::shared_ptr<Dataset>> make(KernelContext &context) override {
    auto input = datasetFrom(context.input(0));
    if (!input.ok())
      return input.status();
    return std::make_shared<FilterDataset>(spec, *std::move(input), function(context, "predicate"), stop);
  }
};

class ScanNode : public DatasetNode {
public:
  using DatasetNode::DatasetNode;
  absl::StatusOr<std::shared_ptr<Dataset>> make(KernelContext &context) override {
    auto input = datasetFrom(context.input(0));
    if (!input.ok())
      return input.status();
    return std::make_shared<ScanDataset>(spec, *std::move(input), function(context, "f"),
                                         context.inputList("initial_state"),
                                         *attrOf<bool>(*context.node, "preserve_cardinality"));
  }
};

LATHE_HOST_KERNEL(MapDataset, MapNode<Kind::Map>);
LATHE_HOST_KERNEL(ExperimentalMapDataset, MapNode<Kind::Map>);
LATHE_HOST_KERNEL(ParallelMapDataset, MapNode<Kind::ParallelMap>);
LATHE_HOST_KERNEL(ParallelMapDatasetV2, MapNode<Kind::ParallelMap>);
LATHE_HOST_KERNEL(MapAndBatchDataset, MapNode<Kind::MapAndBatch>);
LATHE_HOST_KERNEL(ExperimentalMapAndBatchDataset, MapNode<Kind::MapAndBatch>);
LATHE_HOST_KERNEL(FilterDataset, FilterNode<false>);
LATHE_HOST_KERNEL(ParallelFilterDataset, FilterNode<false>);
LATHE_HOST_KERNEL(TakeWhileDataset, FilterNode<true>);
LATHE_HOST_KERNEL(ExperimentalTakeWhileDataset, FilterNode<true>);
LATHE_HOST_KERNEL(ScanDataset, ScanNode);
LATHE_HOST_KERNEL(ExperimentalScanDataset, ScanNode);

} // namespace

std::shared_ptr<Dataset> makeMap(Dataset::Spec spec, DatasetPtr input, CapturedFunction function, int64_t parallel,
                                 bool preserve) {
  return std::make_shared<MapDataset>(std::move(spec), std::move(input), std::move(function), parallel, preserve);
}

} // namespace lathe::rt
