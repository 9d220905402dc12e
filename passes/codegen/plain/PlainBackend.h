// The plain backend: every kernel op as loops of single elements. No packing, no vectors, no blocking. It is what other
// backends are compared with, what they fall back to, and the one to read first (docs/backends.md).
#ifndef LATHE_PASSES_CODEGEN_PLAIN_PLAINBACKEND_H
#define LATHE_PASSES_CODEGEN_PLAIN_PLAINBACKEND_H

#include "passes/codegen/Backend.h"

namespace lathe::plain {

std::unique_ptr<codegen::Backend> makePlainBackend(const codegen::Processor &processor);

} // namespace lathe::plain

#endif
