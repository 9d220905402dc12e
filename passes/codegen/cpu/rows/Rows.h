// Rows by other means than one after the other.
#ifndef LATHE_PASSES_CODEGEN_CPU_ROWS_ROWS_H
#define LATHE_PASSES_CODEGEN_CPU_ROWS_ROWS_H

#include "dialects/hlo/Hlo.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/cpu/Emit.h"
#include "passes/codegen/element/Special.h"

#include <optional>

namespace lathe::cpu {

/// The rows of a few elements of a kernel.rows or kernel.loop, many at a time (EmitShortRows.cpp); nothing
/// where they are long, few, or of other ops than elementwise ones and reductions.
std::optional<mlir::LogicalResult> emitShortRows(mlir::Operation *op, KernelBuilder &b);

/// The longest rows that these are: all elements of one are in registers at once.
inline int64_t longestShortRow(const KernelTarget &target) { return target.numVectorRegs / 2; }

/// A part of the rows of a kernel.rows along its last dimension: `arg` and the result have them so many
/// elements apart, and may be the same memory, of which the pointers are where row 0 would be.
struct RowsPart {
  mlir::BlockArgument arg;
  int64_t stride;
  mlir::Value first, last;
};
/// Emits them (EmitRows.cpp) and sets scratch and, for one row, work of the function.
mlir::LogicalResult emitRowsPart(kernel::RowsOp op, KernelBuilder &b, const RowsPart &part);

/// What keeps a gather from being a look-up of bytes in vectors (EmitByteTable.cpp).
WhyNot whyNotByteTable(hlo::GatherOp op, const KernelTarget &target);
mlir::LogicalResult emitByteTable(hlo::GatherOp op, KernelBuilder &b);

} // namespace lathe::cpu

#endif // LATHE_PASSES_CODEGEN_CPU_ROWS_ROWS_H
