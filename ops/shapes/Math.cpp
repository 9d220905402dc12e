// Elementwise ops, reductions and products.
#include "ops/shapes/Families.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <map>
#include <set>

namespace lathe::ops {
namespace {

absl::Status broadcast2(const ShapeQuery &q, Shapes *out) {
  LATHE_ASSIGN((*out)[0], broadcastShapes(q.inputShape(0), q.inputShape(1)));
  return absl::OkStatus();
}

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

absl::Status selectV1(const ShapeQuery &q, Shapes *out) {
  LATHE_ASSIGN((*out)[0], mergeShapes(q.inputShape(1), q.inputShape(2)));
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

absl::Status broadcastAll(const ShapeQuery &q, Shapes *out) {
  PartialShape shape = q.inputShape(0);
  for (int i = 1; i < q.numInputs(); ++i)
    LATHE_ASSIGN(shape, broadcastShapes(shape, q.inputShape(i)));
  (*out)[0] = shape;
  return absl::OkStatus();
}

absl::Status reduction(const ShapeQuery &q, Shapes *out) {
  const bool keep = q.boolAttr("keep_dims");
  PartialShape shape = q.inputShape(0), axesShape = q.inputShape(1);
  if (axesShape && axesShape->size() > 1)
    return absl::InvalidArgumentError(absl::StrCat("axes have shape ", shapeToString(axesShape), ", expected a vector or a scalar"));
  if (!shape)
    return absl::OkStatus();
  const int64_t rank = static_cast<int64_t>(shape->size());
  std::optional<PartialValues> axes = q.inputValues(1);
  bool isKnown = axes.has_value();
  std::set<int64_t> reduced;
  for (size_t i = 0; isKnown && i < axes->size(); ++i) {
    if (!(*axes)[i]) {
      isKnown = false;
      break;
    }
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

absl::Status matMul(const ShapeQuery &q, Shapes *out) {
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
  LATHE_ASSIGN(batch, broadcastShapes(a, b));
  batch->push_back(rows);
  batch->push_back(columns);
  (*out)[0] = batch;
  return absl::OkStatus();
}

/// Equations without "..."; with one nothing is said.
absl::Status einsum(const ShapeQuery &q, Shapes *out) {
  std::string equation = q.stringAttr("equation");
  size_t arrow = equation.find("->");
  if (arrow == std::string::npos || equation.find('.') != std::string::npos)
    return absl::OkStatus();
  std::map<char, int64_t> sizes;
  size_t at = 0;
  for (int i = 0; i < q.numInputs(); ++i) {
    size_t end = std::min(equation.find(',', at), arrow);
    std::string labels = equation.substr(at, end - at);
    at = end + 1;
    PartialShape shape = q.inputShape(i);
    LATHE_CHECK(expectRank(shape, static_cast<int64_t>(labels.size()), absl::StrCat("input ", i)));
    for (size_t k = 0; k < labels.size(); ++k) {
      int64_t size = shape ? (*shape)[k] : -1;
      auto [it, isNew] = sizes.emplace(labels[k], size);
      std::optional<int64_t> merged = isNew ? size : mergeSizes(it->second, size);
      if (!merged)
        return absl::InvalidArgumentError(
            absl::StrCat("sizes ", it->second, " and ", size, " of label '", std::string(1, labels[k]), "' differ"));
      it->second = *merged;
    }
  }
  std::vector<int64_t> result;
  for (char label : equation.substr(arrow + 2)) {
    auto it = sizes.find(label);
    if (it == sizes.end())
      return absl::OkStatus();
    result.push_back(it->second);
  }
  (*out)[0] = result;
  return absl::OkStatus();
}

absl::Status bincount(const ShapeQuery &q, Shapes *out) {
  std::optional<int64_t> size = scalarValue(q, 1);
  (*out)[0] = std::vector<int64_t>{size && *size >= 0 ? *size : -1};
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
  PartialShape data = q.inputShape(0), ids = q.inputShape(1);
  if (!data || !ids)
    return absl::OkStatus();
  LATHE_CHECK(expectRankAtLeast(data, static_cast<int64_t>(ids->size()), "data"));
  std::vector<int64_t> result{-1};
  if (std::optional<int64_t> count = scalarValue(q, 2); count && *count >= 0)
    result[0] = *count;
  result.insert(result.end(), data->begin() + static_cast<int64_t>(ids->size()), data->end());
  (*out)[0] = result;
  return absl::OkStatus();
}

} // namespace

void addMathShapes(ShapeTable *table) {
  auto all = [&](std::initializer_list<const char *> ops, ShapeFunction f) {
    for (const char *op : ops)
      table->emplace_back(op, f);
  };
  all({"Abs", "Acos", "Acosh", "Angle", "Asin", "Asinh", "Atan", "Atanh", "BesselI0", "BesselI0e", "BesselI1", "BesselI1e", "BesselJ0",
       "BesselJ1", "BesselK0", "BesselK0e", "BesselK1", "BesselK1e", "BesselY0", "BesselY1", "Bucketize", "Cast", "Ceil", "ComplexAbs",
       "Conj", "Cos", "Cosh", "Cumprod", "Cumsum", "CumulativeLogsumexp", "Dawsn", "Digamma", "Erf", "Erfc", "Erfinv", "Exp", "Expint",
       "Expm1", "FFT", "FFT2D", "FFT3D", "Floor", "FresnelCos", "FresnelSin", "IFFT", "IFFT2D", "IFFT3D", "Imag", "Inv", "Invert",
       "IsFinite", "IsInf", "IsNan", "Lgamma", "Log", "Log1p", "LogicalNot", "Ndtri", "Neg", "PopulationCount", "Real", "Reciprocal",
       "Rint", "Round", "Rsqrt", "Sigmoid", "Sign", "Sin", "Sinh", "Spence", "Sqrt", "Square", "Tan", "Tanh", "RsqrtGrad", "SqrtGrad",
       "InvGrad", "ReciprocalGrad", "SigmoidGrad", "TanhGrad"},
      sameShape);
  all({"Add", "AddV2", "ApproximateEqual", "Atan2", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Complex", "Div", "DivNoNan", "FloorDiv",
       "FloorMod", "Greater", "GreaterEqual", "Igamma", "Igammac", "LeftShift", "Less", "LessEqual", "LogicalAnd", "LogicalOr", "Maximum",
       "Minimum", "Mod", "Mul", "MulNoNan", "NextAfter", "Polygamma", "Pow", "RealDiv", "RightShift", "SquaredDifference", "Sub",
       "TruncateDiv", "TruncateMod", "Xdivy", "Xlog1py", "Xlogy", "Zeta"},
      broadcast2);
  all({"Equal", "NotEqual"}, equality);
  all({"All", "Any", "EuclideanNorm", "Max", "Mean", "Min", "Prod", "Sum"}, reduction);
  all({"ArgMax", "ArgMin"}, argReduction);
  all({"BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"}, batchMatMul);
  all({"Cholesky", "MatrixInverse", "MatrixExponential", "MatrixLogarithm", "MatrixSquareRoot"}, square);
  all({"SegmentSum", "SegmentMean", "SegmentMax", "SegmentMin", "SegmentProd"}, segments);
  all({"UnsortedSegmentSum", "UnsortedSegmentMax", "UnsortedSegmentMin", "UnsortedSegmentProd"}, unsortedSegments);
  all({"SelectV2"}, selectV2);
  all({"Select"}, selectV1);
  all({"AddN"}, mergeAll);
  all({"AccumulateNV2"}, accumulate);
  all({"ClipByValue"}, sameShape);
  all({"Betainc"}, broadcastAll);
  all({"MatMul"}, matMul);
  all({"Einsum", "XlaEinsum"}, einsum);
  all({"Bincount"}, bincount);
  all({"MatrixDeterminant"}, determinant);
}

} // namespace lathe::ops
