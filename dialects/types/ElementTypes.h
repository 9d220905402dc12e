// The one table between TensorFlow's numeric dtypes and MLIR element types; every dialect reads this one.
#ifndef LATHE_DIALECTS_TYPES_ELEMENTTYPES_H
#define LATHE_DIALECTS_TYPES_ELEMENTTYPES_H

#include "base/DType.h"
#include "mlir/IR/BuiltinTypes.h"

namespace lathe {

/// The element type of numeric tensors of `dtype`; quantised types become their carriers (qint8 is i8). Null for strings,
/// resources, variants and numbers that name no type.
mlir::Type toElementType(mlir::MLIRContext *context, DType dtype);

/// The inverse; Invalid for types that no numeric TensorFlow tensor has.
DType elementDType(mlir::Type elementType);

} // namespace lathe

#endif
