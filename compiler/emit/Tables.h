// The ABI's tables and helper functions as LLVM IR, added to the module that holds the lowered entries.
#ifndef LATHE_COMPILER_EMIT_TABLES_H
#define LATHE_COMPILER_EMIT_TABLES_H

#include "compiler/emit/Emit.h"
#include "passes/lower/Lower.h"
#include "llvm/IR/Module.h"

namespace lathe {

/// Defines PREFIX_module and the other exported functions, lathe_fail and what the entries refer to.
void emitTables(llvm::Module &module, const lower::LoweredModule &lowered, const EmitOptions &options,
                llvm::StringRef target, uint64_t constantsHash);

/// Defines PREFIX_hosted, with the graph of host nodes and references to their kernels and to what runs compiled parts on devices.
void emitHostedTables(llvm::Module &module, const HostedPayload &hosted, llvm::StringRef prefix, bool onDevice);

/// Exported C functions of an entry: PREFIX_run for the first, PREFIX_run_NAME besides that.
std::string entryFunctionName(llvm::StringRef prefix, llvm::StringRef function, llvm::StringRef entry, int index);

} // namespace lathe

#endif
