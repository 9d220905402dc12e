// ParameterizedTruncatedNormal and its stateless form: normal numbers between limits, by one of three ways of rejection.
#include "runtime/kernels/random/Generator.h"

#include <limits>

namespace lathe::rt {
namespace {

constexpr int kMaxIterations = 1000;

/// Arithmetic of a type: TensorFlow computes in the output's own, so halves round after every operation.
template <typename T>
struct Draws {
  static constexpr int size = std::is_same_v<T, double> ? 2 : 4;

  static std::array<T, size> uniform(Philox &g) {
    Philox::Block x = g.next();
    if constexpr (std::is_same_v<T, double>)
      return {unitDouble(x[0], x[1]), unitDouble(x[2], x[3])};
    else
      return {one(x[0]), one(x[1]), one(x[2]), one(x[3])};
  }
  static std::array<T, size> normal(Philox &g) {
    Philox::Block x = g.next();
    if constexpr (std::is_same_v<T, double>) {
      double u = std::max(unitDouble(x[0], x[1]), 1e-7), angle = 2 * M_PI * unitDouble(x[2], x[3]);
      double length = std::sqrt(-2 * std::log(u));
      return {std::sin(angle) * length, std::cos(angle) * length};
    } else {
      std::array<T, size> out;
      for (int i = 0; i < 4; i += 2) {
        float u = std::max(unitFloat(x[i]), 1e-7f), angle = static_cast<float>(2 * M_PI) * unitFloat(x[i + 1]);
        float length = std::sqrt(-2.0f * std::log(u));
        out[i] = T(std::sin(angle) * length);
        out[i + 1] = T(std::cos(angle) * length);
      }
      return out;
    }
  }

private:
  static float unitFloat(uint32_t word) { return detail::bitCast<float>((word & 0x7fffffu) | 0x3f800000u) - 1.0f; }
  static T one(uint32_t word) {
    if constexpr (std::is_same_v<T, Half>) {
      Half v;
      v.bits = static_cast<uint16_t>((word & 0x3ffu) | 0x3c00u);
      return Half(static_cast<float>(v) - 1.0f);
    } else {
      return unitFloat(word);
    }
  }
};

/// Where the numbers of one set of parameters go.
template <typename T>
struct Place {
  T *first;
  int64_t stride, count;
};

/// Fills a place from the generator's stream.
template <typename T>
absl::Status fill(T mean, T deviation, T low, T high, const Place<T> &place, Philox &g) {
  auto finite = [](T v) { return std::isfinite(static_cast<double>(v)); };
  if (!(deviation > T(0)) || !(low < high) || !(finite(low) || finite(high)))
    return invalid("Invalid parameters");
  // a bound on one side only becomes the lower one, bounds on one side of the mean positive
  if ((!finite(low) && low < T(0)) || high < mean) {
    std::swap(low, high);
    deviation = T(-deviation);
  }
  T least = T(T(low - mean) / deviation), most = T(T(high - mean) / deviation), diff = T(most - least);
  auto exp = [](T v) { return T(std::exp(v)); };
  auto sqrt = [](T v) { return T(std::sqrt(v)); };
  T root = sqrt(T(T(least * least) + T(4)));
  T cutoff = T(T(T(2) * exp(T(T(0.5) + T(T(least * T(least - root)) / T(4))))) / T(least + root));
  int64_t made = 0;
  int failures = 0;
  auto store = [&](T v) {
    place.first[made++ * place.stride] = T(T(v * deviation) + mean);
    failures = 0;
  };
  auto tooLong = [] { return absl::InternalError("the sampler of truncated normal numbers failed to accept a sample"); };
  if ((least < T(-1.3) && most >= T(0)) || (most > T(1.3) && least <= T(0))) {
    while (made < place.count)
      for (T v : Draws<T>::normal(g)) {
        if (made >= place.count)
          break;
        if (v >= least && v <= most)
          store(v);
        else if (++failures > kMaxIterations)
          return tooLong();
      }
  } else if (diff < cutoff) {
    T plus = least < T(0) ? T(0) : T(least * least);
    while (made < place.count) {
      auto z = Draws<T>::uniform(g), u = Draws<T>::uniform(g);
      for (size_t i = 0; i < z.size() && made < place.count; ++i) {
        T v = T(T(z[i] * diff) + least), bound = T(T(plus - T(v * v)) / T(2));
        if (u[i] <= exp(bound))
          store(v);
        else if (++failures >= kMaxIterations)
          return tooLong();
      }
    }
  } else {
    T alpha = T(T(least + root) / T(2));
    while (made < place.count) {
      auto numbers = Draws<T>::uniform(g);
      for (size_t i = 0; i + 1 < numbers.size() && made < place.count; i += 2) {
        T v = T(T(T(-T(std::log(numbers[i]))) / alpha) + least), x = least < alpha ? T(alpha - v) : T(least - alpha);
        if (numbers[i + 1] <= exp(T(T(T(-x) * x) / T(2))) && v < most)
          store(v);
        else if (++failures >= kMaxIterations)
          return tooLong();
      }
    }
  }
  return absl::OkStatus();
}

template <typename Fn>
absl::Status withSampleType(DType type, Fn &&fn) {
  if (type == DType::Float16)
    return fn(Half());
  if (type == DType::Float32)
    return fn(float());
  if (type == DType::Float64)
    return fn(double());
  return invalid("no truncated normal numbers of type ", dtypeName(type));
}

/// Batches along the first dimension; each parameter is a scalar or has an element for each batch.
class ParameterizedTruncatedNormal : public HostKernel {
public:
  explicit ParameterizedTruncatedNormal(KernelInit &init) : generator(init) {}
  absl::Status compute(KernelContext &context) override {
    LATHE_TRY_VALUE(dims, dimsOf(context.input(0), "shape"));
    if (dims.empty())
      return invalid("Shape tensor must not be empty");
    Tensor parameters[4];
    static const char *const names[] = {"means", "stddevs", "minvals", "maxvals"};
    for (int i = 0; i < 4; ++i) {
      parameters[i] = context.input(i + 1);
      if (parameters[i].rank() > 1)
        return invalid("Input ", names[i], " should be a scalar or vector, got shape: ", dimsToString(parameters[i].dims()));
    }
    LATHE_TRY_VALUE(out, context.allocateOutput(0, dims));
    int64_t total = out.numElements(), batches = dims[0], each = productOf(dims, 1, dims.size());
    bool same = parameters[0].numElements() == 1 && parameters[1].numElements() == 1 && parameters[2].rank() == 0 &&
                parameters[3].rank() == 0;
    if (same) {
      each = 100; // whatever the shape
      batches = (total + each - 1) / each;
    } else {
      for (int i = 0; i < 4; ++i)
        if (parameters[i].numElements() != 1 && parameters[i].numElements() != batches)
          return invalid("Input ", names[i], " should have length 1 or shape[0], got shape: ", dimsToString(parameters[i].dims()));
    }
    Philox g = generator.reserve(static_cast<uint64_t>(batches * 2 * kMaxIterations * (each + 3) / 4));
    return withSampleType(out.dtype(), [&](auto zero) -> absl::Status {
      using T = decltype(zero);
      auto at = [&](int i, int64_t b) { return parameters[i].template data<T>()[parameters[i].numElements() == 1 ? 0 : b]; };
      for (int64_t b = 0; b < batches; ++b) {
        Place<T> place{out.template data<T>() + b * each, 1, std::min(each, total - b * each)};
        LATHE_TRY(fill<T>(at(0, b), at(1, b), at(2, b), at(3, b), place, g));
      }
      return absl::OkStatus();
    });
  }

private:
  StatefulGenerator generator;
};
LATHE_HOST_KERNEL(ParameterizedTruncatedNormal, ParameterizedTruncatedNormal);

/// Parameters broadcast to the end of the shape.
absl::Status statelessTruncated(KernelContext &context) {
  Tensor seed = context.input("seed");
  if (seed.rank() != 1 || seed.numElements() != 2)
    return invalid("seed must have shape [2], not ", dimsToString(seed.dims()));
  LATHE_TRY_VALUE(dims, dimsOf(context.input("shape"), "shape"));
  Tensor parameters[4] = {context.input("means"), context.input("stddevs"), context.input("minvals"), context.input("maxvals")};
  std::vector<int64_t> batch;
  for (const Tensor &t : parameters) {
    if (static_cast<size_t>(t.rank()) > batch.size())
      batch.insert(batch.begin(), static_cast<size_t>(t.rank()) - batch.size(), 1);
    for (int64_t d = 0; d < t.rank(); ++d) {
      int64_t &size = batch[batch.size() - t.rank() + d];
      if (size != t.dim(d) && size != 1 && t.dim(d) != 1)
        return invalid("means, stddevs, minvals, maxvals must have compatible batch dimensions");
      size = size == 1 ? t.dim(d) : size;
    }
  }
  if (dims.size() < batch.size() || !std::equal(batch.begin(), batch.end(), dims.end() - batch.size()))
    return invalid("Shape passed in must end with broadcasted shape.");
  LATHE_TRY_VALUE(out, context.allocateOutput(0, dims));
  int64_t batches = productOf(batch, 0, batch.size()), each = batches ? out.numElements() / batches : 0;
  Philox g = Philox::fromStatelessSeed(static_cast<uint64_t>(intAt(seed, 0)), static_cast<uint64_t>(intAt(seed, 1)));
  // flat position in a parameter of batch `b`
  auto indexOf = [&](const Tensor &t, int64_t b) {
    int64_t index = 0, stride = 1;
    for (size_t i = batch.size(), j = t.dims().size(); j > 0;) {
      --i, --j;
      if (t.dim(j) != 1)
        index += b % batch[i] * stride;
      b /= batch[i];
      stride *= t.dim(j);
    }
    return index;
  };
  return withSampleType(out.dtype(), [&](auto zero) -> absl::Status {
    using T = decltype(zero);
    auto at = [&](int i, int64_t b) { return parameters[i].template data<T>()[indexOf(parameters[i], b)]; };
    for (int64_t b = 0; b < batches && each; ++b)
      LATHE_TRY(fill<T>(at(0, b), at(1, b), at(2, b), at(3, b), {out.template data<T>() + b, batches, each}, g));
    return absl::OkStatus();
  });
}
LATHE_HOST_FUNCTION(StatelessParameterizedTruncatedNormal, statelessTruncated);

} // namespace
} // namespace lathe::rt
