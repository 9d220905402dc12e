// f32: exponentials, logarithms, hyperbolic and error functions, powers.
// Polynomials are minimax fits for the relative error over the reduced range.
#include "passes/codegen/element/MathParts.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace lathe::codegen {

namespace {
/// exp(x) = (1 + pm1) * 2^n; k is n as an integer.
struct ExpParts {
  E pm1, n, k;
};
} // namespace

static E pow2(E k) { return ((k + 127) << 23).asFloat(); }

// Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits; unlike fptosi this is defined for NaN.
static ExpParts reduceExp(E x) {
  E t = fma(x, x.c(kLog2e), x.c(12582912.0));
  E k = t.bits() - 0x4B400000;
  E n = t - 12582912.0;
  // ln2 rounded to f32 and the rest; the first product is exact in fma
  E r = fma(n, -0.693147182464599609375, x);
  r = fma(n, 1.904654299957768e-09, r);
  E q = poly(r, {0.5, 0.166666671634, 0.041666354984, 0.00833327323198, 0.00139410281554, 0.000199141635676});
  return {fma(r * r, q, r), n, k};
}

bool hasScale(E p) { return p.b->target.avx512 && (p.lanes() == 16 || p.lanes() == 8); }

E scaleBy(E p, E n, Value on) {
  KernelBuilder &b = *p.b;
  unsigned lanes = p.lanes();
  auto name = b.getStringAttr(lanes == 16 ? "llvm.x86.avx512.mask.scalef.ps.512" : "llvm.x86.avx512.mask.scalef.ps.256");
  Value mask = on ? LLVM::BitcastOp::create(b, b.getIntegerType(lanes), on).getResult() : b.cstI(b.getIntegerType(lanes), -1);
  SmallVector<Value> args{p, n, on ? p.c(0.0) : p, mask};
  if (lanes == 16)
    args.push_back(b.cstI(b.getI32Type(), 4)); // current rounding mode
  return E(b, LLVM::CallIntrinsicOp::create(b, p.type(), name, args).getResult(0));
}

// p * 2^k for |k| < 250 with one rounding: the first factor keeps p normal.
static E scale(E p, E k, E n) {
  if (hasScale(p))
    return scaleBy(p, n, Value());
  E k1 = sar(k, 1);
  return p * pow2(k1) * pow2(k - k1);
}

/// About 1/x, 14 bits, by the same instruction for every number of lanes, so that results do not depend on it.
E reciprocal14(E x) {
  KernelBuilder &b = *x.b;
  unsigned lanes = x.lanes();
  auto shuffled = [&](Value v, Value w, unsigned from, unsigned count, unsigned limit) {
    SmallVector<int64_t> pick;
    for (unsigned i = 0; i < count; ++i)
      pick.push_back(from + std::min(i, limit - 1));
    return E(b, vector::ShuffleOp::create(b, v, w, pick));
  };
  if (lanes == 1) {
    Value wide = vector::BroadcastOp::create(b, VectorType::get({4}, x.type()), x);
    return E(b, vector::ExtractOp::create(b, reciprocal14(E(b, wide)), int64_t(0)));
  }
  if (lanes < 4)
    return shuffled(reciprocal14(shuffled(x, x, 0, 4, lanes)), x, 0, lanes, lanes);
  if (lanes > 16) {
    E low = reciprocal14(shuffled(x, x, 0, lanes / 2, lanes)), high = reciprocal14(shuffled(x, x, lanes / 2, lanes / 2, lanes));
    return shuffled(low, high, 0, lanes, lanes);
  }
  auto name = b.getStringAttr("llvm.x86.avx512.rcp14.ps." + Twine(lanes * 32));
  SmallVector<Value> args{x, x, b.cstI(b.getIntegerType(lanes == 16 ? 16 : 8), -1)};
  return E(b, LLVM::CallIntrinsicOp::create(b, x.type(), name, args).getResult(0));
}

/// 1 / y within two ulp for y far from overflow and underflow: a division of 16 lanes takes as long as a polynomial.
static E reciprocal(E y) {
  if (!y.b->target.avx512 || y.b->target.fastDivision() || !llvm::isPowerOf2_32(y.lanes()))
    return y.c(1.0) / y;
  E r = reciprocal14(y);
  return fma(r, fma(-y, r, 1.0), r);
}

