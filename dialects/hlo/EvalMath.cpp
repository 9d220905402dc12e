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

double zetaOf(double x, double q) {
  if (std::isnan(x) || std::isnan(q))
    return nan;
  if (x == 1)
    return infinity;
  if (x < 1)
    return nan;
  if (q <= 0) {
    if (q == std::floor(q)) // a pole: one-sided limits agree for even exponents only
      return x == std::floor(x) && std::fmod(x, 2) == 0 ? infinity : nan;
    if (x != std::floor(x))
      return nan; // a negative base to a broken power
  }
  if (std::isinf(x))
    return q > 1 ? 0 : (q == 1 ? 1 : infinity);
  // Euler-Maclaurin: direct terms up to a large argument, then the integral and Bernoulli corrections
  long double sum = 0, a = q, s = x;
  int terms = 0;
  while (a < 15 || terms < 10) {
    long double term = std::pow(a, -s);
    sum += term;
    a += 1;
    ++terms;
    if (a > 0 && term == 0 && terms > 20)
      break;
    if (terms > 100000)
      break;
  }
  long double power = std::pow(a, -s);
  sum += power * a / (s - 1) + power / 2;
  static const long double bernoulli[] = {1.0L / 12,           -1.0L / 720,          1.0L / 30240,
                                          -1.0L / 1209600,     1.0L / 47900160,      -691.0L / 1307674368000.0L,
                                          1.0L / 74724249600.0L, -3617.0L / 10670622842880000.0L};
  long double factor = s, scale = power / a;
  for (int k = 0; k < 8; ++k) {
    long double term = bernoulli[k] * factor * scale;
    sum += term;
    if (std::fabs(term) < std::fabs(sum) * 1e-20L)
      break;
    factor *= (s + 2 * k + 1) * (s + 2 * k + 2);
    scale /= a * a;
  }
  return static_cast<double>(sum);
}

double polygammaOf(double n, double x) {
  if (n != std::floor(n) || n < 0)
    return nan;
  if (n == 0)
    return digammaOf(x);
  double sign = std::fmod(n, 2) == 1 ? 1 : -1;
  return sign * std::exp(lgammaOf(n + 1)) * zetaOf(n + 1, x);
}

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

// x^a e^-x / Gamma(a+1)
static long double gammaFactor(long double a, long double x) {
  return std::exp(a * std::log(x) - x - std::lgamma(a + 1));
}

// sum x^n / ((a+1)...(a+n)) and its derivative by a
static long double lowerSeries(long double a, long double x, long double *derivative) {
  long double term = 1, sum = 1, slope = 0, harmonic = 0;
  for (int n = 1; n < 1000000; ++n) {
    term *= x / (a + n);
    harmonic += 1 / (a + n);
    sum += term;
    slope -= term * harmonic;
    if (term < sum * 1e-21L && n > x - a)
      break;
  }
  if (derivative)
    *derivative = slope;
  return sum;
}

// the continued fraction of Q by Lentz's method, without the factor
static long double upperFraction(long double a, long double x) {
  const long double tiny = 1e-300L;
  long double b = x + 1 - a, c = 1 / tiny, d = 1 / b, h = d;
  for (int i = 1; i < 1000000; ++i) {
    long double an = -i * (i - a);
    b += 2;
    d = an * d + b;
    if (std::fabs(d) < tiny)
      d = tiny;
    c = b + an / c;
    if (std::fabs(c) < tiny)
      c = tiny;
    d = 1 / d;
    long double delta = d * c;
    h *= delta;
    if (std::fabs(delta - 1) < 1e-20L)
      break;
  }
  return h;
}

double igammaOf(double a, double x) {
  if (std::isnan(a) || std::isnan(x) || a <= 0 || x < 0)
    return nan;
  if (x == 0)
    return 0;
  if (std::isinf(x))
    return std::isinf(a) ? nan : 1;
  if (std::isinf(a))
    return 0;
  long double factor = gammaFactor(a, x);
  if (x < a + 1)
    return static_cast<double>(factor * lowerSeries(a, x, nullptr));
  return static_cast<double>(1 - factor * a * upperFraction(a, x));
}

double igammacOf(double a, double x) {
  if (std::isnan(a) || std::isnan(x) || a <= 0 || x < 0)
    return nan;
  if (x == 0)
    return 1;
  if (std::isinf(x))
    return std::isinf(a) ? nan : 0;
  if (std::isinf(a))
    return 1;
  long double factor = gammaFactor(a, x);
  if (x < a + 1)
    return static_cast<double>(1 - factor * lowerSeries(a, x, nullptr));
  return static_cast<double>(factor * a * upperFraction(a, x));
}

static long double lowerGradient(long double a, long double x) {
  long double slope, sum = lowerSeries(a, x, &slope), factor = gammaFactor(a, x);
  return factor * (sum * (std::log(x) - digammaLong(a + 1)) + slope);
}

double igammaGradAOf(double a, double x) {
  if (std::isnan(a) || std::isnan(x) || a <= 0 || x < 0)
    return nan;
  if (x == 0 || std::isinf(x) || std::isinf(a))
    return 0;
  return static_cast<double>(lowerGradient(a, x));
}

double randomGammaGradOf(double a, double x) {
  if (std::isnan(a) || std::isnan(x) || a <= 0 || x < 0)
    return nan;
  if (x == 0 || std::isinf(x))
    return 0;
  // -(dP/da) / (dP/dx) with dP/dx = factor * a / x: the factor cancels
  long double slope, sum = lowerSeries(a, x, &slope);
  return static_cast<double>(-(sum * (std::log(static_cast<long double>(x)) - digammaLong(a + 1.0L)) + slope) * x / a);
}

double betaincOf(double a, double b, double x) {
  if (std::isnan(a) || std::isnan(b) || std::isnan(x) || a <= 0 || b <= 0 || x < 0 || x > 1)
    return nan;
  if (x == 0 || x == 1)
    return x;
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
