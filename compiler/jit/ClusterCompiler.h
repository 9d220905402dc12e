// The compiler as sessions see it: runtime/abi/cluster_compiler.h implemented by the pipeline and JITLink.
#ifndef LATHE_COMPILER_JIT_CLUSTERCOMPILER_H
#define LATHE_COMPILER_JIT_CLUSTERCOMPILER_H

#include "runtime/abi/cluster_compiler.h"

namespace lathe {

/// One compiler for the process; compiled clusters are kept in memory and shared by all sessions that use it.
const lathe_cluster_compiler *getClusterCompiler();

} // namespace lathe

#endif
