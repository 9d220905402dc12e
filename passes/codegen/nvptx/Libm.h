// The functions of C's library for devices.
#ifndef LATHE_PASSES_CODEGEN_NVPTX_LIBM_H
#define LATHE_PASSES_CODEGEN_NVPTX_LIBM_H

#include "passes/codegen/element/KernelBuilder.h"

namespace lathe::nvptx {

/// Replaces the calls of library functions in b's function. Returns the name of one that has no expansion, or nothing.
std::string expandLibm(codegen::KernelBuilder &b, mlir::ModuleOp module);

} // namespace lathe::nvptx

#endif
