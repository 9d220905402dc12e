// Incomplete gamma functions, zeta and polygamma in the arithmetic of their own type, step by step as the generated code
// (passes/codegen/cpu/MathGamma.cpp) does it and for its reason: TensorFlow's float32 results show where it rounds.
#include "dialects/hlo/EvalMath.h"

#include <cmath>
#include <initializer_list>
#include <limits>
#include <type_traits>

namespace lathe::hlo::eval {
namespace {

template <class T>
constexpr bool isSingle = std::is_same_v<T, float>;
template <class T>
constexpr T epsilon = std::numeric_limits<T>::epsilon() / 2;
template <class T>
constexpr T nan = std::numeric_limits<T>::quiet_NaN();

template <class T>
T logOf(T x) {
  return static_cast<T>(std::log(static_cast<double>(x)));
}
template <class T>
T digammaIn(T x) {
  return static_cast<T>(digammaOf(x));
}

/// For x > 0; in float the C library's steps from 8 on.
template <class T>
T lgammaIn(T x) {
  if (!isSingle<T> || x < 8 || std::isinf(x))
    return static_cast<T>(lgammaOf(x));
  T z = 1 / x, y = z * z, w = T(-1.6309292987e-03);
  for (T k : {T(8.3633989561e-04), T(-5.9518753551e-04), T(7.9365057172e-04), T(-2.7777778450e-03)})
    w = y * w + k;
  w = z * (y * w + T(8.3333335817e-02)) + T(4.1893854737e-01);
  return (x - T(0.5)) * (logOf(x) - 1) + w;
}

/// x^a e^-x / gamma(a); 0 where that underflows.
template <class T>
T mainTerm(T a, T x) {
  T exponent = a * logOf(x) - x - lgammaIn(a);
  if (!(exponent >= -std::log(std::numeric_limits<T>::max())))
    return 0;
  return static_cast<T>(std::exp(static_cast<double>(exponent)));
}

enum class Mode { Value, Derivative, SampleDerivative };
template <class T>
int limitOf(Mode mode) {
  return mode == Mode::Value ? 2000 : isSingle<T> ? 200 : 500;
}

template <class T>
T bySeries(T a, T x, Mode mode) {
  T ax = mainTerm(a, x);
  if (ax == 0)
    return 0;
  ax /= a;
  T r = a, c = 1, sum = 1, dc = 0, dsum = 0;
  for (int i = 0; i < limitOf<T>(mode); ++i) {
    r += 1;
    T f = x / r;
    dc = f * dc + -x / (r * r) * c;
    dsum += dc;
    c *= f;
    sum += c;
    bool more = mode == Mode::Value ? c > epsilon<T> * sum : std::fabs(dc) > epsilon<T> * std::fabs(dsum);
    if (!more)
      break;
  }
  if (mode == Mode::Value)
    return sum * ax;
  T dlog = logOf(x) - digammaIn(a + 1);
  return mode == Mode::Derivative ? sum * (ax * dlog) + dsum * ax : -(dsum + sum * dlog) * x / a;
}

template <class T>
T byFraction(T a, T x, Mode mode) {
  if (std::isinf(x))
    return 0;
  T ax = mainTerm(a, x);
  if (ax == 0)
    return 0;
  const T small = isSingle<T> ? epsilon<T> : 2 * epsilon<T>;
  T c = 0, y = 1 - a, z = x + y + 1, p2 = 1, q2 = x, p1 = x + 1, q1 = z * x, value = p1 / q1;
  T dp2 = 0, dq2 = 0, dp1 = 0, dq1 = -x, dvalue = value * x / q1;
  for (int i = 0; i < limitOf<T>(mode); ++i) {
    c += 1;
    y += 1;
    z += 2;
    T yc = y * c, p = p1 * z - p2 * yc, q = q1 * z - q2 * yc;
    T dp = dp1 * z - p1 - dp2 * yc + p2 * c, dq = dq1 * z - q1 - dq2 * yc + q2 * c;
    if (q != 0) {
      T last = value, dlast = dvalue;
      value = p / q;
      dvalue = (dp - value * dq) / q;
      if (mode == Mode::Value ? std::fabs(last - value) <= epsilon<T> * std::fabs(value)
                              : std::fabs(dvalue - dlast) <= epsilon<T>)
        break;
    }
    T scale = std::fabs(p) > 1 / small ? small : 1;
    p2 = p1 * scale, p1 = p * scale, q2 = q1 * scale, q1 = q * scale;
    dp2 = dp1 * scale, dp1 = dp * scale, dq2 = dq1 * scale, dq1 = dq * scale;
  }
  T dlog = logOf(x) - digammaIn(a);
  switch (mode) {
  case Mode::Value:
    return value * ax;
  case Mode::Derivative:
    return value * (ax * dlog) + dvalue * ax;
  case Mode::SampleDerivative:
    break;
  }
  return -(dvalue + value * dlog) * x;
}

template <class T>
T lower(T a, T x, Mode mode) {
  if (x == 0)
    return 0;
  if (!(x > 0) || !(a > 0))
    return nan<T>;
  if (x > 1 && x > a) {
    T upper = byFraction(a, x, mode);
    return mode == Mode::Value ? 1 - upper : -upper;
  }
  return bySeries(a, x, mode);
}

template <class T>
T powerOf(T base, T exponent) {
  return static_cast<T>(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
}

} // namespace

template <class T>
T igammaOf(T a, T x) {
  return lower(a, x, Mode::Value);
}
template <class T>
T igammaGradAOf(T a, T x) {
  return lower(a, x, Mode::Derivative);
}
template <class T>
T randomGammaGradOf(T alpha, T sample) {
  return lower(alpha, sample, Mode::SampleDerivative);
}
template <class T>
T igammacOf(T a, T x) {
  if (!(x >= 0) || !(a > 0))
    return nan<T>;
  return x < 1 || x < a ? (x == 0 ? 1 : 1 - bySeries(a, x, Mode::Value)) : byFraction(a, x, Mode::Value);
}

template <class T>
T zetaOf(T x, T q) {
  const T infinity = std::numeric_limits<T>::infinity();
  if (std::isnan(x) || std::isnan(q) || x < 1)
    return nan<T>;
  if (x == 1)
    return infinity;
  if (q <= 0) {
    if (q == std::floor(q)) // a pole: one-sided limits agree for even exponents only
      return std::nearbyint(x / 2) == x / 2 ? infinity : nan<T>;
    if (x != std::floor(x))
      return nan<T>; // a negative base to a broken power
  }
  T a = !isSingle<T> && q < -1e5 ? 1 : q, term = 0, sum = powerOf(a, -x); // the bound as in generated code
  for (int i = 0; i < 9 || (!isSingle<T> && a <= 9); ++i) {
    a += 1;
    term = powerOf(a, -x);
    sum += term;
    if (std::fabs(term / sum) < epsilon<T>)
      return sum;
  }
  if (term == 0)
    return sum;
  // the rest by Euler and Maclaurin
  sum += term * a / (x - 1);
  sum -= term / 2;
  static const double rests[] = {12.0,
                                 -720.0,
                                 30240.0,
                                 -1209600.0,
                                 47900160.0,
                                 -1307674368000.0 / 691,
                                 74724249600.0,
                                 -10670622842880000.0 / 3617,
                                 5109094217170944000.0 / 43867,
                                 -802857662698291200000.0 / 174611,
                                 155112100433309859840000.0 / 854513,
                                 -1693824136731743669452800000.0 / 236364091};
  T factor = 1;
  for (int k = 0; k < 12; ++k) {
    factor *= x + T(2 * k);
    term /= a;
    T t = factor * term / T(rests[k]);
    sum += t;
    if (std::fabs(t / sum) < epsilon<T>)
      break;
    factor *= x + T(2 * k + 1);
    term /= a;
  }
  return sum;
}

template <class T>
T polygammaOf(T n, T x) {
  if (n != std::floor(n) || n < 0)
    return nan<T>;
  if (n == 0)
    return digammaIn(x);
  T order = n + 1, sign = std::floor(order / 2) == order / 2 ? 1 : -1;
  return sign * static_cast<T>(std::exp(static_cast<double>(lgammaIn(order)))) * zetaOf(order, x);
}

#define LATHE_INSTANTIATE(T)                                                                                           \
  template T zetaOf<T>(T, T);                                                                                          \
  template T polygammaOf<T>(T, T);                                                                                     \
  template T igammaOf<T>(T, T);                                                                                        \
  template T igammacOf<T>(T, T);                                                                                       \
  template T igammaGradAOf<T>(T, T);                                                                                   \
  template T randomGammaGradOf<T>(T, T);
LATHE_INSTANTIATE(float)
LATHE_INSTANTIATE(double)
#undef LATHE_INSTANTIATE

} // namespace lathe::hlo::eval
