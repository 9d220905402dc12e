// How many elements code for some values takes at once, and loops that take as many.
#ifndef LATHE_PASSES_CODEGEN_ELEMENT_LANES_H
#define LATHE_PASSES_CODEGEN_ELEMENT_LANES_H

#include "passes/codegen/element/ElementEmitter.h"

namespace lathe::codegen {

/// Calls `f` with every op behind `roots`.
void walkOps(mlir::ArrayRef<mlir::Value> roots, llvm::function_ref<void(mlir::Operation *)> f);
/// Whether consecutive result elements read consecutive operand elements (or one and the same).
bool keepsLanes(mlir::Operation *op);
/// Lanes of an element type; as many complex numbers as real ones, two vectors hold their parts.
unsigned lanesOfParts(mlir::Type elem, const KernelTarget &target);
/// The vector width for a set of roots: what the widest element on the way to them allows; 1 where vectors do not pay.
unsigned chooseLanes(mlir::ArrayRef<mlir::Value> roots, const KernelTarget &target);
/// Whether all memory that `roots` touch in lanes mode has masked instructions.
bool masksPay(mlir::ArrayRef<mlir::Value> roots, const KernelTarget &target);

/// for i in [lo, hi): body(i, lanes, mask), vectors first, then a masked vector or single elements.
mlir::LogicalResult vectorLoop(KernelBuilder &b, mlir::Value lo, mlir::Value hi, unsigned lanes, bool masked,
                               llvm::function_ref<mlir::LogicalResult(mlir::Value, unsigned, mlir::Value)> body);

/// Operations an element costs, roughly.
int64_t elementCost(mlir::ArrayRef<mlir::Value> roots);

} // namespace lathe::codegen

#endif
