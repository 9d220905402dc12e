// Activations, softmax and biases.
#include "graph/gradients/Expr.h"
#include "graph/gradients/Rules.h"

namespace lathe::graphdef {
namespace {

/// Op(dy, what) with the node's attributes.
Val scaled(Grad &g, const char *op, Val by) { return call(op, {g.dy(), by}, g.attrs({"alpha"})); }

void addRectifiers(Rules &r) {
  r.add({"Relu"}, [](Grad &g) { g.set(0, scaled(g, "ReluGrad", g.out())); });
  r.add({"Relu6"}, [](Grad &g) { g.set(0, scaled(g, "Relu6Grad", g.out())); });
  r.add({"LeakyRelu"}, [](Grad &g) { g.set(0, scaled(g, "LeakyReluGrad", g.in(0))); });
  r.add({"Elu"}, [](Grad &g) { g.set(0, scaled(g, "EluGrad", g.out())); });
  r.add({"Selu"}, [](Grad &g) { g.set(0, scaled(g, "SeluGrad", g.out())); });
  r.add({"Softplus"}, [](Grad &g) { g.set(0, scaled(g, "SoftplusGrad", g.in(0))); });
  r.add({"Softsign"}, [](Grad &g) { g.set(0, scaled(g, "SoftsignGrad", g.in(0))); });
  // linear in the gradient; the steps have no slope of their own
  r.add({"ReluGrad", "Relu6Grad", "LeakyReluGrad"}, [](Grad &g) {
    g.set(0, scaled(g, g.node.op().c_str(), g.in(1)));
    g.set(1, ZerosLike(g.in(1)));
  });
  // a multiple of (y + constant) below 0
  r.add({"EluGrad", "SeluGrad"}, [](Grad &g) {
    Val y = g.in(1);
    g.set(0, scaled(g, g.node.op().c_str(), y));
    g.set(1, Select(Less(y, like(y, 0)), g.dy() * g.in(0), ZerosLike(y)));
  });
  r.add({"SoftplusGrad"}, [](Grad &g) {
    Val x = g.in(1);
    g.set(0, scaled(g, "SoftplusGrad", x));
    g.set(1, g.dy() * g.in(0) / (Exp(-x) + Exp(x) + 2));
  });
}

/// The bias's dimension of a value: the last, or the one behind the batch.
void addBiases(Rules &r) {
  r.add({"BiasAdd"}, [](Grad &g) {
    g.set(0, g.dy());
    g.set(1, call("BiasAddGrad", {g.dy()}, g.attrs({"data_format"})));
  });
  r.add({"BiasAddV1"}, [](Grad &g) {
    g.set(0, g.dy());
    g.set(1, Sum(g.dy(), upTo(Rank(g.dy()) - 1)));
  });
  r.add({"BiasAddGrad"}, [](Grad &g) {
    Val shape = Shape(g.in(0)), bias = g.dy();
    if (g.node.stringAttr("data_format") == "NCHW") {
      Val ones = Fill(Reshape(Rank(g.in(0)) - 2, ints(bias, {1})), intOf(bias, 1));
      bias = Reshape(bias, Concat({ints(bias, {1}), Shape(bias), ones}, intOf(bias, 0)));
    }
    g.set(0, BroadcastTo(bias, shape));
  });
}

} // namespace

void addActivationRules(Rules &r) {
  addRectifiers(r);
  addBiases(r);
  r.add({"Softmax"}, [](Grad &g) {
    Val y = g.out();
    g.set(0, (g.dy() - sumAt(g.dy() * y, -1, true)) * y);
  });
  r.add({"LogSoftmax"}, [](Grad &g) { g.set(0, g.dy() - sumAt(g.dy(), -1, true) * Exp(g.out())); });
}

} // namespace lathe::graphdef
