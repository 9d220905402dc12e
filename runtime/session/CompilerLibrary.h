// The compiler, for programs and libraries that are built without it: liblathe_compiler.so, loaded when something is to be
// compiled.
#ifndef LATHE_RUNTIME_SESSION_COMPILERLIBRARY_H
#define LATHE_RUNTIME_SESSION_COMPILERLIBRARY_H

#include "runtime/abi/cluster_compiler.h"

#include "absl/status/statusor.h"

#include <string>
#include <string_view>
#include <vector>

namespace lathe {

/// The file's name, and the symbol in it.
constexpr char kCompilerLibrary[] = "liblathe_compiler.so";
constexpr char kCompilerSymbol[] = "lathe_get_cluster_compiler";

/// Where the compiler is looked for, in this order: beside the program or library that this code is part of, in the folder
/// "lib" beside that one's, and by the dynamic linker's own search.
std::vector<std::string> compilerLibraryPaths();

/// The compiler of the first of these libraries that is there. It stays loaded. UNIMPLEMENTED, naming the file and why each
/// could not be loaded, when none is; FAILED_PRECONDITION when one is there but was made for another version of Lathe.
absl::StatusOr<const lathe_cluster_compiler *> loadClusterCompiler(const std::vector<std::string> &paths);

/// The compiler at compilerLibraryPaths(), loaded once for the process; what went wrong the first time is said every time.
absl::StatusOr<const lathe_cluster_compiler *> loadClusterCompiler();

/// A compiler that loads the library at its first use, so that a session that compiles nothing never needs it. Where the library is
/// absent every use fails with UNIMPLEMENTED and says so; ops with host kernels run all the same.
const lathe_cluster_compiler *deferredClusterCompiler();

/// For programs that hold the compiler themselves: the above then give this one, and `function` finds what else it offers by name.
/// To be called before anything asks for a compiler.
void useOwnCompiler(const lathe_cluster_compiler *compiler, void *(*function)(std::string_view name));

/// Another function that the library exports, such as lathe_compile_files (runtime/abi/compile_files.h).
absl::StatusOr<void *> compilerFunction(const char *name);

} // namespace lathe

#endif
