// Pieces of linear algebra that several families use.
#ifndef LATHE_PASSES_LEGALIZE_MATH_LINALG_H
#define LATHE_PASSES_LEGALIZE_MATH_LINALG_H

#include "passes/legalize/array/ArrayHelpers.h"

namespace lathe::legalize {

/// An error unless `x` is a (batch of) matrices, square ones if asked.
LogicalResult expectMatrix(NodeContext &c, Value x, bool square);
/// Identity matrices of the given batch shape.
Value identityMatrix(NodeContext &c, const Dims &dims, Type element);
/// The solution of a x = b by elimination with pivoting; a singular `a` is a run-time error.
Value luSolve(NodeContext &c, Value a, Value b);

/// Eigenvalues of general matrices and functions of matrices.
void registerMatrixFunctions(HandlerTable &);

} // namespace lathe::legalize

#endif
