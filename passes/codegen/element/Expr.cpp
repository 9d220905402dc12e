// The parts of the expression helpers that need the math dialect.
#include "passes/codegen/element/Expr.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace lathe::codegen {

E fma(E a, E b, E c) {
  if (a.b->target.fma)
    return E(*a.b, math::FmaOp::create(*a.b, a.v, b.v, c.v));
  // the product of two floats is exact in double, which is what the reductions need; a call for each would be slow
  if (a.elem().isF32())
    return toF32(toF64(a) * toF64(b) + toF64(c));
  return a * b + c;
}

E poly(E x, std::initializer_list<double> c) {
  auto it = std::rbegin(c);
  E r = x.c(*it);
  for (++it; it != std::rend(c); ++it)
    r = fma(r, x, x.c(*it));
  return r;
}

E absE(E x) { return E(*x.b, math::AbsFOp::create(*x.b, x.v)); }
E sqrtE(E x) { return E(*x.b, math::SqrtOp::create(*x.b, x.v)); }

// Without SSE4.1's rounding instruction: adding and subtracting 2^23 (2^52) rounds to the nearest even.
static E roundByMagic(E x) {
  double magic = x.elem().isF32() ? 8388608.0 : 4503599627370496.0;
  E ax = absE(x);
  E r = (ax + magic) - magic;
  return sel(ax < magic, copysignE(r, x), x);
}
E floorE(E x) {
  if (x.b->target.rounds)
    return E(*x.b, math::FloorOp::create(*x.b, x.v));
  E r = roundByMagic(x);
  return copysignE(sel(r > x, r - 1.0, r), x);
}
E ceilE(E x) {
  if (x.b->target.rounds)
    return E(*x.b, math::CeilOp::create(*x.b, x.v));
  E r = roundByMagic(x);
  return copysignE(sel(r < x, r + 1.0, r), x);
}
E roundEvenE(E x) {
  if (x.b->target.rounds)
    return E(*x.b, math::RoundEvenOp::create(*x.b, x.v));
  return roundByMagic(x);
}
// By bits: LLVM 22 takes the sign of an intrinsic from behind a conversion, and a double's for a half by a library call.
E copysignE(E m, E s) {
  E bits = s.bits();
  E sign = bits.cI(static_cast<int64_t>(uint64_t(1) << (s.elem().getIntOrFloatBitWidth() - 1)));
  return (absE(m).bits() | (bits & sign)).asFloat();
}

} // namespace lathe::codegen
