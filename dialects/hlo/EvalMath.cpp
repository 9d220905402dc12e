// Special functions from their series, continued fractions and asymptotic expansions; long double inside where digits
// cancel.
#include "dialects/hlo/EvalMath.h"

#include <cmath>
#include <limits>

namespace lathe::hlo::eval {

static constexpr double infinity = std::numeric_limits<double>::infinity();
static constexpr double nan = std::numeric_limits<double>::quiet_NaN();
static constexpr long double pi = 3.141592653589793238462643383279502884L;

double lgammaOf(double x) {
  int sign;
  return ::lgamma_r(x, &sign);
}

static long double digammaLong(long double x) {
  if (std::isnan(x))
    return x;
  if (x <= 0) {
    if (x == std::floor(x))
      return nan;
    // reflection
    return digammaLong(1 - x) - pi / std::tan(pi * (x - std::floor(x)));
  }
  long double result = 0;
  while (x < 12) {
    result -= 1 / x;
    x += 1;
  }
  long double f = 1 / (x * x);
  long double tail = f * (1.0L / 12 - f * (1.0L / 120 - f * (1.0L / 252 - f * (1.0L / 240 - f * (1.0L / 132 - f * (691.0L / 32760 - f * (1.0L / 12)))))));
  return result + std::log(x) - 0.5L / x - tail;
}
double digammaOf(double x) { return static_cast<double>(digammaLong(x)); }

double erfInvOf(double x) {
  if (std::isnan(x) || x < -1 || x > 1)
    return nan;
  if (x == 1 || x == -1)
    return x * infinity;
  if (x == 0)
    return x;
  // a first estimate from the tail's logarithm, then Newton (Halley) steps on erf or erfc
  long double a = std::fabs(static_cast<long double>(x));
  long double w = std::log((1 - a) * (1 + a));
  long double t = 2 / (pi * 0.147L) + w / 2;
  long double y = std::sqrt(std::sqrt(t * t - w / 0.147L) - t);
  for (int i = 0; i < 4; ++i) {
    long double error = a > 0.5L ? (1 - a) - std::erfc(y) : std::erf(y) - a;
    long double slope = 2 / std::sqrt(pi) * std::exp(-y * y);
    if (slope == 0)
      break;
    long double step = error / slope;
    y -= step / (1 + y * step);
  }
  return static_cast<double>(x < 0 ? -y : y);
}

double betaincOf(double a, double b, double x) {
  if (std::isnan(a) || std::isnan(b) || std::isnan(x) || a <= 0 || b <= 0 || x < 0 || x > 1)
    return nan;
  if (x == 0 || x == 1)
    return x;
  if (std::isinf(a) || std::isinf(b))
    return nan;
  long double p = a, q = b, z = x;
  bool swapped = z > (p + 1) / (p + q + 2);
  if (swapped) {
    std::swap(p, q);
    z = 1 - z;
  }
  long double log1mz = swapped ? std::log(static_cast<long double>(x)) : std::log1p(-static_cast<long double>(x));
  long double front = std::exp(std::lgamma(p + q) - std::lgamma(p) - std::lgamma(q) + p * std::log(z) + q * log1mz) / p;
  const long double tiny = 1e-300L;
  long double f = 1, c = 1, d = 0;
  for (int i = 0; i < 100000; ++i) {
    long double m = i / 2, numerator;
    if (i == 0)
      numerator = 1;
    else if (i % 2 == 0)
      numerator = m * (q - m) * z / ((p + 2 * m - 1) * (p + 2 * m));
    else
      numerator = -(p + m) * (p + q + m) * z / ((p + 2 * m) * (p + 2 * m + 1));
    d = 1 + numerator * d;
    if (std::fabs(d) < tiny)
      d = tiny;
    d = 1 / d;
    c = 1 + numerator / c;
    if (std::fabs(c) < tiny)
      c = tiny;
    f *= c * d;
    if (std::fabs(1 - c * d) < 1e-20L)
      break;
  }
  long double result = front * (f - 1);
  return static_cast<double>(swapped ? 1 - result : result);
}

// exp(-x) times the power series of I_n below 40, the asymptotic expansion above.
static double scaledBessel(double x, int n) {
  long double z = std::fabs(static_cast<long double>(x));
  if (std::isinf(z))
    return 0;
  long double sum, result;
  if (z < 40) {
    long double term = n == 0 ? 1 : z / 2;
    sum = term;
    for (int k = 1; k < 1000; ++k) {
      term *= z * z / 4 / (static_cast<long double>(k) * (k + n));
      sum += term;
      if (term < sum * 1e-21L)
        break;
    }
    result = sum * std::exp(-z);
  } else {
    long double mu = 4.0L * n * n, term = 1;
    sum = 1;
    for (int k = 1; k < 60; ++k) {
      long double next = -term * (mu - (2 * k - 1.0L) * (2 * k - 1.0L)) / (k * 8 * z);
      if (std::fabs(next) >= std::fabs(term))
        break;
      term = next;
      sum += term;
    }
    result = sum / std::sqrt(2 * pi * z);
  }
  return static_cast<double>(n == 1 && x < 0 ? -result : result);
}
double besselI0eOf(double x) { return std::isnan(x) ? x : scaledBessel(x, 0); }
double besselI1eOf(double x) { return std::isnan(x) ? x : scaledBessel(x, 1); }

} // namespace lathe::hlo::eval
