// Slices, partitions and stitches.
#include "graph/gradients/Expr.h"
#include "graph/gradients/Rules.h"

namespace lathe::graphdef {
namespace {

NamedAttrs masks(Grad &g) { return g.attrs({"begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"}); }

/// The elements of a slice put back among zeros of `shape`.
Val unslice(Grad &g, Val shape, int first) {
  return call("StridedSliceGrad", {shape, g.in(first), g.in(first + 1), g.in(first + 2), g.dy()}, masks(g));
}

Val sliceAgain(Grad &g, Val x, int first) { return call("StridedSlice", {x, g.in(first), g.in(first + 1), g.in(first + 2)}, masks(g)); }

} // namespace

void addSliceRules(Rules &r) {
  r.add({"Slice"}, [](Grad &g) {
    DType type = g.node.inputType(1);
    Val begin = g.in(1);
    Val after = Shape(g.in(0), type) - Shape(g.dy(), type) - begin;
    g.set(0, Pad(g.dy(), Pack({begin, after}, 1)));
  });
  r.add({"StridedSlice"}, [](Grad &g) {
    // TensorFlow's shape op has no int16
    DType type = g.node.inputType(1);
    Val shape = type == DType::Int16 ? Cast(Shape(g.in(0)), type) : Shape(g.in(0), type);
    g.set(0, unslice(g, shape, 1));
  });
  r.add({"StridedSliceGrad"}, [](Grad &g) { g.set(4, sliceAgain(g, g.dy(), 1)); });
  r.add({"TensorStridedSliceUpdate"}, [](Grad &g) {
    g.set(0, call("TensorStridedSliceUpdate", {g.dy(), g.in(1), g.in(2), g.in(3), ZerosLike(g.in(4))}, masks(g)));
    g.set(4, sliceAgain(g, g.dy(), 1));
  });
  r.add({"DynamicPartition"}, [](Grad &g) {
    // where each element came from, partitioned as the data was
    Val partitions = g.in(1);
    int n = static_cast<int>(g.intAttr("num_partitions"));
    Val places = Reshape(upTo(Size(partitions)), Shape(partitions));
    Val from = call("DynamicPartition", {places, partitions}, {{"num_partitions", n}});
    std::vector<Val> dys;
    for (int i = 0; i < n; ++i)
      dys.push_back(g.dy(i));
    g.set(0, Reshape(call("DynamicStitch", {from.all(), dys}), Shape(g.in(0))));
  });
  r.add({"DynamicStitch", "ParallelDynamicStitch"}, [](Grad &g) {
    int n = g.node.numInputs() / 2;
    for (int i = 0; i < n; ++i)
      g.set(n + i, gather(g.dy(), g.in(i)));
  });
}

} // namespace lathe::graphdef
