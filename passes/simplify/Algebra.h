//===- Algebra.h - pattern families of hlo-simplify-algebra -----------------===//

#ifndef LATHE_PASSES_SIMPLIFY_ALGEBRA_H
#define LATHE_PASSES_SIMPLIFY_ALGEBRA_H

#include "mlir/IR/PatternMatch.h"

namespace lathe {

/// Identities of elementwise ops; `exact` leaves those out that change rounding.
void populateArithmeticPatterns(mlir::RewritePatternSet &patterns, bool exact);
/// Reshapes, transposes and broadcasts.
void populateShapePatterns(mlir::RewritePatternSet &patterns);
/// Slices, pads, concatenations, reversals, updates.
void populateMovePatterns(mlir::RewritePatternSet &patterns);
/// Reductions and windows.
void populateReducePatterns(mlir::RewritePatternSet &patterns);

} // namespace lathe

#endif
