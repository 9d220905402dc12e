// f64: own vector code where it is easy to keep within about an ulp, libm for the rest; dispatch of all functions.
#include "passes/codegen/element/MathParts.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace lathe::codegen {

func::FuncOp libmFunction(KernelBuilder &b, llvm::StringRef name, ValueRange args, unsigned results) {
  Type elem = getElementTypeOrSelf(args[0].getType());
  auto module = b.func->getParentOfType<ModuleOp>();
  auto callee = module.lookupSymbol<func::FuncOp>(name);
  if (!callee) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(module.getBody());
    SmallVector<Type> in(args.size(), elem), out(results, elem);
    callee = func::FuncOp::create(b, name, b.getFunctionType(in, out));
    callee.setPrivate();
  }
  return callee;
}

Value callLibm(KernelBuilder &b, llvm::StringRef name, ValueRange args) {
  func::FuncOp callee = libmFunction(b, name, args, 1);
  unsigned lanes = lanesOf(args[0].getType());
  auto call = [&](ValueRange scalars) { return func::CallOp::create(b, callee, scalars).getResult(0); };
  if (!isa<VectorType>(args[0].getType()))
    return call(args);
  Value r = b.cst(args[0].getType(), 0.0);
  for (unsigned i = 0; i < lanes; ++i) {
    SmallVector<Value> scalars;
    for (Value a : args)
      scalars.push_back(vector::ExtractOp::create(b, a, int64_t(i)));
    r = vector::InsertOp::create(b, call(scalars), r, int64_t(i));
  }
  return r;
}

static constexpr double kMagic = 6755399441055744.0; // 1.5 * 2^52
static constexpr int64_t kMagicBits = 0x4338000000000000LL;
static constexpr double kLn2Hi = 6.93147180369123816490e-01, kLn2Lo = 1.90821492927058770002e-10;

static E clampNan(E x, double lo, double hi) {
  E y = sel(x > hi, hi, x);
  return sel(y < lo, lo, y);
}
static E pow2(E k) { return ((k + 1023) << 52).as(k.f64()); }

E exp64(E x0) {
  E x = clampNan(x0, -746.0, 710.0);
  E t = fma(x, x.c(kLog2e), x.c(kMagic));
  E k = t.bits() - kMagicBits;
  E n = t - kMagic;
  E r = fma(n, -kLn2Hi, x);
  E lo = n * kLn2Lo;
  r = r - lo;
  // Taylor to degree 13: the rest is below 2^-57 for |r| <= ln2/2
  E q = poly(r, {1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880,
                 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800.0});
  E p = fma(r * r, q, r) + 1.0;
  E k1 = ((k + (int64_t(1) << 40)) >> 1) - (int64_t(1) << 39); // arithmetic shift without the instruction AVX2 lacks
  return p * pow2(k1) * pow2(k - k1);
}

E log64(E x) {
  E tiny = x < 2.2250738585072014e-308;
  E y = sel(tiny, x * 18014398509481984.0, x);
  E ix = y.bits();
  // biased so that a logical shift serves: k + 1023 stays positive
  E kb = (ix - 0x3fe6a09e667f3bcdLL + (int64_t(1023) << 52)) >> 52;
  E ki = kb - 1023;
  E f = (ix - (ki << 52)).as(x.f64()) - 1.0;
  E k = (kb + kMagicBits).as(x.f64()) - (kMagic + 1023.0) - sel(tiny, x.c(54.0), 0.0);
  E s = f / (f + 2.0);
  E z = s * s;
  // log(1+f) = f - (f^2/2 - s (f^2/2 + R)), R from the atanh series
  E r = z * poly(z, {2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11, 2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21,
                     2.0 / 23});
  E hf = f * f * 0.5;
  E v = fma(k, x.c(kLn2Hi), -((hf - fma(k, x.c(kLn2Lo), s * (hf + r))) - f));
  E special = sel(x == 0.0, -kInf, x.c(kNan));
  return sel(x > 0.0, sel(x == kInf, x, v), special);
}

E logistic64(E x) {
  E e = exp64(-absE(x));
  return sel(x >= 0.0, 1.0, e) / (e + 1.0);
}

