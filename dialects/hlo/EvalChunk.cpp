// Element access of the evaluator: any element type to double, int64_t or complex<double> and back.
#include "dialects/hlo/Eval.h"

#include "base/Float.h"

#include <cmath>

namespace lathe::hlo::eval {

Kind kindOf(DType type) {
  if (isComplex(type))
    return Kind::Complex;
  return isFloating(type) ? Kind::Float : Kind::Int;
}

IntInfo intInfo(DType type) {
  switch (dtypeCarrier(type)) {
  case DType::Bool: return {1, false};
  case DType::Int4: return {4, true};
  case DType::UInt4: return {4, false};
  case DType::Int8: return {8, true};
  case DType::UInt8: return {8, false};
  case DType::Int16: return {16, true};
  case DType::UInt16: return {16, false};
  case DType::Int32: return {32, true};
  case DType::UInt32: return {32, false};
  case DType::UInt64: return {64, false};
  default: return {64, true};
  }
}

template <typename From, typename To>
static void copyAs(const void *from, int64_t count, To *to) {
  const From *values = static_cast<const From *>(from);
  for (int64_t i = 0; i < count; ++i)
    to[i] = static_cast<To>(values[i]);
}

// float to a narrow type is rounded once more after double to float; odd rounding of the first step keeps the result
// that of one rounding.
static float toFloatOdd(double value) {
  float f = static_cast<float>(value);
  if (static_cast<double>(f) == value || !std::isfinite(value) || !std::isfinite(f))
    return f;
  // the neighbour whose last bit is set lies on the same side of every narrow midpoint as the value
  uint32_t bits = ::lathe::detail::bitCast<uint32_t>(f);
  if (bits & 1)
    return f;
  bool magnitudeTooBig = std::fabs(static_cast<double>(f)) > std::fabs(value);
  return ::lathe::detail::bitCast<float>(magnitudeTooBig ? bits - 1 : bits + 1);
}

void loadFloats(DType type, const void *from, int64_t count, double *to) {
  switch (type) {
  case DType::Float32: return copyAs<float>(from, count, to);
  case DType::Float64: return copyAs<double>(from, count, to);
  case DType::Float16:
    for (int64_t i = 0; i < count; ++i)
      to[i] = halfToFloat(static_cast<const uint16_t *>(from)[i]);
    return;
  case DType::BFloat16:
    for (int64_t i = 0; i < count; ++i)
      to[i] = bfloat16ToFloat(static_cast<const uint16_t *>(from)[i]);
    return;
  case DType::Float8E5M2:
    for (int64_t i = 0; i < count; ++i)
      to[i] = f8E5M2ToFloat(static_cast<const uint8_t *>(from)[i]);
    return;
  case DType::Float8E4M3FN:
    for (int64_t i = 0; i < count; ++i)
      to[i] = f8E4M3FNToFloat(static_cast<const uint8_t *>(from)[i]);
    return;
  default: return;
  }
}

void storeFloats(DType type, const double *from, int64_t count, void *to) {
  switch (type) {
  case DType::Float32: return copyAs<double>(from, count, static_cast<float *>(to));
  case DType::Float64: return copyAs<double>(from, count, static_cast<double *>(to));
  case DType::Float16:
    for (int64_t i = 0; i < count; ++i)
      static_cast<uint16_t *>(to)[i] = floatToHalf(toFloatOdd(from[i]));
    return;
  case DType::BFloat16:
    for (int64_t i = 0; i < count; ++i)
      static_cast<uint16_t *>(to)[i] = floatToBFloat16(toFloatOdd(from[i]));
    return;
  case DType::Float8E5M2:
    for (int64_t i = 0; i < count; ++i)
      static_cast<uint8_t *>(to)[i] = floatToF8E5M2(toFloatOdd(from[i]));
    return;
  case DType::Float8E4M3FN:
    for (int64_t i = 0; i < count; ++i)
      static_cast<uint8_t *>(to)[i] = floatToF8E4M3FN(toFloatOdd(from[i]));
    return;
  default: return;
  }
}

void roundFloats(DType type, double *values, int64_t count) {
  switch (type) {
  case DType::Float64: return;
  case DType::Float32:
    for (int64_t i = 0; i < count; ++i)
      values[i] = static_cast<float>(values[i]);
    return;
  case DType::Float16:
    for (int64_t i = 0; i < count; ++i)
      values[i] = halfToFloat(floatToHalf(toFloatOdd(values[i])));
    return;
  case DType::BFloat16:
    for (int64_t i = 0; i < count; ++i)
      values[i] = bfloat16ToFloat(floatToBFloat16(toFloatOdd(values[i])));
    return;
  case DType::Float8E5M2:
    for (int64_t i = 0; i < count; ++i)
      values[i] = f8E5M2ToFloat(floatToF8E5M2(toFloatOdd(values[i])));
    return;
  case DType::Float8E4M3FN:
    for (int64_t i = 0; i < count; ++i)
      values[i] = f8E4M3FNToFloat(floatToF8E4M3FN(toFloatOdd(values[i])));
    return;
  default: return;
  }
}

void loadInts(DType type, const void *from, int64_t count, int64_t *to) {
  switch (dtypeCarrier(type)) {
  case DType::Bool:
    for (int64_t i = 0; i < count; ++i)
      to[i] = static_cast<const uint8_t *>(from)[i] != 0;
    return;
  case DType::Int4:
  case DType::Int8: return copyAs<int8_t>(from, count, to);
  case DType::UInt4:
  case DType::UInt8: return copyAs<uint8_t>(from, count, to);
  case DType::Int16: return copyAs<int16_t>(from, count, to);
  case DType::UInt16: return copyAs<uint16_t>(from, count, to);
  case DType::Int32: return copyAs<int32_t>(from, count, to);
  case DType::UInt32: return copyAs<uint32_t>(from, count, to);
  case DType::Int64:
  case DType::UInt64: return copyAs<int64_t>(from, count, to);
  default: return;
  }
}

void wrapInts(DType type, int64_t *values, int64_t count) {
  switch (dtypeCarrier(type)) {
  case DType::Bool:
    for (int64_t i = 0; i < count; ++i)
      values[i] = values[i] & 1;
    return;
  case DType::Int4:
    for (int64_t i = 0; i < count; ++i)
      values[i] = static_cast<int64_t>(static_cast<uint64_t>(values[i]) << 60) >> 60;
    return;
  case DType::UInt4:
    for (int64_t i = 0; i < count; ++i)
      values[i] &= 15;
    return;
  case DType::Int8:
    for (int64_t i = 0; i < count; ++i)
      values[i] = static_cast<int8_t>(values[i]);
    return;
  case DType::UInt8:
    for (int64_t i = 0; i < count; ++i)
      values[i] = static_cast<uint8_t>(values[i]);
    return;
  case DType::Int16:
    for (int64_t i = 0; i < count; ++i)
      values[i] = static_cast<int16_t>(values[i]);
    return;
  case DType::UInt16:
    for (int64_t i = 0; i < count; ++i)
      values[i] = static_cast<uint16_t>(values[i]);
    return;
  case DType::Int32:
    for (int64_t i = 0; i < count; ++i)
      values[i] = static_cast<int32_t>(values[i]);
    return;
  case DType::UInt32:
    for (int64_t i = 0; i < count; ++i)
      values[i] = static_cast<uint32_t>(values[i]);
    return;
  default: return;
  }
}

void storeInts(DType type, const int64_t *from, int64_t count, void *to) {
  switch (dtypeCarrier(type)) {
  case DType::Bool:
    for (int64_t i = 0; i < count; ++i)
      static_cast<uint8_t *>(to)[i] = from[i] & 1;
    return;
  case DType::Int4:
    for (int64_t i = 0; i < count; ++i)
      static_cast<int8_t *>(to)[i] = static_cast<int8_t>(static_cast<int8_t>(static_cast<uint8_t>(from[i]) << 4) >> 4);
    return;
  case DType::UInt4:
    for (int64_t i = 0; i < count; ++i)
      static_cast<uint8_t *>(to)[i] = from[i] & 15;
    return;
  case DType::Int8:
  case DType::UInt8: return copyAs<int64_t>(from, count, static_cast<uint8_t *>(to));
  case DType::Int16:
  case DType::UInt16: return copyAs<int64_t>(from, count, static_cast<uint16_t *>(to));
  case DType::Int32:
  case DType::UInt32: return copyAs<int64_t>(from, count, static_cast<uint32_t *>(to));
  case DType::Int64:
  case DType::UInt64: return copyAs<int64_t>(from, count, static_cast<int64_t *>(to));
  default: return;
  }
}

void loadComplexes(DType type, const void *from, int64_t count, Complex *to) {
  if (type == DType::Complex64)
    for (int64_t i = 0; i < count; ++i)
      to[i] = static_cast<const std::complex<float> *>(from)[i];
  else
    copyAs<Complex>(from, count, to);
}
void storeComplexes(DType type, const Complex *from, int64_t count, void *to) {
  if (type == DType::Complex64)
    copyAs<Complex>(from, count, static_cast<std::complex<float> *>(to));
  else
    copyAs<Complex>(from, count, static_cast<Complex *>(to));
}
void roundComplexes(DType type, Complex *values, int64_t count) {
  if (type == DType::Complex64)
    for (int64_t i = 0; i < count; ++i)
      values[i] = Complex(static_cast<float>(values[i].real()), static_cast<float>(values[i].imag()));
}

template <>
std::vector<double> loadAs<double>(const Tensor &t) {
  std::vector<double> values(t.numElements());
  loadFloats(t.dtype(), t.data(), t.numElements(), values.data());
  return values;
}
template <>
std::vector<int64_t> loadAs<int64_t>(const Tensor &t) {
  std::vector<int64_t> values(t.numElements());
  loadInts(t.dtype(), t.data(), t.numElements(), values.data());
  return values;
}
template <>
std::vector<Complex> loadAs<Complex>(const Tensor &t) {
  std::vector<Complex> values(t.numElements());
  loadComplexes(t.dtype(), t.data(), t.numElements(), values.data());
  return values;
}
template <>
void storeAs<double>(DType type, const double *from, int64_t count, void *to) {
  storeFloats(type, from, count, to);
}
template <>
void storeAs<int64_t>(DType type, const int64_t *from, int64_t count, void *to) {
  storeInts(type, from, count, to);
}
template <>
void storeAs<Complex>(DType type, const Complex *from, int64_t count, void *to) {
  storeComplexes(type, from, count, to);
}

std::vector<double> loadFloats(const Tensor &t) { return loadAs<double>(t); }
std::vector<int64_t> loadInts(const Tensor &t) { return loadAs<int64_t>(t); }
std::vector<Complex> loadComplexes(const Tensor &t) { return loadAs<Complex>(t); }

void Chunk::reset(DType newType) {
  type = newType;
  switch (kindOf(type)) {
  case Kind::Float: f.resize(chunkSize); break;
  case Kind::Int: i.resize(chunkSize); break;
  case Kind::Complex: c.resize(chunkSize); break;
  }
}
void Chunk::load(const void *from, int64_t n) {
  switch (kindOf(type)) {
  case Kind::Float: return loadFloats(type, from, n, f.data());
  case Kind::Int: return loadInts(type, from, n, i.data());
  case Kind::Complex: return loadComplexes(type, from, n, c.data());
  }
}
void Chunk::store(void *to, int64_t n) const {
  switch (kindOf(type)) {
  case Kind::Float: return storeFloats(type, f.data(), n, to);
  case Kind::Int: return storeInts(type, i.data(), n, to);
  case Kind::Complex: return storeComplexes(type, c.data(), n, to);
  }
}

} // namespace lathe::hlo::eval
