// Matrices in the last two dimensions, diagonals, Fourier transforms.
#include "ops/shapes/Families.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

namespace lathe::ops {
namespace {

/// The smaller size; -1 where that is not known.
int64_t smaller(int64_t a, int64_t b) {
  if (a == 0 || b == 0)
    return 0;
  return a < 0 || b < 0 ? -1 : std::min(a, b);
}

PartialShape extended(const PartialShape &batch, std::initializer_list<int64_t> sizes) {
  PartialShape out = batch;
  if (out)
    out->insert(out->end(), sizes);
  return out;
}

/// Matrices in input `i`, cut into what is before them, their rows and their columns; unknown sizes where the rank is.
absl::Status cutMatrices(const ShapeQuery &q, int i, PartialShape *batch, int64_t *rows, int64_t *columns) {
  PartialShape shape = q.inputShape(i);
  LATHE_CHECK(expectRankAtLeast(shape, 2, absl::StrCat("input ", i)));
  *rows = *columns = -1;
  batch->reset();
  if (shape) {
    *rows = (*shape)[shape->size() - 2];
    *columns = shape->back();
    shape->resize(shape->size() - 2);
    *batch = shape;
  }
  return absl::OkStatus();
}

absl::Status merge(int64_t *a, int64_t b, const char *what) {
  std::optional<int64_t> size = mergeSizes(*a, b);
  if (!size)
    return absl::InvalidArgumentError(absl::StrCat(what, " are ", *a, " and ", b));
  *a = *size;
  return absl::OkStatus();
}

absl::Status svd(const ShapeQuery &q, Shapes *out) {
  PartialShape batch;
  int64_t m, n;
  LATHE_CHECK(cutMatrices(q, 0, &batch, &m, &n));
  const int64_t p = smaller(m, n);
  const bool isFull = q.boolAttr("full_matrices");
  (*out)[0] = extended(batch, {p});
  if (q.boolAttr("compute_uv")) {
    (*out)[1] = extended(batch, {m, isFull ? m : p});
    (*out)[2] = extended(batch, {n, isFull ? n : p});
  } else {
    (*out)[1] = (*out)[2] = std::vector<int64_t>{0};
  }
  return absl::OkStatus();
}

absl::Status qr(const ShapeQuery &q, Shapes *out) {
  PartialShape batch;
  int64_t m, n;
  LATHE_CHECK(cutMatrices(q, 0, &batch, &m, &n));
  const int64_t inner = q.boolAttr("full_matrices") ? m : smaller(m, n);
  (*out)[0] = extended(batch, {m, inner});
  (*out)[1] = extended(batch, {inner, n});
  return absl::OkStatus();
}

absl::Status eigen(const ShapeQuery &q, Shapes *out) {
  PartialShape batch;
  int64_t m, n;
  LATHE_CHECK(cutMatrices(q, 0, &batch, &m, &n));
  LATHE_CHECK(merge(&m, n, "rows and columns"));
  (*out)[0] = extended(batch, {m});
  (*out)[1] = q.boolAttr("compute_v") ? extended(batch, {m, m}) : std::vector<int64_t>{0};
  return absl::OkStatus();
}

/// `square`: input 0 is a matrix, else it has a row for each band of one.
absl::Status triangularSolve(const ShapeQuery &q, Shapes *out, bool square) {
  PartialShape left, right, batch;
  int64_t m, n, rows, columns;
  LATHE_CHECK(cutMatrices(q, 0, &left, &m, &n));
  LATHE_CHECK(cutMatrices(q, 1, &right, &rows, &columns));
  if (square)
    LATHE_CHECK(merge(&n, m, "rows and columns"));
  else if (m == 0 || (m > n && n >= 0))
    return absl::InvalidArgumentError(absl::StrCat(m, " bands of a matrix of ", n, " x ", n));
  LATHE_CHECK(merge(&n, rows, "the matrix's rows and those of the right side"));
  LATHE_ASSIGN(batch, broadcastShapes(left, right));
  (*out)[0] = extended(batch, {n, columns});
  return absl::OkStatus();
}

absl::Status matrixTriangularSolve(const ShapeQuery &q, Shapes *out) { return triangularSolve(q, out, true); }
absl::Status bandedTriangularSolve(const ShapeQuery &q, Shapes *out) { return triangularSolve(q, out, false); }

absl::Status expectFewDiagonals(const ShapeQuery &q, int input) {
  PartialShape shape = q.inputShape(input);
  if (shape && shape->size() > 1)
    return absl::InvalidArgumentError(absl::StrCat("diagonals have shape ", shapeToString(shape), ", expected a scalar or a vector"));
  return absl::OkStatus();
}

/// The first and the last diagonal that an input names; false where it is not known.
absl::StatusOr<bool> diagonals(const ShapeQuery &q, int input, int64_t *low, int64_t *high) {
  std::optional<PartialValues> k = q.inputValues(input);
  if (!k || !std::all_of(k->begin(), k->end(), [](auto &v) { return v.has_value(); }))
    return false;
  if (k->empty() || k->size() > 2)
    return absl::InvalidArgumentError(absl::StrCat(k->size(), " numbers of diagonals, expected one or two"));
  *low = *k->front();
  *high = *k->back();
  constexpr int64_t kMost = INT64_C(1) << 31;
  if (*low > *high || *low < -kMost || *high > kMost)
    return absl::InvalidArgumentError(absl::StrCat("diagonals from ", *low, " to ", *high));
  return true;
}

/// Of what input 0 has, in a matrix of so many rows and columns.
absl::Status checkDiagonals(int64_t low, int64_t high, int64_t rows, int64_t columns) {
  for (int64_t k : {low, high})
    if (rows >= 0 && columns >= 0 && k != 0 && (k <= -rows || k >= columns))
      return absl::InvalidArgumentError(absl::StrCat("diagonal ", k, " of ", rows, " x ", columns));
  return absl::OkStatus();
}

int64_t diagonalLength(int64_t low, int64_t high, int64_t rows, int64_t columns) {
  return rows < 0 || columns < 0 ? -1 : std::min(rows + std::min<int64_t>(high, 0), columns - std::max<int64_t>(low, 0));
}

/// Bands of matrices, one above the other: each as long as the matrix on the right is high. What pairs are compared is TensorFlow's.
absl::Status tridiagonalProduct(const ShapeQuery &q, Shapes *) {
  PartialShape batches[4];
  int64_t lengths[4], rows, columns;
  for (int i = 0; i < 4; ++i) {
    LATHE_CHECK(cutMatrices(q, i, &batches[i], &rows, &columns));
    lengths[i] = i == 3 ? rows : columns;
    if (i < 3 && !mergeSizes(rows, 1))
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " has ", rows, " rows, expected 1"));
  }
  for (auto [a, b] : {std::pair(0, 1), std::pair(0, 2), std::pair(1, 3), std::pair(2, 3)}) {
    LATHE_CHECK(mergeShapes(batches[a], batches[b]).status());
    if (!mergeSizes(lengths[a], lengths[b]))
      return absl::InvalidArgumentError(absl::StrCat("inputs ", a, " and ", b, " are of ", lengths[a], " and ", lengths[b], " rows"));
  }
  return absl::OkStatus();
}

