#include "runtime/session/CompilerLibrary.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <unistd.h>

namespace lathe {
namespace {

// Programs may have another protobuf or LLVM among their global symbols (TensorFlow's wheel does): the compiler takes its own
// libraries' first. Sanitizers intercept by global symbols and refuse this.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr int kOwnFirst = 0;
#define LATHE_SANITIZED 1
#endif
#endif
#ifndef LATHE_SANITIZED
constexpr int kOwnFirst = RTLD_DEEPBIND;
#endif

/// The folder of the program or library that holds this code; "" when the linker does not say.
std::string ownFolder() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<const void *>(&ownFolder), &info) || !info.dli_fname)
    return "";
  std::string path = info.dli_fname;
  // a program's own name is what it was called by: a bare word found by PATH, or relative to a folder that it may have left
  if (path.empty() || path[0] != '/') {
    char buffer[4096];
    ssize_t length = readlink("/proc/self/exe", buffer, sizeof buffer);
    if (length <= 0 || length == static_cast<ssize_t>(sizeof buffer))
      return "";
    path.assign(buffer, static_cast<size_t>(length));
  }
  // "bin/./program" and "bin/program" are in one folder; links are left as they are, since a package may consist of them
  return std::filesystem::path(path).lexically_normal().parent_path();
}

absl::StatusOr<const lathe_cluster_compiler *> tableOf(void *library, const std::string &path) {
  using Get = const lathe_cluster_compiler *(*)();
  auto get = reinterpret_cast<Get>(dlsym(library, kCompilerSymbol));
  const lathe_cluster_compiler *table = get ? get() : nullptr;
  if (!table)
    return absl::FailedPreconditionError(absl::StrCat("'", path, "' has no ", kCompilerSymbol));
  if (table->struct_size < sizeof(lathe_cluster_compiler) || table->version != LATHE_CLUSTER_COMPILER_VERSION)
    return absl::FailedPreconditionError(absl::StrCat("'", path, "' is of version ", table->version, ", and ",
                                                      LATHE_CLUSTER_COMPILER_VERSION, " is needed"));
  return table;
}

/// The compiler; null with `error` and `code` set when it cannot be loaded.
const lathe_cluster_compiler *loadFor(lathe_bytes *error, int32_t *code) {
  absl::StatusOr<const lathe_cluster_compiler *> loaded = loadClusterCompiler();
  if (loaded.ok())
    return *loaded;
  *code = static_cast<int32_t>(loaded.status().code());
  absl::string_view message = loaded.status().message();
  if (char *data = error ? static_cast<char *>(std::malloc(message.size() + 1)) : nullptr) {
    std::memcpy(data, message.data(), message.size());
    data[message.size()] = 0;
    *error = {data, message.size()};
  }
  return nullptr;
}

int32_t deferredCluster(void *, const lathe_cluster_request *request, lathe_bytes *graph, lathe_bytes *error) {
  int32_t code = 0;
  const lathe_cluster_compiler *compiler = loadFor(error, &code);
  return compiler ? compiler->cluster(compiler->context, request, graph, error) : code;
}

int32_t deferredCompile(void *, const lathe_compile_request *request, lathe_compiled *compiled, lathe_bytes *error) {
  int32_t code = 0;
  if (const lathe_cluster_compiler *compiler = loadFor(error, &code))
    return compiler->compile(compiler->context, request, compiled, error);
  *compiled = {};
  compiled->struct_size = sizeof(lathe_compiled);
  return code;
}

void deferredRelease(void *, lathe_compiled *compiled) {
  absl::StatusOr<const lathe_cluster_compiler *> loaded = loadClusterCompiler();
  if (loaded.ok())
    (*loaded)->release_compiled((*loaded)->context, compiled);
}

int32_t deferredCompilesOp(void *, const char *op) {
  absl::StatusOr<const lathe_cluster_compiler *> loaded = loadClusterCompiler();
  return loaded.ok() && (*loaded)->compiles_op((*loaded)->context, op);
}

/// All bytes are malloc's, whoever made them.
void deferredReleaseBytes(void *, lathe_bytes *bytes) {
  std::free(const_cast<char *>(bytes->data));
  *bytes = {nullptr, 0};
}

} // namespace

std::vector<std::string> compilerLibraryPaths() {
  std::vector<std::string> paths;
  if (std::string folder = ownFolder(); !folder.empty()) {
    paths.push_back(absl::StrCat(folder, "/", kCompilerLibrary));
    paths.push_back(absl::StrCat(folder, "/../lib/", kCompilerLibrary));
  }
  paths.push_back(kCompilerLibrary);
  return paths;
}

absl::StatusOr<const lathe_cluster_compiler *> loadClusterCompiler(const std::vector<std::string> &paths) {
  std::vector<std::string> reasons;
  for (const std::string &path : paths) {
    // never unloaded: compiled code and LLVM's own state outlive the last session
    void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE | kOwnFirst);
    if (library)
      return tableOf(library, path);
    const char *why = dlerror();
    reasons.push_back(why ? why : absl::StrCat(path, ": unknown reason"));
  }
  return absl::UnimplementedError(absl::StrCat("the compiler is not there: ", kCompilerLibrary, " could not be loaded (",
                                               absl::StrJoin(reasons, "; "), ")"));
}

static const lathe_cluster_compiler *ownCompiler;
static void *(*ownFunction)(std::string_view name);

void useOwnCompiler(const lathe_cluster_compiler *compiler, void *(*function)(std::string_view name)) {
  ownCompiler = compiler;
  ownFunction = function;
}

absl::StatusOr<const lathe_cluster_compiler *> loadClusterCompiler() {
  if (ownCompiler)
    return ownCompiler;
  static const absl::StatusOr<const lathe_cluster_compiler *> loaded = loadClusterCompiler(compilerLibraryPaths());
  return loaded;
}

absl::StatusOr<void *> compilerFunction(const char *name) {
  if (ownCompiler) {
    if (void *function = ownFunction(name))
      return function;
    return absl::FailedPreconditionError(absl::StrCat("the program's compiler has no ", name));
  }
  if (absl::Status s = loadClusterCompiler().status(); !s.ok())
    return s;
  for (const std::string &path : compilerLibraryPaths())
    if (void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD)) {
      void *function = dlsym(library, name);
      dlclose(library);
      if (function)
        return function;
      break;
    }
  return absl::FailedPreconditionError(absl::StrCat(kCompilerLibrary, " has no ", name));
}

const lathe_cluster_compiler *deferredClusterCompiler() {
  static const lathe_cluster_compiler table = {sizeof(lathe_cluster_compiler), LATHE_CLUSTER_COMPILER_VERSION, nullptr, deferredCluster,
                                               deferredCompile, deferredRelease, deferredReleaseBytes, deferredCompilesOp};
  return &table;
}

} // namespace lathe
