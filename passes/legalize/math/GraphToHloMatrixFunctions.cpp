// Eigenvalues of general matrices; exponential, logarithm and square root of matrices.
#include "passes/legalize/array/ArrayFamilies.h"
#include "passes/legalize/math/Linalg.h"

#include <cmath>

using namespace mlir;

namespace lathe::legalize {
namespace {

LogicalResult lowerEig(NodeContext &c) {
  Value x = c.input(0);
  if (failed(expectMatrix(c, x, true)))
    return failure();
  auto op = hlo::EigOp::create(c.b, c.loc, x);
  if (failed(c.setResult(0, c.convert(op->getResult(0), c.resultType(0)))))
    return failure();
  if (!c.attrBool("compute_v", true))
    return c.setResult(1, c.splat(0, ArrayRef<AffineExpr>{c.size(0)}, c.resultType(1)));
  return c.setResult(1, c.convert(op->getResult(1), c.resultType(1)));
}

/// The principal square root by the iteration of Denman and Beavers, in complex128.
Value squareRoot(NodeContext &c, Value a) {
  constexpr int64_t kSteps = 20; // from eigenvalues of 1e6 or 1e-6 to all digits
  Type i32 = c.b.getI32Type();
  Value one = identityMatrix(c, c.dims(a), Emitter::elementType(a));
  SmallVector<Value> done = whileLoop(
      c, {c.scalarInt(0, i32), a, one},
      [&](ValueRange v) { return c.compare(Compare::LT, v[0], c.scalarInt(kSteps, i32)); },
      [&](ValueRange v) -> SmallVector<Value> {
        auto mean = [&](Value x, Value y) { return c.mul(c.add(x, luSolve(c, y, one)), c.like(x, 0.5)); };
        return {c.add(v[0], c.scalarInt(1, i32)), mean(v[1], v[2]), mean(v[2], v[1])};
      });
  return done[1];
}

struct Wide {
  Value x;
  bool empty;
};

FailureOr<Wide> widen(NodeContext &c) {
  Value x = c.input(0);
  if (failed(expectMatrix(c, x, true)))
    return failure();
  bool empty = c.isStatic(x) && c.type(x).getNumElements() == 0;
  return Wide{empty ? x : c.convert(x, ComplexType::get(c.b.getF64Type())), empty};
}

LogicalResult lowerSquareRoot(NodeContext &c) {
  auto w = widen(c);
  if (failed(w))
    return failure();
  Value root = w->empty ? w->x : squareRoot(c, w->x);
  return c.setResult(0, root ? c.convert(root, c.elementType(c.input(0))) : root);
}

/// exp(A) = exp(A / 2^k)^(2^k), with the fraction of Padé of degree 13 for what is small. Each matrix of a batch has its k.
Value exponential(NodeContext &c, Value a) {
  const double coefficients[] = {64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000,
                                 10559470521600,    670442572800,      33522128640,      1323241920,       40840800,
                                 960960,            16380,             182,              1};
  constexpr double kSmall = 5.371920351148152, kMostSquares = 1100; // the exponents of doubles end before
  int64_t r = Emitter::rank(a);
  SmallVector<int64_t> batch = llvm::to_vector(llvm::seq<int64_t>(0, r - 2));
  Type i32 = c.b.getI32Type(), element = Emitter::elementType(a);
  Dims dims = c.dims(a);
  auto product = [&](Value x, Value y) { return c.dot(x, y, batch, batch, {r - 1}, {r - 2}); };
  auto times = [&](Value x, double by) { return c.mul(x, c.like(x, by)); };

  Value size = c.reduceMax(c.reduceSum(c.unary<hlo::AbsOp>(a), {r - 2}), {r - 2});
  Value k = c.unary<hlo::CeilOp>(times(c.unary<hlo::LogOp>(times(size, 1 / kSmall)), 1 / std::log(2.0)));
  k = c.min(c.max(k, c.like(k, 0)), c.like(k, kMostSquares));
  k = c.select(c.compare(Compare::EQ, k, k), k, c.like(k, 0)); // of NaN
  Value scale = c.binary<hlo::PowOp>(c.like(k, 0.5), k);
  a = c.mul(a, c.broadcastInDim(c.convert(scale, element), dims, batch));

  Value one = identityMatrix(c, dims, element), a2 = product(a, a), a4 = product(a2, a2), a6 = product(a4, a2);
  auto sum = [&](int first) {
    auto of = [&](int at, Value x) { return times(x, coefficients[first + at]); };
    Value high = product(a6, c.add(c.add(of(12, a6), of(10, a4)), of(8, a2)));
    return c.add(c.add(high, c.add(of(6, a6), of(4, a4))), c.add(of(2, a2), of(0, one)));
  };
  Value odd = product(a, sum(1)), even = sum(0);
  Value result = luSolve(c, c.sub(even, odd), c.add(even, odd));
  Value squares = c.convert(k, i32), most = squares;
  if (r > 2)
    most = c.reduceMax(squares, batch);
  most = c.max(most, c.scalarInt(0, i32)); // a batch may be empty
  SmallVector<Value> done = whileLoop(
      c, {c.scalarInt(0, i32), result}, [&](ValueRange v) { return c.compare(Compare::LT, v[0], most); },
      [&](ValueRange v) -> SmallVector<Value> {
        Value still = c.compare(Compare::LT, v[0], squares);
        Value next = c.select(c.broadcastInDim(still, dims, batch), product(v[1], v[1]), v[1]);
        return {c.add(v[0], c.scalarInt(1, i32)), next};
      });
  return done[1];
}

LogicalResult lowerExponential(NodeContext &c) {
  Value x = c.input(0);
  if (failed(expectMatrix(c, x, true)))
    return failure();
  if (c.isStatic(x) && c.type(x).getNumElements() == 0)
    return c.setResult(0, x);
  Type f64 = c.b.getF64Type();
  Value result = exponential(c, c.convert(x, c.isComplex(x) ? Type(ComplexType::get(f64)) : Type(f64)));
  return c.setResult(0, c.convert(result, c.elementType(x)));
}

/// The logarithm by eigenvalues, and where it can be trusted (a scalar for each matrix, broadcast to all of it).
std::pair<Value, Value> logarithmByEigenvalues(NodeContext &c, Value x) {
  int64_t r = Emitter::rank(x);
  auto op = hlo::EigOp::create(c.b, c.loc, x);
  Value values = op->getResult(0), vectors = op->getResult(1);
  Value one = identityMatrix(c, c.dims(x), Emitter::elementType(x)), inverse = luSolve(c, vectors, one);
  if (!inverse)
    return {};
  SmallVector<int64_t> alongColumns = llvm::to_vector(llvm::seq<int64_t>(0, r - 2)), batch = alongColumns;
  alongColumns.push_back(r - 1);
  Value scaled = c.mul(vectors, c.broadcastInDim(c.unary<hlo::LogOp>(values), c.dims(x), alongColumns));
  Value result = c.dot(scaled, inverse, batch, batch, {r - 1}, {r - 2});
  auto size = [&](Value v) {
    Value a = c.unary<hlo::AbsOp>(v);
    return c.reduceSum(c.mul(a, a), {r - 2, r - 1});
  };
  Value condition = c.mul(size(vectors), size(inverse));
  Value good = c.compare(Compare::LT, condition, c.like(condition, 1e12));
  return {result, c.broadcastInDim(good, c.dims(x), batch)};
}

/// By eigenvalues where their vectors are well conditioned. Else log(A) = 2^k log(A^(1/2^k)); near the identity the integral
/// of E / (1 + t E) over t by Gauss' rule.
LogicalResult lowerLogarithm(NodeContext &c) {
  auto w = widen(c);
  if (failed(w))
    return failure();
  if (w->empty)
    return c.setResult(0, w->x);
  auto [byEigenvalues, good] = logarithmByEigenvalues(c, w->x);
  if (!byEigenvalues)
    return failure();
  w->x = c.select(good, identityMatrix(c, c.dims(w->x), Emitter::elementType(w->x)), w->x);
  constexpr int64_t kRoots = 10;
  Type i32 = c.b.getI32Type();
  SmallVector<Value> done = whileLoop(
      c, {c.scalarInt(0, i32), w->x},
      [&](ValueRange v) { return c.compare(Compare::LT, v[0], c.scalarInt(kRoots, i32)); },
      [&](ValueRange v) -> SmallVector<Value> {
        Value count = c.add(v[0], c.scalarInt(1, i32));
        return {count, squareRoot(c, v[1])};
      });
  Value root = done[1], one = identityMatrix(c, c.dims(root), Emitter::elementType(root)), rest = c.sub(root, one), sum;
  // five nodes and weights on [-1, 1]
  double inner = std::sqrt(5 - 2 * std::sqrt(10.0 / 7)) / 3, outer = std::sqrt(5 + 2 * std::sqrt(10.0 / 7)) / 3;
  double heavy = (322 + 13 * std::sqrt(70.0)) / 900, light = (322 - 13 * std::sqrt(70.0)) / 900;
  const double nodes[] = {0, -inner, inner, -outer, outer}, weights[] = {128.0 / 225, heavy, heavy, light, light};
  for (int k = 0; k < 5; ++k) {
    Value a = c.add(c.mul(rest, c.like(rest, (nodes[k] + 1) / 2)), one);
    Value term = c.mul(luSolve(c, a, rest), c.like(rest, weights[k] / 2 * double(1 << kRoots)));
    sum = sum ? c.add(sum, term) : term;
  }
  sum = c.select(good, byEigenvalues, sum);
  return c.setResult(0, sum ? c.convert(sum, c.elementType(c.input(0))) : sum);
}

} // namespace

void registerMatrixFunctions(HandlerTable &t) {
  t.add("Eig", 1, lowerEig);
  t.add("MatrixExponential", 1, lowerExponential);
  t.add("MatrixLogarithm", 1, lowerLogarithm);
  t.add("MatrixSquareRoot", 1, lowerSquareRoot);
}

} // namespace lathe::legalize
