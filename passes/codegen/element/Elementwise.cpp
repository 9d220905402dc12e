// One elementwise hlo op on register values, scalar or vector.
#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Marks.h"
#include "passes/codegen/element/Complex.h"
#include "passes/codegen/element/ElementEmitter.h"
#include "passes/codegen/element/Expr.h"
#include "passes/codegen/element/MathParts.h"
#include "passes/codegen/element/NarrowFloat.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace lathe::codegen {

/// A constant without NaN.
static bool isConstant(Value v) {
  auto c = v.getDefiningOp<arith::ConstantOp>();
  if (!c)
    return false;
  if (auto f = dyn_cast<FloatAttr>(c.getValue()))
    return !f.getValue().isNaN();
  auto dense = dyn_cast<DenseElementsAttr>(c.getValue());
  return dense && dense.isSplat() && isa<FloatType>(dense.getElementType()) && !dense.getSplatValue<APFloat>().isNaN();
}

// The comparison-and-select form is one instruction and gives the second operand for NaN; only the first needs a check.
static E maxMinFloat(E x, E y, bool max) {
  if (isConstant(y) && !isConstant(x))
    std::swap(x, y);
  E r = sel(max ? x > y : x < y, x, y);
  return isConstant(x) ? r : sel(isNan(x), x, r);
}

static E maxMin(E x, E y, bool max, bool isUnsigned) {
  KernelBuilder &b = *x.b;
  if (x.isFloat())
    return maxMinFloat(x, y, max);
  if (max)
    return isUnsigned ? E(b, arith::MaxUIOp::create(b, x, y)) : E(b, arith::MaxSIOp::create(b, x, y));
  return isUnsigned ? E(b, arith::MinUIOp::create(b, x, y)) : E(b, arith::MinSIOp::create(b, x, y));
}

// Never traps: division by 0 gives all ones, the smallest number by -1 itself.
static E divInt(E x, E y, bool isUnsigned) {
  KernelBuilder &b = *x.b;
  E zero = y == 0;
  if (isUnsigned)
    return sel(zero, -1, E(b, arith::DivUIOp::create(b, x, sel(zero, 1, y))));
  E minus = y == -1;
  E q = E(b, arith::DivSIOp::create(b, x, sel(zero | minus, 1, y)));
  return sel(zero, -1, sel(minus, -x, q));
}

static E remInt(E x, E y, bool isUnsigned) {
  KernelBuilder &b = *x.b;
  E zero = y == 0;
  if (isUnsigned)
    return sel(zero, x, E(b, arith::RemUIOp::create(b, x, sel(zero, 1, y))));
  E minus = y == -1;
  return sel(zero, x, E(b, arith::RemSIOp::create(b, x, sel(zero | minus, 1, y))));
}

static E shift(Operation *op, E x, E n) {
  KernelBuilder &b = *x.b;
  int64_t width = x.elem().getIntOrFloatBitWidth();
  // i4: 4 does not fit as a signed constant, but its bits do
  E inside = cmpI(arith::CmpIPredicate::ult, n, n.cI(width));
  if (width == 4)
    inside = cmpI(arith::CmpIPredicate::ult, n, n.cI(4));
  E safe = sel(inside, n, 0);
  if (isa<hlo::ShiftLeftOp>(op))
    return sel(inside, E(b, arith::ShLIOp::create(b, x, safe)), 0);
  if (isa<hlo::ShiftRightLogicalOp>(op))
    return sel(inside, E(b, arith::ShRUIOp::create(b, x, safe)), 0);
  return E(b, arith::ShRSIOp::create(b, x, sel(inside, n, width - 1)));
}

