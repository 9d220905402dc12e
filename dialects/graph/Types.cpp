//===- Types.cpp - TensorFlow types as MLIR types -------------------------===//
#include "dialects/graph/Types.h"

#include "dialects/graph/Graph.h"

using namespace mlir;

namespace lathe::graph {

Type toMlirType(MLIRContext *context, DType dtype) {
  Builder b(context);
  auto unsignedType = [&](unsigned width) { return IntegerType::get(context, width, IntegerType::Unsigned); };
  switch (dtype) {
  case DType::Float32: return b.getF32Type();
  case DType::Float64: return b.getF64Type();
  case DType::Float16: return b.getF16Type();
  case DType::BFloat16: return b.getBF16Type();
  case DType::Float8E5M2: return Float8E5M2Type::get(context);
  case DType::Float8E4M3FN: return Float8E4M3FNType::get(context);
  case DType::Bool: return b.getI1Type();
  case DType::Int4: return b.getIntegerType(4);
  case DType::Int8:
  case DType::QInt8: return b.getI8Type();
  case DType::Int16:
  case DType::QInt16: return b.getI16Type();
  case DType::Int32:
  case DType::QInt32: return b.getI32Type();
  case DType::Int64: return b.getI64Type();
  case DType::UInt4: return unsignedType(4);
  case DType::UInt8:
  case DType::QUInt8: return unsignedType(8);
  case DType::UInt16:
  case DType::QUInt16: return unsignedType(16);
  case DType::UInt32: return unsignedType(32);
  case DType::UInt64: return unsignedType(64);
  case DType::Complex64: return ComplexType::get(b.getF32Type());
  case DType::Complex128: return ComplexType::get(b.getF64Type());
  case DType::String: return StringType::get(context);
  case DType::Resource: return ResourceType::get(context);
  case DType::Variant: return VariantType::get(context);
  default: return {};
  }
}

DType toDType(Type type) {
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
  if (isa<Float8E5M2Type>(type)) return DType::Float8E5M2;
  if (isa<Float8E4M3FNType>(type)) return DType::Float8E4M3FN;
  if (isa<StringType>(type)) return DType::String;
  if (isa<ResourceType>(type)) return DType::Resource;
  if (isa<VariantType>(type)) return DType::Variant;
  return DType::Invalid;
}

TensorType makeTensorType(Type elementType, const std::optional<std::vector<int64_t>> &dims) {
  if (!dims)
    return UnrankedTensorType::get(elementType);
  SmallVector<int64_t> shape;
  for (int64_t d : *dims)
    shape.push_back(d < 0 ? ShapedType::kDynamic : d);
  return RankedTensorType::get(shape, elementType);
}

Location makeNodeLoc(MLIRContext *context, StringRef name, StringRef op, StringRef function) {
  Location loc = UnknownLoc::get(context);
  auto wrap = [&](StringRef text) { loc = NameLoc::get(StringAttr::get(context, text), loc); };
  if (!function.empty())
    wrap(function);
  wrap(op);
  wrap(name);
  return loc;
}

/// The outermost NameLoc; locations nest as deep as passes fused them, so this walks with a list, not by recursion.
static NameLoc findNameLoc(Location loc) {
  SmallVector<Location> work{loc};
  while (!work.empty()) {
    Location l = work.pop_back_val();
    if (auto name = dyn_cast<NameLoc>(l))
      return name;
    if (auto fused = dyn_cast<FusedLoc>(l)) {
      for (Location part : llvm::reverse(fused.getLocations()))
        work.push_back(part);
    } else if (auto call = dyn_cast<CallSiteLoc>(l)) {
      work.push_back(call.getCaller());
      work.push_back(call.getCallee());
    }
  }
  return {};
}

static NameLoc findInner(Location loc, unsigned depth) {
  NameLoc name = findNameLoc(loc);
  for (; name && depth; --depth)
    name = dyn_cast<NameLoc>(name.getChildLoc());
  return name;
}

static StringRef nameOrEmpty(NameLoc loc) { return loc ? loc.getName().getValue() : StringRef(); }

StringRef getNodeName(Location loc) { return nameOrEmpty(findNameLoc(loc)); }
StringRef getNodeOp(Location loc) { return nameOrEmpty(findInner(loc, 1)); }
StringRef getNodeFunction(Location loc) { return nameOrEmpty(findInner(loc, 2)); }

} // namespace lathe::graph
