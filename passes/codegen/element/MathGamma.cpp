// Incomplete gamma functions, zeta and polygamma in the arithmetic of their own type. TensorFlow computes float32 in
// float32: at arguments in the thousands the exponent a log x - x - lgamma(a) alone has errors of 1e-2, so agreeing with
// its results means rounding where it rounds: same recurrences, same stopping rules, same bounds on the iterations.
#include "passes/codegen/element/MathParts.h"

using namespace mlir;

namespace lathe::codegen {
namespace {

bool single(E x) { return x.elem().isF32(); }
/// Half the distance from 1 to the next number.
double epsilonOf(E x) { return single(x) ? 0x1p-24 : 0x1p-53; }

/// `fn` in f64, rounded to the type of x.
template <class Fn>
E rounded(E x, Fn fn) {
  return single(x) ? toF32(fn(toF64(x))) : fn(x);
}
E logE(E x) { return rounded(x, log64); }
E expE(E x) { return rounded(x, exp64); }
E digammaE(E x) { return rounded(x, digamma64); }

/// lgamma for x > 0. In f32 the C library's steps from 8 on, whose rounding the callers' exponents show.
E lgammaE(E x) {
  if (!single(x))
    return lgamma64(x);
  E z = x.c(1.0) / x, y = z * z;
  E w = x.c(-1.6309292987e-03);
  for (double k : {8.3633989561e-04, -5.9518753551e-04, 7.9365057172e-04, -2.7777778450e-03})
    w = y * w + k;
  w = z * (y * w + 8.3333335817e-02) + 4.1893854737e-01;
  E far = (x - 0.5) * (logE(x) - 1.0) + w;
  return sel(x < 8.0, rounded(sel(x < 8.0, x, 1.0), lgamma64), sel(x == kInf, kInf, far));
}

/// x^a e^-x / gamma(a); 0 where that underflows.
E mainTerm(E a, E x) {
  E exponent = a * logE(x) - x - lgammaE(a);
  double lowest = single(a) ? -88.7228394 : -709.78271289338397;
  E fine = exponent >= lowest; // not of NaN
  return sel(fine, expE(sel(fine, exponent, 0.0)), 0.0);
}

enum class Mode { Value, Derivative, SampleDerivative };
int64_t limitOf(E a, Mode mode) { return mode == Mode::Value ? 2000 : single(a) ? 200 : 500; }

/// P(a, x), its derivative by a, or dx/da at constant P, by the power series.
E bySeries(E a, E x, E active, Mode mode) {
  KernelBuilder &b = *a.b;
  bool value = mode == Mode::Value;
  double eps = epsilonOf(a);
  E term = mainTerm(a, x);
  E ax = term / a, one = a.c(1.0), zero = a.c(0.0);
  // state: active, r, c, sum, and of these by a: dc, dsum
  SmallVector<Value> state{active & (term != 0.0), a, one, one};
  if (!value)
    state.append({zero, zero});
  SmallVector<Value> v = iterate(b, state, limitOf(a, mode), [&](ValueRange s) {
    E r = E(b, s[1]) + 1.0, c(b, s[2]), sum(b, s[3]);
    E f = x / r;
    SmallVector<Value> next{Value(), r, Value(), Value()};
    E more;
    if (!value) {
      E dc = f * E(b, s[4]) + (-x / (r * r)) * c, dsum = E(b, s[5]) + dc;
      more = absE(dc) > absE(dsum) * eps;
      next.append({dc, dsum});
    }
    c = c * f;
    sum = sum + c;
    if (value)
      more = c > sum * eps;
    next[0] = more;
    next[2] = c;
    next[3] = sum;
    return next;
  });
  E sum(b, v[3]);
  if (value)
    return sel(term == 0.0, 0.0, sum * ax);
  E dsum(b, v[5]), dlog = logE(x) - digammaE(a + 1.0);
  E r = mode == Mode::Derivative ? sum * (ax * dlog) + dsum * ax : -(dsum + sum * dlog) * x / a;
  return sel(term == 0.0, 0.0, r);
}

/// Q(a, x), its derivative by a, or -dx/da at constant P, by the continued fraction; for x >= 1, x >= a.
E byFraction(E a, E x, E active, Mode mode) {
  KernelBuilder &b = *a.b;
  bool value = mode == Mode::Value;
  double eps = epsilonOf(a), small = single(a) ? 0x1p-24 : 0x1p-52;
  E term = mainTerm(a, x), one = a.c(1.0), zero = a.c(0.0);
  E y = one - a, z = x + y + 1.0;
  E p1 = x + 1.0, q1 = z * x, value0 = p1 / q1;
  // state: active, c, y, z, p2, q2, p1, q1, value, and by a: dp2, dq2, dp1, dq1, dvalue
  SmallVector<Value> state{active & (term != 0.0), zero, y, z, one, x, p1, q1, value0};
  if (!value)
    state.append({zero, zero, zero, -x, value0 * x / q1});
  SmallVector<Value> v = iterate(b, state, limitOf(a, mode), [&](ValueRange s) {
    auto at = [&](unsigned i) { return E(b, s[i]); };
    E c = at(1) + 1.0, y = at(2) + 1.0, z = at(3) + 2.0;
    E p2 = at(4), q2 = at(5), p1 = at(6), q1 = at(7), last = at(8);
    E yc = y * c, p = p1 * z - p2 * yc, q = q1 * z - q2 * yc;
    E ok = q != 0.0;
    E now = sel(ok, p / q, last);
    E shrink = absE(p) > 1.0 / small;
    auto scaled = [&](E e) { return sel(shrink, e * small, e); };
    SmallVector<Value> next{Value(), c, y, z, scaled(p1), scaled(q1), scaled(p), scaled(q), now};
    E done;
    if (value) {
      done = absE(last - now) <= absE(now) * eps;
    } else {
      E dp2 = at(9), dq2 = at(10), dp1 = at(11), dq1 = at(12), dlast = at(13);
      E dp = dp1 * z - p1 - dp2 * yc + p2 * c, dq = dq1 * z - q1 - dq2 * yc + q2 * c;
      E dnow = sel(ok, (dp - now * dq) / q, dlast);
      done = absE(dnow - dlast) <= eps;
      next.append({scaled(dp1), scaled(dq1), scaled(dp), scaled(dq), dnow});
    }
    next[0] = !(ok & done);
    return next;
  });
  E r(b, v[8]);
  E outside = (term == 0.0) | (x == kInf);
  if (value)
    return sel(outside, 0.0, r * term);
  E dr(b, v[13]), dlog = logE(x) - digammaE(a);
  E d = mode == Mode::Derivative ? r * (term * dlog) + dr * term : -(dr + r * dlog) * x;
  return sel(outside, 0.0, d);
}

struct Regions {
  E bad, useFraction, series, fraction; ///< of the last two, which lanes each algorithm works on
  E xSeries, xFraction, aSafe;
};
Regions regionsOf(E a, E x) {
  Regions r;
  r.bad = !((x >= 0.0) & (a > 0.0));
  r.useFraction = (x > 1.0) & (x > a);
  r.series = !r.bad & !r.useFraction & (x > 0.0);
  r.fraction = !r.bad & r.useFraction;
  r.aSafe = sel(r.bad, 1.0, a);
  r.xSeries = sel(r.series, x, 0.5);
  r.xFraction = sel(r.fraction, x, r.aSafe + 2.0);
  return r;
}

E lower(E a, E x, Mode mode) {
  Regions g = regionsOf(a, x);
  E s = bySeries(g.aSafe, g.xSeries, g.series, mode), f = byFraction(g.aSafe, g.xFraction, g.fraction, mode);
  E r = sel(g.useFraction, mode == Mode::Value ? a.c(1.0) - f : -f, s);
  return sel(x == 0.0, 0.0, sel(g.bad, kNan, r));
}

/// w^-x for real x, or integer x and negative w.
E negPower(E w0, E x0) {
  auto power = [](E w, E x) {
    E base = absE(w);
    E p = sel(base == 1.0, 1.0, exp64(-x * log64(base)));
    E half = x * 0.5;
    E odd = (floorE(x) == x) & (floorE(half) != half);
    return sel((w < 0.0) & odd, -p, p);
  };
  return single(w0) ? toF32(power(toF64(w0), toF64(x0))) : power(w0, x0);
}

} // namespace

E igammaE(E a, E x) { return lower(a, x, Mode::Value); }
E igammaGradAE(E a, E x) { return lower(a, x, Mode::Derivative); }
E randomGammaGradE(E a, E x) { return lower(a, x, Mode::SampleDerivative); }

E igammacE(E a, E x) {
  Regions g = regionsOf(a, x);
  // here the fraction serves x == a too
  E useSeries = (x < 1.0) | (x < a);
  E series = !g.bad & useSeries & (x > 0.0), fraction = !g.bad & !useSeries;
  E s = bySeries(g.aSafe, sel(series, x, 0.5), series, Mode::Value);
  E f = byFraction(g.aSafe, sel(fraction, x, g.aSafe + 2.0), fraction, Mode::Value);
  E r = sel(useSeries, a.c(1.0) - s, f);
  r = sel(x == 0.0, 1.0, r);
  return sel(g.bad, kNan, r);
}

E zetaE(E x, E q) {
  KernelBuilder &b = *x.b;
  double eps = epsilonOf(x);
  bool f32 = single(x);
  // a far negative q would sum up to there
  E valid = (x > 1.0) & (f32 ? q == q : q > -1e5);
  E xs = sel(valid, x, 2.0), qs = sel(valid, q, 1.0);
  E zero = x.c(0.0), off = isNan(zero);
  // state: active, terms, a, b, sum, whether the terms have become small; at least 9 terms, in f64 on to a > 9
  SmallVector<Value> v = iterate(
      b, {valid, zero, qs, zero, negPower(qs, xs), off}, f32 ? 9 : 200000, [&](ValueRange s) {
        E i = E(b, s[1]) + 1.0, a = E(b, s[2]) + 1.0, sum(b, s[4]);
        E term = negPower(a, xs);
        sum = sum + term;
        E small = absE(term / sum) < eps;
        E more = i < 9.0;
        if (!f32)
          more = more | (a <= 9.0);
        return SmallVector<Value>{more & !small, i, a, term, sum, small};
      });
  E w(b, v[2]), term(b, v[3]), sum(b, v[4]), complete(b, v[5]);
  complete = complete | (term == 0.0);
  // the rest by Euler and Maclaurin
  E tail = sum + term * w / (xs - 1.0);
  tail = tail - term * 0.5;
  E factor = x.c(1.0), power = term, more = !complete;
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
  for (int k = 0; k < 12; ++k) {
    factor = factor * (xs + double(2 * k));
    power = power / w;
    E t = factor * power / x.c(rests[k]);
    E next = tail + t;
    tail = sel(more, next, tail);
    more = more & !(absE(t / tail) < eps);
    factor = factor * (xs + double(2 * k + 1));
    power = power / w;
  }
  E r = sel(complete, sum, tail);
  E half = x * 0.5;
  E pole = floorE(q) == q;
  r = sel(q <= 0.0, sel(pole, sel(roundEvenE(half) == half, x.c(kInf), kNan), sel(floorE(x) == x, r, kNan)), r);
  r = sel(x > 1.0, r, sel(x == 1.0, x.c(kInf), kNan));
  return sel(isNan(x) | isNan(q), kNan, r);
}

E polygammaE(E n, E x) {
  E integral = (floorE(n) == n) & (n >= 0.0);
  E order = sel(integral & (n > 0.0), n, 1.0) + 1.0;
  E half = order * 0.5;
  E sign = sel(floorE(half) == half, n.c(1.0), n.c(-1.0));
  E r = sign * expE(lgammaE(order)) * zetaE(order, x);
  r = sel(n == 0.0, sel(x == 0.0, kNan, digammaE(x)), r);
  return sel(integral, r, kNan);
}

} // namespace lathe::codegen
