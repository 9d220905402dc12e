// MirrorPad, ReverseSequence and Roll, for every element type.
#include "runtime/kernels/array/MoveBy.h"

#include <algorithm>

namespace lathe::rt {
namespace {

using Dims = std::vector<int64_t>;

absl::Status mirrorPad(KernelContext &context) {
  Tensor in = context.input(0), paddings = context.input(1);
  const std::string &mode = *attrOf<std::string>(*context.node, "mode");
  int64_t edge = mode == "REFLECT"; // the border itself is not repeated
  if (mode != "REFLECT" && mode != "SYMMETRIC")
    return invalid("mode must be either REFLECT or SYMMETRIC.");
  if (paddings.rank() != 2 || paddings.dim(1) != 2 || paddings.dim(0) != in.rank())
    return invalid("paddings must be a matrix with 2 columns and a row for each dimension: ", dimsToString(paddings.dims()));
  Dims dims = in.dims(), before(dims.size());
  for (size_t d = 0; d < dims.size(); ++d) {
    before[d] = intAt(paddings, 2 * d);
    int64_t after = intAt(paddings, 2 * d + 1), most = in.dim(d) - edge;
    if (before[d] < 0 || after < 0)
      return invalid("paddings must be non-negative: ", before[d], " ", after);
    if (before[d] > most || after > most)
      return invalid("paddings must be no greater than the dimension size: ", before[d], ", ", after, " greater than ", most);
    dims[d] += before[d] + after;
  }
  return moveBy(context, 0, in, dims, [&](const Dims &at) {
    int64_t flat = 0;
    for (size_t d = 0; d < at.size(); ++d) {
      int64_t i = at[d] - before[d], n = in.dim(d);
      i = i < 0 ? -i - 1 + edge : i >= n ? 2 * n - 1 - i - edge : i;
      flat = flat * n + i;
    }
    return flat;
  });
}
LATHE_HOST_FUNCTION(MirrorPad, mirrorPad);

absl::Status reverseSequence(KernelContext &context) {
  Tensor in = context.input(0);
  std::vector<int64_t> lengths = intsOf(context.input(1));
  int64_t along = *attrOf<int64_t>(*context.node, "seq_dim"), batch = *attrOf<int64_t>(*context.node, "batch_dim");
  if (along < 0)
    along += in.rank();
  if (batch < 0)
    batch += in.rank();
  if (along < 0 || along >= in.rank() || batch < 0 || batch >= in.rank() || along == batch)
    return invalid("seq_dim ", along, " and batch_dim ", batch, " must be different dimensions of the input");
  if (static_cast<int64_t>(lengths.size()) != in.dim(batch))
    return invalid("Length of seq_lens != input.dims(", batch, "), (", lengths.size(), " vs. ", in.dim(batch), ")");
  for (int64_t length : lengths)
    if (length < 0 || length > in.dim(along))
      return invalid("seq_lens must be in [0, ", in.dim(along), "], found ", length);
  return moveBy(context, 0, in, in.dims(), [&](const Dims &at) {
    int64_t flat = 0, length = lengths[at[batch]];
    for (int64_t d = 0; d < in.rank(); ++d)
      flat = flat * in.dim(d) + (d == along && at[d] < length ? length - 1 - at[d] : at[d]);
    return flat;
  });
}
LATHE_HOST_FUNCTION(ReverseSequence, reverseSequence);

absl::Status roll(KernelContext &context) {
  Tensor in = context.input(0);
  std::vector<int64_t> shifts = intsOf(context.input(1)), axes = intsOf(context.input(2));
  if (in.rank() < 1)
    return invalid("input must be 1-D or higher");
  if (shifts.size() != axes.size())
    return invalid("shift and axis must have the same size");
  Dims shift(in.rank(), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t axis = axes[i] < 0 ? axes[i] + in.rank() : axes[i];
    if (axis < 0 || axis >= in.rank())
      return invalid("axis ", axes[i], " is out of range");
    int64_t n = std::max<int64_t>(in.dim(axis), 1);
    shift[axis] = (shift[axis] + shifts[i] % n + n) % n;
  }
  return moveBy(context, 0, in, in.dims(), [&](const Dims &at) {
    int64_t flat = 0;
    for (int64_t d = 0; d < in.rank(); ++d)
      flat = flat * in.dim(d) + (at[d] - shift[d] + in.dim(d)) % in.dim(d);
    return flat;
  });
}
LATHE_HOST_FUNCTION(Roll, roll);

} // namespace
} // namespace lathe::rt
