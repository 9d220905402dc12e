// Compressed rows from and to sparse and dense tensors, and what a matrix is made of.
#include "runtime/kernels/sparse/Coo.h"
#include "runtime/kernels/sparse/Csr.h"

#include <limits>

namespace lathe::rt {
namespace {

DType typeAttr(const KernelContext &context, const char *name = "type") { return *attrOf<DType>(*context.node, name); }

/// A matrix with the rows and columns of indices that are inside; the values are still zeros. As TensorFlow does, entries fill the
/// rows in the order in which they come, whichever rows they name: callers keep them in order.
absl::StatusOr<std::shared_ptr<CsrMatrix>> fromIndices(DType type, const std::vector<int64_t> &dims, const int64_t *indices, int64_t n) {
  int64_t rank = static_cast<int64_t>(dims.size());
  LATHE_TRY(CsrMatrix::checkDims(dims));
  std::vector<int64_t> counts(rank == 3 ? dims[0] : 1);
  for (int64_t i = 0; i < n; ++i) {
    int64_t batch = rank == 3 ? indices[i * rank] : 0;
    if (i && rank == 3 && batch < indices[(i - 1) * rank])
      return invalid("indices[", i, "] is out of order: the matrices of a batch must follow each other");
    if (indices[i * rank + rank - 1] > std::numeric_limits<int32_t>::max())
      return invalid("column ", indices[i * rank + rank - 1], " is larger than an int32");
    ++counts[batch];
  }
  LATHE_TRY_VALUE(made, CsrMatrix::allocate(type, dims, counts));
  for (int64_t i = 0; i < n; ++i) {
    const int64_t *row = indices + i * rank;
    ++made->starts(rank == 3 ? row[0] : 0)[row[rank - 2] + 1];
    made->columns.template data<int32_t>()[i] = static_cast<int32_t>(row[rank - 1]);
  }
  for (int64_t b = 0; b < made->batches(); ++b)
    for (int64_t r = 0; r < made->rows(); ++r)
      made->starts(b)[r + 1] += made->starts(b)[r];
  return made;
}

absl::Status fromSparse(KernelContext &context) {
  LATHE_TRY_VALUE(in, cooInput(context, 0));
  if (in.rank() != 2 && in.rank() != 3)
    return invalid("SparseTensor must have rank 2 or 3; but indices has rank: ", in.rank());
  LATHE_TRY(in.checkBounds());
  LATHE_TRY_VALUE(made, fromIndices(in.values.dtype(), in.dims, in.row(0), in.count()));
  made->values = in.values;
  context.setOutput(0, csrTensor(made));
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(SparseTensorToCSRSparseMatrix, fromSparse);

absl::Status fromDense(KernelContext &context) {
  Tensor dense = context.input(0), indices = context.input(1);
  int64_t rank = dense.rank();
  if (rank != 2 && rank != 3)
    return invalid("params must have rank == 2 or 3; but saw shape: ", dimsToString(dense.dims()));
  if (indices.rank() != 2)
    return invalid("indices must be a matrix, but saw shape: ", dimsToString(indices.dims()));
  if (indices.dim(1) != rank)
    return invalid("indices.shape[1] must be equal to the rank of params, but saw: ", indices.dim(1), " vs. ", rank);
  Coo places{indices, Tensor(), dense.dims()};
  int64_t n = indices.dim(0);
  std::vector<int64_t> from(n);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t d = 0; d < rank; ++d) {
      int64_t at = places.row(i)[d];
      if (at < 0 || at >= dense.dim(d))
        return invalid("indices[", i, "] does not index into param shape ", dimsToString(dense.dims()));
      from[i] = from[i] * dense.dim(d) + at;
    }
  LATHE_TRY_VALUE(made, fromIndices(dense.dtype(), dense.dims(), places.row(0), n));
  LATHE_TRY_VALUE(values, pick(context, dense, {n}, from));
  made->values = values;
  context.setOutput(0, csrTensor(made));
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(DenseToCSRSparseMatrix, fromDense);

/// Calls fn(batch, row, entry of the whole matrix) for every entry.
template <typename Fn>
void eachEntry(const CsrMatrix &m, Fn fn) {
  for (int64_t b = 0; b < m.batches(); ++b)
    for (int64_t r = 0; r < m.rows(); ++r)
      for (int32_t i = m.starts(b)[r]; i < m.starts(b)[r + 1]; ++i)
        fn(b, r, m.first(b) + i);
}

absl::Status toSparse(KernelContext &context) {
  LATHE_TRY_VALUE(in, csrInput(context, 0, typeAttr(context)));
  int64_t rank = in->rank();
  LATHE_TRY_VALUE(indices, context.allocateOutput(0, {in->count(), rank}));
  eachEntry(*in, [&](int64_t b, int64_t r, int64_t i) {
    int64_t *to = indices.template data<int64_t>() + i * rank;
    to[0] = b;
    to[rank - 2] = r;
    to[rank - 1] = in->columns.template data<int32_t>()[i];
  });
  context.setOutput(1, in->values);
  context.setOutput(2, int64Vector(in->dims));
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(CSRSparseMatrixToSparseTensor, toSparse);

absl::Status toDense(KernelContext &context) {
  LATHE_TRY_VALUE(in, csrInput(context, 0, typeAttr(context)));
  LATHE_TRY_VALUE(out, context.allocateOutput(0, in->dims));
  return withCsrType(in->dtype(), [&](auto zero) {
    using T = decltype(zero);
    eachEntry(*in, [&](int64_t b, int64_t r, int64_t i) {
      int64_t column = in->columns.template data<int32_t>()[i];
      out.template data<T>()[(b * in->rows() + r) * in->cols() + column] = in->values.template data<T>()[i];
    });
    return absl::OkStatus();
  });
}
LATHE_HOST_FUNCTION(CSRSparseMatrixToDense, toDense);

absl::Status components(KernelContext &context) {
  LATHE_TRY_VALUE(in, csrInput(context, 0, typeAttr(context)));
  Tensor index = context.input(1);
  if (index.rank() != 0)
    return invalid("index should be a scalar, but saw shape: ", dimsToString(index.dims()));
  int64_t b = intAt(index, 0);
  if (b < 0 || b >= in->batches())
    return invalid("index (", b, ") not in [0, ", in->batches(), ")");
  std::vector<int64_t> rows(in->rows() + 1), entries(in->count(b));
  for (size_t i = 0; i < rows.size(); ++i)
    rows[i] = b * (in->rows() + 1) + static_cast<int64_t>(i);
  for (size_t i = 0; i < entries.size(); ++i)
    entries[i] = in->first(b) + static_cast<int64_t>(i);
  const Tensor *parts[] = {&in->rowStarts, &in->columns, &in->values};
  for (int k = 0; k < 3; ++k) {
    const std::vector<int64_t> &from = k ? entries : rows;
    LATHE_TRY_VALUE(part, pick(context, *parts[k], {static_cast<int64_t>(from.size())}, from));
    context.setOutput(k, part);
  }
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(CSRSparseMatrixComponents, components);

absl::Status zeros(KernelContext &context) {
  LATHE_TRY_VALUE(dims, dimsOf(context.input(0), "dense_shape"));
  LATHE_TRY_VALUE(made, fromIndices(typeAttr(context), dims, nullptr, 0));
  context.setOutput(0, csrTensor(made));
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(SparseMatrixZeros, zeros);

absl::Status nnz(KernelContext &context) {
  LATHE_TRY_VALUE(in, csrInput(context, 0));
  LATHE_TRY_VALUE(out, context.allocateOutput(0, in->rank() == 3 ? std::vector<int64_t>{in->batches()} : std::vector<int64_t>{}));
  for (int64_t b = 0; b < in->batches(); ++b)
    out.data<int32_t>()[b] = static_cast<int32_t>(in->count(b));
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(SparseMatrixNNZ, nnz);

absl::Status transpose(KernelContext &context) {
  LATHE_TRY_VALUE(in, csrInput(context, 0, typeAttr(context)));
  LATHE_TRY_VALUE(out, csrTransposed(*in, *attrOf<bool>(*context.node, "conjugate")));
  context.setOutput(0, csrTensor(out));
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(SparseMatrixTranspose, transpose);

} // namespace
} // namespace lathe::rt
