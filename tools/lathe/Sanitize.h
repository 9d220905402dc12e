// Running generated code under AddressSanitizer.
#ifndef LATHE_TOOLS_LATHE_SANITIZE_H
#define LATHE_TOOLS_LATHE_SANITIZE_H

#include "runtime/abi/module_abi.h"

namespace lathe::cli {

/// Whether this process holds AddressSanitizer's runtime.
bool hasSanitizer();

/// Makes sure that it does: replaces the process by lathe-asan with the same arguments. Returns an exit status, Fine
/// where there is nothing to do.
int enterSanitizer();

/// A lathe_trace whose context is the module: a report of the sanitizer names the kernel that runs.
void noteStep(void *module, int32_t step, int32_t phase);

} // namespace lathe::cli

#endif
