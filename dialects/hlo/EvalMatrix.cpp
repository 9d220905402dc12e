// Factorisations of the evaluator, in double: Cholesky, triangular solve, QR by Householder reflections, LU with partial
// pivoting, eigenvalues of Hermitian matrices by QR steps on a tridiagonal form, singular values by rotations from
// both sides.
#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Eval.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

using namespace mlir;

namespace lathe::hlo::eval {

namespace {

double conjugate(double x) { return x; }
Complex conjugate(Complex x) { return std::conj(x); }
double realPart(double x) { return x; }
double realPart(Complex x) { return x.real(); }
double square(double x) { return x * x; }
double square(Complex x) { return std::norm(x); }

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

// The batch of matrices in a tensor.
template <typename T>
struct Batch {
  int64_t rows, columns, count;
  std::vector<T> values;
  explicit Batch(const Tensor &t)
      : rows(t.dim(t.rank() - 2)), columns(t.dim(t.rank() - 1)),
        count(product(ArrayRef<int64_t>(t.dims()).drop_back(2))), values(loadAs<T>(t)) {}
  Matrix<T> operator[](int64_t k) const {
    Matrix<T> m(rows, columns);
    std::copy_n(values.begin() + k * rows * columns, rows * columns, m.values.begin());
    return m;
  }
};

// A result to which matrices (or vectors) are appended.
template <typename T>
struct Output {
  Tensor tensor;
  int64_t at = 0;
  LogicalResult allocate(Evaluation &e, Operation *op, const Tensor &like, DType type, Dims last) {
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

DType realType(DType type) {
  return type == DType::Complex64 ? DType::Float32 : type == DType::Complex128 ? DType::Float64 : type;
}

LogicalResult cubicWork(Evaluation &e, Operation *op, const Tensor &t, double factor) {
  double n = std::max(t.dim(t.rank() - 1), t.dim(t.rank() - 2));
  return e.work(op, static_cast<double>(t.numElements()) * n * factor);
}

//===----------------------------------------------------------------------===//
// Cholesky, triangular solve
//===----------------------------------------------------------------------===//

template <typename T>
LogicalResult cholesky(Evaluation &e, CholeskyOp op, ArrayRef<Tensor> in, Tensors &out) {
  Batch<T> batch(in[0]);
  int64_t n = batch.rows;
  Output<T> result;
  if (failed(cubicWork(e, op, in[0], 1)) || failed(result.allocate(e, op, in[0], in[0].dtype(), {n, n})))
    return failure();
  for (int64_t k = 0; k < batch.count; ++k) {
    Matrix<T> a = batch[k], l(n, n);
    if (!op.getLower())
      a = a.adjoint(); // the upper triangle becomes the lower one
    bool positive = true;
    for (int64_t j = 0; j < n && positive; ++j) {
      double d = realPart(a(j, j));
      for (int64_t p = 0; p < j; ++p)
        d -= square(l(j, p));
      positive = d > 0;
      double root = std::sqrt(d);
      l(j, j) = root;
      for (int64_t i = j + 1; i < n; ++i) {
        T sum = a(i, j);
        for (int64_t p = 0; p < j; ++p)
          sum -= l(i, p) * conjugate(l(j, p));
        l(i, j) = sum / root;
      }
    }
    if (!positive)
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j <= i; ++j)
          l(i, j) = std::numeric_limits<double>::quiet_NaN();
    result.append(op.getLower() ? l.values : l.adjoint().values);
  }
  out.push_back(result.tensor);
  return success();
}

template <typename T>
LogicalResult triangularSolve(Evaluation &e, TriangularSolveOp op, ArrayRef<Tensor> in, Tensors &out) {
  Batch<T> as(in[0]), bs(in[1]);
  bool left = op.getLeftSide();
  int64_t n = as.rows;
  if (as.columns != n || (left ? bs.rows : bs.columns) != n || as.count != bs.count)
    return e.fail(op, "sizes differ at run time");
  Output<T> result;
  if (failed(cubicWork(e, op, in[0], 1)) || failed(cubicWork(e, op, in[1], 1)) ||
      failed(result.allocate(e, op, in[1], in[1].dtype(), {bs.rows, bs.columns})))
    return failure();
  for (int64_t k = 0; k < as.count; ++k) {
    Matrix<T> a = as[k], b = bs[k];
    bool lower = op.getLower();
    // x op(a) = b is op(a)^T x^T = b^T: bring all to m x = b
    Matrix<T> m(n, n);
    bool transposeA = op.getTransposeA() != Transpose::NO_TRANSPOSE, adjointA = op.getTransposeA() == Transpose::ADJOINT;
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j) {
        bool inside = i == j || (lower ? i > j : i < j);
        T value = !inside ? T() : (i == j && op.getUnitDiagonal()) ? T(1) : a(i, j);
        if (adjointA)
          value = conjugate(value);
        bool swap = transposeA != !left;
        (swap ? m(j, i) : m(i, j)) = value;
      }
    bool mLower = lower != (transposeA != !left);
    int64_t columns = left ? bs.columns : bs.rows;
    auto x = [&](int64_t i, int64_t c) -> T & { return left ? b(i, c) : b(c, i); };
    for (int64_t c = 0; c < columns; ++c)
      for (int64_t s = 0; s < n; ++s) {
        int64_t i = mLower ? s : n - 1 - s;
        T sum = x(i, c);
        for (int64_t j = mLower ? 0 : i + 1; j < (mLower ? i : n); ++j)
          sum -= m(i, j) * x(j, c);
        x(i, c) = sum / m(i, i);
      }
    result.append(b.values);
  }
  out.push_back(result.tensor);
  return success();
}

//===----------------------------------------------------------------------===//
// QR, LU
//===----------------------------------------------------------------------===//

// a becomes R, the result is the full Q (rows x rows).
template <typename T>
Matrix<T> householder(Matrix<T> &a) {
  int64_t m = a.rows, n = a.columns;
  Matrix<T> q = Matrix<T>::identity(m);
  for (int64_t j = 0; j < std::min(m, n); ++j) {
    double tail = 0;
    for (int64_t i = j + 1; i < m; ++i)
      tail += square(a(i, j));
    T head = a(j, j);
    if (tail == 0 && head == T(realPart(head)))
      continue; // nothing to remove: no reflection, the sign stays
    double beta = std::sqrt(square(head) + tail);
    if (realPart(head) >= 0)
      beta = -beta;
    // v = (1, tail / (head - beta)), tau = (beta - head) / beta
    std::vector<T> v(m);
    v[j] = 1;
    for (int64_t i = j + 1; i < m; ++i)
      v[i] = a(i, j) / (head - beta);
    T tau = conjugate((beta - head) / beta);
    for (int64_t c = j; c < n; ++c) {
      T sum = 0;
      for (int64_t i = j; i < m; ++i)
        sum += conjugate(v[i]) * a(i, c);
      for (int64_t i = j; i < m; ++i)
        a(i, c) -= tau * v[i] * sum;
    }
    for (int64_t i = j + 1; i < m; ++i)
      a(i, j) = 0;
    // Q H^-1 for the H = I - tau v v^H applied to a
    for (int64_t r = 0; r < m; ++r) {
      T sum = 0;
      for (int64_t i = j; i < m; ++i)
        sum += q(r, i) * v[i];
      for (int64_t i = j; i < m; ++i)
        q(r, i) -= conjugate(tau) * sum * conjugate(v[i]);
    }
  }
  return q;
}

template <typename T>
LogicalResult qr(Evaluation &e, QrOp op, ArrayRef<Tensor> in, Tensors &out) {
  Batch<T> batch(in[0]);
  int64_t m = batch.rows, n = batch.columns, k = op.getFullMatrices() ? m : std::min(m, n);
  Output<T> qs, rs;
  // all of Q is made, also of a matrix without columns
  if (failed(cubicWork(e, op, in[0], 4)) || failed(e.scratch(op, static_cast<double>(m) * m * sizeof(T))) ||
      failed(qs.allocate(e, op, in[0], in[0].dtype(), {m, k})) || failed(rs.allocate(e, op, in[0], in[0].dtype(), {k, n})))
    return failure();
  for (int64_t b = 0; b < batch.count; ++b) {
    Matrix<T> r = batch[b], q = householder(r), qPart(m, k), rPart(k, n);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < k; ++j)
        qPart(i, j) = q(i, j);
    std::copy_n(r.values.begin(), k * n, rPart.values.begin());
    qs.append(qPart.values);
    rs.append(rPart.values);
  }
  out.push_back(qs.tensor);
  out.push_back(rs.tensor);
  return success();
}

template <typename T>
LogicalResult lu(Evaluation &e, LuOp op, ArrayRef<Tensor> in, Tensors &out) {
  Batch<T> batch(in[0]);
  int64_t m = batch.rows, n = batch.columns;
  Output<T> result;
  Output<int64_t> permutations;
  if (failed(cubicWork(e, op, in[0], 1)) || failed(result.allocate(e, op, in[0], in[0].dtype(), {m, n})) ||
      failed(permutations.allocate(e, op, in[0], DType::Int32, {m})))
    return failure();
  for (int64_t b = 0; b < batch.count; ++b) {
    Matrix<T> a = batch[b];
    std::vector<int64_t> permutation(m);
    std::iota(permutation.begin(), permutation.end(), 0);
    for (int64_t j = 0; j < std::min(m, n); ++j) {
      int64_t pivot = j;
      for (int64_t i = j + 1; i < m; ++i)
        if (std::abs(a(i, j)) > std::abs(a(pivot, j)))
          pivot = i;
      if (pivot != j) {
        for (int64_t c = 0; c < n; ++c)
          std::swap(a(pivot, c), a(j, c));
        std::swap(permutation[pivot], permutation[j]);
      }
      if (a(j, j) == T(0))
        continue;
      for (int64_t i = j + 1; i < m; ++i) {
        a(i, j) /= a(j, j);
        for (int64_t c = j + 1; c < n; ++c)
          a(i, c) -= a(i, j) * a(j, c);
      }
    }
    result.append(a.values);
    permutations.append(permutation);
  }
  out.push_back(result.tensor);
  out.push_back(permutations.tensor);
  return success();
}

//===----------------------------------------------------------------------===//
// Eigenvalues of Hermitian matrices
//===----------------------------------------------------------------------===//

/// Householder reflections to tridiagonal form, then implicit QR steps with Wilkinson's shift: the steps of Eigen's solver,
/// so that vectors have its signs and phases. BareEigh.cpp emits the same.
template <typename T>
class Eigh {
public:
  Eigh(Matrix<T> matrix, bool narrow)
      : n(matrix.rows), values(n), vectors(Matrix<T>::identity(n)), a(std::move(matrix)), off(n), tau(n),
        least(narrow ? std::numeric_limits<float>::min() : std::numeric_limits<double>::min()),
        epsilon(narrow ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon()) {
    double scale = 0; // that nothing overflows
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j <= i; ++j)
        scale = std::max(scale, std::abs(a(i, j)));
    scale = scale == 0 ? 1 : scale;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < i; ++j) {
        a(i, j) /= scale;
        a(j, i) = conjugate(a(i, j));
      }
      a(i, i) = realPart(a(i, i)) / scale;
    }
    tridiagonalize();
    makeBasis();
    iterate();
    for (int64_t i = 0; i < n; ++i) {
      int64_t at = std::min_element(values.begin() + i, values.end()) - values.begin();
      std::swap(values[i], values[at]);
      for (int64_t r = 0; r < n && at != i; ++r)
        std::swap(vectors(r, i), vectors(r, at));
    }
    for (double &v : values)
      v *= scale;
  }

  int64_t n;
  std::vector<double> values;
  Matrix<T> vectors;

