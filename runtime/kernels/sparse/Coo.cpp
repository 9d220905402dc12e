#include "runtime/kernels/sparse/Coo.h"

#include <algorithm>
#include <numeric>

namespace lathe::rt {

absl::StatusOr<Coo> makeCoo(const Tensor &indices, const Tensor &values, const Tensor &shape) {
  if (indices.rank() != 2)
    return invalid("Input indices should be a matrix but received shape ", dimsToString(indices.dims()));
  if (values.rank() != 1)
    return invalid("Input values should be a vector but received shape ", dimsToString(values.dims()));
  if (shape.rank() != 1)
    return invalid("Input shape should be a vector but received shape ", dimsToString(shape.dims()));
  if (indices.dim(0) != values.dim(0))
    return invalid("Number of values must match first dimension of indices. Got ", values.dim(0), " values, indices shape: ",
                   dimsToString(indices.dims()));
  if (indices.dim(1) != shape.dim(0))
    return invalid("Number of dimensions must match second dimension of indices. Got ", shape.dim(0),
                   " dimensions, indices shape: ", dimsToString(indices.dims()));
  Coo coo{indices, values, intsOf(shape)};
  LATHE_TRY(checkedNumElements(coo.dims).status());
  return coo;
}

absl::StatusOr<Coo> cooInput(const KernelContext &context, int i) {
  return makeCoo(context.input(i), context.input(i + 1), context.input(i + 2));
}

absl::Status Coo::checkBounds() const {
  for (int64_t i = 0; i < count(); ++i)
    for (int64_t d = 0; d < rank(); ++d)
      if (row(i)[d] < 0 || row(i)[d] >= dims[d])
        return invalid("indices[", i, ",", d, "] = ", row(i)[d], " is out of bounds: need 0 <= index < ", dims[d]);
  return absl::OkStatus();
}

absl::Status Coo::checkOrdered() const {
  LATHE_TRY(checkBounds());
  for (int64_t i = 1; i < count(); ++i) {
    int order = compareRows(i - 1, *this, i);
    if (order > 0)
      return invalid("indices[", i, "] is out of order. Many sparse ops require sorted indices.");
    if (order == 0)
      return invalid("indices[", i, "] is repeated");
  }
  return absl::OkStatus();
}

int Coo::compareRows(int64_t i, const Coo &other, int64_t j) const {
  for (int64_t d = 0; d < rank(); ++d)
    if (row(i)[d] != other.row(j)[d])
      return row(i)[d] < other.row(j)[d] ? -1 : 1;
  return 0;
}

std::vector<int64_t> Coo::order() const {
  std::vector<int64_t> positions(count());
  std::iota(positions.begin(), positions.end(), 0);
  std::sort(positions.begin(), positions.end(), [&](int64_t a, int64_t b) {
    int order = compareRows(a, *this, b);
    return order < 0 || (order == 0 && a < b);
  });
  return positions;
}

Tensor indexMatrix(const std::vector<int64_t> &flat, int64_t rank) {
  int64_t rows = rank ? static_cast<int64_t>(flat.size()) / rank : 0;
  return int64Vector(flat).reshaped({rows, rank});
}

} // namespace lathe::rt
