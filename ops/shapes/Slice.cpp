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
    (*out)[0] = shapeOfValues(size); // -1 is the rest of an axis
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
  LATHE_CHECK(expectScalarIfKnown(q, 0, "the axis"));
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
  LATHE_CHECK(expectScalarIfKnown(q, 2, "the axis"));
  LATHE_CHECK(expectRankAtLeast(shape, 1, "the input"));
  if (!shape)
    return absl::OkStatus();
  const int64_t rank = static_cast<int64_t>(shape->size());
  std::optional<PartialValues> sizes = q.inputValues(1);
  if (sizes && sizes->size() != out->size() && std::all_of(sizes->begin(), sizes->end(), [](auto &s) { return s.has_value(); }))
    return absl::InvalidArgumentError(absl::StrCat(sizes->size(), " sizes for ", out->size(), " parts"));
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

/// Adds what is before and after each axis, `sign` times; unknown where paddings are.
absl::Status addPaddings(const ShapeQuery &q, int64_t sign, std::vector<int64_t> *shape) {
  std::optional<std::vector<int64_t>> pads = q.matrixValues(1);
  for (size_t i = 0; i < shape->size(); ++i) {
    int64_t &size = (*shape)[i];
    if (!pads || pads->size() != 2 * shape->size()) {
      size = -1;
      continue;
    }
    for (size_t k : {2 * i, 2 * i + 1}) {
      if ((*pads)[k] < 0)
        return absl::InvalidArgumentError(absl::StrCat("a padding of ", (*pads)[k]));
      if (size >= 0 && (__builtin_add_overflow(size, sign * (*pads)[k], &size) || size < 0))
        return absl::InvalidArgumentError(absl::StrCat("paddings of ", (*pads)[k], " do not go with axis ", i));
    }
  }
  return absl::OkStatus();
}

/// What is padded; or, back, its gradient.
absl::Status padded(const ShapeQuery &q, Shapes *out, bool isBack) {
  PartialShape shape = q.inputShape(0), pads = q.inputShape(1);
  LATHE_CHECK(expectRank(pads, 2, "paddings"));
  if (isBack && sizeAt(pads, 0) < 0)
    return absl::OkStatus();
  if (!mergeSizes(sizeAt(pads, 1), 2))
    return absl::InvalidArgumentError(absl::StrCat("paddings have shape ", shapeToString(pads)));
  if (!shape && pads && (*pads)[0] >= 0)
    shape = unknownOfRank((*pads)[0]);
  if (!shape)
    return absl::OkStatus();
  if (pads && !mergeSizes((*pads)[0], static_cast<int64_t>(shape->size())))
    return absl::InvalidArgumentError(absl::StrCat((*pads)[0], " paddings for shape ", shapeToString(shape)));
  LATHE_CHECK(addPaddings(q, isBack ? -1 : 1, &*shape));
  (*out)[0] = shape;
  return absl::OkStatus();
}

absl::Status pad(const ShapeQuery &q, Shapes *out) { return padded(q, out, false); }
absl::Status padGrad(const ShapeQuery &q, Shapes *out) { return padded(q, out, true); }

