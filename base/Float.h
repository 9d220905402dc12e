// Conversions between float and the small floating types, by integer operations, round to nearest even.
#ifndef LATHE_BASE_FLOAT_H
#define LATHE_BASE_FLOAT_H

#include <cstdint>
#include <cstring>

namespace lathe {

namespace detail {

template <typename To, typename From>
inline To bitCast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

/// x / 2^shift, ties to even; shift in 1..31.
inline uint32_t roundingShift(uint32_t x, int shift) {
  uint32_t half = (1u << (shift - 1)) - 1;
  return (x + half + ((x >> shift) & 1)) >> shift;
}

/// One sign bit, E exponent bits, M mantissa bits, bias 2^(E-1)-1. Finite means: no infinity, only all ones is NaN.
template <int E, int M, bool Finite>
inline uint32_t encodeSmall(float value) {
  constexpr int bias = (1 << (E - 1)) - 1;
  constexpr uint32_t top = ((1u << E) - 1) << M;
  constexpr uint32_t overflow = Finite ? (top | ((1u << M) - 1)) : top;
  constexpr uint32_t nan = Finite ? overflow : top | (1u << (M - 1));
  uint32_t bits = bitCast<uint32_t>(value);
  uint32_t sign = (bits >> 31) << (E + M);
  bits &= 0x7fffffffu;
  if (bits > 0x7f800000u)
    return sign | nan;
  if (bits == 0x7f800000u)
    return sign | overflow;
  int exponent = static_cast<int>(bits >> 23) - 127 + bias;
  uint32_t mantissa = bits & 0x7fffffu;
  if (exponent >= (1 << E))
    return sign | overflow;
  uint32_t result;
  if (exponent >= 1) {
    result = roundingShift((static_cast<uint32_t>(exponent) << 23) | mantissa, 23 - M);
  } else {
    int shift = 23 - M + 1 - exponent;
    result = shift > 25 ? 0 : roundingShift(mantissa | 0x800000u, shift);
  }
  return sign | (result > overflow ? overflow : result);
}

template <int E, int M, bool Finite>
inline float decodeSmall(uint32_t bits) {
  constexpr int bias = (1 << (E - 1)) - 1;
  constexpr uint32_t top = (1u << E) - 1;
  uint32_t sign = (bits >> (E + M)) << 31;
  uint32_t exponent = (bits >> M) & top;
  uint32_t mantissa = bits & ((1u << M) - 1);
  if (Finite ? (exponent == top && mantissa == (1u << M) - 1) : exponent == top)
    return bitCast<float>(sign | 0x7f800000u | (Finite ? 0x400000u : mantissa << (23 - M)));
  if (exponent == 0) {
    // exact: mantissa below 2^M times a power of two within float's normal range
    float magnitude = static_cast<float>(mantissa) * bitCast<float>(static_cast<uint32_t>(127 + 1 - bias - M) << 23);
    return bitCast<float>(bitCast<uint32_t>(magnitude) | sign);
  }
  return bitCast<float>(sign | ((exponent - bias + 127) << 23) | (mantissa << (23 - M)));
}

} // namespace detail

inline uint16_t floatToHalf(float v) { return static_cast<uint16_t>(detail::encodeSmall<5, 10, false>(v)); }
inline float halfToFloat(uint16_t v) { return detail::decodeSmall<5, 10, false>(v); }

inline uint16_t floatToBFloat16(float v) {
  uint32_t bits = detail::bitCast<uint32_t>(v);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
inline float bfloat16ToFloat(uint16_t v) { return detail::bitCast<float>(static_cast<uint32_t>(v) << 16); }

inline uint8_t floatToF8E5M2(float v) { return static_cast<uint8_t>(detail::encodeSmall<5, 2, false>(v)); }
inline float f8E5M2ToFloat(uint8_t v) { return detail::decodeSmall<5, 2, false>(v); }

/// Values beyond 448 (after rounding) become NaN: the type has no infinity.
inline uint8_t floatToF8E4M3FN(float v) { return static_cast<uint8_t>(detail::encodeSmall<4, 3, true>(v)); }
inline float f8E4M3FNToFloat(uint8_t v) { return detail::decodeSmall<4, 3, true>(v); }

} // namespace lathe

#endif
