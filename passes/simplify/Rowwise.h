//===- Rowwise.h - ops that treat the rows of a batch alone -----------------===//
//
// "Rows" are the positions along one dimension of a value. An op treats them alone where each row of its
// results needs the same row of some operands and nothing but whole ones of the others.
//
//===----------------------------------------------------------------------===//

#ifndef LATHE_PASSES_SIMPLIFY_ROWWISE_H
#define LATHE_PASSES_SIMPLIFY_ROWWISE_H

#include "dialects/hlo/Hlo.h"

#include <optional>

namespace lathe {

/// Along which dimension the rows of the op's results lie when those of operand `number` lie along `dim`;
/// nothing where the op mixes them, or is not known. Static shapes; sizes above one.
std::optional<int64_t> resultRows(mlir::Operation *op, unsigned number, int64_t dim);

/// For each operand the dimension along which its rows lie when those of the results lie along `dim`; -1 for
/// one that is needed whole.
std::optional<llvm::SmallVector<int64_t>> operandRows(mlir::Operation *op, int64_t dim);

/// The dimension of `to`, another shape of the same elements, in which rows lie as along `dim` of `from`:
/// position p of either belongs to row p % batch.
std::optional<int64_t> dimOfRows(mlir::RankedTensorType from, mlir::RankedTensorType to, int64_t dim,
                                 int64_t batch);

/// Gives results and attributes of the op `rows` rows along `dim` of its results. Its operands have as many.
void narrowRows(mlir::Operation *op, int64_t dim, int64_t rows);

} // namespace lathe

#endif
