// Ops that choose elements by index or condition, for every element type.
#include "base/Memory.h"
#include "runtime/device.h"
#include "runtime/kernels/Common.h"

#include <algorithm>

namespace lathe::rt {
namespace {

using Dims = std::vector<int64_t>;

/// Output 0: slices of `params` along `axis`. Every index has to be in range; or, with `onlyCopied`, only where it copies something.
absl::Status gatherAlong(KernelContext &context, const Tensor &params, const Tensor &indices, int64_t axis, int64_t batchDims,
                         bool onlyCopied) {
  if (axis < -params.rank() || axis >= std::max<int64_t>(params.rank(), 1) || params.rank() < 1)
    return invalid("axis must be in [", -params.rank(), ", ", params.rank(), "), got ", axis);
  axis = axis < 0 ? axis + params.rank() : axis;
  if (batchDims < -indices.rank() || batchDims > indices.rank())
    return invalid("Expected batch_dims in the range [", -indices.rank(), ", ", indices.rank(), "], but got ", batchDims);
  batchDims = batchDims < 0 ? batchDims + indices.rank() : batchDims;
  if (batchDims > axis)
    return invalid("batch_dims (", batchDims, ") must be less than or equal to axis (", axis, ")");
  for (int64_t d = 0; d < batchDims; ++d)
    if (params.dim(d) != indices.dim(d))
      return invalid("params.shape[", d, "]: ", params.dim(d), " should be equal to indices.shape[", d, "]: ",
                     indices.dim(d));
  Dims dims(params.dims().begin(), params.dims().begin() + axis);
  dims.insert(dims.end(), indices.dims().begin() + batchDims, indices.dims().end());
  dims.insert(dims.end(), params.dims().begin() + axis + 1, params.dims().end());
  int64_t batches = productOf(params.dims(), 0, batchDims), outer = productOf(params.dims(), batchDims, axis);
  int64_t limit = params.dim(axis), inner = productOf(params.dims(), axis + 1, params.rank());
  int64_t count = productOf(indices.dims(), batchDims, indices.rank());
  LATHE_TRY(checkedNumElements(dims).status());
  std::vector<int64_t> from;
  bool looks = !onlyCopied || (outer > 0 && inner > 0);
  for (int64_t i = 0; looks && i < indices.numElements(); ++i)
    if (int64_t index = intAt(indices, i); index < 0 || index >= limit)
      return invalid("indices[", i, "] = ", index, " is not in [0, ", limit, ")");
  from.reserve(batches * outer * count * inner);
  for (int64_t b = 0; inner > 0 && b < batches; ++b)
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < count; ++i) {
        int64_t start = ((b * outer + o) * limit + intAt(indices, b * count + i)) * inner;
        for (int64_t k = 0; k < inner; ++k)
          from.push_back(start + k);
      }
  LATHE_TRY_VALUE(out, pick(context, params, dims, from));
  context.setOutput(0, out);
  return absl::OkStatus();
}

absl::Status gather(KernelContext &context) {
  return gatherAlong(context, context.input(0), context.input(1), 0, 0, /*onlyCopied=*/true);
}
absl::Status gatherV2(KernelContext &context) {
  LATHE_TRY_VALUE(axis, oneInt(context.input(2), "axis"));
  int64_t batchDims = *attrOf<int64_t>(*context.node, "batch_dims");
  return gatherAlong(context, context.input(0), context.input(1), axis, batchDims, /*onlyCopied=*/true);
}
LATHE_HOST_FUNCTION(Gather, gather);
LATHE_HOST_FUNCTION(GatherV2, gatherV2);

/// Rows of index tuples into a tensor of `dims`: the start of each addressed slice.
absl::Status sliceStarts(const Tensor &indices, const Dims &dims, std::vector<int64_t> &starts, int64_t &sliceSize) {
  if (indices.rank() < 1)
    return invalid("indices must be at least a vector");
  int64_t depth = indices.dim(indices.rank() - 1);
  if (depth > static_cast<int64_t>(dims.size()))
    return invalid("index innermost dimension length must be <= params rank; saw: ", depth, " vs. ", dims.size());
  sliceSize = productOf(dims, depth, dims.size());
  int64_t rows = productOf(indices.dims(), 0, indices.rank() - 1);
  for (int64_t r = 0; r < rows; ++r) {
    int64_t flat = 0;
    for (int64_t d = 0; d < depth; ++d) {
      int64_t index = intAt(indices, r * depth + d);
      if (index < 0 || index >= dims[d])
        return invalid("indices[", r, "] does not index into shape ", dimsToString(dims));
      flat = flat * dims[d] + index;
    }
    starts.push_back(flat * sliceSize);
  }
  return absl::OkStatus();
}

absl::Status gatherTuples(KernelContext &context, const Tensor &params, const Tensor &indices) {
  if (params.rank() < 1)
    return invalid("params must be at least a vector");
  if (params.numElements() == 0 && indices.rank() > 0 && productOf(indices.dims(), 0, indices.rank() - 1) > 0)
    return invalid("Requested more than 0 entries, but params is empty.  Params shape: ", dimsToString(params.dims()));
  std::vector<int64_t> starts, from;
  int64_t size = 0;
  LATHE_TRY(sliceStarts(indices, params.dims(), starts, size));
  for (int64_t start : starts)
    for (int64_t k = 0; k < size; ++k)
      from.push_back(start + k);
  Dims dims(indices.dims().begin(), indices.dims().end() - 1);
  dims.insert(dims.end(), params.dims().begin() + indices.dims().back(), params.dims().end());
  LATHE_TRY_VALUE(out, pick(context, params, dims, from));
  context.setOutput(0, out);
  return absl::OkStatus();
}
absl::Status gatherNd(KernelContext &context) { return gatherTuples(context, context.input(0), context.input(1)); }
LATHE_HOST_FUNCTION(GatherNd, gatherNd);

absl::Status scatterInto(Tensor &out, const Tensor &indices, const Tensor &updates, bool add) {
  std::vector<int64_t> starts;
  int64_t size = 0;
  LATHE_TRY(sliceStarts(indices, out.dims(), starts, size));
  if (updates.numElements() != static_cast<int64_t>(starts.size()) * size)
    return invalid("updates of shape ", dimsToString(updates.dims()), " do not fit indices of shape ",
                   dimsToString(indices.dims()), " into shape ", dimsToString(out.dims()));
  if (add && out.dtype() != DType::String)
    LATHE_TRY(withType(out.dtype(), [&](auto zero) -> absl::Status {
      using T = decltype(zero);
      T *to = out.template data<T>();
      const T *from = updates.template data<T>();
      for (size_t r = 0; r < starts.size(); ++r)
        for (int64_t k = 0; k < size; ++k)
          to[starts[r] + k] = added(to[starts[r] + k], from[r * size + k]);
      return absl::OkStatus();
    }));
  for (size_t r = 0; r < starts.size() && !(add && out.dtype() != DType::String); ++r)
    for (int64_t k = 0; k < size; ++k)
      if (add)
        out.mutableStrings()[starts[r] + k] += updates.strings()[r * size + k];
      else
        copyElement(out, starts[r] + k, updates, r * size + k);
  return absl::OkStatus();
}

/// Updates of one place are added up, strings put behind each other.
absl::Status scatterNd(KernelContext &context) {
  LATHE_TRY_VALUE(dims, dimsOf(context.input(2), "shape"));
  LATHE_TRY_VALUE(out, context.allocate(context.node->outputTypes[0], dims));
  LATHE_TRY(scatterInto(out, context.input(0), context.input(1), true));
  context.setOutput(0, out);
  return absl::OkStatus();
}
absl::Status tensorScatterUpdate(KernelContext &context) {
  Tensor out = context.input(0).clone();
  LATHE_TRY(scatterInto(out, context.input(1), context.input(2), false));
  context.setOutput(0, out);
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(ScatterNd, scatterNd);
LATHE_HOST_FUNCTION(TensorScatterUpdate, tensorScatterUpdate);

/// What a variable holds.
absl::StatusOr<Tensor> valueOf(Variable &variable) {
  std::lock_guard<std::mutex> lock(variable.mutex);
  if (!variable.value.valid())
    return absl::FailedPreconditionError("the variable is not initialized");
  LATHE_TRY(valueToHost(variable));
  return variable.value;
}

absl::Status resourceGather(KernelContext &context) {
  LATHE_TRY_VALUE(variable, context.resource<Variable>(0));
  LATHE_TRY_VALUE(params, valueOf(*variable));
  int64_t batchDims = *attrOf<int64_t>(*context.node, "batch_dims");
  return gatherAlong(context, params, context.input(1), batchDims, batchDims, /*onlyCopied=*/false);
}
absl::Status resourceGatherNd(KernelContext &context) {
  LATHE_TRY_VALUE(variable, context.resource<Variable>(0));
  LATHE_TRY_VALUE(params, valueOf(*variable));
  return gatherTuples(context, params, context.input(1));
}

/// Writes rows, or slices at index tuples. One update may serve all rows.
absl::Status resourceScatter(KernelContext &context, bool tuples) {
  LATHE_TRY_VALUE(variable, context.resource<Variable>(0));
  Tensor indices = context.input(1), updates = context.input(2);
  std::lock_guard<std::mutex> lock(variable->mutex);
  if (!variable->value.valid())
    return absl::FailedPreconditionError("the variable is not initialized");
  if (variable->value.dtype() != updates.dtype())
    return invalid("the variable is of type ", dtypeName(variable->value.dtype()), ", the updates of type ",
                   dtypeName(updates.dtype()));
  LATHE_TRY(valueToHost(*variable));
  Tensor &out = variable->writable();
  if (tuples) {
    LATHE_TRY(scatterInto(out, indices, updates, false));
  } else {
    if (out.rank() < 1)
      return invalid("params must be at least 1-D, got shape ", dimsToString(out.dims()));
    Dims wanted = indices.dims(), column = indices.dims();
    wanted.insert(wanted.end(), out.dims().begin() + 1, out.dims().end());
    column.push_back(1);
    if (updates.rank() == 0) {
      LATHE_TRY_VALUE(count, checkedNumElements(wanted));
      if (count > memoryBudget() / 8)
        return absl::ResourceExhaustedError(absl::StrCat("updates of shape ", dimsToString(wanted), " are too large"));
      LATHE_TRY_VALUE(spread, pick(context, updates, wanted, std::vector<int64_t>(count, 0)));
      updates = spread;
    }
    if (updates.dims() != wanted)
      return invalid("shape of updates must be ", dimsToString(wanted), ", found ", dimsToString(updates.dims()));
    LATHE_TRY(scatterInto(out, indices.reshaped(column), updates, false));
  }
  return absl::OkStatus();
}
absl::Status resourceScatterUpdate(KernelContext &context) { return resourceScatter(context, false); }
absl::Status resourceScatterNdUpdate(KernelContext &context) { return resourceScatter(context, true); }
LATHE_HOST_FUNCTION(ResourceGather, resourceGather);
LATHE_HOST_FUNCTION(ResourceGatherNd, resourceGatherNd);
LATHE_HOST_FUNCTION(ResourceScatterUpdate, resourceScatterUpdate);
LATHE_HOST_FUNCTION(ResourceScatterNdUpdate, resourceScatterNdUpdate);

/// A dimension of a strided slice after its masks are applied.
struct Span {
  int64_t begin = 0, stride = 1, count = 1, source = -1; ///< source: the input's dimension, -1 for a new axis
  bool shrink = false;
};

absl::Status spansOf(const KernelContext &context, const Dims &in, const Dims &begin, const Dims &end,
                     const Dims &strides, std::vector<Span> &spans) {
  auto mask = [&](const char *name) { return *attrOf<int64_t>(*context.node, name); };
  int64_t beginMask = mask("begin_mask"), endMask = mask("end_mask"), ellipsis = mask("ellipsis_mask"),
          newAxis = mask("new_axis_mask"), shrink = mask("shrink_axis_mask");
  size_t n = begin.size();
  int64_t rank = static_cast<int64_t>(in.size());
  if (n != end.size() || n != strides.size() || n > 32)
    return invalid("Expected begin, end, and strides to be 1D equal size tensors, but got sizes ", n, ", ", end.size(),
                   " and ", strides.size());
  auto bit = [](int64_t m, size_t i) { return (m >> i & 1) != 0; };
  if (ellipsis & (ellipsis - 1))
    return invalid("Multiple ellipses in slice spec not allowed");
  int64_t used = 0;
  for (size_t i = 0; i < n; ++i)
    used += !bit(ellipsis, i) && !bit(newAxis, i);
  if (used > rank)
    return invalid("Index out of range using input dim ", rank, "; input has only ", rank, " dims");
  int64_t d = 0;
  auto whole = [&](int64_t count) {
    for (; count > 0; --count, ++d)
      spans.push_back({0, 1, in[d], d, false});
  };
  for (size_t i = 0; i < n; ++i) {
    if (bit(ellipsis, i)) {
      whole(rank - used);
      continue;
    }
    if (bit(newAxis, i)) {
      spans.push_back({0, 1, 1, -1, false});
      continue;
    }
    int64_t size = in[d], stride = strides[i];
    if (stride == 0)
      return invalid("strides[", i, "] must be non-zero");
    if (bit(shrink, i)) {
      int64_t at = begin[i] < 0 ? begin[i] + size : begin[i];
      if (at < 0 || at >= size)
        return invalid("slice index ", begin[i], " of dimension ", d, " out of bounds.");
      if (stride < 0)
        return invalid("only stride 1 allowed on non-range indexing.");
      spans.push_back({at, 1, 1, d++, true});
      continue;
    }
    int64_t low = stride > 0 ? 0 : -1, high = stride > 0 ? size : size - 1;
    auto clamp = [&](int64_t v) { return std::clamp(v < 0 ? v + size : v, low, high); };
    int64_t from = bit(beginMask, i) ? (stride > 0 ? low : high) : clamp(begin[i]);
    int64_t to = bit(endMask, i) ? (stride > 0 ? high : low) : clamp(end[i]);
    int64_t length = to - from, count = 0;
    if (length != 0 && (length < 0) == (stride < 0))
      count = length / stride + (length % stride != 0);
    spans.push_back({from, stride, count, d++, false});
  }
  whole(rank - d);
  return absl::OkStatus();
}

/// Where the elements of a strided slice lie in something of `in`; `dims` becomes the slice's shape.
std::vector<int64_t> placesOf(const std::vector<Span> &spans, const Dims &in, Dims &dims) {
  std::vector<int64_t> from = {0};
  for (const Span &span : spans) {
    if (!span.shrink)
      dims.push_back(span.count);
    int64_t size = span.source < 0 ? 1 : in[span.source];
    std::vector<int64_t> next;
    next.reserve(from.size() * span.count);
    for (int64_t start : from)
      for (int64_t i = 0; i < span.count; ++i)
        next.push_back(start * size + span.begin + i * span.stride);
    from = std::move(next);
  }
  return from;
}

absl::Status stridedSlice(KernelContext &context) {
  Tensor in = context.input(0);
  std::vector<Span> spans;
  LATHE_TRY(spansOf(context, in.dims(), intsOf(context.input(1)), intsOf(context.input(2)), intsOf(context.input(3)), spans));
  Dims dims;
  std::vector<int64_t> from = placesOf(spans, in.dims(), dims);
  LATHE_TRY_VALUE(out, pick(context, in, dims, from));
  context.setOutput(0, out);
  return absl::OkStatus();
}

absl::Status stridedSliceGrad(KernelContext &context) {
  LATHE_TRY_VALUE(whole, dimsOf(context.input(0), "shape"));
  Tensor dy = context.input(4);
  std::vector<Span> spans;
  LATHE_TRY(spansOf(context, whole, intsOf(context.input(1)), intsOf(context.input(2)), intsOf(context.input(3)), spans));
  int64_t count = 1; // before anything of that size is made
  for (const Span &span : spans)
    if (__builtin_mul_overflow(count, span.count, &count))
      return invalid("the slice is too large");
  if (count != dy.numElements())
    return invalid("shape of dy was ", dimsToString(dy.dims()), " instead of ", count, " elements");
  LATHE_TRY_VALUE(out, context.allocate(context.node->outputTypes[0], whole));
  Dims dims;
  std::vector<int64_t> to = placesOf(spans, whole, dims);
  for (int64_t i = 0; i < count; ++i)
    copyElement(out, to[i], dy, i);
  context.setOutput(0, out);
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(StridedSlice, stridedSlice);
LATHE_HOST_FUNCTION(StridedSliceGrad, stridedSliceGrad);

/// Output 0 of shape `dims`: where `choose(i)` holds the element of a, else that of b; the two broadcast as `index` says.
template <typename Choose>
absl::Status choose(KernelContext &context, const Tensor &a, const Tensor &b, const Dims &dims, Choose which) {
  LATHE_TRY_VALUE(out, context.allocateOutput(0, dims));
  for (int64_t i = 0; i < out.numElements(); ++i) {
    auto [first, at] = which(i);
    copyElement(out, i, first ? a : b, at);
  }
  return absl::OkStatus();
}

absl::Status select(KernelContext &context) {
  Tensor condition = context.input(0), a = context.input(1), b = context.input(2);
  if (a.dims() != b.dims())
    return invalid("'then' and 'else' must have the same size. but received: ", dimsToString(a.dims()), " vs. ",
                   dimsToString(b.dims()));
  const bool *chosen = condition.data<bool>();
  int64_t repeat = 1;
  if (condition.rank() == 0)
    repeat = std::max<int64_t>(a.numElements(), 1);
  else if (condition.dims() != a.dims()) {
    if (condition.rank() != 1 || a.rank() < 1 || condition.dim(0) != a.dim(0))
      return invalid("'then' and 'cond' must have compatible sizes, but received: ", dimsToString(a.dims()), " vs. ",
                     dimsToString(condition.dims()));
    repeat = std::max<int64_t>(productOf(a.dims(), 1, a.rank()), 1);
  }
  return choose(context, a, b, a.dims(), [&](int64_t i) { return std::pair(chosen[i / repeat], i); });
}
LATHE_HOST_FUNCTION(Select, select);

absl::Status broadcastWith(Dims &dims, const Dims &other) {
  Dims a = dims;
  size_t rank = std::max(dims.size(), other.size());
  dims.assign(rank, 1);
  for (size_t i = 0; i < rank; ++i) {
    int64_t x = i + a.size() < rank ? 1 : a[i + a.size() - rank];
    int64_t y = i + other.size() < rank ? 1 : other[i + other.size() - rank];
    if (x != y && x != 1 && y != 1)
      return invalid("Incompatible shapes: ", dimsToString(a), " vs. ", dimsToString(other));
    dims[i] = x == 1 ? y : x;
  }
  return absl::OkStatus();
}

/// Flat position, in a tensor of `dims` that broadcasts to `full`, of the element at flat position `at`.
int64_t broadcastIndex(const Dims &dims, const Dims &full, int64_t at) {
  int64_t index = 0, stride = 1;
  for (size_t i = full.size(), j = dims.size(); j > 0;) {
    --i, --j;
    if (dims[j] != 1)
      index += at % full[i] * stride;
    at /= full[i];
    stride *= dims[j];
  }
  return index;
}

absl::Status selectV2(KernelContext &context) {
  Tensor condition = context.input(0), a = context.input(1), b = context.input(2);
  Dims dims = condition.dims();
  LATHE_TRY(broadcastWith(dims, a.dims()));
  LATHE_TRY(broadcastWith(dims, b.dims()));
  return choose(context, a, b, dims, [&](int64_t i) {
    bool first = condition.data<bool>()[broadcastIndex(condition.dims(), dims, i)];
    return std::pair(first, broadcastIndex((first ? a : b).dims(), dims, i));
  });
}
LATHE_HOST_FUNCTION(SelectV2, selectV2);

template <bool equal>
absl::Status compare(KernelContext &context) {
  Tensor a = context.input(0), b = context.input(1);
  Dims dims = a.dims();
  if (absl::Status status = broadcastWith(dims, b.dims()); !status.ok()) {
    if (*attrOf<bool>(*context.node, "incompatible_shape_error"))
      return status;
    context.setOutput(0, Tensor::scalar<bool>(DType::Bool, !equal));
    return absl::OkStatus();
  }
  LATHE_TRY_VALUE(out, context.allocateOutput(0, dims));
  if (a.dtype() != DType::String)
    return withType(a.dtype(), [&](auto zero) -> absl::Status {
      using T = decltype(zero);
      for (int64_t i = 0; i < out.numElements(); ++i)
        out.template data<bool>()[i] = (a.data<T>()[broadcastIndex(a.dims(), dims, i)] ==
                                        b.data<T>()[broadcastIndex(b.dims(), dims, i)]) == equal;
      return absl::OkStatus();
    });
  for (int64_t i = 0; i < out.numElements(); ++i)
    out.template data<bool>()[i] = (a.strings()[broadcastIndex(a.dims(), dims, i)] ==
                                    b.strings()[broadcastIndex(b.dims(), dims, i)]) == equal;
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(Equal, compare<true>);
LATHE_HOST_FUNCTION(NotEqual, compare<false>);

/// Joins strings; other types are refused where the graph is built, and then compiled.
class AddStrings : public HostKernel {
public:
  explicit AddStrings(KernelInit &init) {
    if (DType type = init.attr<DType>("T"); type != DType::String)
      init.fail(absl::UnimplementedError(absl::StrCat("no host form for ", dtypeName(type))));
  }
  absl::Status compute(KernelContext &context) override {
    Tensor a = context.input(0), b = context.input(1);
    Dims dims = a.dims();
    LATHE_TRY(broadcastWith(dims, b.dims()));
    LATHE_TRY_VALUE(out, context.allocateOutput(0, dims));
    for (int64_t i = 0; i < out.numElements(); ++i)
      out.mutableStrings()[i] = a.strings()[broadcastIndex(a.dims(), dims, i)] +
                                b.strings()[broadcastIndex(b.dims(), dims, i)];
    return absl::OkStatus();
  }
};
LATHE_HOST_KERNEL(Add, AddStrings);

} // namespace
} // namespace lathe::rt
