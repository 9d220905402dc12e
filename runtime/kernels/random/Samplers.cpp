// RandomShuffle and StatelessShuffle for every element type, candidate samplers, ComputeAccidentalHits.
#include "runtime/kernels/random/Unigram.h"

#include <limits>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

namespace lathe::rt {
namespace {

/// The tensor with its rows in the order that a generator gives.
absl::StatusOr<Tensor> shuffledRows(const KernelContext &context, const Tensor &in, Numbers numbers) {
  if (in.numElements() <= 1 || in.dim(0) <= 1)
    return in;
  int64_t rows = in.dim(0), size = in.numElements() / rows;
  std::vector<int64_t> order(rows), from;
  std::iota(order.begin(), order.end(), 0);
  rt::shuffle(order.begin(), order.end(), [&](uint32_t n) { return numbers.next() % n; });
  from.reserve(in.numElements());
  for (int64_t row : order)
    for (int64_t k = 0; k < size; ++k)
      from.push_back(row * size + k);
  return pick(context, in, in.dims(), from);
}

class Shuffle : public HostKernel {
public:
  explicit Shuffle(KernelInit &init) : generator(init) {}
  absl::Status compute(KernelContext &context) override {
    Tensor in = context.input(0);
    bool moves = in.numElements() > 1 && in.dim(0) > 1;
    // a shuffle without a choice takes no numbers
    Numbers numbers(generator.reserveNumbers(moves ? static_cast<uint64_t>(in.dim(0) - 1) : 0));
    LATHE_TRY_VALUE(out, shuffledRows(context, in, numbers));
    context.setOutput(0, out);
    return absl::OkStatus();
  }

private:
  StatefulGenerator generator;
};
LATHE_HOST_KERNEL(RandomShuffle, Shuffle);

absl::Status statelessShuffle(KernelContext &context) {
  Tensor key = context.input("key"), counter = context.input("counter"), alg = context.input("alg");
  if (alg.rank() != 0)
    return invalid("input 3 (0-based) must have shape [], not ", dimsToString(alg.dims()));
  // 1 is Philox, 2 ThreeFry, 3 whichever suits the device: Philox here
  if (int64_t algorithm = intAt(alg, 0); algorithm != 1 && algorithm != 3)
    return invalid("Unsupported algorithm id: ", algorithm);
  if (key.rank() != 1 || key.dim(0) != 1)
    return invalid("key must have shape [1], not ", dimsToString(key.dims()), ". (Note that batched keys are not supported yet.)");
  // TensorFlow also takes one word and reads a second one behind the tensor's end
  if (counter.rank() != 1 || counter.dim(0) < 2)
    return invalid("counter must be a vector with length at least 2; got shape: ", dimsToString(counter.dims()),
                   ". (Note that batched counters are not supported yet.)");
  uint64_t k = key.data<uint64_t>()[0], low = counter.data<uint64_t>()[0], high = counter.data<uint64_t>()[1];
  auto word = [](uint64_t v, int shift) { return static_cast<uint32_t>(v >> shift); };
  Numbers numbers(Philox({word(k, 0), word(k, 32)}, {word(low, 0), word(low, 32), word(high, 0), word(high, 32)}));
  LATHE_TRY_VALUE(out, shuffledRows(context, context.input("value"), numbers));
  context.setOutput(0, out);
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(StatelessShuffle, statelessShuffle);

/// Draws classes from a range and says how often each is expected in a batch.
class CandidateSampler : public HostKernel {
public:
  explicit CandidateSampler(KernelInit &init) : generator(init) {
    trueCount = init.attr<int64_t>("num_true");
    sampled = init.attr<int64_t>("num_sampled");
    unique = init.attr<bool>("unique");
    const std::string &op = init.node().op;
    all = op == "AllCandidateSampler";
    logUniform = op == "LogUniformCandidateSampler";
    range = all ? sampled : init.attr<int64_t>("range_max");
    bool learns = op == "LearnedUnigramCandidateSampler" || op == "ThreadUnsafeUnigramCandidateSampler";
    if (range < 1 || sampled < 1)
      init.fail(invalid("range_max and num_sampled must be positive: ", range, " and ", sampled));
    else if (unique && !all && range < sampled)
      init.fail(invalid("Sampler's range is too small."));
    else if (learns)
      makeLearned(init);
    else if (op == "FixedUnigramCandidateSampler")
      readFixed(init);
    logRange = std::log1p(static_cast<double>(range));
  }

  absl::Status compute(KernelContext &context) override {
    Tensor classes = context.input(0);
    if (classes.rank() != 2 || classes.dim(1) != trueCount)
      return invalid("true_classes must be a matrix with ", trueCount, " columns, found shape ", dimsToString(classes.dims()));
    for (int64_t value : intsOf(classes))
      if (value < 0 || value >= range)
        return invalid("`true_candidate` out of range [0, ", range, "), received ", value);
    LATHE_TRY_VALUE(out, context.allocateOutput(0, {sampled}));
    LATHE_TRY_VALUE(trueExpected, context.allocateOutput(1, classes.dims()));
    LATHE_TRY_VALUE(expected, context.allocateOutput(2, {sampled}));
    int64_t *candidates = out.data<int64_t>();
    int64_t tries = 0;
    std::lock_guard<std::mutex> lock(mutex);
    if (all) {
      std::iota(candidates, candidates + sampled, 0);
    } else {
      // as much as TensorFlow sets aside for a batch
      Numbers numbers(generator.reserveNumbers(2048 * static_cast<uint64_t>(sampled)));
      std::unordered_set<int64_t> seen;
      for (int64_t i = 0; i < sampled;) {
        if (++tries % 65536 == 0 && context.cancellation && context.cancellation->isCancelled())
          return absl::CancelledError("the step was cancelled");
        if (tries == std::numeric_limits<int32_t>::max())
          return absl::ResourceExhaustedError("sampling without repetition takes too long");
        int64_t value = draw(numbers);
        if (!unique || seen.insert(value).second)
          candidates[i++] = value;
      }
    }
    for (int64_t i = 0; i < classes.numElements(); ++i)
      trueExpected.data<float>()[i] = expectedCount(classes.data<int64_t>()[i], tries);
    for (int64_t i = 0; i < sampled; ++i)
      expected.data<float>()[i] = expectedCount(candidates[i], tries);
    for (int64_t i = 0; learned && i < classes.numElements(); ++i)
      learned->count(classes.data<int64_t>()[i]);
    return absl::OkStatus();
  }

private:
  void makeLearned(KernelInit &init) {
    if (range >= std::numeric_limits<int32_t>::max())
      return init.fail(invalid("range_max is too large: ", range));
    auto memory = TableMemory::take(range, 2 * sizeof(int32_t));
    if (!memory.ok())
      return init.fail(memory.status());
    learned = std::make_unique<LearnedUnigram>(range, *std::move(memory));
  }

  void readFixed(KernelInit &init) {
    if (range > std::numeric_limits<int32_t>::max())
      return init.fail(invalid("range_max is too large: ", range));
    auto read = FixedUnigram::read(init, range);
    if (!read.ok())
      return init.fail(read.status());
    if (unique && read->possible() < sampled)
      return init.fail(invalid("Sampler's range is too small: ", read->possible(), " classes have a weight, ", sampled, " are asked for"));
    fixed = std::make_unique<FixedUnigram>(*std::move(read));
  }

  int64_t draw(Numbers &numbers) const {
    if (fixed)
      return fixed->draw(numbers);
    if (learned)
      return learned->draw(numbers);
    if (!logUniform)
      return static_cast<int64_t>(numbers.below(static_cast<uint64_t>(range)));
    int64_t value = static_cast<int64_t>(std::exp(numbers.unit() * logRange)) - 1;
    return value % range;
  }

  float expectedCount(int64_t value, int64_t tries) const {
    if (all)
      return 1;
    float p = fixed        ? fixed->probability(value)
              : learned    ? learned->probability(value)
              : logUniform ? static_cast<float>(std::log((static_cast<double>(value) + 2.0) / (static_cast<double>(value) + 1.0)) / logRange)
                         : static_cast<float>(1.0 / static_cast<double>(range));
    if (tries == sampled)
      return p * static_cast<float>(sampled);
    return -std::expm1(static_cast<float>(tries) * std::log1p(-p));
  }

  StatefulGenerator generator;
  std::mutex mutex; ///< of what is learned
  std::unique_ptr<LearnedUnigram> learned;
  std::unique_ptr<FixedUnigram> fixed;
  int64_t trueCount, sampled, range;
  bool unique, all, logUniform;
  double logRange;
};
LATHE_HOST_KERNEL(AllCandidateSampler, CandidateSampler);
LATHE_HOST_KERNEL(LogUniformCandidateSampler, CandidateSampler);
LATHE_HOST_KERNEL(UniformCandidateSampler, CandidateSampler);
LATHE_HOST_KERNEL(FixedUnigramCandidateSampler, CandidateSampler);
LATHE_HOST_KERNEL(LearnedUnigramCandidateSampler, CandidateSampler);
LATHE_HOST_KERNEL(ThreadUnsafeUnigramCandidateSampler, CandidateSampler);

absl::Status accidentalHits(KernelContext &context) {
  Tensor classes = context.input(0), candidates = context.input(1);
  int64_t trueCount = *attrOf<int64_t>(*context.node, "num_true");
  if (classes.rank() != 2 || classes.dim(1) != trueCount)
    return invalid("true_classes must be a matrix with ", trueCount, " columns, found shape ", dimsToString(classes.dims()));
  if (candidates.rank() != 1)
    return invalid("sampled_candidates must be a vector, found shape ", dimsToString(candidates.dims()));
  std::unordered_map<int64_t, int64_t> places;
  for (int64_t i = 0; i < candidates.numElements(); ++i)
    places[candidates.data<int64_t>()[i]] = i;
  std::vector<int64_t> rows, ids;
  for (int64_t i = 0; i < classes.numElements(); ++i)
    if (auto it = places.find(classes.data<int64_t>()[i]); it != places.end()) {
      rows.push_back(i / trueCount);
      ids.push_back(it->second);
    }
  context.setOutput(0, indexVector(DType::Int32, rows));
  context.setOutput(1, int64Vector(ids));
  context.setOutput(2, Tensor::vector<float>(DType::Float32,
                                             std::vector<float>(rows.size(), -std::numeric_limits<float>::max())));
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(ComputeAccidentalHits, accidentalHits);

} // namespace
} // namespace lathe::rt
