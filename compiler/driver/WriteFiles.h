// What `lathe compile` writes, and tells of it.
#ifndef LATHE_COMPILER_DRIVER_WRITEFILES_H
#define LATHE_COMPILER_DRIVER_WRITEFILES_H

#include "compiler/driver/Compiler.h"

#include <set>
#include <string>

namespace lathe {

/// Whether the path of what is written ends in the name of the files, and not in a folder's.
bool namesFiles(llvm::StringRef prefix);

/// The error says which file could not be written.
llvm::Error writeTextFile(const std::string &path, llvm::StringRef content);

/// Writes those of PREFIX.o, .h, .s, .ll, .a and .so that `wanted` ("obj", "header", "asm", "llvm", "a", "so") names, and the
/// constants to `weights` unless that is "embed".
llvm::Error writeArtifact(const CompiledArtifact &artifact, const std::string &prefix, const std::set<std::string> &wanted,
                          const std::string &weights);

/// The report of a compilation as a JSON object.
std::string reportJson(const EmitReport &report, llvm::ArrayRef<PhaseTime> times);

} // namespace lathe

#endif