E sinPi64(E x) {
  E n = roundEvenE(x);
  E r = (x - n) * kPi;
  E u = r * r;
  E s = fma(r * u, poly(u, {-1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800, 1.0 / 6227020800.0,
                            -1.0 / 1307674368000.0, 1.0 / 355687428096000.0, -1.0 / 121645100408832000.0}),
            r);
  E half = n * 0.5;
  return sel(floorE(half) == half, s, -s);
}

E cosPi64(E x) {
  // |x| below 2^52 or so; larger are even integers
  E big = absE(x) > 4503599627370496.0;
  return sel(big, 1.0, sinPi64(x + 0.5));
}

E erfInv64(E x) {
  // start from the f32 fit, then Newton on erf, with erfc where erf is close to 1
  E ax = absE(x);
  E q = x.c(1.0) - ax;
  E w = -log64(sel(q > 0.0, q * (ax + 1.0), 1.0));
  E s = w - 2.5;
  E p = poly(s, {1.50140941, 0.246640727, -0.00417768164, -0.00125372503, 0.00021858087, -4.39150654e-06,
                 -3.5233877e-06, 3.43273939e-07, 2.81022636e-08});
  E l = sqrtE(w) - 3.0;
  E g = poly(l, {2.83297682, 1.00167406, 0.00943887047, -0.0076224613, 0.00573950773, -0.00367342844, 0.00134934322,
                 0.000100950558, -0.000200214257});
  E y = sel(w < 5.0, p, g) * ax;
  for (int i = 0; i < 3; ++i) {
    E nearOne = ax > 0.5;
    E diff = sel(nearOne, q - E(*x.b, callLibm(*x.b, "erfc", y.v)), E(*x.b, callLibm(*x.b, "erf", y.v)) - ax);
    // Halley: the second derivative is -2y times the first
    E step = diff * sel(nearOne, x.c(1.0), 1.0) * 0.88622692545275801365 * exp64(y * y);
    y = y - step / fma(y, step, 1.0);
  }
  y = sel(ax == 1.0, kInf, copysignE(y, x.c(1.0)));
  y = copysignE(y, x);
  return sel(ax <= 1.0, y, kNan);
}

static Value emitF64(KernelBuilder &b, Fn fn, ArrayRef<E> a) {
  SmallVector<Value> v;
  for (const E &e : a)
    v.push_back(e);
  auto libm = [&](const char *name) { return callLibm(b, name, v); };
  switch (fn) {
  case Fn::Exp:
    return exp64(a[0]);
  case Fn::Log:
    return log64(a[0]);
  case Fn::Log1p:
    return libm("log1p");
  case Fn::Expm1:
    return libm("expm1");
  case Fn::Tanh:
    return libm("tanh");
  case Fn::Logistic:
    return logistic64(a[0]);
  case Fn::Erf:
    return libm("erf");
  case Fn::Erfc:
    return libm("erfc");
  case Fn::ErfInv:
    return erfInv64(a[0]);
  case Fn::Sin:
    return libm("sin");
  case Fn::Cos:
    return libm("cos");
  case Fn::Tan:
    return libm("tan");
  case Fn::Sqrt:
    return sqrtE(a[0]);
  case Fn::Rsqrt:
    return a[0].c(1.0) / sqrtE(a[0]);
  case Fn::Cbrt:
    return libm("cbrt");
  case Fn::Atan:
    return libm("atan");
  case Fn::Asin:
    return libm("asin");
  case Fn::Acos:
    return libm("acos");
  case Fn::Sinh:
    return libm("sinh");
  case Fn::Cosh:
    return libm("cosh");
  case Fn::Asinh:
    return libm("asinh");
  case Fn::Acosh:
    return libm("acosh");
  case Fn::Atanh:
    return libm("atanh");
  case Fn::Lgamma:
    return lgamma64(a[0]);
  case Fn::Digamma:
    return digamma64(a[0]);
  case Fn::I0e:
    return besselI64(a[0], 0);
  case Fn::I1e:
    return besselI64(a[0], 1);
  case Fn::Pow:
    return libm("pow");
  case Fn::Atan2:
    return libm("atan2");
  case Fn::Fmod:
    return libm("fmod");
  case Fn::Betainc:
    return betainc64(a[0], a[1], a[2]);
  default: // emitMath's own
    break;
  }
  return {};
}

