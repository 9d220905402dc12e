// Factorisations of the evaluator, in double: Cholesky, triangular solve, QR by Householder reflections, LU with partial
// pivoting, eigenvalues of Hermitian matrices by QR steps on a tridiagonal form. EvalSvd.cpp has singular values.
#include "dialects/hlo/EvalMatrix.h"
#include "dialects/hlo/FloatLimits.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

using namespace mlir;

namespace lathe::hlo::eval {

namespace {

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
/// so that vectors have its signs and phases. Eigh.cpp emits the same.
template <typename T>
class Eigh {
public:
  Eigh(Matrix<T> matrix, bool narrow)
      : n(matrix.rows), values(n), vectors(Matrix<T>::identity(n)), a(std::move(matrix)), off(n), tau(n),
        least(FloatLimits(narrow).least), epsilon(FloatLimits(narrow).epsilon) {
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

} // namespace

void registerMatrix(HandlerTable &table) {
  add<CholeskyOp, byKind<CholeskyOp, cholesky<double>, cholesky<Complex>>>(table);
  add<TriangularSolveOp, byKind<TriangularSolveOp, triangularSolve<double>, triangularSolve<Complex>>>(table);
  add<QrOp, byKind<QrOp, qr<double>, qr<Complex>>>(table);
  add<LuOp, byKind<LuOp, lu<double>, lu<Complex>>>(table);
  add<EighOp, byKind<EighOp, eigh<double>, eigh<Complex>>>(table);
}

} // namespace lathe::hlo::eval