static E compare(hlo::CompareOp op, E x, E y, bool isUnsigned) {
  using D = hlo::ComparisonDirection;
  using F = arith::CmpFPredicate;
  using I = arith::CmpIPredicate;
  D d = op.getComparisonDirection();
  bool total = op.getCompareType() && *op.getCompareType() == hlo::ComparisonType::TOTALORDER;
  if (x.isFloat() && !total) {
    F p = d == D::EQ ? F::OEQ : d == D::NE ? F::UNE : d == D::GE ? F::OGE : d == D::GT ? F::OGT : d == D::LE ? F::OLE : F::OLT;
    return cmpF(p, x, y);
  }
  if (x.isFloat()) { // -NaN < -inf < ... < inf < NaN as integers
    auto key = [](E v) {
      E i = v.bits();
      unsigned w = i.elem().getIntOrFloatBitWidth();
      return i ^ (sar(i, w - 1) & (w == 64 ? std::numeric_limits<int64_t>::max() : int64_t(0x7fffffff)));
    };
    x = key(x);
    y = key(y);
  }
  I p;
  switch (d) {
  case D::EQ:
    p = I::eq;
    break;
  case D::NE:
    p = I::ne;
    break;
  case D::GE:
    p = isUnsigned ? I::uge : I::sge;
    break;
  case D::GT:
    p = isUnsigned ? I::ugt : I::sgt;
    break;
  case D::LE:
    p = isUnsigned ? I::ule : I::sle;
    break;
  case D::LT:
    p = isUnsigned ? I::ult : I::slt;
    break;
  }
  return cmpI(p, x, y);
}

static E reducePrecision(E x, int exponentBits, int mantissaBits) {
  bool wide = x.elem().isF64();
  int mantissa = wide ? 52 : 23, bias = wide ? 1023 : 127;
  int fullExponent = wide ? 11 : 8;
  E i = x.bits();
  E r = i;
  if (mantissaBits < mantissa) {
    int drop = mantissa - mantissaBits;
    r = r + ((r >> drop) & 1) + ((int64_t(1) << (drop - 1)) - 1);
    r = r & ~((int64_t(1) << drop) - 1);
  }
  if (exponentBits < fullExponent) {
    int64_t small = (int64_t(1) << (exponentBits - 1)) - 1;
    int64_t exponentMask = ((int64_t(1) << fullExponent) - 1) << mantissa;
    E exponent = r & exponentMask;
    E sign = i & (wide ? std::numeric_limits<int64_t>::min() : int64_t(int32_t(0x80000000)));
    E over = cmpI(arith::CmpIPredicate::ugt, exponent, exponent.cI((bias + small) << mantissa));
    E under = cmpI(arith::CmpIPredicate::ule, exponent, exponent.cI((bias - small) << mantissa));
    r = sel(over, sign | exponentMask, r);
    r = sel(under, sign, r);
  }
  return sel(isNan(x), x, r.asFloat());
}

static std::optional<Fn> functionOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, std::optional<Fn>>(op)
      .Case<hlo::ExpOp>([](auto) { return Fn::Exp; })
      .Case<hlo::LogOp>([](auto) { return Fn::Log; })
      .Case<hlo::Log1pOp>([](auto) { return Fn::Log1p; })
      .Case<hlo::Expm1Op>([](auto) { return Fn::Expm1; })
      .Case<hlo::TanhOp>([](auto) { return Fn::Tanh; })
      .Case<hlo::LogisticOp>([](auto) { return Fn::Logistic; })
      .Case<hlo::ErfOp>([](auto) { return Fn::Erf; })
      .Case<hlo::ErfcOp>([](auto) { return Fn::Erfc; })
      .Case<hlo::ErfInvOp>([](auto) { return Fn::ErfInv; })
      .Case<hlo::SineOp>([](auto) { return Fn::Sin; })
      .Case<hlo::CosineOp>([](auto) { return Fn::Cos; })
      .Case<hlo::TanOp>([](auto) { return Fn::Tan; })
      .Case<hlo::SqrtOp>([](auto) { return Fn::Sqrt; })
      .Case<hlo::RsqrtOp>([](auto) { return Fn::Rsqrt; })
      .Case<hlo::CbrtOp>([](auto) { return Fn::Cbrt; })
      .Case<hlo::AtanOp>([](auto) { return Fn::Atan; })
      .Case<hlo::AsinOp>([](auto) { return Fn::Asin; })
      .Case<hlo::AcosOp>([](auto) { return Fn::Acos; })
      .Case<hlo::SinhOp>([](auto) { return Fn::Sinh; })
      .Case<hlo::CoshOp>([](auto) { return Fn::Cosh; })
      .Case<hlo::AsinhOp>([](auto) { return Fn::Asinh; })
      .Case<hlo::AcoshOp>([](auto) { return Fn::Acosh; })
      .Case<hlo::AtanhOp>([](auto) { return Fn::Atanh; })
      .Case<hlo::LgammaOp>([](auto) { return Fn::Lgamma; })
      .Case<hlo::DigammaOp>([](auto) { return Fn::Digamma; })
      .Case<hlo::BesselI0eOp>([](auto) { return Fn::I0e; })
      .Case<hlo::BesselI1eOp>([](auto) { return Fn::I1e; })
      .Case<hlo::PowOp>([](auto) { return Fn::Pow; })
      .Case<hlo::RemOp>([](auto) { return Fn::Fmod; })
      .Case<hlo::Atan2Op>([](auto) { return Fn::Atan2; })
      .Case<hlo::NextAfterOp>([](auto) { return Fn::NextAfter; })
      .Case<hlo::IgammaOp>([](auto) { return Fn::Igamma; })
      .Case<hlo::IgammacOp>([](auto) { return Fn::Igammac; })
      .Case<hlo::IgammaGradAOp>([](auto) { return Fn::IgammaGradA; })
      .Case<hlo::RandomGammaGradOp>([](auto) { return Fn::RandomGammaGrad; })
      .Case<hlo::PolygammaOp>([](auto) { return Fn::Polygamma; })
      .Case<hlo::ZetaOp>([](auto) { return Fn::Zeta; })
      .Case<hlo::RegularizedIncompleteBetaOp>([](auto) { return Fn::Betainc; })
      .Default([](Operation *) { return std::nullopt; });
}