private:
  void tridiagonalize() {
    for (int64_t i = 0; i + 1 < n; ++i) {
      T head = a(i + 1, i), h = 0;
      double tail = 0, beta = realPart(head);
      for (int64_t r = i + 2; r < n; ++r)
        tail += square(a(r, i));
      bool none = tail <= least && square(head - T(realPart(head))) <= least;
      if (!none) {
        beta = std::sqrt(square(head) + tail) * (realPart(head) >= 0 ? -1 : 1);
        h = conjugate((T(beta) - head) / beta);
      }
      for (int64_t r = i + 2; r < n; ++r)
        a(r, i) = none ? T(0) : a(r, i) / (head - T(beta));
      a(i + 1, i) = 1;
      std::vector<T> w(n);
      T dot = 0;
      for (int64_t r = i + 1; r < n; ++r) {
        for (int64_t c = i + 1; c < n; ++c)
          w[r] += a(r, c) * a(c, i);
        w[r] *= conjugate(h);
        dot += conjugate(w[r]) * a(r, i);
      }
      for (int64_t r = i + 1; r < n; ++r)
        w[r] -= 0.5 * conjugate(h) * dot * a(r, i);
      for (int64_t r = i + 1; r < n; ++r)
        for (int64_t c = i + 1; c < n; ++c)
          a(r, c) -= a(r, i) * conjugate(w[c]) + w[r] * conjugate(a(c, i));
      off[i] = beta;
      tau[i] = h;
    }
    for (int64_t i = 0; i < n; ++i)
      values[i] = realPart(a(i, i));
  }

  void makeBasis() {
    for (int64_t k = n - 2; k >= 0; --k)
      for (int64_t c = k + 1; c < n; ++c) {
        T sum = 0;
        for (int64_t r = k + 1; r < n; ++r)
          sum += conjugate(a(r, k)) * vectors(r, c);
        for (int64_t r = k + 1; r < n; ++r)
          vectors(r, c) -= a(r, k) * (conjugate(tau[k]) * sum);
      }
  }

  void iterate() {
    int64_t end = n - 1;
    for (int64_t round = 0; end > 0 && round < 30 * n; ++round) {
      for (int64_t i = 0; i < end; ++i)
        if (std::fabs(off[i]) < least || square(off[i] / epsilon) <= std::fabs(values[i]) + std::fabs(values[i + 1]))
          off[i] = 0;
      while (end > 0 && off[end - 1] == 0)
        --end;
      int64_t start = std::max<int64_t>(end - 1, 0);
      while (start > 0 && off[start - 1] != 0)
        --start;
      if (end > 0)
        step(start, end);
    }
  }

  void step(int64_t start, int64_t end) {
    double td = (values[end - 1] - values[end]) * 0.5, e = off[end - 1], mu = values[end];
    double p = std::max(std::fabs(td), std::fabs(e)), part = std::min(std::fabs(td), std::fabs(e)) / p;
    double wide = td + std::copysign(p * std::sqrt(part * part + 1), td > 0 ? 1.0 : -1.0);
    if (td == 0)
      mu -= std::fabs(e);
    else if (e != 0)
      mu -= e * e == 0 ? e / (wide / e) : e * e / wide;
    double x = values[start] - mu, z = off[start];
    for (int64_t k = start; k < end && z != 0; ++k) {
      bool steep = std::fabs(x) > std::fabs(z);
      double ratio = steep ? z / x : x / z, large = 1 / std::copysign(std::sqrt(ratio * ratio + 1), steep ? x : z);
      double c = steep ? large : ratio * large, s = steep ? -ratio * large : -large;
      double d = values[k], o = off[k], l = values[k + 1], sdk = s * d + c * o, dkp1 = s * o + c * l;
      values[k] = c * (c * d - s * o) - s * (c * o - s * l);
      values[k + 1] = s * sdk + c * dkp1;
      off[k] = c * sdk - s * dkp1;
      if (k > start)
        off[k - 1] = c * off[k - 1] - s * z;
      x = off[k];
      if (k < end - 1) {
        z = -s * off[k + 1];
        off[k + 1] *= c;
      }
      for (int64_t i = 0; i < n; ++i) {
        T v = vectors(i, k), w = vectors(i, k + 1);
        vectors(i, k) = c * v - s * w;
        vectors(i, k + 1) = s * v + c * w;
      }
    }
  }

  Matrix<T> a;
  std::vector<double> off;
  std::vector<T> tau;
  double least, epsilon;
};