static E clamp(E x, double lo, double hi) { // NaN passes; one instruction each
  E y = sel(x > hi, hi, x);
  return sel(y < lo, lo, y);
}

E exp32(E x) {
  if (hasTables(x))
    return expByTable(x);
  E tiny = x < expUnderflow, top = sel(x > 89.0, 89.0, x);
  ExpParts e = reduceExp(sel(tiny, 0.0, top));
  return sel(tiny, 0.0, scale(e.pm1 + 1.0, e.k, e.n));
}

/// exp for |x| < 87: no denormal or infinite results.
static E expInner(E x) {
  ExpParts e = reduceExp(x);
  return (e.pm1 + 1.0) * pow2(e.k);
}

// x = 2^k * (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)); x positive and normal
static void splitLog(E x, E &f, E &ki) {
  E ix = x.bits();
  ki = sar(ix - 0x3f3504f3, 23);
  f = (ix - (ki << 23)).asFloat() - 1.0;
}

static E logSum(E f, E k, E extra) {
  E r = poly(f, {0.333333134651, -0.250000089407, 0.20002143085, -0.166680425406, 0.1421905756, -0.124043487012,
                 0.118908233941, -0.116849325597, 0.0675206705928});
  E f2 = f * f;
  E t = fma(f * f2, r, fma(k, f.c(9.0580006145e-06), extra));
  E u = fma(f2, -0.5, t);
  return fma(k, f.c(0.693138122558593750), f + u); // k times this constant is exact
}

E log32(E x) {
  E tiny = x < 1.1754943508222875e-38;
  E y = sel(tiny, x * 8388608.0, x);
  E f, ki;
  splitLog(y, f, ki);
  E k = fromS(ki, x.b->getF32Type()) - sel(tiny, x.c(23.0), 0.0);
  E r = logSum(f, k, x.c(0.0));
  E special = sel(x == 0.0, -kInf, x.c(kNan));
  return sel(x > 0.0, sel(x == kInf, x, r), special);
}

E log1p32(E x) {
  E u = x + 1.0;
  E f, ki;
  splitLog(u, f, ki);
  E near = ki == 0;
  E lost = sel(x > 1.0, x.c(1.0) - (u - x), x - (u - 1.0)) / u; // what 1 + x rounded away
  f = sel(near, x, f);
  E r = logSum(f, fromS(ki, x.b->getF32Type()), sel(near, 0.0, lost));
  r = sel(absE(x) < 5.9604644775390625e-08, x, r);
  E special = sel(x == -1.0, -kInf, x.c(kNan));
  return sel(x > -1.0, sel(x == kInf, x, r), special);
}

/// 2^k (1 + pm1) - 1 from the parts, |k| <= 128
static E expm1From(ExpParts e) {
  E h = pow2(e.k - 1);
  E r = fma(e.pm1, h, h - 0.5);
  return r + r;
}

E expm1_32(E x) {
  E r = expm1From(reduceExp(clamp(x, -30.0, 89.0)));
  return sel(absE(x) < 7.888609052210118e-31, x, r); // keeps denormals and -0
}

E tanh32(E x) {
  if (hasTables(x))
    return tanhByTable(x);
  E ax = absE(x);
  E u = x * x;
  E small = fma(ax * u, poly(u, {-0.333332806826, 0.133314415812, -0.0537397116423, 0.020639076829, -0.00570497754961}), ax);
  // from 0.625 on an error of the exponential counts a third in the result, which one polynomial and one Newton step bear
  E t = sel(ax > 10.0, 10.0, ax), k = fma(t, 2 * kLog2e, 12582912.0), n = k - 12582912.0;
  E f = fma(n, 1.904654299957768e-09, fma(n, -0.693147182464599609375, t + t));
  E p = poly(f, {1.0, 1.0, 0.4999999337300986, 0.16666519522901813, 0.04166840109509661, 0.008368851204610518,
                 0.0013814320470111438});
  E e = (p.bits() + (k.bits() << 23)).asFloat(); // the sum's other bits leave at the top
  E large = fma(reciprocal(e + 1.0), -2.0, 1.0);
  // NaN takes the other: `e` is made of its bits, which differ between processors
  return copysignE(sel(ax >= 0.625, large, small), x);
}

