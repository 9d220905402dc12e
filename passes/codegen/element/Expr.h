// Expressions on register values: `E` wraps a scalar or vector Value so that formulas read as formulas.
// Operators choose the float or the integer op by the element type; plain numbers become splat constants.
#ifndef LATHE_PASSES_CODEGEN_ELEMENT_EXPR_H
#define LATHE_PASSES_CODEGEN_ELEMENT_EXPR_H

#include "passes/codegen/element/KernelBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"

#include <initializer_list>
#include <type_traits>

namespace lathe::codegen {

struct E {
  KernelBuilder *b = nullptr;
  mlir::Value v;

  E() = default;
  E(KernelBuilder &b, mlir::Value v) : b(&b), v(v) {}
  operator mlir::Value() const { return v; }

  mlir::Type type() const { return v.getType(); }
  mlir::Type elem() const { return mlir::getElementTypeOrSelf(v.getType()); }
  bool isFloat() const { return mlir::isa<mlir::FloatType>(elem()); }
  unsigned lanes() const { return lanesOf(v.getType()); }
  /// The same shape with another element type.
  mlir::Type like(mlir::Type elem) const { return widen(elem, lanes()); }
  mlir::Type f32() const { return like(b->getF32Type()); }
  mlir::Type f64() const { return like(b->getF64Type()); }
  mlir::Type intN(unsigned bits) const { return like(b->getIntegerType(bits)); }
  E c(double x) const { return E(*b, b->cst(type(), x)); }
  E cI(int64_t x) const { return E(*b, b->cstI(type(), x)); }
  E cBits(uint64_t x) const { return E(*b, b->cstBits(type(), x)); }
  E as(mlir::Type t) const { return t == type() ? *this : E(*b, mlir::arith::BitcastOp::create(*b, t, v)); }
  /// Bits as an integer of the same width, and back.
  E bits() const { return as(intN(elem().getIntOrFloatBitWidth())); }
  E asFloat() const { return as(elem().isInteger(64) ? f64() : f32()); }
};

template <class FloatOp, class IntOp>
E arithOp(E a, E b) {
  if (a.isFloat())
    return E(*a.b, FloatOp::create(*a.b, a.v, b.v));
  return E(*a.b, IntOp::create(*a.b, a.v, b.v));
}
#define LATHE_EXPR_OP(op, F, I)                                                                                  \
  inline E operator op(E a, E b) { return arithOp<mlir::arith::F, mlir::arith::I>(a, b); }                       \
  template <class N, class = std::enable_if_t<std::is_arithmetic_v<N>>>                                         \
  E operator op(E a, N b) {                                                                                      \
    return a op(std::is_integral_v<N> ? a.cI(int64_t(b)) : a.c(double(b)));                                      \
  }                                                                                                              \
  template <class N, class = std::enable_if_t<std::is_arithmetic_v<N>>>                                         \
  E operator op(N a, E b) {                                                                                      \
    return (std::is_integral_v<N> ? b.cI(int64_t(a)) : b.c(double(a))) op b;                                     \
  }
LATHE_EXPR_OP(+, AddFOp, AddIOp)
LATHE_EXPR_OP(-, SubFOp, SubIOp)
LATHE_EXPR_OP(*, MulFOp, MulIOp)
LATHE_EXPR_OP(/, DivFOp, DivUIOp) // integers: unsigned, the divisor must not be 0
#undef LATHE_EXPR_OP
#define LATHE_EXPR_INT_OP(op, I)                                                                                 \
  inline E operator op(E a, E b) { return E(*a.b, mlir::arith::I::create(*a.b, a.v, b.v)); }                     \
  inline E operator op(E a, int64_t b) { return a op a.cI(b); }
LATHE_EXPR_INT_OP(&, AndIOp)
LATHE_EXPR_INT_OP(|, OrIOp)
LATHE_EXPR_INT_OP(^, XOrIOp)
LATHE_EXPR_INT_OP(<<, ShLIOp)
LATHE_EXPR_INT_OP(>>, ShRUIOp) // logical
#undef LATHE_EXPR_INT_OP
inline E sar(E a, int64_t n) { return E(*a.b, mlir::arith::ShRSIOp::create(*a.b, a.v, a.cI(n))); }
inline E operator-(E a) {
  return a.isFloat() ? E(*a.b, mlir::arith::NegFOp::create(*a.b, a.v)) : a.cI(0) - a;
}
/// i1 values only
inline E operator!(E a) { return a ^ a.cI(1); }

inline E cmpF(mlir::arith::CmpFPredicate p, E a, E b) { return E(*a.b, mlir::arith::CmpFOp::create(*a.b, p, a.v, b.v)); }
inline E cmpI(mlir::arith::CmpIPredicate p, E a, E b) { return E(*a.b, mlir::arith::CmpIOp::create(*a.b, p, a.v, b.v)); }
#define LATHE_EXPR_CMP(op, F, I)                                                                                 \
  inline E operator op(E a, E b) {                                                                               \
    return a.isFloat() ? cmpF(mlir::arith::CmpFPredicate::F, a, b) : cmpI(mlir::arith::CmpIPredicate::I, a, b);  \
  }                                                                                                              \
  template <class N, class = std::enable_if_t<std::is_arithmetic_v<N>>>                                         \
  E operator op(E a, N b) {                                                                                      \
    return a op(std::is_integral_v<N> ? a.cI(int64_t(b)) : a.c(double(b)));                                      \
  }
LATHE_EXPR_CMP(<, OLT, slt) // ordered, signed
LATHE_EXPR_CMP(<=, OLE, sle)
LATHE_EXPR_CMP(>, OGT, sgt)
LATHE_EXPR_CMP(>=, OGE, sge)
LATHE_EXPR_CMP(==, OEQ, eq)
LATHE_EXPR_CMP(!=, UNE, ne)
#undef LATHE_EXPR_CMP

inline E sel(E c, E x, E y) { return E(*c.b, mlir::arith::SelectOp::create(*c.b, c.v, x.v, y.v)); }
template <class N, class = std::enable_if_t<std::is_arithmetic_v<N>>>
E sel(E c, N x, E y) {
  return sel(c, y.isFloat() ? y.c(double(x)) : y.cI(int64_t(x)), y);
}
template <class N, class = std::enable_if_t<std::is_arithmetic_v<N>>>
E sel(E c, E x, N y) {
  return sel(c, x, x.isFloat() ? x.c(double(y)) : x.cI(int64_t(y)));
}
E fma(E a, E b, E c);
inline E fma(E a, E b, double c) { return fma(a, b, a.c(c)); }
inline E fma(E a, double b, E c) { return fma(a, a.c(b), c); }
inline E fma(E a, double b, double c) { return fma(a, a.c(b), a.c(c)); }
/// c[0] + c[1] x + c[2] x^2 + ... by Horner's rule with fma
E poly(E x, std::initializer_list<double> c);
E absE(E x);
E sqrtE(E x);
E floorE(E x);
E ceilE(E x);
E roundEvenE(E x);
E copysignE(E magnitude, E sign);
inline E isNan(E x) { return cmpF(mlir::arith::CmpFPredicate::UNO, x, x); }
/// One instruction each; which operand a NaN gives is not specified: for values known to be numbers.
inline E minE(E a, E b) { return sel(a < b, a, b); }
inline E maxE(E a, E b) { return sel(a > b, a, b); }
inline E toF64(E x) { return E(*x.b, mlir::arith::ExtFOp::create(*x.b, x.f64(), x.v)); }
inline E toF32(E x) { return E(*x.b, mlir::arith::TruncFOp::create(*x.b, x.f32(), x.v)); }
inline E extU(E x, unsigned bits) { return E(*x.b, mlir::arith::ExtUIOp::create(*x.b, x.intN(bits), x.v)); }
inline E extS(E x, unsigned bits) { return E(*x.b, mlir::arith::ExtSIOp::create(*x.b, x.intN(bits), x.v)); }
inline E truncI(E x, unsigned bits) { return E(*x.b, mlir::arith::TruncIOp::create(*x.b, x.intN(bits), x.v)); }
inline E fromS(E x, mlir::Type floatElem) {
  return E(*x.b, mlir::arith::SIToFPOp::create(*x.b, x.like(floatElem), x.v));
}

} // namespace lathe::codegen

#endif // LATHE_PASSES_CODEGEN_ELEMENT_EXPR_H
