// f32: trigonometric functions and their inverses.
#include "passes/codegen/element/MathParts.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace lathe::codegen {

Value anyLane(E mask) {
  if (mask.lanes() == 1)
    return mask;
  return vector::ReductionOp::create(*mask.b, vector::CombiningKind::OR, mask.v);
}

namespace {
/// x = r + quadrant * pi/2, |r| <= pi/4
struct Reduced {
  E r, quadrant;
};
} // namespace

// 32 zero bits, then 2/pi in words.
static const uint32_t kTwoOverPi[8] = {0,          0xA2F9836E, 0x4E441529, 0xFC2757D1,
                                       0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB};

// Payne-Hanek: the 96 bits of 2/pi that matter for this exponent, times the 24-bit significand, in 64-bit lanes.
static Reduced reduceHuge(E x) {
  E ix = x.bits() & 0x7fffffff;
  E index = (ix >> 23) - (127 - 7); // first bit of the window
  E word = index >> 5, off = extU(index & 31, 64);
  E m = extU((ix & 0x7fffff) | 0x800000, 64);
  E w[4];
  for (int i = 0; i < 4; ++i) {
    w[i] = word.cI(int32_t(kTwoOverPi[i]));
    for (int k = 1; k < 5; ++k)
      w[i] = sel(word == k, word.cI(int32_t(kTwoOverPi[i + k])), w[i]);
    w[i] = extU(w[i], 64);
  }
  auto window = [&](int i) { return (((w[i] << 32) | w[i + 1]) << off) >> 32; };
  E t = ((m * window(2)) >> 32) + m * window(1) + ((m * window(0)) << 32);
  E q = (t + (int64_t(1) << 61)) >> 62;
  E frac = t - (q << 62);
  E r = toF32(fromS(frac, x.b->getF64Type()) * 3.406121580086554e-19); // pi/2 * 2^-62
  E quadrant = truncI(q, 32);
  E negative = x.bits() < 0;
  return {sel(negative, -r, r), sel(negative, -quadrant, quadrant)};
}

static Reduced reduceTrig(E x) {
  E t = fma(x, x.c(0.636619772367581343), x.c(12582912.0));
  E quadrant = t.bits();
  E n = t - 12582912.0;
  // pi/2 in three parts; for |n| < 2^17 the first product leaves no error
  E r = fma(n, -1.57079637050628662109375, x);
  r = fma(n, 4.37113900018624283e-08, r);
  r = fma(n, 1.71512451000588187e-15, r);
  E huge = !(absE(x) < 71476.0);
  SmallVector<Value> v = x.b->ifElse(
      anyLane(huge), TypeRange{r.type(), quadrant.type()},
      [&] {
        Reduced h = reduceHuge(x);
        return SmallVector<Value>{sel(huge, h.r, r), sel(huge, h.quadrant, quadrant)};
      },
      [&] { return SmallVector<Value>{r, quadrant}; });
  E rr(*x.b, v[0]);
  // infinities and NaN
  rr = sel(absE(x) < kInf, rr, kNan);
  return {rr, E(*x.b, v[1])};
}

static E sinPoly(E r) {
  E u = r * r;
  return fma(r * u, poly(u, {-0.166666671634, 0.00833332911134, -0.000198393026949, 2.71802559837e-6}), r);
}
static E cosPoly(E r) {
  E u = r * r;
  E t = poly(u, {0.0416666679084, -0.00138888834044, 2.47995103564e-5, -2.72093586773e-7});
  return fma(u * u, t, fma(u, -0.5, 1.0));
}

E sin32(E x) {
  Reduced d = reduceTrig(x);
  E r = sel((d.quadrant & 1) == 0, sinPoly(d.r), cosPoly(d.r));
  r = sel((d.quadrant & 2) == 0, r, -r);
  return sel(absE(x) < 0.000244140625, x, r); // within a fifth of an ulp, and -0 stays
}

E cos32(E x) {
  Reduced d = reduceTrig(x);
  E r = sel((d.quadrant & 1) == 0, cosPoly(d.r), sinPoly(d.r));
  return sel(((d.quadrant + 1) & 2) == 0, r, -r);
}

E tan32(E x) {
  Reduced d = reduceTrig(x);
  E even = (d.quadrant & 1) == 0;
  E s = sinPoly(d.r), c = cosPoly(d.r);
  E r = sel(even, s, -c) / sel(even, c, s);
  return sel(absE(x) < 0.000244140625, fma(x * x, x * 0.3333333432674, x), r);
}

// atan on [0, 1]
static E atanPoly(E t) {
  E u = t * t;
  E p = poly(u, {-0.33333298564, 0.199985474348, -0.142642378807, 0.109521709383, -0.0840341225266, 0.0579570233822,
                 -0.031177341938, 0.010914362967, -0.00179356257275});
  return fma(t * u, p, t);
}
static constexpr double kPio2Hi = 1.57079637050628662109375, kPio2Lo = -4.37113900018624283e-08;

E atan32(E x) {
  E ax = absE(x);
  E inverted = ax > 1.0;
  E p = atanPoly(sel(inverted, x.c(1.0) / ax, ax));
  return copysignE(sel(inverted, x.c(kPio2Hi) - (p - kPio2Lo), p), x);
}

E atan2_32(E y, E x) {
  E ax = absE(x), ay = absE(y);
  E steep = ay > ax;
  E lo = sel(steep, ax, ay), hi = sel(steep, ay, ax);
  E t = lo / hi;
  t = sel(hi == 0.0, 0.0, t);
  t = sel(lo == kInf, 1.0, t);
  E p = atanPoly(t);
  E r = sel(steep, x.c(kPio2Hi) - (p - kPio2Lo), p);
  r = sel(x.bits() < 0, x.c(2 * kPio2Hi) - (r - 2 * kPio2Lo), r);
  r = copysignE(r, y);
  return sel(isNan(x) | isNan(y), kNan, r);
}

// asin(s) for s in [0, 1/2], z = s^2
static E asinPoly(E s, E z) {
  E p = poly(z, {0.166666597128, 0.0750050544739, 0.0445167087018, 0.031809899956, 0.0144298858941, 0.0375293157995});
  return fma(s * z, p, s);
}

E asin32(E x) {
  E ax = absE(x);
  E big = ax > 0.5;
  E z = sel(big, fma(ax, -0.5, 0.5), ax * ax);
  E p = asinPoly(sel(big, sqrtE(z), ax), z);
  return copysignE(sel(big, x.c(kPio2Hi) - (p + p - kPio2Lo), p), x);
}

E acos32(E x) {
  E ax = absE(x);
  E big = ax > 0.5;
  E z = sel(big, fma(ax, -0.5, 0.5), ax * ax);
  E p = asinPoly(sel(big, sqrtE(z), ax), z);
  E twice = p + p;
  E outer = sel(x < 0.0, x.c(2 * kPio2Hi) - (twice - 2 * kPio2Lo), twice);
  E inner = x.c(kPio2Hi) - (copysignE(p, x) - kPio2Lo);
  return sel(big, outer, inner);
}

} // namespace lathe::codegen
