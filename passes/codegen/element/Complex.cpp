// Complex arithmetic. Functions of complex64 are evaluated in double and rounded once.
#include "passes/codegen/element/Complex.h"

#include "dialects/hlo/Hlo.h"
#include "passes/codegen/element/MathParts.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace lathe::codegen {

C unpack(KernelBuilder &b, Value v) {
  if (unsigned lanes = lanesOf(v.getType()) / 2; lanes > 1) {
    auto part = [&](int64_t first) {
      auto pick = llvm::to_vector(llvm::seq<int64_t>(first, first + lanes));
      return E(b, vector::ShuffleOp::create(b, v, v, pick));
    };
    return {part(0), part(lanes)};
  }
  return {E(b, vector::ExtractOp::create(b, v, int64_t(0))), E(b, vector::ExtractOp::create(b, v, int64_t(1)))};
}

Value pack(C z) {
  KernelBuilder &b = *z.re.b;
  if (unsigned lanes = z.re.lanes(); lanes > 1)
    return vector::ShuffleOp::create(b, z.re, z.im,
                                     llvm::to_vector(llvm::seq<int64_t>(0, 2 * int64_t(lanes))));
  return vector::FromElementsOp::create(b, VectorType::get({2}, z.re.type()), ValueRange{z.re, z.im});
}

Value selectComplex(KernelBuilder &b, Value when, Value x, Value y) {
  if (unsigned lanes = lanesOf(when.getType()); lanes > 1) {
    auto both = llvm::to_vector(llvm::seq<int64_t>(0, lanes));
    both.append(SmallVector<int64_t>(both));
    when = vector::ShuffleOp::create(b, when, when, both);
  }
  return arith::SelectOp::create(b, when, x, y);
}

bool hasVectors(Operation *op) {
  return isa<hlo::ComplexOp, hlo::SelectOp, hlo::RealOp, hlo::ImagOp, hlo::AbsOp, hlo::NegOp, hlo::ConjOp,
             hlo::SquareOp, hlo::AddOp, hlo::SubtractOp, hlo::MulOp, hlo::DivOp, hlo::CompareOp,
             hlo::ConvertOp>(op);
}

C operator+(C a, C b) { return {a.re + b.re, a.im + b.im}; }
C operator-(C a, C b) { return {a.re - b.re, a.im - b.im}; }
C operator*(C a, C b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
static C operator-(C a) { return {-a.re, -a.im}; }
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
  if (z.re.elem().isF32()) { // scaled by a power of two where a square would not fit
    E ax = absE(z.re), ay = absE(z.im), hi = sel(ax > ay, ax, ay);
    E big = hi > 0x1p60, small = hi < 0x1p-40;
    E up = sel(big, z.re.c(0x1p-70), sel(small, z.re.c(0x1p100), z.re.c(1.0)));
    E down = sel(big, z.re.c(0x1p70), sel(small, z.re.c(0x1p-100), z.re.c(1.0)));
    E x = z.re * up, y = z.im * up;
    E r = sqrtE(z.re.b->target.fma ? fma(x, x, y * y) : x * x + y * y) * down;
    return sel((ax == kInf) | (ay == kInf), kInf, r);
  }
  E ax = absE(z.re), ay = absE(z.im);
  E hi = sel(ax > ay, ax, ay), lo = sel(ax > ay, ay, ax);
  E t = lo / sel(hi == 0.0, 1.0, hi);
  E r = hi * sqrtE(fma(t, t, 1.0));
  r = sel(isNan(z.re) | isNan(z.im), kNan, r);
  return sel((ax == kInf) | (ay == kInf), kInf, r);
}

// --- functions, parts in f64: those of C's libm, whose infinities, NaN and signed zeros TensorFlow's kernels show
static E fn(const char *name, E x) { return E(*x.b, callLibm(*x.b, name, x.v)); }

