// Products: SparseMatrixMatMul with a dense tensor, SparseMatrixSparseMatMul of two matrices.
#include "runtime/kernels/sparse/Csr.h"

#include <algorithm>

namespace lathe::rt {
namespace {

/// What to do to an operand before the product.
struct Form {
  bool transposed = false, conjugate = false;
};

absl::Status readForm(KernelInit &init, const std::string &which, Form &form) {
  bool transposed = init.attr<bool>("transpose_" + which), adjoint = init.attr<bool>("adjoint_" + which);
  if (transposed && adjoint)
    return invalid("Only one of adjoint_", which, " and transpose_", which, " may be true.");
  form = {transposed || adjoint, adjoint};
  return absl::OkStatus();
}

/// Copies `batches` matrices of rows x cols to cols x rows.
template <typename T>
void transposeDense(const T *from, T *to, int64_t batches, int64_t rows, int64_t cols, bool conjugate) {
  for (int64_t b = 0; b < batches; ++b, from += rows * cols, to += rows * cols)
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < cols; ++c)
        to[c * rows + r] = conjugate ? conjugated(from[r * cols + c]) : from[r * cols + c];
}

/// product += op(a) dense; dense has `width` columns, product starts as zeros.
template <typename T>
void multiply(const CsrMatrix &a, int64_t batch, Form form, const T *dense, int64_t width, T *product) {
  const int32_t *starts = a.starts(batch), *columns = a.columnsOf(batch);
  for (int64_t r = 0; r < a.rows(); ++r)
    for (int32_t i = starts[r]; i < starts[r + 1]; ++i) {
      T value = a.valuesOf<T>(batch)[i];
      if (form.conjugate)
        value = conjugated(value);
      const T *from = dense + (form.transposed ? r : columns[i]) * width;
      T *to = product + (form.transposed ? columns[i] : r) * width;
      for (int64_t k = 0; k < width; ++k)
        to[k] += value * from[k];
    }
}

class MatMul : public HostKernel {
public:
  explicit MatMul(KernelInit &init) {
    init.fail(readForm(init, "a", a));
    init.fail(readForm(init, "b", b));
    output = {init.attr<bool>("transpose_output"), init.attr<bool>("conjugate_output")};
  }

  absl::Status compute(KernelContext &context) override {
    LATHE_TRY_VALUE(left, csrInput(context, 0));
    Tensor right = context.input(1);
    LATHE_TRY(check(*left, right));
    return withCsrType(left->dtype(), [&](auto zero) { return run<decltype(zero)>(context, *left, right); });
  }

private:
  absl::Status check(const CsrMatrix &left, const Tensor &right) const {
    if (left.dtype() != right.dtype())
      return invalid("Input types don't match.  a.dtype == ", dtypeName(left.dtype()), " vs. b.dtype == ", dtypeName(right.dtype()));
    if (left.rank() != right.rank())
      return invalid("Ranks of a and b must match, saw: ", left.rank(), " vs. ", right.rank(), ".");
    if (left.rank() == 3 && left.batches() != right.dim(0))
      return invalid("Batch sizes of a and b must match, saw: ", left.batches(), " vs. ", right.dim(0), ".");
    int64_t inner = a.transposed ? left.rows() : left.cols(), other = right.dim(right.rank() - (b.transposed ? 1 : 2));
    if (inner != other)
      return invalid("Inner product dimensions of A and B do not agree. Shapes are: ", dimsToString(left.dims), " vs. ",
                     dimsToString(right.dims()));
    return absl::OkStatus();
  }

  template <typename T>
  absl::Status run(KernelContext &context, const CsrMatrix &left, Tensor right) const {
    int64_t rank = left.rank(), batches = left.batches(), height = a.transposed ? left.cols() : left.rows();
    int64_t inner = a.transposed ? left.rows() : left.cols(), width = right.dim(rank - (b.transposed ? 2 : 1));
    std::vector<int64_t> dims = left.dims;
    dims[rank - 2] = output.transposed ? width : height;
    dims[rank - 1] = output.transposed ? height : width;
    LATHE_TRY_VALUE(out, context.allocateOutput(0, dims));
    if (b.transposed) {
      LATHE_TRY_VALUE(turned, context.allocate(right.dtype(), {batches, inner, width}));
      transposeDense(right.data<T>(), turned.template data<T>(), batches, width, inner, b.conjugate);
      right = turned;
    }
    Tensor product = out;
    if (output.transposed) {
      LATHE_TRY_VALUE(turned, context.allocate(right.dtype(), {batches, height, width}));
      product = turned;
    }
    for (int64_t i = 0; i < batches; ++i)
      multiply(left, i, a, right.data<T>() + i * inner * width, width, product.data<T>() + i * height * width);
    if (output.transposed)
      transposeDense(product.data<T>(), out.template data<T>(), batches, height, width, output.conjugate);
    else if (output.conjugate)
      std::transform(out.template data<T>(), out.template data<T>() + out.numElements(), out.template data<T>(), conjugated<T>);
    return absl::OkStatus();
  }

