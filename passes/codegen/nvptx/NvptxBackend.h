// The backend for NVIDIA devices. Kernels are forms of its own (Forms.h), else the plain backend's nests and the library's
// functions, a unit of work a thread (docs/gpu.md); their module becomes PTX for sm_80, which every later device takes too, and
// what --arch and --cubin ask for.
#ifndef LATHE_PASSES_CODEGEN_NVPTX_NVPTXBACKEND_H
#define LATHE_PASSES_CODEGEN_NVPTX_NVPTXBACKEND_H

#include "passes/codegen/Backend.h"

namespace lathe::nvptx {

std::unique_ptr<codegen::Backend> makeNvptxBackend(const codegen::Processor &processor);

/// Registers the passes that prepare a module's ops.
void registerNvptxPasses();

} // namespace lathe::nvptx

#endif
