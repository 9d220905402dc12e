// Modules in the middle of a compilation, as --dump-dir writes them: MLIR bytecode with constants and locations, and two
// attributes of the module, `lathe.phase` (the last phase it has behind it) and `lathe.options` (those that decide code). A
// compilation goes on from such a file to the bytes that it would have made in one go.
//
// They are files of this compiler and this version, not a format for models: MLIR's reader checks them, but was not made for
// files of strangers.
#ifndef LATHE_COMPILER_FRONTEND_RECORDED_H
#define LATHE_COMPILER_FRONTEND_RECORDED_H

#include "compiler/frontend/Frontend.h"

namespace lathe {

/// Writes `module`, which is unchanged afterwards.
llvm::Error writeRecorded(mlir::ModuleOp module, Phase phase, const std::vector<std::pair<std::string, std::string>> &options,
                          llvm::StringRef path);

/// Reads them; ImportedModel::recorded has the options.
const Frontend &recordedFrontend();

} // namespace lathe

#endif
