// Complex arithmetic. Functions of complex64 are evaluated in double and rounded once.
#include "passes/codegen/cpu/Complex.h"

#include "dialects/hlo/Hlo.h"
#include "passes/codegen/cpu/MathParts.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace lathe::cpu {

C unpack(KernelBuilder &b, Value v) {
  return {E(b, vector::ExtractOp::create(b, v, int64_t(0))), E(b, vector::ExtractOp::create(b, v, int64_t(1)))};
}

Value pack(C z) {
  KernelBuilder &b = *z.re.b;
  return vector::FromElementsOp::create(b, VectorType::get({2}, z.re.type()), ValueRange{z.re, z.im});
}

C operator+(C a, C b) { return {a.re + b.re, a.im + b.im}; }
C operator-(C a, C b) { return {a.re - b.re, a.im - b.im}; }
C operator*(C a, C b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
static C operator-(C a) { return {-a.re, -a.im}; }
static C timesI(C z) { return {-z.im, z.re}; }
static C timesMinusI(C z) { return {z.im, -z.re}; }
static C scaled(C z, double f) { return {z.re * f, z.im * f}; }
static C plus(C z, double f) { return {z.re + f, z.im}; }

C operator/(C a, C b) {
  if (a.re.elem().isF32()) { // the squares cannot overflow in double
    E c = toF64(b.re), d = toF64(b.im), x = toF64(a.re), y = toF64(a.im);
    E n = c * c + d * d;
    return {toF32((x * c + y * d) / n), toF32((y * c - x * d) / n)};
  }
  // Smith: divide by the larger part first
  E swap = absE(b.re) < absE(b.im);
  E big = sel(swap, b.im, b.re), small = sel(swap, b.re, b.im);
  E r = small / big;
  E n = fma(small, r, big);
  E p = sel(swap, a.im, a.re), q = sel(swap, a.re, a.im);
  E re = fma(q, r, p) / n;
  E im = fma(-p, r, q) / n;
  im = sel(swap, -im, im);
  // infinite divisors give NaN, as the textbook formula (and TensorFlow) does
  E odd = !(absE(b.re) + absE(b.im) < kInf);
  return {sel(odd, kNan, re), sel(odd, kNan, im)};
}

E absC(C z) {
  if (z.re.elem().isF32()) {
    E x = toF64(z.re), y = toF64(z.im);
    E r = toF32(sqrtE(x * x + y * y));
    E inf = (absE(z.re) == kInf) | (absE(z.im) == kInf);
    return sel(inf, kInf, r);
  }
  E ax = absE(z.re), ay = absE(z.im);
  E hi = sel(ax > ay, ax, ay), lo = sel(ax > ay, ay, ax);
  E t = lo / sel(hi == 0.0, 1.0, hi);
  E r = hi * sqrtE(fma(t, t, 1.0));
  r = sel(isNan(z.re) | isNan(z.im), kNan, r);
  return sel((ax == kInf) | (ay == kInf), kInf, r);
}

// --- functions, parts in f64
static E fn(const char *name, E x) { return E(*x.b, callLibm(*x.b, name, x.v)); }

static C expC(C z) {
  E m = exp64(z.re);
  E im = m * fn("sin", z.im);
  // a real argument stays real, also at infinity
  return {m * fn("cos", z.im), sel(z.im == 0.0, z.im, im)};
}
static E argC(C z) { return E(*z.re.b, callLibm(*z.re.b, "atan2", {z.im, z.re})); }
static C logC(C z) { return {log64(absC(z)), argC(z)}; }
static C sqrtC(C z) {
  E m = absC(z);
  E t = sqrtE((absE(z.re) + m) * 0.5);
  E u = absE(z.im) / (t + t);
  E zero = m == 0.0;
  E re = sel(z.re >= 0.0, t, u), im = copysignE(sel(z.re >= 0.0, u, t), z.im);
  return {sel(zero, 0.0, re), sel(zero, 0.0, im)};
}
static C one(C z) { return {z.re.c(1.0), z.re.c(0.0)}; }
static C log1pC(C z) {
  C u = plus(z, 1.0);
  E small = absC(z) < 0.5;
  E re = sel(small, fn("log1p", z.re * (z.re + 2.0) + z.im * z.im) * 0.5, log64(absC(u)));
  return {re, argC(u)};
}
static C expm1C(C z) {
  E s = fn("sin", z.im * 0.5);
  E em = fn("expm1", z.re);
  return {em * fn("cos", z.im) - s * s * 2.0, (em + 1.0) * fn("sin", z.im)};
}
static C sinhC(C z) {
  return {fn("sinh", z.re) * fn("cos", z.im), fn("cosh", z.re) * fn("sin", z.im)};
}
static C coshC(C z) {
  return {fn("cosh", z.re) * fn("cos", z.im), fn("sinh", z.re) * fn("sin", z.im)};
}
static C tanhC(C z) {
  // sinh(2a) + i sin(2b) over cosh(2a) + cos(2b); beyond 20 the first part is 1
  E big = absE(z.re) > 20.0;
  E a = sel(big, 0.0, z.re) * 2.0, b2 = z.im * 2.0;
  E d = fn("cosh", a) + fn("cos", b2);
  E re = fn("sinh", a) / d, im = fn("sin", b2) / d;
  E far = fn("sin", b2) * 2.0 * exp64(absE(z.re) * -2.0);
  return {sel(big, copysignE(z.re.c(1.0), z.re), re), sel(big, far, im)};
}
static C asinhC(C z) {
  // odd: work in the right half plane, where nothing cancels
  E left = z.re < 0.0;
  C w{sel(left, -z.re, z.re), sel(left, -z.im, z.im)};
  C r = logC(w + sqrtC(plus(w * w, 1.0)));
  return {sel(left, -r.re, r.re), sel(left, -r.im, r.im)};
}
static C atanhC(C z) { return scaled(log1pC(z) - log1pC(-z), 0.5); }
static C asinC(C z) { return timesMinusI(asinhC(timesI(z))); }
static C powC(C x, C y) {
  C r = expC(y * logC(x));
  E zero = (x.re == 0.0) & (x.im == 0.0), none = (y.re == 0.0) & (y.im == 0.0);
  return {sel(none, 1.0, sel(zero, 0.0, r.re)), sel(none | zero, 0.0, r.im)};
}

FailureOr<Value> emitComplex(KernelBuilder &b, Operation *op, ValueRange args) {
  bool complexIn = isa<ComplexType>(hlo::elementType(op->getOperand(0)));
  if (auto c = dyn_cast<hlo::ComplexOp>(op))
    return pack({E(b, args[0]), E(b, args[1])});
  if (auto s = dyn_cast<hlo::SelectOp>(op))
    return Value(arith::SelectOp::create(b, args[0], args[1], args[2]));
  if (!complexIn)
    return failure();
  C x = unpack(b, args[0]);
  if (isa<hlo::RealOp>(op))
    return x.re.v;
  if (isa<hlo::ImagOp>(op))
    return x.im.v;
  if (isa<hlo::AbsOp>(op))
    return absC(x).v;
  if (isa<hlo::NegOp>(op))
    return pack(-x);
  if (isa<hlo::ConjOp>(op))
    return pack({x.re, -x.im});
  if (isa<hlo::SquareOp>(op))
    return pack(x * x);
  if (op->getNumOperands() == 2) {
    C y = unpack(b, args[1]);
    if (isa<hlo::AddOp>(op))
      return pack(x + y);
    if (isa<hlo::SubtractOp>(op))
      return pack(x - y);
    if (isa<hlo::MulOp>(op))
      return pack(x * y);
    if (isa<hlo::DivOp>(op))
      return pack(x / y);
    if (auto cmp = dyn_cast<hlo::CompareOp>(op)) {
      E equal = (x.re == y.re) & (x.im == y.im);
      if (cmp.getComparisonDirection() == hlo::ComparisonDirection::EQ)
        return equal.v;
      if (cmp.getComparisonDirection() == hlo::ComparisonDirection::NE)
        return (!equal).v;
      return failure();
    }
    if (isa<hlo::MaxOp, hlo::MinOp>(op)) { // lexicographic
      E less = (x.re < y.re) | ((x.re == y.re) & (x.im < y.im));
      E first = isa<hlo::MinOp>(op) ? less : !less;
      return Value(arith::SelectOp::create(b, first, args[0], args[1]));
    }
    if (isa<hlo::PowOp>(op)) {
      bool narrow = x.re.elem().isF32();
      if (narrow) {
        C r = powC({toF64(x.re), toF64(x.im)}, {toF64(y.re), toF64(y.im)});
        return pack({toF32(r.re), toF32(r.im)});
      }
      return pack(powC(x, y));
    }
    return failure();
  }
  bool narrow = x.re.elem().isF32();
  if (narrow)
    x = {toF64(x.re), toF64(x.im)};
  C r;
  if (isa<hlo::ExpOp>(op))
    r = expC(x);
  else if (isa<hlo::LogOp>(op))
    r = logC(x);
  else if (isa<hlo::SqrtOp>(op))
    r = sqrtC(x);
  else if (isa<hlo::RsqrtOp>(op))
    r = one(x) / sqrtC(x);
  else if (isa<hlo::Log1pOp>(op))
    r = log1pC(x);
  else if (isa<hlo::Expm1Op>(op))
    r = expm1C(x);
  else if (isa<hlo::LogisticOp>(op))
    r = one(x) / plus(expC(-x), 1.0);
  else if (isa<hlo::SinhOp>(op))
    r = sinhC(x);
  else if (isa<hlo::CoshOp>(op))
    r = coshC(x);
  else if (isa<hlo::TanhOp>(op))
    r = tanhC(x);
  else if (isa<hlo::SineOp>(op))
    r = timesMinusI(sinhC(timesI(x)));
  else if (isa<hlo::CosineOp>(op))
    r = coshC(timesI(x));
  else if (isa<hlo::TanOp>(op))
    r = timesMinusI(tanhC(timesI(x)));
  else if (isa<hlo::AsinhOp>(op))
    r = asinhC(x);
  else if (isa<hlo::AsinOp>(op))
    r = asinC(x);
  else if (isa<hlo::AcosOp>(op)) {
    C s = asinC(x);
    r = {x.re.c(kPi / 2) - s.re, -s.im};
  } else if (isa<hlo::AcoshOp>(op))
    r = logC(x + sqrtC(plus(x, 1.0)) * sqrtC(plus(x, -1.0)));
  else if (isa<hlo::AtanhOp>(op))
    r = atanhC(x);
  else if (isa<hlo::AtanOp>(op))
    r = timesMinusI(atanhC(timesI(x)));
  else if (isa<hlo::CbrtOp>(op)) {
    E zero = (x.re == 0.0) & (x.im == 0.0);
    C p = expC(scaled(logC(x), 1.0 / 3));
    r = {sel(zero, 0.0, p.re), sel(zero, 0.0, p.im)};
  } else if (isa<hlo::SignOp>(op)) {
    E m = absC(x);
    E safe = sel(m == 0.0, 1.0, m);
    r = {x.re / safe, x.im / safe};
  } else {
    return failure();
  }
  if (narrow)
    r = {toF32(r.re), toF32(r.im)};
  return pack(r);
}

} // namespace lathe::cpu
