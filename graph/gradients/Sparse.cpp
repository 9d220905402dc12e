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

/// What is put in front of a matrix within a product.
enum class Turn { None, Transpose, Adjoint };

Turn turnOf(const Grad &g, const char *transpose, const char *adjoint) {
  return g.boolAttr(adjoint) ? Turn::Adjoint : g.boolAttr(transpose) ? Turn::Transpose : Turn::None;
}

Val turned(Val dense, Turn turn) { return turn == Turn::None ? dense : matrixTranspose(dense, turn == Turn::Adjoint); }

Val transposedRows(Val csr, DType type, bool conjugate) {
  return call("SparseMatrixTranspose", {csr}, {{"conjugate", conjugate}, {"type", type}});
}

/// One column of coordinates, counted from the end; for 0 all but the last two, those of the batch.
Val columns(Val indices, int from) {
  Val depth = element(Shape(indices), 1), zero = ints(indices, {0});
  auto vector = [&](Val x) { return Reshape(x, ints(indices, {1})); };
  if (from == 0)
    return Slice(indices, ints(indices, {0, 0}), Concat({ints(indices, {-1}), vector(depth - intOf(indices, 2))}, intOf(indices, 0)));
  return Slice(indices, Concat({zero, vector(depth + intOf(indices, from))}, intOf(indices, 0)), ints(indices, {-1, 1}));
}

/// C = turned A times turned B, A by compressed rows and B dense. The gradient of A is computed where A has elements, and nowhere else.
void compressedTimesDense(Grad &g) {
  Turn turnA = turnOf(g, "transpose_a", "adjoint_a"), turnB = turnOf(g, "transpose_b", "adjoint_b");
  DType type = g.node.typeAttr("T");
  Val a = g.in(0), b = g.in(1), d = g.dy();
  if (g.boolAttr("conjugate_output"))
    d = Conj(d);
  if (g.boolAttr("transpose_output"))
    d = matrixTranspose(d);
  Val there = call("CSRSparseMatrixToSparseTensor", {a}, {{"type", type}});
  Val batch = columns(there, 0), row = columns(there, -2), column = columns(there, -1), one = intOf(there, 1);
  if (turnA != Turn::None)
    std::swap(row, column);
  Val ofGrad = GatherNd(d, Concat({batch, row}, one)), ofDense = GatherNd(turned(b, turnB), Concat({batch, column}, one));
  Val values = sumAt(ofGrad * Conj(ofDense), -1);
  g.set(0, call("SparseTensorToCSRSparseMatrix", {there, turnA == Turn::Adjoint ? Conj(values) : values, there.at(2)}));
  Val ofB;
  if (turnA == Turn::Transpose) // the conjugate of A, which no product takes as such
    ofB = Conj(call("SparseMatrixMatMul", {a, Conj(d)}));
  else
    ofB = call("SparseMatrixMatMul", {a, d}, {{"adjoint_a", turnA == Turn::None}});
  g.set(1, turned(ofB, turnB));
}

/// The elements of a matrix at the places of another one, both by compressed rows: their order is that of the flat positions.
Val valuesAt(Val csr, Val indices, Val shape, DType type) {
  Val from = call("CSRSparseMatrixToSparseTensor", {csr}, {{"type", type}});
  Val strides = call("Cumprod", {shape, intOf(shape, 0)}, {{"exclusive", true}, {"reverse", true}});
  auto places = [&](Val at) { return sumAt(at * strides, 1); };
  Val wanted = places(indices), zero = intOf(indices, 0);
  // an end that no place has, whose value is 0
  Val end = Reshape(like(wanted, -1), ints(indices, {1}));
  Val have = places(from), values = Concat({from.at(1), Cast(ints(indices, {0}), type)}, zero);
  Val found = call("LowerBound", {expandAt(have, 0), expandAt(wanted, 0)});
  found = Reshape(found, ints(indices, {-1}));
  Val hit = Equal(gather(Concat({have, end}, zero), found), wanted);
  return gather(values, Select(hit, found, Fill(Shape(found), Size(have))));
}

/// A matrix with the elements of `csr` where `pattern` has some.
Val prunedTo(Val csr, Val pattern, DType type) {
  Val there = call("CSRSparseMatrixToSparseTensor", {pattern}, {{"type", type}});
  return call("SparseTensorToCSRSparseMatrix", {there, valuesAt(csr, there, there.at(2), type), there.at(2)});
}

void compressedTimesCompressed(Grad &g) {
  Turn turnA = turnOf(g, "transpose_a", "adjoint_a"), turnB = turnOf(g, "transpose_b", "adjoint_b");
  DType type = g.node.typeAttr("type");
  Val a = g.in(0), b = g.in(1), d = g.dy();
  auto product = [&](Val x, Val y, const char *how) {
    NamedAttrs attrs{{"type", type}};
    if (how)
      attrs.emplace_back(how, true);
    return call("SparseMatrixSparseMatMul", {x, y}, attrs);
  };
  auto back = [&](Val x, Turn turn) { return turn == Turn::None ? x : transposedRows(x, type, turn == Turn::Adjoint); };
  // dy times the adjoint of turned B; that of a transpose is a conjugate, two turns away from the matrix
  Val ofA = turnB == Turn::None      ? product(d, b, "adjoint_b")
            : turnB == Turn::Adjoint ? product(d, b, nullptr)
                                     : product(d, transposedRows(b, type, true), "transpose_b");
  Val ofB = turnA == Turn::None      ? product(a, d, "adjoint_a")
            : turnA == Turn::Adjoint ? product(a, d, nullptr)
                                     : product(transposedRows(a, type, true), d, "transpose_a");
  g.set(0, prunedTo(back(ofA, turnA), a, type));
  g.set(1, prunedTo(back(ofB, turnB), b, type));
}

/// By a scalar, or by one number a matrix of a batch, of shape [batch, 1, 1].
void compressedTimesNumbers(Grad &g) {
  DType type = g.node.typeAttr("T");
  Val a = g.in(0), b = g.in(1);
  Val there = call("CSRSparseMatrixToSparseTensor", {a}, {{"type", type}});
  Val d = valuesAt(g.dy(), there, there.at(2), type);
  Val pruned = call("SparseTensorToCSRSparseMatrix", {there, d, there.at(2)});
  g.set(0, call("SparseMatrixMul", {pruned, Conj(b)}));
  // to the number that an element was multiplied by: that of its batch, or the only one
  Val numbers = Size(b), batch = element(Shape(there), 1) - intOf(a, 3);
  Val first = Reshape(Slice(there, ints(a, {0, 0}), ints(a, {-1, 1})), ints(a, {-1}));
  Val owner = Cast(first, DType::Int32) * Cast(GreaterEqual(batch, intOf(a, 0)), DType::Int32) * Cast(Greater(numbers, intOf(a, 1)), DType::Int32);
  g.set(1, Reshape(call("UnsortedSegmentSum", {d * Conj(there.at(1)), owner, numbers}), Shape(b)));
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
  r.add({"SparseMatrixMatMul"}, compressedTimesDense);
  r.add({"SparseMatrixSparseMatMul"}, compressedTimesCompressed);
  r.add({"SparseMatrixMul"}, compressedTimesNumbers);
  r.add({"SparseMatrixAdd"}, [](Grad &g) {
    DType type = g.node.typeAttr("T");
    for (int i : {0, 1})
      g.set(i, call("SparseMatrixMul", {prunedTo(g.dy(), g.in(i), type), g.in(i + 2)}));
  });
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
