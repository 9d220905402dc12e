// StringJoin.
#include "runtime/core/Kernel.h"

namespace lathe::rt {
namespace {

absl::Status stringJoin(KernelContext &context) {
  const std::string &separator = *attrOf<std::string>(*context.node, "separator");
  std::vector<Tensor> parts = context.inputList("inputs");
  std::vector<int64_t> dims; // of the first that is no scalar
  for (const Tensor &part : parts) {
    if (part.rank() == 0)
      continue;
    if (dims.empty())
      dims = part.dims();
    else if (dims != part.dims())
      return absl::InvalidArgumentError(absl::StrCat("input shapes do not match: ", dimsToString(dims), " vs. ",
                                                     dimsToString(part.dims())));
  }
  auto out = context.allocateOutput(0, dims);
  if (!out.ok())
    return out.status();
  std::vector<std::string> &joined = out->mutableStrings();
  for (size_t i = 0; i < joined.size(); ++i)
    for (size_t p = 0; p < parts.size(); ++p) {
      if (p)
        joined[i] += separator;
      joined[i] += parts[p].strings()[parts[p].rank() == 0 ? 0 : i];
    }
  return absl::OkStatus();
}

LATHE_HOST_FUNCTION(StringJoin, stringJoin);

} // namespace
} // namespace lathe::rt
