// The backend of CPUs, for Backends.cpp alone.
#ifndef LATHE_PASSES_CODEGEN_CPU_CPUBACKEND_H
#define LATHE_PASSES_CODEGEN_CPU_CPUBACKEND_H

#include "passes/codegen/Backend.h"

namespace lathe::cpu {

std::unique_ptr<codegen::Backend> makeCpuBackend(const codegen::Processor &processor);

/// The dialect of its layouts.
void registerLayouts(mlir::DialectRegistry &registry);

} // namespace lathe::cpu

#endif
