// ReduceJoin, UnsortedSegmentJoin.
#include "runtime/kernels/Common.h"

namespace lathe::rt {
namespace {

absl::Status reduceJoin(KernelContext &context) {
  const std::string &separator = *attrOf<std::string>(*context.node, "separator");
  bool keep = *attrOf<bool>(*context.node, "keep_dims");
  Tensor in = context.input(0), axes = context.input(1);
  int64_t rank = in.rank();
  std::vector<bool> reduced(rank, false);
  std::vector<int64_t> order; // the axes in the order given: the first varies fastest
  for (int64_t axis : intsOf(axes)) {
    if (axis < -rank || axis >= rank)
      return invalid("Invalid reduction dimension ", axis, " for input with ", rank, " dimension(s)");
    axis = axis < 0 ? axis + rank : axis;
    if (reduced[axis])
      return invalid("Duplicate reduction dimension ", axis);
    reduced[axis] = true;
    order.push_back(axis);
  }
  std::vector<int64_t> strides(rank, 1), dims, kept;
  for (int64_t d = rank - 1; d-- > 0;)
    strides[d] = strides[d + 1] * in.dim(d + 1);
  for (int64_t d = 0; d < rank; ++d)
    if (!reduced[d]) {
      dims.push_back(in.dim(d));
      kept.push_back(d);
    } else if (keep) {
      dims.push_back(1);
    }
  int64_t parts = 1;
  for (int64_t axis : order)
    parts *= in.dim(axis);
  LATHE_TRY_VALUE(out, context.allocateOutput(0, dims));
  for (int64_t i = 0; i < out.numElements(); ++i) {
    int64_t base = 0, rest = i;
    for (size_t k = kept.size(); k-- > 0;) {
      base += rest % in.dim(kept[k]) * strides[kept[k]];
      rest /= in.dim(kept[k]);
    }
    std::string &joined = out.mutableStrings()[i];
    for (int64_t part = 0; part < parts; ++part) {
      int64_t at = base, left = part;
      for (size_t k = 0; k < order.size(); ++k) {
        at += left % in.dim(order[k]) * strides[order[k]];
        left /= in.dim(order[k]);
      }
      if (part)
        joined += separator;
      joined += in.strings()[at];
    }
  }
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(ReduceJoin, reduceJoin);

absl::Status unsortedSegmentJoin(KernelContext &context) {
  const std::string &separator = *attrOf<std::string>(*context.node, "separator");
  Tensor in = context.input(0), ids = context.input(1);
  LATHE_TRY_VALUE(segments, oneInt(context.input(2), "num_segments"));
  if (segments < 0)
    return invalid("Number of segments must be non-negative, found ", segments);
  if (ids.rank() == 0 || ids.rank() > in.rank() ||
      !std::equal(ids.dims().begin(), ids.dims().end(), in.dims().begin()))
    return invalid("segment_ids' shape must be a non-empty prefix of the inputs' shape: ", dimsToString(ids.dims()), " and ",
                   dimsToString(in.dims()));
  std::vector<int64_t> dims(in.dims().begin() + ids.rank(), in.dims().end());
  int64_t size = productOf(in.dims(), ids.rank(), in.rank());
  dims.insert(dims.begin(), segments);
  LATHE_TRY_VALUE(out, context.allocateOutput(0, dims));
  for (int64_t i = 0; i < ids.numElements(); ++i) {
    int64_t id = intAt(ids, i);
    if (id < 0 || id >= segments)
      return invalid("segment_ids are not allowed to exceed num_segments or to have negative values.");
    for (int64_t j = 0; j < size; ++j) {
      std::string &joined = out.mutableStrings()[id * size + j];
      if (!joined.empty()) // empty strings at the start are joined with nothing, as in TensorFlow
        joined += separator;
      joined += in.strings()[i * size + j];
    }
  }
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(UnsortedSegmentJoin, unsortedSegmentJoin);

} // namespace
} // namespace lathe::rt
