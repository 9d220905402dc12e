// Elementwise ops, reductions and products.
#include "ops/shapes/Families.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <map>
#include <set>

namespace lathe::ops {
namespace {

/// Equal and NotEqual give a scalar for shapes that do not go together, where they are told to.
absl::Status equality(const ShapeQuery &q, Shapes *out) {
  auto shape = broadcastShapes(q.inputShape(0), q.inputShape(1));
  if (!q.boolAttr("incompatible_shape_error")) {
    bool isCertain = shape.ok() && *shape;
    for (int i = 0; i < 2 && isCertain; ++i) {
      PartialShape input = q.inputShape(i);
      for (int64_t size : *input)
        isCertain &= size >= 0;
    }
    (*out)[0] = isCertain ? *shape : std::nullopt;
    return absl::OkStatus();
  }
  LATHE_ASSIGN((*out)[0], std::move(shape));
  return absl::OkStatus();
}

absl::Status selectV2(const ShapeQuery &q, Shapes *out) {
  PartialShape branches;
  LATHE_ASSIGN(branches, broadcastShapes(q.inputShape(1), q.inputShape(2)));
  LATHE_ASSIGN((*out)[0], broadcastShapes(q.inputShape(0), branches));
  return absl::OkStatus();
}

/// The condition may be a scalar, or a vector that chooses rows.
absl::Status selectV1(const ShapeQuery &q, Shapes *out) {
  PartialShape condition = q.inputShape(0), branches;
  LATHE_ASSIGN(branches, mergeShapes(q.inputShape(1), q.inputShape(2)));
  if (condition && branches && condition->size() == 1 && !branches->empty()) {
    std::optional<int64_t> rows = mergeSizes((*condition)[0], (*branches)[0]);
    if (!rows)
      return absl::InvalidArgumentError(absl::StrCat("conditions for ", (*condition)[0], " rows of ", (*branches)[0]));
  } else if (condition && branches && !condition->empty()) {
    LATHE_ASSIGN(branches, mergeShapes(condition, branches));
  }
  (*out)[0] = branches;
  return absl::OkStatus();
}

absl::Status mergeAll(const ShapeQuery &q, Shapes *out) {
  for (int i = 0; i < q.numInputs(); ++i)
    LATHE_ASSIGN((*out)[0], mergeShapes((*out)[0], q.inputShape(i)));
  return absl::OkStatus();
}

absl::Status accumulate(const ShapeQuery &q, Shapes *out) {
  (*out)[0] = q.shapeAttr("shape");
  return absl::OkStatus();
}

/// Scalars aside, all have one shape.
absl::Status sameOrScalar(const ShapeQuery &q, Shapes *out) {
  PartialShape shape;
  bool isScalar = true;
  for (int i = 0; i < q.numInputs(); ++i) {
    PartialShape s = q.inputShape(i);
    isScalar &= s && s->empty();
    if (s && !s->empty())
      LATHE_ASSIGN(shape, mergeShapes(shape, s));
  }
  (*out)[0] = isScalar ? std::vector<int64_t>() : shape;
  return absl::OkStatus();
}

absl::Status argReduction(const ShapeQuery &q, Shapes *out) {
  PartialShape shape = q.inputShape(0);
  LATHE_CHECK(expectRank(q.inputShape(1), 0, "the axis"));
  if (!shape)
    return absl::OkStatus();
  const int64_t rank = static_cast<int64_t>(shape->size());
  if (rank <= 1) {
    (*out)[0] = std::vector<int64_t>();
    return absl::OkStatus();
  }
  std::optional<int64_t> axis = scalarValue(q, 1);
  if (!axis) {
    (*out)[0] = unknownOfRank(rank - 1);
    return absl::OkStatus();
  }
  int64_t front;
  LATHE_ASSIGN(front, frontAxis(*axis, rank));
  shape->erase(shape->begin() + front);
  (*out)[0] = shape;
  return absl::OkStatus();
}

absl::Status innerDiffer(int64_t a, int64_t b) {
  return absl::InvalidArgumentError(absl::StrCat("inner dimensions differ: ", a, " and ", b));
}

absl::Status batchMatMul(const ShapeQuery &q, Shapes *out) {
  PartialShape a = q.inputShape(0), b = q.inputShape(1);
  LATHE_CHECK(expectRankAtLeast(a, 2, "input 0"));
  LATHE_CHECK(expectRankAtLeast(b, 2, "input 1"));
  if (!a || !b)
    return absl::OkStatus();
  const bool ta = q.boolAttr("adj_x"), tb = q.boolAttr("adj_y");
  size_t ra = a->size(), rb = b->size();
  int64_t inner = (*a)[ta ? ra - 2 : ra - 1], other = (*b)[tb ? rb - 1 : rb - 2];
  if (!mergeSizes(inner, other))
    return innerDiffer(inner, other);
  int64_t rows = (*a)[ta ? ra - 1 : ra - 2], columns = (*b)[tb ? rb - 2 : rb - 1];
  a->resize(ra - 2);
  b->resize(rb - 2);
  PartialShape batch;
  if (q.op().name == "BatchMatMul") // the first version does not broadcast
    LATHE_ASSIGN(batch, mergeShapes(a, b));
  else
    LATHE_ASSIGN(batch, broadcastShapes(a, b));
  batch->push_back(rows);
  batch->push_back(columns);
  (*out)[0] = batch;
  return absl::OkStatus();
}

/// Labels of one tensor; dimensions without one stand where "..." does.
struct Labels {
  std::string before, after;
  bool hasEllipsis = false;
  size_t size() const { return before.size() + after.size(); }
};

std::optional<Labels> readLabels(const std::string &text) {
  Labels out;
  const size_t dots = text.find('.');
  out.hasEllipsis = dots != std::string::npos;
  out.before = text.substr(0, dots);
  if (out.hasEllipsis && text.compare(dots, 3, "...") != 0)
    return std::nullopt;
  if (out.hasEllipsis)
    out.after = text.substr(dots + 3);
  return out.after.find('.') == std::string::npos ? std::optional<Labels>(out) : std::nullopt;
}

absl::Status einsum(const ShapeQuery &q, Shapes *out) {
  const std::string equation = q.stringAttr("equation");
  const size_t arrow = equation.find("->");
  if (arrow == std::string::npos)
    return absl::OkStatus();
  std::map<char, int64_t> sizes;
  PartialShape others = std::vector<int64_t>(); // what "..." stands for
  size_t at = 0;
  for (int i = 0; i < q.numInputs(); ++i) {
    const size_t end = std::min(equation.find(',', at), arrow);
    std::optional<Labels> labels = at <= arrow ? readLabels(equation.substr(at, end - at)) : std::nullopt;
    at = end + 1;
    if (!labels)
      return absl::OkStatus();
    PartialShape shape = q.inputShape(i);
    if (labels->hasEllipsis)
      LATHE_CHECK(expectRankAtLeast(shape, static_cast<int64_t>(labels->size()), absl::StrCat("input ", i)));
    else
      LATHE_CHECK(expectRank(shape, static_cast<int64_t>(labels->size()), absl::StrCat("input ", i)));
    const std::string all = labels->before + labels->after;
    for (size_t k = 0; k < all.size(); ++k) {
      const size_t place = k < labels->before.size() || !shape ? k : shape->size() - all.size() + k;
      int64_t size = shape ? (*shape)[place] : -1;
      auto [it, isNew] = sizes.emplace(all[k], size);
      std::optional<int64_t> merged = isNew ? size : mergeSizes(it->second, size);
      if (!merged)
        return absl::InvalidArgumentError(
            absl::StrCat("sizes ", it->second, " and ", size, " of label '", std::string(1, all[k]), "' differ"));
      it->second = *merged;
    }
    if (!labels->hasEllipsis)
      continue;
    PartialShape own;
    if (shape)
      own = std::vector<int64_t>(shape->begin() + static_cast<int64_t>(labels->before.size()),
                                 shape->end() - static_cast<int64_t>(labels->after.size()));
    LATHE_ASSIGN(others, broadcastShapes(others, own));
  }
  std::optional<Labels> labels = readLabels(equation.substr(arrow + 2));
  if (!labels || (labels->hasEllipsis && !others))
    return absl::OkStatus();
  std::vector<int64_t> result;
  for (const std::string *part : {&labels->before, &labels->after}) {
    if (part == &labels->after && labels->hasEllipsis)
      result.insert(result.end(), others->begin(), others->end());
    for (char label : *part) {
      auto it = sizes.find(label);
      if (it == sizes.end())
        return absl::OkStatus();
      result.push_back(it->second);
    }
  }
  (*out)[0] = result;
  return absl::OkStatus();
}

absl::Status bincount(const ShapeQuery &q, Shapes *out) {
  int64_t size;
  LATHE_ASSIGN(size, sizeFrom(q, 1, "the number of bins"));
  (*out)[0] = std::vector<int64_t>{size};
  return absl::OkStatus();
}

absl::Status histogram(const ShapeQuery &q, Shapes *) {
  std::optional<int64_t> bins = scalarValue(q, 2);
  return bins && *bins <= 0 ? absl::InvalidArgumentError(absl::StrCat(*bins, " bins")) : absl::OkStatus();
}

/// Parameters that broadcast together.
absl::Status truncatedNormal(const ShapeQuery &q, Shapes *) {
  PartialShape all = q.inputShape(2);
  for (int i = 3; i < 6; ++i)
    LATHE_ASSIGN(all, broadcastShapes(all, q.inputShape(i)));
  return absl::OkStatus();
}

/// Parts of one axis go to the others of a group, and come back along another axis.
absl::Status allToAll(const ShapeQuery &q, Shapes *out) {
  PartialShape shape = q.inputShape(0);
  if (!shape)
    return absl::OkStatus();
  const int64_t rank = static_cast<int64_t>(shape->size()), n = q.intAttr("split_count");
  const int64_t joined = q.intAttr("concat_dimension"), parted = q.intAttr("split_dimension");
  if (joined < 0 || joined >= rank || parted < 0 || parted >= rank || n <= 0)
    return absl::InvalidArgumentError(
        absl::StrCat("axis ", parted, " in ", n, " parts, joined along axis ", joined, ", of shape ", shapeToString(shape)));
  LATHE_CHECK(expectRank(q.inputShape(1), 2, "the groups"));
  if (!mergeSizes(sizeAt(q.inputShape(1), 1), n))
    return absl::InvalidArgumentError(absl::StrCat(n, " parts for groups ", shapeToString(q.inputShape(1))));
  int64_t &from = (*shape)[parted];
  if (from >= 0 && from % n && (*shape)[joined] >= 0) // else for the kernel to refuse
    return absl::InvalidArgumentError(absl::StrCat("axis ", parted, " of size ", from, " cannot be split into ", n));
  from = from < 0 || from % n ? -1 : from / n;
  if (int64_t &to = (*shape)[joined]; to < 0 || __builtin_mul_overflow(to, n, &to))
    to = -1;
  (*out)[0] = shape;
  return absl::OkStatus();
}

absl::Status denseBincount(const ShapeQuery &q, Shapes *out) {
  PartialShape input = q.inputShape(0);
  if (input && input->size() > 2)
    return absl::InvalidArgumentError(absl::StrCat("the input has shape ", shapeToString(input), ", expected a vector or a matrix"));
  LATHE_CHECK(expectRank(q.inputShape(1), 0, "the number of bins"));
  if (!input)
    return absl::OkStatus();
  std::optional<int64_t> size = scalarValue(q, 1);
  if (size && *size < 0)
    return absl::InvalidArgumentError(absl::StrCat(*size, " bins"));
  if (input->empty() && !size)
    return absl::OkStatus(); // TensorFlow says a scalar then
  std::vector<int64_t> result{size.value_or(-1)};
  if (input->size() == 2)
    result.insert(result.begin(), (*input)[0]);
  (*out)[0] = result;
  return absl::OkStatus();
}

/// Square matrices in the last two dimensions.
absl::Status square(const ShapeQuery &q, Shapes *out) {
  PartialShape shape = q.inputShape(0);
  LATHE_CHECK(expectRankAtLeast(shape, 2, "input 0"));
  if (!shape)
    return absl::OkStatus();
  int64_t &rows = (*shape)[shape->size() - 2], &columns = shape->back();
  std::optional<int64_t> size = mergeSizes(rows, columns);
  if (!size)
    return absl::InvalidArgumentError(absl::StrCat("matrices of ", rows, " x ", columns, " are not square"));
  rows = columns = *size;
  (*out)[0] = shape;
  return absl::OkStatus();
}

absl::Status determinant(const ShapeQuery &q, Shapes *out) {
  LATHE_CHECK(square(q, out));
  if ((*out)[0])
    (*out)[0]->resize((*out)[0]->size() - 2);
  return absl::OkStatus();
}

absl::Status segments(const ShapeQuery &q, Shapes *out) {
  PartialShape data = q.inputShape(0), ids = q.inputShape(1);
  LATHE_CHECK(expectRank(ids, 1, "segment ids"));
  LATHE_CHECK(expectRankAtLeast(data, 1, "data"));
  if (!data)
    return absl::OkStatus();
  (*data)[0] = -1;
  (*out)[0] = data;
  return absl::OkStatus();
}

absl::Status unsortedSegments(const ShapeQuery &q, Shapes *out) {
  LATHE_CHECK(expectRank(q.inputShape(2), 0, "the number of segments"));
  PartialShape result;
  LATHE_ASSIGN(result, restBehind(q.inputShape(0), q.inputShape(1), "segment ids"));
  std::optional<int64_t> count = scalarValue(q, 2);
  if (result)
    result->insert(result->begin(), count && *count >= 0 ? *count : -1);
  (*out)[0] = result;
  return absl::OkStatus();
}

} // namespace

/// `shape` without the axes that an input holds.
static absl::Status reduce(const ShapeQuery &q, Shapes *out, PartialShape shape, int axesInput) {
  const bool keep = q.boolAttr("keep_dims");
  PartialShape axesShape = q.inputShape(axesInput);
  if (axesShape && axesShape->size() > 1)
    return absl::InvalidArgumentError(absl::StrCat("axes have shape ", shapeToString(axesShape), ", expected a vector or a scalar"));
  if (!shape)
    return absl::OkStatus();
  const int64_t rank = static_cast<int64_t>(shape->size());
  std::optional<PartialValues> axes = q.inputValues(axesInput);
  const bool isKnown = axes && std::all_of(axes->begin(), axes->end(), [](auto &axis) { return axis.has_value(); });
  std::set<int64_t> reduced;
  for (size_t i = 0; isKnown && i < axes->size(); ++i) {
    int64_t axis;
    LATHE_ASSIGN(axis, frontAxis(*(*axes)[i], rank));
    reduced.insert(axis);
  }
  if (!isKnown) {
    if (keep)
      (*out)[0] = unknownOfRank(rank);
    return absl::OkStatus();
  }
  std::vector<int64_t> result;
  for (int64_t i = 0; i < rank; ++i)
    if (!reduced.count(i))
      result.push_back((*shape)[i]);
    else if (keep)
      result.push_back(1);
  (*out)[0] = result;
  return absl::OkStatus();
}

absl::Status reducedShape(const ShapeQuery &q, Shapes *out) { return reduce(q, out, q.inputShape(0), 1); }
absl::Status reducedSparseShape(const ShapeQuery &q, Shapes *out) { return q.inputValues(2) && q.inputValues(3) ? reduce(q, out, shapeOfValues(q.inputValues(2)), 3) : absl::OkStatus(); }

absl::Status matrixProduct(const ShapeQuery &q, Shapes *out) {
  PartialShape a = q.inputShape(0), b = q.inputShape(1);
  LATHE_CHECK(expectRank(a, 2, "input 0"));
  LATHE_CHECK(expectRank(b, 2, "input 1"));
  const bool ta = q.boolAttr("transpose_a"), tb = q.boolAttr("transpose_b");
  auto size = [](const PartialShape &s, int i) { return s ? (*s)[i] : -1; };
  int64_t inner = size(a, ta ? 0 : 1), other = size(b, tb ? 1 : 0);
  if (!mergeSizes(inner, other))
    return innerDiffer(inner, other);
  (*out)[0] = std::vector<int64_t>{size(a, ta ? 1 : 0), size(b, tb ? 0 : 1)};
  return absl::OkStatus();
}

void addMathShapes(ShapeTable *table) {
  auto all = addsTo(table);
  all({"Abs", "Acos", "Acosh", "Angle", "Asin", "Asinh", "Atan", "Atanh", "BesselI0", "BesselI0e", "BesselI1", "BesselI1e", "BesselJ0",
       "BesselJ1", "BesselK0", "BesselK0e", "BesselK1", "BesselK1e", "BesselY0", "BesselY1", "Bucketize", "Cast", "Ceil", "ComplexAbs",
       "Conj", "Cos", "Cosh", "Cumprod", "Cumsum", "CumulativeLogsumexp", "Dawsn", "Digamma", "Erf", "Erfc", "Erfinv", "Exp", "Expint",
       "Expm1", "BatchFFT", "BatchFFT2D", "BatchFFT3D", "BatchIFFT", "BatchIFFT2D", "BatchIFFT3D", "Floor", "FresnelCos", "FresnelSin",
       "Imag", "Inv", "Invert", "IsFinite", "IsInf", "IsNan", "Lgamma", "Log", "Log1p", "LogicalNot", "Ndtri", "Neg", "PopulationCount",
       "Real", "Reciprocal", "Rint", "Round", "Rsqrt", "Sigmoid", "Sign", "Sin", "Sinh", "Spence", "Sqrt", "Square", "Tan", "Tanh",
       "RsqrtGrad", "SqrtGrad", "InvGrad", "ReciprocalGrad", "SigmoidGrad", "TanhGrad"},
      sameShape);
  all({"Add", "AddV2", "Atan2", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Complex", "Div", "DivNoNan", "FloorDiv",
       "FloorMod", "Greater", "GreaterEqual", "Igamma", "Igammac", "LeftShift", "Less", "LessEqual", "LogicalAnd", "LogicalOr", "Maximum",
       "Minimum", "Mod", "Mul", "MulNoNan", "NextAfter", "Polygamma", "Pow", "RealDiv", "RightShift", "SquaredDifference", "Sub",
       "TruncateDiv", "TruncateMod", "Xdivy", "Xlog1py", "Xlogy", "Zeta"},
      broadcastShape);
  all({"Equal", "NotEqual"}, equality);
  all({"All", "Any", "EuclideanNorm", "Max", "Mean", "Min", "Prod", "Sum"}, reducedShape);
  all({"ArgMax", "ArgMin"}, argReduction);
  all({"BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"}, batchMatMul);
  all({"Cholesky", "BatchCholesky", "MatrixInverse", "BatchMatrixInverse", "MatrixExponential", "MatrixLogarithm", "MatrixSquareRoot"}, square);
  all({"SegmentSum", "SegmentMean", "SegmentMax", "SegmentMin", "SegmentProd"}, segments);
  all({"UnsortedSegmentSum", "UnsortedSegmentMax", "UnsortedSegmentMin", "UnsortedSegmentProd", "UnsortedSegmentJoin", "SegmentSumV2",
       "SegmentMaxV2", "SegmentMinV2", "SegmentProdV2"},
      unsortedSegments);
  all({"ApproximateEqual"}, mergedShape);
  all({"SelectV2"}, selectV2);
  all({"Select"}, selectV1);
  all({"AddN"}, mergeAll);
  all({"AccumulateNV2"}, accumulate);
  all({"ClipByValue"}, sameShape);
  all({"Betainc", "StringJoin"}, sameOrScalar);
  all({"MatMul", "SparseMatMul", "QuantizedMatMul", "QuantizedMatMulWithBias", "QuantizedMatMulWithBiasAndDequantize",
       "QuantizedMatMulWithBiasAndRelu", "QuantizedMatMulWithBiasAndReluAndRequantize", "QuantizedMatMulWithBiasAndRequantize"},
      matrixProduct);
  all({"Einsum", "XlaEinsum"}, einsum);
  all({"Bincount"}, bincount);
  all({"HistogramFixedWidth"}, histogram);
  all({"StatelessParameterizedTruncatedNormal"}, truncatedNormal);
  all({"AllToAll"}, allToAll);
  all({"DenseBincount"}, denseBincount);
  all({"ReduceJoin"}, reducedShape);
  all({"SparseReduceMax", "SparseReduceSum"}, reducedSparseShape);
  all({"MatrixDeterminant", "BatchMatrixDeterminant"}, determinant);
}

} // namespace lathe::ops
