// Diagonals and bands of matrices. Places are computed at compile time and read through index tables, or where sizes are open by the run.
#include "passes/legalize/SizeReader.h"
#include "passes/legalize/array/ArrayFamilies.h"
#include "passes/legalize/array/ArrayHelpers.h"

using namespace mlir;

namespace lathe::legalize {
namespace {

/// Which diagonals of a rows x cols matrix a packed tensor holds, and how short ones are aligned in it.
struct Band {
  int64_t lower = 0, upper = 0, rows = 0, cols = 0;
  bool superLeft = true, subLeft = true;

  int64_t length(int64_t d) const { return std::min(rows + std::min<int64_t>(0, d), cols - std::max<int64_t>(0, d)); }
  int64_t maxLength() const {
    return std::min(rows + std::min<int64_t>(upper, 0), cols - std::max<int64_t>(lower, 0));
  }
  int64_t count() const { return upper - lower + 1; }
  /// Where diagonal d begins in its row of the packed tensor.
  int64_t offset(int64_t d) const {
    bool left = (d >= 0 && superLeft) || (d <= 0 && subLeft);
    return left ? 0 : maxLength() - length(d);
  }
  /// Packed place of matrix element (i, j), -1 outside the band.
  int64_t packed(int64_t i, int64_t j) const {
    int64_t d = j - i;
    if (d < lower || d > upper)
      return -1;
    return (upper - d) * maxLength() + i - std::max<int64_t>(0, -d) + offset(d);
  }
  /// Matrix place of packed element (row, n), -1 for padding.
  int64_t unpacked(int64_t row, int64_t n) const {
    int64_t d = upper - row, k = n - offset(d);
    if (k < 0 || k >= length(d))
      return -1;
    return (k + std::max<int64_t>(0, -d)) * cols + k + std::max<int64_t>(0, d);
  }
};

LogicalResult readAlign(NodeContext &c, Band &band) {
  StringRef align = c.attrString("align", "LEFT_LEFT");
  if (align != "LEFT_LEFT" && align != "LEFT_RIGHT" && align != "RIGHT_LEFT" && align != "RIGHT_RIGHT")
    return c.error("align '" + align + "' is unknown");
  band.superLeft = align.starts_with("LEFT");
  band.subLeft = align.ends_with("LEFT");
  return success();
}

LogicalResult readDiagonals(NodeContext &c, unsigned input, Band &band) {
  auto k = c.constantInts(input);
  if (failed(k))
    return failure();
  if (k->size() != 1 && k->size() != 2)
    return c.error("k must be one or two numbers");
  band.lower = (*k)[0];
  band.upper = k->back();
  if (band.lower > band.upper)
    return c.error("the lower diagonal lies above the upper one");
  return success();
}

LogicalResult checkTable(NodeContext &c, const Band &band) {
  if (band.rows > 0 && band.cols > (int64_t(1) << 26) / band.rows)
    return c.error("the matrix is too large for an index table");
  return success();
}

LogicalResult checkBand(NodeContext &c, const Band &band) {
  auto inside = [&](int64_t d) { return (d > -band.rows && d < band.cols) || d == 0; };
  if (!inside(band.lower) || !inside(band.upper))
    return c.error("a diagonal lies outside the " + Twine(band.rows) + " x " + Twine(band.cols) + " matrix");
  return checkTable(c, band);
}

/// Elements of the last dimension of `v` at the places of the table, `otherwise` (a scalar) for -1.
Value pick(NodeContext &c, Value v, ArrayRef<int64_t> table, Value otherwise) {
  int64_t axis = c.rank(v) - 1, size = *constantOf(c.dim(v, axis));
  Type i32 = c.b.getI32Type();
  SmallVector<int64_t> places(table);
  bool outside = llvm::is_contained(table, -1);
  Dims dims = c.dims(v);
  if (outside) {
    dims[axis] = c.size(1);
    v = c.concat({v, c.broadcastInDim(otherwise, dims, {})}, axis);
    for (int64_t &p : places)
      p = p < 0 ? size : p;
  }
  return gather(c, v, c.Emitter::constantInts(places, i32), axis, 0, /*checked=*/false);
}

/// The last `n` dimensions as one; they must be known.
Value flattenLast(NodeContext &c, Value v, int64_t n) {
  Dims dims = c.dims(v), flat(dims.begin(), dims.end() - n);
  flat.push_back(productOf(ArrayRef<AffineExpr>(dims).take_back(n), c.b.getContext()));
  return c.reshape(v, flat);
}

/// Input i as a scalar, whatever the rank of its one element.
Value onlyElement(NodeContext &c, unsigned i) {
  Value v = c.input(i);
  if (!v || c.rank(v) == 0)
    return v;
  if (constantOf(productOf(c.dims(v), c.b.getContext())) != int64_t(1)) {
    (void)c.error("input " + Twine(i) + " must be a scalar");
    return {};
  }
  return c.reshape(v, ArrayRef<int64_t>());
}

bool isMain(const Band &band) { return band.lower == 0 && band.upper == 0; }

/// Whether an element of a tensor of matrices lies on the main diagonal.
Value onDiagonal(NodeContext &c, const Dims &dims) {
  const int64_t rank = dims.size();
  Type i32 = c.b.getI32Type();
  return c.compare(Compare::EQ, c.iota(dims, rank - 2, i32), c.iota(dims, rank - 1, i32));
}

/// Matrices with these elements on the main diagonal, one for each row and column, and `otherwise` around them.
Value diagonalMatrices(NodeContext &c, Value diagonal, Value otherwise) {
  Dims dims = c.dims(diagonal);
  dims.push_back(dims.back());
  SmallVector<int64_t> map = llvm::to_vector(llvm::seq<int64_t>(0, c.rank(diagonal)));
  return c.select(onDiagonal(c, dims), c.broadcastInDim(diagonal, dims, map), otherwise);
}

/// The last two sizes of a tensor, if not both are numbers.
std::optional<std::pair<AffineExpr, AffineExpr>> openSizes(NodeContext &c, Value x) {
  if (c.rank(x) < 2)
    return std::nullopt;
  AffineExpr rows = c.dim(x, c.rank(x) - 2), cols = c.dim(x, c.rank(x) - 1);
  return constantOf(rows) && constantOf(cols) ? std::nullopt : std::optional(std::pair(rows, cols));
}

/// A band of matrices whose sizes are open, with the same places as Band's, computed by elements in i64.
class OpenBand {
public:
  OpenBand(NodeContext &c, const Band &band, AffineExpr rows, AffineExpr cols)
      : c(c), band(band), rows(rows), cols(cols), i64(c.b.getI64Type()) {}

