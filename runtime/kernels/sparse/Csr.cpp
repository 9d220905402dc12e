#include "runtime/kernels/sparse/Csr.h"

#include "base/Memory.h"

#include <limits>
#include <utility>

namespace lathe::rt {

namespace {
constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
}

absl::Status CsrMatrix::checkDims(const std::vector<int64_t> &dims) {
  int64_t rank = static_cast<int64_t>(dims.size());
  if (rank != 2 && rank != 3)
    return invalid("sparse matrix must have rank 2 or 3; but dense_shape has size ", rank);
  for (int64_t d : dims)
    if (d < 0)
      return invalid("a sparse matrix of shape ", dimsToString(dims), " has a negative dimension");
  int64_t batches = rank == 2 ? 1 : dims[0], rows = dims[rank - 2];
  if (batches >= kMost)
    return invalid("dense_shape batch_size must be < Int32Max, but the input value is ", batches);
  if (rows >= kMost || (rows + 1) * batches > kMost)
    return invalid("The csr row index size, computed based on the dense_shape ", dimsToString(dims), ", must be <= Int32Max");
  if ((rows + 1) * batches * 12 > memoryBudget())
    return absl::ResourceExhaustedError(absl::StrCat("there is no memory for a sparse matrix of shape ", dimsToString(dims)));
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<CsrMatrix>> CsrMatrix::allocate(DType type, std::vector<int64_t> dims, const std::vector<int64_t> &counts) {
  LATHE_TRY(withCsrType(type, [](auto) { return absl::OkStatus(); }));
  LATHE_TRY(checkDims(dims));
  int64_t batches = dims.size() == 2 ? 1 : dims[0], rows = dims[dims.size() - 2];
  int64_t total = 0;
  for (int64_t n : counts)
    if (n > kMost || (total += n) > kMost)
      return invalid("values number of elements must be <= Int32Max");

  auto made = std::make_shared<CsrMatrix>();
  made->dims = std::move(dims);
  auto take = [](Tensor &to, DType type, int64_t n) -> absl::Status {
    LATHE_TRY_VALUE(t, Tensor::tryAllocate(type, {n}, kMaxTensorBytes));
    to = t;
    return absl::OkStatus();
  };
  LATHE_TRY(take(made->batchStarts, DType::Int32, batches + 1));
  LATHE_TRY(take(made->rowStarts, DType::Int32, batches * (rows + 1)));
  LATHE_TRY(take(made->columns, DType::Int32, total));
  LATHE_TRY(take(made->values, type, total));
  int32_t *starts = made->batchStarts.data<int32_t>();
  for (int64_t b = 0; b < batches; ++b)
    starts[b + 1] = starts[b] + static_cast<int32_t>(counts[b]);
  return made;
}

absl::StatusOr<ObjectPtr> CsrMatrix::zerosLike() const {
  LATHE_TRY_VALUE(made, allocate(dtype(), dims, std::vector<int64_t>(batches())));
  return ObjectPtr(made);
}

std::vector<int64_t> CsrMatrix::counts() const {
  std::vector<int64_t> all;
  for (int64_t b = 0; b < batches(); ++b)
    all.push_back(count(b));
  return all;
}

absl::StatusOr<CsrPtr> csrInput(const KernelContext &context, int i, DType type) {
  Tensor t = context.input(i);
  CsrPtr matrix;
  if (t.dtype() == DType::Variant && t.numElements() == 1)
    matrix = std::dynamic_pointer_cast<const CsrMatrix>(t.objects()[0]);
  if (!matrix)
    return invalid("Could not retrieve Variant input ", i, " as a sparse matrix");
  if (type != DType::Invalid && matrix->dtype() != type)
    return invalid("dtype of input ", i, " is not equal to the node's type: ", dtypeName(matrix->dtype()), " vs. ", dtypeName(type));
  return matrix;
}

absl::StatusOr<std::shared_ptr<CsrMatrix>> csrWithValues(const CsrMatrix &matrix) {
  LATHE_TRY_VALUE(values, Tensor::tryAllocate(matrix.dtype(), {matrix.count()}, kMaxTensorBytes));
  auto made = std::make_shared<CsrMatrix>(matrix);
  made->values = values;
  return made;
}

absl::StatusOr<std::shared_ptr<CsrMatrix>> csrTransposed(const CsrMatrix &in, bool conjugate) {
  std::vector<int64_t> dims = in.dims;
  std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
  LATHE_TRY_VALUE(out, CsrMatrix::allocate(in.dtype(), dims, in.counts()));
  LATHE_TRY(withCsrType(in.dtype(), [&](auto zero) {
    using T = decltype(zero);
    std::vector<int32_t> next;
    for (int64_t b = 0; b < in.batches(); ++b) {
      const int32_t *from = in.starts(b), *columns = in.columnsOf(b);
      int32_t *starts = out->starts(b);
      for (int64_t i = 0; i < in.count(b); ++i)
        ++starts[columns[i] + 1];
      for (int64_t r = 0; r < out->rows(); ++r)
        starts[r + 1] += starts[r];
      next.assign(starts, starts + out->rows());
      for (int64_t r = 0; r < in.rows(); ++r)
        for (int32_t i = from[r]; i < from[r + 1]; ++i) {
          int32_t at = next[columns[i]]++;
          T value = in.valuesOf<T>(b)[i];
          out->columnsOf(b)[at] = static_cast<int32_t>(r);
          out->template valuesOf<T>(b)[at] = conjugate ? conjugated(value) : value;
        }
    }
    return absl::OkStatus();
  }));
  return out;
}

absl::Status checkSquare(const CsrMatrix &matrix) {
  if (matrix.rows() != matrix.cols())
    return invalid("sparse matrix must be square; got: ", matrix.rows(), " != ", matrix.cols());
  return absl::OkStatus();
}

} // namespace lathe::rt
