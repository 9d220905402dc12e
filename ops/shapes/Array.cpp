// Constants, placeholders, and ops that only move elements.
#include "ops/shapes/Families.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cmath>

namespace lathe::ops {
namespace {

absl::Status constant(const ShapeQuery &q, Shapes *out) {
  (*out)[0] = q.tensorShapeAttr("value");
  return absl::OkStatus();
}

absl::Status ensureShape(const ShapeQuery &q, Shapes *out) {
  LATHE_ASSIGN((*out)[0], mergeShapes(q.inputShape(0), q.shapeAttr("shape")));
  return absl::OkStatus();
}

absl::Status placeholder(const ShapeQuery &q, Shapes *out) {
  (*out)[0] = q.shapeAttr("shape");
  return absl::OkStatus();
}

absl::Status placeholderWithDefault(const ShapeQuery &q, Shapes *out) {
  (*out)[0] = q.shapeAttr("shape");
  return mergeShapes(q.inputShape(0), (*out)[0]).status();
}

absl::Status shapesOf(const ShapeQuery &q, Shapes *out) {
  for (int i = 0; i < q.numOutputs(); ++i) {
    PartialShape shape = q.inputShape(i);
    (*out)[i] = std::vector<int64_t>{shape ? static_cast<int64_t>(shape->size()) : -1};
  }
  return absl::OkStatus();
}

absl::Status reshape(const ShapeQuery &q, Shapes *out) {
  LATHE_CHECK(expectRank(q.inputShape(1), 1, "the shape"));
  std::optional<PartialValues> values = q.inputValues(1);
  if (!values)
    return absl::OkStatus();
  PartialShape from = q.inputShape(0);
  std::vector<int64_t> shape;
  int64_t known = 1, total = 1;
  int wild = -1, unknown = 0, open = 0;
  bool fits = true;
  for (size_t i = 0; i < values->size(); ++i) {
    std::optional<int64_t> v = (*values)[i];
    shape.push_back(v && *v >= 0 ? *v : -1);
    if (!v) {
      ++unknown;
    } else if (*v == -1) {
      if (wild >= 0)
        return absl::InvalidArgumentError("only one size of the new shape may be -1");
      wild = static_cast<int>(i);
    } else if (*v < 0) {
      return absl::InvalidArgumentError(absl::StrCat("the new shape has the size ", *v));
    } else {
      fits = fits && !__builtin_mul_overflow(known, *v, &known);
    }
  }
  for (int64_t size : from.value_or(std::vector<int64_t>())) {
    open += size < 0;
    fits = fits && (size < 0 || !__builtin_mul_overflow(total, size, &total));
  }
  if (from && open == 1 && fits && !unknown && wild < 0 && (total ? known % total : known)) // no size goes there
    return absl::InvalidArgumentError(absl::StrCat("cannot reshape ", shapeToString(from), " to ", shapeToString(shape)));
  if (from && !open && fits && !unknown) {
    if (wild >= 0 && known > 0) {
      if (total % known)
        return absl::InvalidArgumentError(absl::StrCat("cannot reshape ", total, " elements to ", shapeToString(shape)));
      shape[wild] = total / known;
    } else if (wild < 0 && total != known) {
      return absl::InvalidArgumentError(absl::StrCat("cannot reshape ", total, " elements to ", shapeToString(shape)));
    }
  }
  (*out)[0] = shape;
  return absl::OkStatus();
}

absl::Status broadcastTo(const ShapeQuery &q, Shapes *out) {
  PartialShape to = q.inputShape(1);
  if (to && to->size() > 1)
    return absl::InvalidArgumentError(absl::StrCat("the shape has shape ", shapeToString(to), ", expected a vector"));
  LATHE_ASSIGN((*out)[0], heldShape(q, 1));
  PartialShape from = q.inputShape(0);
  if (!from || !(*out)[0])
    return absl::OkStatus();
  std::vector<int64_t> &result = *(*out)[0];
  if (from->size() > result.size())
    return absl::InvalidArgumentError(absl::StrCat(shapeToString(from), " does not broadcast to ", shapeToString((*out)[0])));
  for (size_t i = 0; i < from->size(); ++i) {
    int64_t size = (*from)[i], &wanted = result[result.size() - from->size() + i];
    if (size > 1 && wanted >= 0 && size != wanted)
      return absl::InvalidArgumentError(absl::StrCat(shapeToString(from), " does not broadcast to ", shapeToString((*out)[0])));
    wanted = size > 1 ? size : wanted;
  }
  return absl::OkStatus();
}

absl::Status transpose(const ShapeQuery &q, Shapes *out) {
  PartialShape from = q.inputShape(0), axes = q.inputShape(1);
  std::optional<PartialValues> perm = q.inputValues(1);
  if (!from) {
    if (axes && axes->size() == 1 && perm)
      for (const std::optional<int64_t> &axis : *perm)
        if (axis)
          LATHE_CHECK(frontAxis(*axis, static_cast<int64_t>(perm->size())).status());
    // one axis is none for a scalar, too
    if (axes && axes->size() == 1 && (*axes)[0] > 1 && (*axes)[0] <= kMaxRank)
      (*out)[0] = unknownOfRank((*axes)[0]);
    return absl::OkStatus();
  }
  LATHE_CHECK(expectRank(axes, 1, "the permutation"));
  const int64_t rank = static_cast<int64_t>(from->size());
  if (axes && !mergeSizes((*axes)[0], rank))
    return absl::InvalidArgumentError(absl::StrCat("a permutation of ", (*axes)[0], " axes for rank ", rank));
  if (perm && static_cast<int64_t>(perm->size()) != rank)
    return absl::InvalidArgumentError(absl::StrCat("a permutation of ", perm->size(), " axes for rank ", rank));
  std::vector<int64_t> result(static_cast<size_t>(rank), -1);
  for (int64_t i = 0; perm && i < rank; ++i) {
    if (!(*perm)[i])
      continue;
    int64_t axis;
    LATHE_ASSIGN(axis, frontAxis(*(*perm)[i], rank));
    result[i] = (*from)[axis];
  }
  (*out)[0] = result;
  return absl::OkStatus();
}

absl::Status concatV1(const ShapeQuery &q, Shapes *out) { return concatShape(q, out, 1, q.numInputs() - 1, 0); }
absl::Status concatV2(const ShapeQuery &q, Shapes *out) { return concatShape(q, out, 0, q.numInputs() - 1, q.numInputs() - 1); }

absl::Status pack(const ShapeQuery &q, Shapes *out) {
  PartialShape shape;
  for (int i = 0; i < q.numInputs(); ++i)
    LATHE_ASSIGN(shape, mergeShapes(shape, q.inputShape(i)));
  if (!shape)
    return absl::OkStatus();
  int64_t axis;
  LATHE_ASSIGN(axis, frontAxis(q.intAttr("axis"), static_cast<int64_t>(shape->size()) + 1));
  shape->insert(shape->begin() + axis, q.numInputs());
  (*out)[0] = shape;
  return absl::OkStatus();
}

absl::Status unpack(const ShapeQuery &q, Shapes *out) {
  PartialShape shape = q.inputShape(0);
  if (!shape)
    return absl::OkStatus();
  int64_t axis;
  LATHE_ASSIGN(axis, frontAxis(q.intAttr("axis"), static_cast<int64_t>(shape->size())));
  int64_t size = (*shape)[axis];
  if (size >= 0 && size != q.numOutputs())
    return absl::InvalidArgumentError(absl::StrCat("axis ", axis, " has size ", size, ", expected ", q.numOutputs()));
  shape->erase(shape->begin() + axis);
  std::fill(out->begin(), out->end(), shape);
  return absl::OkStatus();
}

absl::Status expandDims(const ShapeQuery &q, Shapes *out) {
  PartialShape shape = q.inputShape(0);
  if (auto matrix = q.matrixValues(1); matrix && matrix->size() != 1)
    return absl::InvalidArgumentError(absl::StrCat("the axis has shape ", shapeToString(q.inputShape(1)), ", expected one element"));
  if (!shape)
    return absl::OkStatus();
  // a vector of one element is an axis, too
  std::optional<PartialValues> values = q.inputValues(1);
  const int64_t rank = static_cast<int64_t>(shape->size());
  if (!values || values->size() != 1 || !(*values)[0]) {
    (*out)[0] = unknownOfRank(rank + 1);
    return absl::OkStatus();
  }
  int64_t axis;
  LATHE_ASSIGN(axis, frontAxis(*(*values)[0], rank + 1));
  shape->insert(shape->begin() + axis, 1);
  (*out)[0] = shape;
  return absl::OkStatus();
}

absl::Status squeeze(const ShapeQuery &q, Shapes *out) {
  PartialShape shape = q.inputShape(0);
  if (!shape)
    return absl::OkStatus();
  const int64_t rank = static_cast<int64_t>(shape->size());
  std::vector<bool> gone(static_cast<size_t>(rank), false);
  std::vector<int64_t> axes = q.intsAttr("squeeze_dims");
  for (int64_t given : axes) {
    int64_t axis;
    LATHE_ASSIGN(axis, frontAxis(given, rank));
    if ((*shape)[axis] >= 0 && (*shape)[axis] != 1)
      return absl::InvalidArgumentError(absl::StrCat("axis ", axis, " has size ", (*shape)[axis], ", expected 1"));
    gone[axis] = true;
  }
  std::vector<int64_t> result;
  for (int64_t i = 0; i < rank; ++i) {
    if (axes.empty() && (*shape)[i] < 0)
      return absl::OkStatus(); // may be 1 or not
    if (!gone[i] && !(axes.empty() && (*shape)[i] == 1))
      result.push_back((*shape)[i]);
  }
  (*out)[0] = result;
  return absl::OkStatus();
}

absl::Status tile(const ShapeQuery &q, Shapes *out) {
  PartialShape shape = q.inputShape(0);
  std::optional<PartialValues> times = q.inputValues(1);
  LATHE_CHECK(expectRank(q.inputShape(1), 1, "the multiples"));
  if (!times) {
    (*out)[0] = shape ? unknownOfRank(static_cast<int64_t>(shape->size())) : std::nullopt;
    return absl::OkStatus();
  }
  if (!shape)
    shape = unknownOfRank(static_cast<int64_t>(times->size()));
  if (times->size() != shape->size())
    return absl::InvalidArgumentError(absl::StrCat(times->size(), " multiples for shape ", shapeToString(shape)));
  for (size_t i = 0; i < shape->size(); ++i) {
    int64_t &size = (*shape)[i];
    if ((*times)[i] && *(*times)[i] == 0)
      size = 0;
    else if (size < 0 || !(*times)[i] || *(*times)[i] < 0 || __builtin_mul_overflow(size, *(*times)[i], &size))
      size = -1;
  }
  (*out)[0] = shape;
  return absl::OkStatus();
}

absl::Status tileGrad(const ShapeQuery &q, Shapes *out) {
  PartialShape shape = q.inputShape(0);
  std::optional<PartialValues> times = q.inputValues(1);
  LATHE_CHECK(expectRank(q.inputShape(1), 1, "the multiples"));
  if (shape && times && times->size() != shape->size())
    return absl::InvalidArgumentError(absl::StrCat(times->size(), " multiples for shape ", shapeToString(shape)));
  for (size_t i = 0; shape && i < shape->size(); ++i) {
    const int64_t by = times ? (*times)[i].value_or(-1) : -1;
    (*shape)[i] = (*shape)[i] >= 0 && by > 0 && (*shape)[i] % by == 0 ? (*shape)[i] / by : -1;
  }
  (*out)[0] = shape;
  return absl::OkStatus();
}

/// The kernel counts in the type of the numbers.
absl::Status realRange(const ShapeQuery &q, Shapes *out) {
  std::optional<double> start = q.numberValue(0), limit = q.numberValue(1), delta = q.numberValue(2);
  if (!start || !limit || !delta)
    return absl::OkStatus();
  if (*delta == 0 || (*limit < *start && *delta > 0) || (*limit > *start && *delta < 0))
    return absl::InvalidArgumentError(absl::StrCat("a range from ", *start, " to ", *limit, " with steps of ", *delta));
  const double steps = q.inputType(0) == DType::Float32
                           ? (static_cast<float>(*limit) - static_cast<float>(*start)) / static_cast<float>(*delta)
                           : (*limit - *start) / *delta;
  if (std::ceil(std::abs(steps)) < 9e15)
    (*out)[0] = std::vector<int64_t>{static_cast<int64_t>(std::ceil(std::abs(steps)))};
  return absl::OkStatus();
}

absl::Status range(const ShapeQuery &q, Shapes *out) {
  (*out)[0] = std::vector<int64_t>{-1};
  for (int i = 0; i < 3; ++i)
    LATHE_CHECK(expectRank(q.inputShape(i), 0, absl::StrCat("input ", i)));
  std::optional<int64_t> start = scalarValue(q, 0), limit = scalarValue(q, 1), delta = scalarValue(q, 2);
  constexpr int64_t kMost = INT64_C(1) << 40;
  if (q.inputType(0) == DType::Float32 || q.inputType(0) == DType::Float64)
    return realRange(q, out);
  if (!start || !limit || !delta || std::max({std::abs(*start), std::abs(*limit), std::abs(*delta)}) > kMost)
    return absl::OkStatus();
  if (*delta == 0)
    return absl::InvalidArgumentError("a range with steps of 0");
  if ((*limit - *start < 0) != (*delta < 0) && *limit != *start)
    return absl::InvalidArgumentError(absl::StrCat("a range from ", *start, " to ", *limit, " with steps of ", *delta));
  int64_t step = std::abs(*delta);
  (*out)[0] = std::vector<int64_t>{(std::abs(*limit - *start) + step - 1) / step};
  return absl::OkStatus();
}

absl::Status linSpace(const ShapeQuery &q, Shapes *out) {
  std::optional<int64_t> count = scalarValue(q, 2);
  if (count && *count <= 0)
    return absl::InvalidArgumentError(absl::StrCat(*count, " numbers, expected at least one"));
  (*out)[0] = std::vector<int64_t>{count.value_or(-1)};
  return absl::OkStatus();
}

absl::Status where(const ShapeQuery &q, Shapes *out) {
  PartialShape shape = q.inputShape(0);
  (*out)[0] = std::vector<int64_t>{-1, shape ? static_cast<int64_t>(shape->size()) : -1};
  return absl::OkStatus();
}

absl::Status unique(const ShapeQuery &q, Shapes *out) {
  (*out)[0] = std::vector<int64_t>{-1};
  (*out)[1] = q.inputShape(0);
  if (q.numOutputs() > 2)
    (*out)[2] = std::vector<int64_t>{-1};
  return absl::OkStatus();
}

/// Rows of an axis that are not alike; of a vector where no axis is named.
absl::Status uniqueV2(const ShapeQuery &q, Shapes *out) {
  PartialShape shape = q.inputShape(0), axes = q.inputShape(1);
  for (size_t i = 1; i < out->size(); ++i)
    (*out)[i] = unknownOfRank(1);
  if (axes && axes->size() == 1 && (*axes)[0] == 0)
    LATHE_ASSIGN(shape, mergeShapes(shape, unknownOfRank(1)));
  if (!shape)
    return absl::OkStatus();
  std::optional<PartialValues> axis = q.inputValues(1);
  const auto matrix = q.matrixValues(1);
  const bool isKnown = axis && std::all_of(axis->begin(), axis->end(), [](auto &a) { return a.has_value(); });
  if (const size_t given = isKnown ? axis->size() : matrix ? matrix->size() : 0; given > 1)
    return absl::InvalidArgumentError(absl::StrCat(given, " axes, expected one or none"));
  if (axis && axis->size() == 1 && axis->front()) {
    int64_t at;
    LATHE_ASSIGN(at, frontAxis(*axis->front(), static_cast<int64_t>(shape->size())));
    (*shape)[at] = -1;
    (*out)[0] = shape;
  } else {
    (*out)[0] = unknownOfRank(static_cast<int64_t>(shape->size()));
  }
  return absl::OkStatus();
}

absl::Status unravelIndex(const ShapeQuery &q, Shapes *out) {
  PartialShape indices = q.inputShape(0), dims = q.inputShape(1);
  LATHE_CHECK(expectRank(dims, 1, "the sizes"));
  if (!indices)
    return absl::OkStatus();
  if (indices->size() > 1)
    indices = std::vector<int64_t>{numElements(indices)};
  indices->insert(indices->begin(), sizeAt(dims, 0));
  (*out)[0] = indices;
  return absl::OkStatus();
}

/// Elements grow or shrink; then the last dimension holds the parts of one.
absl::Status bitcast(const ShapeQuery &q, Shapes *out) {
  PartialShape shape = q.inputShape(0);
  const int64_t from = static_cast<int64_t>(dtypeSize(q.inputType(0))), to = static_cast<int64_t>(dtypeSize(q.outputType(0)));
  if (!shape || from <= 0 || to <= 0)
    return absl::OkStatus();
  if (to < from) {
    shape->push_back(from / to);
  } else if (to > from) {
    LATHE_CHECK(expectRankAtLeast(shape, 1, "the input"));
    if (!mergeSizes(shape->back(), to / from))
      return absl::InvalidArgumentError(absl::StrCat("the last dimension of ", shapeToString(shape), " has to be ", to / from));
    shape->pop_back();
  }
  (*out)[0] = shape;
  return absl::OkStatus();
}

absl::Status broadcastArgs(const ShapeQuery &q, Shapes *out) {
  PartialShape a = q.inputShape(0), b = q.inputShape(1);
  LATHE_CHECK(expectRank(a, 1, "input 0"));
  LATHE_CHECK(expectRank(b, 1, "input 1"));
  const int64_t x = sizeAt(a, 0), y = sizeAt(b, 0);
  (*out)[0] = std::vector<int64_t>{x < 0 || y < 0 ? -1 : std::max(x, y)};
  return absl::OkStatus();
}

/// Lengths are one for each element of the batch.
absl::Status reverseSequence(const ShapeQuery &q, Shapes *out) {
  PartialShape shape = q.inputShape(0), lengths = q.inputShape(1);
  LATHE_CHECK(expectRank(lengths, 1, "the lengths"));
  if (!shape)
    return absl::OkStatus();
  const int64_t rank = static_cast<int64_t>(shape->size());
  int64_t batch;
  LATHE_ASSIGN(batch, frontAxis(q.intAttr("batch_dim"), rank));
  LATHE_CHECK(frontAxis(q.intAttr("seq_dim"), rank).status());
  std::optional<int64_t> size = mergeSizes((*shape)[batch], sizeAt(lengths, 0));
  if (!size)
    return absl::InvalidArgumentError(
        absl::StrCat(sizeAt(lengths, 0), " lengths along axis ", batch, " of ", shapeToString(shape)));
  (*shape)[batch] = *size;
  (*out)[0] = shape;
  return absl::OkStatus();
}

/// Scalars stand for as many as the others have.
absl::Status indexShuffle(const ShapeQuery &q, Shapes *out) {
  int64_t count = -1;
  bool isScalar = true;
  for (int i = 0; i < 3; ++i) {
    PartialShape shape = q.inputShape(i);
    const size_t own = i == 1; // a seed is three numbers
    if (shape && (shape->size() < own || shape->size() > own + 1 || (own && !mergeSizes(shape->back(), 3))))
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " has shape ", shapeToString(shape)));
    isScalar &= shape && shape->size() == own;
    if (shape && shape->size() > own && (*shape)[0] > 1)
      count = (*shape)[0];
    else if (shape && shape->size() > own && count < 0 && (*shape)[0] >= 0)
      count = -2; // some have one
  }
  if (isScalar)
    (*out)[0] = std::vector<int64_t>();
  else if (count > 0)
    (*out)[0] = std::vector<int64_t>{count};
  return absl::OkStatus();
}

