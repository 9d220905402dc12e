// Elementwise ops and conversions.
#include "GraphBuilder.h"

#include "dialects/hlo/Constants.h"

#include <cmath>

using namespace mlir;

namespace lathe::fuzz {

template <typename Op>
static bool unary(GraphBuilder &g, const Known &x, double bound) {
  return g.fits(x.element(), bound) && g.push(Op::create(g.b, x.value), bound);
}

bool addUnary(GraphBuilder &g) {
  Known x = g.pick();
  Type t = x.element();
  if (g.isBool(t))
    return unary<hlo::NotOp>(g, x, 1);
  bool isUnsigned = t.isUnsignedInteger();
  if (g.isInt(t))
    switch (g.below(6)) {
    case 0: return !isUnsigned && unary<hlo::AbsOp>(g, x, INFINITY);
    case 1: return !isUnsigned && unary<hlo::NegOp>(g, x, INFINITY);
    case 2: return !isUnsigned && unary<hlo::SignOp>(g, x, 1);
    case 3: return unary<hlo::NotOp>(g, x, INFINITY);
    case 4: return g.chance(50) ? unary<hlo::PopulationCountOp>(g, x, 64) : unary<hlo::ClzOp>(g, x, 64);
    default: return unary<hlo::SquareOp>(g, x, INFINITY);
    }
  if (!g.isFloat(t))
    return false;
  if (g.kind != Kind::Real)
    switch (g.below(g.kind == Kind::Exact ? 10 : 20)) {
    case 0: return unary<hlo::AbsOp>(g, x, x.bound);
    case 1: return unary<hlo::NegOp>(g, x, x.bound);
    case 2: return unary<hlo::SignOp>(g, x, 1);
    case 3: return unary<hlo::FloorOp>(g, x, x.bound);
    case 4: return unary<hlo::CeilOp>(g, x, x.bound);
    case 5: return unary<hlo::RoundNearestEvenOp>(g, x, x.bound);
    case 6: return unary<hlo::RoundOp>(g, x, x.bound);
    case 7: return unary<hlo::IsFiniteOp>(g, x, 1);
    case 8: return unary<hlo::IsNanOp>(g, x, 1);
    case 9: return unary<hlo::SquareOp>(g, x, x.bound * x.bound);
    default: break;
    }
  if (g.kind == Kind::Exact)
    return false;
  if (g.kind == Kind::Real) // smooth and bounded: errors do not grow
    switch (g.below(6)) {
    case 0: return unary<hlo::TanhOp>(g, x, 1);
    case 1: return unary<hlo::LogisticOp>(g, x, 1);
    case 2: return unary<hlo::NegOp>(g, x, 1);
    case 3: return unary<hlo::AbsOp>(g, x, 1);
    case 4: return unary<hlo::ErfOp>(g, x, 1);
    default: return unary<hlo::SineOp>(g, x, 1);
    }
  switch (g.below(14)) {
  case 0: return unary<hlo::ExpOp>(g, x, 0);
  case 1: return unary<hlo::LogOp>(g, x, 0);
  case 2: return unary<hlo::Log1pOp>(g, x, 0);
  case 3: return unary<hlo::Expm1Op>(g, x, 0);
  case 4: return unary<hlo::TanhOp>(g, x, 0);
  case 5: return unary<hlo::LogisticOp>(g, x, 0);
  case 6: return unary<hlo::SqrtOp>(g, x, 0);
  case 7: return unary<hlo::RsqrtOp>(g, x, 0);
  case 8: return unary<hlo::CbrtOp>(g, x, 0);
  case 9: return unary<hlo::SineOp>(g, x, 0);
  case 10: return unary<hlo::CosineOp>(g, x, 0);
  case 11: return unary<hlo::ErfOp>(g, x, 0);
  case 12: return unary<hlo::AtanOp>(g, x, 0);
  default: return unary<hlo::IsInfOp>(g, x, 0);
  }
}

template <typename Op>
static bool binary(GraphBuilder &g, const Known &x, const Known &y, double bound) {
  return g.fits(x.element(), bound) && g.push(Op::create(g.b, x.value, y.value), bound);
}

bool addBinary(GraphBuilder &g) {
  Known x = g.pick();
  Known y = g.match(x.type());
  if (g.chance(50))
    std::swap(x, y);
  Type t = x.element();
  double sum = x.bound + y.bound, most = std::max(x.bound, y.bound);
  if (g.chance(8)) {
    auto direction = static_cast<hlo::ComparisonDirection>(g.below(6));
    return g.kind != Kind::Real && g.push(hlo::CompareOp::create(g.b, x.value, y.value, direction), 1);
  }
  if (g.isBool(t))
    switch (g.below(3)) {
    case 0: return binary<hlo::AndOp>(g, x, y, 1);
    case 1: return binary<hlo::OrOp>(g, x, y, 1);
    default: return binary<hlo::XorOp>(g, x, y, 1);
    }
  if (g.isInt(t))
    switch (g.below(14)) {
    case 0: return binary<hlo::AndOp>(g, x, y, INFINITY);
    case 1: return binary<hlo::OrOp>(g, x, y, INFINITY);
    case 2: return binary<hlo::XorOp>(g, x, y, INFINITY);
    case 3: return binary<hlo::DivOp>(g, x, y, INFINITY);
    case 4: return binary<hlo::RemOp>(g, x, y, x.bound);
    case 5: return binary<hlo::ShiftLeftOp>(g, x, y, INFINITY);
    case 6: return binary<hlo::ShiftRightArithmeticOp>(g, x, y, INFINITY);
    case 7: return binary<hlo::ShiftRightLogicalOp>(g, x, y, INFINITY);
    case 8: return binary<hlo::MaxOp>(g, x, y, most);
    case 9: return binary<hlo::MinOp>(g, x, y, most);
    case 10: return binary<hlo::MulOp>(g, x, y, x.bound * y.bound);
    // a difference of unsigned numbers wraps
    case 11: return binary<hlo::SubtractOp>(g, x, y, t.isUnsignedInteger() ? INFINITY : sum);
    default: return binary<hlo::AddOp>(g, x, y, sum);
    }
  if (!g.isFloat(t))
    return false;
  switch (g.below(g.kind == Kind::Elementwise ? 12 : 7)) {
  case 0: return binary<hlo::MaxOp>(g, x, y, most);
  case 1: return binary<hlo::MinOp>(g, x, y, most);
  case 2:
  case 3: return binary<hlo::MulOp>(g, x, y, x.bound * y.bound);
  case 4: return binary<hlo::SubtractOp>(g, x, y, sum);
  case 7: return binary<hlo::DivOp>(g, x, y, 0);
  case 8: return g.chance(50) ? binary<hlo::RemOp>(g, x, y, 0) : binary<hlo::Atan2Op>(g, x, y, 0);
  case 9: return g.chance(30) && binary<hlo::PowOp>(g, x, y, 0);
  case 10: return binary<hlo::DivOp>(g, x, y, 0);
  default: return binary<hlo::AddOp>(g, x, y, sum);
  }
}

bool addTernary(GraphBuilder &g) {
  Known x = g.pick();
  if (g.chance(50)) {
    if (g.kind == Kind::Real || g.isBool(x.element()) || !(g.isInt(x.element()) || g.isFloat(x.element())))
      return false;
    auto side = [&]() {
      RankedTensorType type = g.chance(60) ? g.tensor({}, x.element()) : x.type();
      return g.chance(50) ? g.constant(type) : g.match(type);
    };
    Known lo = side(), hi = side();
    return g.push(hlo::ClampOp::create(g.b, lo.value, x.value, hi.value), std::max(lo.bound, hi.bound));
  }
  if (g.kind == Kind::Real)
    return false;
  Known y = g.match(x.type());
  Known p = g.match(g.tensor(g.chance(15) ? ArrayRef<int64_t>() : x.shape(), g.b.getI1Type()));
  return g.push(hlo::SelectOp::create(g.b, p.value, x.value, y.value), std::max(x.bound, y.bound));
}

bool addConvert(GraphBuilder &g) {
  Known x = g.pick();
  Type to = g.randomElement();
  if (to == x.element() || g.kind == Kind::Real)
    return false;
  // a float made of an integer must hold it; integers made of floats saturate
  if (g.kind == Kind::Exact && g.isFloat(to) && x.bound > g.exactLimit(to))
    return false;
  return g.push(hlo::ConvertOp::create(g.b, x.value, to), x.bound);
}

} // namespace lathe::fuzz