template <typename T>
LogicalResult eigh(Evaluation &e, EighOp op, ArrayRef<Tensor> in, Tensors &out) {
  Batch<T> batch(in[0]);
  int64_t n = batch.rows;
  Output<double> values;
  Output<T> vectors;
  if (failed(cubicWork(e, op, in[0], 30)) ||
      failed(values.allocate(e, op, in[0], realType(in[0].dtype()), {n})) ||
      failed(vectors.allocate(e, op, in[0], in[0].dtype(), {n, n})))
    return failure();
  for (int64_t k = 0; k < batch.count; ++k) {
    Eigh<T> solver(batch[k], realType(in[0].dtype()) == DType::Float32);
    values.append(solver.values);
    vectors.append(solver.vectors.values);
  }
  out.push_back(values.tensor);
  out.push_back(vectors.tensor);
  return success();
}

//===----------------------------------------------------------------------===//
// Singular values
//===----------------------------------------------------------------------===//

/// Limits of the type that the operand has.
struct Limits {
  double least, epsilon;
  explicit Limits(bool narrow)
      : least(narrow ? std::numeric_limits<float>::min() : std::numeric_limits<double>::min()),
        epsilon(narrow ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon()) {}
};

/// I - factor * v * adjoint(v), where the first element of v is 1.
template <typename T>
struct Reflection {
  int64_t first; // the row (of what it is applied to) of v's first element
  std::vector<T> v;
  T factor;