  /// How long the longest of its diagonals is; null and an error where that has no bound. A diagonal outside the matrix fails at run time.
  AffineExpr maxLength() {
    for (int64_t d : {band.lower, band.upper})
      if (d != 0)
        c.check(c.compare(Compare::GT, d > 0 ? c.sizeValue(cols, i64) : c.sizeValue(rows, i64), number(std::abs(d))),
                "a diagonal lies outside the matrix");
    AffineExpr high = hlo::simplify(rows + std::min<int64_t>(band.upper, 0)), wide = hlo::simplify(cols - std::max<int64_t>(band.lower, 0));
    Value length = c.max(c.min(c.sizeValue(high, i64), c.sizeValue(wide, i64)), number(0));
    auto known = readSizes(c.ctx, c.loc, c.name(), length);
    if (!known)
      (void)c.error("the length of the diagonals has no bound");
    return known ? (*known)[0] : AffineExpr();
  }

  /// Of each element of a packed tensor [count, longest]: its place in the matrix and whether it has one.
  std::pair<Value, Value> unpacked(AffineExpr longest) {
    Dims dims{c.size(band.count()), longest};
    Value d = c.sub(number(band.upper), c.iota(dims, 0, i64));
    Value k = c.sub(c.iota(dims, 1, i64), offset(d, longest));
    Value inside = c.logicalAnd(c.compare(Compare::GE, k, number(0)), c.compare(Compare::LT, k, length(d)));
    Value row = c.add(k, c.max(c.neg(d), number(0))), col = c.add(k, c.max(d, number(0)));
    return {c.add(c.mul(row, c.sizeValue(cols, i64)), col), inside};
  }

