// Simulated quantisation: gradients pass where values were not cut off.
#include "graph/gradients/Expr.h"
#include "graph/gradients/Rules.h"

namespace lathe::graphdef {

void addQuantRules(Rules &r) {
  r.add({"FakeQuantWithMinMaxArgs"}, [](Grad &g) {
    g.set(0, call("FakeQuantWithMinMaxArgsGradient", {g.dy(), g.in(0)}, g.attrs({"min", "max", "num_bits", "narrow_range"})));
  });
  r.add({"FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel"}, [](Grad &g) {
    Val d = call((g.node.op() + "Gradient").c_str(), {g.dy(), g.in(0), g.in(1), g.in(2)}, g.attrs({"num_bits", "narrow_range"}));
    for (int i = 0; i < 3; ++i)
      g.set(i, d.at(i));
  });
  r.add({"QuantizeAndDequantize", "QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3"}, [](Grad &g) { g.set(0, g.dy()); });
  r.add({"QuantizeAndDequantizeV4"}, [](Grad &g) {
    Val d = call("QuantizeAndDequantizeV4Grad", {g.dy(), g.in(0), g.in(1), g.in(2)}, g.attrs({"axis"}));
    for (int i = 0; i < 3; ++i)
      g.set(i, d.at(i));
  });
  r.add({"QuantizeAndDequantizeV4Grad"}, [](Grad &g) { g.set(0, g.dy()); });
}

} // namespace lathe::graphdef
