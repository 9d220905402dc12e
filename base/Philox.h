// The Philox 4x32-10 counter-based generator with TensorFlow's conventions for keys, counters and skipping.
#ifndef LATHE_BASE_PHILOX_H
#define LATHE_BASE_PHILOX_H

#include <array>
#include <cstdint>

namespace lathe {

class Philox {
public:
  using Block = std::array<uint32_t, 4>;
  using Key = std::array<uint32_t, 2>;

  Philox(Key key, Block counter) : key(key), counter(counter) {}

  /// The generator of an op with attributes `seed` and `seed2`.
  static Philox fromSeeds(uint64_t seed, uint64_t seed2) {
    return {{lo(seed), hi(seed)}, {0, 0, lo(seed2), hi(seed2)}};
  }

  /// The generator of a stateless op with seed tensor [seed0, seed1]: one block mixes the seeds into key and counter.
  static Philox fromStatelessSeed(uint64_t seed0, uint64_t seed1) {
    Block mix = Philox({0x3ec8f720u, 0x02461e29u}, {lo(seed0), hi(seed0), lo(seed1), hi(seed1)}).peek();
    return {{mix[0], mix[1]}, {0, 0, mix[2], mix[3]}};
  }

  /// The next four numbers.
  Block next() {
    Block block = peek();
    skip(1);
    return block;
  }

  Block peek() const {
    Block c = counter;
    Key k = key;
    for (int round = 0; round < 10; ++round) {
      uint64_t p0 = static_cast<uint64_t>(c[0]) * 0xD2511F53u;
      uint64_t p1 = static_cast<uint64_t>(c[2]) * 0xCD9E8D57u;
      c = {hi(p1) ^ c[1] ^ k[0], lo(p1), hi(p0) ^ c[3] ^ k[1], lo(p0)};
      k[0] += 0x9E3779B9u;
      k[1] += 0xBB67AE85u;
    }
    return c;
  }

  /// Passes over `blocks` blocks of four numbers.
  void skip(uint64_t blocks) {
    uint64_t low = lo64() + blocks;
    bool carry = low < blocks;
    counter[0] = lo(low);
    counter[1] = hi(low);
    if (carry && ++counter[2] == 0)
      ++counter[3];
  }

  const Key &keyWords() const { return key; }
  const Block &counterWords() const { return counter; }

private:
  static uint32_t lo(uint64_t v) { return static_cast<uint32_t>(v); }
  static uint32_t hi(uint64_t v) { return static_cast<uint32_t>(v >> 32); }
  uint64_t lo64() const { return counter[0] | static_cast<uint64_t>(counter[1]) << 32; }

  Key key;
  Block counter;
};

} // namespace lathe

#endif
