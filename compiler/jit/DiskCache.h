// Compiled objects as files. A file is written under a name of its own and renamed, so that readers and other processes
// see whole files only; whatever does not check out (cut, changed, of another key or build, writable by other users) is taken
// as absent.
#ifndef LATHE_COMPILER_JIT_DISKCACHE_H
#define LATHE_COMPILER_JIT_DISKCACHE_H

#include "compiler/jit/CompileCluster.h"

#include <functional>

namespace lathe {

class DiskCache {
public:
  /// An empty folder name: nothing is found and nothing is kept.
  explicit DiskCache(std::string folder) : folder(std::move(folder)) {}

  /// The first variant of `key` whose compiled-in values `matches` accepts.
  bool load(const std::string &key, size_t numArgs,
            llvm::function_ref<bool(const std::vector<std::string> &values, const std::vector<uint8_t> &constant)> matches,
            CompiledObject &object, std::vector<std::string> &values) const;
  /// Keeps an object; failing to is no error.
  void store(const std::string &key, const CompiledObject &object, const std::vector<std::string> &values) const;
  /// Removes every variant of a key: one of them was no object that can be linked.
  void drop(const std::string &key) const;

private:
  std::string folder;
};

/// The folder that a program names; without one that of LATHE_CACHE_DIR, which a program with more rights than its user's does not
/// read. "": none.
std::string cacheFolder(const char *given);

/// What objects depend on besides their graph: the compiler's version and build, and this machine's CPU. Empty where the
/// build cannot be told: nothing is kept then.
const std::string &buildIdentity();

} // namespace lathe

#endif
