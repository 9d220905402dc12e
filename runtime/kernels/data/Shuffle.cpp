// ShuffleDataset (V1-V3), ShuffleAndRepeatDataset (V1, V2), RandomDataset(V2), SamplingDataset and the seed generators that
// some of them name. The sequence is TensorFlow's, number for number.
#include "base/Philox.h"
#include "runtime/kernels/data/Holding.h"

#include <cstring>
#include <deque>
#include <random>

namespace lathe::rt {
namespace {

/// Single 32-bit numbers of a Philox generator.
class Numbers {
public:
  Numbers(int64_t seed, int64_t seed2)
      : generator(Philox::fromSeeds(static_cast<uint64_t>(seed), static_cast<uint64_t>(seed2))) {}
  uint32_t next() {
    if (used == block.size()) {
      block = generator.next();
      used = 0;
    }
    return block[used++];
  }

private:
  Philox generator;
  Philox::Block block{};
  size_t used = 4;
};

/// Gives each iteration its seeds: drawn from a generator, or always the same.
class SeedGenerator : public Resource {
public:
  SeedGenerator(int64_t seed, int64_t seed2, bool reshuffle)
      : reshuffle(reshuffle), seed(seed), seed2(seed2), numbers(0, 0) {
    if (seed == 0 && seed2 == 0) {
      std::random_device random;
      this->seed = static_cast<int64_t>(random()) << 32 | random();
      this->seed2 = static_cast<int64_t>(random()) << 32 | random();
    }
    numbers = Numbers(this->seed, this->seed2);
  }
  std::string describe() const override { return "seed generator"; }
  std::pair<int64_t, int64_t> next() {
    if (!reshuffle)
      return {seed, seed2};
    std::lock_guard<std::mutex> lock(mutex);
    int64_t first = numbers.next();
    return {first, numbers.next()};
  }

private:
  std::mutex mutex;
  const bool reshuffle;
  int64_t seed, seed2;
  Numbers numbers;
};

/// What DummySeedGenerator gives: the dataset has seeds of its own.
class NoSeedGenerator : public Resource {
public:
  std::string describe() const override { return "no seed generator"; }
};

/// A buffer from which a random element is taken. Each epoch is a slice of it, and elements are taken from the oldest.
class ShuffleDataset : public UnaryDataset {
public:
  ShuffleDataset(Spec spec, DatasetPtr input, int64_t size, int64_t count, std::shared_ptr<SeedGenerator> seeds)
      : UnaryDataset(std::move(spec), std::move(input)), size(size), count(count), seeds(std::move(seeds)) {}
  int64_t cardinality() const override {
    int64_t n = input->cardinality(), all;
    if (count == 1 || n == 0)
      return n;
    if (count < 0 || n == kInfinite)
      return kInfinite;
    return n < 0 || __builtin_mul_overflow(n, count, &all) ? kUnknown : all;
  }
  absl::StatusOr<IteratorPtr> iterate(const IteratorEnv &env) const override {
    return IteratorPtr(new Iterator(this, env));
  }

private:
  class Iterator : public IteratorOf<ShuffleDataset> {
  public:
    Iterator(const ShuffleDataset *dataset, const IteratorEnv &env)
        : IteratorOf(dataset, env), numbers(0, 0), slices{{0, 0}} {
      reseed();
    }
    absl::StatusOr<bool> next(Element &element) override {
      if (absl::Status filled = fill(); !filled.ok())
        return filled;
      if (stored == 0)
        return false;
      while (slices.front().first == slices.front().second) {
        slices.pop_front();
        reseed(); // each epoch has numbers of its own
      }
      auto &[start, end] = slices.front();
      int64_t capacity = static_cast<int64_t>(buffer.size());
      Element &chosen = buffer[(start + static_cast<int64_t>(numbers.next()) % (end - start)) % capacity];
      element = std::move(chosen);
      holding.drop(element);
      std::swap(chosen, buffer[start % capacity]);
      ++start;
      --stored;
      return true;
    }

