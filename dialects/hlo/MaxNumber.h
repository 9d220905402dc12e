// The maximum of max pooling: the greater of what stands and what comes next, so that NaN never wins.
#ifndef LATHE_DIALECTS_HLO_MAXNUMBER_H
#define LATHE_DIALECTS_HLO_MAXNUMBER_H

#include "mlir/IR/Builders.h"

namespace lathe::hlo {

/// `next` where it is greater than `best`, else `best`.
mlir::Value makeMaxNumber(mlir::OpBuilder &b, mlir::Location loc, mlir::Value best, mlir::Value next);

/// Whether the region of two arguments, best and next, computes just that.
bool isMaxNumber(mlir::Region &body);

} // namespace lathe::hlo

#endif // LATHE_DIALECTS_HLO_MAXNUMBER_H
