// Factorisations, solves, determinants, Fourier transforms.
#include "passes/legalize/SizeReader.h"
#include "passes/legalize/array/ArrayFamilies.h"
#include "passes/legalize/math/Linalg.h"

#include "llvm/ADT/SmallSet.h"

#include <limits>

using namespace mlir;

namespace lathe::legalize {
namespace {

Type realOf(Type element) {
  auto complex = dyn_cast<ComplexType>(element);
  return complex ? complex.getElementType() : element;
}

Value adjoint(NodeContext &c, Value x) {
  SmallVector<int64_t> perm = llvm::to_vector(llvm::seq<int64_t>(0, c.rank(x)));
  std::swap(perm[c.rank(x) - 1], perm[c.rank(x) - 2]);
  x = c.transpose(x, perm);
  return c.isComplex(x) ? c.unary<hlo::ConjOp>(x) : x;
}

/// [..., n, n] -> [..., n]
Value diagonalOf(NodeContext &c, Value x) {
  int64_t r = c.rank(x);
  Dims dims = c.dims(x), matrix(dims.end() - 2, dims.end());
  Type i32 = c.b.getI32Type();
  Value on = c.compare(Compare::EQ, c.iota(matrix, 0, i32), c.iota(matrix, 1, i32));
  return c.reduceSum(c.select(on, x, c.scalar(0, c.elementType(x))), {r - 1});
}

/// Half-width floats are factorised in f32.
Value widen(NodeContext &c, Value x) {
  auto f = dyn_cast<FloatType>(c.elementType(x));
  return f && f.getWidth() < 32 ? c.convert(x, c.b.getF32Type()) : x;
}

Value triangularSolve(NodeContext &c, Value a, Value b, bool lower, bool unit, hlo::Transpose transpose) {
  return c.make<hlo::TriangularSolveOp>(a, b, /*left_side=*/true, lower, unit, transpose);
}

/// Batch dimensions of matrices broadcast together.
bool broadcastBatches(NodeContext &c, Value &a, Value &b) {
  auto batch = [&](Value v) { Dims d = c.dims(v); return Dims(d.begin(), d.end() - 2); };
  Dims common;
  if (!c.broadcastDims({batch(a), batch(b)}, common))
    return false;
  for (Value *v : {&a, &b}) {
    Dims dims = c.dims(*v), wanted = common;
    wanted.append(dims.end() - 2, dims.end());
    *v = c.broadcastTo(*v, wanted);
    if (!*v)
      return false;
  }
  return true;
}

void checkInvertible(NodeContext &c, Value factor) {
  Value d = diagonalOf(c, factor);
  c.check(c.compare(Compare::NE, d, c.like(d, 0)), "input matrix is not invertible");
}

/// What TensorFlow fills results with where a matrix has none: C++ has no complex NaN.
Value unknownLike(NodeContext &c, Value x) {
  return c.like(x, c.isComplex(x) ? 0 : std::numeric_limits<double>::quiet_NaN());
}

struct Lu {
  Value lu, permutation;
};

Lu luOf(NodeContext &c, Value a) {
  auto op = hlo::LuOp::create(c.b, c.loc, a);
  return {op->getResult(0), op->getResult(1)};
}

} // namespace

LogicalResult expectMatrix(NodeContext &c, Value x, bool square) {
  int64_t r = c.rank(x);
  if (r < 2)
    return c.error("expected a matrix, found rank " + Twine(r));
  if (square && !c.ctx.unify(c.dim(x, r - 2), c.dim(x, r - 1), c.name()))
    return c.error("the matrix is not square: " + textOf(c.dim(x, r - 2)) + " x " + textOf(c.dim(x, r - 1)));
  return success();
}

Value identityMatrix(NodeContext &c, const Dims &dims, Type element) {
  int64_t r = dims.size();
  Dims matrix(dims.end() - 2, dims.end());
  Type i32 = c.b.getI32Type();
  Value on = c.compare(Compare::EQ, c.iota(matrix, 0, i32), c.iota(matrix, 1, i32));
  return c.broadcastInDim(c.convert(on, element), dims, {r - 2, r - 1});
}

static Value substitute(NodeContext &c, Lu f, Value b) {
  int64_t r = c.rank(f.lu);
  Value rows = gather(c, b, f.permutation, r - 2, r - 2, /*checked=*/false);
  if (!rows)
    return {};
  Value y = triangularSolve(c, f.lu, rows, true, true, hlo::Transpose::NO_TRANSPOSE);
  return triangularSolve(c, f.lu, y, false, false, hlo::Transpose::NO_TRANSPOSE);
}

Value luSolve(NodeContext &c, Value a, Value b) {
  if (c.isStatic(b) && c.type(b).getNumElements() == 0)
    return b;
  Lu f = luOf(c, a);
  checkInvertible(c, f.lu);
  return substitute(c, f, b);
}

namespace {

bool sameRows(NodeContext &c, Value a, Value b) {
  if (c.ctx.unify(c.dim(a, c.rank(a) - 2), c.dim(b, c.rank(b) - 2), c.name()))
    return true;
  (void)c.error("the matrix has " + textOf(c.dim(a, c.rank(a) - 2)) + " rows, the right side " +
                textOf(c.dim(b, c.rank(b) - 2)));
  return false;
}

LogicalResult lowerCholesky(NodeContext &c) {
  Value x = c.input(0);
  if (failed(expectMatrix(c, x, true)))
    return failure();
  // like TensorFlow, this does not refuse what is not positive definite
  Value l = c.make<hlo::CholeskyOp>(widen(c, x), /*lower=*/true);
  if (c.isComplex(l)) {
    Value real = c.unary<hlo::RealOp>(l);
    l = c.select(c.compare(Compare::EQ, real, real), l, unknownLike(c, l));
  }
  return c.setResult(0, c.convert(l, c.elementType(x)));
}

/// Zero above the diagonal, which counts by `share`.
Value lowerPart(NodeContext &c, Value x, double share = 1) {
  int64_t r = c.rank(x);
  Dims dims = c.dims(x), matrix(dims.end() - 2, dims.end());
  Type i32 = c.b.getI32Type();
  Value row = c.iota(matrix, 0, i32), column = c.iota(matrix, 1, i32), zero = c.like(x, 0);
  auto all = [&](Value mask) { return c.broadcastInDim(mask, dims, {r - 2, r - 1}); };
  Value kept = c.select(all(c.compare(Compare::GE, row, column)), x, zero);
  return share == 1 ? kept : c.select(all(c.compare(Compare::EQ, row, column)), c.mul(x, c.like(x, share)), kept);
}

/// The gradient of Cholesky by a formula of Murray's: half of S + S' with S = L^-T P L^-1, P the lower part of L' dL with half of
/// its diagonal.
LogicalResult lowerCholeskyGrad(NodeContext &c) {
  Value l = c.input(0), grad = c.input(1);
  if (failed(expectMatrix(c, l, true)) || failed(expectMatrix(c, grad, true)))
    return failure();
  if (!sameDims(c, {l, grad}))
    return failure();
  int64_t r = c.rank(l);
  SmallVector<int64_t> batch = llvm::to_vector(llvm::seq<int64_t>(0, r - 2));
  Type element = c.elementType(l);
  l = lowerPart(c, widen(c, l));
  Value product = c.dot(l, lowerPart(c, widen(c, grad)), batch, batch, {r - 2}, {r - 2});
  auto solve = [&](Value b) { return triangularSolve(c, l, b, true, false, hlo::Transpose::ADJOINT); };
  Value s = solve(adjoint(c, solve(lowerPart(c, product, 0.5))));
  return c.setResult(0, c.convert(c.mul(c.add(s, adjoint(c, s)), c.like(s, 0.5)), element));
}

LogicalResult lowerTriangularSolve(NodeContext &c) {
  Value a = c.input(0), b = c.input(1);
  if (failed(expectMatrix(c, a, true)) || failed(expectMatrix(c, b, false)) || !sameRows(c, a, b) ||
      !broadcastBatches(c, a, b))
    return failure();
  // as in TensorFlow, zeros on the diagonal give infinities and NaN
  auto transpose = c.attrBool("adjoint") ? hlo::Transpose::ADJOINT : hlo::Transpose::NO_TRANSPOSE;
  Value result = triangularSolve(c, widen(c, a), widen(c, b), c.attrBool("lower", true), false, transpose);
  return c.setResult(0, c.convert(result, c.elementType(b)));
}

LogicalResult lowerSolve(NodeContext &c) {
  Value a = c.input(0), b = c.input(1);
  if (failed(expectMatrix(c, a, true)) || failed(expectMatrix(c, b, false)) || !sameRows(c, a, b))
    return failure();
  if (!broadcastBatches(c, a, b))
    return failure();
  if (c.attrBool("adjoint"))
    a = adjoint(c, a);
  return c.setResult(0, luSolve(c, a, b));
}

LogicalResult lowerInverse(NodeContext &c) {
  Value a = c.input(0);
  if (failed(expectMatrix(c, a, true)))
    return failure();
  if (c.attrBool("adjoint"))
    a = adjoint(c, a);
  return c.setResult(0, luSolve(c, a, identityMatrix(c, c.dims(a), c.elementType(a))));
}

/// 1 or -1 for each permutation in [..., n]: the parity of its inversions.
Value signOf(NodeContext &c, Value permutation, Type element) {
  int64_t r = c.rank(permutation);
  Dims square = c.dims(permutation);
  square.push_back(square.back());
  SmallVector<int64_t> first = llvm::to_vector(llvm::seq<int64_t>(0, r)), second = first;
  second.back() = r;
  Type i32 = c.b.getI32Type();
  Value greater = c.compare(Compare::GT, c.broadcastInDim(permutation, square, first),
                            c.broadcastInDim(permutation, square, second));
  Value before = c.compare(Compare::LT, c.iota(square, r - 1, i32), c.iota(square, r, i32));
  Value inversions = c.reduceSum(c.convert(c.logicalAnd(greater, before), i32), {r - 1, r});
  Value odd = c.compare(Compare::NE, c.logicalAnd(inversions, c.scalarInt(1, i32)), c.scalarInt(0, i32));
  return c.select(odd, c.scalar(-1, element), c.scalar(1, element));
}

LogicalResult lowerDeterminant(NodeContext &c, bool logarithm) {
  Value x = c.input(0);
  if (failed(expectMatrix(c, x, true)))
    return failure();
  Type element = c.elementType(x);
  Lu f = luOf(c, x);
  Value d = diagonalOf(c, f.lu), sign = signOf(c, f.permutation, element);
  int64_t last = c.rank(d) - 1;
  if (!logarithm)
    return c.setResult(0, c.mul(sign, c.reduceProd(d, {last})));
  Value size = c.unary<hlo::AbsOp>(d);
  Value unit = c.isComplex(d) ? c.div(d, c.convert(size, element)) : c.unary<hlo::SignOp>(d);
  if (failed(c.setResult(0, c.mul(sign, c.reduceProd(unit, {last})))))
    return failure();
  return c.setResult(1, c.convert(c.reduceSum(c.unary<hlo::LogOp>(size), {last}), c.resultType(1)));
}

LogicalResult lowerLu(NodeContext &c) {
  Value x = c.input(0);
  if (failed(expectMatrix(c, x, true)))
    return failure();
  Lu f = luOf(c, x);
  checkInvertible(c, f.lu);
  if (failed(c.setResult(0, f.lu)))
    return failure();
  return c.setResult(1, c.convert(f.permutation, c.resultType(1)));
}

LogicalResult lowerQr(NodeContext &c) {
  Value x = c.input(0);
  if (failed(expectMatrix(c, x, false)))
    return failure();
  auto op = hlo::QrOp::create(c.b, c.loc, widen(c, x), c.attrBool("full_matrices"));
  for (unsigned i = 0; i < 2; ++i)
    if (failed(c.setResult(i, c.convert(op->getResult(i), c.elementType(x)))))
      return failure();
  return success();
}

LogicalResult lowerSvd(NodeContext &c) {
  Value x = c.input(0);
  if (failed(expectMatrix(c, x, false)))
    return failure();
  bool vectors = c.attrBool("compute_uv", true);
  auto op = hlo::SvdOp::create(c.b, c.loc, x, vectors && c.attrBool("full_matrices"));
  if (failed(c.setResult(0, c.convert(op->getResult(0), c.resultType(0)))))
    return failure();
  for (unsigned i = 1; i < 3; ++i)
    if (failed(c.setResult(i, vectors ? op->getResult(i) : c.splat(0, ArrayRef<AffineExpr>{c.size(0)}, c.resultType(i)))))
      return failure();
  return success();
}

LogicalResult lowerSelfAdjointEig(NodeContext &c) {
  Value x = c.input(0);
  if (failed(expectMatrix(c, x, true)))
    return failure();
  auto op = hlo::EighOp::create(c.b, c.loc, x);
  if (failed(c.setResult(0, c.convert(op->getResult(0), c.resultType(0)))))
    return failure();
  bool vectors = c.attrBool("compute_v", true);
  return c.setResult(1, vectors ? op->getResult(1) : c.splat(0, ArrayRef<AffineExpr>{c.size(0)}, c.resultType(1)));
}

/// The first form of it: the values are a row above the vectors.
LogicalResult lowerJoinedEig(NodeContext &c) {
  Value x = c.input(0);
  if (failed(expectMatrix(c, x, true)))
    return failure();
  int64_t r = c.rank(x);
  auto op = hlo::EighOp::create(c.b, c.loc, x);
  Value values = c.keepDims(c.convert(op->getResult(0), c.elementType(x)), {r - 2}, r);
  return c.setResult(0, c.concat({values, op->getResult(1)}, r - 2));
}

/// The shortest least squares solution by singular values, of which those that rounding explains count as zero.
Value solveByRank(NodeContext &c, Value a, Value b, int64_t least, ArrayRef<int64_t> batch) {
  int64_t r = c.rank(a);
  auto op = hlo::SvdOp::create(c.b, c.loc, a, /*full_matrices=*/false);
  Value s = op->getResult(0), u = op->getResult(1), v = op->getResult(2);
  double epsilon = c.elementType(s).isF32() ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
  Value most = c.reduceMax(s, {r - 2});
  Value limit = c.broadcastInDim(c.mul(most, c.like(most, epsilon * double(least))), c.dims(s), batch);
  Value inverse = c.select(c.compare(Compare::GT, s, limit), c.div(c.like(s, 1), s), c.like(s, 0));
  Value parts = c.dot(adjoint(c, u), b, batch, batch, {r - 1}, {r - 2});
  SmallVector<int64_t> rows = llvm::to_vector(llvm::seq<int64_t>(0, r - 1));
  parts = c.mul(parts, c.broadcastInDim(c.convert(inverse, c.elementType(a)), c.dims(parts), rows));
  return c.dot(v, parts, batch, batch, {r - 1}, {r - 2});
}

/// Least squares, when `fast` by the normal equations of the smaller side; otherwise nothing is added to the diagonal and
/// the matrix may be of any rank.
LogicalResult lowerSolveLs(NodeContext &c) {
  Value a = c.input(0), b = c.input(1);
  if (failed(expectMatrix(c, a, false)) || failed(expectMatrix(c, b, false)) || !sameRows(c, a, b))
    return failure();
  int64_t r = c.rank(a);
  auto m = constantOf(c.dim(a, r - 2)), n = constantOf(c.dim(a, r - 1));
  if (!m || !n)
    return c.error("the size of the matrices must be known");
  SmallVector<int64_t> batch = llvm::to_vector(llvm::seq<int64_t>(0, r - 2));
  Value h = adjoint(c, a);
  auto product = [&](Value x, Value y) { return c.dot(x, y, batch, batch, {r - 1}, {r - 2}); };
  if (!c.attrBool("fast", true) && *m > 0 && *n > 0)
    return c.setResult(0, solveByRank(c, a, b, std::min(*m, *n), batch));
  bool tall = *m >= *n;
  Value gram = tall ? product(h, a) : product(a, h);
  Value lambda = c.convert(c.convert(c.input(2), realOf(c.elementType(a))), c.elementType(a));
  gram = c.add(gram, c.mul(lambda, identityMatrix(c, c.dims(gram), c.elementType(a))));
  // NaN for what is not positive definite, as in TensorFlow
  Value l = c.make<hlo::CholeskyOp>(gram, /*lower=*/true), y = tall ? product(h, b) : b;
  y = triangularSolve(c, l, y, true, false, hlo::Transpose::NO_TRANSPOSE);
  y = triangularSolve(c, l, y, true, false, hlo::Transpose::ADJOINT);
  return c.setResult(0, tall ? y : product(h, y));
}

/// A dense matrix from its diagonals: diagonal k of `bands` ([..., count, n]) is element (i, i + shift[k]) at place i.
Value denseOf(NodeContext &c, Value bands, ArrayRef<int64_t> shifts) {
  int64_t r = c.rank(bands);
  Dims dims = c.dims(bands);
  dims[r - 2] = dims[r - 1];
  Dims matrix(dims.end() - 2, dims.end());
  Type i32 = c.b.getI32Type();
  Value distance = c.sub(c.iota(matrix, 1, i32), c.iota(matrix, 0, i32)), result = c.splat(0, dims, c.elementType(bands));
  SmallVector<int64_t> map = llvm::to_vector(llvm::seq<int64_t>(0, r - 1));
  for (auto [k, shift] : llvm::enumerate(shifts)) {
    Value row = c.sliceDim(bands, r - 2, c.size(k), c.size(k + 1));
    Dims flat = dims;
    flat.pop_back();
    row = c.broadcastInDim(c.reshape(row, flat), dims, map);
    result = c.select(c.compare(Compare::EQ, distance, c.scalarInt(shift, i32)), row, result);
  }
  return result;
}

LogicalResult lowerTridiagonalSolve(NodeContext &c) {
  Value bands = c.input(0), b = c.input(1);
  int64_t r = c.rank(bands);
  if (failed(expectMatrix(c, bands, false)) || failed(expectMatrix(c, b, false)))
    return failure();
  if (constantOf(c.dim(bands, r - 2)) != int64_t(3))
    return c.error("expected three diagonals");
  if (c.isStatic(b) && c.type(b).getNumElements() == 0)
    return c.setResult(0, b);
  Value a = denseOf(c, bands, {1, 0, -1});
  if (c.attrBool("perturb_singular")) // only what needs it is refused
    return c.setResult(0, luSolve(c, a, b));
  Lu f = luOf(c, a);
  Value result = substitute(c, f, b);
  if (!result)
    return failure();
  // TensorFlow does not refuse a singular matrix
  Value d = diagonalOf(c, f.lu), singular = c.reduceOr(c.compare(Compare::EQ, d, c.like(d, 0)), {r - 2});
  singular = c.broadcastInDim(singular, c.dims(result), llvm::to_vector(llvm::seq<int64_t>(0, r - 2)));
  return c.setResult(0, c.select(singular, unknownLike(c, result), result));
}

LogicalResult lowerBandedSolve(NodeContext &c) {
  Value bands = c.input(0), b = c.input(1);
  if (failed(expectMatrix(c, bands, false)) || failed(expectMatrix(c, b, false)))
    return failure();
  bool lower = c.attrBool("lower", true);
  auto count = constantOf(c.dim(bands, c.rank(bands) - 2));
  if (!count)
    return c.error("the number of bands must be known");
  SmallVector<int64_t> shifts;
  for (int64_t k = 0; k < *count; ++k)
    shifts.push_back(lower ? -k : *count - 1 - k);
  Value a = denseOf(c, bands, shifts);
  if (!broadcastBatches(c, a, b))
    return failure();
  checkInvertible(c, a);
  auto transpose = c.attrBool("adjoint") ? hlo::Transpose::ADJOINT : hlo::Transpose::NO_TRANSPOSE;
  return c.setResult(0, triangularSolve(c, a, b, lower, false, transpose));
}

//===----------------------------------------------------------------------===//
// Fourier transforms
//===----------------------------------------------------------------------===//

/// A dimension of open size in a size that is known: what is behind it goes, what it lacks is 0.
Value cutOrFill(NodeContext &c, Value x, int64_t axis, int64_t size) {
  AffineExpr kept = smallerSize(c, c.dim(x, axis), c.size(size));
  if (!kept) {
    (void)c.error("dimension " + Twine(axis) + " must be known");
    return {};
  }
  x = c.sliceDim(x, axis, c.size(0), kept);
  return padBySizes(c, x, c.scalar(0, c.elementType(x)), axis, {{c.size(0), hlo::simplify(size - kept)}});
}

LogicalResult lowerFft(NodeContext &c, hlo::FftType kind, int64_t dims) {
  Value x = c.input(0);
  int64_t r = c.rank(x);
  if (r < dims)
    return c.error("expected rank " + Twine(dims) + " or more, found " + Twine(r));
  SmallVector<int64_t> lengths;
  bool real = kind == hlo::FftType::RFFT || kind == hlo::FftType::IRFFT;
  if (real) {
    auto given = c.constantInts(1);
    if (failed(given))
      return failure();
    lengths = *given;
    if (int64_t(lengths.size()) != dims)
      return c.error("expected " + Twine(dims) + " lengths, found " + Twine(lengths.size()));
  }
  // Longer inputs are cut, shorter ones filled with zeros.
  SmallVector<int64_t> low(r, 0), high(r, 0);
  for (int64_t i = 0; i < dims; ++i) {
    const int64_t axis = r - dims + i;
    auto size = constantOf(c.dim(x, axis));
    if (!real) {
      if (!size)
        return c.error("dimension " + Twine(axis) + " must be known");
      lengths.push_back(*size);
      continue;
    }
    if (lengths[i] < 0)
      return c.error("a length is negative");
    int64_t need = kind == hlo::FftType::IRFFT && i == dims - 1 ? lengths[i] / 2 + 1 : lengths[i];
    if (!size) {
      x = cutOrFill(c, x, axis, need);
      if (!x)
        return failure();
      size = need;
    }
    high[axis] = need - *size;
  }
  x = c.pad(x, c.scalar(0, c.elementType(x)), low, high);
  if (llvm::is_contained(lengths, 0)) {
    Dims shape = c.dims(x);
    for (int64_t i = 0; i < dims; ++i)
      shape[r - dims + i] = c.size(kind == hlo::FftType::RFFT && i == dims - 1 && lengths[i] ? lengths[i] / 2 + 1 : lengths[i]);
    return c.setResult(0, c.splat(0, shape, c.resultType(0)));
  }
  return c.setResult(0, c.make<hlo::FftOp>(x, kind, ArrayRef<int64_t>(lengths)));
}

/// One dimension after the other, each brought to the end for it. Of real ones the last in the list of axes is the real one: it is
/// the first to be done, or the last.
LogicalResult lowerFftNd(NodeContext &c, hlo::FftType kind) {
  Value x = c.input(0);
  int64_t r = c.rank(x);
  auto lengths = c.constantInts(1);
  auto axes = c.constantInts(2); // their order counts
  if (failed(lengths) || failed(axes))
    return failure();
  if (lengths->size() != axes->size())
    return c.error("expected " + Twine(axes->size()) + " lengths, found " + Twine(lengths->size()));
  bool forth = kind == hlo::FftType::RFFT, back = kind == hlo::FftType::IRFFT;
  hlo::FftType whole = forth ? hlo::FftType::FFT : back ? hlo::FftType::IFFT : kind;
  int64_t n = int64_t(axes->size());
  llvm::SmallSet<int64_t, 4> seen;
  for (int64_t &axis : *axes) {
    auto known = c.normalizeAxis(axis, r);
    if (failed(known))
      return failure();
    axis = *known;
    if (!seen.insert(axis).second)
      return c.error("axis " + Twine(axis) + " is there twice");
  }
  if (n == 0 && (forth || back))
    return c.error("expected at least one axis");
  for (int64_t i = 0; i < n; ++i) {
    int64_t k = forth ? n - 1 - i : i, axis = (*axes)[k], length = (*lengths)[k];
    if (length < 0 || length > INT32_MAX)
      return c.error("a length is negative or too large");
    bool real = (forth || back) && k == n - 1;
    const int64_t need = real && back ? length / 2 + 1 : length;
    if (!constantOf(c.dim(x, axis)) && !(x = cutOrFill(c, x, axis, need)))
      return failure();
    auto size = constantOf(c.dim(x, axis));
    if (!size)
      return c.error("dimension " + Twine(axis) + " must be known");
    SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, r)), low(r, 0), high(r, 0);
    std::swap(order[axis], order[r - 1]);
    high[r - 1] = need - *size;
    x = c.pad(c.transpose(x, order), c.scalar(0, c.elementType(x)), low, high);
    if (length == 0) {
      Dims shape = c.dims(x);
      shape[r - 1] = c.size(0);
      Type element = c.elementType(x);
      x = c.splat(0, shape, real ? c.resultType(0) : element);
    } else {
      x = c.make<hlo::FftOp>(x, real ? kind : whole, ArrayRef<int64_t>{length});
    }
    x = c.transpose(x, order);
  }
  return c.setResult(0, x);
}

} // namespace

