// Singular values of the evaluator, by rotations from both sides.
#include "dialects/hlo/EvalMatrix.h"
#include "dialects/hlo/FloatLimits.h"

#include <numeric>

using namespace mlir;

namespace lathe::hlo::eval {
namespace {

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
Reflection<T> reflectionOf(int64_t first, std::vector<T> x, const FloatLimits &limits, double &beta) {
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

/// Divides by the magnitude of the largest element, which is given back, or 1.
template <typename T>
double normalize(Matrix<T> &a) {
  double scale = 0;
  for (T x : a.values)
    scale = std::max(scale, std::abs(x));
  scale = scale == 0 ? 1 : scale;
  for (T &x : a.values)
    x /= scale;
  return scale;
}

/// Rotations of both sides by [c s; -conj(s) c] until the matrix is diagonal; a matrix that is not square first becomes a
/// triangular one by reflections with pivots. The steps are those of Eigen's JacobiSVD, so that vectors have its signs.
/// Svd.cpp emits the same.
template <typename T>
class Jacobi {
public:
  /// `basis` columns for the factor of the longer side.
  Jacobi(Matrix<T> a, int64_t basis, const FloatLimits &limits)
      : size(std::min(a.rows, a.columns)), values(size), u(0, 0), v(0, 0), limits(limits), w(0, 0) {
    const double scale = normalize(a);
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
  const FloatLimits &limits;
  Matrix<T> w;
};

/// A wide matrix with few rows: its adjoint made bidiagonal by reflections, then rotations of that. So does Eigen's BDCSVD from
/// 16 columns on while there are fewer than 16 rows.
template <typename T>
void bidiagonalSvd(const Matrix<T> &wide, int64_t basis, const FloatLimits &limits, std::vector<double> &s, Matrix<T> &u, Matrix<T> &v) {
  Matrix<T> a = wide.adjoint();
  const double scale = normalize(a);
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
  FloatLimits limits(real == DType::Float32);
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

void registerSvd(HandlerTable &table) { add<SvdOp, byKind<SvdOp, svd<double>, svd<Complex>>>(table); }

} // namespace lathe::hlo::eval
