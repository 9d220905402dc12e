// Reductions and running sums.
#include "graph/gradients/Expr.h"
#include "graph/gradients/Rules.h"

#include <cfloat>

namespace lathe::graphdef {
namespace {

/// A reduced value with its dimensions back, of size 1.
Val kept(Grad &g, Val reduced) { return Reshape(reduced, reducedShape(Shape(g.in(0)), g.in(1))); }

/// Elements that each result is reduced from.
Val reducedCount(Grad &g) {
  Val in = Size(g.in(0)), out = Size(g.out());
  return FloorDiv(in, Maximum(out, like(out, 1)));
}

Val cumulative(const char *op, Val x, Val axis, bool exclusive, bool reverse) {
  return call(op, {x, axis}, {{"exclusive", exclusive}, {"reverse", reverse}});
}

/// The product of all elements but each one: no division, so that zeros are no matter.
void product(Grad &g) {
  Val x = Conj(g.in(0)), shape = Shape(x), rank = Rank(x);
  Val axes = FloorMod(flat(Cast(g.in(1), DType::Int32)) + rank, rank);
  Val others = call("ListDiff", {upTo(rank), axes}, {{"out_idx", DType::Int32}});
  Val perm = Concat({axes, others}, intOf(x, 0));
  Val sizes = gather(shape, axes), otherSizes = gather(shape, others);
  auto prod = [](Val v) { return call("Prod", {v, intOf(v, 0)}, {{"keep_dims", true}}); };
  Val permuted = Transpose(x, perm);
  Val rows = Reshape(permuted, Concat({prod(sizes), prod(otherSizes)}, intOf(x, 0)));
  Val zero = intOf(x, 0);
  Val rest = cumulative("Cumprod", rows, zero, true, false) * cumulative("Cumprod", rows, zero, true, true);
  Val back = Transpose(Reshape(rest, Shape(permuted)), InvertPermutation(perm));
  g.set(0, Reshape(kept(g, g.dy()) * back, shape));
}

/// Gradients of positive and negative sign apart, since they are summed as logarithms.
void cumulativeLogSumExp(Grad &g) {
  Val x = g.in(0), y = g.out(), d = g.dy();
  bool exclusive = g.boolAttr("exclusive"), reverse = g.boolAttr("reverse");
  double lowest = x.type() == DType::Float64 ? -DBL_MAX : x.type() == DType::Float16 ? -65504 : x.type() == DType::BFloat16 ? -3.3895314e38 : -FLT_MAX;
  auto side = [&](Val amount) {
    Val isPositive = Greater(amount, like(amount, 0));
    Val log = Select(isPositive, Log(Select(isPositive, amount, like(amount, 1))), like(amount, lowest));
    return Exp(cumulative("CumulativeLogsumexp", log - y, g.in(1), exclusive, !reverse) + x);
  };
  g.set(0, side(d) - side(-d));
}

} // namespace

void addReductionRules(Rules &r) {
  r.add({"Sum"}, [](Grad &g) { g.set(0, BroadcastTo(kept(g, g.dy()), Shape(g.in(0)))); });
  r.add({"Mean"}, [](Grad &g) {
    Val spread = BroadcastTo(kept(g, g.dy()), Shape(g.in(0)));
    g.set(0, spread / Cast(reducedCount(g), g.node.inputType(0)));
  });
  r.add({"Max", "Min"}, [](Grad &g) {
    // equal extremes share
    Val mask = Cast(Equal(g.in(0), kept(g, g.out())), g.node.inputType(0));
    g.set(0, mask / kept(g, Sum(mask, g.in(1))) * kept(g, g.dy()));
  });
  r.add({"EuclideanNorm"}, [](Grad &g) { g.set(0, g.in(0) / (kept(g, g.out()) / kept(g, g.dy()))); });
  r.add({"Prod"}, product);
  r.add({"Cumsum"}, [](Grad &g) {
    g.set(0, cumulative("Cumsum", g.dy(), g.in(1), g.boolAttr("exclusive"), !g.boolAttr("reverse")));
  });
  r.add({"Cumprod"}, [](Grad &g) {
    Val sums = cumulative("Cumsum", Conj(g.out()) * g.dy(), g.in(1), g.boolAttr("exclusive"), !g.boolAttr("reverse"));
    g.set(0, DivNoNan(sums, Conj(g.in(0))));
  });
  r.add({"CumulativeLogsumexp"}, cumulativeLogSumExp);
}

} // namespace lathe::graphdef
