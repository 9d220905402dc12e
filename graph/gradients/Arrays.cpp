// Ops that move elements: shapes, concatenations, transposes, padding, blocks.
#include "graph/gradients/Expr.h"
#include "graph/gradients/Rules.h"

namespace lathe::graphdef {
namespace {

void addHandedOn(Rules &r) {
  r.add({"Identity", "RefIdentity", "PlaceholderWithDefault", "EnsureShape", "DebugGradientIdentity", "Copy", "CopyHost", "DeepCopy",
         "Print", "CheckPinned"},
        [](Grad &g) { g.set(0, g.handedOn()); });
  r.add({"IdentityN"}, [](Grad &g) {
    for (int i = 0; i < g.node.numInputs(); ++i)
      if (g.has(i))
        g.set(i, g.handedOn(i));
  });
  r.add({"CheckNumerics", "CheckNumericsV2"}, [](Grad &g) { g.set(0, call(g.node.op().c_str(), {g.dy()}, g.attrs({"message"}))); });
  r.add({"PreventGradient"}, [](Grad &g) { g.fail("refuses to be differentiated: " + g.node.stringAttr("message")); });
  r.add({"Reshape", "ExpandDims", "Squeeze"}, [](Grad &g) { g.set(0, Reshape(g.dy(), Shape(g.in(0)))); });
  r.add({"Fill"}, [](Grad &g) { g.set(1, sumAll(g.dy())); });
}

/// Parts of dy as long along the axis as each value was.
void concat(Grad &g, Val axis, const std::vector<Val> &values, int first) {
  if (values.size() == 1) {
    g.set(first, g.dy());
    return;
  }
  Val sizes = call("ShapeN", {values});
  axis = FloorMod(Cast(axis, DType::Int32), Rank(values[0]));
  Val offsets = call("ConcatOffset", {axis, sizes.all()});
  for (size_t i = 0; i < values.size(); ++i)
    g.set(first + static_cast<int>(i), Slice(g.dy(), offsets.at(static_cast<int>(i)), sizes.at(static_cast<int>(i))));
}

std::vector<Val> allDys(Grad &g) {
  std::vector<Val> out;
  for (int i = 0; i < g.node.numOutputs(); ++i)
    out.push_back(g.dy(i));
  return out;
}

Val joined(Grad &g, Val axis) { return g.node.numOutputs() == 1 ? g.dy() : Concat(allDys(g), axis); }

void addJoining(Rules &r) {
  r.add({"Concat"}, [](Grad &g) { concat(g, g.in(0), g.ins("values"), 1); });
  r.add({"ConcatV2"}, [](Grad &g) { concat(g, g.in(g.node.numInputs() - 1), g.ins("values"), 0); });
  r.add({"Split"}, [](Grad &g) { g.set(1, joined(g, g.in(0))); });
  r.add({"SplitV"}, [](Grad &g) { g.set(0, joined(g, g.in(2))); });
  r.add({"Pack"}, [](Grad &g) {
    int n = g.node.numInputs();
    Val parts = call("Unpack", {g.dy()}, {{"num", n}, {"axis", g.intAttr("axis")}});
    for (int i = 0; i < n; ++i)
      g.set(i, parts.at(i));
  });
  r.add({"Unpack"}, [](Grad &g) { g.set(0, Pack(allDys(g), static_cast<int>(g.intAttr("axis")))); });
  r.add({"ParallelConcat"}, [](Grad &g) {
    for (int i = 0; i < g.node.numInputs(); ++i)
      g.set(i, call("StridedSlice", {g.dy(), ints(g.dy(), {i}), ints(g.dy(), {i + 1}), ints(g.dy(), {1})}));
  });
}

/// Among replicas.
void addReplicas(Rules &r) {
  r.add({"CrossReplicaSum"}, [](Grad &g) { g.set(0, call("CrossReplicaSum", {g.dy(), g.in(1)})); });
  r.add({"AllToAll"}, [](Grad &g) {
    g.set(0, call("AllToAll", {g.dy(), g.in(1)},
                  {{"concat_dimension", g.intAttr("split_dimension")},
                   {"split_dimension", g.intAttr("concat_dimension")},
                   {"split_count", g.intAttr("split_count")}}));
  });
}

void addOrder(Rules &r) {
  r.add({"Transpose", "ConjugateTranspose"}, [](Grad &g) { g.set(0, call(g.node.op().c_str(), {g.dy(), InvertPermutation(g.in(1))})); });
  r.add({"Reverse", "ReverseV2"}, [](Grad &g) { g.set(0, call(g.node.op().c_str(), {g.dy(), g.in(1)})); });
  r.add({"ReverseSequence"},
        [](Grad &g) { g.set(0, call("ReverseSequence", {g.dy(), g.in(1)}, g.attrs({"seq_dim", "batch_dim"}))); });
  r.add({"Roll"}, [](Grad &g) { g.set(0, call("Roll", {g.dy(), -g.in(1), g.in(2)})); });
  r.add({"SpaceToDepth"}, [](Grad &g) { g.set(0, call("DepthToSpace", {g.dy()}, g.attrs({"block_size", "data_format"}))); });
  r.add({"DepthToSpace"}, [](Grad &g) { g.set(0, call("SpaceToDepth", {g.dy()}, g.attrs({"block_size", "data_format"}))); });
  r.add({"SpaceToBatch"}, [](Grad &g) { g.set(0, call("BatchToSpace", {g.dy(), g.in(1)}, g.attrs({"block_size"}))); });
  r.add({"BatchToSpace"}, [](Grad &g) { g.set(0, call("SpaceToBatch", {g.dy(), g.in(1)}, g.attrs({"block_size"}))); });
  r.add({"SpaceToBatchND"}, [](Grad &g) { g.set(0, call("BatchToSpaceND", {g.dy(), g.in(1), g.in(2)})); });
  r.add({"BatchToSpaceND"}, [](Grad &g) { g.set(0, call("SpaceToBatchND", {g.dy(), g.in(1), g.in(2)})); });
}

void addRepeating(Rules &r) {
  r.add({"BroadcastTo"}, [](Grad &g) {
    Val shape = Shape(g.in(0), g.node.inputType(1));
    g.set(0, sumTo(g.dy(), call("BroadcastGradientArgs", {shape, g.in(1)}), shape));
  });
  r.add({"Tile"}, [](Grad &g) {
    // every dimension as (copies, size), summed over the copies
    Val shape = Shape(g.in(0), g.node.inputType(1));
    Val split = flat(Pack({g.in(1), shape}, 1));
    Val axes = Range(intOf(shape, 0), Size(split), intOf(shape, 2));
    g.set(0, Reshape(Sum(Reshape(g.dy(), split), axes), shape));
  });
  r.add({"Pad", "PadV2"}, [](Grad &g) {
    DType type = g.node.inputType(1);
    Val before = flat(Slice(g.in(1), ints(g.in(1), {0, 0}), Pack({Rank(g.in(0)), intOf(g.in(1), 1)})));
    g.set(0, Slice(g.dy(), before, Shape(g.in(0), type)));
  });
  r.add({"MirrorPad"}, [](Grad &g) { g.set(0, call("MirrorPadGrad", {g.dy(), g.in(1)}, g.attrs({"mode"}))); });
  r.add({"MirrorPadGrad"}, [](Grad &g) { g.set(0, call("MirrorPad", {g.dy(), g.in(1)}, g.attrs({"mode"}))); });
}

/// The positions that each patch was taken from come as patches of numbered positions; elements that read one position are
/// summed. Position 0 is padding.
void patches(Grad &g, int spatial) {
  Val x = g.in(0), sizes = Shape(x), one = ints(x, {1});
  Val extent = part(sizes, 1, 1 + spatial);
  Val count = call("Prod", {extent, intOf(x, 0)});
  Val channels = element(sizes, 1 + spatial), batch = element(sizes, 0);
  Val numbered = Reshape(Range(intOf(x, 1), count + 1, intOf(x, 1)), Concat({one, extent, one}, intOf(x, 0)));
  NamedAttrs attrs = g.attrs({"ksizes", "strides", "rates", "padding"});
  Val from = flat(call(g.node.op().c_str(), {numbered}, attrs));
  Val rows = Reshape(g.dy(), Pack({batch, Size(from), channels}));
  Val byPosition = call("UnsortedSegmentSum", {Transpose(rows, ints(x, {1, 0, 2})), from - 1, count});
  g.set(0, Reshape(Transpose(byPosition, ints(x, {1, 0, 2})), sizes));
}

} // namespace

void addArrayRules(Rules &r) {
  addHandedOn(r);
  addJoining(r);
  addOrder(r);
  addReplicas(r);
  addRepeating(r);
  r.add({"ExtractImagePatches"}, [](Grad &g) { patches(g, 2); });
  r.add({"ExtractVolumePatches"}, [](Grad &g) { patches(g, 3); });
}

} // namespace lathe::graphdef
