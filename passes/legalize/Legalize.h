// What other rooms ask the legalizer: which TensorFlow ops have a compiled form.
#ifndef LATHE_PASSES_LEGALIZE_LEGALIZE_H
#define LATHE_PASSES_LEGALIZE_LEGALIZE_H

#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace lathe::legalize {

/// Whether the op type can be compiled (attributes and types may still forbid it).
bool hasHandler(llvm::StringRef op);

/// All op types that can be compiled, sorted.
std::vector<std::string> compilableOps();

/// Why an op type has no compiled form: "a host op (strings)", "a host op (reader)", ... or "no compiled form".
std::string whyNotCompilable(llvm::StringRef op);

} // namespace lathe::legalize

#endif