  /// On rows of m, from column `from`; with the conjugate factor where `back`.
  void apply(Matrix<T> &m, int64_t from, bool back) const {
    for (int64_t c = from; c < m.columns; ++c) {
      T sum = 0;
      for (size_t r = 0; r < v.size(); ++r)
        sum += conjugate(v[r]) * m(first + r, c);
      sum *= back ? conjugate(factor) : factor;
      for (size_t r = 0; r < v.size(); ++r)
        m(first + r, c) -= v[r] * sum;
    }
  }
};

/// The reflection that turns x into (beta, 0, ...).
template <typename T>
Reflection<T> reflectionOf(int64_t first, std::vector<T> x, const Limits &limits, double &beta) {
  T head = x[0], factor = 0;
  double tail = 0;
  for (size_t r = 1; r < x.size(); ++r)
    tail += square(x[r]);
  bool none = tail <= limits.least && square(head - T(realPart(head))) <= limits.least;
  beta = realPart(head);
  if (!none) {
    beta = std::sqrt(square(head) + tail) * (realPart(head) >= 0 ? -1 : 1);
    factor = conjugate((T(beta) - head) / beta);
  }
  for (T &value : x)
    value = none ? T(0) : value / (head - T(beta));
  x[0] = 1;
  return {first, std::move(x), factor};
}

