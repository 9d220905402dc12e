// The parts of the expression helpers that need the math dialect.
#include "passes/codegen/cpu/Expr.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace lathe::cpu {

E fma(E a, E b, E c) { return E(*a.b, math::FmaOp::create(*a.b, a.v, b.v, c.v)); }

E poly(E x, std::initializer_list<double> c) {
  auto it = std::rbegin(c);
  E r = x.c(*it);
  for (++it; it != std::rend(c); ++it)
    r = fma(r, x, x.c(*it));
  return r;
}

E absE(E x) { return E(*x.b, math::AbsFOp::create(*x.b, x.v)); }
E sqrtE(E x) { return E(*x.b, math::SqrtOp::create(*x.b, x.v)); }
E floorE(E x) { return E(*x.b, math::FloorOp::create(*x.b, x.v)); }
E ceilE(E x) { return E(*x.b, math::CeilOp::create(*x.b, x.v)); }
E roundEvenE(E x) { return E(*x.b, math::RoundEvenOp::create(*x.b, x.v)); }
E copysignE(E m, E s) { return E(*m.b, math::CopySignOp::create(*m.b, m.v, s.v)); }

} // namespace lathe::cpu
