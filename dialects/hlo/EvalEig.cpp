// Eigenvalues and vectors of general matrices: Hessenberg form by Householder reflections, a complex Schur form by
// shifted QR steps with Givens rotations, vectors by back substitution. Order (ascending magnitude) and phases come out as
// those of Eigen's complex solver, which TensorFlow uses; passes/codegen/library/Eig.cpp emits the same steps.
#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Eval.h"
#include "dialects/hlo/FloatLimits.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace lathe::hlo::eval {
namespace {

double norm1(Complex z) { return std::fabs(z.real()) + std::fabs(z.imag()); }

class Eig {
public:
  Eig(int64_t n, double epsilon, bool isReal, const Complex *a)
      : n(n), epsilon(epsilon), isReal(isReal), t(a, a + n * n), u(n * n), x(n * n) {}
  void run() {
    for (int64_t i = 0; i < n; ++i)
      at(u, i, i) = 1;
    for (int64_t i = 0; i + 1 < n; ++i)
      reflect(i);
    triangularise();
    solve();
    sort();
  }
  std::vector<Complex> values, vectors;

private:
  Complex &at(std::vector<Complex> &m, int64_t i, int64_t j) { return m[i * n + j]; }

  /// A reflection that clears column i below the subdiagonal, from both sides; gathered in u.
  void reflect(int64_t i) {
    double tail = 0;
    for (int64_t k = i + 2; k < n; ++k)
      tail += std::norm(at(t, k, i));
    Complex head = at(t, i + 1, i);
    if (tail == 0 && head.imag() == 0)
      return;
    double beta = std::sqrt(std::norm(head) + tail);
    if (head.real() >= 0)
      beta = -beta;
    std::vector<Complex> v(n);
    v[i + 1] = 1;
    for (int64_t k = i + 2; k < n; ++k)
      v[k] = at(t, k, i) / (head - beta);
    Complex tau = std::conj((beta - head) / beta);
    for (int64_t c = i; c < n; ++c) {
      Complex sum = 0;
      for (int64_t k = i + 1; k < n; ++k)
        sum += std::conj(v[k]) * at(t, k, c);
      for (int64_t k = i + 1; k < n; ++k)
        at(t, k, c) -= tau * v[k] * sum;
    }
    for (std::vector<Complex> *m : {&t, &u})
      for (int64_t r = 0; r < n; ++r) {
        Complex sum = 0;
        for (int64_t k = i + 1; k < n; ++k)
          sum += at(*m, r, k) * v[k];
        for (int64_t k = i + 1; k < n; ++k)
          at(*m, r, k) -= std::conj(tau) * sum * std::conj(v[k]);
      }
    for (int64_t k = i + 2; k < n; ++k)
      at(t, k, i) = 0;
  }

  bool negligible(int64_t i) {
    double d = norm1(at(t, i, i)) + norm1(at(t, i + 1, i + 1));
    return norm1(at(t, i + 1, i)) <= d * epsilon;
  }

  /// The eigenvalue of the last 2 x 2 block that is closer to its corner.
  Complex shift(int64_t last, int64_t round) {
    if ((round == 10 || round == 20) && last > 1)
      return std::fabs(at(t, last, last - 1).real()) + std::fabs(at(t, last - 1, last - 2).real());
    Complex a = at(t, last - 1, last - 1), b = at(t, last - 1, last), c = at(t, last, last - 1), d = at(t, last, last);
    double size = std::abs(a) + std::abs(b) + std::abs(c) + std::abs(d);
    if (size == 0)
      return 0;
    a /= size, b /= size, c /= size, d /= size;
    Complex cross = b * c, difference = a - d, square = difference * difference + 4.0 * cross;
    Complex root = std::sqrt(Complex(square.real(), square.imag() + 0.0)); // a negative number has its root above
    Complex det = a * d - cross, trace = a + d, first = (trace + root) / 2.0, second = (trace - root) / 2.0;
    if (norm1(first) > norm1(second))
      second = det / first;
    else if (norm1(second) != 0)
      first = det / second;
    // a conjugate pair is as far from a real corner: rounding must not choose
    return size * (norm1(first - d) < norm1(second - d) * (1 - 1e-12) ? first : second);
  }

  /// Rotates rows and columns (i, i + 1) so that (p, q) becomes (r, 0).
  Complex rotate(int64_t i, int64_t firstColumn, int64_t lastRow, Complex p, Complex q) {
    double c, pSize = std::abs(p), qSize = std::abs(q);
    Complex s, r;
    if (qSize == 0) {
      c = p.real() < 0 ? -1 : 1;
      s = 0;
      r = c * p;
    } else if (pSize == 0) {
      c = 0;
      s = -q / qSize;
      r = qSize;
    } else {
      double h = std::hypot(pSize, qSize);
      if (p.real() < 0)
        h = -h;
      c = pSize / h;
      s = -q * std::conj(p) / (pSize * h);
      r = p / pSize * h;
    }
    for (int64_t k = firstColumn; k < n; ++k) {
      Complex y = at(t, i, k), z = at(t, i + 1, k);
      at(t, i, k) = c * y - std::conj(s) * z;
      at(t, i + 1, k) = s * y + c * z;
    }
    for (std::vector<Complex> *m : {&t, &u})
      for (int64_t k = 0; k < (m == &t ? lastRow + 1 : n); ++k) {
        Complex y = at(*m, k, i), z = at(*m, k, i + 1);
        at(*m, k, i) = c * y - s * z;
        at(*m, k, i + 1) = std::conj(s) * y + c * z;
      }
    return r;
  }

