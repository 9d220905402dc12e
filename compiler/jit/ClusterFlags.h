// LATHE_FLAGS.
#ifndef LATHE_COMPILER_JIT_CLUSTERFLAGS_H
#define LATHE_COMPILER_JIT_CLUSTERFLAGS_H

#include "passes/cluster/Passes.h"

namespace lathe {

/// Reads "force=a,b;forbid=c;isolate=d;dump=DIR;background=1"; false and a message for unknown keys.
bool parseClusterFlags(llvm::StringRef text, cluster::ClusteringOptions &options, std::string &dump, std::string &error);

} // namespace lathe

#endif
