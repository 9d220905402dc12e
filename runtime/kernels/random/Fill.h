// Tensors full of random numbers, as TensorFlow's kernels take them from a generator.
#ifndef LATHE_RUNTIME_KERNELS_RANDOM_FILL_H
#define LATHE_RUNTIME_KERNELS_RANDOM_FILL_H

#include "runtime/kernels/random/Generator.h"

namespace lathe::rt {

/// Blocks set aside for an element, as TensorFlow's kernels do whatever the distribution needs.
constexpr uint64_t kReserved = 256;

template <typename T>
constexpr bool isReal =
    std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

/// 23 random bits as a float in [0, 1).
inline float unitFloat(uint32_t word) { return detail::bitCast<float>((word & 0x7fffffu) | 0x3f800000u) - 1.0f; }

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
inline std::array<float, 2> normalFloats(uint32_t a, uint32_t b) {
  float u = std::max(unitFloat(a), 1.0e-7f), angle = static_cast<float>(2 * M_PI) * unitFloat(b);
  float length = std::sqrt(-2.0f * std::log(u));
  return {std::sin(angle) * length, std::cos(angle) * length};
}
inline std::array<double, 2> normalDoubles(const Philox::Block &x) {
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
    int made = 0;
    while (made < size) {
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

/// All bits random. Works for types of 32 and 64 bits.
template <typename T>
void fillBits(T *data, int64_t n, Philox g) {
  constexpr int size = 16 / sizeof(T);
  byGroups<T, size>(data, n, [&](T *to) {
    Philox::Block x = g.next();
    for (int i = 0; i < size; ++i)
      to[i] = static_cast<T>(size == 4 ? x[i] : x[2 * i] | static_cast<uint64_t>(x[2 * i + 1]) << 32);
  });
}

/// Integers in [from, to), which is not empty; the numbers are of T in 64 bits.
template <typename T>
void fillIntegers(T *data, int64_t n, const Philox &g, uint64_t from, uint64_t to) {
  using Bits = std::make_unsigned_t<T>;
  const uint64_t range = to - from;
  fillBits(data, n, g);
  for (int64_t i = 0; i < n; ++i)
    data[i] = static_cast<T>(from + static_cast<Bits>(data[i]) % range);
}

} // namespace lathe::rt

#endif
