// Dense matrices in double for the evaluator's factorisations.
#ifndef LATHE_DIALECTS_HLO_EVALMATRIX_H
#define LATHE_DIALECTS_HLO_EVALMATRIX_H

#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Eval.h"

#include <algorithm>
#include <cmath>

namespace lathe::hlo::eval {

inline double conjugate(double x) { return x; }
inline Complex conjugate(Complex x) { return std::conj(x); }
inline double realPart(double x) { return x; }
inline double realPart(Complex x) { return x.real(); }
inline double square(double x) { return x * x; }
inline double square(Complex x) { return std::norm(x); }

template <typename T>
struct Matrix {
  int64_t rows, columns;
  std::vector<T> values;
  Matrix(int64_t rows, int64_t columns) : rows(rows), columns(columns), values(rows * columns) {}
  T &operator()(int64_t i, int64_t j) { return values[i * columns + j]; }
  const T &operator()(int64_t i, int64_t j) const { return values[i * columns + j]; }
  static Matrix identity(int64_t n) {
    Matrix m(n, n);
    for (int64_t i = 0; i < n; ++i)
      m(i, i) = 1;
    return m;
  }
  Matrix adjoint() const {
    Matrix m(columns, rows);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        m(j, i) = conjugate((*this)(i, j));
    return m;
  }
};

/// The batch of matrices in a tensor.
template <typename T>
struct Batch {
  int64_t rows, columns, count;
  std::vector<T> values;
  explicit Batch(const Tensor &t)
      : rows(t.dim(t.rank() - 2)), columns(t.dim(t.rank() - 1)),
        count(product(llvm::ArrayRef<int64_t>(t.dims()).drop_back(2))), values(loadAs<T>(t)) {}
  Matrix<T> operator[](int64_t k) const {
    Matrix<T> m(rows, columns);
    std::copy_n(values.begin() + k * rows * columns, rows * columns, m.values.begin());
    return m;
  }
};

/// A result to which matrices (or vectors) are appended.
template <typename T>
struct Output {
  Tensor tensor;
  int64_t at = 0;
  llvm::LogicalResult allocate(Evaluation &e, mlir::Operation *op, const Tensor &like, DType type, Dims last) {
    Dims dims(like.dims().begin(), like.dims().end() - 2);
    dims.insert(dims.end(), last.begin(), last.end());
    return e.allocate(op, type, dims, tensor);
  }
  void append(const std::vector<T> &values) {
    storeAs<T>(tensor.dtype(), values.data(), values.size(),
               static_cast<char *>(tensor.data()) + at * dtypeSize(tensor.dtype()));
    at += values.size();
  }
};

inline DType realType(DType type) {
  return type == DType::Complex64 ? DType::Float32 : type == DType::Complex128 ? DType::Float64 : type;
}

/// Counts the work of a factorisation, `factor` times elements times the longer side.
inline llvm::LogicalResult cubicWork(Evaluation &e, mlir::Operation *op, const Tensor &t, double factor) {
  double n = std::max(t.dim(t.rank() - 1), t.dim(t.rank() - 2));
  return e.work(op, static_cast<double>(t.numElements()) * n * factor);
}

/// The handler for floats or complex numbers by the operand's type.
template <typename OpT, llvm::LogicalResult (*forReal)(Evaluation &, OpT, llvm::ArrayRef<Tensor>, Tensors &),
          llvm::LogicalResult (*forComplex)(Evaluation &, OpT, llvm::ArrayRef<Tensor>, Tensors &)>
llvm::LogicalResult byKind(Evaluation &e, OpT op, llvm::ArrayRef<Tensor> in, Tensors &out) {
  for (const Tensor &t : in)
    if (t.rank() < 2)
      return e.fail(op, "expected matrices");
  return kindOf(in[0].dtype()) == Kind::Complex ? forComplex(e, op, in, out) : forReal(e, op, in, out);
}

} // namespace lathe::hlo::eval

#endif
