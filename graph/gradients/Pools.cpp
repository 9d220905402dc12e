// Pooling.
#include "graph/gradients/Expr.h"
#include "graph/gradients/Rules.h"

namespace lathe::graphdef {
namespace {

NamedAttrs poolAttrs(Grad &g) { return g.attrs({"ksize", "strides", "padding", "explicit_paddings", "data_format"}); }

/// The same without explicit paddings, which second derivatives do not have.
NamedAttrs plainAttrs(Grad &g) { return g.attrs({"ksize", "strides", "padding", "data_format"}); }

/// (x, y, dy): x and y only choose, so that their gradients are 0.
void chosen(Grad &g, Val toThird) {
  g.set(0, ZerosLike(g.in(0)));
  g.set(1, ZerosLike(g.in(1)));
  g.set(2, toThird);
}

} // namespace

void addPoolRules(Rules &r) {
  r.add({"AvgPool"}, [](Grad &g) { g.set(0, call("AvgPoolGrad", {Shape(g.in(0)), g.dy()}, plainAttrs(g))); });
  r.add({"AvgPool3D"}, [](Grad &g) { g.set(0, call("AvgPool3DGrad", {Shape(g.in(0)), g.dy()}, plainAttrs(g))); });
  r.add({"AvgPoolGrad"}, [](Grad &g) { g.set(1, call("AvgPool", {g.dy()}, plainAttrs(g))); });
  r.add({"AvgPool3DGrad"}, [](Grad &g) { g.set(1, call("AvgPool3D", {g.dy()}, plainAttrs(g))); });
  r.add({"MaxPool"}, [](Grad &g) { g.set(0, call("MaxPoolGrad", {g.in(0), g.out(), g.dy()}, poolAttrs(g))); });
  r.add({"MaxPoolV2"}, [](Grad &g) { g.set(0, call("MaxPoolGradV2", {g.in(0), g.out(), g.dy(), g.in(1), g.in(2)}, plainAttrs(g))); });
  r.add({"MaxPool3D"}, [](Grad &g) { g.set(0, call("MaxPool3DGrad", {g.in(0), g.out(), g.dy()}, plainAttrs(g))); });
  r.add({"MaxPoolGrad", "MaxPool3DGrad"}, [](Grad &g) {
    chosen(g, call((g.node.op() + "Grad").c_str(), {g.in(0), g.in(1), g.dy()}, plainAttrs(g)));
  });
  r.add({"MaxPoolGradV2"}, [](Grad &g) {
    chosen(g, call("MaxPoolGradGradV2", {g.in(0), g.in(1), g.dy(), g.in(3), g.in(4)}, plainAttrs(g)));
  });
  r.add({"MaxPoolGradGrad", "MaxPool3DGradGrad"}, [](Grad &g) {
    const char *op = g.node.op() == "MaxPoolGradGrad" ? "MaxPoolGrad" : "MaxPool3DGrad";
    chosen(g, call(op, {g.in(0), g.in(1), g.dy()}, plainAttrs(g)));
  });
  r.add({"MaxPoolWithArgmax"}, [](Grad &g) {
    g.set(0, call("MaxPoolGradWithArgmax", {g.in(0), g.dy(), g.out(1)}, g.attrs({"ksize", "strides", "padding", "include_batch_in_index"})));
  });
  r.add({"FractionalAvgPool"}, [](Grad &g) {
    g.set(0, call("FractionalAvgPoolGrad", {Shape(g.in(0), DType::Int64), g.dy(), g.out(1), g.out(2)}, g.attrs({"overlapping"})));
  });
  r.add({"FractionalMaxPool"}, [](Grad &g) {
    g.set(0, call("FractionalMaxPoolGrad", {g.in(0), g.out(), g.dy(), g.out(1), g.out(2)}, g.attrs({"overlapping"})));
  });
}

} // namespace lathe::graphdef
