// Rows (slices along the first dimension) and windows of tensors of any type: strings and objects are moved as elements,
// the rest as bytes.
#ifndef LATHE_RUNTIME_CORE_ELEMENTS_H
#define LATHE_RUNTIME_CORE_ELEMENTS_H

#include "base/Tensor.h"

namespace lathe::rt {

/// The dimensions after the first; of rank 1 or more.
std::vector<int64_t> rowDims(const Tensor &t);
/// `first` followed by `rest`.
std::vector<int64_t> withDim(int64_t first, const std::vector<int64_t> &rest);

/// Copies `count` elements between tensors of one type.
void copyElements(Tensor &to, int64_t toAt, const Tensor &from, int64_t fromAt, int64_t count);

/// A copy of rows [start, start + count): in range, of a tensor of rank 1 or more.
Tensor rowsOf(const Tensor &t, int64_t start, int64_t count);
/// A copy of row i, of rank one less.
Tensor rowOf(const Tensor &t, int64_t i);
/// Writes `row` as row i of `to`; equal types and sizes.
void setRow(Tensor &to, int64_t i, const Tensor &row);

/// Writes `part` into row i of `to`, at the start of every dimension: no dimension of `part` is larger.
void setRowCorner(Tensor &to, int64_t i, const Tensor &part);

/// Copies the box of `dims` elements at `fromStart` of `from` to `toStart` of `to`: equal ranks, in range.
void copyBox(Tensor &to, const std::vector<int64_t> &toStart, const Tensor &from, const std::vector<int64_t> &fromStart,
             const std::vector<int64_t> &dims);

/// Fills every element with the scalar's value (of the same type).
void fillWith(Tensor &t, const Tensor &scalar);

/// Puts equal tensors together along a new first dimension; at least one of them. RESOURCE_EXHAUSTED when too large,
/// INVALID_ARGUMENT when types or shapes differ.
absl::StatusOr<Tensor> stackRows(const std::vector<Tensor> &rows);

/// Bytes that the elements take, those of strings included: what memory limits count.
int64_t totalBytes(const Tensor &t);

/// An Int32 or Int64 tensor as numbers.
std::vector<int64_t> integers(const Tensor &t);
/// The value of an Int32 or Int64 scalar (or tensor of one element); INVALID_ARGUMENT naming `what` otherwise.
absl::StatusOr<int64_t> integerScalar(const Tensor &t, const char *what);
/// The value of a String tensor of one element; INVALID_ARGUMENT naming `what` otherwise.
absl::StatusOr<std::string> stringScalar(const Tensor &t, const char *what);

} // namespace lathe::rt

#endif
