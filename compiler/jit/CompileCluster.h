// One cluster through the pipeline: a graph of its own (ClusterFunction.h) to an object in memory.
#ifndef LATHE_COMPILER_JIT_COMPILECLUSTER_H
#define LATHE_COMPILER_JIT_COMPILECLUSTER_H

#include "compiler/jit/ClusterFunction.h"
#include "mlir/IR/MLIRContext.h"

#include <string>
#include <vector>

namespace lathe {

struct ClusterCompileOptions {
  int threads = 1;
  bool dynamicDims = false;
  std::string cpu = "host", backend; ///< as CompilerOptions'
  std::string dumpDir; ///< phases are dumped there
};

struct CompiledObject {
  std::string object, prefix;
  std::vector<uint8_t> constant, dynamic; ///< per argument, as in lathe_compiled
};

/// Why a compilation failed.
struct CompileFailure {
  std::string message;
  int32_t code = 0;       ///< a lathe_code
  std::string failedNode; ///< of the cluster's main graph, or empty
  std::vector<uint8_t> constant; ///< per argument, whether its value was part of the attempt
};

/// Arguments become inputs called "arg<i>" with the sizes they have, variables "arg<i>" are bound by the caller. Values
/// are compiled in for those arguments only that an operand needs that has to be known when compiling; with
/// `dynamicDims` leading sizes are left open where that compiles. False, and `failure`, when nothing compiles.
bool compileCluster(const LaunchGraph &cluster, llvm::ArrayRef<const lathe_cluster_arg *> args,
                    const ClusterCompileOptions &options, CompiledObject &result, CompileFailure &failure);

/// A context with the dialects of the pipeline, without threads of its own.
std::unique_ptr<mlir::MLIRContext> makeCompileContext();

} // namespace lathe

#endif
