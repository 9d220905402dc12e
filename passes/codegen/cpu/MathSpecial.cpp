// Gamma, zeta, beta and Bessel functions in f64 (f32 widens). Iterations run until every lane has converged.
#include "passes/codegen/cpu/MathParts.h"

using namespace mlir;

namespace lathe::cpu {

static constexpr double kEps = 1.1102230246251565e-16;

static E log1p64(E x) {
  E u = x + 1.0;
  E near = u == 1.0;
  return sel(near, x, log64(u) * (x / sel(near, 1.0, u - 1.0)));
}

/// for z >= 8: (z - 1/2) log z - z + log(2 pi)/2 + 1/(12 z) - ...
static E stirling(E z) {
  E w = z.c(1.0) / z;
  E series = w * poly(w * w, {1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188, -691.0 / 360360, 1.0 / 156,
                              -3617.0 / 122400});
  return fma(z - 0.5, log64(z), -z) + 0.91893853320467274178 + series;
}

E lgamma64(E x) {
  E reflect = x < 0.5;
  E z = sel(reflect, x.c(1.0) - x, x);
  z = sel(z > 1e300, 1e300, z);
  E shift = x.c(1.0), y = z;
  for (int i = 0; i < 8; ++i) {
    E low = y < 8.0;
    shift = sel(low, shift * y, shift);
    y = sel(low, y + 1.0, y);
  }
  E r = stirling(y) - log64(shift);
  r = sel((z == 1.0) | (z == 2.0), 0.0, r);
  E s = absE(sinPi64(x));
  // a pole gives log(0)
  E mirrored = x.c(1.14472988584940017414) - log64(s) - r; // log(pi)
  E value = sel(reflect, mirrored, r);
  value = sel(absE(x) == kInf, kInf, sel(x > 1e300, kInf, value));
  return sel(isNan(x), x, value);
}

E digamma64(E x) {
  E reflect = x < 0.5;
  E z = sel(reflect, x.c(1.0) - x, x);
  E r = x.c(0.0), y = z;
  for (int i = 0; i < 10; ++i) {
    E low = y < 10.0;
    r = sel(low, r - x.c(1.0) / y, r);
    y = sel(low, y + 1.0, y);
  }
  E w = x.c(1.0) / y, w2 = w * w;
  E series = w2 * poly(w2, {1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760, 1.0 / 12});
  r = r + log64(y) - w * 0.5 - series;
  // pi / tan(pi x), with the argument reduced first
  E f = x - roundEvenE(x);
  E mirrored = r - (cosPi64(f) / sinPi64(f)) * kPi;
  E value = sel(reflect, mirrored, r);
  E pole = (x <= 0.0) & (floorE(x) == x);
  value = sel(pole, sel(x == 0.0, copysignE(x.c(kInf), -x), kNan), value);
  return sel(x == kInf, x, value);
}

E besselI64(E x, int order) {
  KernelBuilder &b = *x.b;
  E ax = absE(x);
  E small = ax <= 25.0;
  E s = sel(small, ax, 25.0), q = s * s * 0.25;
  // power series: (x/2)^order sum q^k / (k! (k+order)!)
  SmallVector<Value> v = b.loop(
      b.i64(1), b.i64(70), b.i64(1), ValueRange{x.c(1.0), x.c(1.0), x.c(1.0)}, [&](Value, ValueRange a) {
        E term(b, a[0]), sum(b, a[1]), k(b, a[2]);
        term = term * q / (k * (k + double(order)));
        return SmallVector<Value>{term, sum + term, k + 1.0};
      });
  E series = E(b, v[1]) * exp64(-s);
  if (order == 1)
    series = series * s * 0.5;
  // asymptotic: sum of prod ((2j-1)^2 - 4 order^2) / (j! (8x)^j)
  E l = sel(small, 25.0, ax);
  E inv = x.c(0.125) / l;
  double mu = 4.0 * order * order;
  v = b.loop(b.i64(1), b.i64(26), b.i64(1), ValueRange{x.c(1.0), x.c(1.0), x.c(1.0)}, [&](Value, ValueRange a) {
    E term(b, a[0]), sum(b, a[1]), j(b, a[2]);
    E odd = j + j - 1.0;
    term = term * (odd * odd - mu) / j * inv;
    return SmallVector<Value>{term, sum + term, j + 1.0};
  });
  E far = E(b, v[1]) / sqrtE(l * (2.0 * kPi));
  E r = sel(small, series, far);
  r = order == 1 ? copysignE(r, x) : r;
  return sel(isNan(x), x, r);
}

// Iterates `step` over the state while `active` (state[0], i1) is on in some lane, at most `limit` times.
static SmallVector<Value> iterate(KernelBuilder &b, SmallVector<Value> state, int64_t limit,
                                  llvm::function_ref<SmallVector<Value>(ValueRange)> step) {
  state.push_back(b.i64(0));
  unsigned n = state.size() - 1;
  SmallVector<Value> r = b.whileLoop(
      state, [&](ValueRange v) { return b.both(anyLane(E(b, v[0])), b.lt(v[n], b.i64(limit))); },
      [&](ValueRange v) {
        SmallVector<Value> next = step(v.take_front(n));
        for (unsigned i = 1; i < n; ++i) // lanes that have converged keep their values
          next[i] = b.select(v[0], next[i], v[i]);
        next[0] = arith::AndIOp::create(b, v[0], next[0]);
        next.push_back(b.add(v[n], b.i64(1)));
        return next;
      });
  r.pop_back();
  return r;
}

// x^a e^-x / gamma(a)
static E gammaPrefix(E a, E x) { return exp64(a * log64(x) - x - lgamma64(a)); }

// sum x^n / ((a+1) ... (a+n)) and its derivative in a
static std::pair<E, E> igammaSeries(E a, E x, E active) {
  KernelBuilder &b = *a.b;
  E zero = a.c(0.0), one = a.c(1.0);
  // state: active, r, c, sum, dc, dsum
  SmallVector<Value> v = iterate(b, {active, a, one, one, zero, zero}, 20000, [&](ValueRange s) {
    E r = E(b, s[1]) + 1.0, c(b, s[2]), sum(b, s[3]), dc(b, s[4]), dsum(b, s[5]);
    E f = x / r;
    dc = dc * f - c * f / r;
    c = c * f;
    sum = sum + c;
    dsum = dsum + dc;
    E more = (c > sum * kEps) | (absE(dc) > absE(dsum) * kEps);
    return SmallVector<Value>{more, r, c, sum, dc, dsum};
  });
  return {E(b, v[3]), E(b, v[5])};
}

// Q(a, x) by Lentz's continued fraction, x > a, without the prefix
static E igammacFraction(E a, E x, E active) {
  KernelBuilder &b = *a.b;
  E one = a.c(1.0);
  E b0 = x + 1.0 - a;
  E d0 = one / b0;
  SmallVector<Value> v = iterate(
      b, {active, one, b0, a.c(1e300), d0, d0}, 20000, [&](ValueRange s) {
        E i(b, s[1]), bb(b, s[2]), c(b, s[3]), d(b, s[4]), h(b, s[5]);
        E an = i * (a - i);
        bb = bb + 2.0;
        d = fma(an, d, bb);
        d = sel(absE(d) < 1e-300, 1e-300, d);
        c = bb + an / c;
        c = sel(absE(c) < 1e-300, 1e-300, c);
        d = one / d;
        E del = d * c;
        return SmallVector<Value>{absE(del - 1.0) > kEps * 2, i + 1.0, bb, c, d, h * del};
      });
  return E(b, v[5]);
}

static E igammaEither(E a, E x, bool upper) {
  E bad = !((x >= 0.0) & (a > 0.0));
  E plain = (x > 0.0) & (x < kInf) & (a < kInf) & !bad;
  E useFraction = (x > 1.0) & (x > a);
  E as = sel(plain, a, 1.0), xs = sel(plain, x, 1.0);
  E xSeries = sel(useFraction, 0.5, xs), xFraction = sel(useFraction, xs, as + 2.0);
  E prefix = gammaPrefix(as, xs);
  E p = igammaSeries(as, xSeries, plain & !useFraction).first * prefix / as;
  E q = igammacFraction(as, xFraction, plain & useFraction) * prefix;
  E one = a.c(1.0);
  E r = upper ? sel(useFraction, q, one - p) : sel(useFraction, one - q, p);
  E atZero = a.c(upper ? 1.0 : 0.0), atInf = a.c(upper ? 0.0 : 1.0);
  r = sel(x == 0.0, atZero, r);
  r = sel(a == kInf, atZero, r);
  r = sel(x == kInf, sel(a == kInf, kNan, atInf), r);
  return sel(bad, kNan, r);
}

E igamma64(E a, E x) { return igammaEither(a, x, false); }
E igammac64(E a, E x) { return igammaEither(a, x, true); }

/// dP/da and the density dP/dx
static std::pair<E, E> gammaDerivatives(E a, E x, E plain) {
  E as = sel(plain, a, 1.0), xs = sel(plain, x, 1.0);
  auto [sum, dsum] = igammaSeries(as, xs, plain);
  E prefix = gammaPrefix(as, xs);
  E da = prefix / as * (dsum + sum * (log64(xs) - digamma64(as) - a.c(1.0) / as));
  return {da, prefix / xs};
}

E igammaGradA64(E a, E x) {
  E bad = !((x >= 0.0) & (a > 0.0));
  E far = x > a + sqrtE(a) * 40.0 + 100.0; // P is 1 to the last bit
  E plain = (x > 0.0) & (a < kInf) & !far & !bad;
  E r = sel(plain, gammaDerivatives(a, x, plain).first, 0.0);
  return sel(bad, kNan, r);
}

E randomGammaGrad64(E a, E x) {
  E bad = !((x >= 0.0) & (a > 0.0));
  E far = x > a + sqrtE(a) * 40.0 + 100.0;
  E plain = (x > 0.0) & (a < kInf) & !far & !bad;
  auto [da, density] = gammaDerivatives(a, x, plain);
  E r = sel(plain & (density > 0.0), -da / density, 0.0);
  return sel(bad, kNan, r);
}

// w^-x for real x, or integer x and negative w
static E negPower(E w, E x) {
  E p = exp64(-x * log64(absE(w)));
  E half = x * 0.5;
  E odd = (floorE(x) == x) & (floorE(half) != half);
  return sel((w < 0.0) & odd, -p, p);
}

E zeta64(E x, E q) {
  KernelBuilder &b = *x.b;
  E valid = (x > 1.0) & (q < kInf) & (q > -1e5);
  E xs = sel(valid, x, 2.0), qs = sel(valid, q, 1.0);
  // sum until the Euler-Maclaurin rest is good
  SmallVector<Value> v = iterate(b, {valid, qs, xs.c(0.0)}, 200000, [&](ValueRange s) {
    E w(b, s[1]), sum(b, s[2]);
    sum = sum + negPower(w, xs);
    w = w + 1.0;
    return SmallVector<Value>{w < 12.0, w, sum};
  });
  E w(b, v[1]), sum(b, v[2]);
  E p = negPower(w, xs);
  sum = sum + p * w / (xs - 1.0) + p * 0.5;
  static const double bernoulli[] = {1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66, -691.0 / 2730, 7.0 / 6,
                                     -3617.0 / 510, 43867.0 / 798, -174611.0 / 330};
  E factor = xs, power = p / w;
  double factorial = 2;
  for (int k = 1; k <= 10; ++k) {
    sum = sum + factor * power * (bernoulli[k - 1] / factorial);
    factor = factor * (xs + double(2 * k - 1)) * (xs + double(2 * k));
    power = power / (w * w);
    factorial *= (2 * k + 1) * (2 * k + 2);
  }
  E r = sel(x == 1.0, kInf, sel(x > 1.0, sum, kNan));
  E integerQ = floorE(q) == q;
  // poles: the sign of the infinity is only known for even x
  E halfX = x * 0.5;
  E evenX = floorE(halfX) == halfX;
  r = sel((q <= 0.0) & integerQ & (x > 1.0), sel(evenX, x.c(kInf), kNan), r);
  r = sel((q < 0.0) & !integerQ & (floorE(x) != x), kNan, r);
  r = sel(q == kInf, 0.0, r);
  return sel(isNan(x) | isNan(q), kNan, r);
}

E polygamma64(E n, E x) {
  E integral = (floorE(n) == n) & (n >= 0.0);
  E half = n * 0.5;
  E even = floorE(half) == half;
  E r = exp64(lgamma64(n + 1.0)) * zeta64(sel(n > 0.0, n + 1.0, 2.0), x);
  r = sel(even, -r, r);
  r = sel(n == 0.0, digamma64(x), r);
  return sel(integral, r, kNan);
}

E betainc64(E a0, E b0, E x0) {
  KernelBuilder &k = *x0.b;
  E valid = (a0 > 0.0) & (b0 > 0.0) & (x0 > 0.0) & (x0 < 1.0) & (a0 < kInf) & (b0 < kInf);
  E a = sel(valid, a0, 1.0), b = sel(valid, b0, 1.0), x = sel(valid, x0, 0.5);
  E swap = x > (a + 1.0) / (a + b + 2.0);
  E aa = sel(swap, b, a), bb = sel(swap, a, b), xx = sel(swap, x.c(1.0) - x, x);
  E logX = sel(swap, log1p64(-x), log64(x)), logY = sel(swap, log64(x), log1p64(-x));
  E front = exp64(aa * logX + bb * logY + lgamma64(aa + bb) - lgamma64(aa) - lgamma64(bb)) / aa;
  E one = x.c(1.0);
  auto guard = [](E v) { return sel(absE(v) < 1e-300, 1e-300, v); };
  E d0 = one / guard(one - (aa + bb) * xx / (aa + 1.0));
  SmallVector<Value> v = iterate(k, {valid, one, one, d0, d0}, 5000, [&](ValueRange s) {
    E m(k, s[1]), c(k, s[2]), d(k, s[3]), h(k, s[4]);
    E m2 = m + m;
    E t = m * (bb - m) * xx / ((aa + m2 - 1.0) * (aa + m2));
    d = one / guard(fma(t, d, one));
    c = guard(one + t / c);
    h = h * d * c;
    t = -(aa + m) * (aa + bb + m) * xx / ((aa + m2) * (aa + m2 + 1.0));
    d = one / guard(fma(t, d, one));
    c = guard(one + t / c);
    E del = d * c;
    return SmallVector<Value>{absE(del - 1.0) > kEps * 2, m + 1.0, c, d, h * del};
  });
  E r = front * E(k, v[4]);
  r = sel(swap, one - r, r);
  E bad = !((a0 > 0.0) & (b0 > 0.0) & (x0 >= 0.0) & (x0 <= 1.0));
  r = sel(x0 == 0.0, 0.0, sel(x0 == 1.0, 1.0, r));
  return sel(bad, kNan, r);
}

} // namespace lathe::cpu
