// A sparse tensor as its three parts, checked once.
#ifndef LATHE_RUNTIME_KERNELS_SPARSE_COO_H
#define LATHE_RUNTIME_KERNELS_SPARSE_COO_H

#include "runtime/kernels/Common.h"

namespace lathe::rt {

struct Coo {
  Tensor indices, values; ///< Int64 [n, rank] and any type [n]
  std::vector<int64_t> dims;

  int64_t rank() const { return static_cast<int64_t>(dims.size()); }
  int64_t count() const { return values.numElements(); }
  const int64_t *row(int64_t i) const { return indices.data<int64_t>() + i * rank(); }

  /// Whether every index lies inside; the rows need no order. INVALID_ARGUMENT naming the first that does not.
  absl::Status checkBounds() const;
  /// The same, and the rows ascend without repetition.
  absl::Status checkOrdered() const;
  /// Negative, zero or positive as rows compare.
  int compareRows(int64_t i, const Coo &other, int64_t j) const;
  /// Positions that put the rows in order.
  std::vector<int64_t> order() const;
};

/// The parts of a sparse argument. INVALID_ARGUMENT when their shapes do not fit together.
absl::StatusOr<Coo> makeCoo(const Tensor &indices, const Tensor &values, const Tensor &shape);
/// The same of the inputs i, i + 1 and i + 2.
absl::StatusOr<Coo> cooInput(const KernelContext &context, int i);

/// Rows of indices as an Int64 matrix.
Tensor indexMatrix(const std::vector<int64_t> &flat, int64_t rank);

} // namespace lathe::rt

#endif