absl::Status oneHot(const ShapeQuery &q, Shapes *out) {
  PartialShape shape = q.inputShape(0);
  const int64_t axis = q.intAttr("axis");
  if (axis < -1)
    return absl::InvalidArgumentError(absl::StrCat("axis ", axis, " is below -1"));
  int64_t depth;
  LATHE_ASSIGN(depth, sizeFrom(q, 1, "the depth"));
  if (!shape)
    return absl::OkStatus();
  const int64_t rank = static_cast<int64_t>(shape->size());
  if (axis > rank)
    return absl::OkStatus(); // for the kernel to refuse
  shape->insert(axis == -1 ? shape->end() : shape->begin() + axis, depth);
  (*out)[0] = shape;
  return absl::OkStatus();
}

/// Axes lie within the input, each once.
absl::Status reverse(const ShapeQuery &q, Shapes *out) {
  PartialShape shape = q.inputShape(0);
  std::optional<PartialValues> axes = q.inputValues(1);
  (*out)[0] = shape;
  if (!shape || !axes || !std::all_of(axes->begin(), axes->end(), [](auto &axis) { return axis.has_value(); }))
    return absl::OkStatus();
  const int64_t rank = static_cast<int64_t>(shape->size());
  std::vector<bool> seen(shape->size(), false);
  for (const std::optional<int64_t> &given : *axes) {
    int64_t axis;
    LATHE_ASSIGN(axis, frontAxis(*given, rank));
    if (seen[static_cast<size_t>(axis)])
      return absl::InvalidArgumentError(absl::StrCat("axis ", axis, " is named twice"));
    seen[static_cast<size_t>(axis)] = true;
  }
  return absl::OkStatus();
}

