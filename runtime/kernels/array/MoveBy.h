// The move behind transposes, pads and slices: each element of the result has one source.
#ifndef LATHE_RUNTIME_KERNELS_ARRAY_MOVEBY_H
#define LATHE_RUNTIME_KERNELS_ARRAY_MOVEBY_H

#include "base/Memory.h"
#include "runtime/kernels/Common.h"

namespace lathe::rt {

/// Sets an output, of `dims`: the element at coordinates c is that of the input at `source(c)`, a flat position or -1 for
/// `rest`.
template <typename Source>
absl::Status moveBy(KernelContext &context, int output, const Tensor &in, const std::vector<int64_t> &dims, Source source,
                    const Tensor &rest = Tensor()) {
  LATHE_TRY_VALUE(count, checkedNumElements(dims));
  if (count > memoryBudget() / 8)
    return absl::ResourceExhaustedError(absl::StrCat("a tensor of shape ", dimsToString(dims), " is too large"));
  std::vector<int64_t> from(count);
  std::vector<int64_t> at(dims.size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    from[i] = source(at);
    for (size_t d = dims.size(); d-- > 0;) {
      if (++at[d] < dims[d])
        break;
      at[d] = 0;
    }
  }
  LATHE_TRY_VALUE(out, pick(context, in, dims, from, rest));
  context.setOutput(output, out);
  return absl::OkStatus();
}

} // namespace lathe::rt

#endif