absl::Status diagPart(const ShapeQuery &q, Shapes *out) {
  PartialShape batch;
  int64_t rows, columns, low = 0, high = 0;
  LATHE_CHECK(cutMatrices(q, 0, &batch, &rows, &columns));
  if (q.numInputs() > 1) {
    bool isKnown = false;
    LATHE_CHECK(expectRank(q.inputShape(2), 0, "the padding"));
    LATHE_CHECK(expectFewDiagonals(q, 1));
    if (batch)
      LATHE_ASSIGN(isKnown, diagonals(q, 1, &low, &high));
    if (!isKnown)
      return absl::OkStatus();
    LATHE_CHECK(checkDiagonals(low, high, rows, columns));
  }
  const int64_t length = q.numInputs() > 1 ? diagonalLength(low, high, rows, columns) : smaller(rows, columns);
  (*out)[0] = low < high ? extended(batch, {high - low + 1, length}) : extended(batch, {length});
  return absl::OkStatus();
}

absl::Status diag(const ShapeQuery &q, Shapes *out) {
  PartialShape shape = q.inputShape(0);
  int64_t low, high;
  bool isKnown;
  LATHE_CHECK(expectRankAtLeast(shape, 1, "the diagonals"));
  for (int i : {2, 3, 4})
    LATHE_CHECK(expectRank(q.inputShape(i), 0, absl::StrCat("input ", i)));
  LATHE_CHECK(expectFewDiagonals(q, 1));
  if (!shape)
    return absl::OkStatus();
  LATHE_ASSIGN(isKnown, diagonals(q, 1, &low, &high));
  if (!isKnown)
    return absl::OkStatus();
  const int64_t length = shape->back(), count = high - low + 1;
  shape->pop_back();
  if (count > 1) {
    if (shape->empty() || !mergeSizes(shape->back(), count))
      return absl::InvalidArgumentError(absl::StrCat(count, " diagonals in ", shapeToString(q.inputShape(0))));
    shape->pop_back();
  }
  // -1 asks for the least
  std::optional<int64_t> rows = scalarValue(q, 2), columns = scalarValue(q, 3);
  if ((columns && *columns >= 0 && *columns < low) || (rows && *rows >= 0 && *rows < -high))
    return absl::InvalidArgumentError(
        absl::StrCat("diagonals from ", low, " to ", high, " of ", rows.value_or(-1), " x ", columns.value_or(-1)));
  const int64_t leastRows = length < 0 ? -1 : length - std::min<int64_t>(high, 0);
  const int64_t leastColumns = length < 0 ? -1 : length + std::max<int64_t>(low, 0);
  if (length >= 0 && ((rows && *rows != -1 && *rows < leastRows) || (columns && *columns != -1 && *columns < leastColumns)))
    return absl::InvalidArgumentError(absl::StrCat("diagonals of ", length, " do not fit into ", *rows, " x ", *columns));
  int64_t height = rows.value_or(-1), width = columns.value_or(-1);
  if (rows && columns && length >= 0) {
    if (height == -1 && width == -1)
      height = width = std::max(leastRows, leastColumns);
    height = height == -1 ? leastRows : height;
    width = width == -1 ? leastColumns : width;
    if (height != leastRows && width != leastColumns)
      return absl::InvalidArgumentError(absl::StrCat("diagonals of ", length, " leave room in ", height, " x ", width));
  }
  (*out)[0] = extended(shape, {std::max<int64_t>(height, -1), std::max<int64_t>(width, -1)});
  return absl::OkStatus();
}

