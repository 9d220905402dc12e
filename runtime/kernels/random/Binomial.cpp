// StatelessRandomBinomial, StatefulRandomBinomial: inversion for small means, Hormann's transformed rejection for others.
#include "runtime/kernels/random/Held.h"

#include <limits>

namespace lathe::rt {
namespace {

/// Sums geometric numbers until they pass the count.
double byInversion(double count, double p, Philox generator) {
  PairedDoubles draw(generator);
  double sum = 0;
  for (int64_t n = 0;; ++n) {
    sum += std::ceil(std::log(draw.uniform()) / std::log1p(-p));
    if (sum > count)
      return static_cast<double>(n);
  }
}

/// The rest of Stirling's approximation of log k!.
double stirlingTail(double k) {
  static const double tails[] = {0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509,
                                 0.0166446911898211, 0.0138761288230707, 0.0118967099458917, 0.0104112652619720,
                                 0.00925546218271273, 0.00833056343336287};
  if (k <= 9)
    return tails[static_cast<int>(k)];
  double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

double byRejection(double count, double p, Philox generator) {
  PairedDoubles draw(generator);
  double deviation = std::sqrt(count * p * (1 - p)), b = 1.15 + 2.53 * deviation, a = -0.0873 + 0.0248 * b + 0.01 * p;
  double c = count * p + 0.5, box = 0.92 - 4.2 / b, ratio = p / (1 - p), alpha = (2.83 + 5.1 / b) * deviation;
  double mode = std::floor((count + 1) * p);
  for (int attempt = 0; attempt < 100000; ++attempt) {
    double u = draw.uniform(), v = draw.uniform();
    u -= 0.5;
    double us = 0.5 - std::abs(u), k = std::floor((2 * a / us + b) * u + c);
    if (us >= 0.07 && v <= box)
      return k;
    if (k < 0 || k > count)
      continue;
    v = std::log(v * alpha / (a / (us * us) + b));
    double bound = (mode + 0.5) * std::log((mode + 1) / (ratio * (count - mode + 1))) +
                   (count + 1) * std::log((count - mode + 1) / (count - k + 1)) +
                   (k + 0.5) * std::log(ratio * (count - k + 1) / (k + 1)) + stirlingTail(mode) +
                   stirlingTail(count - mode) - stirlingTail(k) - stirlingTail(count - k);
    if (v <= bound)
      return k;
  }
  return mode;
}

/// p of the rarer outcome decides how; each sample has its own blocks, fewer for the inversion.
double sample(double count, double p, double mean, Philox generator, uint64_t number) {
  bool rejection = mean >= 10;
  generator.skip((rejection ? 256 : 42) * number);
  return rejection ? byRejection(count, p, generator) : byInversion(count, p, generator);
}

/// Flat position, in a tensor of `dims` that broadcasts to the end of `full`, of flat position `at` there.
int64_t broadcastIndex(const std::vector<int64_t> &dims, const std::vector<int64_t> &full, int64_t at) {
  int64_t index = 0, stride = 1;
  for (size_t i = full.size(), j = dims.size(); j > 0;) {
    --i, --j;
    if (dims[j] != 1)
      index += at % full[i] * stride;
    at /= full[i];
    stride *= dims[j];
  }
  return index;
}

/// `round` turns a product or difference to the type that TensorFlow computes it in.
template <typename T>
double sampleAs(double count, double p, const Philox &generator, uint64_t number) {
  auto round = [](double v) { return static_cast<double>(static_cast<T>(static_cast<float>(v))); };
  if constexpr (std::is_same_v<T, double>) {
    if (p <= 0.5)
      return sample(count, p, count * p, generator, number);
    return count - sample(count, 1 - p, count * (1 - p), generator, number);
  } else {
    if (p <= 0.5)
      return sample(count, p, round(count * p), generator, number);
    double q = round(1 - p);
    return count - sample(count, q, round(count * q), generator, number);
  }
}

/// `start` gives the generator, from the number of pairs of count and probability and that of samples for each.
template <typename Start>
absl::Status binomial(KernelContext &context, Start start) {
  Tensor counts = context.input("counts"), probs = context.input("probs");
  LATHE_TRY_VALUE(dims, dimsOf(context.input("shape"), "shape"));
  std::vector<int64_t> batch(std::max(counts.rank(), probs.rank()), 1);
  for (const Tensor *t : {&counts, &probs})
    for (int64_t d = 0; d < t->rank(); ++d) {
      int64_t &size = batch[batch.size() - t->rank() + d];
      if (size != t->dim(d) && size != 1 && t->dim(d) != 1)
        return invalid("counts and probs must have compatible batch dimensions: ", dimsToString(counts.dims()), " vs. ",
                       dimsToString(probs.dims()));
      size = size == 1 ? t->dim(d) : size;
    }
  if (dims.size() < batch.size() || !std::equal(batch.begin(), batch.end(), dims.end() - batch.size()))
    return invalid("Shape passed in must end with broadcasted shape.");
  LATHE_TRY_VALUE(out, context.allocateOutput(0, dims));
  int64_t batches = productOf(batch, 0, batch.size()), each = batches ? out.numElements() / batches : 0;
  LATHE_TRY_VALUE(generator, start(batches, each));
  return withType(out.dtype(), [&](auto zero) -> absl::Status {
    using U = decltype(zero);
    if constexpr (std::is_same_v<U, bool> || std::is_same_v<U, std::complex<float>> ||
                  std::is_same_v<U, std::complex<double>>) {
      return absl::UnimplementedError("samples are real numbers or integers");
    } else {
      for (int64_t b = 0; b < batches; ++b) {
        double count = realAt(counts, broadcastIndex(counts.dims(), batch, b));
        double p = realAt(probs, broadcastIndex(probs.dims(), batch, b));
        for (int64_t s = 0; s < each; ++s) {
          uint64_t number = static_cast<uint64_t>(b * each + s);
          double value = 0;
          if (!(count <= 0 || p <= 0))
            value = p >= 1                                ? count
                    : std::isnan(p)                       ? p
                    : counts.dtype() == DType::Float64    ? sampleAs<double>(count, p, generator, number)
                    : counts.dtype() == DType::Float16    ? sampleAs<Half>(count, p, generator, number)
                    : counts.dtype() == DType::BFloat16   ? sampleAs<BFloat16>(count, p, generator, number)
                                                          : sampleAs<float>(count, p, generator, number);
          U &to = out.template data<U>()[s * batches + b];
          if constexpr (std::is_integral_v<U>)
            to = std::isnan(value) || std::abs(value) > 9e18 ? std::numeric_limits<U>::min() : static_cast<U>(value);
          else
            to = static_cast<U>(static_cast<std::conditional_t<std::is_same_v<U, double>, double, float>>(value));
        }
      }
      return absl::OkStatus();
    }
  });
}

absl::Status statelessBinomial(KernelContext &context) {
  Tensor seed = context.input("seed");
  if (seed.rank() != 1 || seed.numElements() != 2)
    return invalid("seed must have shape [2], not ", dimsToString(seed.dims()));
  return binomial(context, [&](int64_t, int64_t) -> absl::StatusOr<Philox> {
    return Philox::fromStatelessSeed(static_cast<uint64_t>(intAt(seed, 0)), static_cast<uint64_t>(intAt(seed, 1)));
  });
}
LATHE_HOST_FUNCTION(StatelessRandomBinomial, statelessBinomial);

absl::Status statefulBinomial(KernelContext &context) {
  LATHE_TRY(checkAlgorithm(context.input(1)));
  if (!isFloating(context.input("counts").dtype()))
    return absl::UnimplementedError("counts and probabilities must be floating");
  // set aside are 100 pairs of numbers for a sample, those of a batch rounded up to fours
  return binomial(context, [&](int64_t batches, int64_t each) {
    uint64_t aside = static_cast<uint64_t>(batches) * 2 * 100 * (static_cast<uint64_t>(each) + 3) / 4;
    return takeGenerator(context, aside);
  });
}
LATHE_HOST_FUNCTION(StatefulRandomBinomial, statefulBinomial);

} // namespace
} // namespace lathe::rt
