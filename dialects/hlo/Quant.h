// Quantized element types, read. Apart from Hlo.h, since few files look inside of them.
#ifndef LATHE_DIALECTS_HLO_QUANT_H
#define LATHE_DIALECTS_HLO_QUANT_H

#include "dialects/hlo/Hlo.h"

#include "mlir/Dialect/Quant/IR/QuantTypes.h"

namespace lathe::hlo {

/// What a quantized element type says: scales and zero points are one, or one for each element of dimension `axis`.
struct QuantParameters {
  mlir::Type expressed, storage;
  llvm::SmallVector<double> scales;
  llvm::SmallVector<int64_t> zeroPoints;
  int64_t low = 0, high = 0; ///< the range of storage
  int64_t axis = -1;
};
QuantParameters quantParameters(mlir::Type elementType);

/// A type quantized per axis with another axis; other types give themselves.
mlir::Type withQuantizedAxis(mlir::Type elementType, int64_t axis);

/// The axis of a tensor quantized per axis is a dimension with a scale for each element. `constraint` leads the message.
llvm::LogicalResult checkQuantized(std::optional<mlir::Location> location, llvm::StringRef constraint, RankedTensorType type);

/// Whether quantizing what dequantizing gave is the identity on all storage of the type.
bool roundTrips(mlir::Type elementType, QuantizeRounding rounding);

} // namespace lathe::hlo

#endif
