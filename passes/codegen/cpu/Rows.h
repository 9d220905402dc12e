// Rows by other means than one after the other.
#ifndef LATHE_PASSES_CODEGEN_CPU_ROWS_H
#define LATHE_PASSES_CODEGEN_CPU_ROWS_H

#include "passes/codegen/cpu/KernelCodegen.h"

#include <optional>

namespace lathe::cpu {

/// The rows of a few elements of a kernel.rows or kernel.loop, many at a time (KernelShortRows.cpp); nothing
/// where they are long, few, or of other ops than elementwise ones and reductions.
std::optional<mlir::LogicalResult> emitShortRows(mlir::Operation *op, KernelBuilder &b);

} // namespace lathe::cpu

#endif // LATHE_PASSES_CODEGEN_CPU_ROWS_H