/// A distance for each axis.
absl::Status roll(const ShapeQuery &q, Shapes *out) {
  LATHE_CHECK(expectRankAtLeast(q.inputShape(0), 1, "the input"));
  for (int i : {1, 2})
    if (PartialShape s = q.inputShape(i); s && s->size() > 1)
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " has shape ", shapeToString(s), ", expected a scalar or a vector"));
  LATHE_CHECK(mergeShapes(q.inputShape(1), q.inputShape(2)).status());
  return sameShape(q, out);
}

absl::Status diag(const ShapeQuery &q, Shapes *out) {
  PartialShape shape = q.inputShape(0);
  if (!shape)
    return absl::OkStatus();
  std::vector<int64_t> twice = *shape;
  twice.insert(twice.end(), shape->begin(), shape->end());
  (*out)[0] = twice;
  return absl::OkStatus();
}

} // namespace

absl::Status concatShape(const ShapeQuery &q, Shapes *out, int first, int n, int axisInput) {
  LATHE_CHECK(expectRank(q.inputShape(axisInput), 0, "the axis"));
  PartialShape rankOnly;
  for (int i = first; i < first + n; ++i)
    if (PartialShape s = q.inputShape(i)) {
      if (s->empty())
        return absl::InvalidArgumentError("scalars cannot be concatenated");
      LATHE_ASSIGN(rankOnly, mergeShapes(rankOnly, unknownOfRank(static_cast<int64_t>(s->size()))));
    }
  if (!rankOnly)
    return absl::OkStatus();
  std::optional<int64_t> axis = scalarValue(q, axisInput);
  (*out)[0] = rankOnly;
  if (!axis)
    return absl::OkStatus();
  const int64_t rank = static_cast<int64_t>(rankOnly->size());
  int64_t at;
  LATHE_ASSIGN(at, frontAxis(*axis, rank));
  int64_t sum = 0;
  PartialShape rest = rankOnly;
  for (int i = first; i < first + n; ++i) {
    PartialShape s = q.inputShape(i);
    int64_t size = s ? (*s)[at] : -1;
    if (sum >= 0 && (size < 0 || __builtin_add_overflow(sum, size, &sum)))
      sum = -1;
    if (!s)
      continue;
    (*s)[at] = -1;
    LATHE_ASSIGN(rest, mergeShapes(rest, s));
  }
  (*rest)[at] = sum;
  (*out)[0] = rest;
  return absl::OkStatus();
}