/// Blocks of spatial dimensions go to the batch, after paddings; or back from it, and then crops.
absl::Status batchBlocks(const ShapeQuery &q, Shapes *out, const std::optional<PartialValues> &blocks, int64_t numBlocks, int padsInput,
                         bool toBatch) {
  PartialShape shape = q.inputShape(0), pads = q.inputShape(padsInput);
  LATHE_CHECK(expectRank(pads, 2, "paddings"));
  std::optional<int64_t> count = mergeSizes(numBlocks, sizeAt(pads, 0));
  if (!count || !mergeSizes(sizeAt(pads, 1), 2))
    return absl::InvalidArgumentError(absl::StrCat("paddings ", shapeToString(pads), " for ", numBlocks, " dimensions of blocks"));
  if (*count >= 0)
    LATHE_CHECK(expectRankAtLeast(shape, *count + 1, "the input"));
  if (!shape || *count < 0)
    return absl::OkStatus();
  std::optional<std::vector<int64_t>> around = q.matrixValues(padsInput);
  int64_t all = 1;
  for (int64_t i = 0; i < *count; ++i) {
    const int64_t block = blocks && i < static_cast<int64_t>(blocks->size()) ? (*blocks)[i].value_or(-1) : -1;
    int64_t &size = (*shape)[i + 1];
    if (blocks && i < static_cast<int64_t>(blocks->size()) && (*blocks)[i] && block < 1)
      return absl::InvalidArgumentError(absl::StrCat("a block of ", block));
    if (all >= 0 && (block < 0 || __builtin_mul_overflow(all, block, &all)))
      all = -1;
    if (size < 0 || block < 0 || !around) {
      size = -1;
      continue;
    }
    const int64_t before = (*around)[2 * i], after = (*around)[2 * i + 1];
    if (before < 0 || after < 0 || before > INT32_MAX || after > INT32_MAX)
      return absl::InvalidArgumentError(absl::StrCat("paddings ", before, " and ", after));
    if (!toBatch && __builtin_mul_overflow(size, block, &size))
      return absl::InvalidArgumentError("the result is too large");
    size += toBatch ? before + after : -before - after;
    if (size < 0 || (toBatch && size % block))
      return absl::InvalidArgumentError(absl::StrCat("a padded size of ", size, " is no multiple of a block of ", block));
    size /= toBatch ? block : 1;
  }
  int64_t &batch = shape->front();
  if (batch >= 0 && all > 0 && !toBatch && batch % all)
    return absl::InvalidArgumentError(absl::StrCat("a batch of ", batch, " is no multiple of ", all));
  if (batch < 0 || all < 0 || (toBatch && __builtin_mul_overflow(batch, all, &batch)))
    batch = -1;
  else if (!toBatch)
    batch /= all;
  (*out)[0] = shape;
  return absl::OkStatus();
}

template <bool toBatch>
absl::Status batchBlocks2d(const ShapeQuery &q, Shapes *out) {
  LATHE_CHECK(expectRank(q.inputShape(0), 4, "the input"));
  (*out)[0] = unknownOfRank(4);
  return batchBlocks(q, out, PartialValues(2, q.intAttr("block_size")), 2, 1, toBatch);
}