  void triangularise() {
    int64_t last = n - 1, round = 0;
    for (int64_t total = 0; last > 0 && total < 30 * n;) {
      if (negligible(last - 1)) {
        at(t, last, last - 1) = 0;
        --last;
        round = 0;
        continue;
      }
      ++total;
      ++round;
      int64_t first = last - 1;
      while (first > 0 && !negligible(first - 1))
        --first;
      if (first > 0)
        at(t, first, first - 1) = 0;
      for (int64_t i = first; i < last; ++i) {
        bool start = i == first;
        Complex p = start ? at(t, i, i) - shift(last, round) : at(t, i, i - 1);
        Complex q = start ? at(t, i + 1, i) : at(t, i + 1, i - 1);
        Complex r = rotate(i, i, std::min(i + 2, last), p, q);
        if (!start) {
          at(t, i, i - 1) = r;
          at(t, i + 1, i - 1) = 0;
        }
      }
    }
  }

  void solve() {
    double norm = 0;
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = i; j < n; ++j)
        norm += std::norm(at(t, i, j));
    norm = std::sqrt(norm);
    if (norm == 0)
      norm = std::numeric_limits<double>::min();
    values.resize(n);
    vectors.resize(n * n);
    for (int64_t k = n - 1; k >= 0; --k) {
      values[k] = at(t, k, k);
      at(x, k, k) = 1;
      for (int64_t i = k - 1; i >= 0; --i) {
        Complex sum = -at(t, i, k);
        for (int64_t j = i + 1; j < k; ++j)
          sum -= at(t, i, j) * at(x, j, k);
        Complex z = at(t, i, i) - at(t, k, k);
        if (z == 0.0)
          z = epsilon * norm;
        at(x, i, k) = sum / z;
      }
    }
    for (int64_t k = 0; k < n; ++k) {
      double size = 0;
      for (int64_t i = 0; i < n; ++i) {
        Complex sum = 0;
        for (int64_t j = 0; j <= k; ++j)
          sum += at(u, i, j) * at(x, j, k);
        at(vectors, i, k) = sum;
        size += std::norm(sum);
      }
      size = std::sqrt(size);
      for (int64_t i = 0; i < n; ++i)
        at(vectors, i, k) /= size;
    }
  }

  void sort() {
    // what differs by rounding only is equal; of a conjugate pair of a real matrix the upper one comes first
    auto before = [&](Complex a, Complex b) {
      double size = std::abs(b), slack = size * 64 * epsilon;
      if (std::abs(a) < size - slack)
        return true;
      return isReal && std::abs(a) <= size + slack && std::fabs(a.real() - b.real()) <= slack && a.imag() > b.imag() + slack;
    };
    for (int64_t i = 0; i < n; ++i) {
      int64_t least = i;
      for (int64_t k = i + 1; k < n; ++k)
        if (before(values[k], values[least]))
          least = k;
      if (least == i)
        continue;
      std::swap(values[i], values[least]);
      for (int64_t r = 0; r < n; ++r)
        std::swap(at(vectors, r, i), at(vectors, r, least));
    }
  }

  int64_t n;
  double epsilon;
  bool isReal;
  std::vector<Complex> t, u, x;
};

LogicalResult eig(Evaluation &e, EigOp op, ArrayRef<Tensor> in, Tensors &out) {
  const Tensor &a = in[0];
  if (a.rank() < 2 || a.dim(a.rank() - 1) != a.dim(a.rank() - 2))
    return e.fail(op, "expected square matrices");
  int64_t n = a.dim(a.rank() - 1);
  if (failed(e.work(op, static_cast<double>(a.numElements()) * n * 60)))
    return failure();
  std::vector<Complex> from;
  if (kindOf(a.dtype()) == Kind::Complex)
    from = loadComplexes(a);
  else
    for (double x : loadFloats(a))
      from.push_back(x);
  DType type = toDType(tensorType(op.getVectors()).getElementType());
  Dims dims(a.dims().begin(), a.dims().end());
  Tensor vectors, values;
  if (failed(e.allocate(op, type, dims, vectors)))
    return failure();
  dims.pop_back();
  if (failed(e.allocate(op, type, dims, values)))
    return failure();
  double epsilon = FloatLimits(type == DType::Complex64).epsilon;
  int64_t size = dtypeSize(type), matrices = n ? a.numElements() / (n * n) : 0;
  for (int64_t k = 0; k < matrices; ++k) {
    Eig solver(n, epsilon, kindOf(a.dtype()) != Kind::Complex, from.data() + k * n * n);
    solver.run();
    storeAs<Complex>(type, solver.values.data(), n, static_cast<char *>(values.data()) + k * n * size);
    storeAs<Complex>(type, solver.vectors.data(), n * n, static_cast<char *>(vectors.data()) + k * n * n * size);
  }
  out.push_back(values);
  out.push_back(vectors);
  return success();
}

} // namespace

void registerEig(HandlerTable &table) { add<EigOp, eig>(table); }

} // namespace lathe::hlo::eval
