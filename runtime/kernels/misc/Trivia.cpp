// Abort, Fact: operations of graphs that try out a system.
#include "runtime/kernels/Common.h"

namespace lathe::rt {
namespace {

/// TensorFlow ends the process. Here the step ends: a graph does not decide over the program that runs it.
absl::Status abortStep(KernelContext &context) {
  if (*attrOf<bool>(*context.node, "exit_without_error"))
    return absl::AbortedError("the graph asks for the process to end");
  return absl::AbortedError(absl::StrCat("Abort_op intentional failure; ", *attrOf<std::string>(*context.node, "error_msg")));
}
LATHE_HOST_FUNCTION(Abort, abortStep);

absl::Status fact(KernelContext &context) {
  context.setOutput(0, Tensor::fromStrings({}, {"0! == 1"}));
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(Fact, fact);

} // namespace
} // namespace lathe::rt
