// Matrices: inverses, determinants, solvers. Adjoints stand where real matrices have transposes.
#include "graph/gradients/Bodies.h"
#include "graph/gradients/Expr.h"
#include "graph/gradients/Rules.h"

namespace lathe::graphdef {
namespace {

/// A batch of numbers as a batch of 1x1 matrices.
Val asMatrix(Val numbers) { return expandAt(expandAt(numbers, -1), -1); }

Val inverseAdjoint(Val a) { return call("MatrixInverse", {a}, {{"adjoint", true}}); }

/// x b^H or its mirror image: the gradient of the matrix in op(a) x = b, from the gradient `db` of b.
Val solvedMatrix(Val x, Val db, bool adjoint) { return -(adjoint ? matmul(x, db, false, true) : matmul(db, x, false, true)); }

/// Sums over broadcast batch dimensions.
void setBatches(Grad &g, Val da, Val db) {
  Val sa = Shape(g.in(0)), sb = Shape(g.in(1));
  Val axes = call("BroadcastGradientArgs", {part(sa, 0, -2), part(sb, 0, -2)});
  g.set(0, sumTo(da, axes, sa));
  g.set(1, sumTo(db, axes.at(1), sb));
}

Val band(Val x, int64_t lower, int64_t upper) {
  auto number = [&](int64_t v) { return x.emitter ? x.emitter->scalar(DType::Int64, static_cast<double>(v)) : Val(); };
  return call("MatrixBandPart", {x, number(lower), number(upper)});
}

void triangularSolve(Grad &g) {
  bool lower = g.boolAttr("lower"), adjoint = g.boolAttr("adjoint");
  Val db = call("MatrixTriangularSolve", {g.in(0), g.dy()}, {{"lower", lower}, {"adjoint", !adjoint}});
  setBatches(g, band(solvedMatrix(g.out(), db, adjoint), lower ? -1 : 0, lower ? 0 : -1), db);
}

void bandedSolve(Grad &g) {
  bool lower = g.boolAttr("lower"), adjoint = g.boolAttr("adjoint");
  Val db = call("BandedTriangularSolve", {g.in(0), g.dy()}, {{"lower", lower}, {"adjoint", !adjoint}});
  Val full = solvedMatrix(g.out(), db, adjoint);
  Val furthest = element(Shape(g.in(0)), -2) - 1, zero = intOf(full, 0);
  Val k = lower ? Pack({-furthest, zero}) : Pack({zero, furthest});
  Val bands = call("MatrixDiagPartV3", {full, k, like(full, 0)}, {{"align", "LEFT_RIGHT"}});
  setBatches(g, bands, db);
}

/// The gradients of least squares, (A, b, x, dx, regularizer) -> (dA, db), where A has no more columns than rows or no more rows
/// than columns.
absl::StatusOr<std::string> writeLeastSquares(Grad &g, bool tall) {
  FunctionWriter writer(g.e.graph.sharedLibrary());
  DType type = g.node.inputType(0);
  Emitter &e = writer.emit();
  auto arg = [&](const char *name) { return Val(e, writer.addArg(type, name)); };
  Val a = arg("a"), b = arg("b"), x = arg("x"), dx = arg("dx"), regularizer = arg("regularizer");
  Val gram = tall ? matmul(a, a, true) : matmul(a, a, false, true);
  gram = gram + MatrixDiag(OnesLike(MatrixDiagPart(gram))) * regularizer;
  auto solve = [&](Val right) { return call("MatrixSolve", {gram, right}); };
  if (tall) { // x = gram^-1 A^H b
    Val z = solve(dx), product = matmul(x, z, false, true);
    writer.addResult((matmul(b, z, false, true) - matmul(a, product + adjoint(product))).end);
    writer.addResult(matmul(a, z).end);
  } else { // x = A^H gram^-1 b
    Val v = solve(matmul(a, dx)), w = solve(b);
    Val d = matmul(w, dx, false, true) - matmul(v, x, false, true) - matmul(w, matmul(a, v, true), false, true);
    writer.addResult(d.end);
    writer.addResult(v.end);
  }
  return writer.finish(tall ? "least_squares_tall" : "least_squares_wide");
}

/// The number of rows and columns decides when the graph runs.
void leastSquares(Grad &g) {
  auto tall = writeLeastSquares(g, true), wide = writeLeastSquares(g, false);
  if (!tall.ok() || !wide.ok()) {
    g.e.fail(tall.ok() ? wide.status() : tall.status());
    return;
  }
  DType type = g.node.inputType(0);
  Val shape = Shape(g.in(0));
  std::vector<Val> args{g.in(0), g.in(1), g.out(), g.dy(), Cast(g.in(2), type)};
  Val d = call("StatelessIf", {GreaterEqual(element(shape, -2), element(shape, -1)), args},
               {{"then_branch", functionAttr(*tall)}, {"else_branch", functionAttr(*wide)}, {"Tout", std::vector<DType>{type, type}}});
  g.set(0, d);
  g.set(1, d.at(1));
}

/// X with R^H X + X R^H = dy, as one system of linear equations.
void squareRoot(Grad &g) {
  Val root = g.out(), shape = Shape(root), n = element(shape, -1), one = ints(root, {1});
  Val batch = part(shape, 0, -2), zero = intOf(root, 0);
  auto vec = [](Val v) { return Reshape(v, ints(v, {1})); };
  Val identity = MatrixDiag(Fill(vec(n), like(root, 1)));
  auto kron = [&](Val a, Val b, Val batchA, Val batchB) {
    Val wideA = Reshape(a, Concat({batchA, vec(n), one, vec(n), one}, zero));
    Val wideB = Reshape(b, Concat({batchB, one, vec(n), one, vec(n)}, zero));
    return Reshape(wideA * wideB, Concat({batch, vec(n * n), vec(n * n)}, zero));
  };
  Val ones = OnesLike(batch);
  Val system = kron(adjoint(root), identity, batch, ones) + kron(identity, Conj(root), ones, batch);
  Val right = Reshape(g.dy(), Concat({batch, vec(n * n), one}, zero));
  g.set(0, Reshape(call("MatrixSolve", {system, right}), shape));
}

/// A matrix by its three diagonals, moved up or down by one row with zeros coming in.
Val shifted(Val x, bool up) {
  Val shape = Shape(x), row = Slice(ZerosLike(x), ZerosLike(shape), Concat({part(shape, 0, -2), ints(x, {1}), part(shape, -1)}, intOf(x, 0)));
  auto rows = [&](int begin, int end) {
    return call("StridedSlice", {x, ints(x, {0, begin, 0}), ints(x, {0, end, 0}), ints(x, {1, 1, 1})},
                {{"ellipsis_mask", 1}, {"begin_mask", begin ? 4 : 6}, {"end_mask", end ? 4 : 6}});
  };
  return up ? Concat({rows(1, 0), row}, intOf(x, -2)) : Concat({row, rows(0, -1)}, intOf(x, -2));
}

void tridiagonalMatMul(Grad &g) {
  Val upper = adjoint(g.in(0)), main = adjoint(g.in(1)), lower = adjoint(g.in(2)), x = Conj(g.in(3)), d = g.dy();
  auto diagonal = [&](Val product) { return expandAt(sumAt(product, -1), -2); };
  g.set(0, diagonal(shifted(x, true) * d));
  g.set(1, diagonal(x * d));
  g.set(2, diagonal(shifted(x, false) * d));
  g.set(3, shifted(upper * d, false) + main * d + shifted(lower * d, true));
}

/// One of the three diagonals of compact form [..., 3, n].
Val diagonalOf(Val diagonals, int i) {
  return call("StridedSlice", {diagonals, ints(diagonals, {0, i, 0}), ints(diagonals, {0, i + 1, 0}), ints(diagonals, {1, 1, 1})},
              {{"ellipsis_mask", 1}, {"begin_mask", 4}, {"end_mask", 4}, {"shrink_axis_mask", 2}});
}

void tridiagonalSolve(Grad &g) {
  Val diagonals = g.in(0);
  auto moved = [](Val diagonal, bool up) { return call("Squeeze", {shifted(expandAt(diagonal, -1), up)}, {{"squeeze_dims", std::vector<int64_t>{-1}}}); };
  // transposed: what lies above comes below, one place on
  Val transposed = Pack({moved(diagonalOf(diagonals, 2), true), diagonalOf(diagonals, 1), moved(diagonalOf(diagonals, 0), false)}, -2);
  Val db = call("TridiagonalSolve", {transposed, g.dy()}, g.attrs({"partial_pivoting", "perturb_singular"}));
  Val x = g.out();
  auto row = [&](Val v) { return sumAt(db * v, -1); };
  g.set(0, -Pack({row(shifted(x, true)), row(x), row(shifted(x, false))}, -2));
  g.set(1, db);
}

} // namespace

void addLinalgRules(Rules &r) {
  r.add({"MatrixInverse", "BatchMatrixInverse"}, [](Grad &g) {
    bool adjointed = g.boolAttr("adjoint");
    Val y = g.out();
    g.set(0, -matmul(y, matmul(g.dy(), y, adjointed, !adjointed), !adjointed, false));
  });
  r.add({"MatrixDeterminant"}, [](Grad &g) { g.set(0, asMatrix(g.dy() * g.out()) * inverseAdjoint(g.in(0))); });
  r.add({"LogMatrixDeterminant"}, [](Grad &g) { g.set(0, asMatrix(g.dy(1)) * inverseAdjoint(g.in(0))); });
  r.add({"MatrixSolve"}, [](Grad &g) {
    bool adjointed = g.boolAttr("adjoint");
    Val db = call("MatrixSolve", {g.in(0), g.dy()}, {{"adjoint", !adjointed}});
    g.set(0, solvedMatrix(g.out(), db, adjointed));
    g.set(1, db);
  });
  r.add({"MatrixSolveLs"}, leastSquares);
  r.add({"MatrixTriangularSolve"}, triangularSolve);
  r.add({"BandedTriangularSolve"}, bandedSolve);
  r.add({"MatrixSquareRoot"}, squareRoot);
  r.add({"TridiagonalMatMul"}, tridiagonalMatMul);
  r.add({"TridiagonalSolve"}, tridiagonalSolve);
}

} // namespace lathe::graphdef
