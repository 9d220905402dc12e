// The element types of tensors, under TensorFlow's numbers, with their names and sizes.
#ifndef LATHE_BASE_DTYPE_H
#define LATHE_BASE_DTYPE_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace lathe {

/// Element types; the values are those of TensorFlow's DataType enumeration (without the reference bit).
enum class DType : int32_t {
  Invalid = 0,
  Float32 = 1,
  Float64 = 2,
  Int32 = 3,
  UInt8 = 4,
  Int16 = 5,
  Int8 = 6,
  String = 7,
  Complex64 = 8,
  Int64 = 9,
  Bool = 10,
  QInt8 = 11,
  QUInt8 = 12,
  QInt32 = 13,
  BFloat16 = 14,
  QInt16 = 15,
  QUInt16 = 16,
  UInt16 = 17,
  Complex128 = 18,
  Float16 = 19,
  Resource = 20,
  Variant = 21,
  UInt32 = 22,
  UInt64 = 23,
  Float8E5M2 = 24,
  Float8E4M3FN = 25,
  Int4 = 29,
  UInt4 = 30,
};

/// Bytes of one element in memory: 4-bit types take a byte each, strings, resources and variants 0.
size_t dtypeSize(DType type);

/// TensorFlow's (and numpy's) name, such as "float32"; "invalid" for a number that is no type.
const char *dtypeName(DType type);

/// The type of a name: the names of dtypeName and TensorFlow's short forms ("float", "double", "half").
std::optional<DType> parseDType(std::string_view name);

/// The type of TensorFlow's number; a reference type (number + 100) gives the type it refers to.
std::optional<DType> dtypeFromNumber(int64_t number);

/// The integer type that carries a quantised type's values; other types give themselves.
DType dtypeCarrier(DType type);

bool isFloating(DType type);
bool isComplex(DType type);
/// Integers of any width and sign, neither bool nor quantised.
bool isInteger(DType type);
bool isSignedInteger(DType type);
bool isQuantized(DType type);

} // namespace lathe

#endif
