// How executors call kernels.
#ifndef LATHE_RUNTIME_CORE_COMPUTE_H
#define LATHE_RUNTIME_CORE_COMPUTE_H

#include "runtime/core/Kernel.h"

namespace lathe::rt {

/// compute(), with RESOURCE_EXHAUSTED where memory ends in the middle of it: sizes that a tensor names are checked, but what a
/// process may have is known to the system only.
absl::Status computeGuarded(HostKernel &kernel, KernelContext &context);

} // namespace lathe::rt

#endif