absl::Status setDiag(const ShapeQuery &q, Shapes *out) {
  PartialShape batch, diagonal = q.inputShape(1);
  int64_t rows, columns, low = 0, high = 0;
  bool isKnown = true;
  LATHE_CHECK(cutMatrices(q, 0, &batch, &rows, &columns));
  LATHE_CHECK(expectRankAtLeast(diagonal, 1, "the diagonals"));
  if (q.numInputs() > 2)
    LATHE_CHECK(expectFewDiagonals(q, 2));
  if (q.numInputs() > 2 && batch) {
    LATHE_ASSIGN(isKnown, diagonals(q, 2, &low, &high));
    LATHE_CHECK(checkDiagonals(low, high, rows, columns));
  }
  if (batch && diagonal) { // one diagonal or a band
    const size_t rank = batch->size() + 2, given = diagonal->size();
    if (isKnown ? given != rank - (low == high) : given + 1 != rank && given != rank)
      return absl::InvalidArgumentError(absl::StrCat("diagonals of shape ", shapeToString(diagonal), " for matrices ",
                                                     shapeToString(q.inputShape(0))));
    if (PartialShape others = std::vector<int64_t>(diagonal->begin(), diagonal->begin() + static_cast<int64_t>(batch->size()));
        !isKnown && given + 1 == rank && numElements(q.inputShape(0)) < 0)
      LATHE_CHECK(mergeShapes(batch, others).status());
  }
  const size_t own = isKnown && low < high ? 2 : 1;
  if (isKnown && diagonal) {
    LATHE_CHECK(expectRankAtLeast(diagonal, static_cast<int64_t>(own), "the diagonals"));
    int64_t length = smaller(rows, columns), count = high - low + 1;
    if (q.numInputs() == 2) // later versions leave that to the kernel
      LATHE_CHECK(merge(&length, diagonal->back(), "diagonals' lengths"));
    if (own == 2)
      LATHE_CHECK(merge(&count, (*diagonal)[diagonal->size() - 2], "diagonals"));
    diagonal->resize(diagonal->size() - own);
    // the first version looks at whole shapes alone
    if (q.numInputs() > 2 || numElements(q.inputShape(1)) >= 0)
      LATHE_ASSIGN(batch, mergeShapes(batch, diagonal));
  }
  (*out)[0] = extended(batch, {rows, columns});
  return absl::OkStatus();
}

