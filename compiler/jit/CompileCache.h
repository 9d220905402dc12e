// Compiled clusters by content: in memory, shared by all sessions, and as object files in a folder.
//
// Key: a hash of the cluster's function with everything it calls, the arguments' types and sizes, the options, this
// build and this CPU. It is computed from the protobuf before any IR exists, so a hit costs no compiling at all. Values
// of arguments that had to be compiled in are not known before the first compilation; an entry therefore has a list of
// variants, each with the values it holds for. A request as it came, by the hash of its bytes, leads to its key without
// being parsed again.
#ifndef LATHE_COMPILER_JIT_COMPILECACHE_H
#define LATHE_COMPILER_JIT_COMPILECACHE_H

#include "compiler/jit/CompileCluster.h"
#include "compiler/jit/Jit.h"

#include <condition_variable>
#include <map>
#include <mutex>

namespace lathe {

struct LoadedCluster {
  std::shared_ptr<LoadedModule> module;
  std::vector<uint8_t> constant, dynamic; ///< per argument
  std::vector<std::string> values;        ///< per argument: the bytes compiled in, empty for the others
};

class CompileCache {
public:
  /// The compiled cluster, from memory, from the folder, or made now; threads that ask for the same one wait for one
  /// compilation. Null, and `failure`, when it does not compile.
  std::shared_ptr<const LoadedCluster> get(const lathe_compile_request &request, CompileFailure &failure);

private:
  struct Entry {
    bool busy = false;
    std::vector<std::shared_ptr<const LoadedCluster>> variants;
  };
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, Entry> entries;
  std::map<std::string, std::string> keys; ///< of requests seen before, by their own hash
};

} // namespace lathe

#endif
