// Slices, splits, pads, gathers and scatters.
#include "ops/shapes/Families.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

namespace lathe::ops {
namespace {

absl::Status slice(const ShapeQuery &q, Shapes *out) {
  PartialShape shape = q.inputShape(0);
  std::optional<PartialValues> begin = q.inputValues(1), size = q.inputValues(2);
  if (!shape) {
    if (size)
      (*out)[0] = unknownOfRank(static_cast<int64_t>(size->size()));
    return absl::OkStatus();
  }
  for (auto *list : {&begin, &size})
    if (*list && (*list)->size() != shape->size())
      return absl::InvalidArgumentError(absl::StrCat((*list)->size(), " positions for shape ", shapeToString(shape)));
  for (size_t i = 0; i < shape->size(); ++i) {
    std::optional<int64_t> from = begin ? (*begin)[i] : std::nullopt, length = size ? (*size)[i] : std::nullopt;
    int64_t whole = (*shape)[i];
    if (length && *length < -1)
      return absl::InvalidArgumentError(absl::StrCat("size ", *length, " of axis ", i));
    // that elements lie within the axis is for the kernel to check
    if (from && length && *length == -1 && whole >= 0 && (*from < 0 || *from > whole))
      return absl::InvalidArgumentError(absl::StrCat("axis ", i, " of size ", whole, " has no position ", *from));
    if (length && *length >= 0)
      (*shape)[i] = *length;
    else
      (*shape)[i] = length && from && whole >= 0 ? whole - *from : -1;
  }
  (*out)[0] = shape;
  return absl::OkStatus();
}

/// One axis of a strided slice, as numpy counts.
int64_t strided(int64_t size, std::optional<int64_t> begin, std::optional<int64_t> end, int64_t step, bool beginMask, bool endMask) {
  const bool isForward = step > 0;
  if (size < 0 || (!beginMask && !begin) || (!endMask && !end))
    return -1;
  auto place = [&](int64_t at) {
    if (at < 0)
      at += size;
    return std::clamp<int64_t>(at, isForward ? 0 : -1, isForward ? size : size - 1);
  };
  int64_t first = beginMask ? (isForward ? 0 : size - 1) : place(*begin), last = endMask ? (isForward ? size : -1) : place(*end);
  int64_t length = isForward ? last - first : first - last, width = std::abs(step);
  return length <= 0 ? 0 : (length - 1) / width + 1;
}

absl::Status stridedSlice(const ShapeQuery &q, Shapes *out) {
  PartialShape shape = q.inputShape(0);
  std::optional<PartialValues> begin = q.inputValues(1), end = q.inputValues(2), step = q.inputValues(3);
  const bool isStepKnown = step && std::all_of(step->begin(), step->end(), [](auto &s) { return s.has_value(); });
  if (!shape || !isStepKnown || (begin && begin->size() != step->size()) || (end && end->size() != step->size()) || step->size() > 32)
    return absl::OkStatus();
  const int64_t n = static_cast<int64_t>(step->size()), rank = static_cast<int64_t>(shape->size());
  const int64_t beginMask = q.intAttr("begin_mask"), endMask = q.intAttr("end_mask"), ellipsis = q.intAttr("ellipsis_mask"),
                newAxis = q.intAttr("new_axis_mask"), shrink = q.intAttr("shrink_axis_mask");
  if (ellipsis & (ellipsis - 1))
    return absl::InvalidArgumentError("more than one ellipsis");
  int64_t used = 0; // axes of the input that have an entry
  for (int64_t i = 0; i < n; ++i)
    used += !((ellipsis | newAxis) >> i & 1);
  if (used > rank)
    return absl::InvalidArgumentError(absl::StrCat(used, " indices for shape ", shapeToString(shape)));
  std::vector<int64_t> result;
  int64_t axis = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (ellipsis >> i & 1) {
      for (int64_t k = 0; k < rank - used; ++k)
        result.push_back((*shape)[axis++]);
      continue;
    }
    if (newAxis >> i & 1) {
      result.push_back(1);
      continue;
    }
    int64_t size = (*shape)[axis++];
    std::optional<int64_t> b = begin ? (*begin)[i] : std::nullopt, e = end ? (*end)[i] : std::nullopt, s = (*step)[i];
    if (s && *s == 0)
      return absl::InvalidArgumentError(absl::StrCat("stride ", i, " is 0"));
    if (shrink >> i & 1) {
      if (b && size >= 0 && (*b < -size || *b >= size))
        return absl::InvalidArgumentError(absl::StrCat("index ", *b, " is outside axis ", axis - 1, " of size ", size));
      continue;
    }
    result.push_back(s ? strided(size, b, e, *s, beginMask >> i & 1, endMask >> i & 1) : -1);
  }
  for (; axis < rank; ++axis)
    result.push_back((*shape)[axis]);
  (*out)[0] = result;
  return absl::OkStatus();
}

absl::Status split(const ShapeQuery &q, Shapes *out) {
  PartialShape shape = q.inputShape(1);
  if (!shape)
    return absl::OkStatus();
  const int64_t rank = static_cast<int64_t>(shape->size()), n = q.numOutputs();
  std::optional<int64_t> axis = scalarValue(q, 0);
  if (!axis) {
    std::fill(out->begin(), out->end(), unknownOfRank(rank));
    return absl::OkStatus();
  }
  int64_t at;
  LATHE_ASSIGN(at, frontAxis(*axis, rank));
  int64_t &size = (*shape)[at];
  if (size >= 0 && n > 0 && size % n)
    return absl::InvalidArgumentError(absl::StrCat("axis ", at, " of size ", size, " cannot be split into ", n));
  size = size < 0 || n == 0 ? -1 : size / n;
  std::fill(out->begin(), out->end(), shape);
  return absl::OkStatus();
}

absl::Status splitV(const ShapeQuery &q, Shapes *out) {
  PartialShape shape = q.inputShape(0);
  if (!shape)
    return absl::OkStatus();
  const int64_t rank = static_cast<int64_t>(shape->size());
  std::optional<PartialValues> sizes = q.inputValues(1);
  std::optional<int64_t> axis = scalarValue(q, 2);
  std::fill(out->begin(), out->end(), unknownOfRank(rank));
  if (!axis)
    return absl::OkStatus();
  int64_t at;
  LATHE_ASSIGN(at, frontAxis(*axis, rank));
  int64_t rest = (*shape)[at], wild = 0;
  for (size_t i = 0; i < out->size(); ++i) {
    std::optional<int64_t> size = sizes && i < sizes->size() ? (*sizes)[i] : std::nullopt;
    if (!size || *size < 0) {
      ++wild;
      rest = size ? rest : -1;
    } else if (rest >= 0) {
      rest -= *size;
      if (rest < 0)
        return absl::InvalidArgumentError(absl::StrCat("the parts are longer than axis ", at, " of size ", (*shape)[at]));
    }
    (*out)[i] = shape;
    (*(*out)[i])[at] = size && *size >= 0 ? *size : -1;
  }
  for (size_t i = 0; wild == 1 && rest >= 0 && i < out->size(); ++i)
    if ((*(*out)[i])[at] < 0)
      (*(*out)[i])[at] = rest;
  return absl::OkStatus();
}

absl::Status pad(const ShapeQuery &q, Shapes *out) {
  PartialShape shape = q.inputShape(0), pads = q.inputShape(1);
  LATHE_CHECK(expectRank(pads, 2, "paddings"));
  if (!shape && pads && (*pads)[0] >= 0)
    shape = unknownOfRank((*pads)[0]);
  if (!shape)
    return absl::OkStatus();
  if (pads && !mergeSizes((*pads)[0], static_cast<int64_t>(shape->size())))
    return absl::InvalidArgumentError(absl::StrCat((*pads)[0], " paddings for shape ", shapeToString(shape)));
  (*out)[0] = unknownOfRank(static_cast<int64_t>(shape->size())); // paddings are a matrix, whose values are not followed
  return absl::OkStatus();
}

absl::Status gather(const ShapeQuery &q, Shapes *out) {
  PartialShape params = q.inputShape(0), indices = q.inputShape(1);
  LATHE_CHECK(expectRankAtLeast(params, 1, "the data"));
  if (!params || !indices)
    return absl::OkStatus();
  std::vector<int64_t> result = *indices;
  result.insert(result.end(), params->begin() + 1, params->end());
  (*out)[0] = result;
  return absl::OkStatus();
}

absl::Status gatherV2(const ShapeQuery &q, Shapes *out) {
  PartialShape params = q.inputShape(0), indices = q.inputShape(1);
  if (!params || !indices)
    return absl::OkStatus();
  const int64_t rank = static_cast<int64_t>(params->size()), indexRank = static_cast<int64_t>(indices->size());
  int64_t batch = q.intAttr("batch_dims");
  LATHE_CHECK(expectRankAtLeast(params, 1, "the data"));
  if (batch < -indexRank || batch > indexRank)
    return absl::InvalidArgumentError(absl::StrCat("batch_dims ", batch, " is outside [", -indexRank, ", ", indexRank, "]"));
  const bool isCounted = batch < 0;
  batch += isCounted ? indexRank : 0;
  std::optional<int64_t> axis = scalarValue(q, 2);
  if (!axis) {
    // with a number from the back TensorFlow tells another rank than the kernel has
    if (!isCounted && rank - 1 + indexRank - batch >= 0)
      (*out)[0] = unknownOfRank(rank - 1 + indexRank - batch);
    return absl::OkStatus();
  }
  int64_t at;
  LATHE_ASSIGN(at, frontAxis(*axis, rank));
  if (at < batch)
    return absl::OkStatus(); // for the kernel to refuse
  std::vector<int64_t> result(params->begin(), params->begin() + at);
  for (int64_t i = 0; i < batch; ++i) {
    std::optional<int64_t> size = mergeSizes(result[i], (*indices)[i]);
    if (!size)
      return absl::InvalidArgumentError(absl::StrCat("batch sizes ", result[i], " and ", (*indices)[i], " differ"));
    result[i] = *size;
  }
  result.insert(result.end(), indices->begin() + batch, indices->end());
  result.insert(result.end(), params->begin() + at + 1, params->end());
  (*out)[0] = result;
  return absl::OkStatus();
}

absl::Status gatherNd(const ShapeQuery &q, Shapes *out) {
  PartialShape params = q.inputShape(0), indices = q.inputShape(1);
  LATHE_CHECK(expectRankAtLeast(indices, 1, "the indices"));
  if (!params || !indices || indices->back() < 0)
    return absl::OkStatus();
  int64_t depth = indices->back(), rank = static_cast<int64_t>(params->size());
  if (depth > rank)
    return absl::InvalidArgumentError(absl::StrCat("indices of ", depth, " axes into shape ", shapeToString(params)));
  std::vector<int64_t> result(indices->begin(), indices->end() - 1);
  result.insert(result.end(), params->begin() + depth, params->end());
  (*out)[0] = result;
  return absl::OkStatus();
}

absl::Status scatterNd(const ShapeQuery &q, Shapes *out) {
  LATHE_CHECK(expectRank(q.inputShape(2), 1, "the shape"));
  (*out)[0] = shapeOfValues(q.inputValues(2));
  return absl::OkStatus();
}

absl::Status resourceGather(const ShapeQuery &q, Shapes *out) {
  PartialShape params = q.handleShape(0), indices = q.inputShape(1);
  if (!params || !indices || params->empty() || q.intAttr("batch_dims") != 0)
    return absl::OkStatus();
  std::vector<int64_t> result = *indices;
  result.insert(result.end(), params->begin() + 1, params->end());
  (*out)[0] = result;
  return absl::OkStatus();
}

/// Blocks of the two middle dimensions against the last one, NHWC.
absl::Status blocks(const ShapeQuery &q, Shapes *out, bool toDepth) {
  PartialShape shape = q.inputShape(0);
  std::string format = q.stringAttr("data_format");
  if (!shape || (format != "NHWC" && !format.empty()))
    return absl::OkStatus();
  LATHE_CHECK(expectRank(shape, 4, "input 0"));
  const int64_t block = q.intAttr("block_size");
  if (block < 2)
    return absl::InvalidArgumentError(absl::StrCat("block size ", block));
  for (int i = 1; i < 4; ++i) {
    int64_t &size = (*shape)[i], factor = i == 3 ? block * block : block;
    if (size < 0)
      continue;
    if (toDepth == (i == 3)) {
      if (__builtin_mul_overflow(size, factor, &size))
        size = -1;
    } else {
      if (size % factor)
        return absl::InvalidArgumentError(absl::StrCat("size ", size, " is no multiple of ", factor));
      size /= factor;
    }
  }
  (*out)[0] = shape;
  return absl::OkStatus();
}

absl::Status spaceToDepth(const ShapeQuery &q, Shapes *out) { return blocks(q, out, true); }
absl::Status depthToSpace(const ShapeQuery &q, Shapes *out) { return blocks(q, out, false); }

absl::Status resize(const ShapeQuery &q, Shapes *out) {
  PartialShape shape = q.inputShape(0);
  LATHE_CHECK(expectRank(shape, 4, "the images"));
  std::optional<PartialValues> size = q.inputValues(1);
  auto known = [&](int i) { return size && size->size() == 2 && (*size)[i] && *(*size)[i] >= 0 ? *(*size)[i] : -1; };
  (*out)[0] = std::vector<int64_t>{shape ? (*shape)[0] : -1, known(0), known(1), shape ? (*shape)[3] : -1};
  return absl::OkStatus();
}

} // namespace

void addSliceShapes(ShapeTable *table) {
  auto all = [&](std::initializer_list<const char *> ops, ShapeFunction f) {
    for (const char *op : ops)
      table->emplace_back(op, f);
  };
  all({"Slice"}, slice);
  all({"StridedSlice"}, stridedSlice);
  all({"Split"}, split);
  all({"SplitV"}, splitV);
  all({"Pad", "PadV2", "MirrorPad"}, pad);
  all({"Gather"}, gather);
  all({"GatherV2"}, gatherV2);
  all({"GatherNd"}, gatherNd);
  all({"ScatterNd"}, scatterNd);
  all({"ResourceGather"}, resourceGather);
  all({"SpaceToDepth"}, spaceToDepth);
  all({"DepthToSpace"}, depthToSpace);
  all({"ResizeArea", "ResizeBicubic", "ResizeBilinear", "ResizeNearestNeighbor"}, resize);
}

} // namespace lathe::ops
