// Which elements, and how often: RepeatDataset, TakeDataset, SkipDataset, ShardDataset, ZipDataset, ConcatenateDataset,
// CacheDataset(V2, in memory), IgnoreErrorsDataset, AssertCardinalityDataset, UniqueDataset, SleepDataset; and the datasets
// that only carry options.
#include "runtime/kernels/data/Holding.h"

#include <chrono>
#include <condition_variable>
#include <set>

namespace lathe::rt {
namespace {

using Made = absl::StatusOr<std::shared_ptr<Dataset>>;

class RepeatDataset : public UnaryDataset {
public:
  RepeatDataset(Spec spec, DatasetPtr input, int64_t count) : UnaryDataset(std::move(spec), std::move(input)), count(count) {}
  int64_t cardinality() const override {
    int64_t n = input->cardinality(), all;
    if (count == 0 || n == 0)
      return 0;
    if (count < 0 || n == kInfinite)
      return kInfinite;
    return n < 0 || __builtin_mul_overflow(n, count, &all) ? kUnknown : all;
  }
  absl::StatusOr<IteratorPtr> iterate(const IteratorEnv &env) const override {
    class Iterator : public IteratorOf<RepeatDataset> {
    public:
      using IteratorOf::IteratorOf;
      absl::StatusOr<bool> next(Element &element) override {
        while (dataset->count < 0 || done < dataset->count) {
          bool fresh = !input;
          if (fresh) {
            auto made = dataset->input->iterate(env);
            if (!made.ok())
              return made.status();
            input = *std::move(made);
            produced = false;
          }
          auto any = input->next(element);
          if (!any.ok())
            return any.status();
          if (*any)
            return produced = true;
          input.reset();
          ++done;
          if (dataset->count < 0 && !produced)
            break; // it would never produce anything
        }
        done = INT64_MAX;
        return false;
      }
      IteratorPtr input;
      int64_t done = 0;
      bool produced = false;
    };
    return IteratorPtr(new Iterator(this, env));
  }
  const int64_t count;
};

class TakeDataset : public UnaryDataset {
public:
  TakeDataset(Spec spec, DatasetPtr input, int64_t count) : UnaryDataset(std::move(spec), std::move(input)), count(count) {}
  int64_t cardinality() const override {
    int64_t n = input->cardinality();
    if (count < 0 || n == kUnknown)
      return count == 0 ? 0 : n;
    return n == kInfinite ? count : std::min(n, count);
  }
  absl::StatusOr<IteratorPtr> iterate(const IteratorEnv &env) const override {
    class Iterator : public UnaryIterator<TakeDataset> {
    public:
      using UnaryIterator::UnaryIterator;
      absl::StatusOr<bool> next(Element &element) override {
        if (dataset->count >= 0 && taken >= dataset->count)
          return false;
        auto any = input->next(element);
        taken += any.ok() && *any;
        return any;
      }
      int64_t taken = 0;
    };
    return iterateInput<Iterator>(this, env);
  }
  const int64_t count;
};

/// Passes over `first` elements (all of them if negative), then gives one in `step`.
class SkipDataset : public UnaryDataset {
public:
  SkipDataset(Spec spec, DatasetPtr input, int64_t first, int64_t step)
      : UnaryDataset(std::move(spec), std::move(input)), first(first), step(step) {}
  int64_t cardinality() const override {
    int64_t n = input->cardinality();
    if (first < 0)
      return 0;
    return n < 0 ? n : n <= first ? 0 : (n - first - 1) / step + 1;
  }
  absl::StatusOr<IteratorPtr> iterate(const IteratorEnv &env) const override {
    class Iterator : public UnaryIterator<SkipDataset> {
    public:
      Iterator(const SkipDataset *dataset, const IteratorEnv &env, IteratorPtr input)
          : UnaryIterator(dataset, env, std::move(input)), toSkip(dataset->first) {}
      absl::StatusOr<bool> next(Element &element) override {
        if (dataset->first < 0)
          return false;
        for (; toSkip > 0; --toSkip) {
          Element ignored;
          auto any = input->next(ignored);
          if (!any.ok() || !*any)
            return any;
        }
        auto any = input->next(element);
        if (any.ok() && *any)
          toSkip = dataset->step - 1;
        return any;
      }
      int64_t toSkip;
    };
    return iterateInput<Iterator>(this, env);
  }
  const int64_t first, step;
};

class ZipDataset : public Dataset {
public:
  ZipDataset(Spec spec, std::vector<DatasetPtr> inputs) : Dataset(std::move(spec)), inputs(std::move(inputs)) {}
  int64_t cardinality() const override {
    int64_t least = kInfinite;
    for (const DatasetPtr &input : inputs) {
      int64_t n = input->cardinality();
      if (n == kUnknown)
        return kUnknown;
      if (n != kInfinite && (least == kInfinite || n < least))
        least = n;
    }
    return least;
  }
  absl::StatusOr<IteratorPtr> iterate(const IteratorEnv &env) const override {
    class Iterator : public IteratorOf<ZipDataset> {
    public:
      using IteratorOf::IteratorOf;
      absl::StatusOr<bool> next(Element &element) override {
        if (ended)
          return false;
        element.clear();
        for (auto &input : inputs) {
          Element part;
          auto any = input->next(part);
          if (!any.ok() || !*any) {
            ended = any.ok();
            return any;
          }
          element.insert(element.end(), part.begin(), part.end());
        }
        return true;
      }
      std::vector<IteratorPtr> inputs;
      bool ended = false;
    };
    auto zip = std::make_unique<Iterator>(this, env);
    for (const DatasetPtr &input : inputs) {
      auto iterator = input->iterate(env);
      if (!iterator.ok())
        return iterator.status();
      zip->inputs.push_back(*std::move(iterator));
    }
    return IteratorPtr(std::move(zip));
  }
  const std::vector<DatasetPtr> inputs;
};

class ConcatenateDataset : public UnaryDataset {
public:
  ConcatenateDataset(Spec spec, DatasetPtr first, DatasetPtr second)
      : UnaryDataset(std::move(spec), std::move(first)), second(std::move(second)) {}
  int64_t cardinality() const override {
    int64_t a = input->cardinality(), b = second->cardinality();
    if (a == kInfinite || b == kInfinite)
      return kInfinite;
    return a < 0 || b < 0 ? kUnknown : a + b;
  }
  absl::StatusOr<IteratorPtr> iterate(const IteratorEnv &env) const override {
    class Iterator : public UnaryIterator<ConcatenateDataset> {
    public:
      using UnaryIterator::UnaryIterator;
      absl::StatusOr<bool> next(Element &element) override {
        for (;;) {
          auto any = input->next(element);
          if (!any.ok() || *any || inSecond)
            return any;
          auto second = dataset->second->iterate(env);
          if (!second.ok())
            return second.status();
          input = *std::move(second);
          inSecond = true;
        }
      }
      bool inSecond = false;
    };
    return iterateInput<Iterator>(this, env);
  }
  const DatasetPtr second;
};

/// Keeps the elements of the first iteration that reached the end, for all later ones.
class CacheDataset : public UnaryDataset {
public:
  using UnaryDataset::UnaryDataset;
  /// What is kept, and its memory.
  struct Kept {
    std::vector<Element> elements;
    Holding holding;
  };
  struct Store {
    std::mutex mutex;
    std::shared_ptr<const Kept> kept;
  };
  absl::StatusOr<IteratorPtr> iterate(const IteratorEnv &env) const override {
    class Iterator : public UnaryIterator<CacheDataset> {
    public:
      using UnaryIterator::UnaryIterator;
      absl::StatusOr<bool> next(Element &element) override {
        if (!kept && !writing) {
          std::lock_guard<std::mutex> lock(dataset->store->mutex);
          kept = dataset->store->kept;
          writing = kept ? nullptr : std::make_shared<Kept>();
        }
        if (kept) {
          if (at == kept->elements.size())
            return false;
          element = kept->elements[at++];
          return true;
        }
        auto any = input->next(element);
        if (!any.ok())
          return any;
        if (*any) {
          if (absl::Status held = writing->holding.add(element); !held.ok())
            return held;
          writing->elements.push_back(element);
        } else {
          kept = std::move(writing);
          at = kept->elements.size();
          std::lock_guard<std::mutex> lock(dataset->store->mutex);
          if (!dataset->store->kept)
            dataset->store->kept = kept;
        }
        return any;
      }
      std::shared_ptr<const Kept> kept;
      std::shared_ptr<Kept> writing;
      size_t at = 0;
    };
    return iterateInput<Iterator>(this, env);
  }
  const std::unique_ptr<Store> store = std::make_unique<Store>();
};

/// Passes over errors, but for those that an input meets again however often it is asked: that memory has ended, or its reader is going.
class IgnoreErrorsDataset : public UnaryDataset {
public:
  using UnaryDataset::UnaryDataset;
  int64_t cardinality() const override { return kUnknown; }
  absl::StatusOr<IteratorPtr> iterate(const IteratorEnv &env) const override {
    class Iterator : public UnaryIterator<IgnoreErrorsDataset> {
    public:
      using UnaryIterator::UnaryIterator;
      absl::StatusOr<bool> next(Element &element) override {
        auto any = input->next(element);
        while (!any.ok() && !absl::IsCancelled(any.status()) && !absl::IsResourceExhausted(any.status())) {
          if (absl::Status going = checkCancelled(env); !going.ok())
            return going;
          any = input->next(element);
        }
        return any;
      }
    };
    return iterateInput<Iterator>(this, env);
  }
};

class AssertCardinalityDataset : public UnaryDataset {
public:
  AssertCardinalityDataset(Spec spec, DatasetPtr input, int64_t expected)
      : UnaryDataset(std::move(spec), std::move(input)), expected(expected) {}
  int64_t cardinality() const override { return expected; }
  absl::StatusOr<IteratorPtr> iterate(const IteratorEnv &env) const override {
    class Iterator : public UnaryIterator<AssertCardinalityDataset> {
    public:
      using UnaryIterator::UnaryIterator;
      absl::StatusOr<bool> next(Element &element) override {
        auto any = input->next(element);
        if (!any.ok())
          return any;
        seen += *any;
        if (dataset->expected == kInfinite ? !*any : dataset->expected >= 0 && (*any ? seen > dataset->expected : seen != dataset->expected))
          return absl::FailedPreconditionError(absl::StrCat("Input dataset was expected to contain ",
                                                            dataset->expected, " elements but contained ",
                                                            *any ? "at least " : "only ", seen, "."));
        return any;
      }
      int64_t seen = 0;
    };
    return iterateInput<Iterator>(this, env);
  }
  const int64_t expected;
};

/// The first of equal elements.
class UniqueDataset : public UnaryDataset {
public:
  using UnaryDataset::UnaryDataset;
  int64_t cardinality() const override { return kUnknown; }
  absl::StatusOr<IteratorPtr> iterate(const IteratorEnv &env) const override {
    class Iterator : public UnaryIterator<UniqueDataset> {
    public:
      using UnaryIterator::UnaryIterator;
      absl::StatusOr<bool> next(Element &element) override {
        for (;;) {
          if (absl::Status status = checkCancelled(env); !status.ok())
            return status;
          auto any = input->next(element);
          if (!any.ok() || !*any)
            return any;
          if (element.size() != 1)
            return absl::InvalidArgumentError("UniqueDataset only supports inputs with a single component.");
          if (!seen.insert(keyOf(element[0])).second)
            continue;
          if (absl::Status held = holding.add(element); !held.ok())
            return held;
          return true;
        }
      }

    private:
      using Key = std::pair<std::vector<int64_t>, std::vector<std::string>>;
      static Key keyOf(const Tensor &t) {
        if (t.dtype() == DType::String)
          return {t.dims(), t.strings()};
        return {t.dims(), {std::string(t.data<char>(), static_cast<size_t>(t.sizeBytes()))}};
      }
      std::set<Key> seen;
      Holding holding;
    };
    return iterateInput<Iterator>(this, env);
  }
};

/// Waits before each element.
class SleepDataset : public UnaryDataset {
public:
  SleepDataset(Spec spec, DatasetPtr input, int64_t micros) : UnaryDataset(std::move(spec), std::move(input)), micros(micros) {}
  absl::StatusOr<IteratorPtr> iterate(const IteratorEnv &env) const override {
    class Iterator : public UnaryIterator<SleepDataset> {
    public:
      using UnaryIterator::UnaryIterator;
      absl::StatusOr<bool> next(Element &element) override {
        if (!sleep())
          return absl::CancelledError("the iterator was cancelled");
        return input->next(element);
      }

    private:
      /// False when the iterator goes away meanwhile.
      bool sleep() {
        struct Alarm {
          std::mutex mutex;
          std::condition_variable ring;
          bool cancelled = false;
        };
        auto alarm = std::make_shared<Alarm>();
        Cancellation::Token token = 0;
        auto wake = [alarm] {
          std::lock_guard<std::mutex> lock(alarm->mutex);
          alarm->cancelled = true;
          alarm->ring.notify_all();
        };
        if (env.cancellation && !env.cancellation->add(&token, wake))
          return false;
        bool cancelled;
        {
          // a day at most at once: the clock's numbers must not overflow
          std::unique_lock<std::mutex> lock(alarm->mutex);
          constexpr int64_t kDay = INT64_C(86400000000);
          for (int64_t left = dataset->micros; left > 0 && !alarm->cancelled; left -= std::min(left, kDay))
            alarm->ring.wait_for(lock, std::chrono::microseconds(std::min(left, kDay)), [&] { return alarm->cancelled; });
          cancelled = alarm->cancelled;
        }
        if (env.cancellation)
          env.cancellation->tryRemove(token);
        return !cancelled;
      }
    };
    return iterateInput<Iterator>(this, env);
  }
  const int64_t micros;
};

Made unique(const Dataset::Spec &spec, DatasetPtr input, KernelContext &) {
  const std::vector<DType> &types = input->spec.types;
  if (types.size() != 1)
    return absl::InvalidArgumentError("UniqueDataset only supports inputs with a single component.");
  if (types[0] != DType::Int32 && types[0] != DType::Int64 && types[0] != DType::String)
    return absl::InvalidArgumentError(
        "UniqueDataset only supports inputs with a single `tf.int32`, `tf.int64`, or `tf.string` component.");
  return std::make_shared<UniqueDataset>(spec, std::move(input));
}

Made sleeping(const Dataset::Spec &spec, DatasetPtr input, KernelContext &context) {
  auto micros = integerScalar(context.input("sleep_microseconds"), "sleep_microseconds");
  if (!micros.ok())
    return micros.status();
  if (*micros < 0)
    return absl::InvalidArgumentError("`sleep_microseconds` must be >= 0");
  return std::make_shared<SleepDataset>(spec, std::move(input), *micros);
}

Made repeat(const Dataset::Spec &spec, DatasetPtr input, KernelContext &context) {
  auto count = integerScalar(context.input("count"), "count");
  if (!count.ok())
    return count.status();
  return std::make_shared<RepeatDataset>(spec, std::move(input), *count);
}

Made take(const Dataset::Spec &spec, DatasetPtr input, KernelContext &context) {
  auto count = integerScalar(context.input("count"), "count");
  if (!count.ok())
    return count.status();
  return std::make_shared<TakeDataset>(spec, std::move(input), *count);
}

Made skip(const Dataset::Spec &spec, DatasetPtr input, KernelContext &context) {
  auto count = integerScalar(context.input("count"), "count");
  if (!count.ok())
    return count.status();
  return std::make_shared<SkipDataset>(spec, std::move(input), *count, 1);
}

Made shard(const Dataset::Spec &spec, DatasetPtr input, KernelContext &context) {
  auto shards = integerScalar(context.input("num_shards"), "num_shards"), index = integerScalar(context.input("index"), "index");
  for (const absl::Status &status : {shards.status(), index.status()})
    if (!status.ok())
      return status;
  if (*shards <= 0)
    return absl::InvalidArgumentError(absl::StrCat("Number of shards must be greater than zero (currently num_shards = ", *shards, ")."));
  if (*index < 0 || *index >= *shards)
    return absl::InvalidArgumentError(absl::StrCat("Index must be between 0 and ", *shards - 1, " (currently index = ", *index, ")."));
  return std::make_shared<SkipDataset>(spec, std::move(input), *index, *shards);
}

Made concatenate(const Dataset::Spec &spec, DatasetPtr input, KernelContext &context) {
  auto second = datasetFrom(context.input("another_dataset"));
  if (!second.ok())
    return second.status();
  if (input->spec.types != (*second)->spec.types)
    return absl::InvalidArgumentError("input dataset and dataset to concatenate have different output_types");
  return std::make_shared<ConcatenateDataset>(spec, std::move(input), *std::move(second));
}

Made cache(const Dataset::Spec &spec, DatasetPtr input, KernelContext &context) {
  auto path = stringScalar(context.input("filename"), "filename");
  if (!path.ok())
    return path.status();
  if (!path->empty())
    return absl::UnimplementedError("caches in files are not supported: leave filename empty for one in memory");
  return std::make_shared<CacheDataset>(spec, std::move(input));
}

Made ignoreErrors(const Dataset::Spec &spec, DatasetPtr input, KernelContext &) {
  return std::make_shared<IgnoreErrorsDataset>(spec, std::move(input));
}

Made assertCardinality(const Dataset::Spec &spec, DatasetPtr input, KernelContext &context) {
  auto expected = integerScalar(context.input("cardinality"), "cardinality");
  if (!expected.ok())
    return expected.status();
  return std::make_shared<AssertCardinalityDataset>(spec, std::move(input), *expected);
}

/// What only carries options, statistics or thread pools has its input's elements.
absl::Status same(KernelContext &context) {
  Tensor t = context.input(0);
  if (auto dataset = datasetFrom(t); !dataset.ok())
    return dataset.status();
  context.setOutput(0, std::move(t));
  return absl::OkStatus();
}

class ZipNode : public DatasetNode {
public:
  using DatasetNode::DatasetNode;
  absl::StatusOr<std::shared_ptr<Dataset>> make(KernelContext &context) override {
    std::vector<DatasetPtr> inputs;
    for (const Tensor &t : context.inputList("input_datasets")) {
      auto input = datasetFrom(t);
      if (!input.ok())
        return input.status();
      inputs.push_back(*std::move(input));
    }
    return std::make_shared<ZipDataset>(spec, std::move(inputs));
  }
};

LATHE_HOST_KERNEL(RepeatDataset, UnaryNode<repeat>);
LATHE_HOST_KERNEL(TakeDataset, UnaryNode<take>);
LATHE_HOST_KERNEL(SkipDataset, UnaryNode<skip>);
LATHE_HOST_KERNEL(ShardDataset, UnaryNode<shard>);
LATHE_HOST_KERNEL(ZipDataset, ZipNode);
LATHE_HOST_KERNEL(ConcatenateDataset, UnaryNode<concatenate>);
LATHE_HOST_KERNEL(CacheDataset, UnaryNode<cache>);
LATHE_HOST_KERNEL(CacheDatasetV2, UnaryNode<cache>);
LATHE_HOST_KERNEL(IgnoreErrorsDataset, UnaryNode<ignoreErrors>);
LATHE_HOST_KERNEL(ExperimentalIgnoreErrorsDataset, UnaryNode<ignoreErrors>);
LATHE_HOST_KERNEL(AssertCardinalityDataset, UnaryNode<assertCardinality>);
LATHE_HOST_KERNEL(UniqueDataset, UnaryNode<unique>);
LATHE_HOST_KERNEL(ExperimentalUniqueDataset, UnaryNode<unique>);
LATHE_HOST_KERNEL(SleepDataset, UnaryNode<sleeping>);
LATHE_HOST_KERNEL(ExperimentalSleepDataset, UnaryNode<sleeping>);
LATHE_HOST_FUNCTION(LatencyStatsDataset, same);
LATHE_HOST_FUNCTION(ExperimentalLatencyStatsDataset, same);
LATHE_HOST_FUNCTION(BytesProducedStatsDataset, same);
LATHE_HOST_FUNCTION(ExperimentalBytesProducedStatsDataset, same);
LATHE_HOST_FUNCTION(RewriteDataset, same);
// what they assert are the steps of TensorFlow's optimizer, which are not made here
LATHE_HOST_FUNCTION(AssertNextDataset, same);
LATHE_HOST_FUNCTION(ExperimentalAssertNextDataset, same);
LATHE_HOST_FUNCTION(AssertPrevDataset, same);
LATHE_HOST_FUNCTION(OptionsDataset, same);
LATHE_HOST_FUNCTION(ModelDataset, same);
LATHE_HOST_FUNCTION(OptimizeDataset, same);
LATHE_HOST_FUNCTION(OptimizeDatasetV2, same);
LATHE_HOST_FUNCTION(FinalizeDataset, same);
LATHE_HOST_FUNCTION(MaxIntraOpParallelismDataset, same);
LATHE_HOST_FUNCTION(ExperimentalMaxIntraOpParallelismDataset, same);
LATHE_HOST_FUNCTION(PrivateThreadPoolDataset, same);
LATHE_HOST_FUNCTION(ExperimentalPrivateThreadPoolDataset, same);
LATHE_HOST_FUNCTION(NonSerializableDataset, same);
LATHE_HOST_FUNCTION(ExperimentalNonSerializableDataset, same);
LATHE_HOST_FUNCTION(SetStatsAggregatorDataset, same);
LATHE_HOST_FUNCTION(ExperimentalSetStatsAggregatorDataset, same);
LATHE_HOST_FUNCTION(ThreadPoolDataset, same);
LATHE_HOST_FUNCTION(ExperimentalThreadPoolDataset, same);
LATHE_HOST_FUNCTION(WrapDatasetVariant, same);
LATHE_HOST_FUNCTION(UnwrapDatasetVariant, same);

} // namespace
} // namespace lathe::rt
