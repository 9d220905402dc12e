// Loop nests over whole results whose elements come from an ElementEmitter.
#ifndef LATHE_PASSES_CODEGEN_CPU_ELEMENTAL_H
#define LATHE_PASSES_CODEGEN_CPU_ELEMENTAL_H

#include "passes/codegen/cpu/ElementEmitter.h"

#include <memory>

namespace lathe::cpu {

/// Copies of values with adjacent dimensions merged where no op tells them apart. Owns the copied ops.
class Collapsed {
public:
  /// `roots` have equal shapes; `leaves` are the values bound to buffers. Never fails: at worst nothing is merged.
  /// Dimensions with different `labels` (one a dimension; empty: all equal) stay apart.
  Collapsed(mlir::ArrayRef<mlir::Value> roots, mlir::ArrayRef<mlir::Value> leaves,
            mlir::ArrayRef<int64_t> labels = {});
  ~Collapsed();

  mlir::SmallVector<mlir::Value> roots;
  /// For each given dimension the one it is part of now.
  mlir::SmallVector<int64_t> group;
  /// Leaves of the given values and what stands for them now, perhaps under several shapes.
  mlir::SmallVector<std::pair<mlir::Value, mlir::Value>> views;

private:
  std::unique_ptr<mlir::Block> block;
};

/// Lanes of an element type; as many complex numbers as real ones, two vectors hold their parts.
unsigned lanesOfParts(mlir::Type elem, const CpuTarget &target);
/// The vector width for a set of roots: what the widest element on the way to them allows; 1 where vectors do not pay.
unsigned chooseLanes(mlir::ArrayRef<mlir::Value> roots, const CpuTarget &target);
/// Whether all memory that `roots` touch in lanes mode has masked instructions.
bool masksPay(mlir::ArrayRef<mlir::Value> roots, const CpuTarget &target);

/// for i in [lo, hi): body(i, lanes, mask), vectors first, then a masked vector or single elements.
mlir::LogicalResult vectorLoop(KernelBuilder &b, mlir::Value lo, mlir::Value hi, unsigned lanes, bool masked,
                               llvm::function_ref<mlir::LogicalResult(mlir::Value, unsigned, mlir::Value)> body);

/// Stores every element of `roots` (equal shapes) to `outputs`; sets extent and cost. `leaves[i]` lies at
/// `buffers[i]`. `rows`, `leafRows`: elements from one row of an output, or a leaf, of its last dimension, to
/// the next (0, or none given: dense).
mlir::LogicalResult emitElemental(KernelBuilder &b, mlir::ArrayRef<mlir::Value> roots,
                                  mlir::ArrayRef<mlir::Value> outputs, mlir::ArrayRef<mlir::Value> leaves,
                                  mlir::ArrayRef<mlir::Value> buffers, mlir::ArrayRef<int64_t> rows = {},
                                  mlir::ArrayRef<int64_t> leafRows = {});

/// Operations an element costs, roughly.
int64_t elementCost(mlir::ArrayRef<mlir::Value> roots);

} // namespace lathe::cpu

#endif // LATHE_PASSES_CODEGEN_CPU_ELEMENTAL_H
