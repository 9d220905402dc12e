// The distributions of candidate samplers that know how frequent each class is: given beforehand, or counted as it goes.
#ifndef LATHE_RUNTIME_KERNELS_RANDOM_UNIGRAM_H
#define LATHE_RUNTIME_KERNELS_RANDOM_UNIGRAM_H

#include "base/Bytes.h"
#include "base/Memory.h"
#include "runtime/kernels/random/Generator.h"

#include "absl/strings/numbers.h"

namespace lathe::rt {

/// A number of 32 bits below n, without bias; n is not 0.
inline uint32_t below32(Numbers &numbers, uint32_t n) {
  if ((n & (n - 1)) == 0)
    return numbers.next() & (n - 1);
  uint32_t rejected = ~uint32_t(0) % n + 1, v;
  do
    v = numbers.next();
  while (v < rejected);
  return v % n;
}

/// Memory of tables by class: a node's attributes say how many classes there are, and no tensor has them.
class TableMemory {
public:
  TableMemory() = default;
  TableMemory(TableMemory &&other) noexcept : bytes(std::exchange(other.bytes, 0)) {}
  TableMemory &operator=(TableMemory &&other) noexcept {
    std::swap(bytes, other.bytes);
    return *this;
  }
  ~TableMemory() { giveMemoryBack(bytes); }
  static absl::StatusOr<TableMemory> take(int64_t classes, size_t each) {
    TableMemory made;
    size_t bytes = 0;
    if (__builtin_mul_overflow(static_cast<size_t>(classes), each, &bytes) || !takeMemory(bytes))
      return absl::ResourceExhaustedError(absl::StrCat("tables for ", classes, " classes need more memory than there is"));
    made.bytes = bytes;
    return made;
  }

private:
  size_t bytes = 0;
};

/// Classes by weights that are given: a number picks a place, another one between the two classes that share it.
class FixedUnigram {
public:
  /// The weights of a node's attributes; those of other shards are left out.
  static absl::StatusOr<FixedUnigram> read(KernelInit &init, int64_t range) {
    auto vocabulary = init.attr<std::string>("vocab_file");
    auto unigrams = init.attr<std::vector<float>>("unigrams");
    float distortion = init.attr<float>("distortion");
    int64_t reserved = init.attr<int64_t>("num_reserved_ids"), shards = init.attr<int64_t>("num_shards"), shard = init.attr<int64_t>("shard");
    if (vocabulary.empty() == unigrams.empty())
      return invalid("Must provide exactly one of either vocab_file or unigrams.");
    if (shards < 1 || shard < 0 || shard >= shards)
      return invalid("shard must be between 0 and num_shards: ", shard, " and ", shards);
    if (reserved < 0 || reserved / shards > range)
      return invalid("num_reserved_ids is ", reserved, " for a range of ", range);
    if (!vocabulary.empty()) {
      LATHE_TRY_VALUE(read, weightsOf(vocabulary));
      unigrams = std::move(read);
    }
    FixedUnigram made;
    // of as many as there are, before any is made
    int64_t id = reserved > shard ? (reserved - shard - 1) / shards + 1 : 0, kept = id;
    for (size_t i = 0; i < unigrams.size(); ++i)
      kept += (id + static_cast<int64_t>(i)) % shards == shard;
    if (kept != range)
      return invalid("range is ", range, " must be equal to weights size ", kept);
    LATHE_TRY_VALUE(memory, TableMemory::take(range, sizeof(float) * 3 + sizeof(int64_t) * 3));
    made.memory = std::move(memory);
    made.weights.assign(static_cast<size_t>(id), 0);
    for (float weight : unigrams)
      if (id++ % shards == shard) {
        float bent = std::pow(weight, distortion);
        if (!std::isfinite(bent) || bent < 0)
          return invalid("the weight ", weight, " is none");
        made.weights.push_back(bent);
        made.total += bent;
      }
    if (!(made.total > 0))
      return invalid("the weights sum up to ", made.total);
    made.pair();
    return made;
  }

