// What reductions and rows are, for backends that go over them in another order than the nests.
#ifndef LATHE_PASSES_CODEGEN_PLAIN_ROWS_H
#define LATHE_PASSES_CODEGEN_PLAIN_ROWS_H

#include "passes/codegen/plain/Nest.h"

namespace lathe::plain {

/// Those of an op's region, in order, or the op itself.
mlir::SmallVector<hlo::ReduceOp> reductionsOf(mlir::Operation *op);

/// What the reductions of a kernel.rows share: rows are all that lies in the trailing dimensions.
struct RowShape {
  mlir::SmallVector<mlir::AffineExpr> dims;
  int64_t lead = 0; ///< dimensions that number the rows

  bool isFull(mlir::Value v) const;
  mlir::AffineExpr count(mlir::MLIRContext *context) const;
};

/// Diagnoses reductions of several shapes.
mlir::FailureOr<RowShape> rowShape(mlir::Operation *op, mlir::ArrayRef<hlo::ReduceOp> reductions);

} // namespace lathe::plain

#endif
