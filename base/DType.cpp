// One table of the element types; everything about them is read from it.
#include "base/DType.h"

namespace lathe {
namespace {

enum Kind : uint8_t { Float, Complex, Signed, Unsigned, Quantized, Other };

struct Row {
  DType type;
  const char *name;
  const char *alias;
  uint8_t size;
  Kind kind;
};

// Types of one byte that are fed, fetched, kept and handed on by their number, and that nothing computes with.
constexpr DType carried(int32_t number) { return static_cast<DType>(number); }

constexpr Row kRows[] = {
    {DType::Float32, "float32", "float", 4, Float},
    {DType::Float64, "float64", "double", 8, Float},
    {DType::Int32, "int32", nullptr, 4, Signed},
    {DType::UInt8, "uint8", nullptr, 1, Unsigned},
    {DType::Int16, "int16", nullptr, 2, Signed},
    {DType::Int8, "int8", nullptr, 1, Signed},
    {DType::String, "string", "object", 0, Other},
    {DType::Complex64, "complex64", nullptr, 8, Complex},
    {DType::Int64, "int64", nullptr, 8, Signed},
    {DType::Bool, "bool", nullptr, 1, Other},
    {DType::QInt8, "qint8", nullptr, 1, Quantized},
    {DType::QUInt8, "quint8", nullptr, 1, Quantized},
    {DType::QInt32, "qint32", nullptr, 4, Quantized},
    {DType::BFloat16, "bfloat16", nullptr, 2, Float},
    {DType::QInt16, "qint16", nullptr, 2, Quantized},
    {DType::QUInt16, "quint16", nullptr, 2, Quantized},
    {DType::UInt16, "uint16", nullptr, 2, Unsigned},
    {DType::Complex128, "complex128", nullptr, 16, Complex},
    {DType::Float16, "float16", "half", 2, Float},
    {DType::Resource, "resource", nullptr, 0, Other},
    {DType::Variant, "variant", nullptr, 0, Other},
    {DType::UInt32, "uint32", nullptr, 4, Unsigned},
    {DType::UInt64, "uint64", nullptr, 8, Unsigned},
    {DType::Float8E5M2, "float8_e5m2", nullptr, 1, Float},
    {DType::Float8E4M3FN, "float8_e4m3fn", nullptr, 1, Float},
    {DType::Int4, "int4", nullptr, 1, Signed},
    {DType::UInt4, "uint4", nullptr, 1, Unsigned},
    {carried(26), "float8_e4m3fnuz", nullptr, 1, Other},
    {carried(27), "float8_e4m3b11fnuz", nullptr, 1, Other},
    {carried(28), "float8_e5m2fnuz", nullptr, 1, Other},
};

const Row *find(DType type) {
  for (const Row &row : kRows)
    if (row.type == type)
      return &row;
  return nullptr;
}

bool isKind(DType type, Kind kind) {
  const Row *row = find(type);
  return row && row->kind == kind;
}

} // namespace

size_t dtypeSize(DType type) {
  const Row *row = find(type);
  return row ? row->size : 0;
}

const char *dtypeName(DType type) {
  const Row *row = find(type);
  return row ? row->name : "invalid";
}

std::optional<DType> parseDType(std::string_view name) {
  for (const Row &row : kRows)
    if (name == row.name || (row.alias && name == row.alias))
      return row.type;
  return std::nullopt;
}

std::optional<DType> dtypeFromNumber(int64_t number) {
  if (number > 100 && number < 200)
    number -= 100;
  for (const Row &row : kRows)
    if (static_cast<int64_t>(row.type) == number)
      return row.type;
  return std::nullopt;
}

DType dtypeCarrier(DType type) {
  switch (type) {
  case DType::QInt8:
    return DType::Int8;
  case DType::QUInt8:
    return DType::UInt8;
  case DType::QInt16:
    return DType::Int16;
  case DType::QUInt16:
    return DType::UInt16;
  case DType::QInt32:
    return DType::Int32;
  default:
    return type;
  }
}

bool isFloating(DType type) { return isKind(type, Float); }
bool isComplex(DType type) { return isKind(type, Complex); }
bool isInteger(DType type) { return isKind(type, Signed) || isKind(type, Unsigned); }
bool isSignedInteger(DType type) { return isKind(type, Signed); }
bool isQuantized(DType type) { return isKind(type, Quantized); }

} // namespace lathe