void addArrayShapes(ShapeTable *table) {
  auto all = addsTo(table);
  all({"AsString", "CheckNumerics", "CheckNumericsV2", "DeepCopy", "EncodeBase64", "DecodeBase64", "MatrixBandPart", "OnesLike", "PreventGradient",
       "Print", "RandomShuffle", "RefIdentity", "Snapshot", "StaticRegexFullMatch", "StaticRegexReplace", "StopGradient", "StringLength",
       "StringLower", "StringStrip", "StringToHashBucket", "StringToHashBucketFast", "StringToHashBucketStrong", "StringToNumber",
       "StringUpper", "ZerosLike"},
      sameShape);
  all({"BroadcastTo"}, broadcastTo);
  all({"Fill", "RandomStandardNormal", "RandomUniform", "TruncatedNormal"}, shapeFromInput);
  all({"Rank", "Size"}, scalarShape);
  all({"Shape", "ShapeN"}, shapesOf);
  all({"Const"}, constant);
  all({"Placeholder", "PlaceholderV2", "ImmutableConst"}, placeholder);
  all({"EnsureShape"}, ensureShape);
  all({"PlaceholderWithDefault"}, placeholderWithDefault);
  all({"Reshape", "QuantizedReshape"}, reshape);
  all({"Transpose", "ConjugateTranspose"}, transpose);
  all({"Concat"}, concatV1);
  all({"ConcatV2"}, concatV2);
  all({"Pack"}, pack);
  all({"Unpack"}, unpack);
  all({"ExpandDims"}, expandDims);
  all({"Squeeze"}, squeeze);
  all({"Tile"}, tile);
  all({"TileGrad"}, tileGrad);
  all({"Range"}, range);
  all({"LinSpace"}, linSpace);
  all({"Where"}, where);
  all({"Unique", "UniqueWithCounts"}, unique);
  all({"UniqueV2", "UniqueWithCountsV2"}, uniqueV2);
  all({"UnravelIndex"}, unravelIndex);
  all({"Bitcast"}, bitcast);
  all({"BroadcastArgs"}, broadcastArgs);
  all({"ReverseSequence"}, reverseSequence);
  all({"RandomIndexShuffle"}, indexShuffle);
  all({"OneHot"}, oneHot);
  all({"ReverseV2"}, reverse);
  all({"Roll"}, roll);
  all({"Diag"}, diag);
}

} // namespace lathe::ops