E logistic32(E x) {
  if (hasTables(x))
    return logisticByTable(x);
  // e = exp(-|x|), never above one, so that nothing overflows; 1 / (1 + e) or e / (1 + e) is the result
  E y = -absE(x), tiny = y < expUnderflow, t = sel(tiny, 0.0, y);
  E k = fma(t, t.c(kLog2e), t.c(12582912.0)), n = k - 12582912.0;
  E f = fma(n, 1.904654299957768e-09, fma(n, -0.693147182464599609375, t));
  E p = poly(f, {1.0, 1.0, 0.4999999337300986, 0.16666519522901813, 0.04166840109509661, 0.008368851204610518,
                 0.0013814320470111438});
  E e = sel(tiny, 0.0, scale(p, k.bits() - 0x4B400000, n));
  // 1 - r0 is exact, so that Newton's step does not see how 1 + e was rounded
  E r0 = e.c(1.0) / (e + 1.0);
  E r = fma(fma(-r0, e, r0.c(1.0) - r0), r0, r0);
  return sel(x < 0.0, e * r, r);
}

E erf32(E x) {
  if (hasTables(x))
    return erfByTable(x);
  E ax = absE(x);
  E u = x * x;
  E small = fma(x, poly(u, {0.128379166126, -0.376126259565, 0.112835854292, -0.0268538109958, 0.00518832728267,
                            -0.000801018846687, 7.85384472692e-5}),
                x);
  // -log(erfc) is smooth
  E t = sel(ax > 3.95, 3.95, ax);
  E q = poly(t, {-0.000204374053283, 1.12966120243, 0.633039474487, 0.108639203012, -0.0253737140447,
                 0.00428245868534, -0.00046381042921, 2.53184934991e-5, -2.5158601602e-7});
  E large = copysignE(x.c(1.0) - expInner(-q), x);
  return sel(ax < 1.0, small, large);
}

E erfc32(E x) {
  E ax = absE(x);
  E t = sel(ax > 10.1, 10.1, ax);
  // exp(t^2) erfc(t) (t + 2) as a polynomial, so that there is one division
  E share = reciprocal(t + 2.0), q = (t - 2.0) * share;
  E p = poly(q, {1.0215827139536042, -0.6871609248545948, 0.2794715195730096, -0.03643590182037582, -0.021502815052540952,
                 0.006435212845701449, 0.003042918750087844, -0.000726357587139355, -0.0005291524717439972,
                 -4.680360044334942e-05});
  E s = t * t;
  E lost = fma(t, t, -s);
  ExpParts e = reduceExp(-s);
  E m = e.pm1 + 1.0;
  m = fma(m, -lost, m);
  E r = scale(m * (p * share), e.k, e.n);
  return sel(x < 0.0, x.c(2.0) - r, r);
}

E erfInv32(E x) {
  // log1p keeps the digits near |x| = 0
  E w = -log1p32(-(x * x));
  // near 1 the square has lost what matters
  E near = absE(x) > 0.9;
  w = sel(near, -log32((x.c(1.0) - x) * (x + 1.0)), w);
  E s = w - 2.5;
  E p = poly(s, {1.50140941, 0.246640727, -0.00417768164, -0.00125372503, 0.00021858087, -4.39150654e-06,
                 -3.5233877e-06, 3.43273939e-07, 2.81022636e-08});
  E l = sqrtE(w) - 3.0;
  E q = poly(l, {2.83297682, 1.00167406, 0.00943887047, -0.0076224613, 0.00573950773, -0.00367342844,
                 0.00134934322, 0.000100950558, -0.000200214257});
  E r = sel(w < 5.0, p, q) * x;
  return sel(absE(x) == 1.0, x * kInf, r);
}

