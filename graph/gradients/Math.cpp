// Functions of one number, and the ops that are their derivatives.
#include "graph/gradients/Expr.h"
#include "graph/gradients/Rules.h"

namespace lathe::graphdef {
namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr double kTwoOverRootPi = 1.12837916709551257390;

// The gradient is dy times the conjugate of the derivative; x and y come conjugated.
#define LATHE_CHAIN(OP, DERIVATIVE)            \
  r.add({#OP}, [](Grad &g) {                   \
    Val x = Conj(g.in(0)), y = Conj(g.out());  \
    (void)x, (void)y;                          \
    g.set(0, g.dy() * (DERIVATIVE));           \
  })

Val bessel(const char *op, Val x) { return call(op, {x}); }

/// `f` except at 0, where the formula divides by it.
Val unlessZero(Val x, double atZero, Val f) { return Select(Equal(x, like(x, 0)), like(x, atZero), f); }

void addElementary(Rules &r) {
  LATHE_CHAIN(Square, x * 2);
  LATHE_CHAIN(Exp, y);
  LATHE_CHAIN(Expm1, Exp(x));
  LATHE_CHAIN(Log, Reciprocal(x));
  LATHE_CHAIN(Log1p, Reciprocal(x + 1));
  LATHE_CHAIN(Sin, Cos(x));
  LATHE_CHAIN(Cos, -Sin(x));
  LATHE_CHAIN(Tan, Square(Reciprocal(Cos(x))));
  LATHE_CHAIN(Asin, Reciprocal(Sqrt(1 - Square(x))));
  LATHE_CHAIN(Acos, -Reciprocal(Sqrt(1 - Square(x))));
  LATHE_CHAIN(Atan, Reciprocal(Square(x) + 1));
  LATHE_CHAIN(Sinh, Cosh(x));
  LATHE_CHAIN(Cosh, Sinh(x));
  LATHE_CHAIN(Asinh, Reciprocal(Cosh(y)));
  LATHE_CHAIN(Acosh, Reciprocal(Sinh(y)));
  LATHE_CHAIN(Atanh, Reciprocal(1 - Square(x)));
  LATHE_CHAIN(Abs, Sign(x));
  r.add({"Neg"}, [](Grad &g) { g.set(0, -g.dy()); });
  r.add({"ComplexAbs"}, [](Grad &g) { g.set(0, Complex(g.dy(), ZerosLike(g.dy())) * Sign(g.in(0))); });
  r.add({"Sign"}, [](Grad &g) { g.set(0, ZerosLike(g.in(0))); });
}

void addSpecial(Rules &r) {
  LATHE_CHAIN(Erf, Exp(-Square(x)) * kTwoOverRootPi);
  LATHE_CHAIN(Erfc, Exp(-Square(x)) * -kTwoOverRootPi);
  LATHE_CHAIN(Erfinv, Exp(Square(y)) * (1 / kTwoOverRootPi));
  LATHE_CHAIN(Ndtri, Exp(Square(y) * 0.5) * 2.50662827463100050242);
  LATHE_CHAIN(Lgamma, Digamma(x));
  LATHE_CHAIN(Digamma, call("Polygamma", {like(x, 1), x}));
  LATHE_CHAIN(Dawsn, 1 - x * y * 2);
  LATHE_CHAIN(Expint, Exp(x) / x);
  LATHE_CHAIN(FresnelCos, Cos(Square(x) * (kPi / 2)));
  LATHE_CHAIN(FresnelSin, Sin(Square(x) * (kPi / 2)));
  LATHE_CHAIN(Spence, Select(Equal(x, like(x, 1)), like(x, -1), Log(x) / (1 - x)));
  LATHE_CHAIN(BesselI0, bessel("BesselI1", x));
  LATHE_CHAIN(BesselI0e, bessel("BesselI1e", x) - Sign(x) * y);
  // TensorFlow's value at 0 is 1, although the limit is one half
  LATHE_CHAIN(BesselI1, unlessZero(x, 1, bessel("BesselI0", x) - y / x));
  LATHE_CHAIN(BesselI1e, unlessZero(x, 0.5, bessel("BesselI0e", x) - y * (Sign(x) + Reciprocal(x))));
  LATHE_CHAIN(BesselJ0, -bessel("BesselJ1", x));
  LATHE_CHAIN(BesselJ1, unlessZero(x, 0.5, bessel("BesselJ0", x) - y / x));
  LATHE_CHAIN(BesselK0, -bessel("BesselK1", x));
  LATHE_CHAIN(BesselK0e, y - bessel("BesselK1e", x));
  LATHE_CHAIN(BesselK1, -bessel("BesselK0", x) - y / x);
  LATHE_CHAIN(BesselK1e, y * (1 - Reciprocal(x)) - bessel("BesselK0e", x));
  LATHE_CHAIN(BesselY0, -bessel("BesselY1", x));
  LATHE_CHAIN(BesselY1, bessel("BesselY0", x) - y / x);
}

/// Ops whose derivatives are ops of y and dy, and the derivatives of those.
void addPaired(Rules &r) {
  // for complex numbers the first four conjugate what they are given, the other two do not
  r.add({"Sqrt", "Rsqrt", "Inv", "Reciprocal"}, [](Grad &g) { g.set(0, call((g.node.op() + "Grad").c_str(), {g.out(), g.dy()})); });
  r.add({"Sigmoid", "Tanh"}, [](Grad &g) { g.set(0, call((g.node.op() + "Grad").c_str(), {Conj(g.out()), g.dy()})); });
  // dy / 2y
  r.add({"SqrtGrad"}, [](Grad &g) {
    Val scaled = g.dy() / g.in(0);
    g.set(0, -Conj(scaled) * g.out());
    g.set(1, scaled * 0.5);
  });
  // -dy y^3 / 2
  r.add({"RsqrtGrad"}, [](Grad &g) {
    Val y = Conj(g.in(0));
    g.set(0, Conj(g.dy()) * g.in(1) * Square(y) * -1.5);
    g.set(1, call("RsqrtGrad", {y, g.dy()}));
  });
  // dy y (1 - y)
  r.add({"SigmoidGrad"}, [](Grad &g) {
    Val y = Conj(g.in(0));
    g.set(0, g.dy() * Conj(g.in(1)) * (1 - y * 2));
    g.set(1, call("SigmoidGrad", {y, g.dy()}));
  });
  // dy (1 - y^2)
  r.add({"TanhGrad"}, [](Grad &g) {
    Val y = Conj(g.in(0));
    g.set(0, g.dy() * Conj(g.in(1)) * y * -2);
    g.set(1, call("TanhGrad", {y, g.dy()}));
  });
  // -dy y^2
  r.add({"InvGrad", "ReciprocalGrad"}, [](Grad &g) {
    Val y = Conj(g.in(0));
    g.set(0, Conj(g.dy()) * g.in(1) * y * -2);
    g.set(1, call("ReciprocalGrad", {y, g.dy()}));
  });
}

void addComplexParts(Rules &r) {
  r.add({"Conj"}, [](Grad &g) { g.set(0, g.node.inputType(0) == DType::Variant ? g.dy() : Conj(g.dy())); });
  r.add({"Real"}, [](Grad &g) { g.set(0, Complex(g.dy(), ZerosLike(g.dy()))); });
  r.add({"Imag"}, [](Grad &g) { g.set(0, Complex(ZerosLike(g.dy()), g.dy())); });
  r.add({"Angle"}, [](Grad &g) {
    Val x = g.in(0);
    g.set(0, -Complex(g.dy(), ZerosLike(g.dy())) / Complex(Imag(x), Real(x)));
  });
  r.add({"Cast"}, [](Grad &g) {
    DType from = g.node.inputType(0), to = g.node.outputType(0);
    if ((isFloating(from) || isComplex(from)) && (isFloating(to) || isComplex(to)))
      g.set(0, Cast(g.dy(), from));
  });
}

} // namespace

void addMathRules(Rules &r) {
  addElementary(r);
  addSpecial(r);
  addPaired(r);
  addComplexParts(r);
  // constant almost everywhere
  r.addNone("constant where it is differentiable", {"Floor", "Ceil", "Round", "Rint", "TruncateDiv", "FloorDiv"});
}

} // namespace lathe::graphdef
