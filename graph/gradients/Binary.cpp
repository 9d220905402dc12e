// Functions of several numbers, with broadcasting.
#include "graph/gradients/Expr.h"
#include "graph/gradients/Rules.h"

namespace lathe::graphdef {
namespace {

/// Sets the gradients of inputs a and b, which were broadcast to each other.
void setBroadcast(Grad &g, Val da, Val db, int a = 0, int b = 1) {
  Val sa = Shape(g.in(a)), sb = Shape(g.in(b));
  Val axes = call("BroadcastGradientArgs", {sa, sb});
  if (da)
    g.set(a, sumTo(da, axes, sa));
  if (db)
    g.set(b, sumTo(db, axes.at(1), sb));
}

/// Sets the gradient of one of several inputs that were broadcast to the output.
void setFromOutput(Grad &g, int i, Val d) {
  Val shape = Shape(g.in(i));
  g.set(i, sumTo(d, call("BroadcastGradientArgs", {shape, Shape(g.out())}), shape));
}

/// 1 where x is not 0.
Val nonZero(Val x) { return Cast(NotEqual(x, like(x, 0)), x.type()); }

void addArithmetic(Rules &r) {
  r.add({"Add", "AddV2"}, [](Grad &g) { setBroadcast(g, g.dy(), g.dy()); });
  r.add({"Sub"}, [](Grad &g) { setBroadcast(g, g.dy(), -g.dy()); });
  r.add({"Mul"}, [](Grad &g) { setBroadcast(g, g.dy() * Conj(g.in(1)), Conj(g.in(0)) * g.dy()); });
  // TensorFlow conjugates complex values here as little as with the squared difference and the quotients and logarithms below
  r.add({"MulNoNan"}, [](Grad &g) {
    setBroadcast(g, call("MulNoNan", {g.dy(), g.in(1)}), call("MulNoNan", {g.in(0), g.dy()}));
  });
  r.add({"Div", "RealDiv"}, [](Grad &g) {
    Val x = Conj(g.in(0)), y = Conj(g.in(1));
    setBroadcast(g, g.dy() / y, g.dy() * (-x / y / y));
  });
  r.add({"DivNoNan"}, [](Grad &g) {
    Val x = Conj(g.in(0)), y = Conj(g.in(1));
    setBroadcast(g, DivNoNan(g.dy(), y), g.dy() * DivNoNan(DivNoNan(-x, y), y));
  });
  r.add({"FloorMod"}, [](Grad &g) { setBroadcast(g, g.dy(), -g.dy() * FloorDiv(g.in(0), g.in(1))); });
  r.add({"SquaredDifference"}, [](Grad &g) {
    Val d = g.dy() * (g.in(0) - g.in(1)) * 2;
    setBroadcast(g, d, -d);
  });
  r.add({"Pow"}, [](Grad &g) {
    Val x = Conj(g.in(0)), y = Conj(g.in(1)), z = Conj(g.out());
    // where the logarithm is none its factor is 0
    Val mask = isComplex(x.type()) ? NotEqual(x, like(x, 0)) : Greater(x, like(x, 0));
    Val log = Select(mask, Log(Select(mask, x, OnesLike(x))), ZerosLike(x));
    setBroadcast(g, g.dy() * y * Pow(x, y - 1), g.dy() * z * log);
  });
  r.add({"AddN", "AccumulateNV2"}, [](Grad &g) {
    for (int i = 0; i < g.node.numInputs(); ++i)
      g.set(i, g.dy());
  });
  r.add({"Atan2"}, [](Grad &g) {
    Val y = g.in(0), x = g.in(1), scaled = g.dy() / (Square(x) + Square(y));
    setBroadcast(g, x * scaled, -y * scaled);
  });
  r.add({"NextAfter"}, [](Grad &g) { setBroadcast(g, g.dy(), ZerosLike(g.dy())); });
  r.add({"Complex"}, [](Grad &g) { setBroadcast(g, Real(g.dy()), Imag(g.dy())); });
  r.add({"Cross"}, [](Grad &g) {
    g.set(0, call("Cross", {g.in(1), g.dy()}));
    g.set(1, call("Cross", {g.dy(), g.in(0)}));
  });
  r.add({"L2Loss"}, [](Grad &g) { g.set(0, g.in(0) * g.dy()); });
}

void addChoices(Rules &r) {
  r.add({"Maximum", "Minimum"}, [](Grad &g) {
    Val first = g.node.op() == "Maximum" ? GreaterEqual(g.in(0), g.in(1)) : LessEqual(g.in(0), g.in(1));
    Val zero = like(g.dy(), 0);
    setBroadcast(g, Select(first, g.dy(), zero), Select(first, zero, g.dy()));
  });
  r.add({"Select"}, [](Grad &g) {
    Val zeros = ZerosLike(g.in(1));
    g.set(1, call("Select", {g.in(0), g.dy(), zeros}));
    g.set(2, call("Select", {g.in(0), zeros, g.dy()}));
  });
  r.add({"SelectV2"}, [](Grad &g) {
    Val zero = like(g.dy(), 0);
    setFromOutput(g, 1, Select(g.in(0), g.dy(), zero));
    setFromOutput(g, 2, Select(g.in(0), zero, g.dy()));
  });
  r.add({"ClipByValue"}, [](Grad &g) {
    Val below = Less(g.in(0), g.in(1)), above = Greater(g.in(0), g.in(2)), zero = like(g.dy(), 0);
    g.set(0, Select(LogicalOr(below, above), zero, g.dy()));
    setFromOutput(g, 1, Select(below, g.dy(), zero));
    setFromOutput(g, 2, Select(above, g.dy(), zero));
  });
}

void addSpecial(Rules &r) {
  r.add({"Xlogy"}, [](Grad &g) {
    Val x = g.in(0), y = g.in(1);
    setBroadcast(g, g.dy() * call("Xlogy", {nonZero(x), y}), g.dy() * call("Xdivy", {x, y}));
  });
  r.add({"Xlog1py"}, [](Grad &g) {
    Val x = g.in(0), y = g.in(1);
    setBroadcast(g, g.dy() * call("Xlog1py", {nonZero(x), y}), g.dy() * call("Xdivy", {x, y + 1}));
  });
  r.add({"Xdivy"}, [](Grad &g) {
    Val x = g.in(0), y = g.in(1);
    setBroadcast(g, g.dy() * call("Xdivy", {nonZero(x), y}), g.dy() * call("Xdivy", {-x, Square(y)}));
  });
  r.add({"Igamma", "Igammac"}, [](Grad &g) {
    Val a = g.in(0), x = g.in(1);
    Val da = g.dy() * call("IgammaGradA", {a, x}), dx = g.dy() * Exp(-x + (a - 1) * Log(x) - Lgamma(a));
    bool upper = g.node.op() == "Igammac";
    setBroadcast(g, upper ? -da : da, upper ? -dx : dx);
  });
  r.add({"Betainc"}, [](Grad &g) {
    Val a = g.in(0), b = g.in(1), x = g.in(2);
    Val logBeta = Lgamma(a) + Lgamma(b) - Lgamma(a + b);
    Val d = Exp((b - 1) * call("Log1p", {-x}) + call("Xlogy", {a - 1, x}) - logBeta);
    Val shape = Shape(x);
    Val axes = call("BroadcastGradientArgs", {Shape(a), shape});
    g.set(2, sumTo(g.dy() * d, axes.at(1), shape));
  });
  r.add({"Zeta"}, [](Grad &g) {
    Val x = g.in(0), q = g.in(1);
    setBroadcast(g, Val(), g.dy() * (-x * call("Zeta", {x + 1, q})));
  });
  r.add({"Polygamma"}, [](Grad &g) { setBroadcast(g, Val(), g.dy() * call("Polygamma", {g.in(0) + 1, g.in(1)})); });
}

/// Sums of a product of batches over the batch dimensions that were broadcast.
void setBatches(Grad &g, Val da, Val db) {
  Val sa = Shape(g.in(0)), sb = Shape(g.in(1));
  Val axes = call("BroadcastGradientArgs", {part(sa, 0, -2), part(sb, 0, -2)});
  g.set(0, sumTo(da, axes, sa));
  g.set(1, sumTo(db, axes.at(1), sb));
}

void addProducts(Rules &r) {
  r.add({"MatMul"}, [](Grad &g) {
    bool ta = g.boolAttr("transpose_a"), tb = g.boolAttr("transpose_b");
    Val a = Conj(g.in(0)), b = Conj(g.in(1)), d = g.dy();
    auto mul = [](Val x, Val y, bool tx, bool ty) { return call("MatMul", {x, y}, {{"transpose_a", tx}, {"transpose_b", ty}}); };
    g.set(0, ta ? mul(b, d, tb, true) : mul(d, b, false, !tb));
    g.set(1, tb ? mul(d, a, true, ta) : mul(a, d, !ta, false));
  });
  r.add({"SparseMatMul"}, [](Grad &g) {
    bool ta = g.boolAttr("transpose_a"), tb = g.boolAttr("transpose_b");
    Val a = Cast(g.in(0), DType::Float32), b = Cast(g.in(1), DType::Float32), d = g.dy();
    auto mul = [](Val x, Val y, bool tx, bool ty) { return call("MatMul", {x, y}, {{"transpose_a", tx}, {"transpose_b", ty}}); };
    g.set(0, Cast(ta ? mul(b, d, tb, true) : mul(d, b, false, !tb), g.node.inputType(0)));
    g.set(1, Cast(tb ? mul(d, a, true, ta) : mul(a, d, !ta, false), g.node.inputType(1)));
  });
  r.add({"BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"}, [](Grad &g) {
    bool ta = g.boolAttr("adj_x"), tb = g.boolAttr("adj_y");
    DType type = g.node.outputType(0);
    Val a = Cast(g.in(0), type), b = Cast(g.in(1), type), d = g.dy();
    Val da = ta ? matmul(b, d, tb, true) : matmul(d, b, false, !tb);
    Val db = tb ? matmul(d, a, true, ta) : matmul(a, d, !ta, false);
    setBatches(g, Cast(da, g.node.inputType(0)), Cast(db, g.node.inputType(1)));
  });
}

} // namespace

void addBinaryRules(Rules &r) {
  addArithmetic(r);
  addChoices(r);
  addSpecial(r);
  addProducts(r);
}

} // namespace lathe::graphdef
