// Gathers, scatters and the largest of many.
#include "graph/gradients/Expr.h"
#include "graph/gradients/Rules.h"

namespace lathe::graphdef {
namespace {

Val asVector(Val scalar) { return Reshape(scalar, ints(scalar, {1})); }

/// What was gathered along `axis` (a scalar within the rank) of something of `shape`, summed by index.
Val gathered(Val dy, Val shape, Val indices, Val axis) {
  Val rank = Size(shape), zero = intOf(dy, 0), one = intOf(dy, 1);
  auto piece = [&](Val from, Val to) { return gather(shape, Range(from, to, one)); };
  Val outer = piece(zero, axis), inner = piece(axis + 1, rank);
  Val rows = Reshape(dy, Concat({outer, asVector(Size(indices)), inner}, zero));
  // the axis in front, and back again
  Val perm = Concat({asVector(axis), upTo(axis), Range(axis + 1, rank, one)}, zero);
  Val sums = call("UnsortedSegmentSum", {Transpose(rows, perm), flat(indices), gather(shape, axis)});
  return Transpose(sums, InvertPermutation(perm));
}

/// The same along the first dimension, as rows.
GradVal gatheredRows(Val dy, Val shape, Val indices) {
  return {Reshape(dy, Concat({asVector(Size(indices)), part(shape, 1)}, intOf(dy, 0))), flat(indices), shape};
}

/// With batch dimensions: one gather from rows of all batches, at indices moved by the batch's start.
Val gatheredBatches(Val dy, Val shape, Val indices, Val axis, Val batchDims) {
  Val zero = intOf(dy, 0), one = intOf(dy, 1), rank = Size(shape);
  auto piece = [&](Val from, Val to) { return gather(shape, Range(from, to, one)); };
  Val batch = piece(zero, batchDims), count = call("Prod", {batch, zero});
  Val outer = piece(batchDims, axis), inner = piece(axis + 1, rank);
  Val size = gather(shape, axis), perBatch = FloorDiv(Size(indices), Maximum(count, one));
  auto prod = [&](Val v) { return call("Prod", {v, zero}); };
  // [batch, outer, indices, inner] with indices in front of outer
  Val rows = Transpose(Reshape(dy, Pack({count, prod(outer), perBatch, prod(inner)})), ints(dy, {0, 2, 1, 3}));
  Val starts = Reshape(upTo(count) * size, ints(dy, {-1, 1}));
  Val where = Reshape(Cast(indices, DType::Int32), Pack({count, perBatch})) + starts;
  Val sums = call("UnsortedSegmentSum", {Reshape(rows, Pack({count * perBatch, prod(outer), prod(inner)})), flat(where), count * size});
  Val back = Transpose(Reshape(sums, Pack({count, size, prod(outer), prod(inner)})), ints(dy, {0, 2, 1, 3}));
  return Reshape(back, shape);
}

Val variableShape(Val handle, DType type) { return call("VariableShape", {handle}, {{"out_type", type}}); }

/// The shape of what was gathered from. That of a variable is asked of its handle, so that no function need hand on its value.
Val paramsShape(Grad &g) {
  Endpoint params = g.node.input(0);
  return params.node->op() == "ReadVariableOp" ? variableShape(g.e.val(params.node->input(0)), DType::Int32) : Shape(g.in(0));
}

/// Indices of a type that segments have.
Val gatherIndices(Grad &g) {
  Val indices = g.in(1);
  return indices.type() == DType::Int16 ? Cast(indices, DType::Int32) : indices;
}

/// How many dimensions are batches; those counted from the end are by the rank of the indices.
Val batchCount(Grad &g) {
  Val given = g.e.int32(static_cast<int32_t>(g.intAttr("batch_dims")));
  return g.intAttr("batch_dims") < 0 ? Rank(g.in(1)) + given : given;
}

bool isConstantZero(Endpoint e) {
  if (e.node->op() != "Const")
    return false;
  auto value = decodeTensor(e.node->attr("value")->tensor(), sizeof(int64_t));
  if (!value.ok() || value->numElements() != 1)
    return false;
  return value->dtype() == DType::Int32   ? *value->data<int32_t>() == 0
         : value->dtype() == DType::Int64 ? *value->data<int64_t>() == 0
                                          : false;
}

void gatherV2(Grad &g) {
  const bool batches = g.intAttr("batch_dims") != 0;
  Val shape = paramsShape(g), indices = gatherIndices(g);
  if (!batches && isConstantZero(g.node.input(2)))
    return g.set(0, gatheredRows(g.dy(), shape, indices));
  Val rank = Size(shape), axis = Reshape(FloorMod(Cast(g.in(2), DType::Int32) + rank, rank), g.e.int32s({}));
  g.set(0, batches ? gatheredBatches(g.dy(), shape, indices, axis, batchCount(g)) : gathered(g.dy(), shape, indices, axis));
}

/// Elements equal to the result share its gradient.
void tensorScatterExtreme(Grad &g) {
  Val x = g.in(0), indices = g.in(1), updates = g.in(2);
  DType type = x.type();
  Val own = Cast(Equal(x, g.out()), type), theirs = Cast(Equal(updates, GatherNd(g.out(), indices)), type);
  Val share = g.dy() / (own + ScatterNd(indices, theirs, Shape(x, indices.type())));
  g.set(0, share * own);
  g.set(2, GatherNd(share, indices) * theirs);
}

/// dy at the positions of the last dimension that `chosen` names, zeros of `shape` elsewhere.
Val atChosen(Val dy, Val shape, Val chosen) {
  Val width = element(shape, -1);
  Val rows = Reshape(chosen, Concat({ints(shape, {-1}), part(Shape(chosen), -1)}, intOf(shape, 0)));
  Val starts = Reshape(upTo(element(Shape(rows), 0)) * width, ints(shape, {-1, 1}));
  Val flatIndices = Reshape(rows + starts, ints(shape, {-1, 1}));
  Val count = asVector(call("Prod", {shape, intOf(shape, 0)}));
  return Reshape(ScatterNd(flatIndices, flat(dy), count), shape);
}

/// The same along any dimension, which comes last for the while.
void approxTopK(Grad &g) {
  Val x = g.in(0), rank = Rank(x), axis = FloorMod(intOf(x, static_cast<int32_t>(g.intAttr("reduction_dimension"))), rank);
  Val perm = Concat({upTo(axis), Range(axis + 1, rank, intOf(x, 1)), asVector(axis)}, intOf(x, 0));
  Val d = atChosen(Transpose(g.dy(), perm), gather(Shape(x), perm), Transpose(g.out(1), perm));
  g.set(0, Transpose(d, InvertPermutation(perm)));
}

} // namespace

void addGatherRules(Rules &r) {
  r.add({"Gather"}, [](Grad &g) { g.set(0, gatheredRows(g.dy(), paramsShape(g), g.in(1))); });
  r.add({"GatherV2"}, gatherV2);
  r.add({"GatherNd"}, [](Grad &g) {
    DType type = g.node.inputType(1);
    Val indices = type == DType::Int16 ? Cast(g.in(1), DType::Int32) : g.in(1);
    g.set(0, ScatterNd(indices, g.dy(), Shape(g.in(0), indices.type())));
  });
  r.add({"ReadVariableOp"}, [](Grad &g) { g.set(0, g.handedOn()); });
  r.add({"ResourceGather"}, [](Grad &g) {
    Val shape = variableShape(g.in(0), DType::Int32), batch = batchCount(g);
    g.set(0, g.intAttr("batch_dims") ? gatheredBatches(g.dy(), shape, g.in(1), batch, batch) : gatheredRows(g.dy(), shape, g.in(1)));
  });
  r.add({"ResourceGatherNd"}, [](Grad &g) { g.set(0, ScatterNd(g.in(1), g.dy(), variableShape(g.in(0), g.node.inputType(1)))); });
  r.add({"ScatterNd"}, [](Grad &g) { g.set(1, GatherNd(g.dy(), g.in(0))); });
  r.add({"ScatterNdNonAliasingAdd", "TensorScatterAdd"}, [](Grad &g) {
    g.set(0, g.dy());
    g.set(2, GatherNd(g.dy(), g.in(1)));
  });
  r.add({"TensorScatterSub"}, [](Grad &g) {
    g.set(0, g.dy());
    g.set(2, -GatherNd(g.dy(), g.in(1)));
  });
  r.add({"TensorScatterUpdate"}, [](Grad &g) {
    g.set(0, call("TensorScatterUpdate", {g.dy(), g.in(1), ZerosLike(g.in(2))}));
    g.set(2, GatherNd(g.dy(), g.in(1)));
  });
  r.add({"TensorScatterMax", "TensorScatterMin"}, tensorScatterExtreme);
  r.add({"TopK", "TopKV2"}, [](Grad &g) { g.set(0, atChosen(g.dy(), Shape(g.in(0)), Cast(g.out(1), DType::Int32))); });
  r.add({"ApproxTopK"}, approxTopK);
  r.add({"NthElement"}, [](Grad &g) {
    Val mask = Cast(Equal(expandAt(g.out(), -1), g.in(0)), g.node.inputType(0));
    g.set(0, mask / sumAt(mask, -1, true) * expandAt(g.dy(), -1));
  });
}

} // namespace lathe::graphdef
