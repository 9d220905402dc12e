// Values of nodes on devices with a memory of their own: which kernels of the host take them as they are, and how the others
// get them.
#ifndef LATHE_RUNTIME_SESSION_DEVICEVALUES_H
#define LATHE_RUNTIME_SESSION_DEVICEVALUES_H

#include "runtime/core/Kernel.h"

namespace lathe::rt {

/// Host kernels that only hand tensors on (variables, transfers, calls of functions) run on any device. The number of their
/// leading inputs whose elements they read (conditions, bounds); nothing for all other ops.
std::optional<int> hostInputsOfHandler(std::string_view op);

/// Brings inputs of a node with a host kernel to the host, as far as its op reads them: tensors, and values of reference variables
/// where it takes a tensor. Variables that it takes as such stay as they are: another step may change them until the kernel has
/// locked them, so that it calls valueToHost itself.
absl::Status bringInputsToHost(KernelContext &context);

/// What is to be done with a function's results once they are on the host.
FunctionCaller::Done withHostResults(FunctionCaller::Done done);

/// The values of functions, on the host: for kernels that read them.
class HostResults : public FunctionCaller {
public:
  explicit HostResults(FunctionCaller *functions) : functions(functions) {}
  void call(const FunctionRef &function, std::vector<Tensor> args, Cancellation *cancellation, Done done) override;
  absl::Status signature(const FunctionRef &function, std::vector<DType> *args, std::vector<DType> *results) override {
    return functions->signature(function, args, results);
  }

private:
  FunctionCaller *const functions;
};

/// In place.
absl::Status bringToHost(std::vector<Tensor> &tensors);

} // namespace lathe::rt

#endif
