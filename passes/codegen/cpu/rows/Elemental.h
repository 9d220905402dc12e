// Loop nests over whole results whose elements come from an ElementEmitter.
#ifndef LATHE_PASSES_CODEGEN_CPU_ROWS_ELEMENTAL_H
#define LATHE_PASSES_CODEGEN_CPU_ROWS_ELEMENTAL_H

#include "passes/codegen/cpu/Emit.h"
#include "passes/codegen/element/Lanes.h"

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

/// Stores every element of `roots` (equal shapes) to `outputs`; sets extent and cost. `leaves[i]` lies at
/// `buffers[i]`. `rows`, `leafRows`: elements from one row of an output, or a leaf, of its last dimension, to
/// the next (0, or none given: dense).
mlir::LogicalResult emitElemental(KernelBuilder &b, mlir::ArrayRef<mlir::Value> roots,
                                  mlir::ArrayRef<mlir::Value> outputs, mlir::ArrayRef<mlir::Value> leaves,
                                  mlir::ArrayRef<mlir::Value> buffers, mlir::ArrayRef<int64_t> rows = {},
                                  mlir::ArrayRef<int64_t> leafRows = {});

} // namespace lathe::cpu

#endif // LATHE_PASSES_CODEGEN_CPU_ROWS_ELEMENTAL_H
