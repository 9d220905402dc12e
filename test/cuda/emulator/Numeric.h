// Floating point as PTX has it: its NaN, flushing of subnormal numbers, rounding to any format in any mode.
#ifndef LATHE_TEST_CUDA_EMULATOR_NUMERIC_H
#define LATHE_TEST_CUDA_EMULATOR_NUMERIC_H

#include <cmath>
#include <cstdint>
#include <cstring>

namespace lathe::emu {

template <class To, class From>
inline To bitsTo(From v) {
  static_assert(sizeof(To) == sizeof(From), "of one size");
  To r;
  std::memcpy(&r, &v, sizeof(r));
  return r;
}

/// Results of f32 arithmetic that are no number have these bits on a device.
inline float canonical(float v) { return v != v ? bitsTo<float>(0x7fffffffu) : v; }
inline double canonical(double v) { return v; }
inline float flush(float v) {
  uint32_t b = bitsTo<uint32_t>(v);
  return bitsTo<float>((b & 0x7f800000u) ? b : b & 0x80000000u);
}
/// .sat: to [0, 1], what is no number to 0.
inline float saturate(float v) { return v >= 0 ? (v > 1 ? 1.0f : v + 0.0f) : 0.0f; }

enum class Rounding : uint8_t { Nearest, Zero, Down, Up, Away };

struct Format {
  int mantissa, exponent; ///< bits of each
};
constexpr Format HalfFormat{10, 5}, BFloatFormat{7, 8}, FloatFormat{23, 8}, DoubleFormat{52, 11};

/// Bits of magnitude * 2^scale rounded to the format; magnitude is not zero.
inline uint64_t roundTo(bool negative, uint64_t magnitude, int scale, Format f, Rounding mode) {
  int bias = (1 << (f.exponent - 1)) - 1, least = 1 - bias - f.mantissa;
  int top = 63 - __builtin_clzll(magnitude) + scale;
  int unit = top - f.mantissa > least ? top - f.mantissa : least;
  int shift = unit - scale;
  uint64_t q, half = 0;
  bool rest = false;
  if (shift <= 0) {
    q = magnitude << -shift;
  } else if (shift > 64) {
    q = 0;
    rest = true;
  } else {
    q = shift == 64 ? 0 : magnitude >> shift;
    half = magnitude >> (shift - 1) & 1;
    rest = shift > 1 && (magnitude & ((uint64_t(1) << (shift - 1)) - 1));
  }
  bool inexact = half || rest;
  switch (mode) {
  case Rounding::Nearest:
    q += half && (rest || (q & 1));
    break;
  case Rounding::Away:
    q += half;
    break;
  case Rounding::Zero:
    break;
  case Rounding::Down:
    q += negative && inexact;
    break;
  case Rounding::Up:
    q += !negative && inexact;
    break;
  }
  uint64_t bits = (static_cast<uint64_t>(unit - least) << f.mantissa) + q;
  uint64_t infinity = ((uint64_t(1) << f.exponent) - 1) << f.mantissa;
  if (bits >= infinity) {
    bool toLargest =
        mode == Rounding::Zero || (mode == Rounding::Down && !negative) || (mode == Rounding::Up && negative);
    bits = toLargest ? infinity - 1 : infinity;
  }
  return bits | static_cast<uint64_t>(negative) << (f.mantissa + f.exponent);
}

/// Bits of a double rounded to the format; NaN is 0x7fff... of it.
inline uint64_t roundDouble(double v, Format f, Rounding mode) {
  uint64_t b = bitsTo<uint64_t>(v);
  bool negative = b >> 63;
  uint64_t fraction = b & ((uint64_t(1) << 52) - 1);
  int exponent = static_cast<int>(b >> 52 & 2047);
  uint64_t infinity = ((uint64_t(1) << f.exponent) - 1) << f.mantissa;
  if (exponent == 2047) {
    if (fraction)
      return (uint64_t(1) << (f.mantissa + f.exponent)) - 1;
    return infinity | static_cast<uint64_t>(negative) << (f.mantissa + f.exponent);
  }
  if (!exponent && !fraction)
    return static_cast<uint64_t>(negative) << (f.mantissa + f.exponent);
  if (exponent)
    fraction |= uint64_t(1) << 52;
  return roundTo(negative, fraction, (exponent ? exponent : 1) - 1075, f, mode);
}

inline float halfToFloat(uint16_t v) { return static_cast<float>(bitsTo<_Float16>(v)); }
inline uint16_t floatToHalf(float v) {
  return v != v ? uint16_t(0x7fff) : bitsTo<uint16_t>(static_cast<_Float16>(v));
}
inline float bfloatToFloat(uint16_t v) { return bitsTo<float>(static_cast<uint32_t>(v) << 16); }
inline uint16_t floatToBfloat(float v) {
  uint32_t b = bitsTo<uint32_t>(v);
  uint32_t r = (b + 0x7fff + (b >> 16 & 1)) >> 16;
  return v != v ? uint16_t(0x7fff) : static_cast<uint16_t>(r);
}

/// a * b + c of numbers with at most 26 bits, rounded to odd: rounding it again to fewer bits gives what one
/// rounding gives.
inline double fmaOdd(double a, double b, double c) {
  double p = a * b, s = p + c;
  if (!std::isfinite(s))
    return s;
  double t = s - p, error = (p - (s - t)) + (c - t);
  uint64_t bits = bitsTo<uint64_t>(s);
  if (error != 0 && !(bits & 1)) {
    // the neighbour on the side of the exact sum is odd
    bool away = (error > 0) == (s > 0);
    bits += away ? 1 : uint64_t(-1);
  }
  return bitsTo<double>(bits);
}

} // namespace lathe::emu

#endif
