// Decompositions of matrices. The formulas hold for any number of rows and columns: parts that one shape lacks are empty.
#include "graph/gradients/Expr.h"
#include "graph/gradients/Rules.h"

namespace lathe::graphdef {
namespace {

Val lowerPart(Val x) {
  return x ? call("MatrixBandPart", {x, x.emitter->scalar(DType::Int64, -1), x.emitter->scalar(DType::Int64, 0)}) : Val();
}

/// 1 / x, near 0 without infinity.
Val safeReciprocal(Val x) { return x * Reciprocal(x * x + 1e-20); }

/// 1 / (x_j - x_i) off the diagonal, 0 on it.
Val inverseDifferences(Val x) { return MatrixSetDiag(safeReciprocal(expandAt(x, -2) - expandAt(x, -1)), ZerosLike(x)); }

/// Columns [0, n) or [n, end) of matrices, for a scalar n.
Val columns(Val x, Val n, bool from) {
  Val shape = Shape(x), zeros = part(ZerosLike(shape), 0, -1), zero = intOf(x, 0);
  auto vec = [](Val v) { return Reshape(v, ints(v, {1})); };
  Val begin = Concat({zeros, vec(from ? n : zero)}, zero);
  Val size = Concat({part(shape, 0, -1), vec(from ? element(shape, -1) - n : n)}, zero);
  return Slice(x, begin, size);
}

void cholesky(Grad &g) {
  Val l = g.out();
  Val identity = MatrixDiag(OnesLike(MatrixDiagPart(l)));
  Val inverse = call("MatrixTriangularSolve", {l, identity});
  Val middle = matmul(l, g.dy(), true);
  middle = lowerPart(MatrixSetDiag(middle, MatrixDiagPart(middle) * 0.5));
  Val d = matmul(matmul(inverse, middle, true), inverse);
  g.set(0, (d + adjoint(d)) * 0.5);
}

/// x R^-H for an upper triangular R.
Val solveRight(Val x, Val r) { return adjoint(call("MatrixTriangularSolve", {r, adjoint(x)}, {{"lower", false}})); }

/// The gradient of a matrix with no more columns than rows.
Val deepQr(Val q, Val r, Val dq, Val dr) {
  Val qdq = matmul(q, dq, true), rdr = matmul(r, dr, false, true);
  Val lower = lowerPart((qdq - adjoint(qdq)) + (rdr - adjoint(rdr)));
  Val d = matmul(q, dr + solveRight(lower, r)) + solveRight(dq - matmul(q, qdq), r);
  if (!isComplex(q.type()))
    return d;
  // the diagonal of R is real
  Val diagonal = MatrixDiagPart(rdr - adjoint(qdq));
  Val imaginary = MatrixDiag(diagonal - Cast(Real(diagonal), diagonal.type()));
  return d + matmul(q, solveRight(adjoint(imaginary), r));
}

/// A wide matrix is its first square part and the rest, which is Q times the rest of R.
void qr(Grad &g) {
  Val a = g.in(0), q = g.out(0), r = g.out(1), dq = g.dy(0), dr = g.dy(1);
  Val n = element(Shape(q), -1);
  n = Minimum(n, element(Shape(a), -1));
  Val rest = columns(a, n, true), dRest = columns(dr, n, true);
  Val first = deepQr(q, columns(r, n, false), dq + matmul(rest, dRest, false, true), columns(dr, n, false));
  g.set(0, Concat({first, matmul(q, dRest)}, intOf(a, -1)));
}

void svd(Grad &g) {
  Val a = g.in(0);
  DType type = a.type();
  Val dsMatrix = MatrixDiag(Cast(g.dy(0), type));
  if (!g.boolAttr("compute_uv")) {
    Val again = call("Svd", {a}, {{"compute_uv", true}, {"full_matrices", false}});
    g.set(0, matmul(again.at(1), matmul(dsMatrix, again.at(2), false, true)));
    return;
  }
  Val s = Cast(g.out(0), type), n = element(Shape(s), -1);
  Val u = columns(g.out(1), n, false), v = columns(g.out(2), n, false);
  Val du = columns(g.dy(1), n, false), dv = columns(g.dy(2), n, false);
  Val f = inverseDifferences(Square(s)), sMatrix = MatrixDiag(s), sInverse = MatrixDiag(safeReciprocal(s));
  Val uDu = matmul(u, du, true), vDv = matmul(v, dv, true);
  Val fu = f * uDu, fv = f * vDv;
  Val inner = dsMatrix + matmul(fu + adjoint(fu), sMatrix) + matmul(sMatrix, fv + adjoint(fv));
  if (isComplex(type)) {
    Val phase = MatrixDiag(MatrixDiagPart(vDv));
    inner = inner + matmul(sInverse, adjoint(phase) - phase) * 0.5;
  }
  // what leaves the space of the singular vectors
  Val outsideU = du - matmul(u, uDu), outsideV = dv - matmul(v, vDv);
  if (g.boolAttr("full_matrices")) {
    Val u2 = columns(g.out(1), n, true), v2 = columns(g.out(2), n, true);
    outsideU = outsideU - matmul(u2, matmul(columns(g.dy(1), n, true), u, true));
    outsideV = outsideV - matmul(v2, matmul(columns(g.dy(2), n, true), v, true));
  }
  Val d = matmul(matmul(u, inner), v, false, true);
  d = d + matmul(matmul(outsideU, sInverse), v, false, true);
  g.set(0, d + matmul(matmul(u, sInverse), outsideV, false, true));
}

void selfAdjointEig(Grad &g) {
  Val e = g.out(0), v = g.out(1), middle = MatrixDiag(g.dy(0));
  if (g.boolAttr("compute_v"))
    middle = middle + Cast(inverseDifferences(e), v.type()) * matmul(v, g.dy(1), true);
  else
    v = call("SelfAdjointEigV2", {g.in(0)}, {{"compute_v", true}}).at(1);
  Val d = matmul(v, matmul(Cast(middle, v.type()), v, false, true));
  // only the lower triangle is read
  Val lower = lowerPart(d + adjoint(d));
  g.set(0, MatrixSetDiag(lower, MatrixDiagPart(lower) * 0.5));
}

void eig(Grad &g) {
  Val e = g.out(0), v = g.out(1), middle = MatrixDiag(g.dy(0));
  NamedAttrs again = g.attrs({"Tout"});
  again.push_back({"compute_v", true});
  if (!g.boolAttr("compute_v"))
    v = call("Eig", {g.in(0)}, again).at(1);
  Val vAdjoint = adjoint(v);
  if (g.boolAttr("compute_v")) {
    Val vDv = matmul(vAdjoint, g.dy(1));
    Val real = MatrixDiag(MatrixDiagPart(Cast(Real(vDv), vDv.type())));
    middle = middle + Conj(inverseDifferences(e)) * (vDv - matmul(matmul(vAdjoint, v), real));
  }
  g.set(0, Cast(call("MatrixSolve", {vAdjoint, matmul(middle, vAdjoint)}), g.node.inputType(0)));
}

} // namespace

void addDecompositionRules(Rules &r) {
  r.add({"Cholesky"}, cholesky);
  r.add({"Qr"}, qr);
  r.add({"Svd"}, svd);
  r.add({"SelfAdjointEigV2"}, selfAdjointEig);
  r.add({"Eig"}, eig);
}

} // namespace lathe::graphdef