/// Rotations of both sides by [c s; -conj(s) c] until the matrix is diagonal; a matrix that is not square first becomes a
/// triangular one by reflections with pivots. The steps are those of Eigen's JacobiSVD, so that vectors have its signs.
/// BareSvd.cpp emits the same.
template <typename T>
class Jacobi {
public:
  /// `basis` columns for the factor of the longer side.
  Jacobi(Matrix<T> a, int64_t basis, const Limits &limits)
      : size(std::min(a.rows, a.columns)), values(size), u(0, 0), v(0, 0), limits(limits), w(0, 0) {
    double scale = 0;
    for (T x : a.values)
      scale = std::max(scale, std::abs(x));
    scale = scale == 0 ? 1 : scale;
    for (T &x : a.values)
      x /= scale;
    if (a.rows > a.columns) {
      triangularize(std::move(a), basis, u, v);
    } else if (a.rows < a.columns) {
      triangularize(a.adjoint(), basis, v, u);
      w = w.adjoint();
    } else {
      w = std::move(a);
      u = v = Matrix<T>::identity(size);
    }
    iterate();
    sort();
    for (double &value : values)
      value *= scale;
  }

  int64_t size;
  std::vector<double> values;
  Matrix<T> u, v;

private:
  /// a (rows >= columns) = q * w * adjoint(permutation)
  void triangularize(Matrix<T> a, int64_t basis, Matrix<T> &q, Matrix<T> &permutation) {
    std::vector<double> norms(size), direct(size);
    auto normBelow = [&](int64_t j, int64_t from) {
      double sum = 0;
      for (int64_t i = from; i < a.rows; ++i)
        sum += square(a(i, j));
      return std::sqrt(sum);
    };
    std::vector<int64_t> order(size);
    std::iota(order.begin(), order.end(), 0);
    for (int64_t j = 0; j < size; ++j)
      norms[j] = direct[j] = normBelow(j, 0);
    std::vector<Reflection<T>> reflections;
    for (int64_t k = 0; k < size; ++k) {
      int64_t at = std::max_element(norms.begin() + k, norms.end()) - norms.begin();
      std::swap(norms[k], norms[at]);
      std::swap(direct[k], direct[at]);
      std::swap(order[k], order[at]);
      for (int64_t i = 0; i < a.rows && at != k; ++i)
        std::swap(a(i, k), a(i, at));
      std::vector<T> x;
      for (int64_t i = k; i < a.rows; ++i)
        x.push_back(a(i, k));
      double beta;
      reflections.push_back(reflectionOf(k, std::move(x), limits, beta));
      reflections.back().apply(a, k + 1, false);
      a(k, k) = beta;
      for (int64_t j = k + 1; j < size; ++j) {
        if (norms[j] == 0)
          continue;
        double part = std::abs(a(k, j)) / norms[j], rest = std::max((1 + part) * (1 - part), 0.0);
        if (rest * square(norms[j] / direct[j]) <= std::sqrt(limits.epsilon))
          norms[j] = direct[j] = normBelow(j, k + 1);
        else
          norms[j] *= std::sqrt(rest);
      }
    }
    w = permutation = Matrix<T>(size, size);
    q = Matrix<T>(a.rows, basis);
    for (int64_t j = 0; j < size; ++j) {
      permutation(order[j], j) = 1;
      for (int64_t i = 0; i <= j; ++i)
        w(i, j) = a(i, j);
    }
    for (int64_t j = 0; j < basis; ++j)
      q(j, j) = 1;
    for (auto it = reflections.rbegin(); it != reflections.rend(); ++it)
      it->apply(q, 0, true);
  }

