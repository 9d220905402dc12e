// The little of ELF64 that emission needs: adding a section of constants to a relocatable object, and looking at one.
#ifndef LATHE_COMPILER_EMIT_ELF_H
#define LATHE_COMPILER_EMIT_ELF_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace lathe {

/// Appends a read-only section of `size` bytes, aligned to a page that `append` adds, and defines the undefined
/// `symbol` at its start. x86-64 and AArch64 relocatable objects.
llvm::Expected<std::string> addConstantsSection(llvm::StringRef object, llvm::StringRef symbol, uint64_t size,
                                                llvm::function_ref<void(std::string &)> append);

struct ElfSummary {
  std::vector<std::string> undefined; ///< sorted names
  std::vector<std::string> exported;  ///< defined, global, default visibility
  uint64_t codeBytes = 0;
};
llvm::Expected<ElfSummary> summarizeObject(llvm::StringRef object);

} // namespace lathe

#endif