/// A function of <complex.h>. Complex numbers are passed and returned as their two parts, on x86-64 and AArch64 alike.
static C complexFn(StringRef name, ArrayRef<C> args) {
  KernelBuilder &b = *args[0].re.b;
  SmallVector<Value> parts;
  for (C z : args)
    parts.append({z.re.v, z.im.v});
  auto call = func::CallOp::create(b, libmFunction(b, name, parts, 2), parts);
  return {E(b, call.getResult(0)), E(b, call.getResult(1))};
}

static E finite(E x) { return absE(x) < kInf; }
static E finite(C z) { return finite(z.re) & finite(z.im); }
static E infinite(E x) { return absE(x) == kInf; }
static E infinite(C z) { return infinite(z.re) | infinite(z.im); }
/// 1 for an infinity, else 0, signed.
static C unit(C z) {
  auto part = [](E x) { return copysignE(sel(infinite(x), x.c(1.0), x.c(0.0)), x); };
  return {part(z.re), part(z.im)};
}
/// Zeros for NaN, signed.
static C withoutNan(C z) {
  auto part = [](E x) { return sel(isNan(x), copysignE(x.c(0.0), x), x); };
  return {part(z.re), part(z.im)};
}
static C sel(E when, C x, C y) { return {sel(when, x.re, y.re), sel(when, x.im, y.im)}; }
static E lost(C z) { return isNan(z.re) & isNan(z.im); }

/// The product by C's annex G, which recovers infinities.
static C mulByRules(C x, C y) {
  C r = x * y;
  E left = infinite(x), right = infinite(y);
  E overflow = infinite(x.re * y.re) | infinite(x.im * y.im) | infinite(x.re * y.im) | infinite(x.im * y.re);
  C a = sel(left, unit(x), x), c = sel(right, unit(y), y);
  a = sel(right | (!left & overflow), withoutNan(a), a);
  c = sel(left | (!right & overflow), withoutNan(c), c);
  return sel(lost(r) & (left | right | overflow), scaled(a * c, kInf), r);
}

/// The quotient by annex G.
static C divByRules(C x, C y) {
  C r = x / y;
  E zero = (y.re == 0.0) & (y.im == 0.0), signedInf = copysignE(y.re.c(kInf), y.re);
  C bar{y.re, -y.im}, far = unit(y);
  r = sel(lost(r) & infinite(y) & finite(x), scaled(x * C{far.re, -far.im}, 0.0), r);
  r = sel(lost(r) & infinite(x) & finite(y), scaled(unit(x) * bar, kInf), r);
  return sel(zero & !lost(x), C{signedInf * x.re, signedInf * x.im}, r);
}

static C one(C z) { return {z.re.c(1.0), z.re.c(0.0)}; }
static E argC(C z) { return E(*z.re.b, callLibm(*z.re.b, "atan2", {z.im, z.re})); }
static C logC(C z) { return {log64(absC(z)), argC(z)}; }
static C sqrtC(C z) {
  E m = absC(z);
  E t = sqrtE((absE(z.re) + m) * 0.5);
  E u = absE(z.im) / (t + t);
  E zero = m == 0.0, right = z.re >= 0.0;
  E re = sel(right, t, u), im = copysignE(sel(right, u, t), z.im);
  re = sel(isNan(z.re), kNan, re);
  im = sel(isNan(z.re), kNan, im);
  re = sel(infinite(z.im), kInf, sel(zero, 0.0, re));
  return {re, sel(infinite(z.im), z.im, sel(zero, z.im, im))};
}
static C rsqrtC(C z) {
  E m = absC(z);
  E w = sqrtE((absE(z.re) + m) * 0.5), far = w / m, near = w * m * 2.0;
  E right = z.re > 0.0;
  // a negative number has its root below, whatever the sign of its zero
  C r{sel(right | (z.re == 0.0), far, absE(z.im) / near), sel(right, -z.im / near, sel(z.im < 0.0, far, -far))};
  r = sel(infinite(z), C{z.re.c(0.0), z.re.c(0.0)}, r);
  return sel(m == 0.0, C{z.re.c(kInf), z.re.c(kNan)}, r);
}
static C log1pC(C z) {
  C u = plus(z, 1.0);
  E small = absC(z) < 0.5;
  E re = sel(small, fn("log1p", z.re * (z.re + 2.0) + z.im * z.im) * 0.5, log64(absC(u)));
  C r{re, argC(u)};
  // Eigen's x log(1 + x) / x, which shows at infinities, NaN and -1
  C log = logC(u), odd = mulByRules(z, divByRules(log, plus(u, -1.0)));
  odd = sel((u.re == log.re) & (u.im == log.im), z, odd);
  return sel(finite(z) & ((u.re != 0.0) | (u.im != 0.0)), r, odd);
}
static C expm1C(C z) {
  E s = fn("sin", z.im * 0.5);
  E em = fn("expm1", z.re), e = em + 1.0;
  return {em - e * (s * s) * 2.0, e * fn("sin", z.im)};
}

