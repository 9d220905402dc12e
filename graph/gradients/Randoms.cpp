// Samples that depend on parameters in a differentiable way.
#include "graph/gradients/Expr.h"
#include "graph/gradients/Rules.h"

namespace lathe::graphdef {
namespace {

/// Sums over the samples of each alpha, which come in front of alpha's own dimensions.
Val perAlpha(Grad &g, Val alpha) {
  Val shape = Shape(alpha);
  Val samples = Size(Shape(g.out())) - Size(shape);
  Val ones = Fill(Reshape(samples, ints(alpha, {1})), intOf(alpha, 1));
  Val wide = Reshape(alpha, Concat({ones, shape}, intOf(alpha, 0)));
  Val partial = call("RandomGammaGrad", {wide, g.out()});
  return Reshape(Sum(g.dy() * partial, upTo(samples)), shape);
}

/// Alpha broadcast to the shape of samples.
Val perBroadcast(Grad &g, Val alpha) {
  Val shape = Shape(alpha);
  Val partial = call("RandomGammaGrad", {BroadcastTo(alpha, Shape(g.out())), g.out()});
  Val axes = call("BroadcastGradientArgs", {Shape(g.out()), shape}).at(1);
  return sumTo(g.dy() * partial, axes, shape);
}

} // namespace

void addRandomRules(Rules &r) {
  r.add({"RandomGamma"}, [](Grad &g) { g.set(1, perAlpha(g, g.in(1))); });
  r.add({"StatelessRandomGammaV2"}, [](Grad &g) { g.set(2, perBroadcast(g, g.in(2))); });
  r.add({"StatelessRandomGammaV3"}, [](Grad &g) { g.set(4, perBroadcast(g, g.in(4))); });
}

} // namespace lathe::graphdef
