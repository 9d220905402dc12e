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

/// Normal(mean, stddev) cut at two bounds: a sample moves along with its bounds by its share of the probability between them. As
/// TensorFlow has it, mean and stddev move the bounds, too.
void truncatedNormal(Grad &g) {
  Val mean = g.in(2), stddev = g.in(3), y = (g.out() - mean) / stddev;
  Val low = (g.in(4) - mean) / stddev, high = (g.in(5) - mean) / stddev;
  auto below = [](Val x) { return call("Erfc", {x * -0.7071067811865476}) * 0.5; };
  const DType type = mean.type();
  const double tiny = type == DType::Float64 ? 2.2250738585072014e-308 : type == DType::Float32 ? 1.17549435e-38 : 6.104e-05;
  const double epsilon = type == DType::Float64 ? 2.220446049250313e-16 : type == DType::Float32 ? 1.1920929e-07 : 0.000977;
  Val share = (below(y) - below(low)) / (below(high) - below(low));
  share = Maximum(Minimum(share, like(share, 1 - epsilon)), like(share, tiny));
  auto sum = [&](int i, Val partial) {
    Val shape = Shape(g.in(i));
    g.set(i, sumTo(g.dy() * partial, call("BroadcastGradientArgs", {Shape(g.out()), shape}).at(1), shape));
  };
  sum(2, OnesLike(y));
  sum(3, y);
  sum(4, Exp((Square(y) - Square(low)) * 0.5 + call("Log1p", {-share})));
  sum(5, Exp((Square(y) - Square(high)) * 0.5 + Log(share)));
}

} // namespace

void addRandomRules(Rules &r) {
  r.add({"StatelessParameterizedTruncatedNormal"}, truncatedNormal);
  r.add({"RandomGamma"}, [](Grad &g) { g.set(1, perAlpha(g, g.in(1))); });
  r.add({"StatelessRandomGammaV2"}, [](Grad &g) { g.set(2, perBroadcast(g, g.in(2))); });
  r.add({"StatelessRandomGammaV3"}, [](Grad &g) { g.set(4, perBroadcast(g, g.in(4))); });
}

} // namespace lathe::graphdef
