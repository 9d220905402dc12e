//===- Passes.h - passes on the imported graph ------------------*- C++ -*-===//
#ifndef LATHE_PASSES_CLUSTER_PASSES_H
#define LATHE_PASSES_CLUSTER_PASSES_H

#include "dialects/graph/Graph.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <string>
#include <vector>

namespace lathe::cluster {

/// What a session has compiled.
enum class ClusteringMode {
  Needed = 0,     ///< only nodes without a host kernel
  Worthwhile = 1, ///< everything that is worth it
  None = 2,       ///< only what must be (_XlaMustCompile)
};

#define GEN_PASS_DECL
#include "passes/cluster/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/cluster/Passes.h.inc"

/// Registers the passes and the pipeline `lathe-cluster`.
void registerClusterPhase();

struct ClusterOptions {};

/// From the imported graph to one whose control flow is functional.
void buildClusterPipeline(mlir::OpPassManager &pm, const ClusterOptions &options = {});

/// How a session's graph is clustered.
struct ClusteringOptions {
  ClusteringMode mode = ClusteringMode::Worthwhile;
  unsigned minSize = 4;
  std::vector<std::string> hostOps, force, forbid, isolate;
  bool explain = false;
};

/// From a graph as it is (compiler/import/Structure.h) to one with launches: mark, decluster, encapsulate, build.
/// Declustering comes before encapsulating, while edges are still in one place.
void buildClusteringPipeline(mlir::OpPassManager &pm, const ClusteringOptions &options);

} // namespace lathe::cluster

#endif
