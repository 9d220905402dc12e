// Exact conversions between f32 registers and f16, bf16, f8E5M2, f8E4M3FN in memory, on scalars and vectors.
#ifndef LATHE_PASSES_CODEGEN_ELEMENT_NARROWFLOAT_H
#define LATHE_PASSES_CODEGEN_ELEMENT_NARROWFLOAT_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"

namespace lathe::codegen {
class KernelBuilder;

/// `bits` (i8/i16, scalar or vector) of the narrow type -> f32, exact.
mlir::Value narrowToF32(KernelBuilder &b, mlir::FloatType narrow, mlir::Value bits);
/// f32 -> bits, rounded to nearest even; overflow to infinity (f8E4M3FN: NaN), NaN stays NaN.
mlir::Value f32ToNarrow(KernelBuilder &b, mlir::FloatType narrow, mlir::Value f32);
/// f32 rounded to a value that `elem` can hold; unchanged for f32 and wider.
mlir::Value roundToElem(KernelBuilder &b, mlir::Type elem, mlir::Value v);

} // namespace lathe::codegen

#endif // LATHE_PASSES_CODEGEN_ELEMENT_NARROWFLOAT_H