  /// Of each element of a matrix: its place among packed diagonals that are `longest` long, and whether it has one.
  std::pair<Value, Value> packed(AffineExpr longest) {
    Dims dims{rows, cols};
    Value row = c.iota(dims, 0, i64), d = c.sub(c.iota(dims, 1, i64), row);
    Value inside = c.logicalAnd(c.compare(Compare::GE, d, number(band.lower)), c.compare(Compare::LE, d, number(band.upper)));
    Value k = c.add(c.sub(row, c.max(c.neg(d), number(0))), offset(d, longest));
    return {c.add(c.mul(c.sub(number(band.upper), d), c.sizeValue(longest, i64)), k), inside};
  }

private:
  Value number(int64_t n) { return c.scalarInt(n, i64); }
  Value length(Value d) {
    return c.min(c.add(c.min(d, number(0)), c.sizeValue(rows, i64)), c.sub(c.sizeValue(cols, i64), c.max(d, number(0))));
  }
  Value offset(Value d, AffineExpr longest) {
    Value right = c.sub(c.sizeValue(longest, i64), length(d));
    if (band.superLeft == band.subLeft)
      return band.superLeft ? c.like(d, 0) : right;
    // the main diagonal begins at the left if either side does
    Value left = c.compare(band.superLeft ? Compare::GE : Compare::LE, d, number(0));
    return c.select(left, number(0), right);
  }