template <bool toBatch>
absl::Status batchBlocksNd(const ShapeQuery &q, Shapes *out) {
  LATHE_CHECK(expectRank(q.inputShape(1), 1, "the block's shape"));
  return batchBlocks(q, out, q.inputValues(1), sizeAt(q.inputShape(1), 0), 2, toBatch);
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

absl::Status gatherNdFrom(const ShapeQuery &q, Shapes *out, const PartialShape &params) {
  PartialShape indices = q.inputShape(1);
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

absl::Status gatherNd(const ShapeQuery &q, Shapes *out) { return gatherNdFrom(q, out, q.inputShape(0)); }
absl::Status resourceGatherNd(const ShapeQuery &q, Shapes *out) { return gatherNdFrom(q, out, q.handleShape(0)); }

/// Updates have the indices' outer dimensions, and then those of a slice of `shape`.
/// A tensor that is copied cannot be a scalar, nor can the updates of others.
absl::Status checkScatterNd(const PartialShape &shape, const PartialShape &indices, const PartialShape &updates, bool isCopied) {
  if (shape && numElements(shape) == 0 && (numElements(indices) > 0 || numElements(updates) > 0))
    return absl::InvalidArgumentError(absl::StrCat("indices and updates for the empty shape ", shapeToString(shape)));
  LATHE_CHECK(expectRankAtLeast(shape, isCopied, "what is written to"));
  LATHE_CHECK(expectRankAtLeast(indices, 1, "the indices"));
  LATHE_CHECK(expectRankAtLeast(updates, !isCopied, "the updates"));
  if (!indices || !updates || updates->empty() || indices->back() < 0)
    return absl::OkStatus();
  const size_t outer = indices->size() - 1;
  auto refuse = [&] {
    return absl::InvalidArgumentError(absl::StrCat("updates ", shapeToString(updates), " do not go with indices ", shapeToString(indices),
                                                   " into shape ", shapeToString(shape)));
  };
  if (updates->size() < outer)
    return refuse();
  for (size_t i = 0; i < outer; ++i)
    if (!mergeSizes((*indices)[i], (*updates)[i]))
      return refuse();
  if (!shape)
    return absl::OkStatus();
  const int64_t depth = std::min(indices->back(), static_cast<int64_t>(shape->size())); // too many are for the kernel to refuse
  return mergeShapes(std::vector<int64_t>(updates->begin() + static_cast<int64_t>(outer), updates->end()),
                     std::vector<int64_t>(shape->begin() + depth, shape->end()))
             .ok()
         ? absl::OkStatus()
         : refuse();
}

absl::Status scatterNd(const ShapeQuery &q, Shapes *out) {
  LATHE_CHECK(expectRank(q.inputShape(2), 1, "the shape"));
  LATHE_ASSIGN((*out)[0], heldShape(q, 2));
  return checkScatterNd((*out)[0], q.inputShape(0), q.inputShape(1), false);
}

/// Into a tensor or a variable of version 1.
absl::Status scatterNdInto(const ShapeQuery &q, Shapes *out) {
  (*out)[0] = q.inputShape(0);
  return checkScatterNd(q.inputShape(0), q.inputShape(1), q.inputShape(2), !q.op().inputs[0].isRef);
}

absl::Status scatterNdIntoResource(const ShapeQuery &q, Shapes *) {
  return checkScatterNd(q.handleShape(0), q.inputShape(1), q.inputShape(2), false);
}

/// Updates are a scalar, or a row for each index.
absl::Status checkScatter(const PartialShape &variable, const PartialShape &indices, const PartialShape &updates) {
  if (!variable || !indices || !updates || updates->empty())
    return absl::OkStatus();
  std::vector<int64_t> wanted = *indices;
  if (!variable->empty())
    wanted.insert(wanted.end(), variable->begin() + 1, variable->end());
  return mergeShapes(wanted, updates).status();
}

absl::Status scatter(const ShapeQuery &q, Shapes *out) {
  (*out)[0] = q.inputShape(0);
  return checkScatter(q.inputShape(0), q.inputShape(1), q.inputShape(2));
}

absl::Status resourceScatter(const ShapeQuery &q, Shapes *) {
  return checkScatter(q.handleShape(0), q.inputShape(1), q.inputShape(2));
}

absl::Status resourceGather(const ShapeQuery &q, Shapes *out) {
  PartialShape params = q.handleShape(0), indices = q.inputShape(1);
  const int64_t batch = q.intAttr("batch_dims");
  if (batch < 0)
    return absl::OkStatus();
  LATHE_CHECK(expectRankAtLeast(params, batch < kMaxRank ? batch + 1 : batch, "the variable"));
  LATHE_CHECK(expectRankAtLeast(indices, batch, "the indices"));
  if (!params || !indices)
    return absl::OkStatus();
  std::vector<int64_t> result = *indices;
  for (int64_t i = 0; i < batch; ++i)
    result[i] = (*params)[i] >= 0 ? (*params)[i] : result[i]; // that they agree is for the kernel to check
  result.insert(result.end(), params->begin() + batch + 1, params->end());
  (*out)[0] = result;
  return absl::OkStatus();
}

/// Elements go to so many outputs of unknown length.
absl::Status dynamicPartition(const ShapeQuery &q, Shapes *out) {
  PartialShape result;
  LATHE_ASSIGN(result, restBehind(q.inputShape(0), q.inputShape(1), "partitions"));
  if (result)
    result->insert(result->begin(), -1);
  std::fill(out->begin(), out->end(), result);
  return absl::OkStatus();
}

/// Rows of several tensors, put where their indices say. The result is as long as the largest index asks for.
absl::Status dynamicStitch(const ShapeQuery &q, Shapes *out) {
  const int n = q.inputRange("indices").second;
  PartialShape rest;
  int64_t length = 0;
  for (int i = 0; i < n; ++i) {
    std::optional<PartialValues> values = q.inputValues(i);
    if (!values || std::any_of(values->begin(), values->end(), [](auto &v) { return !v || *v < 0; }))
      length = -1;
    for (size_t k = 0; length >= 0 && k < values->size(); ++k)
      length = std::max(length, *(*values)[k] + 1);
    PartialShape row;
    LATHE_ASSIGN(row, restBehind(q.inputShape(n + i), q.inputShape(i), "indices"));
    LATHE_ASSIGN(rest, mergeShapes(rest, row));
  }
  if (!rest)
    return absl::OkStatus();
  rest->insert(rest->begin(), length);
  (*out)[0] = rest;
  return absl::OkStatus();
}

/// Blocks of the two spatial dimensions against the channels.
absl::Status blocks(const ShapeQuery &q, Shapes *out, bool toDepth) {
  PartialShape shape = q.inputShape(0);
  const std::string format = q.stringAttr("data_format");
  const bool isPacked = format == "NCHW_VECT_C", isFirst = isPacked || format == "NCHW";
  LATHE_CHECK(expectRank(shape, isPacked ? 5 : 4, "input 0"));
  const int64_t block = q.intAttr("block_size");
  if (block < 2 || block > 1 << 20)
    return absl::InvalidArgumentError(absl::StrCat("block size ", block));
  (*out)[0] = unknownOfRank(isPacked ? 5 : 4);
  if (!shape)
    return absl::OkStatus();
  if (isPacked) // channels in packs of four
    shape->back() = 4;
  const int channel = isFirst ? 1 : 3;
  for (int i = 1; i < 4; ++i) {
    int64_t &size = (*shape)[i], factor = i == channel ? block * block : block;
    if (size < 0)
      continue;
    if (toDepth == (i == channel)) {
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
  LATHE_CHECK(mergeShapes(q.inputShape(1), std::vector<int64_t>{2}).status());
  std::optional<PartialValues> size = q.inputValues(1);
  auto known = [&](int i) { return size && size->size() == 2 && (*size)[i] && *(*size)[i] >= 0 ? *(*size)[i] : -1; };
  (*out)[0] = std::vector<int64_t>{shape ? (*shape)[0] : -1, known(0), known(1), shape ? (*shape)[3] : -1};
  return absl::OkStatus();
}

} // namespace

void addSliceShapes(ShapeTable *table) {
  auto all = addsTo(table);
  all({"Slice"}, slice);
  all({"StridedSlice"}, stridedSlice);
  all({"Split"}, split);
  all({"SplitV"}, splitV);
  all({"Pad", "PadV2", "MirrorPad"}, pad);
  all({"MirrorPadGrad"}, padGrad);
  all({"SpaceToBatch"}, batchBlocks2d<true>);
  all({"BatchToSpace"}, batchBlocks2d<false>);
  all({"SpaceToBatchND"}, batchBlocksNd<true>);
  all({"BatchToSpaceND"}, batchBlocksNd<false>);
  all({"Gather"}, gather);
  all({"GatherV2"}, gatherV2);
  all({"GatherNd"}, gatherNd);
  all({"ScatterNd"}, scatterNd);
  all({"TensorScatterAdd", "TensorScatterMax", "TensorScatterMin", "TensorScatterSub", "TensorScatterUpdate", "ScatterNdAdd",
       "ScatterNdMax", "ScatterNdMin", "ScatterNdNonAliasingAdd", "ScatterNdSub", "ScatterNdUpdate"},
      scatterNdInto);
  all({"ResourceScatterNdAdd", "ResourceScatterNdMax", "ResourceScatterNdMin", "ResourceScatterNdSub", "ResourceScatterNdUpdate"},
      scatterNdIntoResource);
  all({"ScatterAdd", "ScatterSub", "ScatterUpdate", "ScatterMul", "ScatterDiv", "ScatterMax", "ScatterMin"}, scatter);
  all({"ResourceScatterAdd", "ResourceScatterDiv", "ResourceScatterMax", "ResourceScatterMin", "ResourceScatterMul", "ResourceScatterSub",
       "ResourceScatterUpdate"},
      resourceScatter);
  all({"ResourceGather"}, resourceGather);
  all({"ResourceGatherNd"}, resourceGatherNd);
  all({"DynamicPartition"}, dynamicPartition);
  all({"DynamicStitch", "ParallelDynamicStitch"}, dynamicStitch);
  all({"SpaceToDepth"}, spaceToDepth);
  all({"DepthToSpace"}, depthToSpace);
  all({"ResizeArea", "ResizeBicubic", "ResizeBilinear", "ResizeNearestNeighbor"}, resize);
}

} // namespace lathe::ops