bool isElementwise(Operation *op) { return op && op->hasTrait<hlo::HloElementwise>(); }

static E signOf(E x, bool isUnsigned) {
  if (x.isFloat())
    return sel((x == 0.0) | isNan(x), x, copysignE(x.c(1.0), x));
  E r = sel(x == 0, x, 1);
  return isUnsigned ? r : sel(x < 0, -1, r);
}

static E roundAwayFromZero(E x) {
  // Truncated after the number below a half is added: from a half on the sum rounds up to the next integer, and below it stays under that.
  if (x.b->target.x86 && x.b->target.rounds) {
    E half = x.c(x.elem().isF64() ? 0x1.fffffffffffffp-2 : 0x1.fffffep-2);
    return E(*x.b, math::TruncOp::create(*x.b, (x + copysignE(half, x)).v));
  }
  E ax = absE(x), whole = floorE(ax);
  return copysignE(sel(ax - whole >= 0.5, whole + 1.0, whole), x);
}

// Null when the op is not of this group.
static E unary(Operation *op, E x, bool isUnsigned) {
  KernelBuilder &b = *x.b;
  bool f = x.isFloat();
  if (isa<hlo::NegOp>(op))
    return -x;
  if (isa<hlo::AbsOp>(op))
    return f ? absE(x) : isUnsigned ? x : sel(x < 0, -x, x);
  if (isa<hlo::SquareOp>(op))
    return x * x;
  if (isa<hlo::SignOp>(op))
    return signOf(x, isUnsigned);
  if (isa<hlo::NotOp>(op))
    return x ^ int64_t(-1);
  if (isa<hlo::FloorOp>(op))
    return floorE(x);
  if (isa<hlo::CeilOp>(op))
    return ceilE(x);
  if (isa<hlo::RoundNearestEvenOp>(op))
    return roundEvenE(x);
  if (isa<hlo::RoundOp>(op))
    return roundAwayFromZero(x);
  if (isa<hlo::ClzOp>(op))
    return E(b, math::CountLeadingZerosOp::create(b, x.v));
  if (isa<hlo::PopulationCountOp>(op))
    return E(b, math::CtPopOp::create(b, x.v));
  if (isa<hlo::RealOp, hlo::ConjOp>(op))
    return x;
  if (isa<hlo::ImagOp>(op))
    return x.c(0.0);
  if (isa<hlo::IsFiniteOp>(op))
    return absE(x) < kInf;
  if (isa<hlo::IsInfOp>(op))
    return absE(x) == kInf;
  if (isa<hlo::IsPosInfOp>(op))
    return x == kInf;
  if (isa<hlo::IsNegInfOp>(op))
    return x == -kInf;
  if (isa<hlo::IsNanOp>(op))
    return isNan(x);
  if (auto r = dyn_cast<hlo::ReducePrecisionOp>(op))
    return reducePrecision(x, r.getExponentBits(), r.getMantissaBits());
  return E();
}