  int64_t draw(Numbers &numbers) const {
    float unit = detail::bitCast<float>((numbers.next() & 0x7fffffu) | 0x3f800000u) - 1.0f;
    size_t place = below32(numbers, static_cast<uint32_t>(weights.size()));
    return unit < shares[place] ? static_cast<int64_t>(place) : others[place];
  }
  float probability(int64_t value) const { return static_cast<float>(weights[static_cast<size_t>(value)] / total); }
  /// Classes that can be drawn at all.
  int64_t possible() const {
    return static_cast<int64_t>(std::count_if(weights.begin(), weights.end(), [](float w) { return w > 0; }));
  }

private:
  /// The last field of each line.
  static absl::StatusOr<std::vector<float>> weightsOf(const std::string &path) {
    auto text = readFile(path);
    if (!text.ok())
      return absl::NotFoundError(absl::StrCat(path, "; ", text.status().message()));
    std::vector<float> weights;
    for (size_t at = 0; at < text->size();) {
      size_t end = std::min(text->find('\n', at), text->size());
      std::string line = text->substr(at, end - at);
      at = end + 1;
      float weight = 0;
      if (!absl::SimpleAtof(line.substr(line.rfind(',') == std::string::npos ? 0 : line.rfind(',') + 1), &weight))
        return invalid("Wrong vocabulary format at line: ", line);
      weights.push_back(weight);
    }
    return weights;
  }

  /// Each place takes a share of its own class, the rest from one that has too much (Walker's aliases).
  void pair() {
    size_t n = weights.size();
    double sum = 0;
    for (float weight : weights)
      sum += weight;
    std::vector<double> left(n);
    std::vector<size_t> high, low;
    others.assign(n, -1);
    for (size_t i = 0; i < n; ++i) {
      left[i] = weights[i] * static_cast<float>(n) / sum;
      (left[i] < 1 ? low : high).push_back(i);
    }
    while (!high.empty() && !low.empty()) {
      size_t l = low.back(), h = high.back();
      low.pop_back();
      high.pop_back();
      others[l] = static_cast<int64_t>(h);
      left[h] -= 1 - left[l];
      (left[h] < 1 ? low : high).push_back(h);
    }
    shares.assign(left.begin(), left.end());
    // what is left is whole but for rounding
    for (const auto *some : {&high, &low})
      for (size_t i : *some) {
        shares[i] = 1;
        others[i] = static_cast<int64_t>(i);
      }
  }

  TableMemory memory;
  std::vector<float> weights, shares;
  std::vector<int64_t> others;
  double total = 0;
};

/// Classes as often as they were met, each once before.
class LearnedUnigram {
public:
  LearnedUnigram(int64_t range, TableMemory memory)
      : memory(std::move(memory)), counts(static_cast<size_t>(range), 1), sums(static_cast<size_t>(range) + 1, 0), total(range) {
    for (size_t i = 1; i < sums.size(); ++i)
      sums[i] = static_cast<int32_t>(i & (~i + 1)); // each covers as many classes as its lowest bit says
    for (top = 1; top * 2 < sums.size();)
      top *= 2;
  }
  int64_t draw(Numbers &numbers) const {
    int64_t left = below32(numbers, static_cast<uint32_t>(total));
    size_t at = 0;
    for (size_t step = top; step; step /= 2)
      if (at + step < sums.size() && sums[at + step] <= left)
        left -= sums[at += step];
    return static_cast<int64_t>(at);
  }
  float probability(int64_t value) const {
    return static_cast<float>(counts[static_cast<size_t>(value)]) / static_cast<float>(total);
  }
  void count(int64_t value) {
    if (total >= INT32_MAX)
      return;
    ++counts[static_cast<size_t>(value)];
    ++total;
    for (size_t i = static_cast<size_t>(value) + 1; i < sums.size(); i += i & (~i + 1))
      ++sums[i];
  }

private:
  TableMemory memory;
  std::vector<int32_t> counts, sums; ///< sums: a tree of Fenwick's
  int64_t total;
  size_t top = 1;
};

} // namespace lathe::rt

#endif
