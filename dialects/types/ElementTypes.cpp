// See ElementTypes.h.
#include "dialects/types/ElementTypes.h"

using namespace mlir;

namespace lathe {

Type toElementType(MLIRContext *context, DType dtype) {
  auto integer = [&](unsigned width) -> Type { return IntegerType::get(context, width); };
  auto unsignedInteger = [&](unsigned width) -> Type { return IntegerType::get(context, width, IntegerType::Unsigned); };
  switch (dtypeCarrier(dtype)) {
  case DType::Bool: return integer(1);
  case DType::Int4: return integer(4);
  case DType::Int8: return integer(8);
  case DType::Int16: return integer(16);
  case DType::Int32: return integer(32);
  case DType::Int64: return integer(64);
  case DType::UInt4: return unsignedInteger(4);
  case DType::UInt8: return unsignedInteger(8);
  case DType::UInt16: return unsignedInteger(16);
  case DType::UInt32: return unsignedInteger(32);
  case DType::UInt64: return unsignedInteger(64);
  case DType::Float16: return Float16Type::get(context);
  case DType::BFloat16: return BFloat16Type::get(context);
  case DType::Float32: return Float32Type::get(context);
  case DType::Float64: return Float64Type::get(context);
  case DType::Float8E4M3FN: return Float8E4M3FNType::get(context);
  case DType::Float8E5M2: return Float8E5M2Type::get(context);
  case DType::Complex64: return ComplexType::get(Float32Type::get(context));
  case DType::Complex128: return ComplexType::get(Float64Type::get(context));
  default: return {};
  }
}

DType elementDType(Type type) {
  if (auto integer = dyn_cast<IntegerType>(type)) {
    bool isUnsigned = integer.isUnsigned();
    switch (integer.getWidth()) {
    case 1: return isUnsigned ? DType::Invalid : DType::Bool;
    case 4: return isUnsigned ? DType::UInt4 : DType::Int4;
    case 8: return isUnsigned ? DType::UInt8 : DType::Int8;
    case 16: return isUnsigned ? DType::UInt16 : DType::Int16;
    case 32: return isUnsigned ? DType::UInt32 : DType::Int32;
    case 64: return isUnsigned ? DType::UInt64 : DType::Int64;
    default: return DType::Invalid;
    }
  }
  if (auto complex = dyn_cast<ComplexType>(type)) {
    if (complex.getElementType().isF32())
      return DType::Complex64;
    return complex.getElementType().isF64() ? DType::Complex128 : DType::Invalid;
  }
  if (type.isF32()) return DType::Float32;
  if (type.isF64()) return DType::Float64;
  if (type.isF16()) return DType::Float16;
  if (type.isBF16()) return DType::BFloat16;
  if (isa<Float8E4M3FNType>(type)) return DType::Float8E4M3FN;
  if (isa<Float8E5M2Type>(type)) return DType::Float8E5M2;
  return DType::Invalid;
}

} // namespace lathe
