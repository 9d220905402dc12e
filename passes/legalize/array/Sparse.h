// Sparse tensors as coordinates [n, rank], values [n] and a shape vector, for the families that read them.
#ifndef LATHE_PASSES_LEGALIZE_ARRAY_SPARSE_H
#define LATHE_PASSES_LEGALIZE_ARRAY_SPARSE_H

#include "passes/legalize/NodeContext.h"

namespace lathe::legalize {

/// Column k of a matrix, as a vector.
Value columnOf(NodeContext &c, Value table, int64_t k);
/// Element k of a vector, as a scalar.
Value entryOf(NodeContext &c, Value v, int64_t k);
/// The number of columns of a matrix of coordinates; an error where it is not known.
FailureOr<int64_t> columnsOf(NodeContext &c, Value indices);
/// Row-major number of each coordinate in a tensor of the run-time shape, the first `rank` columns only.
Value linearOf(NodeContext &c, Value indices, Value shape, int64_t rank);

} // namespace lathe::legalize

#endif
