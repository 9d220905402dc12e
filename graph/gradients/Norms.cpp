// Normalisations.
#include "graph/gradients/Expr.h"
#include "graph/gradients/Rules.h"

namespace lathe::graphdef {
namespace {

NamedAttrs normAttrs(Grad &g) { return g.attrs({"epsilon", "data_format", "is_training"}); }

void fusedBatchNorm(Grad &g) {
  const std::string version = g.node.op().substr(std::string("FusedBatchNorm").size());
  bool training = g.boolAttr("is_training");
  std::vector<ArgVals> args{g.dy(), g.in(0), g.in(1)};
  args.push_back(training ? g.out(3) : g.in(3));
  args.push_back(training ? g.out(4) : g.in(4));
  if (version == "V3")
    args.push_back(g.out(5));
  Val d = call(("FusedBatchNormGrad" + version).c_str(), args, normAttrs(g));
  for (int i = 0; i < 3; ++i)
    g.set(i, d.at(i));
}

/// Dimensions that batch normalisation reduces over, and the shape that its vectors broadcast from.
struct NormShape {
  Val axes, vector;

  NormShape(Grad &g, Val x) {
    const std::string &format = g.node.stringAttr("data_format");
    bool channelsFirst = format.size() > 1 && format[1] == 'C';
    int rank = format.size() == 5 ? 5 : 4;
    std::vector<int32_t> reduced, shape(rank, 1);
    for (int i = 0; i < rank; ++i)
      if (i != (channelsFirst ? 1 : rank - 1))
        reduced.push_back(i);
    shape[channelsFirst ? 1 : rank - 1] = -1;
    axes = ints(x, reduced);
    vector = ints(x, shape);
  }
};

/// The second derivative: the first one written out, which the walk then differentiates. With n = (x - mean) / sigma the first
/// one is dx = scale / sigma (dy - mean(dy) - n mean(dy n)), dscale = sum(dy n), doffset = sum(dy).
void fusedBatchNormGrad(Grad &g) {
  DType type = g.node.inputType(0);
  auto wide = [](Val v) { return Cast(v, DType::Float32); };
  NormShape shape(g, g.in(0));
  auto mean = [&](Val v) { return call("Mean", {v, shape.axes}, {{"keep_dims", true}}); };
  Val dy = call("Identity", {wide(g.in(0))}), x = call("Identity", {wide(g.in(1))}), scale = call("Identity", {g.in(2)});
  double epsilon = g.node.floatAttr("epsilon");
  Val dx, dscale, doffset = Sum(dy, shape.axes);
  Val scaleRow = Reshape(scale, shape.vector);
  if (g.boolAttr("is_training")) {
    Val centred = x - mean(x);
    Val inverse = call("Rsqrt", {mean(Square(centred)) + epsilon});
    Val n = centred * inverse;
    dx = scaleRow * inverse * (dy - mean(dy) - n * mean(dy * n));
    dscale = Sum(dy * n, shape.axes);
  } else {
    Val inverse = call("Rsqrt", {Reshape(g.in(4), shape.vector) + epsilon});
    Val n = (x - Reshape(g.in(3), shape.vector)) * inverse;
    dx = scaleRow * inverse * dy;
    dscale = Sum(dy * n, shape.axes);
  }
  if (!g.e.ok())
    return;
  std::vector<Endpoint> grads;
  GradientOptions options;
  options.prefix = g.e.scope;
  absl::Status s = addGradients(g.e.graph, {dx.end, dscale.end, doffset.end}, {dy.end, x.end, scale.end},
                                {wide(g.dy(0)).end, g.dy(1).end, g.dy(2).end}, options, &grads);
  g.e.fail(s);
  if (!s.ok())
    return;
  for (int i = 0; i < 3; ++i)
    if (grads[i])
      g.set(i, i < 2 ? Cast(g.e.val(grads[i]), type) : g.e.val(grads[i]));
}

} // namespace

void addNormRules(Rules &r) {
  r.add({"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"}, fusedBatchNorm);
  r.add({"FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3"}, fusedBatchNormGrad);
  r.add({"BatchNormWithGlobalNormalization"}, [](Grad &g) {
    Val d = call("BatchNormWithGlobalNormalizationGrad", {g.in(0), g.in(1), g.in(2), g.in(4), g.dy()},
                 g.attrs({"variance_epsilon", "scale_after_normalization"}));
    for (int i = 0; i < 5; ++i)
      g.set(i, d.at(i));
  });
  r.add({"LRN"}, [](Grad &g) {
    g.set(0, call("LRNGrad", {g.dy(), g.in(0), g.out()}, g.attrs({"depth_radius", "bias", "alpha", "beta"})));
  });
}

} // namespace lathe::graphdef
