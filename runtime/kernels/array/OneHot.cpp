// OneHot and Empty, for the element types that are not compiled.
#include "runtime/kernels/array/MoveBy.h"

namespace lathe::rt {
namespace {

absl::Status oneHot(KernelContext &context) {
  Tensor indices = context.input(0), on = context.input(2), off = context.input(3);
  LATHE_TRY_VALUE(depth, oneInt(context.input(1), "depth"));
  if (depth < 0)
    return invalid("depth must be non-negative, got: ", depth);
  if (on.rank() != 0 || off.rank() != 0)
    return invalid("on_value and off_value must be scalars, but got: ", dimsToString(on.dims()), " and ",
                   dimsToString(off.dims()));
  const int64_t *given = attrOf<int64_t>(*context.node, "axis");
  int64_t axis = given ? *given : -1;
  if (axis < -1 || axis > indices.rank())
    return invalid("Expected axis to be -1 or between [0, ", indices.rank() + 1, ").  But received: ", axis);
  size_t place = axis < 0 ? indices.rank() : axis;
  std::vector<int64_t> dims = indices.dims();
  dims.insert(dims.begin() + place, depth);
  return moveBy(
      context, 0, on, dims,
      [&](const std::vector<int64_t> &at) -> int64_t {
        int64_t flat = 0;
        for (size_t d = 0, k = 0; d < at.size(); ++d)
          if (d != place)
            flat = flat * indices.dim(k++) + at[d];
        return intAt(indices, flat) == at[place] ? 0 : -1;
      },
      off);
}
LATHE_HOST_FUNCTION(OneHot, oneHot);

/// Filled with zeros or empty strings whether `init` asks for it or not.
absl::Status empty(KernelContext &context) {
  LATHE_TRY_VALUE(dims, dimsOf(context.input(0), "shape"));
  LATHE_TRY_VALUE(out, context.allocateOutput(0, dims));
  (void)out;
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(Empty, empty);

} // namespace
} // namespace lathe::rt