E cbrt32(E x) {
  E ax = absE(x);
  E tiny = ax < 1.1754943508222875e-38;
  E y = sel(tiny, ax * 16777216.0, ax);
  // a third of the exponent by a third of the bits, then two Halley steps in double
  E guess = (y.bits() / 3 + 709958130).asFloat();
  E d = toF64(y), t = toF64(guess);
  for (int i = 0; i < 2; ++i) {
    E r = t * t * t;
    t = t * ((d + d + r) / (d + r + r));
  }
  E r = toF32(t);
  r = copysignE(sel(tiny, r * 0.00390625, r), x);
  return sel((x == 0.0) | !(ax < kInf), x, r);
}

// 2^z and log2 in double carry enough digits for a correctly rounded f32 but for rare ties.
static E log2Double(E x) { // positive finite
  E ix = x.bits();
  E ki = sar(ix - 0x3fe6a09e667f3bcdLL, 52);
  E m = (ix - (ki << 52)).as(x.f64());
  E s = (m - 1.0) / (m + 1.0);
  E z = s * s;
  E p = poly(z, {2.0, 2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11, 2.0 / 13, 2.0 / 15});
  // k to double without an i64 conversion, which AVX2 lacks
  E k = ((ki + 0x4338000000000000LL).as(x.f64())) - 6755399441055744.0;
  return fma(s * p, kLog2e, k);
}

static E exp2Double(E z) { // |z| < 1000 or NaN
  E t = z + 6755399441055744.0;
  E k = t.bits() - 0x4338000000000000LL;
  E r = (z - (t - 6755399441055744.0)) * kLn2;
  E p = poly(r, {1.0, 1.0, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880,
                 1.0 / 3628800});
  return p * ((k + 1023) << 52).as(z.f64());
}

E pow32(E x, E y) {
  E ax = absE(x);
  E ordinary = (ax > 0.0) & (ax < kInf);
  E l = log2Double(toF64(sel(ordinary, ax, 1.0)));
  // large enough for the smallest exponent to reach the clamp
  E l0 = sel(ax == 0.0, l.c(-1e300), 1e300);
  l = sel(ordinary, l, l0);
  E r = toF32(exp2Double(clamp(toF64(y) * l, -300.0, 300.0)));
  r = sel(ax == 1.0, 1.0, r); // also against 0 * inf
  E integral = floorE(y) == y;
  E half = y * 0.5;
  E odd = integral & (floorE(half) != half);
  E negative = x.bits() < 0;
  r = sel(negative & odd, -r, r);
  // a negative finite base needs an integer exponent
  E bad = (x < 0.0) & (x > -kInf) & !integral;
  r = sel(bad, kNan, r);
  r = sel(isNan(x) | isNan(y), kNan, r);
  return sel((y == 0.0) | (x == 1.0), 1.0, r);
}

E sinh32(E x) {
  E ax = absE(x);
  ExpParts e = reduceExp(sel(ax > 91.0, 91.0, ax));
  E t = expm1From(e);
  E small = (t + t / (t + 1.0)) * 0.5;
  E large = scale(e.pm1 + 1.0, e.k - 1, e.n - 1.0);
  E r = sel(ax < 10.0, small, large);
  return copysignE(sel(ax < 7.888609052210118e-31, ax, r), x);
}

E cosh32(E x) {
  E ax = absE(x);
  ExpParts e = reduceExp(sel(ax > 91.0, 91.0, ax));
  E h = scale(e.pm1 + 1.0, e.k - 1, e.n - 1.0);
  return h + x.c(0.25) / h;
}

E asinh32(E x) {
  E ax = absE(x);
  E big = ax > 1e9;
  E y = sel(big, 1.0, ax);
  E y2 = y * y;
  E t = y + y2 / (sqrtE(y2 + 1.0) + 1.0);
  E r = log1p32(sel(big, ax, t)) + sel(big, x.c(kLn2), 0.0);
  return copysignE(r, x);
}

E acosh32(E x) {
  E big = x > 1e9;
  E t = sel(big, 1.0, x) - 1.0;
  E s = t + sqrtE(fma(t, t, t + t));
  E r = log1p32(sel(big, x, s)) + sel(big, x.c(kLn2), 0.0);
  return sel(x >= 1.0, r, kNan);
}

E atanh32(E x) {
  E ax = absE(x);
  E r = log1p32((ax + ax) / (x.c(1.0) - ax)) * 0.5;
  return copysignE(r, x);
}

} // namespace lathe::codegen