static E binary(Operation *op, E x, E y, bool isUnsigned) {
  bool f = x.isFloat();
  bool isBool = x.elem().isInteger(1);
  if (isa<hlo::AddOp>(op)) // bool: or, multiply: and
    return isBool ? x | y : x + y;
  if (isa<hlo::SubtractOp>(op))
    return x - y;
  if (isa<hlo::MulOp>(op))
    return isBool ? x & y : x * y;
  if (isa<hlo::DivOp>(op))
    return f ? x / y : divInt(x, y, isUnsigned);
  if (isa<hlo::RemOp>(op) && !f)
    return remInt(x, y, isUnsigned);
  if (isa<hlo::MaxOp, hlo::MinOp>(op))
    return maxMin(x, y, isa<hlo::MaxOp>(op), isUnsigned);
  if (isa<hlo::AndOp>(op))
    return x & y;
  if (isa<hlo::OrOp>(op))
    return x | y;
  if (isa<hlo::XorOp>(op))
    return x ^ y;
  if (isa<hlo::ShiftLeftOp, hlo::ShiftRightLogicalOp, hlo::ShiftRightArithmeticOp>(op))
    return shift(op, x, y);
  if (auto c = dyn_cast<hlo::CompareOp>(op))
    return compare(c, x, y, isUnsigned);
  if (isa<hlo::PowOp>(op) && !f)
    return E(*x.b, emitIntPow(*x.b, x, y, !isUnsigned));
  return E();
}

FailureOr<Value> emitElementwise(KernelBuilder &b, Operation *op, ValueRange args, unsigned lanes) {
  auto unsupported = [&]() -> FailureOr<Value> {
    return op->emitError() << "no CPU code for " << op->getName() << " on " << hlo::elementType(op->getOperand(0));
  };
  if (!isElementwise(op) || op->getNumResults() != 1)
    return unsupported();
  Type in = hlo::elementType(op->getOperand(0)), out = hlo::elementType(op->getResult(0));
  if (isa<hlo::ConvertOp>(op))
    return emitConvert(b, args[0], in, out, op->hasAttr(hlo::inRangeAttr));
  if (isa<ComplexType>(in) || isa<ComplexType>(out)) {
    FailureOr<Value> r = emitComplex(b, op, args);
    return failed(r) ? unsupported() : r;
  }
  bool isUnsigned = isUnsignedElem(in);
  E r;
  if (isa<hlo::SelectOp>(op)) {
    r = sel(E(b, args[0]), E(b, args[1]), E(b, args[2]));
    return r.v;
  }
  if (isa<hlo::ClampOp>(op)) {
    E lo(b, args[0]), x(b, args[1]), hi(b, args[2]);
    return maxMin(maxMin(x, lo, true, isUnsigned), hi, false, isUnsigned).v;
  }
  if (args.size() == 1)
    r = unary(op, E(b, args[0]), isUnsigned);
  else if (args.size() == 2)
    r = binary(op, E(b, args[0]), E(b, args[1]), isUnsigned);
  if (!r.v) {
    std::optional<Fn> fn = functionOf(op);
    if (!fn || !isa<FloatType>(in))
      return unsupported();
    if (*fn == Fn::NextAfter && elemBytes(in) < 4)
      return unsupported();
    r = E(b, emitMath(b, *fn, args));
  }
  if (isa<FloatType>(out))
    return roundToElem(b, out, r);
  return r.v;
}

// --- conversions

/// `inRange`: the numbers are known to fit.
static Value convertToInt(KernelBuilder &b, E x, IntegerType to, bool inRange) {
  unsigned width = to.getWidth();
  bool isUnsigned = to.isUnsigned();
  if (inRange && !isUnsigned && width >= 32) {
    // one instruction rounds to nearest even and converts
    if (auto rounded = x.v.getDefiningOp<math::RoundEvenOp>(); rounded && b.target.x86 && width == 32)
      return LLVM::LrintOp::create(b, x.intN(width), rounded.getOperand());
    if (auto whole = x.v.getDefiningOp<math::TruncOp>())
      x = E(b, whole.getOperand());
    return arith::FPToSIOp::create(b, x.intN(width), x.v);
  }
  double lo = isUnsigned ? 0 : -std::ldexp(1.0, width - 1), hi = std::ldexp(1.0, isUnsigned ? width : width - 1);
  // NaN and everything outside goes through as 0, then the limits are put in
  E inside = (x >= lo) & (x < hi);
  E safe = sel(inside, x, 0.0);
  unsigned via = width < 32 ? 32 : width; // narrow conversions are not vector instructions
  Type t = x.intN(via);
  E r(b, isUnsigned && width >= 32 ? Value(arith::FPToUIOp::create(b, t, safe.v))
                                   : Value(arith::FPToSIOp::create(b, t, safe.v)));
  if (via != width)
    r = truncI(r, width);
  int64_t top = isUnsigned ? -1 : (int64_t((uint64_t(1) << (width - 1)) - 1));
  r = sel(x >= hi, top, r);
  if (!isUnsigned)
    r = sel(x < lo, int64_t(uint64_t(-1) << (width - 1)), r);
  return r;
}