  NodeContext &c;
  const Band &band;
  AffineExpr rows, cols;
  Type i64;
};

/// Elements of packed diagonals in the shape of matrices, and `otherwise` around them.
Value spreadBand(NodeContext &c, OpenBand &open, Value diagonal, int64_t packedRank, AffineExpr longest, Value padding, Value otherwise) {
  auto [places, inside] = open.packed(longest);
  // one element more, so that there is something to take where the diagonals have none
  Value flat = flattenLast(c, diagonal, packedRank);
  Dims one = c.dims(flat);
  one.back() = c.size(1);
  flat = c.concat({flat, c.broadcastInDim(padding, one, {})}, c.rank(flat) - 1);
  return c.select(inside, gather(c, flat, places, c.rank(flat) - 1, 0, /*checked=*/false), otherwise);
}

/// Diagonals of an open length, in the smallest matrix that has them or one of the sizes given.
LogicalResult openMatrixDiag(NodeContext &c, const Band &band, Value diagonal, Value padding) {
  const int64_t rank = c.rank(diagonal), packedRank = band.lower == band.upper ? 1 : 2;
  if (packedRank == 2 && (rank < 2 || constantOf(c.dim(diagonal, rank - 2)) != band.count()))
    return c.error("expected " + Twine(band.count()) + " diagonals");
  auto rows = c.sizeInput(2), cols = c.sizeInput(3);
  if (failed(rows) || failed(cols))
    return failure();
  AffineExpr length = c.dim(diagonal, rank - 1);
  const int64_t above = -std::min<int64_t>(band.upper, 0), before = std::max<int64_t>(band.lower, 0);
  AffineExpr minRows = hlo::simplify(length + above), minCols = hlo::simplify(length + before);
  const bool openRows = constantOf(*rows) == int64_t(-1), openCols = constantOf(*cols) == int64_t(-1);
  if (openRows)
    *rows = openCols && before > above ? minCols : minRows;
  if (openCols)
    *cols = openRows && above > before ? minRows : minCols;
  if (!openRows || !openCols) {
    Type i64 = c.b.getI64Type();
    auto compare = [&](Compare how, AffineExpr a, AffineExpr b) { return c.compare(how, c.sizeValue(a, i64), c.sizeValue(b, i64)); };
    Value fits = c.logicalOr(c.logicalAnd(compare(Compare::EQ, *rows, minRows), compare(Compare::GE, *cols, minCols)),
                             c.logicalAnd(compare(Compare::EQ, *cols, minCols), compare(Compare::GE, *rows, minRows)));
    c.check(fits, "the matrix does not fit the diagonals");
  }
  OpenBand open(c, band, *rows, *cols);
  return c.setResult(0, spreadBand(c, open, diagonal, packedRank, length, padding, padding));
}

LogicalResult openMatrixDiagPart(NodeContext &c, const Band &band, Value x, Value padding, AffineExpr rows, AffineExpr cols) {
  OpenBand open(c, band, rows, cols);
  AffineExpr longest = open.maxLength();
  if (!longest)
    return failure();
  auto [places, inside] = open.unpacked(longest);
  Value flat = flattenLast(c, x, 2);
  Value picked = gather(c, flat, places, c.rank(flat) - 1, 0, /*checked=*/false);
  picked = c.select(inside, picked, padding);
  if (band.lower == band.upper) {
    Dims dims = c.dims(picked);
    dims.erase(dims.end() - 2);
    picked = c.reshape(picked, dims);
  }
  return c.setResult(0, picked);
}

LogicalResult openMatrixSetDiag(NodeContext &c, const Band &band, Value x, Value diagonal, AffineExpr rows, AffineExpr cols) {
  const int64_t packedRank = band.lower == band.upper ? 1 : 2, batch = c.rank(x) - 2;
  if (c.rank(diagonal) != batch + packedRank)
    return c.error("expected diagonals of rank " + Twine(batch + packedRank) + ", found rank " + Twine(c.rank(diagonal)));
  for (int64_t i = 0; i < batch; ++i)
    if (!c.ctx.unify(c.dim(diagonal, i), c.dim(x, i), c.name()))
      return c.error("dimension " + Twine(i) + " of the diagonals is " + textOf(c.dim(diagonal, i)) + ", expected " + textOf(c.dim(x, i)));
  if (packedRank == 2 && constantOf(c.dim(diagonal, batch)) != band.count())
    return c.error("expected " + Twine(band.count()) + " diagonals");
  OpenBand open(c, band, rows, cols);
  AffineExpr longest = open.maxLength(), length = c.dim(diagonal, c.rank(diagonal) - 1);
  if (!longest)
    return failure();
  if (!c.ctx.unify(longest, length, c.name()))
    return c.error("the diagonals are " + textOf(length) + " long, expected " + textOf(longest));
  Value zero = c.scalar(0, c.elementType(x));
  return c.setResult(0, spreadBand(c, open, diagonal, packedRank, c.ctx.resolve(length), zero, x));
}

LogicalResult lowerMatrixDiag(NodeContext &c) {
  Value diagonal = c.input(0);
  int64_t rank = c.rank(diagonal);
  if (rank < 1)
    return c.error("the input must have rank 1 or more");
  Value padding = c.numInputs() > 4 ? onlyElement(c, 4) : c.scalar(0, c.elementType(diagonal));
  if (!padding)
    return failure();
  if (c.numInputs() == 1)
    return c.setResult(0, diagonalMatrices(c, diagonal, padding));
  Band band;
  if (failed(readDiagonals(c, 1, band)) || failed(readAlign(c, band)))
    return failure();
  auto length = constantOf(c.dim(diagonal, rank - 1));
  auto givenRows = boundedSizes(c, 2), givenCols = boundedSizes(c, 3);
  auto isOpen = [](const std::optional<Dims> &size) { return size && size->size() == 1 && constantOf((*size)[0]) == int64_t(-1); };
  if (!length && isMain(band) && isOpen(givenRows) && isOpen(givenCols))
    return c.setResult(0, diagonalMatrices(c, diagonal, padding));
  auto isNumber = [](const std::optional<Dims> &size) { return !size || llvm::all_of(*size, [](AffineExpr e) { return bool(constantOf(e)); }); };
  if (!length || !isNumber(givenRows) || !isNumber(givenCols))
    return openMatrixDiag(c, band, diagonal, padding);
  auto rows = c.constantInt(2), cols = c.constantInt(3);
  if (failed(rows) || failed(cols))
    return failure();
  int64_t packedRank = band.lower == band.upper ? 1 : 2;
  if (packedRank == 2 && (rank < 2 || constantOf(c.dim(diagonal, rank - 2)) != band.count()))
    return c.error("expected " + Twine(band.count()) + " diagonals");
  int64_t minRows = *length - std::min<int64_t>(band.upper, 0), minCols = *length + std::max<int64_t>(band.lower, 0);
  band.rows = *rows;
  band.cols = *cols;
  if (band.rows == -1 && band.cols == -1)
    band.rows = band.cols = std::max(minRows, minCols);
  if (band.rows == -1)
    band.rows = minRows;
  if (band.cols == -1)
    band.cols = minCols;
  if (band.rows < minRows || band.cols < minCols || (band.rows != minRows && band.cols != minCols))
    return c.error("the matrix does not fit the diagonals");
  if (failed(checkTable(c, band))) // diagonals outside a matrix of a size not given are dropped
    return failure();
  SmallVector<int64_t> table;
  for (int64_t i = 0; i < band.rows; ++i)
    for (int64_t j = 0; j < band.cols; ++j)
      table.push_back(band.packed(i, j));
  Dims dims = c.dims(diagonal);
  dims.resize(rank - packedRank);
  dims.push_back(c.size(band.rows));
  dims.push_back(c.size(band.cols));
  Value picked = pick(c, flattenLast(c, diagonal, packedRank), table, padding);
  return c.setResult(0, picked ? c.reshape(picked, dims) : Value());
}

LogicalResult readMatrix(NodeContext &c, Value x, Band &band) {
  if (c.rank(x) < 2)
    return c.error("the input must have rank 2 or more");
  auto rows = constantOf(c.dim(x, c.rank(x) - 2)), cols = constantOf(c.dim(x, c.rank(x) - 1));
  if (!rows || !cols)
    return c.error("the size of the matrices must be known");
  band.rows = *rows;
  band.cols = *cols;
  return success();
}

LogicalResult lowerMatrixDiagPart(NodeContext &c) {
  Value x = c.input(0);
  Value padding = c.numInputs() > 2 ? onlyElement(c, 2) : c.scalar(0, c.elementType(x));
  if (!padding)
    return failure();
  Band band;
  if (c.numInputs() > 1 && failed(readDiagonals(c, 1, band)))
    return failure();
  if (auto open = openSizes(c, x); open && isMain(band) && open->first == open->second) {
    // each n + 1 elements of a matrix of n x n
    Value flat = flattenLast(c, x, 2);
    Type i64 = c.b.getI64Type();
    Value places = c.iota({open->first}, 0, i64);
    places = c.mul(places, c.sizeValue(hlo::simplify(open->first + 1), i64));
    return c.setResult(0, gather(c, flat, places, c.rank(flat) - 1, 0, /*checked=*/false));
  } else if (open) {
    return failed(readAlign(c, band)) ? failure() : openMatrixDiagPart(c, band, x, padding, open->first, open->second);
  }
  if (failed(readMatrix(c, x, band)) || failed(readAlign(c, band)) || failed(checkBand(c, band)))
    return failure();
  SmallVector<int64_t> table;
  for (int64_t row = 0; row < band.count(); ++row)
    for (int64_t n = 0; n < band.maxLength(); ++n)
      table.push_back(band.unpacked(row, n));
  Dims dims = c.dims(x);
  dims.resize(c.rank(x) - 2);
  if (band.lower != band.upper)
    dims.push_back(c.size(band.count()));
  dims.push_back(c.size(band.maxLength()));
  Value picked = pick(c, flattenLast(c, x, 2), table, padding);
  return c.setResult(0, picked ? c.reshape(picked, dims) : Value());
}

LogicalResult lowerMatrixSetDiag(NodeContext &c) {
  Value x = c.input(0), diagonal = c.input(1);
  Band band;
  if (c.numInputs() > 2 && failed(readDiagonals(c, 2, band)))
    return failure();
  if (auto open = openSizes(c, x); open && isMain(band) && c.rank(diagonal) == c.rank(x) - 1) {
    // as long as the shorter side: a diagonal of a side's own size lies along that side
    const int64_t batch = c.rank(x) - 2;
    const AffineExpr length = c.dim(diagonal, batch);
    const bool alongRows = length == open->first;
    if (alongRows || length == open->second) {
      Dims dims = c.dims(x);
      for (int64_t i = 0; i < batch; ++i)
        if (!c.ctx.unify(c.dim(diagonal, i), dims[i], c.name()))
          return c.error("dimension " + Twine(i) + " of the diagonals is " + textOf(c.dim(diagonal, i)) + ", expected " + textOf(dims[i]));
      SmallVector<int64_t> map = llvm::to_vector(llvm::seq<int64_t>(0, batch));
      map.push_back(alongRows ? batch : batch + 1);
      return c.setResult(0, c.select(onDiagonal(c, dims), c.broadcastInDim(diagonal, dims, map), x));
    }
  }
  if (auto open = openSizes(c, x))
    return failed(readAlign(c, band)) ? failure() : openMatrixSetDiag(c, band, x, diagonal, open->first, open->second);
  if (failed(readMatrix(c, x, band)) || failed(readAlign(c, band)) || failed(checkBand(c, band)))
    return failure();
  int64_t packedRank = band.lower == band.upper ? 1 : 2;
  Dims wanted = c.dims(x);
  wanted.resize(c.rank(x) - 2);
  if (packedRank == 2)
    wanted.push_back(c.size(band.count()));
  wanted.push_back(c.size(band.maxLength()));
  if (c.rank(diagonal) != int64_t(wanted.size()))
    return c.error("expected diagonals of rank " + Twine(wanted.size()) + ", found rank " + Twine(c.rank(diagonal)));
  for (auto [i, w] : llvm::enumerate(wanted))
    if (!c.ctx.unify(c.dim(diagonal, i), w, c.name()))
      return c.error("dimension " + Twine(i) + " of the diagonals is " + textOf(c.dim(diagonal, i)) + ", expected " +
                     textOf(w));
  // Packed diagonals behind the matrix, and a table of which to read.
  int64_t size = band.rows * band.cols;
  SmallVector<int64_t> table;
  for (int64_t i = 0; i < band.rows; ++i)
    for (int64_t j = 0; j < band.cols; ++j) {
      int64_t p = band.packed(i, j);
      table.push_back(p < 0 ? i * band.cols + j : size + p);
    }
  Value flat = flattenLast(c, x, 2);
  Value both = c.concat({flat, flattenLast(c, diagonal, packedRank)}, c.rank(flat) - 1);
  Value picked = pick(c, both, table, {});
  return c.setResult(0, picked ? c.reshape(picked, c.dims(x)) : Value());
}

LogicalResult lowerMatrixBandPart(NodeContext &c) {
  Value x = c.input(0);
  if (c.rank(x) < 2 || failed(c.expectRank(1, 0)) || failed(c.expectRank(2, 0)))
    return c.error("expected a matrix and two scalars");
  Dims dims = c.dims(x), matrix(dims.end() - 2, dims.end());
  Type t = c.elementType(c.input(1));
  Value row = c.iota(matrix, 0, t), col = c.iota(matrix, 1, t), zero = c.scalarInt(0, t);
  auto within = [&](Value limit, Value distance) {
    return c.logicalOr(c.compare(Compare::LT, limit, zero), c.compare(Compare::LE, distance, limit));
  };
  Value keep = c.logicalAnd(within(c.input(1), c.sub(row, col)), within(c.convert(c.input(2), t), c.sub(col, row)));
  return c.setResult(0, c.select(keep, x, c.scalar(0, c.elementType(x))));
}

LogicalResult lowerTridiagonalMatMul(NodeContext &c) {
  Value x = c.input(3);
  int64_t rank = c.rank(x), row = rank - 2;
  if (rank < 2)
    return c.error("expected a matrix on the right");
  Value sum;
  for (unsigned i = 0; i < 3; ++i) {
    // [..., 1, m] as a column
    Value d = c.input(i);
    if (c.rank(d) != rank)
      return c.error("the diagonals must have rank " + Twine(rank));
    Dims dims = c.dims(d);
    std::swap(dims[rank - 1], dims[rank - 2]);
    d = c.reshape(d, dims);
    // above: the next row; below: the previous one
    Value v = x;
    SmallVector<int64_t> low(rank, 0), high(rank, 0);
    if (i == 0)
      low[row] = -1, high[row] = 1;
    if (i == 2)
      low[row] = 1, high[row] = -1;
    v = c.pad(v, c.scalar(0, c.elementType(x)), low, high);
    Value term = c.mul(d, v);
    sum = sum ? c.add(sum, term) : term;
  }
  return c.setResult(0, sum);
}

} // namespace

void registerMatrix(HandlerTable &t) {
  t.add("MatrixDiag", 1, lowerMatrixDiag);
  t.add("MatrixDiagV2", 5, lowerMatrixDiag);
  t.add("MatrixDiagV3", 5, lowerMatrixDiag);
  t.add("BatchMatrixDiag", 1, lowerMatrixDiag);
  t.add("MatrixDiagPart", 1, lowerMatrixDiagPart);
  t.add("MatrixDiagPartV2", 3, lowerMatrixDiagPart);
  t.add("MatrixDiagPartV3", 3, lowerMatrixDiagPart);
  t.add("BatchMatrixDiagPart", 1, lowerMatrixDiagPart);
  t.add("MatrixSetDiag", 2, lowerMatrixSetDiag);
  t.add("MatrixSetDiagV2", 3, lowerMatrixSetDiag);
  t.add("MatrixSetDiagV3", 3, lowerMatrixSetDiag);
  t.add("BatchMatrixSetDiag", 2, lowerMatrixSetDiag);
  t.add("MatrixBandPart", 3, lowerMatrixBandPart);
  t.add("BatchMatrixBandPart", 3, lowerMatrixBandPart);
  t.add("TridiagonalMatMul", 4, lowerTridiagonalMatMul);
}

} // namespace lathe::legalize
