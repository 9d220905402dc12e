// Quantized element types and the ops between them and floats: inference and verification.
#include "dialects/hlo/Quant.h"

#include "dialects/hlo/Infer.h"

#include <cmath>

using namespace mlir;

namespace lathe::hlo {

bool isQuantized(Type type) {
  if (!isa<quant::UniformQuantizedType, quant::UniformQuantizedPerAxisType>(type))
    return false;
  auto quantized = cast<quant::QuantizedType>(type);
  auto storage = dyn_cast<IntegerType>(quantized.getStorageType());
  Type expressed = quantized.getExpressedType();
  return storage && llvm::is_contained({4u, 8u, 16u, 32u}, storage.getWidth()) &&
         isa<Float16Type, BFloat16Type, Float32Type, Float64Type>(expressed);
}

std::optional<int64_t> quantizedAxis(Type type) {
  if (auto each = dyn_cast<quant::UniformQuantizedPerAxisType>(type))
    return each.getQuantizedDimension();
  return std::nullopt;
}

Type storageType(Type type) {
  auto quantized = dyn_cast<quant::QuantizedType>(type);
  if (!quantized)
    return type;
  const unsigned width = quantized.getStorageTypeIntegralWidth();
  return IntegerType::get(type.getContext(), width, quantized.isSigned() ? IntegerType::Signless : IntegerType::Unsigned);
}

Type withQuantizedAxis(Type type, int64_t axis) {
  auto each = dyn_cast<quant::UniformQuantizedPerAxisType>(type);
  if (!each)
    return type;
  return quant::UniformQuantizedPerAxisType::get(each.getFlags(), each.getStorageType(), each.getExpressedType(), each.getScales(),
                                                 each.getZeroPoints(), static_cast<int32_t>(axis), each.getStorageTypeMin(),
                                                 each.getStorageTypeMax());
}

QuantParameters quantParameters(Type type) {
  auto quantized = cast<quant::QuantizedType>(type);
  QuantParameters p{quantized.getExpressedType(), storageType(type), {}, {}, quantized.getStorageTypeMin(), quantized.getStorageTypeMax()};
  if (auto one = dyn_cast<quant::UniformQuantizedType>(type)) {
    p.scales.push_back(one.getScale());
    p.zeroPoints.push_back(one.getZeroPoint());
  } else {
    auto each = cast<quant::UniformQuantizedPerAxisType>(type);
    llvm::append_range(p.scales, each.getScales());
    llvm::append_range(p.zeroPoints, each.getZeroPoints());
    p.axis = each.getQuantizedDimension();
  }
  return p;
}

LogicalResult checkQuantized(MaybeLocation location, StringRef constraint, RankedTensorType type) {
  auto each = dyn_cast<quant::UniformQuantizedPerAxisType>(type.getElementType());
  if (!each)
    return success();
  const int64_t axis = each.getQuantizedDimension();
  if (axis < 0 || axis >= type.getRank())
    return emitOptionalError(location, constraint, ": quantized dimension ", axis, " is not in [0, ", type.getRank(), ")");
  const int64_t scales = static_cast<int64_t>(each.getScales().size());
  if (!type.isDynamicDim(axis) && type.getDimSize(axis) != scales)
    return emitOptionalError(location, constraint, ": quantized dimension ", axis, " has ", type.getDimSize(axis), " elements and ", scales,
                             " scales");
  return success();
}

void UniformQuantizeOp::build(OpBuilder &b, OperationState &state, Value operand, Type elementType, QuantizeRounding rounding) {
  Type type = poisonType(b.getContext(), operand);
  if (succeeded(checkOperands(state.location, operand)))
    type = withElementType(typeOf(operand), elementType);
  build(b, state, type, operand, rounding);
}

LogicalResult UniformQuantizeOp::verify() {
  auto from = typeOf(getOperand()), to = cast<RankedTensorType>(getType());
  if (!areCompatibleShapes(TypeRange(from), TypeRange(to)))
    return emitOpError("C1: shapes differ: ") << from << " and " << to;
  auto expressed = [](Type type) { return isQuantized(type) ? cast<quant::QuantizedType>(type).getExpressedType() : type; };
  Type a = expressed(from.getElementType()), b = expressed(to.getElementType());
  if (a != b)
    return emitOpError("C2: expressed types differ: ") << a << " and " << b;
  if (failed(checkQuantized(getLoc(), "C3", from)) || failed(checkQuantized(getLoc(), "C3", to)))
    return failure();
  Type storage = storageType(to.getElementType());
  if (getRounding() == QuantizeRounding::UP && (!b.isF32() || storage.isUnsignedInteger(32)))
    return emitOpError("C4: rounding UP expects f32 and storage that 32 bits with a sign hold, found ") << b << " and " << storage;
  return success();
}

static LogicalResult inferTypes(UniformDequantizeOp::Adaptor adaptor, MaybeLocation location, TypeList &types) {
  auto type = typeOf(adaptor.getOperand());
  if (!isQuantized(type.getElementType()))
    return emitOptionalError(location, "expected quantized numbers, found ", type);
  types.push_back(withElementType(type, cast<quant::QuantizedType>(type.getElementType()).getExpressedType()));
  return checkQuantized(location, "C1", type);
}

// A difference d is at most D; each rounded step is off by a part u. What comes back as d in the middle of two halves rounds to d.
bool roundTrips(Type type, QuantizeRounding rounding) {
  if (!isQuantized(type))
    return false;
  const QuantParameters p = quantParameters(type);
  const auto &semantics = cast<FloatType>(p.expressed).getFloatSemantics();
  const auto storage = cast<IntegerType>(p.storage);
  // storage outside of a narrower range would be clamped
  if (p.low != quant::QuantizedType::getDefaultMinimumForInteger(!storage.isUnsigned(), storage.getWidth()) ||
      p.high != quant::QuantizedType::getDefaultMaximumForInteger(!storage.isUnsigned(), storage.getWidth()))
    return false;
  const double u = std::ldexp(1.0, -static_cast<int>(APFloat::semanticsPrecision(semantics)));
  auto rounded = [&](double v) {
    APFloat f(v);
    bool lossy;
    f.convert(semantics, APFloat::rmNearestTiesToEven, &lossy);
    return f.convertToDouble();
  };
  for (auto [exact, zero] : llvm::zip(p.scales, p.zeroPoints)) {
    const double scale = rounded(exact);
    const double z = std::abs(double(zero)), most = std::max(std::abs(double(p.low) - zero), std::abs(double(p.high) - zero));
    // the product, the quotient (with UP the inverse and a product), then the zero point and the sum, or a half
    const double steps = rounding == QuantizeRounding::AWAY ? 2 * most : rounding == QuantizeRounding::UP ? 4 * most + 1 : 3 * most + 2 * z;
    const double error = steps * u * (1 + 8 * u);
    if (!(error < 0.5) || !(scale > 0) || !std::isfinite(rounded(scale * most)) ||
        (rounding == QuantizeRounding::UP && (!std::isfinite(rounded(1 / scale)) || 1 / scale < 0x1p-126 || most + z >= INT32_MAX)))
      return false;
  }
  return true;
}

} // namespace lathe::hlo

using namespace lathe::hlo;
#define GET_OP_CLASSES
#include "dialects/hlo/HloQuant.cpp.inc"
