// RandomUniform, RandomUniformInt, RandomStandardNormal, TruncatedNormal, Multinomial and RandomCrop: every execution goes on
// in the generator's stream where the one before it stopped, and passes over as many blocks as TensorFlow sets aside.
#include "runtime/kernels/random/Generator.h"

#include <cstring>
#include <limits>

namespace lathe::rt {
namespace {

/// Blocks set aside for an element, as TensorFlow's kernels do whatever the distribution needs.
constexpr uint64_t kReserved = 256;

template <typename T>
constexpr bool isReal =
    std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

/// 23 random bits as a float in [0, 1).
float unitFloat(uint32_t word) { return detail::bitCast<float>((word & 0x7fffffu) | 0x3f800000u) - 1.0f; }

/// Uniform in [0, 1) from one word: as many bits as the type has behind the point.
template <typename T>
T unit(uint32_t word) {
  T v;
  if constexpr (std::is_same_v<T, Half>) {
    v.bits = static_cast<uint16_t>((word & 0x3ffu) | 0x3c00u);
    return Half(static_cast<float>(v) - 1.0f);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    v.bits = static_cast<uint16_t>((word & 0x7fu) | 0x3f80u);
    return BFloat16(static_cast<float>(v) - 1.0f);
  } else {
    return unitFloat(word);
  }
}

/// Two normal numbers.
std::array<float, 2> normalFloats(uint32_t a, uint32_t b) {
  float u = std::max(unitFloat(a), 1.0e-7f), angle = static_cast<float>(2 * M_PI) * unitFloat(b);
  float length = std::sqrt(-2.0f * std::log(u));
  return {std::sin(angle) * length, std::cos(angle) * length};
}
std::array<double, 2> normalDoubles(const Philox::Block &x) {
  double u = std::max(unitDouble(x[0], x[1]), 1.0e-7), angle = 2 * M_PI * unitDouble(x[2], x[3]);
  double length = std::sqrt(-2.0 * std::log(u));
  return {std::sin(angle) * length, std::cos(angle) * length};
}

/// Fills by groups of `size` elements; fill(to) makes one.
template <typename T, int size, typename Fill>
void byGroups(T *data, int64_t n, Fill fill) {
  int64_t at = 0;
  for (; at + size <= n; at += size)
    fill(data + at);
  if (at < n) {
    T rest[size];
    fill(rest);
    std::copy(rest, rest + (n - at), data + at);
  }
}

template <typename T>
void fillUniform(T *data, int64_t n, Philox g) {
  if constexpr (std::is_same_v<T, double>)
    byGroups<T, 2>(data, n, [&](T *to) {
      Philox::Block x = g.next();
      to[0] = unitDouble(x[0], x[1]);
      to[1] = unitDouble(x[2], x[3]);
    });
  else
    byGroups<T, 4>(data, n, [&](T *to) {
      Philox::Block x = g.next();
      for (int i = 0; i < 4; ++i)
        to[i] = unit<T>(x[i]);
    });
}

template <typename T>
void fillNormal(T *data, int64_t n, Philox g) {
  if constexpr (std::is_same_v<T, double>)
    byGroups<T, 2>(data, n, [&](T *to) {
      auto pair = normalDoubles(g.next());
      std::copy(pair.begin(), pair.end(), to);
    });
  else
    byGroups<T, 4>(data, n, [&](T *to) {
      Philox::Block x = g.next();
      for (int i = 0; i < 4; i += 2) {
        auto pair = normalFloats(x[i], x[i + 1]);
        to[i] = T(pair[0]);
        to[i + 1] = T(pair[1]);
      }
    });
}

/// Normal numbers within two standard deviations. Each group has blocks of its own and draws until it is full.
template <typename T>
void fillTruncated(T *data, int64_t n, const Philox &base) {
  constexpr bool wide = std::is_same_v<T, double>;
  constexpr int size = wide ? 2 : 4;
  uint64_t group = 0;
  byGroups<T, size>(data, n, [&](T *to) {
    Philox g = base;
    g.skip(group++ * size * kReserved / 4);
    for (int made = 0; made < size;) {
      Philox::Block x = g.next();
      auto take = [&](auto pair) {
        for (auto v : pair)
          if (std::abs(v) < 2 && made < size)
            to[made++] = T(v);
      };
      if constexpr (wide) {
        take(normalDoubles(x));
      } else {
        take(normalFloats(x[0], x[1]));
        take(normalFloats(x[2], x[3]));
      }
    }
  });
}

/// RandomUniform, RandomStandardNormal, TruncatedNormal.
class Floats : public HostKernel {
public:
  explicit Floats(KernelInit &init) : generator(init), op(init.node().op) {}
  absl::Status compute(KernelContext &context) override {
    LATHE_TRY_VALUE(dims, dimsOf(context.input(0), "shape"));
    LATHE_TRY_VALUE(out, context.allocateOutput(0, dims));
    int64_t n = out.numElements();
    Philox mine = generator.reserve(static_cast<uint64_t>(n) * kReserved);
    return withType(out.dtype(), [&](auto zero) -> absl::Status {
      using T = decltype(zero);
      if constexpr (isReal<T>) {
        T *data = out.template data<T>();
        if (op == "RandomUniform")
          fillUniform(data, n, mine);
        else if (op == "RandomStandardNormal")
          fillNormal(data, n, mine);
        else
          fillTruncated(data, n, mine);
        return absl::OkStatus();
      } else {
        return invalid("no random numbers of type ", dtypeName(out.dtype()));
      }
    });
  }

private:
  StatefulGenerator generator;
  const std::string op;
};
LATHE_HOST_KERNEL(RandomUniform, Floats);
LATHE_HOST_KERNEL(RandomStandardNormal, Floats);
LATHE_HOST_KERNEL(TruncatedNormal, Floats);

class Integers : public HostKernel {
public:
  explicit Integers(KernelInit &init) : generator(init) {}
  absl::Status compute(KernelContext &context) override {
    Tensor low = context.input(1), high = context.input(2);
    if (low.rank() != 0)
      return invalid("minval must be 0-D, got shape ", dimsToString(low.dims()));
    if (high.rank() != 0)
      return invalid("maxval must be 0-D, got shape ", dimsToString(high.dims()));
    LATHE_TRY_VALUE(dims, dimsOf(context.input(0), "shape"));
    LATHE_TRY_VALUE(out, context.allocateOutput(0, dims));
    int64_t n = out.numElements(), from = intAt(low, 0), to = intAt(high, 0);
    if (n == 0)
      return absl::OkStatus();
    if (from >= to)
      return invalid("Need minval < maxval, got ", from, " >= ", to);
    Philox g = generator.reserve(static_cast<uint64_t>(n) * kReserved);
    uint64_t range = static_cast<uint64_t>(to) - static_cast<uint64_t>(from);
    return withIndexType(out.dtype(), [&](auto zero) -> absl::Status {
      using T = decltype(zero);
      constexpr int size = 16 / sizeof(T);
      byGroups<T, size>(out.template data<T>(), n, [&](T *place) {
        Philox::Block x = g.next();
        for (int i = 0; i < size; ++i) {
          uint64_t bits = size == 4 ? x[i] : x[2 * i] | static_cast<uint64_t>(x[2 * i + 1]) << 32;
          place[i] = static_cast<T>(static_cast<uint64_t>(from) + bits % range);
        }
      });
      return absl::OkStatus();
    });
  }

private:
  StatefulGenerator generator;
};
LATHE_HOST_KERNEL(RandomUniformInt, Integers);

/// Classes drawn from unnormalised log probabilities.
class Multinomial : public HostKernel {
public:
  explicit Multinomial(KernelInit &init) : generator(init) {}
  absl::Status compute(KernelContext &context) override {
    Tensor logits = context.input(0), number = context.input(1);
    if (logits.rank() != 2)
      return invalid("logits should be a matrix, got shape ", dimsToString(logits.dims()));
    if (number.rank() != 0)
      return invalid("num_samples should be a scalar, got shape ", dimsToString(number.dims()));
    int64_t samples = intAt(number, 0), rows = logits.dim(0), classes = logits.dim(1);
    if (samples < 0)
      return invalid("num_samples should be non-negative, got ", samples);
    if (classes == 0)
      return invalid("num_classes should be positive, got ", classes);
    LATHE_TRY_VALUE(out, context.allocateOutput(0, {rows, samples}));
    if (out.numElements() == 0)
      return absl::OkStatus();
    // a sample takes two numbers; those of a row are set aside by fours
    uint64_t aside = static_cast<uint64_t>(rows) * static_cast<uint64_t>((samples + 3) / 4 * 8);
    Numbers numbers(generator.reserve(aside * kReserved));
    std::vector<double> sums(static_cast<size_t>(classes));
    return withIndexType(out.dtype(), [&](auto zero) -> absl::Status {
      using T = decltype(zero);
      T *to = out.template data<T>();
      for (int64_t r = 0; r < rows; ++r) {
        double most = lowestOf(logits.dtype()), total = 0;
        for (int64_t j = 0; j < classes; ++j)
          if (double v = realAt(logits, r * classes + j); std::isfinite(v))
            most = std::max(most, v);
        for (int64_t j = 0; j < classes; ++j) {
          if (double v = realAt(logits, r * classes + j); std::isfinite(v))
            total += std::exp(v - most);
          sums[j] = total;
        }
        for (int64_t s = 0; s < samples; ++s) {
          double find = numbers.unit() * total;
          *to++ = static_cast<T>(std::upper_bound(sums.begin(), sums.end(), find) - sums.begin());
        }
      }
      return absl::OkStatus();
    });
  }

private:
  static double lowestOf(DType type) {
    return type == DType::Float64 ? std::numeric_limits<double>::lowest() : std::numeric_limits<float>::lowest();
  }
  StatefulGenerator generator;
};
LATHE_HOST_KERNEL(Multinomial, Multinomial);

/// A window of an image at a random place.
class Crop : public HostKernel {
public:
  explicit Crop(KernelInit &init) : generator(init) {}
  absl::Status compute(KernelContext &context) override {
    Tensor image = context.input(0), size = context.input(1);
    if (image.rank() != 3)
      return invalid("input must be 3-dimensional, got shape ", dimsToString(image.dims()));
    if (size.rank() != 1)
      return invalid("shape_t must be 1-dimensional, got shape ", dimsToString(size.dims()));
    if (size.numElements() != 2)
      return invalid("shape_t must have two elements, got shape ", dimsToString(size.dims()));
    int64_t height = intAt(size, 0), width = intAt(size, 1);
    if (height < 0 || width < 0)
      return invalid("the size of a crop must not be negative: ", height, ", ", width);
    if (image.dim(1) < width)
      return absl::FailedPreconditionError(
          absl::StrCat("width must be >= target_width: width = ", image.dim(1), ", target_width = ", width));
    if (image.dim(0) < height)
      return absl::FailedPreconditionError(
          absl::StrCat("height must be >= target_height: height = ", image.dim(0), ", target_height = ", height));
    Numbers numbers(generator.reserveNumbers(2));
    auto place = [&](int64_t room) {
      return room > 0 ? numbers.next() % static_cast<uint32_t>(room + 1) : 0;
    };
    int64_t left = place(image.dim(1) - width), top = place(image.dim(0) - height);
    LATHE_TRY_VALUE(out, context.allocateOutput(0, {height, width, image.dim(2)}));
    size_t pixel = static_cast<size_t>(image.dim(2)) * dtypeSize(image.dtype()), row = pixel * static_cast<size_t>(width);
    const char *from = static_cast<const char *>(image.data());
    char *to = static_cast<char *>(out.data());
    for (int64_t y = 0; y < height && row; ++y)
      std::memcpy(to + static_cast<size_t>(y) * row, from + static_cast<size_t>((top + y) * image.dim(1) + left) * pixel, row);
    return absl::OkStatus();
  }

private:
  StatefulGenerator generator;
};
LATHE_HOST_KERNEL(RandomCrop, Crop);

} // namespace
} // namespace lathe::rt