Value emitConvert(KernelBuilder &b, Value v, Type from, Type to, bool inRange) {
  if (from == to)
    return v;
  if (auto cf = dyn_cast<ComplexType>(from)) {
    C z = unpack(b, v);
    if (auto ct = dyn_cast<ComplexType>(to)) {
      Type e = cf.getElementType(), t = ct.getElementType();
      return pack({E(b, emitConvert(b, z.re, e, t)), E(b, emitConvert(b, z.im, e, t))});
    }
    if (to.isInteger(1))
      return ((z.re != 0.0) | (z.im != 0.0)).v;
    return emitConvert(b, z.re, cf.getElementType(), to);
  }
  E x(b, v);
  if (auto ct = dyn_cast<ComplexType>(to)) {
    E re(b, emitConvert(b, v, from, ct.getElementType()));
    return pack({re, re.c(0.0)});
  }
  if (auto toInt = dyn_cast<IntegerType>(to)) {
    if (toInt.getWidth() == 1)
      return x.isFloat() ? (x != 0.0).v : (x != 0).v;
    if (x.isFloat())
      return convertToInt(b, x, toInt, inRange);
    unsigned w = x.elem().getIntOrFloatBitWidth();
    if (w == toInt.getWidth())
      return v;
    if (w > toInt.getWidth())
      return truncI(x, toInt.getWidth());
    return isUnsignedElem(from) ? extU(x, toInt.getWidth()) : extS(x, toInt.getWidth());
  }
  Type reg = getElementTypeOrSelf(regType(to));
  if (!x.isFloat()) {
    Type t = x.like(reg);
    // narrow integers convert through i32: that is a vector instruction
    if (x.elem().getIntOrFloatBitWidth() < 32)
      x = isUnsignedElem(from) ? extU(x, 32) : extS(x, 32);
    bool asUnsigned = isUnsignedElem(from) && cast<IntegerType>(from).getWidth() >= 32;
    Value r = asUnsigned ? Value(arith::UIToFPOp::create(b, t, x.v)) : Value(arith::SIToFPOp::create(b, t, x.v));
    return roundToElem(b, to, r);
  }
  if (x.elem() != reg)
    x = reg.isF64() ? toF64(x) : toF32(x);
  return roundToElem(b, to, x);
}

FailureOr<SmallVector<Value>> emitScalarBody(KernelBuilder &b, Block &body, ValueRange args, unsigned lanes) {
  llvm::DenseMap<Value, Value> map;
  for (auto [arg, v] : llvm::zip(body.getArguments(), args))
    map[arg] = v;
  auto lookup = [&](Value v) -> FailureOr<Value> {
    if (Value r = map.lookup(v))
      return r;
    // a constant captured from outside, rank 0
    if (auto c = v.getDefiningOp<hlo::ConstantOp>()) {
      ElementEmitter e(b);
      FailureOr<Value> r = e.emit(v, {}, 1);
      if (failed(r))
        return failure();
      return b.splatElem(hlo::elementType(v), *r, lanes);
    }
    return failure();
  };
  for (Operation &op : body) {
    if (isa<hlo::ConstantOp>(op))
      continue;
    SmallVector<Value> in;
    for (Value v : op.getOperands()) {
      FailureOr<Value> r = lookup(v);
      if (failed(r))
        return op.emitError() << "no CPU code for a value captured by a region";
      in.push_back(*r);
    }
    if (op.hasTrait<OpTrait::IsTerminator>())
      return in;
    FailureOr<Value> r;
    if (isa<hlo::ReshapeOp, hlo::BroadcastInDimOp>(op)) // rank 0 to rank 0
      r = in[0];
    else
      r = emitElementwise(b, &op, in, lanes);
    if (failed(r))
      return failure();
    map[op.getResult(0)] = *r;
  }
  return failure();
}

} // namespace lathe::codegen