  // rows become (c p + conj(s) q, c' q - s p), c' the conjugate of c; columns (c p - s q, c' q + conj(s) p)
  static void rotateRows(Matrix<T> &m, int64_t p, int64_t q, T c, T s) {
    for (int64_t j = 0; j < m.columns; ++j) {
      T x = m(p, j), y = m(q, j);
      m(p, j) = c * x + conjugate(s) * y;
      m(q, j) = conjugate(c) * y - s * x;
    }
  }
  static void rotateColumns(Matrix<T> &m, int64_t p, int64_t q, T c, T s) {
    for (int64_t i = 0; i < m.rows; ++i) {
      T x = m(i, p), y = m(i, q);
      m(i, p) = c * x - s * y;
      m(i, q) = conjugate(c) * y + conjugate(s) * x;
    }
  }
  static void scaleColumn(Matrix<T> &m, int64_t j, T by) {
    for (int64_t i = 0; i < m.rows; ++i)
      m(i, j) *= by;
  }
  void scaleRow(int64_t i, T by) {
    for (int64_t j = 0; j < size; ++j)
      w(i, j) *= by;
    scaleColumn(u, i, conjugate(by));
  }

  /// Makes the block of rows and columns p and q real; its first column becomes (norm, 0).
  void makeReal(int64_t p, int64_t q) {
    auto imaginary = [&](int64_t i, int64_t j) { return std::abs(w(i, j) - T(realPart(w(i, j)))) > limits.least; };
    auto phase = [&](int64_t i, int64_t j) { return T(std::abs(w(i, j))) / w(i, j); };
    double norm = std::sqrt(square(w(p, p)) + square(w(q, p)));
    if (norm == 0) {
      w(p, p) = w(q, p) = 0;
      if (imaginary(p, q))
        scaleRow(p, phase(p, q));
    } else {
      T c = conjugate(w(p, p)) / norm, s = w(q, p) / norm;
      rotateRows(w, p, q, c, s);
      rotateColumns(u, p, q, conjugate(c), -s);
      if (imaginary(p, q)) {
        T by = phase(p, q);
        scaleColumn(w, q, by);
        scaleColumn(v, q, by);
      }
    }
    if (imaginary(q, q))
      scaleRow(q, phase(q, q));
  }

  /// Makes the (real) block of rows and columns p and q diagonal.
  void rotate(int64_t p, int64_t q) {
    double a = realPart(w(p, p)), b = realPart(w(p, q)), c = realPart(w(q, p)), d = realPart(w(q, q));
    double difference = c - b, c1 = 1, s1 = 0, c2 = 1, s2 = 0;
    if (std::fabs(difference) >= limits.least) {
      double ratio = (a + d) / difference, root = std::sqrt(1 + ratio * ratio);
      s1 = 1 / root;
      c1 = ratio / root;
    }
    // symmetric now
    double x = c1 * a + s1 * c, y = c1 * b + s1 * d, z = c1 * d - s1 * b, twice = 2 * std::fabs(y);
    if (twice >= limits.least) {
      double tau = (x - z) / twice, root = std::sqrt(tau * tau + 1), t = 1 / (tau > 0 ? tau + root : tau - root);
      c2 = 1 / std::sqrt(t * t + 1);
      s2 = -t * c2 * (y / std::fabs(y));
    }
    double c3 = c1 * c2 + s1 * s2, s3 = s1 * c2 - c1 * s2;
    rotateRows(w, p, q, c3, s3);
    rotateColumns(u, p, q, c3, -s3);
    rotateColumns(w, p, q, c2, s2);
    rotateColumns(v, p, q, c2, s2);
  }

