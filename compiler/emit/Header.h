// The generated header of a module.
#ifndef LATHE_COMPILER_EMIT_HEADER_H
#define LATHE_COMPILER_EMIT_HEADER_H

#include "compiler/emit/Emit.h"
#include "passes/lower/Lower.h"

namespace lathe {

/// Text of PREFIX.h: the ABI, the support code for C++, and the class of this module.
std::string makeHeader(const lower::LoweredModule &lowered, const EmitOptions &options);

} // namespace lathe

#endif
