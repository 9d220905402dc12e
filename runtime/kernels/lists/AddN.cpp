// AddN: what gradients ask of lists, maps and optionals; numbers mostly compile.
#include "runtime/core/Kernel.h"
#include "runtime/core/VariantMath.h"

namespace lathe::rt {
namespace {

absl::Status addN(KernelContext &context) {
  Tensor sum = context.input(0);
  for (int i = 1; i < context.numInputs(); ++i) {
    auto added = addTensors(sum, context.input(i));
    if (!added.ok())
      return added.status();
    sum = *std::move(added);
  }
  context.setOutput(0, std::move(sum));
  return absl::OkStatus();
}

LATHE_HOST_FUNCTION(AddN, addN);

} // namespace
} // namespace lathe::rt
