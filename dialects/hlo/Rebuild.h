// Ops with regions, made again with more operands and results.
#ifndef LATHE_DIALECTS_HLO_REBUILD_H
#define LATHE_DIALECTS_HLO_REBUILD_H

#include "mlir/IR/Operation.h"

namespace lathe::hlo {

/// `op` again with these operands and results, of which the first are those it had; its regions move over and its uses follow.
/// `op` is erased. What the terminators of the regions give is for the caller to extend.
mlir::Operation *rebuild(mlir::Operation *op, mlir::ArrayRef<mlir::Value> operands, mlir::ArrayRef<mlir::Type> results);

} // namespace lathe::hlo

#endif
