// The variable that a node of either kind names.
#ifndef LATHE_RUNTIME_KERNELS_STATE_LOOKUP_H
#define LATHE_RUNTIME_KERNELS_STATE_LOOKUP_H

#include "runtime/core/Kernel.h"

namespace lathe::rt {

/// The variable of that name, made when there is none; INVALID_ARGUMENT when it is of another type.
inline absl::StatusOr<std::shared_ptr<Variable>> findVariable(KernelContext &context, const std::string &container,
                                                              const std::string &name, DType dtype) {
  auto variable = context.resources->lookupOrCreate<Variable>(
      container, name, [&]() -> absl::StatusOr<std::shared_ptr<Variable>> { return std::make_shared<Variable>(dtype); });
  if (variable.ok() && (*variable)->dtype != dtype)
    return absl::InvalidArgumentError(absl::StrCat("variable ", container, "/", name, " is of type ", dtypeName((*variable)->dtype),
                                                   ", not ", dtypeName(dtype)));
  return variable;
}

} // namespace lathe::rt

#endif