void registerLinalg(HandlerTable &t) {
  registerMatrixFunctions(t);
  for (std::string batch : {"", "Batch"}) {
    // the old names are of the same operations, for batches
    t.add(batch + "Cholesky", 1, lowerCholesky);
    t.add(batch + "CholeskyGrad", 2, lowerCholeskyGrad);
    t.add(batch + "MatrixSolve", 2, lowerSolve);
    t.add(batch + "MatrixInverse", 1, lowerInverse);
    t.add(batch + "MatrixDeterminant", 1, [](NodeContext &c) { return lowerDeterminant(c, false); });
    t.add(batch + "Svd", 1, lowerSvd);
    t.add(batch + "SelfAdjointEig", 1, lowerJoinedEig);
    t.add(batch + "SelfAdjointEigV2", 1, lowerSelfAdjointEig);
    t.add(batch + "MatrixSolveLs", 3, lowerSolveLs);
  }
  t.add("MatrixTriangularSolve", 2, lowerTriangularSolve);
  t.add("BatchMatrixTriangularSolve", 2, lowerTriangularSolve);
  t.add("LogMatrixDeterminant", 1, [](NodeContext &c) { return lowerDeterminant(c, true); });
  t.add("Lu", 1, lowerLu);
  t.add("Qr", 1, lowerQr);
  t.add("TridiagonalSolve", 2, lowerTridiagonalSolve);
  t.add("BandedTriangularSolve", 2, lowerBandedSolve);
  struct {
    const char *name;
    hlo::FftType kind;
  } kinds[] = {{"FFT", hlo::FftType::FFT}, {"IFFT", hlo::FftType::IFFT}, {"RFFT", hlo::FftType::RFFT}, {"IRFFT", hlo::FftType::IRFFT}};
  for (auto &k : kinds) {
    hlo::FftType kind = k.kind;
    bool real = kind == hlo::FftType::RFFT || kind == hlo::FftType::IRFFT;
    t.add(std::string(k.name) + "ND", 3, [kind](NodeContext &c) { return lowerFftNd(c, kind); });
    for (int64_t dims = 1; dims <= 3; ++dims) {
      std::string name = k.name;
      if (dims > 1)
        name += std::to_string(dims) + "D";
      t.add(name, real ? 2 : 1, [kind, dims](NodeContext &c) { return lowerFft(c, kind, dims); });
      if (!real)
        t.add("Batch" + name, 1, [kind, dims](NodeContext &c) { return lowerFft(c, kind, dims); });
    }
  }
}

} // namespace lathe::legalize
