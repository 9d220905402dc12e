// Between host tensors and the values and attributes of hlo.
//
// More than 64 elements that are not all equal are DenseResourceElementsAttr blobs (raw little-endian, one byte for
// bool and 4-bit integers); fewer, and splats, DenseElementsAttr.
#ifndef LATHE_DIALECTS_HLO_CONSTANTS_H
#define LATHE_DIALECTS_HLO_CONSTANTS_H

#include "base/Tensor.h"
#include "dialects/hlo/Hlo.h"
#include "dialects/types/ElementTypes.h"

namespace lathe::hlo {

constexpr int64_t maxInlineElements = 64;

using lathe::toElementType;
/// DType::Invalid for element types that have none; that of their storage for quantized ones.
inline DType toDType(mlir::Type elementType) { return elementDType(storageType(elementType)); }
/// The type of a tensor; null if its dtype has no element type.
RankedTensorType typeOfTensor(mlir::MLIRContext *context, const Tensor &tensor);

/// The attribute of a tensor; big ones share the tensor's buffer. Null for dtypes without element type.
mlir::ElementsAttr makeElements(mlir::MLIRContext *context, const Tensor &tensor);
/// hlo.constant of a tensor; null with an error at `loc` for dtypes without element type.
mlir::Value makeConstant(mlir::OpBuilder &b, mlir::Location loc, const Tensor &tensor);
mlir::Value makeConstant(mlir::OpBuilder &b, mlir::Location loc, mlir::ElementsAttr value);

/// Elements that all equal one; a complex number is an array of two.
mlir::DenseElementsAttr splatAttr(RankedTensorType type, mlir::Attribute element);

/// A constant with all elements equal. `type` may be symbolic (then a scalar is broadcast) and of any element type:
/// the value is rounded or wrapped to it.
mlir::Value makeSplat(mlir::OpBuilder &b, mlir::Location loc, double value, RankedTensorType type);
mlir::Value makeSplat(mlir::OpBuilder &b, mlir::Location loc, int64_t value, RankedTensorType type);
mlir::Value makeSplat(mlir::OpBuilder &b, mlir::Location loc, const llvm::APFloat &value, RankedTensorType type);
inline mlir::Value makeSplat(mlir::OpBuilder &b, mlir::Location loc, int value, RankedTensorType type) {
  return makeSplat(b, loc, static_cast<int64_t>(value), type);
}
/// A scalar of the element type.
mlir::Value makeScalar(mlir::OpBuilder &b, mlir::Location loc, double value, mlir::Type elementType);
mlir::Value makeScalar(mlir::OpBuilder &b, mlir::Location loc, int64_t value, mlir::Type elementType);
inline mlir::Value makeScalar(mlir::OpBuilder &b, mlir::Location loc, int value, mlir::Type elementType) {
  return makeScalar(b, loc, static_cast<int64_t>(value), elementType);
}
/// A vector of i64 (or `elementType`).
mlir::Value makeVector(mlir::OpBuilder &b, mlir::Location loc, llvm::ArrayRef<int64_t> values,
                       mlir::Type elementType = {});

/// The smallest and largest finite (`infinite`: or infinite) value of an element type as a scalar constant.
mlir::Value makeLowest(mlir::OpBuilder &b, mlir::Location loc, mlir::Type elementType, bool infinite = true);
mlir::Value makeHighest(mlir::OpBuilder &b, mlir::Location loc, mlir::Type elementType, bool infinite = true);

/// The tensor of an attribute. Blobs are shared, not copied, where their alignment allows; splats are expanded.
mlir::FailureOr<Tensor> readConstant(mlir::ElementsAttr attr);
/// The same if the value is defined by hlo.constant.
mlir::FailureOr<Tensor> readConstant(mlir::Value value);

} // namespace lathe::hlo

#endif