  Form a, b, output;
};
LATHE_HOST_KERNEL(SparseMatrixMatMul, MatMul);

/// The rows of one matrix under numbers of the columns that occur, so that what a product needs beside is no larger than the operands.
struct PackedColumns {
  std::vector<int32_t> names;  ///< the columns that occur, ascending
  std::vector<int32_t> places; ///< for each entry, where its column is among them

  PackedColumns(const CsrMatrix &m, int64_t batch) {
    const int32_t *columns = m.columnsOf(batch);
    names.assign(columns, columns + m.count(batch));
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    places.reserve(m.count(batch));
    for (int64_t i = 0; i < m.count(batch); ++i)
      places.push_back(static_cast<int32_t>(std::lower_bound(names.begin(), names.end(), columns[i]) - names.begin()));
  }
};

/// Visits the rows of a product: touch(place, entry of x, entry of y) for each pair that meets, then done(row, the places touched).
template <typename Touch, typename Done>
void eachProductRow(const CsrMatrix &x, const CsrMatrix &y, int64_t b, const PackedColumns &packed, Touch touch, Done done) {
  std::vector<int32_t> seen(packed.names.size(), -1), places;
  for (int64_t r = 0; r < x.rows(); ++r) {
    places.clear();
    for (int32_t i = x.starts(b)[r]; i < x.starts(b)[r + 1]; ++i) {
      int64_t inner = x.columnsOf(b)[i];
      for (int32_t j = y.starts(b)[inner]; j < y.starts(b)[inner + 1]; ++j) {
        int32_t place = packed.places[j];
        bool isNew = seen[place] != r;
        if (isNew) {
          seen[place] = static_cast<int32_t>(r);
          places.push_back(place);
        }
        touch(place, i, j, isNew);
      }
    }
    done(r, places);
  }
}

/// The product, with an entry wherever a row and a column have one in common, be their sum 0 or not. Columns ascend.
template <typename T>
absl::StatusOr<std::shared_ptr<CsrMatrix>> productOfTwo(const CsrMatrix &x, const CsrMatrix &y) {
  std::vector<int64_t> dims = x.dims, counts;
  dims.back() = y.cols();
  for (int64_t b = 0; b < x.batches(); ++b) {
    int64_t n = 0;
    eachProductRow(x, y, b, PackedColumns(y, b), [](auto...) {},
                   [&](int64_t, const std::vector<int32_t> &places) { n += static_cast<int64_t>(places.size()); });
    counts.push_back(n);
  }
  LATHE_TRY_VALUE(out, CsrMatrix::allocate(x.dtype(), dims, counts));
  for (int64_t b = 0; b < x.batches(); ++b) {
    PackedColumns packed(y, b);
    std::vector<T> sums(packed.names.size());
    int32_t at = 0;
    auto touch = [&](int32_t place, int32_t i, int32_t j, bool isNew) {
      T part = x.valuesOf<T>(b)[i] * y.valuesOf<T>(b)[j];
      sums[place] = isNew ? part : sums[place] + part;
    };
    eachProductRow(x, y, b, packed, touch, [&](int64_t r, std::vector<int32_t> &places) {
      std::sort(places.begin(), places.end());
      for (int32_t place : places) {
        out->columnsOf(b)[at] = packed.names[place];
        out->template valuesOf<T>(b)[at++] = sums[place];
      }
      out->starts(b)[r + 1] = at;
    });
  }
  return out;
}

class SparseMatMul : public HostKernel {
public:
  explicit SparseMatMul(KernelInit &init) : type(init.attr<DType>("type")) {
    init.fail(readForm(init, "a", a));
    init.fail(readForm(init, "b", b));
  }

  absl::Status compute(KernelContext &context) override {
    LATHE_TRY_VALUE(x, csrInput(context, 0, type));
    LATHE_TRY_VALUE(y, csrInput(context, 1, type));
    if (x->rank() != y->rank())
      return invalid("Ranks of A and B do not agree: ", x->rank(), " vs. ", y->rank());
    if (x->batches() != y->batches())
      return invalid("Batch sizes of A and B do not agree.  Batch sizes are: ", x->batches(), " vs. ", y->batches());
    LATHE_TRY(turn(a, x));
    LATHE_TRY(turn(b, y));
    if (x->cols() != y->rows())
      return invalid("Inner product dimensions of A and B do not agree.  Shapes are: ", dimsToString(x->dims), " vs. ",
                     dimsToString(y->dims));
    return withCsrType(type, [&](auto zero) -> absl::Status {
      LATHE_TRY_VALUE(out, productOfTwo<decltype(zero)>(*x, *y));
      context.setOutput(0, csrTensor(out));
      return absl::OkStatus();
    });
  }

private:
  static absl::Status turn(Form form, CsrPtr &matrix) {
    if (!form.transposed)
      return absl::OkStatus();
    LATHE_TRY_VALUE(turned, csrTransposed(*matrix, form.conjugate));
    matrix = turned;
    return absl::OkStatus();
  }

  const DType type;
  Form a, b;
};
LATHE_HOST_KERNEL(SparseMatrixSparseMatMul, SparseMatMul);

} // namespace
} // namespace lathe::rt
