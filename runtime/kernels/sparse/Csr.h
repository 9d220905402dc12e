// Sparse matrices in compressed rows: the variant that the SparseMatrix* and CSRSparseMatrix* ops pass around.
#ifndef LATHE_RUNTIME_KERNELS_SPARSE_CSR_H
#define LATHE_RUNTIME_KERNELS_SPARSE_CSR_H

#include "runtime/core/VariantMath.h"
#include "runtime/kernels/Common.h"

namespace lathe::rt {

/// A matrix or a batch of them, of float32, float64, complex64 or complex128. Immutable once it is in a tensor. Entries of a row
/// need no order, and a column may occur twice: both come from sparse tensors that are not in order.
///
/// Holds by construction, so kernels need not look: the pointers ascend, end with the number of entries, and columns are inside.
class CsrMatrix : public VariantMath {
public:
  /// INVALID_ARGUMENT for a rank other than 2 and 3, negative dimensions, or more rows than int32 counts; RESOURCE_EXHAUSTED where there
  /// is no memory for the pointers into them.
  static absl::Status checkDims(const std::vector<int64_t> &dims);
  /// A matrix with room for counts[b] entries in batch b; the pointers into rows, the columns and the values are zeros.
  /// checkDims' errors, INVALID_ARGUMENT for more entries than int32 counts, RESOURCE_EXHAUSTED where there is no memory.
  static absl::StatusOr<std::shared_ptr<CsrMatrix>> allocate(DType type, std::vector<int64_t> dims, const std::vector<int64_t> &counts);

  std::string describe() const override { return "sparse matrix of shape " + dimsToString(dims); }
  absl::StatusOr<ObjectPtr> zerosLike() const override;
  absl::StatusOr<ObjectPtr> plus(const Object &other) const override;

  std::vector<int64_t> dims; ///< [rows, columns] or [batches, rows, columns]
  Tensor batchStarts;        ///< int32 [batches + 1]: the first entry of a batch
  Tensor rowStarts;          ///< int32 [batches * (rows + 1)]: the first entry of a row, counted within the batch
  Tensor columns;            ///< int32 [entries]
  Tensor values;             ///< [entries]

  DType dtype() const { return values.dtype(); }
  int64_t rank() const { return static_cast<int64_t>(dims.size()); }
  int64_t batches() const { return rank() == 2 ? 1 : dims[0]; }
  int64_t rows() const { return dims[rank() - 2]; }
  int64_t cols() const { return dims[rank() - 1]; }
  int64_t count() const { return values.numElements(); }
  int64_t first(int64_t batch) const { return batchStarts.data<int32_t>()[batch]; }
  int64_t count(int64_t batch) const { return first(batch + 1) - first(batch); }
  const int32_t *starts(int64_t batch) const { return rowStarts.data<int32_t>() + batch * (rows() + 1); }
  int32_t *starts(int64_t batch) { return rowStarts.data<int32_t>() + batch * (rows() + 1); }
  const int32_t *columnsOf(int64_t batch) const { return columns.data<int32_t>() + first(batch); }
  int32_t *columnsOf(int64_t batch) { return columns.data<int32_t>() + first(batch); }
  template <typename T>
  const T *valuesOf(int64_t batch) const {
    return values.data<T>() + first(batch);
  }
  template <typename T>
  T *valuesOf(int64_t batch) {
    return values.data<T>() + first(batch);
  }
  /// Number of entries of each batch.
  std::vector<int64_t> counts() const;
};
using CsrPtr = std::shared_ptr<const CsrMatrix>;

/// The matrix that input i holds. With a type, INVALID_ARGUMENT for a matrix of another.
absl::StatusOr<CsrPtr> csrInput(const KernelContext &context, int i, DType type = DType::Invalid);
inline Tensor csrTensor(std::shared_ptr<CsrMatrix> matrix) {
  return Tensor::fromObjects(DType::Variant, {}, {std::move(matrix)});
}

/// The same entries with other values, which start as zeros.
absl::StatusOr<std::shared_ptr<CsrMatrix>> csrWithValues(const CsrMatrix &matrix);
/// Rows and columns exchanged; with `conjugate` complex values as their conjugates.
absl::StatusOr<std::shared_ptr<CsrMatrix>> csrTransposed(const CsrMatrix &matrix, bool conjugate);
/// INVALID_ARGUMENT unless the matrix is square.
absl::Status checkSquare(const CsrMatrix &matrix);

template <typename T>
constexpr bool isComplexNumber = std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

template <typename T>
T conjugated(T v) {
  if constexpr (isComplexNumber<T>)
    return std::conj(v);
  else
    return v;
}

/// Calls fn(T()) with the C++ type of a matrix's values.
template <typename Fn>
absl::Status withCsrType(DType type, Fn &&fn) {
  switch (type) {
  case DType::Float32:
    return fn(float());
  case DType::Float64:
    return fn(double());
  case DType::Complex64:
    return fn(std::complex<float>());
  case DType::Complex128:
    return fn(std::complex<double>());
  default:
    return invalid("CSRSparseMatrix::Validate: dtype = ", dtypeName(type), " not in {float32, float64, complex64, complex128}");
  }
}

} // namespace lathe::rt

#endif
