// TensorFlow's generators as its CPU kernels draw from them.
#ifndef LATHE_RUNTIME_KERNELS_RANDOM_GENERATOR_H
#define LATHE_RUNTIME_KERNELS_RANDOM_GENERATOR_H

#include "base/Philox.h"
#include "runtime/kernels/Common.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <random>

namespace lathe::rt {

/// The generator of a stateful op: every execution reserves its numbers, so executions never share any.
class StatefulGenerator {
public:
  explicit StatefulGenerator(KernelInit &init) : StatefulGenerator(init.attr<int64_t>("seed"), init.attr<int64_t>("seed2")) {}
  StatefulGenerator(int64_t seed, int64_t seed2) : generator(Philox::fromSeeds(0, 0)) {
    if (!seed && !seed2) {
      // both zero asks for numbers that differ from run to run
      std::random_device device;
      seed = static_cast<int64_t>(device()) << 32 | device();
      seed2 = static_cast<int64_t>(device()) << 32 | device();
    }
    generator = Philox::fromSeeds(static_cast<uint64_t>(seed), static_cast<uint64_t>(seed2));
  }

  /// A generator for the next `blocks` blocks of four numbers.
  Philox reserve(uint64_t blocks) {
    std::lock_guard<std::mutex> lock(mutex);
    Philox mine = generator;
    generator.skip(blocks);
    return mine;
  }
  /// The same for single 32-bit numbers.
  Philox reserveNumbers(uint64_t numbers) { return reserve((numbers + 3) / 4); }

private:
  std::mutex mutex;
  Philox generator;
};

/// 52 random bits as a double in [0, 1).
inline double unitDouble(uint32_t high, uint32_t low) {
  uint64_t bits = uint64_t(1023) << 52 | static_cast<uint64_t>(high & 0xfffffu) << 32 | low;
  return detail::bitCast<double>(bits) - 1.0;
}

/// Single numbers out of a generator's blocks.
class Numbers {
public:
  explicit Numbers(Philox generator) : generator(generator) {}
  uint32_t next() {
    if (used == 4) {
      block = generator.next();
      used = 0;
    }
    return block[used++];
  }
  uint64_t next64() {
    uint64_t low = next();
    return low | static_cast<uint64_t>(next()) << 32;
  }
  double unit() {
    uint32_t high = next();
    return unitDouble(high, next());
  }
  /// Uniform in [0, n), without bias; n is not 0.
  uint64_t below(uint64_t n) {
    if ((n & (n - 1)) == 0)
      return next64() & (n - 1);
    uint64_t rejected = ~uint64_t(0) % n + 1, v;
    do
      v = next64();
    while (v < rejected);
    return v % n;
  }

private:
  Philox generator;
  Philox::Block block{};
  int used = 4;
};

/// Doubles by pairs, each pair read from its end, as TensorFlow's sampling loops take them.
class PairedDoubles {
public:
  explicit PairedDoubles(Philox &generator) : generator(generator) {}
  double uniform() {
    if (uniformsLeft == 0) {
      Philox::Block b = generator.next();
      uniforms[0] = unitDouble(b[0], b[1]);
      uniforms[1] = unitDouble(b[2], b[3]);
      uniformsLeft = 2;
    }
    return uniforms[--uniformsLeft];
  }
  double normal() {
    if (normalsLeft == 0) {
      Philox::Block b = generator.next();
      double u = std::max(unitDouble(b[0], b[1]), 1e-7), angle = 2 * M_PI * unitDouble(b[2], b[3]);
      double length = std::sqrt(-2 * std::log(u));
      normals[0] = std::sin(angle) * length;
      normals[1] = std::cos(angle) * length;
      normalsLeft = 2;
    }
    return normals[--normalsLeft];
  }

private:
  Philox &generator;
  double uniforms[2], normals[2];
  int uniformsLeft = 0, normalsLeft = 0;
};

/// Permutes [first, last) with `draw(n)` giving a number below n.
template <typename Iterator, typename Draw>
void shuffle(Iterator first, Iterator last, Draw draw) {
  for (auto i = first; last - i > 1; ++i)
    std::iter_swap(i, i + draw(static_cast<uint32_t>(last - i)));
}

} // namespace lathe::rt

#endif
