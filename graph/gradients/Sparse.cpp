// Sparse tensors by coordinates, and ragged ones.
#include "graph/gradients/Expr.h"
#include "graph/gradients/Rules.h"

namespace lathe::graphdef {
namespace {

/// Column i of coordinates.
Val coordinate(Val indices, int i) { return lastAt(indices, i); }

/// (indices, values, shape, dense): at each coordinate a product or quotient with what broadcasting puts there.
void withDense(Grad &g, bool isProduct) {
  Val indices = g.in(0), values = g.in(1), shape = g.in(2), dense = g.in(3);
  Val denseShape = Shape(dense, DType::Int64);
  Val added = Reshape(Size(shape) - Size(denseShape), ints(dense, {1}));
  Val zero = intOf(dense, 0);
  Val aligned = Concat({Cast(Fill(added, intOf(dense, 1)), DType::Int64), denseShape}, zero);
  Val scaled = FloorDiv(indices, FloorDiv(shape, aligned));
  scaled = Slice(scaled, Concat({ints(dense, {0}), added}, zero), ints(dense, {-1, -1}));
  Val there = GatherNd(dense, scaled), d = g.dy();
  g.set(1, isProduct ? d * there : d / there);
  Val toDense = isProduct ? d * values : d * -values / Square(there);
  g.set(3, ScatterNd(scaled, toDense, denseShape));
}

/// The dot product of rows of the gradient and of the dense operand at each coordinate.
void denseMatMul(Grad &g) {
  bool adjA = g.boolAttr("adjoint_a"), adjB = g.boolAttr("adjoint_b");
  Val indices = g.in(0), b = g.in(3), d = g.dy();
  Val db = call("SparseTensorDenseMatMul", {indices, g.in(1), g.in(2), d}, {{"adjoint_a", !adjA}, {"adjoint_b", false}});
  g.set(3, adjB ? adjoint(db) : db);
  Val rows = coordinate(indices, 0), cols = coordinate(indices, 1);
  Val ofGrad = gather(d, adjA ? cols : rows), ofDense = gather(adjB ? matrixTranspose(b) : b, adjA ? rows : cols);
  Val product = sumAt(ofGrad * (adjB ? ofDense : Conj(ofDense)), -1);
  g.set(1, adjA ? Conj(product) : product);
}

void reduceSum(Grad &g) {
  Val indices = g.in(0), shape = g.in(2);
  Val kept = reducedShape(shape, g.in(3));
  Val d = Reshape(g.dy(), kept);
  g.set(1, GatherNd(d, FloorDiv(indices, FloorDiv(shape, Cast(kept, DType::Int64)))));
}

/// Softmax over what is there: (dy - sum(dy y)) y by rows.
void softmax(Grad &g) {
  Val indices = g.in(0), shape = g.in(2), y = g.out();
  Val rowSums = call("SparseReduceSum", {indices, g.dy() * y, shape, ints(y, {-1})}, {{"keep_dims", true}});
  Val spread = call("SparseDenseCwiseAdd", {indices, g.dy(), shape, -rowSums});
  g.set(1, spread * y);
}

void reorder(Grad &g) {
  Val indices = g.in(0);
  Val numbers = upTo(element(Shape(indices), 0));
  Val order = call("SparseReorder", {indices, numbers, g.in(2)}).at(1);
  g.set(1, gather(g.dy(1), InvertPermutation(order)));
}

void addCoordinates(Rules &r) {
  r.add({"SparseReorder"}, reorder);
  r.add({"SparseAdd"}, [](Grad &g) {
    Val d = call("SparseAddGrad", {g.dy(1), g.in(0), g.in(3), g.out(0)});
    g.set(1, d);
    g.set(4, d.at(1));
  });
  r.add({"SparseTensorDenseAdd"}, [](Grad &g) {
    g.set(1, GatherNd(g.dy(), g.in(0)));
    g.set(3, g.dy());
  });
  r.add({"SparseReduceSum"}, reduceSum);
  r.add({"SparseSlice"}, [](Grad &g) { g.set(1, call("SparseSliceGrad", {g.dy(1), g.in(0), g.in(3), g.out(0)})); });
  r.add({"SparseTensorDenseMatMul"}, denseMatMul);
  r.add({"SparseDenseCwiseMul"}, [](Grad &g) { withDense(g, true); });
  r.add({"SparseDenseCwiseDiv"}, [](Grad &g) { withDense(g, false); });
  r.add({"SparseSoftmax"}, softmax);
  r.add({"SparseFillEmptyRows", "RaggedFillEmptyRows"}, [](Grad &g) {
    bool sparse = g.node.op() == "SparseFillEmptyRows";
    Val d = call(sparse ? "SparseFillEmptyRowsGrad" : "RaggedFillEmptyRowsGrad", {g.out(3), g.dy(1)});
    g.set(1, d);
    g.set(3, d.at(1));
  });
  r.add({"SparseToDense"}, [](Grad &g) {
    Val d = GatherNd(g.dy(), g.in(0));
    // one index a row needs no column; values may be one for all
    Val shape = Shape(g.in(2));
    Val axes = call("BroadcastGradientArgs", {Shape(d), shape}).at(1);
    g.set(2, sumTo(d, axes, shape));
    g.set(3, sumAll(g.dy()) - sumAll(d));
  });
}

/// By partitions to coordinates of a dense tensor of numbered rows: gathering dy there gives the gradient of the values.
void raggedToTensor(Grad &g) {
  Val values = g.in(1), defaultValue = g.in(2);
  Val rows = element(Shape(values), 0);
  // number the rows from 1; 0 is the default
  std::vector<ArgVals> args{Shape(g.dy()), Range(intOf(values, 1), rows + 1, intOf(values, 1)), intOf(values, 0), ArgVals(g.ins("row_partition_tensors"))};
  Val outer = Rank(g.dy()) - Rank(values) + 1;
  args[0] = Slice(Shape(g.dy()), ints(values, {0}), Reshape(outer, ints(values, {1})));
  Val numbered = call("RaggedTensorToTensor", args, g.attrs({"row_partition_types"}));
  Val inner = part(Shape(values), 1);
  Val flatRows = Reshape(g.dy(), Concat({ints(values, {-1}), inner}, intOf(values, 0)));
  Val ids = flat(numbered);
  Val sums = call("UnsortedSegmentSum", {flatRows, ids, rows + 1});
  g.set(1, Slice(sums, Concat({ints(values, {1}), ZerosLike(inner)}, intOf(values, 0)), Fill(Reshape(Rank(sums), ints(values, {1})), intOf(values, -1))));
  Val shape = Shape(defaultValue);
  Val toDefault = gather(sums, intOf(values, 0));
  g.set(2, sumTo(toDefault, call("BroadcastGradientArgs", {Shape(toDefault), shape}).at(1), shape));
}

/// Each value taken knows its place by gathering numbered values.
void raggedGather(Grad &g) {
  std::vector<Val> splits = g.ins("params_nested_splits");
  Val values = g.in(static_cast<int>(splits.size())), indices = g.in(static_cast<int>(splits.size()) + 1);
  Val rows = element(Shape(values), 0);
  Val numbered = call("RaggedGather", {splits, upTo(rows), indices}, g.attrs({"OUTPUT_RAGGED_RANK"}));
  int last = g.node.numOutputs() - 1;
  g.set(static_cast<int>(splits.size()), call("UnsortedSegmentSum", {g.dy(last), numbered.at(last), rows}));
}

/// Matrices by compressed rows, in a variant.
void addCompressed(Rules &r) {
  r.add({"DenseToCSRSparseMatrix"}, [](Grad &g) { g.set(0, call("CSRSparseMatrixToDense", {g.dy()}, {{"type", g.node.inputType(0)}})); });
  r.add({"CSRSparseMatrixToDense"}, [](Grad &g) {
    Val indices = call("CSRSparseMatrixToSparseTensor", {g.in(0)}, g.attrs({"type"}));
    g.set(0, call("DenseToCSRSparseMatrix", {g.dy(), indices}));
  });
  r.add({"SparseTensorToCSRSparseMatrix"}, [](Grad &g) {
    g.set(1, GatherNd(call("CSRSparseMatrixToDense", {g.dy()}, {{"type", g.node.inputType(1)}}), g.in(0)));
  });
  r.add({"CSRSparseMatrixToSparseTensor"},
        [](Grad &g) { g.set(0, call("SparseTensorToCSRSparseMatrix", {g.out(0), g.dy(1), g.out(2)})); });
  r.add({"SparseMatrixTranspose"}, [](Grad &g) { g.set(0, call("SparseMatrixTranspose", {g.dy()}, g.attrs({"conjugate", "type"}))); });
  r.add({"SparseMatrixSoftmax"}, [](Grad &g) { g.set(0, call("SparseMatrixSoftmaxGrad", {g.out(), g.dy()}, g.attrs({"type"}))); });
}

} // namespace

void addSparseRules(Rules &r) {
  addCompressed(r);
  addCoordinates(r);
  r.add({"RaggedTensorToTensor"}, raggedToTensor);
  r.add({"RaggedGather"}, raggedGather);
  r.add({"RaggedTensorToSparse"}, [](Grad &g) { g.set(g.node.numInputs() - 1, Reshape(g.dy(1), Shape(g.in(g.node.numInputs() - 1)))); });
}

} // namespace lathe::graphdef
