// The rounded high half of a product of 32-bit integers, as quantized operators scale their sums: convert((x
// * y + 2^30) >> 31), in i64.
#ifndef LATHE_PASSES_CODEGEN_ELEMENT_HIGHPRODUCT_H
#define LATHE_PASSES_CODEGEN_ELEMENT_HIGHPRODUCT_H

#include "passes/codegen/element/KernelBuilder.h"

#include <optional>

namespace lathe::codegen {

/// Its factors: x is i32, y i64 but holds numbers of 32 bits.
struct HighProduct {
  mlir::Value x, y;
};
/// What `op`, the conversion to i32, is the high half of.
std::optional<HighProduct> matchHighProduct(mlir::Operation *op);
/// Whether vectors of these lanes have one instruction for every second product.
bool hasHighProduct(const KernelBuilder &b, unsigned lanes);
/// x (i32) and y (i64) as register values.
mlir::Value emitHighProduct(KernelBuilder &b, mlir::Value x, mlir::Value y);

} // namespace lathe::codegen

#endif
