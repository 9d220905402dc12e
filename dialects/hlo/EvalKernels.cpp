// Elementwise kernels whose operands and result have one element type.
#include "dialects/hlo/Eval.h"
#include "dialects/hlo/EvalMath.h"

#include "llvm/ADT/bit.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace lathe::hlo::eval {

namespace {

template <typename F>
void floats1(const double *const *in, double *out, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    out[i] = F()(in[0][i]);
}
template <typename F>
void floats2(const double *const *in, double *out, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    out[i] = F()(in[0][i], in[1][i]);
}
template <typename F>
void ints1(const int64_t *const *in, int64_t *out, int64_t n, IntInfo info) {
  for (int64_t i = 0; i < n; ++i)
    out[i] = F()(in[0][i], info);
}
template <typename F>
void ints2(const int64_t *const *in, int64_t *out, int64_t n, IntInfo info) {
  for (int64_t i = 0; i < n; ++i)
    out[i] = F()(in[0][i], in[1][i], info);
}
template <typename F>
void complexes1(const Complex *const *in, Complex *out, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    out[i] = F()(in[0][i]);
}
template <typename F>
void complexes2(const Complex *const *in, Complex *out, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    out[i] = F()(in[0][i], in[1][i]);
}

// The table's lines: a function object for each kind, written as an expression.
#define FLOAT1(expr)                                                                                                   \
  [] {                                                                                                                 \
    struct F {                                                                                                         \
      double operator()(double x) const { return expr; }                                                              \
    };                                                                                                                 \
    return floats1<F>;                                                                                                 \
  }()
#define FLOAT2(expr)                                                                                                   \
  [] {                                                                                                                 \
    struct F {                                                                                                         \
      double operator()(double x, double y) const { return expr; }                                                    \
    };                                                                                                                 \
    return floats2<F>;                                                                                                 \
  }()
#define INT1(expr)                                                                                                     \
  [] {                                                                                                                 \
    struct F {                                                                                                         \
      int64_t operator()(int64_t x, IntInfo info) const {                                                              \
        (void)info;                                                                                                    \
        return expr;                                                                                                   \
      }                                                                                                                \
    };                                                                                                                 \
    return ints1<F>;                                                                                                   \
  }()
#define INT2(expr)                                                                                                     \
  [] {                                                                                                                 \
    struct F {                                                                                                         \
      int64_t operator()(int64_t x, int64_t y, IntInfo info) const {                                                   \
        (void)info;                                                                                                    \
        return expr;                                                                                                   \
      }                                                                                                                \
    };                                                                                                                 \
    return ints2<F>;                                                                                                   \
  }()
#define COMPLEX1(expr)                                                                                                 \
  [] {                                                                                                                 \
    struct F {                                                                                                         \
      Complex operator()(Complex x) const { return expr; }                                                            \
    };                                                                                                                 \
    return complexes1<F>;                                                                                              \
  }()
#define COMPLEX2(expr)                                                                                                 \
  [] {                                                                                                                 \
    struct F {                                                                                                         \
      Complex operator()(Complex x, Complex y) const { return expr; }                                                 \
    };                                                                                                                 \
    return complexes2<F>;                                                                                              \
  }()

inline uint64_t u(int64_t x) { return static_cast<uint64_t>(x); }
inline int64_t s(uint64_t x) { return static_cast<int64_t>(x); }
// the element's bits without what sign extension added
inline uint64_t bitsOf(int64_t x, IntInfo info) { return info.width == 64 ? u(x) : u(x) & ((uint64_t(1) << info.width) - 1); }
inline bool less(int64_t x, int64_t y, IntInfo info) { return info.isSigned ? x < y : u(x) < u(y); }

inline int64_t divideInt(int64_t x, int64_t y, IntInfo info) {
  if (y == 0)
    return -1;
  if (!info.isSigned)
    return s(u(x) / u(y));
  return y == -1 ? s(0 - u(x)) : x / y;
}
inline int64_t remainderInt(int64_t x, int64_t y, IntInfo info) {
  if (y == 0)
    return x;
  if (!info.isSigned)
    return s(u(x) % u(y));
  return y == -1 ? 0 : x % y;
}
inline int64_t powerInt(int64_t x, int64_t y, IntInfo info) {
  if (info.isSigned && y < 0) {
    if (x == 1)
      return 1;
    return x == -1 ? (y & 1 ? -1 : 1) : 0;
  }
  uint64_t result = 1, base = u(x);
  for (uint64_t e = u(y); e; e >>= 1, base *= base)
    if (e & 1)
      result *= base;
  return s(result);
}
inline int64_t shiftLeft(int64_t x, int64_t y, IntInfo info) {
  return bitsOf(y, info) >= info.width ? 0 : s(u(x) << y);
}
inline int64_t shiftRightLogical(int64_t x, int64_t y, IntInfo info) {
  return bitsOf(y, info) >= info.width ? 0 : s(bitsOf(x, info) >> y);
}
inline int64_t shiftRightArithmetic(int64_t x, int64_t y, IntInfo info) {
  // the top bit is the sign whatever the type says
  uint64_t by = std::min<uint64_t>(bitsOf(y, info), info.width - 1);
  int64_t extended = s(u(x) << (64 - info.width)) >> (64 - info.width);
  return extended >> by;
}

inline double maxFloat(double x, double y) {
  if (std::isnan(x) || std::isnan(y))
    return std::numeric_limits<double>::quiet_NaN();
  return x == y ? (std::signbit(x) ? y : x) : (x > y ? x : y);
}
inline double minFloat(double x, double y) {
  if (std::isnan(x) || std::isnan(y))
    return std::numeric_limits<double>::quiet_NaN();
  return x == y ? (std::signbit(x) ? x : y) : (x < y ? x : y);
}
inline bool lessComplex(Complex x, Complex y) {
  return x.real() < y.real() || (x.real() == y.real() && x.imag() < y.imag());
}
inline double signOf(double x) { return std::isnan(x) || x == 0 ? x : (x < 0 ? -1 : 1); }
inline Complex signOf(Complex x) {
  double size = std::abs(x);
  return size == 0 ? Complex() : Complex(x.real() / size, x.imag() / size);
}
inline double logistic(double x) {
  if (x >= 0)
    return 1 / (1 + std::exp(-x));
  double e = std::exp(x);
  return e / (1 + e);
}
inline Complex expm1(Complex x) {
  double e = std::expm1(x.real()), half = std::sin(x.imag() / 2);
  return {e - 2 * (e + 1) * (half * half), (e + 1) * std::sin(x.imag())};
}
inline Complex log1p(Complex x) {
  double a = x.real(), b = x.imag();
  Complex u = 1.0 + x;
  if (!std::isfinite(a) || !std::isfinite(b) || u == Complex()) { // as Eigen has it
    Complex log = std::log(u);
    return u == log ? x : x * (log / (u - 1.0));
  }
  // log|1+x| from |1+x|^2 - 1 = a(2 + a) + b^2
  double m = a * (2 + a) + b * b;
  double real = std::fabs(m) < 0.5 ? 0.5 * std::log1p(m) : std::log(std::hypot(1 + a, b));
  return {real, std::atan2(b, 1 + a)};
}
inline Complex rsqrt(Complex z) {
  double x = z.real(), y = z.imag(), size = std::hypot(x, y);
  double w = std::sqrt(0.5 * (std::fabs(x) + size)), far = w / size;
  if (size == 0)
    return {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()};
  if (std::isinf(x) || std::isinf(y))
    return 0;
  if (x > 0)
    return {far, -y / (2 * w * size)};
  return {x == 0 ? far : std::fabs(y) / (2 * w * size), y < 0 ? far : -far};
}
// by the conjugate, as TensorFlow's kernels do: infinite operands give NaN
inline Complex divide(Complex x, Complex y) {
  double a = x.real(), b = x.imag(), c = y.real(), d = y.imag(), n = c * c + d * d;
  return {(a * c + b * d) / n, (b * c - a * d) / n};
}
inline Complex atan2(Complex y, Complex x) {
  Complex i(0, 1);
  return -i * std::log((x + i * y) / std::sqrt(x * x + y * y));
}

using Table = llvm::StringMap<Kernel>;

Table makeTable() {
  Table t;
  auto add = [&](StringRef name, Kernel kernel) { t["hlo." + name.str()] = kernel; };
  add("abs", {FLOAT1(std::fabs(x)), INT1(info.isSigned && x < 0 ? s(0 - u(x)) : x), nullptr});
  add("cbrt", {FLOAT1(std::cbrt(x)), nullptr, COMPLEX1(std::pow(x, 1.0 / 3))});
  add("ceil", {FLOAT1(std::ceil(x)), nullptr, nullptr});
  add("count_leading_zeros",
      {nullptr, INT1(s(static_cast<uint64_t>(llvm::countl_zero(bitsOf(x, info))) - (64 - info.width))), nullptr});
  add("cosine", {FLOAT1(std::cos(x)), nullptr, COMPLEX1(std::cos(x))});
  add("exponential", {FLOAT1(std::exp(x)), nullptr, COMPLEX1(std::exp(x))});
  add("exponential_minus_one", {FLOAT1(std::expm1(x)), nullptr, COMPLEX1(expm1(x))});
  add("floor", {FLOAT1(std::floor(x)), nullptr, nullptr});
  add("log", {FLOAT1(std::log(x)), nullptr, COMPLEX1(std::log(x))});
  add("log_plus_one", {FLOAT1(std::log1p(x)), nullptr, COMPLEX1(log1p(x))});
  add("logistic", {FLOAT1(logistic(x)), nullptr, COMPLEX1(Complex(1) / (1.0 + std::exp(-x)))});
  add("negate", {FLOAT1(-x), INT1(s(0 - u(x))), COMPLEX1(-x)});
  add("not", {nullptr, INT1(~x), nullptr});
  add("popcnt", {nullptr, INT1(llvm::popcount(bitsOf(x, info))), nullptr});
  add("round_nearest_afz", {FLOAT1(std::round(x)), nullptr, nullptr});
  add("round_nearest_even", {FLOAT1(std::nearbyint(x)), nullptr, nullptr});
  add("rsqrt", {FLOAT1(1 / std::sqrt(x)), nullptr, COMPLEX1(rsqrt(x))});
  add("sign", {FLOAT1(signOf(x)), INT1(x == 0 ? 0 : (info.isSigned && x < 0 ? -1 : 1)), COMPLEX1(signOf(x))});
  add("sine", {FLOAT1(std::sin(x)), nullptr, COMPLEX1(std::sin(x))});
  add("sqrt", {FLOAT1(std::sqrt(x)), nullptr, COMPLEX1(std::sqrt(x))});
  add("tan", {FLOAT1(std::tan(x)), nullptr, COMPLEX1(std::tan(x))});
  add("tanh", {FLOAT1(std::tanh(x)), nullptr, COMPLEX1(std::tanh(x))});
  add("acos", {FLOAT1(std::acos(x)), nullptr, COMPLEX1(std::acos(x))});
  add("acosh", {FLOAT1(std::acosh(x)), nullptr, COMPLEX1(std::acosh(x))});
  add("asin", {FLOAT1(std::asin(x)), nullptr, COMPLEX1(std::asin(x))});
  add("asinh", {FLOAT1(std::asinh(x)), nullptr, COMPLEX1(std::asinh(x))});
  add("atan", {FLOAT1(std::atan(x)), nullptr, COMPLEX1(std::atan(x))});
  add("atanh", {FLOAT1(std::atanh(x)), nullptr, COMPLEX1(std::atanh(x))});
  add("bessel_i0e", {FLOAT1(besselI0eOf(x)), nullptr, nullptr});
  add("bessel_i1e", {FLOAT1(besselI1eOf(x)), nullptr, nullptr});
  add("conj", {FLOAT1(x), INT1(x), COMPLEX1(std::conj(x))});
  add("cosh", {FLOAT1(std::cosh(x)), nullptr, COMPLEX1(std::cosh(x))});
  add("digamma", {FLOAT1(digammaOf(x)), nullptr, nullptr});
  add("erf", {FLOAT1(std::erf(x)), nullptr, nullptr});
  add("erf_inv", {FLOAT1(erfInvOf(x)), nullptr, nullptr});
  add("erfc", {FLOAT1(std::erfc(x)), nullptr, nullptr});
  add("lgamma", {FLOAT1(lgammaOf(x)), nullptr, nullptr});
  add("sinh", {FLOAT1(std::sinh(x)), nullptr, COMPLEX1(std::sinh(x))});
  add("square", {FLOAT1(x * x), INT1(s(u(x) * u(x))), COMPLEX1(x * x)});
  add("optimization_barrier", {FLOAT1(x), INT1(x), COMPLEX1(x)});

  // bool adds as or, multiplies as and
  add("add", {FLOAT2(x + y), INT2(info.width == 1 ? x | y : s(u(x) + u(y))), COMPLEX2(x + y)});
  add("and", {nullptr, INT2(x & y), nullptr});
  add("atan2", {FLOAT2(std::atan2(x, y)), nullptr, COMPLEX2(atan2(x, y))});
  add("divide", {FLOAT2(x / y), INT2(divideInt(x, y, info)), COMPLEX2(divide(x, y))});
  add("maximum", {FLOAT2(maxFloat(x, y)), INT2(less(x, y, info) ? y : x), COMPLEX2(lessComplex(x, y) ? y : x)});
  add("minimum", {FLOAT2(minFloat(x, y)), INT2(less(y, x, info) ? y : x), COMPLEX2(lessComplex(y, x) ? y : x)});
  add("multiply", {FLOAT2(x * y), INT2(s(u(x) * u(y))), COMPLEX2(x * y)});
  add("or", {nullptr, INT2(x | y), nullptr});
  add("power", {FLOAT2(std::pow(x, y)), INT2(powerInt(x, y, info)), COMPLEX2(std::pow(x, y))});
  add("remainder", {FLOAT2(std::fmod(x, y)), INT2(remainderInt(x, y, info)), nullptr});
  add("shift_left", {nullptr, INT2(shiftLeft(x, y, info)), nullptr});
  add("shift_right_arithmetic", {nullptr, INT2(shiftRightArithmetic(x, y, info)), nullptr});
  add("shift_right_logical", {nullptr, INT2(shiftRightLogical(x, y, info)), nullptr});
  add("subtract", {FLOAT2(x - y), INT2(s(u(x) - u(y))), COMPLEX2(x - y)});
  add("xor", {nullptr, INT2(x ^ y), nullptr});
  add("igamma", {FLOAT2(igammaOf(x, y)), nullptr, nullptr});
  add("igammac", {FLOAT2(igammacOf(x, y)), nullptr, nullptr});
  add("igamma_grad_a", {FLOAT2(igammaGradAOf(x, y)), nullptr, nullptr});
  add("random_gamma_grad", {FLOAT2(randomGammaGradOf(x, y)), nullptr, nullptr});
  add("polygamma", {FLOAT2(polygammaOf(x, y)), nullptr, nullptr});
  add("zeta", {FLOAT2(zetaOf(x, y)), nullptr, nullptr});
  return t;
}

} // namespace

const Kernel *findKernel(OperationName name) {
  static const Table table = makeTable();
  auto it = table.find(name.getStringRef());
  return it == table.end() ? nullptr : &it->second;
}

} // namespace lathe::hlo::eval
