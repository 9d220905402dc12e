// Ops with regions and functions, made again with more results.
#ifndef LATHE_DIALECTS_HLO_REBUILD_H
#define LATHE_DIALECTS_HLO_REBUILD_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace lathe::hlo {

/// `op` again with these operands and results, of which the first are those it had; its regions move over and its uses follow.
/// `op` is erased. What the terminators of the regions give is for the caller to extend.
mlir::Operation *rebuild(mlir::Operation *op, mlir::ArrayRef<mlir::Value> operands, mlir::ArrayRef<mlir::Type> results);

/// The function returns these values, of which the first are those it returned. What is new is called "tap0", "tap1" ...
void setResults(mlir::func::FuncOp function, mlir::ArrayRef<mlir::Value> values);

} // namespace lathe::hlo

#endif
