// Convolutions and dilations, each the derivative of another.
#include "graph/gradients/Expr.h"
#include "graph/gradients/Rules.h"

namespace lathe::graphdef {
namespace {

NamedAttrs convAttrs(Grad &g) {
  return g.attrs({"strides", "padding", "use_cudnn_on_gpu", "explicit_paddings", "data_format", "dilations"});
}

/// The names of one kind of convolution and of its two gradients.
struct Family {
  const char *forward, *input, *filter;
};

const Family &familyOf(const std::string &op) {
  static const Family conv2d{"Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"};
  static const Family conv3d{"Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2"};
  static const Family depthwise{"DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dNativeBackpropFilter"};
  return op[0] == 'D' ? depthwise : op[4] == '2' ? conv2d : conv3d;
}

Val toInput(Grad &g, Val x, Val filter, Val dy) { return call(familyOf(g.node.op()).input, {Shape(x), filter, dy}, convAttrs(g)); }
Val toFilter(Grad &g, Val x, Val filter, Val dy) { return call(familyOf(g.node.op()).filter, {x, Shape(filter), dy}, convAttrs(g)); }
Val forward(Grad &g, Val x, Val filter) { return call(familyOf(g.node.op()).forward, {x, filter}, convAttrs(g)); }

} // namespace

void addConvRules(Rules &r) {
  r.add({"Conv2D", "Conv3D", "DepthwiseConv2dNative"}, [](Grad &g) {
    g.set(0, toInput(g, g.in(0), g.in(1), g.dy()));
    g.set(1, toFilter(g, g.in(0), g.in(1), g.dy()));
  });
  // (sizes, filter, dy)
  r.add({"Conv2DBackpropInput", "Conv3DBackpropInputV2", "DepthwiseConv2dNativeBackpropInput"}, [](Grad &g) {
    g.set(1, toFilter(g, g.dy(), g.in(1), g.in(2)));
    g.set(2, forward(g, g.dy(), g.in(1)));
  });
  // (x, sizes, dy)
  r.add({"Conv2DBackpropFilter", "Conv3DBackpropFilterV2", "DepthwiseConv2dNativeBackpropFilter"}, [](Grad &g) {
    g.set(0, toInput(g, g.in(0), g.dy(), g.in(2)));
    g.set(2, forward(g, g.in(0), g.dy()));
  });
  r.add({"Dilation2D"}, [](Grad &g) {
    NamedAttrs attrs = g.attrs({"strides", "rates", "padding"});
    g.set(0, call("Dilation2DBackpropInput", {g.in(0), g.in(1), g.dy()}, attrs));
    g.set(1, call("Dilation2DBackpropFilter", {g.in(0), g.in(1), g.dy()}, attrs));
  });
}

} // namespace lathe::graphdef
