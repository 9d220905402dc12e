// Row splits: offsets that cut values into rows.
#ifndef LATHE_RUNTIME_KERNELS_RAGGED_SPLITS_H
#define LATHE_RUNTIME_KERNELS_RAGGED_SPLITS_H

#include "runtime/kernels/Common.h"

#include <algorithm>

namespace lathe::rt {

using Splits = std::vector<int64_t>;

/// The splits of a tensor; INVALID_ARGUMENT unless they start at 0, do not descend, and end at `count` (when not negative).
inline absl::StatusOr<Splits> readSplits(const Tensor &t, int64_t count) {
  if (t.rank() != 1)
    return invalid("Row splits must be a vector, found shape ", dimsToString(t.dims()));
  Splits splits = intsOf(t);
  if (splits.empty())
    return invalid("Invalid row splits: must have at least one element");
  if (splits[0] != 0)
    return invalid("Ragged splits must start with 0");
  if (!std::is_sorted(splits.begin(), splits.end()))
    return invalid("Ragged splits must be sorted");
  if (count >= 0 && splits.back() != count)
    return invalid("Ragged splits must end with the number of values: ", splits.back(), " and ", count);
  return splits;
}

/// All levels of nested splits, each checked against the one below it and the last against the values' rows.
inline absl::StatusOr<std::vector<Splits>> readNested(const std::vector<Tensor> &tensors, const Tensor &values) {
  std::vector<Splits> nested;
  for (size_t level = 0; level < tensors.size(); ++level) {
    int64_t count = level + 1 < tensors.size() ? tensors[level + 1].numElements() - 1
                    : values.rank() > 0        ? values.dim(0)
                                               : -1;
    LATHE_TRY_VALUE(splits, readSplits(tensors[level], count));
    nested.push_back(splits);
  }
  return nested;
}

} // namespace lathe::rt

#endif