  private:
    void reseed() {
      auto [seed, seed2] = dataset->seeds->next();
      numbers = Numbers(seed, seed2);
    }
    absl::Status fill() {
      while (!ended && (dataset->size < 0 || stored < dataset->size)) {
        if (!input) {
          auto made = dataset->input->iterate(env);
          if (!made.ok())
            return made.status();
          input = *std::move(made);
          produced = false;
        }
        Element element;
        auto any = input->next(element);
        if (!any.ok())
          return any.status();
        if (*any) {
          produced = true;
          if (absl::Status held = holding.add(element); !held.ok())
            return held;
          add(std::move(element));
          continue;
        }
        input.reset();
        ++epoch;
        ended = dataset->count >= 0 ? epoch >= dataset->count : !produced;
        slices.emplace_back(slices.back().second, slices.back().second);
      }
      return absl::OkStatus();
    }
    void add(Element element) {
      int64_t &end = slices.back().second;
      // grows until it has the size asked for, so that a large size costs nothing for a small dataset
      if (stored == static_cast<int64_t>(buffer.size())) {
        std::vector<Element> larger;
        int64_t first = slices.front().first;
        for (int64_t i = first; i < end; ++i)
          larger.push_back(std::move(buffer[i % static_cast<int64_t>(buffer.size())]));
        for (auto &slice : slices) {
          slice.first -= first;
          slice.second -= first;
        }
        larger.resize(grown(stored));
        buffer = std::move(larger);
      }
      buffer[slices.back().second % static_cast<int64_t>(buffer.size())] = std::move(element);
      ++slices.back().second;
      ++stored;
    }
    size_t grown(int64_t n) const {
      int64_t wanted = std::max<int64_t>(16, 2 * n);
      return static_cast<size_t>(dataset->size < 0 ? wanted : std::min(wanted, dataset->size));
    }
    Numbers numbers;
    IteratorPtr input;
    std::vector<Element> buffer;
    Holding holding;
    std::deque<std::pair<int64_t, int64_t>> slices;
    int64_t stored = 0, epoch = 0;
    bool ended = false, produced = false;
  };
  const int64_t size, count;
  const std::shared_ptr<SeedGenerator> seeds;
};

/// Endless 32-bit numbers.
class RandomDataset : public Dataset {
public:
  RandomDataset(Spec spec, std::shared_ptr<SeedGenerator> seeds) : Dataset(std::move(spec)), seeds(std::move(seeds)) {}
  int64_t cardinality() const override { return kInfinite; }
  absl::StatusOr<IteratorPtr> iterate(const IteratorEnv &env) const override {
    class Iterator : public IteratorOf<RandomDataset> {
    public:
      Iterator(const RandomDataset *dataset, const IteratorEnv &env, Numbers numbers)
          : IteratorOf(dataset, env), numbers(numbers) {}
      absl::StatusOr<bool> next(Element &element) override {
        element = {Tensor::scalar<int64_t>(DType::Int64, numbers.next())};
        return true;
      }
      Numbers numbers;
    };
    auto [seed, seed2] = seeds->next();
    return IteratorPtr(new Iterator(this, env, Numbers(seed, seed2)));
  }
  const std::shared_ptr<SeedGenerator> seeds;
};

/// Each element with a probability.
class SamplingDataset : public UnaryDataset {
public:
  SamplingDataset(Spec spec, DatasetPtr input, float rate, std::shared_ptr<SeedGenerator> seeds)
      : UnaryDataset(std::move(spec), std::move(input)), rate(rate), seeds(std::move(seeds)) {}
  int64_t cardinality() const override { return kUnknown; }
  absl::StatusOr<IteratorPtr> iterate(const IteratorEnv &env) const override {
    class Iterator : public UnaryIterator<SamplingDataset> {
    public:
      Iterator(const SamplingDataset *dataset, const IteratorEnv &env, IteratorPtr input)
          : UnaryIterator(dataset, env, std::move(input)), numbers(0, 0) {
        auto [seed, seed2] = dataset->seeds->next();
        numbers = Numbers(seed, seed2);
      }
      absl::StatusOr<bool> next(Element &element) override {
        for (;;) {
          if (absl::Status status = checkCancelled(env); !status.ok())
            return status;
          auto any = input->next(element);
          if (!any.ok() || !*any || fraction() < dataset->rate)
            return any;
        }
      }

    private:
      /// From 0 to 1: the low bits are the mantissa of a number from 1 to 2.
      float fraction() {
        uint32_t bits = (numbers.next() & 0x7fffffu) | 0x3f800000u;
        float value;
        std::memcpy(&value, &bits, sizeof(value));
        return value - 1.0f;
      }
      Numbers numbers;
    };
    return iterateInput<Iterator>(this, env);
  }
  const float rate;
  const std::shared_ptr<SeedGenerator> seeds;
};

/// The node's generator, or one of its seeds.
absl::StatusOr<std::shared_ptr<SeedGenerator>> seedsOf(KernelContext &context, bool reshuffle) {
  if (ArgRange range = context.node->inputRange("seed_generator"); range.count) {
    auto any = context.anyResource(range.start);
    if (!any.ok())
      return any.status();
    if (auto seeds = std::dynamic_pointer_cast<SeedGenerator>(*any))
      return seeds;
  }
  int64_t seed = 0, seed2 = 0;
  if (context.node->inputRange("seed").count) {
    auto first = integerScalar(context.input("seed"), "seed"), second = integerScalar(context.input("seed2"), "seed2");
    for (const absl::Status &status : {first.status(), second.status()})
      if (!status.ok())
        return status;
    seed = *first;
    seed2 = *second;
  }
  return std::make_shared<SeedGenerator>(seed, seed2, reshuffle);
}

class RandomNode : public DatasetNode {
public:
  using DatasetNode::DatasetNode;
  absl::StatusOr<std::shared_ptr<Dataset>> make(KernelContext &context) override {
    const bool *anew = attrOf<bool>(*context.node, "rerandomize_each_iteration");
    auto seeds = seedsOf(context, anew && *anew);
    if (!seeds.ok())
      return seeds.status();
    return std::make_shared<RandomDataset>(spec, *std::move(seeds));
  }
};

class SamplingNode : public DatasetNode {
public:
  using DatasetNode::DatasetNode;
  absl::StatusOr<std::shared_ptr<Dataset>> make(KernelContext &context) override {
    auto input = datasetFrom(context.input(0));
    auto seeds = seedsOf(context, false);
    for (const absl::Status &status : {input.status(), seeds.status()})
      if (!status.ok())
        return status;
    Tensor rate = context.input("rate");
    if (rate.dtype() != DType::Float32 || rate.numElements() != 1)
      return absl::InvalidArgumentError("rate must be a float32 scalar");
    return std::make_shared<SamplingDataset>(spec, *std::move(input), *rate.data<float>(), *std::move(seeds));
  }
};

class ShuffleNode : public DatasetNode {
public:
  using DatasetNode::DatasetNode;
  absl::StatusOr<std::shared_ptr<Dataset>> make(KernelContext &context) override {
    auto input = datasetFrom(context.input(0));
    auto size = number(context, "buffer_size");
    for (const absl::Status &status : {input.status(), size.status()})
      if (!status.ok())
        return status;
    if (*size < 1 && *size != Dataset::kUnknown)
      return absl::InvalidArgumentError("buffer_size must be greater than zero or UNKNOWN_CARDINALITY");
    int64_t count = 1;
    if (context.node->inputRange("count").count) {
      auto given = number(context, "count");
      if (!given.ok())
        return given.status();
      count = *given;
      if (count < -1 || count == 0)
        return absl::InvalidArgumentError("count must be greater than zero or equal to -1.");
    }
    const bool *reshuffle = attrOf<bool>(*context.node, "reshuffle_each_iteration");
    auto seeds = seedsOf(context, !reshuffle || *reshuffle);
    if (!seeds.ok())
      return seeds.status();
    return std::make_shared<ShuffleDataset>(spec, *std::move(input), *size, count, *std::move(seeds));
  }
};

absl::Status makeSeedGenerator(KernelContext &context) {
  auto seed = integerScalar(context.input("seed"), "seed"), seed2 = integerScalar(context.input("seed2"), "seed2");
  for (const absl::Status &status : {seed.status(), seed2.status()})
    if (!status.ok())
      return status;
  bool reshuffle = true;
  if (ArgRange range = context.node->inputRange("reshuffle"); range.count) {
    Tensor t = context.input(range.start);
    if (t.numElements() != 1)
      return absl::InvalidArgumentError("reshuffle must be a scalar");
    reshuffle = *t.data<bool>();
  }
  context.setOutput(0, makeHandle("", context.node->name, std::make_shared<SeedGenerator>(*seed, *seed2, reshuffle)));
  // the handle owns the generator: its deleter has nothing to do
  context.setOutput(1, Tensor::fromObjects(DType::Variant, {}, {nullptr}));
  return absl::OkStatus();
}

absl::Status dummySeedGenerator(KernelContext &context) {
  context.setOutput(0, makeHandle("", context.node->name, std::make_shared<NoSeedGenerator>()));
  return absl::OkStatus();
}

absl::Status nothing(KernelContext &) { return absl::OkStatus(); }

LATHE_HOST_KERNEL(ShuffleDataset, ShuffleNode);
LATHE_HOST_KERNEL(ShuffleDatasetV2, ShuffleNode);
LATHE_HOST_KERNEL(ShuffleDatasetV3, ShuffleNode);
LATHE_HOST_KERNEL(ShuffleAndRepeatDataset, ShuffleNode);
LATHE_HOST_KERNEL(ShuffleAndRepeatDatasetV2, ShuffleNode);
LATHE_HOST_KERNEL(RandomDataset, RandomNode);
LATHE_HOST_KERNEL(ExperimentalRandomDataset, RandomNode);
LATHE_HOST_KERNEL(RandomDatasetV2, RandomNode);
LATHE_HOST_KERNEL(SamplingDataset, SamplingNode);
LATHE_HOST_FUNCTION(AnonymousSeedGenerator, makeSeedGenerator);
LATHE_HOST_FUNCTION(AnonymousRandomSeedGenerator, makeSeedGenerator);
LATHE_HOST_FUNCTION(DummySeedGenerator, dummySeedGenerator);
LATHE_HOST_FUNCTION(DeleteSeedGenerator, nothing);
LATHE_HOST_FUNCTION(DeleteRandomSeedGenerator, nothing);

} // namespace
} // namespace lathe::rt
