// Where the time of compilation goes among kernels, which --timing tells: by group, that is, by the op and the algorithm that
// Backend::kernelName names.
#ifndef LATHE_PASSES_LOWER_KERNELTIMES_H
#define LATHE_PASSES_LOWER_KERNELTIMES_H

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <map>
#include <string>

namespace lathe::lower {

struct KernelTime {
  int64_t kernels = 0; ///< of the group
  double seconds = 0;
};
/// By group; "" stands for what is in no kernel.
using KernelTimes = std::map<std::string, KernelTime>;

/// The group of a function that lowering made: "conv_winograd4" of "k12_conv_winograd4", and "" of what is no kernel.
inline llvm::StringRef kernelGroup(llvm::StringRef function) {
  if (!function.consume_front("k"))
    return "";
  const llvm::StringRef rest = function.drop_while(llvm::isDigit);
  return rest.size() < function.size() && rest.starts_with("_") ? rest.drop_front() : "";
}

} // namespace lathe::lower

#endif
