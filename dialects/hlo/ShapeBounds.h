// How sizes behave as their symbols grow: what memory for the largest ones asks of an expression.
#ifndef LATHE_DIALECTS_HLO_SHAPEBOUNDS_H
#define LATHE_DIALECTS_HLO_SHAPEBOUNDS_H

#include "mlir/IR/AffineExpr.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace lathe::hlo {

/// Whether a size is 0 or more whatever its symbols are, which are not negative.
bool isNonNegative(mlir::AffineExpr expr);

/// A size that is not negative and that the expression does not exceed: without the terms that are taken away. Null where that is not told.
mlir::AffineExpr withoutNegatives(mlir::AffineExpr expr);

/// A size that neither of two sums of sizes exceeds: of each term the more of both. Long ones lose their quotients, so that what is bounded
/// by what is bounded again and again stays short.
mlir::AffineExpr termwiseMost(mlir::AffineExpr a, mlir::AffineExpr b);

/// Whether the value never falls while the symbols that `isFree` names grow, so that it is largest where these are: not so for `s0 - s1`.
bool growsWith(mlir::AffineExpr expr, llvm::function_ref<bool(unsigned)> isFree);

} // namespace lathe::hlo

#endif
