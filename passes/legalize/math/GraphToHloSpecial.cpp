// Bessel, Fresnel, Dawson, exponential and dilogarithm functions, as f64 arithmetic that fuses into one kernel. Power
// series near zero, expansions in 1/x far out; between them the trapezoidal rule on integrals whose integrands are analytic
// in a strip, where it converges exponentially.
#include "passes/legalize/NodeContext.h"

#include <cmath>

using namespace mlir;

namespace lathe::legalize {
namespace {

constexpr double kPi = 3.14159265358979323846, kEuler = 0.57721566490153286061;
const double kInfinity = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

/// An f64 tensor with operators; numbers stand for constants of its shape.
struct X {
  NodeContext *c = nullptr;
  Value v;

  X number(double x) const { return {c, c->like(v, x)}; }
};

X operator+(X a, X b) { return {a.c, a.c->add(a.v, b.v)}; }
X operator-(X a, X b) { return {a.c, a.c->sub(a.v, b.v)}; }
X operator*(X a, X b) { return {a.c, a.c->mul(a.v, b.v)}; }
X operator/(X a, X b) { return {a.c, a.c->div(a.v, b.v)}; }
X operator+(X a, double b) { return a + a.number(b); }
X operator-(X a, double b) { return a - a.number(b); }
X operator*(X a, double b) { return a * a.number(b); }
X operator/(double a, X b) { return b.number(a) / b; }
X operator-(double a, X b) { return b.number(a) - b; }
X operator-(X a) { return {a.c, a.c->neg(a.v)}; }

template <typename Op>
X apply(X x) {
  return {x.c, x.c->unary<Op>(x.v)};
}
X exp(X x) { return apply<hlo::ExpOp>(x); }
X log(X x) { return apply<hlo::LogOp>(x); }
X sin(X x) { return apply<hlo::SineOp>(x); }
X cos(X x) { return apply<hlo::CosineOp>(x); }
X sqrt(X x) { return apply<hlo::SqrtOp>(x); }
X abs(X x) { return apply<hlo::AbsOp>(x); }
X sign(X x) { return apply<hlo::SignOp>(x); }

/// `x` compared with a number chooses.
X choose(X x, Compare direction, double limit, X yes, X no) {
  return {x.c, x.c->select(x.c->compare(direction, x.v, x.number(limit).v), yes.v, no.v)};
}

/// coefficients[0] + coefficients[1] x + ...
template <typename List>
X poly(X x, const List &coefficients) {
  X sum = x.number(coefficients.back());
  for (size_t i = coefficients.size() - 1; i-- > 0;)
    sum = sum * x + coefficients[i];
  return sum;
}

double factorial(int n) { return std::tgamma(n + 1.0); }
double harmonic(int n) {
  double sum = 0;
  for (int k = 1; k <= n; ++k)
    sum += 1.0 / k;
  return sum;
}

//===----------------------------------------------------------------------===//
// Bessel functions of the first and second kind
//===----------------------------------------------------------------------===//

constexpr int kSeriesTerms = 40;    // enough up to the limit below
constexpr double kSeriesLimit = 14; // there cancellation costs as much as the expansion in 1/x errs

/// Sum of weight(k) q^k / (k! (k + order)!) times sign^k.
template <typename Weight>
X besselSeries(X q, int order, double sign, Weight weight) {
  SmallVector<double> terms;
  for (int k = 0; k < kSeriesTerms; ++k)
    terms.push_back(std::pow(sign, k) * weight(k) / factorial(k) / factorial(k + order));
  return poly(q, terms);
}

/// The two factors of Hankel's expansion at x: P and Q.
std::pair<X, X> hankel(X x, int order) {
  SmallVector<double> p, q;
  double a = 1, mu = 4.0 * order * order;
  for (int k = 0; k < 26; ++k) {
    double sign = k / 2 % 2 ? -1 : 1;
    (k % 2 ? q : p).push_back(sign * a);
    double odd = 2 * k + 1;
    a *= (mu - odd * odd) / (8.0 * (k + 1));
  }
  X w = 1.0 / x, w2 = w * w;
  return {poly(w2, p), poly(w2, q) * w};
}

/// J (first kind) or Y (second kind) far from zero.
X besselFar(X x, int order, bool second) {
  auto [p, q] = hankel(x, order);
  X s = sin(x), co = cos(x), amplitude = sqrt(1.0 / (x * kPi)); // 1/sqrt(2) of the shifted angles taken in
  X cosine = order == 0 ? co + s : s - co, sine = order == 0 ? s - co : -(co + s);
  return amplitude * (second ? p * sine + q * cosine : p * cosine - q * sine);
}

X besselJNear(X x, int order) {
  X q = x * x * 0.25;
  X sum = besselSeries(q, order, -1, [](int) { return 1.0; });
  return order == 0 ? sum : sum * x * 0.5;
}

X besselJ(X x, int order) {
  X size = abs(x), far = besselFar(size, order, false);
  if (order == 1)
    far = far * sign(x);
  return choose(size, Compare::LE, kSeriesLimit, besselJNear(x, order), far);
}

X besselY(X x, int order) {
  X q = x * x * 0.25, near;
  if (order == 0) {
    X rest = besselSeries(q, 0, -1, [](int k) { return -harmonic(k); });
    near = ((log(x * 0.5) + kEuler) * besselJNear(x, 0) + rest) * (2 / kPi);
  } else {
    X rest = besselSeries(q, 1, -1, [](int k) { return harmonic(k) + harmonic(k + 1) - 2 * kEuler; });
    near = log(x * 0.5) * besselJNear(x, 1) * (2 / kPi) - (2 / kPi) / x - rest * x * (0.5 / kPi);
  }
  X value = choose(x, Compare::LE, kSeriesLimit, near, besselFar(x, order, true));
  return choose(x, Compare::LE, 0, x.number(-kInfinity), value);
}

//===----------------------------------------------------------------------===//
// Modified Bessel functions of the second kind
//===----------------------------------------------------------------------===//

/// K, or exp(x) K where `scaled`.
X besselK(X x, int order, bool scaled) {
  X q = x * x * 0.25, half = x * 0.5, near;
  X i = besselSeries(q, order, 1, [](int) { return 1.0; });
  if (order == 0)
    near = besselSeries(q, 0, 1, harmonic) - (log(half) + kEuler) * i;
  else
    near = 1.0 / x + log(half) * i * half -
           besselSeries(q, 1, 1, [](int k) { return harmonic(k) + harmonic(k + 1) - 2 * kEuler; }) * x * 0.25;
  // the integral of exp(-x (cosh t - 1)) cosh(order t)
  constexpr double step = 0.125;
  X middle = x.number(0.5);
  for (int k = 1; k <= 32; ++k)
    middle = middle + exp(-(x * (std::cosh(k * step) - 1))) * std::cosh(order * k * step);
  middle = middle * step;
  SmallVector<double> terms;
  double a = 1, mu = 4.0 * order * order;
  for (int k = 0; k < 26; ++k) {
    terms.push_back(a);
    double odd = 2 * k + 1;
    a *= (mu - odd * odd) / (8.0 * (k + 1));
  }
  X w = 1.0 / x, far = sqrt(w * (kPi / 2)) * poly(w, terms);
  X beyond = choose(x, Compare::LE, 25, middle, far), decay = exp(-x);
  X value = choose(x, Compare::LE, 2, scaled ? near / decay : near, scaled ? beyond : beyond * decay);
  return choose(x, Compare::LE, 0, x.number(kInfinity), value);
}

//===----------------------------------------------------------------------===//
// Integrals
//===----------------------------------------------------------------------===//

/// Ei(x); NaN below zero and at infinity, as TensorFlow has it.
X expint(X x) {
  SmallVector<double> near{0}, far;
  for (int k = 1; k <= 140; ++k)
    near.push_back(1 / (k * factorial(k)));
  for (int k = 0; k <= 38; ++k)
    far.push_back(factorial(k));
  X w = 1.0 / x;
  return choose(x, Compare::LE, 38, log(x) + kEuler + poly(x, near), exp(x) * w * poly(w, far));
}

/// exp(-x^2) times the integral of exp(t^2) from 0 to x, by Rybicki's sampling.
X dawson(X x) {
  constexpr double step = 0.25;
  SmallVector<double> series;
  double a = 1;
  for (int k = 0; k < 16; ++k) {
    series.push_back(a);
    a *= -2.0 / (2 * k + 3);
  }
  X near = x * poly(x * x, series);
  X middle = apply<hlo::RoundNearestEvenOp>(x * (0.5 / step)) * 2.0, rest = x - middle * step;
  X sum = x.number(0);
  for (int n = -25; n <= 25; n += 2) {
    X d = rest - n * step;
    sum = sum + exp(-(d * d)) / (middle + double(n));
  }
  X size = abs(x);
  X value = choose(size, Compare::LT, 0.3, near, sum * (1 / std::sqrt(kPi)));
  return choose(size, Compare::EQ, kInfinity, x.number(0), value);
}

/// The dilogarithm of 1 - x.
X spence(X x) {
  SmallVector<double> terms{0};
  for (int k = 1; k <= 54; ++k)
    terms.push_back(1.0 / k / k);
  // invert above 1.5, then reflect below 0.5
  X inverted = choose(x, Compare::GT, 1.5, 1.0 / x, x);
  X z = choose(inverted, Compare::LT, 0.5, inverted, 1.0 - inverted);
  X series = poly(z, terms), l = log(inverted);
  X atZero = choose(inverted, Compare::EQ, 0, inverted.number(0), l * log(1.0 - inverted));
  X value = choose(inverted, Compare::LT, 0.5, (kPi * kPi / 6) - atZero - series, series);
  X logX = log(x);
  value = choose(x, Compare::GT, 1.5, -(logX * logX * 0.5) - value, value);
  value = choose(x, Compare::EQ, kInfinity, x.number(kNan), value);
  return choose(x, Compare::LT, 0, x.number(kNan), value);
}

/// The integral of cos (or sin) of pi t^2 / 2 from 0 to x.
X fresnel(X x, bool sine) {
  X size = abs(x), x2 = x * x, t = x2 * (kPi / 2);
  SmallVector<double> terms;
  for (int k = 0; k < 34; ++k)
    terms.push_back((k % 2 ? -1 : 1) / factorial(2 * k + sine) / (4 * k + (sine ? 3 : 1)));
  X near = size * poly(t * t, terms);
  if (sine)
    near = near * t;
  // f and g of the textbooks, integrals of Gaussians over 1 + (v/x)^4
  constexpr double step = 0.3;
  X f = x.number(0.5), g = x.number(0), w4 = 1.0 / (x2 * x2);
  for (int k = 1; k <= 18; ++k) {
    double v2 = k * step * k * step, gauss = std::exp(-kPi / 2 * v2);
    X rational = 1.0 / (w4 * (v2 * v2) + 1.0);
    f = f + rational * gauss;
    g = g + rational * (gauss * v2);
  }
  double factor = std::sqrt(2.0) / kPi * step;
  f = f * factor / size;
  g = g * factor / (size * x2);
  X s = sin(t), co = cos(t);
  X far = sine ? 0.5 - f * co - g * s : f * s - g * co + 0.5;
  X value = choose(size, Compare::LE, 3, near, far);
  value = choose(size, Compare::GT, 36974, x.number(0.5), value);
  return value * sign(x);
}

/// Narrow types are evaluated in f64 and rounded once.
template <typename Fn>
void addSpecial(HandlerTable &t, StringRef op, Fn fn, bool nanAtZero = false) {
  t.add(op, 1, [fn, nanAtZero](NodeContext &c) {
    Value x = c.input(0);
    if (!Emitter::isFloat(x))
      return c.error("expected floating point numbers");
    X wide{&c, c.convert(x, c.b.getF64Type())};
    X y = fn(wide);
    if (nanAtZero && !Emitter::elementType(x).isF64()) // as the f32 kernel has it
      y = choose(wide, Compare::EQ, 0, wide.number(kNan), y);
    return c.setResult(0, c.convert(y.v, Emitter::elementType(x)));
  });
}

} // namespace

void registerSpecial(HandlerTable &t) {
  addSpecial(t, "BesselJ0", [](X x) { return besselJ(x, 0); });
  addSpecial(t, "BesselJ1", [](X x) { return besselJ(x, 1); });
  addSpecial(t, "BesselY0", [](X x) { return besselY(x, 0); });
  addSpecial(t, "BesselY1", [](X x) { return besselY(x, 1); }, /*nanAtZero=*/true);
  addSpecial(t, "BesselK0", [](X x) { return besselK(x, 0, false); });
  addSpecial(t, "BesselK1", [](X x) { return besselK(x, 1, false); });
  addSpecial(t, "BesselK0e", [](X x) { return besselK(x, 0, true); });
  addSpecial(t, "BesselK1e", [](X x) { return besselK(x, 1, true); });
  addSpecial(t, "Expint", expint);
  addSpecial(t, "Dawsn", dawson);
  addSpecial(t, "Spence", spence);
  addSpecial(t, "FresnelCos", [](X x) { return fresnel(x, false); });
  addSpecial(t, "FresnelSin", [](X x) { return fresnel(x, true); });
}

} // namespace lathe::legalize
