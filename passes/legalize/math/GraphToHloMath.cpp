// Elementwise mathematics: one or two (broadcast) operands, with the semantics of TensorFlow's CPU kernels.
#include "passes/legalize/array/ArrayHelpers.h"
#include "passes/legalize/math/ComplexDivide.h"
#include "passes/legalize/NodeContext.h"

#include <limits>

using namespace mlir;

namespace lathe::legalize {
namespace {

//===----------------------------------------------------------------------===//
// One operand
//===----------------------------------------------------------------------===//

template <typename Op>
LogicalResult lowerUnary(NodeContext &c) {
  return c.setResult(0, c.unary<Op>(c.input(0)));
}

/// The same for ops that leave integers as they are (Floor, Round, ...).
template <typename Op>
LogicalResult lowerRounding(NodeContext &c) {
  Value x = c.input(0);
  return c.setResult(0, Emitter::isFloat(x) ? c.unary<Op>(x) : x);
}

Value square(NodeContext &c, Value x) { return c.mul(x, x); }

/// What grows as exp(|x|): the factors of a narrow type may leave its range where their product does not.
template <typename Scaled>
Value besselI(NodeContext &c, Value x) {
  auto type = cast<FloatType>(c.elementType(x));
  Value wide = type.getWidth() < 32 ? c.convert(x, c.b.getF32Type()) : x;
  return c.convert(c.mul(c.unary<Scaled>(wide), c.unary<hlo::ExpOp>(c.unary<hlo::AbsOp>(wide))), type);
}

Value softplus(NodeContext &c, Value x) {
  Value tail = c.unary<hlo::Log1pOp>(c.unary<hlo::ExpOp>(c.neg(c.unary<hlo::AbsOp>(x))));
  return c.add(c.max(x, c.like(x, 0)), tail);
}

constexpr double kSeluScale = 1.0507009873554804934193349852946;
constexpr double kSeluScaleAlpha = 1.7580993408473768599402175208123;

Value negative(NodeContext &c, Value x) { return c.compare(Compare::LT, x, c.like(x, 0)); }
Value positive(NodeContext &c, Value x) { return c.compare(Compare::GT, x, c.like(x, 0)); }

using UnaryFn = Value (*)(NodeContext &, Value);

void addUnary(HandlerTable &t, StringRef op, UnaryFn fn) {
  t.add(op, 1, [fn](NodeContext &c) { return c.setResult(0, fn(c, c.input(0))); });
}

//===----------------------------------------------------------------------===//
// Two operands
//===----------------------------------------------------------------------===//

template <typename Op>
LogicalResult lowerBinary(NodeContext &c) {
  return c.setResult(0, c.binary<Op>(c.input(0), c.input(1)));
}

/// Whether a value is known to have no zero, so that the check can be left out.
bool knownNonZero(NodeContext &c, Value y) {
  auto t = c.ctx.fold(y);
  if (!t)
    return false;
  size_t width = dtypeSize(t->dtype());
  const char *bytes = static_cast<const char *>(t->data());
  for (int64_t i = 0; i < t->numElements(); ++i)
    if (std::all_of(bytes + i * width, bytes + (i + 1) * width, [](char b) { return b == 0; }))
      return false;
  return true;
}

/// Checks what has to hold of y for each element of x: of nothing where x has none, which its run-time sizes may say.
void checkForEach(NodeContext &c, Value x, Value y, Value holds, StringRef message) {
  if (x && holds && hlo::getDims(c.type(x)) != hlo::getDims(c.type(y)) && !c.type(x).hasStaticShape()) {
    Type i64 = c.b.getI64Type();
    Value elements = c.sizeValue(hlo::numElements(c.dims(x), c.b.getContext()), i64);
    Value none = c.compare(Compare::EQ, elements, c.scalarInt(0, i64));
    holds = c.binary<hlo::OrOp>(holds, c.broadcastTo(none, c.dims(holds)));
  }
  c.check(holds, message);
}

void checkDivisor(NodeContext &c, Value x, Value y) {
  // nothing is divided where there is nothing
  if (x && llvm::is_contained(c.type(x).getShape(), 0))
    return;
  if (Emitter::isInteger(y) && !knownNonZero(c, y))
    checkForEach(c, x, y, c.compare(Compare::NE, y, c.like(y, 0)), "Integer division by zero");
}

Value truncateDiv(NodeContext &c, Value x, Value y) {
  checkDivisor(c, x, y);
  return Emitter::isComplex(x) ? divideComplex(c, x, y) : c.div(x, y);
}

/// Remainder and divisor disagree in sign, and there is a remainder.
Value signsDiffer(NodeContext &c, Value remainder, Value y) {
  return c.logicalAnd(c.compare(Compare::NE, remainder, c.like(remainder, 0)),
                      c.compare(Compare::NE, negative(c, remainder), negative(c, y)));
}

Value floorDiv(NodeContext &c, Value x, Value y) {
  checkDivisor(c, x, y);
  if (Emitter::isFloat(x)) {
    Value q = c.div(x, y);
    return q ? c.unary<hlo::FloorOp>(q) : q;
  }
  Value q = c.div(x, y);
  if (!q || Emitter::isUnsigned(x))
    return q;
  Value r = c.binary<hlo::RemOp>(x, y);
  return c.select(signsDiffer(c, r, y), c.sub(q, c.like(q, 1)), q);
}

Value floorMod(NodeContext &c, Value x, Value y) {
  checkDivisor(c, x, y);
  Value r = c.binary<hlo::RemOp>(x, y);
  if (!r || Emitter::isUnsigned(x))
    return r;
  return c.select(signsDiffer(c, r, y), c.add(r, y), r);
}

Value truncateMod(NodeContext &c, Value x, Value y) {
  checkDivisor(c, x, y);
  return c.binary<hlo::RemOp>(x, y);
}

Value power(NodeContext &c, Value x, Value y) {
  if (Emitter::isInteger(y) && !Emitter::isUnsigned(y)) {
    auto t = c.ctx.fold(y);
    if (!t || !t->numElements())
      checkForEach(c, x, y, c.compare(Compare::GE, y, c.like(y, 0)), "Integers to negative integer powers are not allowed");
  }
  return c.binary<hlo::PowOp>(x, y);
}

/// `value` where the selector is not zero, else zero (x/0 and the like without NaN).
Value unlessZero(NodeContext &c, Value selector, Value value) {
  if (!value)
    return value;
  return c.select(c.compare(Compare::EQ, selector, c.like(selector, 0)), c.like(value, 0), value);
}

Value clampShift(NodeContext &c, Value y) {
  auto type = y ? dyn_cast<IntegerType>(Emitter::elementType(y)) : IntegerType();
  if (!type)
    return c.poison("expected integers to shift by");
  int64_t last = type.getWidth() - 1;
  return c.min(c.max(y, c.like(y, 0)), c.likeInt(y, last));
}

using BinaryFn = Value (*)(NodeContext &, Value, Value);

void addBinary(HandlerTable &t, StringRef op, BinaryFn fn) {
  t.add(op, 2, [fn](NodeContext &c) { return c.setResult(0, fn(c, c.input(0), c.input(1))); });
}

void addCompare(HandlerTable &t, StringRef op, Compare direction) {
  t.add(op, 2, [direction](NodeContext &c) { return c.setResult(0, c.compare(direction, c.input(0), c.input(1))); });
}

//===----------------------------------------------------------------------===//
// Others
//===----------------------------------------------------------------------===//

LogicalResult lowerAddN(NodeContext &c) {
  // Pairwise, as a chain of lists' sums would be.
  if (c.value(0).kind == GraphValue::Kind::List) {
    GraphValue sum = c.value(0);
    for (unsigned i = 1; i < c.numInputs(); ++i) {
      const GraphValue &v = c.value(i);
      if (v.kind != GraphValue::Kind::List)
        return c.error("input " + Twine(i) + " is no list");
      if (!sum.list.buffer)
        sum = v;
      else if (v.list.buffer)
        sum.list.buffer = c.add(sum.list.buffer, v.list.buffer);
      if (sum.list.buffer == nullptr && v.list.buffer)
        return failure();
    }
    return c.setResult(0, sum);
  }
  Value sum = c.input(0);
  for (unsigned i = 1; sum && i < c.numInputs(); ++i) {
    Value x = c.input(i);
    if (x && !sameDims(c, {sum, x}))
      return failure();
    sum = x ? c.add(sum, x) : x;
  }
  return c.setResult(0, sum);
}

LogicalResult lowerSelect(NodeContext &c) {
  Value condition = c.input(0), x = c.input(1), y = c.input(2);
  if (!sameDims(c, {x, y}))
    return failure();
  // A vector chooses whole rows.
  if (c.rank(condition) == 1 && c.rank(x) > 1) {
    Dims dims = c.dims(x);
    if (!c.ctx.unify(c.dim(condition, 0), dims[0], c.name()))
      return c.error("the condition has not as many elements as the inputs have rows");
    condition = c.broadcastInDim(condition, c.dims(x), {0});
  }
  return c.setResult(0, c.select(condition, x, y));
}

LogicalResult lowerCheckNumerics(NodeContext &c) {
  Value x = c.input(0);
  if (Emitter::isFloat(x))
    c.check(c.unary<hlo::IsFiniteOp>(x), c.attrString("message", "tensor had NaN or Inf values"));
  return c.setResult(0, x);
}

LogicalResult lowerAssert(NodeContext &c) {
  Value condition = c.input(0);
  if (!condition)
    return failure();
  if (!Emitter::isBool(condition))
    return c.error("the condition must be of type bool");
  if (auto t = c.ctx.fold(condition)) {
    bool all = true;
    for (int64_t i = 0; i < t->numElements(); ++i)
      all &= t->data<uint8_t>()[i] != 0;
    if (all)
      return success();
  }
  c.check(condition, "assertion failed");
  return success();
}

LogicalResult lowerBetainc(NodeContext &c) {
  Value v[3] = {c.input(0), c.input(1), c.input(2)};
  if (!c.broadcastTogether(v))
    return failure();
  return c.setResult(0, c.make<hlo::RegularizedIncompleteBetaOp>(v[0], v[1], v[2]));
}

LogicalResult lowerFakeQuant(NodeContext &c, Value low, Value high, Value x) {
  // Moves the range so that zero is a step, as the kernel does, then rounds to steps.
  int64_t bits = c.attrInt("num_bits", 8);
  if (bits < 2 || bits > 16)
    return c.error("num_bits must be between 2 and 16");
  double quantMin = c.attrBool("narrow_range") ? 1 : 0, quantMax = double((int64_t(1) << bits) - 1);
  Value qmin = c.like(low, quantMin), qmax = c.like(low, quantMax);
  Value scale = c.div(c.sub(high, low), c.sub(qmax, qmin));
  Value inverse = c.div(c.sub(qmax, qmin), c.sub(high, low));
  Value zeroPoint = c.sub(qmin, c.div(low, scale));
  Value nudged = c.select(c.compare(Compare::LT, zeroPoint, qmin), qmin,
                          c.select(c.compare(Compare::GT, zeroPoint, qmax), qmax, c.unary<hlo::RoundOp>(zeroPoint)));
  Value nudgedMin = c.mul(c.sub(qmin, nudged), scale), nudgedMax = c.mul(c.sub(qmax, nudged), scale);
  Value clamped = c.min(c.max(x, nudgedMin), nudgedMax);
  Value steps = c.unary<hlo::FloorOp>(c.add(c.mul(c.sub(clamped, nudgedMin), inverse), c.like(inverse, 0.5)));
  Value result = c.add(c.mul(steps, scale), nudgedMin);
  // An empty range gives zeros.
  return c.setResult(0, c.select(c.logicalAnd(c.compare(Compare::EQ, low, c.like(low, 0)), c.compare(Compare::EQ, high, c.like(high, 0))),
                                 c.like(result, 0), result));
}

void registerGradients(HandlerTable &t) {
  // products, as in TensorFlow: a gradient that is no number comes through everywhere
  addBinary(t, "ReluGrad", [](NodeContext &c, Value g, Value x) {
    return c.mul(g, c.convert(positive(c, x), Emitter::elementType(g)));
  });
  addBinary(t, "Relu6Grad", [](NodeContext &c, Value g, Value x) {
    Value inside = c.logicalAnd(positive(c, x), c.compare(Compare::LT, x, c.like(x, 6)));
    return c.mul(g, c.convert(inside, Emitter::elementType(g)));
  });
  addBinary(t, "LeakyReluGrad", [](NodeContext &c, Value g, Value x) {
    return c.select(positive(c, x), g, c.mul(g, c.like(g, c.attrFloat("alpha", 0.2))));
  });
  addBinary(t, "EluGrad", [](NodeContext &c, Value g, Value y) {
    return c.select(negative(c, y), c.mul(g, c.add(y, c.like(y, 1))), g);
  });
  addBinary(t, "SeluGrad", [](NodeContext &c, Value g, Value y) {
    return c.select(negative(c, y), c.mul(g, c.add(y, c.like(y, kSeluScaleAlpha))), c.mul(g, c.like(g, kSeluScale)));
  });
  addBinary(t, "SoftplusGrad", [](NodeContext &c, Value g, Value x) {
    return c.div(g, c.add(c.unary<hlo::ExpOp>(c.neg(x)), c.like(x, 1)));
  });
  addBinary(t, "SoftsignGrad", [](NodeContext &c, Value g, Value x) {
    return c.div(g, square(c, c.add(c.unary<hlo::AbsOp>(x), c.like(x, 1))));
  });
  // These take (y, dy). Complex derivatives are conjugated, other than those of tanh and the sigmoid. Where dy is zero, so
  // is the gradient, of infinities too.
  auto derivative = [](NodeContext &c, Value dydx, Value dy) {
    return unlessZero(c, dy, c.mul(dy, Emitter::isComplex(dydx) ? c.unary<hlo::ConjOp>(dydx) : dydx));
  };
  t.add("TanhGrad", 2, [](NodeContext &c) {
    Value y = c.input(0);
    return c.setResult(0, c.mul(c.input(1), c.sub(c.like(y, 1), square(c, y))));
  });
  t.add("SigmoidGrad", 2, [](NodeContext &c) {
    Value y = c.input(0);
    return c.setResult(0, c.mul(c.input(1), c.mul(c.sub(c.like(y, 1), y), y)));
  });
  t.add("SqrtGrad", 2, [=](NodeContext &c) {
    Value y = c.input(0), dy = c.input(1);
    Value root = Emitter::isComplex(y) ? c.unary<hlo::ConjOp>(y) : y;
    return c.setResult(0, unlessZero(c, dy, c.div(c.mul(dy, c.like(dy, 0.5)), root)));
  });
  t.add("RsqrtGrad", 2, [=](NodeContext &c) {
    // in this order: the cube alone may be beyond a half where the gradient is not
    Value y = c.input(0), dy = c.input(1), z = Emitter::isComplex(y) ? c.unary<hlo::ConjOp>(y) : y;
    return c.setResult(0, unlessZero(c, dy, c.mul(c.mul(c.like(y, -0.5), square(c, z)), c.mul(dy, z))));
  });
  for (StringRef op : {"InvGrad", "ReciprocalGrad"})
    t.add(op, 2, [=](NodeContext &c) {
      Value y = c.input(0);
      return c.setResult(0, derivative(c, c.neg(square(c, y)), c.input(1)));
    });
}

void registerUnary(HandlerTable &t) {
  t.add("Abs", 1, lowerUnary<hlo::AbsOp>);
  t.add("ComplexAbs", 1, lowerUnary<hlo::AbsOp>);
  t.add("Neg", 1, lowerUnary<hlo::NegOp>);
  t.add("Sign", 1, lowerUnary<hlo::SignOp>);
  t.add("Sqrt", 1, lowerUnary<hlo::SqrtOp>);
  t.add("Rsqrt", 1, lowerUnary<hlo::RsqrtOp>);
  t.add("Exp", 1, lowerUnary<hlo::ExpOp>);
  t.add("Expm1", 1, lowerUnary<hlo::Expm1Op>);
  t.add("Log", 1, lowerUnary<hlo::LogOp>);
  t.add("Log1p", 1, lowerUnary<hlo::Log1pOp>);
  t.add("Sin", 1, lowerUnary<hlo::SineOp>);
  t.add("Cos", 1, lowerUnary<hlo::CosineOp>);
  t.add("Tan", 1, lowerUnary<hlo::TanOp>);
  t.add("Sinh", 1, lowerUnary<hlo::SinhOp>);
  t.add("Cosh", 1, lowerUnary<hlo::CoshOp>);
  t.add("Tanh", 1, lowerUnary<hlo::TanhOp>);
  t.add("Asin", 1, lowerUnary<hlo::AsinOp>);
  t.add("Acos", 1, lowerUnary<hlo::AcosOp>);
  t.add("Atan", 1, lowerUnary<hlo::AtanOp>);
  t.add("Asinh", 1, lowerUnary<hlo::AsinhOp>);
  t.add("Acosh", 1, lowerUnary<hlo::AcoshOp>);
  t.add("Atanh", 1, lowerUnary<hlo::AtanhOp>);
  t.add("Sigmoid", 1, lowerUnary<hlo::LogisticOp>);
  t.add("Erf", 1, lowerUnary<hlo::ErfOp>);
  t.add("Erfc", 1, lowerUnary<hlo::ErfcOp>);
  t.add("Erfinv", 1, lowerUnary<hlo::ErfInvOp>);
  t.add("Lgamma", 1, lowerUnary<hlo::LgammaOp>);
  addUnary(t, "Digamma", [](NodeContext &c, Value x) { // 0 is a pole like all others in TensorFlow
    return c.select(c.compare(Compare::EQ, x, c.like(x, 0)), c.like(x, std::numeric_limits<double>::quiet_NaN()),
                    c.unary<hlo::DigammaOp>(x));
  });
  t.add("BesselI0e", 1, lowerUnary<hlo::BesselI0eOp>);
  t.add("BesselI1e", 1, lowerUnary<hlo::BesselI1eOp>);
  t.add("IsNan", 1, lowerUnary<hlo::IsNanOp>);
  t.add("IsInf", 1, lowerUnary<hlo::IsInfOp>);
  t.add("IsFinite", 1, lowerUnary<hlo::IsFiniteOp>);
  t.add("LogicalNot", 1, lowerUnary<hlo::NotOp>);
  t.add("Invert", 1, lowerUnary<hlo::NotOp>);
  t.add("Real", 1, lowerUnary<hlo::RealOp>);
  t.add("Imag", 1, lowerUnary<hlo::ImagOp>);
  t.add("Floor", 1, lowerRounding<hlo::FloorOp>);
  t.add("Ceil", 1, lowerRounding<hlo::CeilOp>);
  t.add("Round", 1, lowerRounding<hlo::RoundNearestEvenOp>);
  t.add("Rint", 1, lowerRounding<hlo::RoundNearestEvenOp>);
  t.add("CheckNumerics", 1, lowerCheckNumerics);
  t.add("CheckNumericsV2", 1, lowerCheckNumerics);
  t.add("PopulationCount", 1, [](NodeContext &c) {
    return c.setResult(0, c.convert(c.unary<hlo::PopulationCountOp>(c.input(0)), c.resultType(0)));
  });
  addUnary(t, "Conj", [](NodeContext &c, Value x) { return Emitter::isComplex(x) ? c.unary<hlo::ConjOp>(x) : x; });
  addUnary(t, "Angle", [](NodeContext &c, Value x) {
    return c.binary<hlo::Atan2Op>(c.unary<hlo::ImagOp>(x), c.unary<hlo::RealOp>(x));
  });
  addUnary(t, "Square", square);
  for (StringRef op : {"Inv", "Reciprocal"})
    addUnary(t, op, [](NodeContext &c, Value x) {
      return x && Emitter::isComplex(x) ? divideComplex(c, c.like(x, 1), x) : c.div(c.like(x, 1), x);
    });
  addUnary(t, "Ndtri", [](NodeContext &c, Value x) {
    Value y = c.unary<hlo::ErfInvOp>(c.sub(c.mul(x, c.like(x, 2)), c.like(x, 1)));
    return c.mul(y, c.like(y, 1.41421356237309504880));
  });
  addUnary(t, "BesselI0", besselI<hlo::BesselI0eOp>);
  addUnary(t, "BesselI1", besselI<hlo::BesselI1eOp>);
  addUnary(t, "Relu", [](NodeContext &c, Value x) { return c.max(x, c.like(x, 0)); });
  addUnary(t, "Relu6", [](NodeContext &c, Value x) { return c.min(c.max(x, c.like(x, 0)), c.like(x, 6)); });
  addUnary(t, "LeakyRelu", [](NodeContext &c, Value x) {
    return c.select(positive(c, x), x, c.mul(x, c.like(x, c.attrFloat("alpha", 0.2))));
  });
  addUnary(t, "Elu", [](NodeContext &c, Value x) { return c.select(negative(c, x), c.unary<hlo::Expm1Op>(x), x); });
  addUnary(t, "Selu", [](NodeContext &c, Value x) {
    return c.select(negative(c, x), c.mul(c.like(x, kSeluScaleAlpha), c.unary<hlo::Expm1Op>(x)),
                    c.mul(c.like(x, kSeluScale), x));
  });
  addUnary(t, "Softplus", softplus);
  addUnary(t, "Softsign", [](NodeContext &c, Value x) {
    return c.div(x, c.add(c.unary<hlo::AbsOp>(x), c.like(x, 1)));
  });
}

} // namespace

void registerMath(HandlerTable &t) {
  registerUnary(t);
  registerGradients(t);
  t.add("Add", 2, lowerBinary<hlo::AddOp>);
  t.add("AddV2", 2, lowerBinary<hlo::AddOp>);
  t.add("Sub", 2, lowerBinary<hlo::SubtractOp>);
  t.add("Mul", 2, lowerBinary<hlo::MulOp>);
  addBinary(t, "RealDiv", truncateDiv);
  addBinary(t, "Div", truncateDiv);
  addBinary(t, "TruncateDiv", [](NodeContext &c, Value x, Value y) {
    Value q = truncateDiv(c, x, y);
    if (!q || !Emitter::isFloat(q))
      return q;
    return c.select(negative(c, q), c.unary<hlo::CeilOp>(q), c.unary<hlo::FloorOp>(q));
  });
  addBinary(t, "FloorDiv", floorDiv);
  addBinary(t, "FloorMod", floorMod);
  addBinary(t, "Mod", truncateMod);
  addBinary(t, "TruncateMod", truncateMod);
  addBinary(t, "Pow", power);
  t.add("Maximum", 2, lowerBinary<hlo::MaxOp>);
  t.add("Minimum", 2, lowerBinary<hlo::MinOp>);
  t.add("Atan2", 2, lowerBinary<hlo::Atan2Op>);
  t.add("Complex", 2, lowerBinary<hlo::ComplexOp>);
  t.add("LogicalAnd", 2, lowerBinary<hlo::AndOp>);
  t.add("LogicalOr", 2, lowerBinary<hlo::OrOp>);
  t.add("BitwiseAnd", 2, lowerBinary<hlo::AndOp>);
  t.add("BitwiseOr", 2, lowerBinary<hlo::OrOp>);
  t.add("BitwiseXor", 2, lowerBinary<hlo::XorOp>);
  t.add("Igamma", 2, lowerBinary<hlo::IgammaOp>);
  t.add("Igammac", 2, lowerBinary<hlo::IgammacOp>);
  t.add("IgammaGradA", 2, lowerBinary<hlo::IgammaGradAOp>);
  t.add("RandomGammaGrad", 2, lowerBinary<hlo::RandomGammaGradOp>);
  t.add("NextAfter", 2, lowerBinary<hlo::NextAfterOp>);
  t.add("Polygamma", 2, lowerBinary<hlo::PolygammaOp>);
  addBinary(t, "Zeta", [](NodeContext &c, Value x, Value q) { // whatever q is, inf at 1 and NaN below
    Value z = c.select(c.compare(Compare::LT, x, c.like(x, 1)), c.like(x, std::numeric_limits<double>::quiet_NaN()),
                       c.binary<hlo::ZetaOp>(x, q));
    return c.select(c.compare(Compare::EQ, x, c.like(x, 1)), c.like(x, std::numeric_limits<double>::infinity()), z);
  });
  t.add("Betainc", 3, lowerBetainc);
  addBinary(t, "LeftShift", [](NodeContext &c, Value x, Value y) {
    return c.binary<hlo::ShiftLeftOp>(x, clampShift(c, y));
  });
  addBinary(t, "RightShift", [](NodeContext &c, Value x, Value y) {
    return Emitter::isUnsigned(x) ? c.binary<hlo::ShiftRightLogicalOp>(x, clampShift(c, y))
                                  : c.binary<hlo::ShiftRightArithmeticOp>(x, clampShift(c, y));
  });
  addBinary(t, "SquaredDifference", [](NodeContext &c, Value x, Value y) {
    Value d = c.sub(x, y);
    return d && Emitter::isComplex(d) ? c.mul(c.unary<hlo::ConjOp>(d), d) : (d ? c.mul(d, d) : d);
  });
  addBinary(t, "DivNoNan", [](NodeContext &c, Value x, Value y) { return unlessZero(c, y, c.div(x, y)); });
  addBinary(t, "MulNoNan", [](NodeContext &c, Value x, Value y) { return unlessZero(c, y, c.mul(x, y)); });
  addBinary(t, "Xdivy", [](NodeContext &c, Value x, Value y) { return unlessZero(c, x, c.div(x, y)); });
  addBinary(t, "Xlogy", [](NodeContext &c, Value x, Value y) {
    return unlessZero(c, x, c.mul(x, c.unary<hlo::LogOp>(y)));
  });
  addBinary(t, "Xlog1py", [](NodeContext &c, Value x, Value y) {
    return unlessZero(c, x, c.mul(x, c.unary<hlo::Log1pOp>(y)));
  });
  addBinary(t, "ApproximateEqual", [](NodeContext &c, Value x, Value y) {
    Value d = c.sub(x, y);
    if (!d)
      return d;
    d = c.unary<hlo::AbsOp>(d);
    return c.compare(Compare::LT, d, c.like(d, c.attrFloat("tolerance", 1e-5)));
  });
  addCompare(t, "Equal", Compare::EQ);
  addCompare(t, "NotEqual", Compare::NE);
  addCompare(t, "Less", Compare::LT);
  addCompare(t, "LessEqual", Compare::LE);
  addCompare(t, "Greater", Compare::GT);
  addCompare(t, "GreaterEqual", Compare::GE);

  t.addAnyKind("AddN", HandlerTable::atLeast(1), lowerAddN);
  t.add("AccumulateNV2", HandlerTable::atLeast(1), lowerAddN);
  t.add("Select", 3, lowerSelect);
  t.add("SelectV2", 3, [](NodeContext &c) { return c.setResult(0, c.select(c.input(0), c.input(1), c.input(2))); });
  t.add("ClipByValue", 3, [](NodeContext &c) {
    Value x = c.input(0), least = c.input(1), most = c.input(2);
    // in this order: the lower limit wins where they contradict each other
    auto clip = [&](auto part) {
      Value high = c.min(part(x), part(most));
      return high ? c.max(high, part(least)) : high;
    };
    if (!x || !least || !most || !Emitter::isComplex(x))
      return c.setResult(0, clip([](Value v) { return v; }));
    Value re = clip([&](Value v) { return c.unary<hlo::RealOp>(v); });
    Value im = clip([&](Value v) { return c.unary<hlo::ImagOp>(v); });
    return c.setResult(0, re && im ? c.binary<hlo::ComplexOp>(re, im) : Value());
  });
  t.addAnyKind("Assert", HandlerTable::atLeast(1), lowerAssert);
  t.add("FakeQuantWithMinMaxArgs", 1, [](NodeContext &c) {
    Value x = c.input(0);
    Type type = Emitter::elementType(x);
    return lowerFakeQuant(c, c.scalar(c.attrFloat("min", -6), type), c.scalar(c.attrFloat("max", 6), type), x);
  });
  for (StringRef op : {"FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel"})
    t.add(op, 3, [](NodeContext &c) { return lowerFakeQuant(c, c.input(1), c.input(2), c.input(0)); });
}

} // namespace lathe::legalize