  void iterate() {
    double most = 0;
    for (int64_t i = 0; i < size; ++i)
      most = std::max(most, std::abs(w(i, i)));
    auto diagonal = [&](int64_t p, int64_t q, double precision) {
      double bound = std::max(limits.least, precision * most);
      return !(std::abs(w(p, q)) > bound || std::abs(w(q, p)) > bound);
    };
    bool done = false;
    for (int sweep = 0; sweep < maxSweeps && !done; ++sweep) {
      done = true;
      for (int64_t p = 1; p < size; ++p)
        for (int64_t q = 0; q < p; ++q) {
          if (diagonal(p, q, 2 * limits.epsilon))
            continue;
          done = false;
          auto update = [&] { most = std::max({most, std::abs(w(p, p)), std::abs(w(q, q))}); };
          if (std::is_same_v<T, Complex>) {
            makeReal(p, q);
            update();
            if (diagonal(p, q, limits.epsilon))
              continue;
          }
          rotate(p, q);
          update();
        }
    }
    for (int64_t i = 0; i < size; ++i) {
      T x = w(i, i);
      values[i] = std::abs(x);
      if (std::abs(x - T(realPart(x))) > limits.least)
        scaleColumn(u, i, x / values[i]);
      else if (realPart(x) < 0)
        scaleColumn(u, i, -1);
    }
  }

  /// Descending, by swaps.
  void sort() {
    for (int64_t i = 0; i < size; ++i) {
      int64_t at = std::max_element(values.begin() + i, values.end()) - values.begin();
      if (at == i)
        continue;
      std::swap(values[i], values[at]);
      for (Matrix<T> *m : {&u, &v})
        for (int64_t r = 0; r < m->rows; ++r)
          std::swap((*m)(r, i), (*m)(r, at));
    }
  }

  static constexpr int maxSweeps = 100;
  const Limits &limits;
  Matrix<T> w;
};

/// A wide matrix with few rows: its adjoint made bidiagonal by reflections, then rotations of that. So does Eigen's BDCSVD from
/// 16 columns on while there are fewer than 16 rows.
template <typename T>
void bidiagonalSvd(const Matrix<T> &wide, int64_t basis, const Limits &limits, std::vector<double> &s, Matrix<T> &u, Matrix<T> &v) {
  Matrix<T> a = wide.adjoint();
  double scale = 0;
  for (T x : a.values)
    scale = std::max(scale, std::abs(x));
  scale = scale == 0 ? 1 : scale;
  for (T &x : a.values)
    x /= scale;
  int64_t n = a.columns;
  std::vector<Reflection<T>> first, left, right;
  auto columnOf = [&](const Matrix<T> &m, int64_t k) {
    std::vector<T> x;
    for (int64_t i = k; i < m.rows; ++i)
      x.push_back(m(i, k));
    return x;
  };
  double beta;
  if (a.rows / 4 > n) {
    Matrix<T> r(n, n);
    for (int64_t k = 0; k < n; ++k) {
      first.push_back(reflectionOf(k, columnOf(a, k), limits, beta));
      first.back().apply(a, k + 1, false);
      a(k, k) = beta;
    }
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = i; j < n; ++j)
        r(i, j) = a(i, j);
    a = std::move(r);
  }
  Matrix<double> b(n + 1, n); // the transpose of the upper bidiagonal matrix, and a row of zeros
  for (int64_t k = 0; k < n; ++k) {
    left.push_back(reflectionOf(k, columnOf(a, k), limits, b(k, k)));
    left.back().apply(a, k + 1, false);
    if (k == n - 1)
      break;
    std::vector<T> row;
    for (int64_t j = k + 1; j < n; ++j)
      row.push_back(a(k, j));
    Reflection<T> reflection = reflectionOf(k + 1, std::move(row), limits, b(k + 1, k));
    for (int64_t i = k + 1; i < a.rows; ++i) {
      T sum = 0;
      for (int64_t j = k + 1; j < n; ++j)
        sum += a(i, j) * conjugate(reflection.v[j - k - 1]);
      for (int64_t j = k + 1; j < n; ++j)
        a(i, j) -= reflection.factor * sum * reflection.v[j - k - 1];
    }
    for (T &x : reflection.v) // as applied from the left below
      x = conjugate(x);
    reflection.factor = conjugate(reflection.factor);
    right.push_back(std::move(reflection));
  }
  Jacobi<double> inner(std::move(b), n + 1, limits);
  s = inner.values;
  for (double &value : s)
    value *= scale;
  u = Matrix<T>(n, n);
  v = Matrix<T>(wide.columns, basis);
  for (int64_t j = 0; j < basis; ++j)
    v(j, j) = 1;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) {
      u(i, j) = inner.u(i, j);
      v(i, j) = inner.v(i, j);
    }
  auto applyAll = [](const std::vector<Reflection<T>> &list, Matrix<T> &m) {
    for (auto it = list.rbegin(); it != list.rend(); ++it)
      it->apply(m, 0, true);
  };
  applyAll(right, u);
  applyAll(left, v);
  applyAll(first, v);
}

