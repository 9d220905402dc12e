// Complex quotients as TensorFlow's CPU kernels give them: whole vectors of a tensor by the conjugate, where an infinite or
// zero divisor makes NaN, and the elements after the last whole vector by C's rules (annex G), which recover infinities.
#include "passes/legalize/math/ComplexDivide.h"

using namespace mlir;

namespace lathe::legalize {
namespace {

constexpr double kInfinity = __builtin_inf();

/// Real pieces of the two numbers, in f64.
class Quotient {
public:
  Quotient(NodeContext &c, Value x, Value y) : c(c) {
    Type f64 = c.b.getF64Type();
    re = c.convert(c.unary<hlo::RealOp>(x), f64);
    im = c.convert(c.unary<hlo::ImagOp>(x), f64);
    yRe = c.convert(c.unary<hlo::RealOp>(y), f64);
    yIm = c.convert(c.unary<hlo::ImagOp>(y), f64);
  }

  /// The quotient by annex G.
  std::pair<Value, Value> byRules() {
    Value size = c.max(abs(yRe), abs(yIm)), one = c.like(size, 1), inf = c.like(size, kInfinity), zero = c.like(size, 0);
    Value infiniteY = infinite(yRe, yIm, inf), zeroY = is(Compare::EQ, size, zero);
    // scaled, so that squares neither overflow nor vanish
    Value scale = c.select(c.logicalOr(infiniteY, zeroY), one, size);
    Value d = c.div(yRe, scale), e = c.div(yIm, scale), square = c.add(c.mul(d, d), c.mul(e, e));
    auto [p, q] = products(re, im, d, e);
    Value r = c.div(c.div(p, square), scale), s = c.div(c.div(q, square), scale);
    Value lost = c.logicalAnd(nan(r), nan(s));

    Value number = c.logicalNot(c.logicalAnd(nan(re), nan(im)));
    Value signedInf = withSign(inf, yRe);
    auto recover = [&](Value when, Value newR, Value newS) { // the first that fits
      when = c.logicalAnd(lost, when);
      lost = c.logicalAnd(lost, c.logicalNot(when));
      r = c.select(when, newR, r);
      s = c.select(when, newS, s);
    };
    recover(c.logicalAnd(zeroY, number), c.mul(signedInf, re), c.mul(signedInf, im));
    Value infiniteX = infinite(re, im, inf);
    auto [u, v] = products(unit(re), unit(im), yRe, yIm);
    recover(c.logicalAnd(infiniteX, c.logicalAnd(finite(yRe), finite(yIm))), c.mul(inf, u), c.mul(inf, v));
    auto [w, z] = products(re, im, unit(yRe), unit(yIm));
    recover(c.logicalAnd(infiniteY, c.logicalAnd(finite(re), finite(im))), c.mul(zero, w), c.mul(zero, z));
    return {r, s};
  }

private:
  Value abs(Value x) { return c.unary<hlo::AbsOp>(x); }
  Value nan(Value x) { return c.unary<hlo::IsNanOp>(x); }
  Value finite(Value x) { return c.unary<hlo::IsFiniteOp>(x); }
  Value is(Compare how, Value x, Value y) { return c.compare(how, x, y); }
  Value infinite(Value x, Value y, Value inf) { // whatever the other part is, NaN too
    return c.logicalOr(is(Compare::EQ, abs(x), inf), is(Compare::EQ, abs(y), inf));
  }
  /// `magnitude` with the sign of x, of zeros and infinities too.
  Value withSign(Value magnitude, Value x) {
    Value zero = c.like(x, 0), one = c.like(x, 1);
    Value negative = c.logicalOr(is(Compare::LT, x, zero), is(Compare::LT, c.div(one, x), zero));
    return c.select(negative, c.neg(magnitude), magnitude);
  }
  /// 1 for an infinity, else 0, signed.
  Value unit(Value x) {
    Value infinite = is(Compare::EQ, abs(x), c.like(x, kInfinity));
    return withSign(c.select(infinite, c.like(x, 1), c.like(x, 0)), x);
  }
  /// (a + ib) (u - iv)
  std::pair<Value, Value> products(Value a, Value b, Value u, Value v) {
    return {c.add(c.mul(a, u), c.mul(b, v)), c.sub(c.mul(b, u), c.mul(a, v))};
  }

  NodeContext &c;
  Value re, im, yRe, yIm;
};

} // namespace

Value divideComplex(NodeContext &c, Value x, Value y) {
  Value both[2] = {x, y};
  if (!x || !y || !c.broadcastTogether(both))
    return c.poison();
  Value q = c.div(both[0], both[1]);
  Type part = cast<ComplexType>(Emitter::elementType(q)).getElementType();
  // 256 bits are a vector
  int64_t lanes = part.isF32() ? 4 : 2;
  Dims dims = c.dims(q);
  AffineExpr total = productOf(dims, c.b.getContext());
  if (auto n = constantOf(total); n && *n % lanes == 0)
    return q;
  Type i64 = c.b.getI64Type();
  Value count = c.sizeValue(total, i64);
  Value vectors = c.sub(count, c.make<hlo::RemOp>(count, c.scalarInt(lanes, i64)));
  Value place = c.reshape(c.iota(Dims{total}, 0, i64), dims);
  Value tail = c.compare(Compare::GE, place, vectors);
  auto [re, im] = Quotient(c, both[0], both[1]).byRules();
  Value other = c.make<hlo::ComplexOp>(c.convert(re, part), c.convert(im, part));
  return c.select(tail, other, q);
}

} // namespace lathe::legalize
