#include "base/Hash.h"

#include <cstring>
#include <utility>

namespace lathe {

namespace {

constexpr uint64_t k0 = 0xc3a5c85c97cb3127u, k1 = 0xb492b66fbe98f273u, k2 = 0x9ae16a3b2f90404fu;
constexpr uint64_t kMurmur = 0xc6a4a7935bd1e995u;

uint64_t load64(const char *p) {
  uint64_t v;
  std::memcpy(&v, p, 8);
  return v;
}
uint64_t load32(const char *p) {
  uint32_t v;
  std::memcpy(&v, p, 4);
  return v;
}
uint64_t rotate(uint64_t v, int right) { return (v >> right) | (v << (64 - right)); }
uint64_t shiftMix(uint64_t v) { return v ^ (v >> 47); }

uint64_t mix(uint64_t u, uint64_t v, uint64_t mul) {
  uint64_t a = shiftMix((u ^ v) * mul);
  return shiftMix((v ^ a) * mul) * mul;
}

uint64_t upTo16(const char *s, size_t n) {
  uint64_t mul = k2 + n * 2;
  if (n >= 8) {
    uint64_t a = load64(s) + k2, b = load64(s + n - 8);
    return mix(rotate(b, 37) * mul + a, (rotate(a, 25) + b) * mul, mul);
  }
  if (n >= 4)
    return mix(n + (load32(s) << 3), load32(s + n - 4), mul);
  if (n == 0)
    return k2;
  auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(s[i])); };
  uint32_t y = byte(0) + (byte(n >> 1) << 8), z = static_cast<uint32_t>(n) + (byte(n - 1) << 2);
  return shiftMix(y * k2 ^ z * k0) * k2;
}

uint64_t upTo32(const char *s, size_t n) {
  uint64_t mul = k2 + n * 2;
  uint64_t a = load64(s) * k1, b = load64(s + 8), c = load64(s + n - 8) * mul, d = load64(s + n - 16) * k2;
  return mix(rotate(a + b, 43) + rotate(c, 30) + d, a + rotate(b + k2, 18) + c, mul);
}

uint64_t upTo64(const char *s, size_t n) {
  uint64_t mul = k2 + n * 2;
  uint64_t a = load64(s) * k2, b = load64(s + 8), c = load64(s + n - 8) * mul, d = load64(s + n - 16) * k2;
  uint64_t y = rotate(a + b, 43) + rotate(c, 30) + d;
  uint64_t z = mix(y, a + rotate(b + k2, 18) + c, mul);
  uint64_t e = load64(s + 16) * mul, f = load64(s + 24);
  uint64_t g = (y + load64(s + n - 32)) * mul, h = (z + load64(s + n - 24)) * mul;
  return mix(rotate(e + f, 43) + rotate(g, 30) + h, e + rotate(f + a, 18) + g, mul);
}

using Pair = std::pair<uint64_t, uint64_t>;

Pair weakMix(const char *s, uint64_t a, uint64_t b) {
  uint64_t w = load64(s), x = load64(s + 8), y = load64(s + 16), z = load64(s + 24);
  a += w;
  b = rotate(b + a + z, 21);
  uint64_t c = a;
  a += x + y;
  b += rotate(a, 44);
  return {a + z, b + c};
}

} // namespace

uint64_t fingerprint64(std::string_view bytes) {
  const char *s = bytes.data();
  size_t n = bytes.size();
  if (n <= 16)
    return upTo16(s, n);
  if (n <= 32)
    return upTo32(s, n);
  if (n <= 64)
    return upTo64(s, n);
  uint64_t x = 81, y = 81 * k1 + 113, z = shiftMix(y * k2 + 113) * k2;
  Pair v{0, 0}, w{0, 0};
  x = x * k2 + load64(s);
  const char *end = s + ((n - 1) / 64) * 64, *last = end + ((n - 1) & 63) - 63;
  do {
    x = rotate(x + y + v.first + load64(s + 8), 37) * k1;
    y = rotate(y + v.second + load64(s + 48), 42) * k1;
    x ^= w.second;
    y += v.first + load64(s + 40);
    z = rotate(z + w.first, 33) * k1;
    v = weakMix(s, v.second * k1, x + w.first);
    w = weakMix(s + 32, z + w.second, y + load64(s + 16));
    std::swap(z, x);
    s += 64;
  } while (s != end);
  uint64_t mul = k1 + ((z & 0xff) << 1);
  s = last;
  w.first += (n - 1) & 63;
  v.first += w.first;
  w.first += v.first;
  x = rotate(x + y + v.first + load64(s + 8), 37) * mul;
  y = rotate(y + v.second + load64(s + 48), 42) * mul;
  x ^= w.second * 9;
  y += v.first * 9 + load64(s + 40);
  z = rotate(z + w.first, 33) * mul;
  v = weakMix(s, v.second * mul, x + w.first);
  w = weakMix(s + 32, z + w.second, y + load64(s + 16));
  std::swap(z, x);
  return mix(mix(v.first, w.first, mul) + shiftMix(y) * k0 + z, mix(v.second, w.second, mul) + x, mul);
}

uint64_t fingerprintCat64(uint64_t a, uint64_t b) {
  uint64_t result = a ^ kMurmur;
  result ^= shiftMix(b * kMurmur) * kMurmur;
  result *= kMurmur;
  result = shiftMix(result) * kMurmur;
  return shiftMix(result);
}

uint64_t murmur64(std::string_view bytes, uint64_t seed) {
  const char *s = bytes.data();
  size_t n = bytes.size();
  uint64_t h = seed ^ (n * kMurmur);
  for (; n >= 8; n -= 8, s += 8) {
    uint64_t k = shiftMix(load64(s) * kMurmur) * kMurmur;
    h = (h ^ k) * kMurmur;
  }
  if (n) {
    for (size_t i = n; i-- > 0;)
      h ^= static_cast<uint64_t>(static_cast<uint8_t>(s[i])) << (8 * i);
    h *= kMurmur;
  }
  h = shiftMix(h) * kMurmur;
  return shiftMix(h);
}

uint64_t sipHash24(std::array<uint64_t, 2> key, std::string_view bytes) {
  uint64_t v0 = key[0] ^ 0x736f6d6570736575u, v1 = key[1] ^ 0x646f72616e646f6du;
  uint64_t v2 = key[0] ^ 0x6c7967656e657261u, v3 = key[1] ^ 0x7465646279746573u;
  auto round = [&] {
    v0 += v1, v2 += v3;
    v1 = rotate(v1, 64 - 13) ^ v0, v3 = rotate(v3, 64 - 16) ^ v2;
    v0 = rotate(v0, 32);
    v2 += v1, v0 += v3;
    v1 = rotate(v1, 64 - 17) ^ v2, v3 = rotate(v3, 64 - 21) ^ v0;
    v2 = rotate(v2, 32);
  };
  auto absorb = [&](uint64_t m) {
    v3 ^= m;
    round(), round();
    v0 ^= m;
  };
  const char *s = bytes.data();
  size_t n = bytes.size();
  for (; n >= 8; n -= 8, s += 8)
    absorb(load64(s));
  uint64_t last = static_cast<uint64_t>(bytes.size()) << 56;
  for (size_t i = 0; i < n; ++i)
    last |= static_cast<uint64_t>(static_cast<uint8_t>(s[i])) << (8 * i);
  absorb(last);
  v2 ^= 0xff;
  for (int i = 0; i < 4; ++i)
    round();
  return v0 ^ v1 ^ v2 ^ v3;
}

} // namespace lathe
