// Arithmetic on the entries of compressed rows: SparseMatrixAdd, SparseMatrixMul, SparseMatrixSoftmax and its gradient, Conj.
// TensorFlow has these but for Conj, and the sum and zeros of such variants, for GPUs alone; they mean the same here.
#include "runtime/kernels/sparse/Csr.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lathe::rt {
namespace {

template <typename T>
struct Entry {
  int32_t column, order; ///< order: which of the entries gathered it was
  T value;
  bool operator<(const Entry &other) const { return column != other.column ? column < other.column : order < other.order; }
};
template <typename T>
using Row = std::vector<Entry<T>>;

template <typename T>
void appendRow(const CsrMatrix &m, int64_t b, int64_t r, T factor, Row<T> &to) {
  for (int32_t i = m.starts(b)[r]; i < m.starts(b)[r + 1]; ++i)
    to.push_back({m.columnsOf(b)[i], static_cast<int32_t>(to.size()), factor * m.valuesOf<T>(b)[i]});
}

/// The sum of two rows; columns ascend.
template <typename T>
void sumRows(const CsrMatrix &x, T alpha, const CsrMatrix &y, T beta, int64_t b, int64_t r, Row<T> &sum) {
  sum.clear();
  appendRow(x, b, r, alpha, sum);
  appendRow(y, b, r, beta, sum);
  std::sort(sum.begin(), sum.end());
  size_t n = 0;
  for (size_t i = 0; i < sum.size(); ++i)
    if (n && sum[n - 1].column == sum[i].column)
      sum[n - 1].value += sum[i].value;
    else
      sum[n++] = sum[i];
  sum.resize(n);
}

/// alpha x + beta y, with an entry wherever either has one.
template <typename T>
absl::StatusOr<std::shared_ptr<CsrMatrix>> sumOf(const CsrMatrix &x, T alpha, const CsrMatrix &y, T beta) {
  if (x.dims != y.dims)
    return invalid("Incompatible shapes of a and b, a.shape == ", dimsToString(x.dims), ", b.shape == ", dimsToString(y.dims));
  std::vector<int64_t> counts(x.batches());
  Row<T> row;
  for (int64_t b = 0; b < x.batches(); ++b)
    for (int64_t r = 0; r < x.rows(); ++r) {
      sumRows(x, alpha, y, beta, b, r, row);
      counts[b] += static_cast<int64_t>(row.size());
    }
  LATHE_TRY_VALUE(out, CsrMatrix::allocate(x.dtype(), x.dims, counts));
  for (int64_t b = 0; b < x.batches(); ++b) {
    int32_t at = 0;
    for (int64_t r = 0; r < x.rows(); ++r) {
      sumRows(x, alpha, y, beta, b, r, row);
      for (const Entry<T> &entry : row) {
        out->columnsOf(b)[at] = entry.column;
        out->template valuesOf<T>(b)[at++] = entry.value;
      }
      out->starts(b)[r + 1] = at;
    }
  }
  return out;
}

absl::Status add(KernelContext &context) {
  DType type = *attrOf<DType>(*context.node, "T");
  LATHE_TRY_VALUE(x, csrInput(context, 0, type));
  LATHE_TRY_VALUE(y, csrInput(context, 1, type));
  Tensor alpha = context.input(2), beta = context.input(3);
  if (alpha.rank() != 0)
    return invalid("Expected alpha to be a scalar, saw shape: ", dimsToString(alpha.dims()));
  if (beta.rank() != 0)
    return invalid("Expected beta to be a scalar, saw shape: ", dimsToString(beta.dims()));
  return withCsrType(type, [&](auto zero) -> absl::Status {
    using T = decltype(zero);
    LATHE_TRY_VALUE(out, sumOf<T>(*x, *alpha.data<T>(), *y, *beta.data<T>()));
    context.setOutput(0, csrTensor(out));
    return absl::OkStatus();
  });
}
LATHE_HOST_FUNCTION(SparseMatrixAdd, add);

/// By a scalar, or a batch by a number for each of its matrices.
absl::Status mul(KernelContext &context) {
  LATHE_TRY_VALUE(in, csrInput(context, 0));
  Tensor by = context.input(1);
  if (in->dtype() != by.dtype())
    return invalid("Input types don't match.  a.dtype == ", dtypeName(in->dtype()), " vs. b.dtype == ", dtypeName(by.dtype()));
  if (by.rank() == 3) {
    if (in->rank() != 3 || by.dims() != std::vector<int64_t>{in->batches(), 1, 1})
      return invalid("If b is a rank-3 tensor, then a must be a rank 3 and the size of b be [batch_size, 1, 1].  But the shape of b is: ",
                     dimsToString(by.dims()), " and the shape of a is: ", dimsToString(in->dims));
  } else if (by.rank() != 0) {
    return absl::UnimplementedError(absl::StrCat("Multiplying by a 2D+ dense tensor is not currently supported, but shape of b is: ",
                                                 dimsToString(by.dims())));
  }
  LATHE_TRY_VALUE(out, csrWithValues(*in));
  LATHE_TRY(withCsrType(in->dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (int64_t b = 0; b < in->batches(); ++b) {
      T factor = by.data<T>()[by.rank() == 3 ? b : 0];
      for (int64_t i = 0; i < in->count(b); ++i)
        out->template valuesOf<T>(b)[i] = in->template valuesOf<T>(b)[i] * factor;
    }
    return absl::OkStatus();
  }));
  context.setOutput(0, csrTensor(out));
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(SparseMatrixMul, mul);

/// Of complex numbers, and of the matrices in variants.
absl::Status conj(KernelContext &context) {
  Tensor in = context.input(0);
  if (in.dtype() == DType::Complex64 || in.dtype() == DType::Complex128) {
    LATHE_TRY_VALUE(out, context.allocateOutput(0, in.dims()));
    return withCsrType(in.dtype(), [&](auto zero) {
      using T = decltype(zero);
      std::transform(in.data<T>(), in.data<T>() + in.numElements(), out.template data<T>(), conjugated<T>);
      return absl::OkStatus();
    });
  }
  if (in.dtype() != DType::Variant)
    return invalid("no conjugates of type ", dtypeName(in.dtype()));
  Tensor out = Tensor::allocate(DType::Variant, in.dims());
  for (int64_t k = 0; k < in.numElements(); ++k) {
    const ObjectPtr &object = in.objects()[k];
    const auto *matrix = dynamic_cast<const CsrMatrix *>(object.get());
    if (!matrix)
      return invalid("there is no conjugate of a ", object ? object->describe() : "variant without a value");
    LATHE_TRY_VALUE(made, csrWithValues(*matrix));
    LATHE_TRY(withCsrType(matrix->dtype(), [&](auto zero) {
      using T = decltype(zero);
      const T *from = matrix->values.template data<T>();
      std::transform(from, from + matrix->count(), made->values.template data<T>(), conjugated<T>);
      return absl::OkStatus();
    }));
    out.mutableObjects()[k] = made;
  }
  context.setOutput(0, out);
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(Conj, conj);

/// fn(T()) for the node's real type.
template <typename Fn>
absl::Status withRealType(DType type, Fn fn) {
  return type == DType::Float64 ? fn(double()) : type == DType::Float32 ? fn(float()) : invalid("softmax is for float32 and float64");
}

/// Of the entries of each row; what is not there has no share.
absl::Status softmax(KernelContext &context) {
  DType type = *attrOf<DType>(*context.node, "type");
  LATHE_TRY_VALUE(in, csrInput(context, 0, type));
  LATHE_TRY_VALUE(out, csrWithValues(*in));
  LATHE_TRY(withRealType(type, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t b = 0; b < in->batches(); ++b)
      for (int64_t r = 0; r < in->rows(); ++r) {
        const T *x = in->template valuesOf<T>(b);
        T *y = out->template valuesOf<T>(b), most = -std::numeric_limits<T>::infinity(), sum = 0;
        int32_t begin = in->starts(b)[r], end = in->starts(b)[r + 1];
        for (int32_t i = begin; i < end; ++i)
          most = std::max(most, x[i]);
        for (int32_t i = begin; i < end; ++i)
          sum += y[i] = std::exp(x[i] - most);
        for (int32_t i = begin; i < end; ++i)
          y[i] /= sum;
      }
    return absl::OkStatus();
  }));
  context.setOutput(0, csrTensor(out));
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(SparseMatrixSoftmax, softmax);

absl::Status softmaxGrad(KernelContext &context) {
  DType type = *attrOf<DType>(*context.node, "type");
  LATHE_TRY_VALUE(soft, csrInput(context, 0, type));
  LATHE_TRY_VALUE(grad, csrInput(context, 1, type));
  if (soft->dims != grad->dims)
    return invalid("Shapes of softmax and grad_softmax matrices differ: ", dimsToString(soft->dims), " vs. ", dimsToString(grad->dims));
  LATHE_TRY_VALUE(out, csrWithValues(*soft));
  LATHE_TRY(withRealType(type, [&](auto zero) {
    using T = decltype(zero);
    Row<T> row;
    for (int64_t b = 0; b < soft->batches(); ++b)
      for (int64_t r = 0; r < soft->rows(); ++r) {
        row.clear();
        appendRow(*grad, b, r, T(1), row);
        std::sort(row.begin(), row.end());
        const T *y = soft->template valuesOf<T>(b);
        T *dx = out->template valuesOf<T>(b), sum = 0;
        int32_t begin = soft->starts(b)[r], end = soft->starts(b)[r + 1];
        for (int32_t i = begin; i < end; ++i) {
          // the gradient of an entry that the other matrix lacks is 0
          int32_t column = soft->columnsOf(b)[i];
          auto at = std::lower_bound(row.begin(), row.end(), Entry<T>{column, 0, T(0)});
          dx[i] = at != row.end() && at->column == column ? at->value : T(0);
          sum += dx[i] * y[i];
        }
        for (int32_t i = begin; i < end; ++i)
          dx[i] = (dx[i] - sum) * y[i];
      }
    return absl::OkStatus();
  }));
  context.setOutput(0, csrTensor(out));
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(SparseMatrixSoftmaxGrad, softmaxGrad);

} // namespace

absl::StatusOr<ObjectPtr> CsrMatrix::plus(const Object &o) const {
  const auto *other = dynamic_cast<const CsrMatrix *>(&o);
  if (!other || other->dtype() != dtype())
    return invalid("a ", describe(), " of ", dtypeName(dtype()), " and a ", o.describe(), " cannot be added");
  ObjectPtr sum;
  LATHE_TRY(withCsrType(dtype(), [&](auto zero) -> absl::Status {
    using T = decltype(zero);
    LATHE_TRY_VALUE(out, sumOf<T>(*this, T(1), *other, T(1)));
    sum = out;
    return absl::OkStatus();
  }));
  return sum;
}

} // namespace lathe::rt
