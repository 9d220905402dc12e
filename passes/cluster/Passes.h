//===- Passes.h - passes on the imported graph ------------------*- C++ -*-===//
#ifndef LATHE_PASSES_CLUSTER_PASSES_H
#define LATHE_PASSES_CLUSTER_PASSES_H

#include "dialects/graph/Graph.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace lathe::cluster {

#define GEN_PASS_DECL
#include "passes/cluster/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/cluster/Passes.h.inc"

/// Registers the passes and the pipeline `lathe-cluster`.
void registerClusterPhase();

struct ClusterOptions {};

/// From the imported graph to one whose control flow is functional.
void buildClusterPipeline(mlir::OpPassManager &pm, const ClusterOptions &options = {});

} // namespace lathe::cluster

#endif