static StringRef libmName(Operation *op) {
  return llvm::TypeSwitch<Operation *, StringRef>(op)
      .Case([](hlo::ExpOp) { return "cexp"; })
      .Case([](hlo::SinhOp) { return "csinh"; })
      .Case([](hlo::CoshOp) { return "ccosh"; })
      .Case([](hlo::TanhOp) { return "ctanh"; })
      .Case([](hlo::SineOp) { return "csin"; })
      .Case([](hlo::CosineOp) { return "ccos"; })
      .Case([](hlo::TanOp) { return "ctan"; })
      .Case([](hlo::AsinhOp) { return "casinh"; })
      .Case([](hlo::AcoshOp) { return "cacosh"; })
      .Case([](hlo::AtanhOp) { return "catanh"; })
      .Case([](hlo::AsinOp) { return "casin"; })
      .Case([](hlo::AcosOp) { return "cacos"; })
      .Case([](hlo::AtanOp) { return "catan"; })
      .Default([](Operation *) { return ""; });
}

FailureOr<Value> emitComplex(KernelBuilder &b, Operation *op, ValueRange args) {
  bool complexIn = isa<ComplexType>(hlo::elementType(op->getOperand(0)));
  if (auto c = dyn_cast<hlo::ComplexOp>(op))
    return pack({E(b, args[0]), E(b, args[1])});
  if (auto s = dyn_cast<hlo::SelectOp>(op))
    return selectComplex(b, args[0], args[1], args[2]);
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
        C r = complexFn("cpow", {{toF64(x.re), toF64(x.im)}, {toF64(y.re), toF64(y.im)}});
        return pack({toF32(r.re), toF32(r.im)});
      }
      return pack(complexFn("cpow", {x, y}));
    }
    return failure();
  }
  bool narrow = x.re.elem().isF32();
  if (narrow)
    x = {toF64(x.re), toF64(x.im)};
  C r;
  if (isa<hlo::LogOp>(op))
    r = logC(x);
  else if (isa<hlo::SqrtOp>(op))
    r = sqrtC(x);
  else if (isa<hlo::RsqrtOp>(op))
    r = rsqrtC(x);
  else if (isa<hlo::Log1pOp>(op))
    r = log1pC(x);
  else if (isa<hlo::Expm1Op>(op))
    r = expm1C(x);
  else if (isa<hlo::LogisticOp>(op))
    r = divByRules(one(x), plus(complexFn("cexp", -x), 1.0));
  else if (StringRef name = libmName(op); !name.empty())
    r = complexFn(name, x);
  else if (isa<hlo::CbrtOp>(op)) {
    E zero = (x.re == 0.0) & (x.im == 0.0);
    C p = complexFn("cexp", scaled(logC(x), 1.0 / 3));
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

} // namespace lathe::codegen