/// Input 0 is a tensor of rank 2 k; its diagonal has rank k.
absl::Status tensorDiagPart(const ShapeQuery &q, Shapes *out) {
  PartialShape shape = q.inputShape(0);
  if (!shape)
    return absl::OkStatus();
  if (shape->empty() || shape->size() % 2)
    return absl::InvalidArgumentError(absl::StrCat("input 0 has shape ", shapeToString(shape), ", expected an even rank"));
  const auto half = shape->begin() + static_cast<int64_t>(shape->size() / 2);
  LATHE_ASSIGN((*out)[0], mergeShapes(std::vector<int64_t>(shape->begin(), half), std::vector<int64_t>(half, shape->end())));
  return absl::OkStatus();
}

/// Real transforms of `rank` dimensions; back from half a spectrum where `isInverse`.
template <int rank, bool isInverse>
absl::Status realFourier(const ShapeQuery &q, Shapes *out) {
  PartialShape shape = q.inputShape(0), lengths = q.inputShape(1);
  LATHE_CHECK(expectRankAtLeast(shape, rank, "the input"));
  LATHE_CHECK(expectRank(lengths, 1, "the lengths"));
  if (!mergeSizes(sizeAt(lengths, 0), rank))
    return absl::InvalidArgumentError(absl::StrCat(sizeAt(lengths, 0), " lengths for ", rank, " dimensions"));
  if (!shape)
    return absl::OkStatus();
  std::optional<PartialValues> values = q.inputValues(1);
  for (size_t i = 0; i < rank; ++i) {
    const std::optional<int64_t> length = values && values->size() == rank ? (*values)[i] : std::nullopt;
    int64_t &size = (*shape)[shape->size() - rank + i];
    size = !length || *length < 0 ? -1 : *length == 0 || isInverse || i + 1 < rank ? *length : *length / 2 + 1;
  }
  (*out)[0] = shape;
  return absl::OkStatus();
}

/// Transforms along given axes to given lengths, and windows: TensorFlow's functions do not follow their sizes.
absl::Status sameRank(const ShapeQuery &q, Shapes *out) {
  if (PartialShape shape = q.inputShape(0))
    (*out)[0] = unknownOfRank(static_cast<int64_t>(shape->size()));
  return absl::OkStatus();
}

absl::Status fourierND(const ShapeQuery &q, Shapes *out) {
  LATHE_CHECK(expectRankAtLeast(q.inputShape(0), 1, "the input"));
  return sameRank(q, out);
}

absl::Status spectrogram(const ShapeQuery &q, Shapes *out) {
  PartialShape input = q.inputShape(0);
  LATHE_CHECK(expectRank(input, 2, "the sound"));
  const int64_t window = q.intAttr("window_size"), stride = q.intAttr("stride"), samples = sizeAt(input, 0);
  if (stride <= 0 || window <= 0 || window > INT64_C(1) << 40)
    return absl::InvalidArgumentError(absl::StrCat("a window of ", window, " and a stride of ", stride));
  int64_t power = 1;
  while (power < window)
    power *= 2;
  (*out)[0] = std::vector<int64_t>{sizeAt(input, 1), samples < 0 ? -1 : samples < window ? 0 : (samples - window) / stride + 1, power / 2 + 1};
  return absl::OkStatus();
}

} // namespace

void addLinalgShapes(ShapeTable *table) {
  auto all = addsTo(table);
  all({"Svd", "BatchSvd"}, svd);
  all({"Qr"}, qr);
  all({"Eig", "SelfAdjointEigV2", "BatchSelfAdjointEigV2"}, eigen);
  all({"MatrixTriangularSolve", "BatchMatrixTriangularSolve"}, matrixTriangularSolve);
  all({"BandedTriangularSolve"}, bandedTriangularSolve);
  all({"MatrixDiagPart", "BatchMatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3"}, diagPart);
  all({"MatrixDiagV2", "MatrixDiagV3"}, diag);
  all({"MatrixSetDiag", "BatchMatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3"}, setDiag);
  all({"DiagPart"}, tensorDiagPart);
  all({"TridiagonalMatMul"}, tridiagonalProduct);
  all({"RFFT"}, realFourier<1, false>);
  all({"RFFT2D"}, realFourier<2, false>);
  all({"RFFT3D"}, realFourier<3, false>);
  all({"IRFFT"}, realFourier<1, true>);
  all({"IRFFT2D"}, realFourier<2, true>);
  all({"IRFFT3D"}, realFourier<3, true>);
  all({"FFTND", "IFFTND", "RFFTND", "IRFFTND"}, fourierND);
  all({"XlaReduceWindow"}, sameRank);
  all({"AudioSpectrogram"}, spectrogram);
}

} // namespace lathe::ops
