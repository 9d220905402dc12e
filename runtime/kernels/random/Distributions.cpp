// RandomGamma, RandomPoisson and their stateless forms: rejection sampling in double precision, each sample from blocks
// reserved for it.
#include "runtime/kernels/random/Generator.h"

#include <limits>

namespace lathe::rt {
namespace {

/// Blocks reserved for a sample.
constexpr uint64_t kReserved = 256;

/// A Gamma(alpha, 1) sample by Marsaglia and Tsang.
double sampleGamma(double alpha, Philox generator) {
  PairedDoubles draw(generator);
  if (alpha == 1)
    return -std::log1p(-draw.uniform());
  bool small = alpha < 1;
  double d = alpha + (small ? 2.0 / 3 : -1.0 / 3), c = 1.0 / 3 / std::sqrt(d);
  // a bound for alphas that are NaN, where no attempt succeeds
  for (int attempt = 0; attempt < 10000; ++attempt) {
    double x = draw.normal(), v = 1 + c * x;
    if (v <= 0)
      continue;
    v = v * v * v;
    double u = draw.uniform();
    if (u < 1 - 0.0331 * (x * x) * (x * x) || std::log(u) < 0.5 * x * x + d * (1 - v + std::log(v))) {
      double result = d * v;
      return small ? result * std::pow(draw.uniform(), 1 / alpha) : result;
    }
  }
  return std::numeric_limits<double>::quiet_NaN();
}

/// A Poisson sample not above `highest`: Knuth's products for small rates, Hormann's transformed rejection for others.
double samplePoisson(double rate, double highest, Philox generator) {
  PairedDoubles draw(generator);
  if (std::isnan(rate) || rate < 0)
    return std::numeric_limits<double>::quiet_NaN();
  if (rate < 10) {
    double limit = std::exp(-rate), product = 1, count = 0;
    for (;; count += 1) {
      product *= draw.uniform();
      if (product <= limit && count <= highest)
        return count;
    }
  }
  if (std::isinf(rate))
    return rate;
  double logRate = std::log(rate), b = 0.931 + 2.53 * std::sqrt(rate), a = -0.059 + 0.02483 * b;
  double inverseAlpha = 1.1239 + 1.1328 / (b - 3.4);
  for (int attempt = 0; attempt < 100000; ++attempt) {
    double u = draw.uniform() - 0.5, v = draw.uniform();
    double shifted = 0.5 - std::abs(u);
    double k = std::floor((2 * a / shifted + b) * u + rate + 0.43);
    if (k > highest)
      continue;
    if (shifted >= 0.07 && v <= 0.9277 - 3.6224 / (b - 2))
      return k;
    if (k < 0 || (shifted < 0.013 && v > shifted))
      continue;
    double s = std::log(v * inverseAlpha / (a / (shifted * shifted) + b));
    if (s <= -rate + k * logRate - std::lgamma(k + 1))
      return k;
  }
  return highest;
}

double highestOf(DType type) {
  switch (type) {
  case DType::Int32:
    return std::numeric_limits<int32_t>::max();
  case DType::Int64:
    return static_cast<double>(std::numeric_limits<int64_t>::max());
  case DType::Float16:
    return 65504;
  case DType::BFloat16:
    return 3.3895313892515355e38;
  case DType::Float32:
    return std::numeric_limits<float>::max();
  default:
    return std::numeric_limits<double>::max();
  }
}

/// Fills output 0, of shape `dims`, with samples: that of parameter p and number s lies at s * count + p.
template <typename Sample>
absl::Status fillSamples(KernelContext &context, const std::vector<int64_t> &dims, const Tensor &parameters,
                         const Philox &generator, Sample sample) {
  LATHE_TRY_VALUE(out, context.allocateOutput(0, dims));
  int64_t count = parameters.numElements(), each = count ? out.numElements() / count : 0;
  return withType(out.dtype(), [&](auto zero) -> absl::Status {
    using T = decltype(zero);
    if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, std::complex<float>> ||
                  std::is_same_v<T, std::complex<double>>) {
      return absl::UnimplementedError(absl::StrCat("no samples of type ", dtypeName(out.dtype())));
    } else {
      for (int64_t p = 0; p < count; ++p)
        for (int64_t s = 0; s < each; ++s) {
          Philox mine = generator;
          mine.skip(kReserved * static_cast<uint64_t>(p * each + s));
          double value = sample(realAt(parameters, p), mine);
          if constexpr (std::is_integral_v<T>) {
            // a NaN or infinity has no integer; TensorFlow's conversion gives the lowest
            bool fits = value >= -9.2e18 && value <= static_cast<double>(std::numeric_limits<T>::max());
            out.template data<T>()[s * count + p] = fits ? static_cast<T>(value) : std::numeric_limits<T>::min();
          } else {
            out.template data<T>()[s * count + p] = static_cast<T>(value);
          }
        }
      return absl::OkStatus();
    }
  });
}

/// shape followed by the parameters' own.
absl::StatusOr<std::vector<int64_t>> sampleDims(const Tensor &shape, const Tensor &parameters) {
  LATHE_TRY_VALUE(dims, dimsOf(shape, "shape"));
  dims.insert(dims.end(), parameters.dims().begin(), parameters.dims().end());
  LATHE_TRY(checkedNumElements(dims).status());
  return dims;
}

class StatefulSampler : public HostKernel {
public:
  explicit StatefulSampler(KernelInit &init) : generator(init), gamma(init.node().op == "RandomGamma") {}
  absl::Status compute(KernelContext &context) override {
    Tensor parameters = context.input(1);
    LATHE_TRY_VALUE(dims, sampleDims(context.input(0), parameters));
    LATHE_TRY_VALUE(total, checkedNumElements(dims));
    // nothing is drawn for nothing
    Philox mine = total ? generator.reserve(static_cast<uint64_t>(total) * kReserved) : generator.reserve(0);
    double highest = highestOf(context.node->outputTypes[0]);
    return fillSamples(context, dims, parameters, mine, [&](double parameter, const Philox &g) {
      return gamma ? sampleGamma(parameter, g) : samplePoisson(parameter, highest, g);
    });
  }

private:
  StatefulGenerator generator;
  bool gamma;
};
LATHE_HOST_KERNEL(RandomGamma, StatefulSampler);
LATHE_HOST_KERNEL(RandomPoisson, StatefulSampler);
LATHE_HOST_KERNEL(RandomPoissonV2, StatefulSampler);

absl::StatusOr<Philox> statelessGenerator(const Tensor &seed) {
  if (seed.rank() != 1 || seed.numElements() != 2)
    return invalid("seed must have shape [2], not ", dimsToString(seed.dims()));
  return Philox::fromStatelessSeed(static_cast<uint64_t>(intAt(seed, 0)), static_cast<uint64_t>(intAt(seed, 1)));
}

/// The output's shape of a stateless op: it ends with the parameters' shape.
absl::StatusOr<std::vector<int64_t>> statelessDims(const Tensor &shape, const Tensor &parameters) {
  LATHE_TRY_VALUE(dims, dimsOf(shape, "shape"));
  LATHE_TRY(checkedNumElements(dims).status());
  if (dims.size() < parameters.dims().size() ||
      !std::equal(parameters.dims().begin(), parameters.dims().end(), dims.end() - parameters.rank()))
    return invalid("Shape passed in must end with broadcasted shape: ", dimsToString(dims), " and ",
                   dimsToString(parameters.dims()));
  return dims;
}

absl::Status statelessPoisson(KernelContext &context) {
  LATHE_TRY_VALUE(generator, statelessGenerator(context.input("seed")));
  Tensor rates = context.input("lam");
  LATHE_TRY_VALUE(dims, statelessDims(context.input("shape"), rates));
  double highest = highestOf(context.node->outputTypes[0]);
  return fillSamples(context, dims, rates, generator,
                     [&](double rate, const Philox &g) { return samplePoisson(rate, highest, g); });
}
LATHE_HOST_FUNCTION(StatelessRandomPoisson, statelessPoisson);

absl::Status statelessGamma(KernelContext &context) {
  Tensor alphas = context.input("alpha");
  Philox generator = Philox::fromSeeds(0, 0);
  if (context.node->op == "StatelessRandomGammaV3") {
    Tensor key = context.input("key"), counter = context.input("counter");
    LATHE_TRY_VALUE(algorithm, oneInt(context.input("alg"), "alg"));
    if (algorithm != 1 && algorithm != 3)
      return absl::UnimplementedError("only the Philox algorithm has a form");
    if (key.numElements() < 1 || counter.numElements() < 2)
      return invalid("key must have 1 element and counter 2");
    uint64_t k = key.data<uint64_t>()[0], low = counter.data<uint64_t>()[0], high = counter.data<uint64_t>()[1];
    auto half = [](uint64_t v, int i) { return static_cast<uint32_t>(v >> (32 * i)); };
    generator = Philox({half(k, 0), half(k, 1)}, {half(low, 0), half(low, 1), half(high, 0), half(high, 1)});
  } else {
    LATHE_TRY_VALUE(seeded, statelessGenerator(context.input("seed")));
    generator = seeded;
  }
  LATHE_TRY_VALUE(dims, statelessDims(context.input("shape"), alphas));
  return fillSamples(context, dims, alphas, generator, [](double alpha, const Philox &g) { return sampleGamma(alpha, g); });
}
LATHE_HOST_FUNCTION(StatelessRandomGammaV2, statelessGamma);
LATHE_HOST_FUNCTION(StatelessRandomGammaV3, statelessGamma);

} // namespace
} // namespace lathe::rt