/// The neighbour of x towards y, by its bits.
static E nextAfter(E x, E y) {
  E bits = x.bits();
  unsigned width = x.elem().getIntOrFloatBitWidth();
  int64_t signBit = width == 64 ? std::numeric_limits<int64_t>::min() : int64_t(0x80000000);
  E zero = x == 0.0;
  E fromZero = (y.bits() & signBit) | int64_t(1);
  E away = (y > x) ^ (bits < 0); // away from zero: the magnitude grows
  E moved = sel(away, bits + 1, bits - 1);
  E r = sel(zero, fromZero, moved).asFloat();
  r = sel(x == y, y, r);
  return sel(isNan(x) | isNan(y), kNan, r);
}

Value emitMath(KernelBuilder &b, Fn fn, ValueRange args) {
  SmallVector<E> a;
  for (Value v : args)
    a.push_back(E(b, v));
  if (fn == Fn::NextAfter)
    return nextAfter(a[0], a[1]);
  switch (fn) {
  case Fn::Igamma:
    return igammaE(a[0], a[1]);
  case Fn::Igammac:
    return igammacE(a[0], a[1]);
  case Fn::IgammaGradA:
    return igammaGradAE(a[0], a[1]);
  case Fn::RandomGammaGrad:
    return randomGammaGradE(a[0], a[1]);
  case Fn::Polygamma:
    return polygammaE(a[0], a[1]);
  case Fn::Zeta:
    return zetaE(a[0], a[1]);
  default:
    break;
  }
  if (a[0].elem().isF64())
    return emitF64(b, fn, a);
  switch (fn) {
  case Fn::Exp:
    return exp32(a[0]);
  case Fn::Log:
    return log32(a[0]);
  case Fn::Log1p:
    return log1p32(a[0]);
  case Fn::Expm1:
    return expm1_32(a[0]);
  case Fn::Tanh:
    return tanh32(a[0]);
  case Fn::Logistic:
    return logistic32(a[0]);
  case Fn::Erf:
    return erf32(a[0]);
  case Fn::Erfc:
    return erfc32(a[0]);
  case Fn::ErfInv:
    return erfInv32(a[0]);
  case Fn::Sin:
    return sin32(a[0]);
  case Fn::Cos:
    return cos32(a[0]);
  case Fn::Tan:
    return tan32(a[0]);
  case Fn::Sqrt:
    return sqrtE(a[0]);
  case Fn::Rsqrt:
    return a[0].c(1.0) / sqrtE(a[0]);
  case Fn::Cbrt:
    return cbrt32(a[0]);
  case Fn::Atan:
    return atan32(a[0]);
  case Fn::Asin:
    return asin32(a[0]);
  case Fn::Acos:
    return acos32(a[0]);
  case Fn::Sinh:
    return sinh32(a[0]);
  case Fn::Cosh:
    return cosh32(a[0]);
  case Fn::Asinh:
    return asinh32(a[0]);
  case Fn::Acosh:
    return acosh32(a[0]);
  case Fn::Atanh:
    return atanh32(a[0]);
  case Fn::Pow:
    return pow32(a[0], a[1]);
  case Fn::Atan2:
    return atan2_32(a[0], a[1]);
  case Fn::Fmod:
    return callLibm(b, "fmodf", args);
  default: {
    SmallVector<E> wide;
    for (E e : a)
      wide.push_back(toF64(e));
    return toF32(E(b, emitF64(b, fn, wide)));
  }
  }
}

Value emitIntPow(KernelBuilder &b, Value x0, Value n0, bool isSigned) {
  E x(b, x0), n(b, n0);
  unsigned bits = x.elem().getIntOrFloatBitWidth();
  // a negative exponent leaves 1 for base 1, +-1 for base -1, and 0 otherwise
  E negative = isSigned ? n < 0 : E(b, b.cstI(x.intN(1), 0));
  SmallVector<Value> r = b.whileLoop(
      ValueRange{x.c(1.0), x, sel(negative, 0, n)},
      [&](ValueRange v) { return anyLane(E(b, v[2]) != 0); },
      [&](ValueRange v) {
        E result(b, v[0]), base(b, v[1]), rest(b, v[2]);
        E odd = (rest & 1) != 0;
        return SmallVector<Value>{sel(odd, result * base, result), base * base, rest >> 1};
      });
  E power(b, r[0]);
  if (!isSigned)
    return power;
  E small = sel(x == 1, 1, sel(x == -1, sel((n & 1) == 0, x.cI(1), -1), x.cI(0)));
  (void)bits;
  return sel(negative, small, power);
}

} // namespace lathe::codegen