template <typename T>
LogicalResult svd(Evaluation &e, SvdOp op, ArrayRef<Tensor> in, Tensors &out) {
  Batch<T> batch(in[0]);
  int64_t m = batch.rows, n = batch.columns, k = std::min(m, n), basis = op.getFullMatrices() ? std::max(m, n) : k;
  DType real = realType(in[0].dtype());
  Output<double> ss;
  Output<T> us, vs;
  if (failed(cubicWork(e, op, in[0], 60)) || failed(ss.allocate(e, op, in[0], real, {k})) ||
      failed(us.allocate(e, op, in[0], in[0].dtype(), {m, m > n ? basis : k})) ||
      failed(vs.allocate(e, op, in[0], in[0].dtype(), {n, m < n ? basis : k})))
    return failure();
  Limits limits(real == DType::Float32);
  for (int64_t b = 0; b < batch.count; ++b) {
    Matrix<T> u(0, 0), v(0, 0);
    std::vector<double> s;
    if (n >= 16 && m > 0 && m < 16) {
      bidiagonalSvd(batch[b], basis, limits, s, u, v);
    } else {
      Jacobi<T> solver(batch[b], basis, limits);
      s = std::move(solver.values);
      u = std::move(solver.u);
      v = std::move(solver.v);
    }
    ss.append(s);
    us.append(u.values);
    vs.append(v.values);
  }
  out.push_back(ss.tensor);
  out.push_back(us.tensor);
  out.push_back(vs.tensor);
  return success();
}

} // namespace

// The handler for floats or complex numbers by the operand's type.
template <typename OpT, LogicalResult (*forReal)(Evaluation &, OpT, ArrayRef<Tensor>, Tensors &),
          LogicalResult (*forComplex)(Evaluation &, OpT, ArrayRef<Tensor>, Tensors &)>
static LogicalResult byKind(Evaluation &e, OpT op, ArrayRef<Tensor> in, Tensors &out) {
  for (const Tensor &t : in)
    if (t.rank() < 2)
      return e.fail(op, "expected matrices");
  return kindOf(in[0].dtype()) == Kind::Complex ? forComplex(e, op, in, out) : forReal(e, op, in, out);
}

void registerMatrix(HandlerTable &table) {
  add<CholeskyOp, byKind<CholeskyOp, cholesky<double>, cholesky<Complex>>>(table);
  add<TriangularSolveOp, byKind<TriangularSolveOp, triangularSolve<double>, triangularSolve<Complex>>>(table);
  add<QrOp, byKind<QrOp, qr<double>, qr<Complex>>>(table);
  add<LuOp, byKind<LuOp, lu<double>, lu<Complex>>>(table);
  add<EighOp, byKind<EighOp, eigh<double>, eigh<Complex>>>(table);
  add<SvdOp, byKind<SvdOp, svd<double>, svd<Complex>>>(table);
}

} // namespace lathe::hlo::eval
