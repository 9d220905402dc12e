// lgamma, digamma, beta and Bessel functions in f64 (f32 widens). Iterations run until every lane has converged.
#include "passes/codegen/element/MathParts.h"

using namespace mlir;

namespace lathe::codegen {

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

SmallVector<Value> iterate(KernelBuilder &b, SmallVector<Value> state, int64_t limit,
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
  r = sel((a0 == kInf) | (b0 == kInf), kNan, r);
  r = sel(x0 == 0.0, 0.0, sel(x0 == 1.0, 1.0, r));
  return sel(bad, kNan, r);
}

} // namespace lathe::codegen
