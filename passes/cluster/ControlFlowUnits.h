//===- ControlFlowUnits.h - whole loops and conditionals --------*- C++ -*-===//
//
// Unit: the nodes of a v1 loop (with what leaves it) or of a conditional (from its Switches to its Merges). From outside
// a unit is like one node that is alive where the construct is, so a cluster may hold it as long as it holds all of it.
//
//===----------------------------------------------------------------------===//
#ifndef LATHE_PASSES_CLUSTER_CONTROLFLOWUNITS_H
#define LATHE_PASSES_CLUSTER_CONTROLFLOWUNITS_H

#include "passes/cluster/Regions.h"

namespace lathe::cluster {

struct Unit {
  std::vector<unsigned> members; // ascending
  Region region;                 // seen from outside
  std::vector<int> frames;       // the loops it holds
};

/// The units all of whose nodes `compiles` accepts and whose values nobody sees outside but as results, the largest
/// first; none shares a node with another. `nodes` are in topological order, `index` is their inverse.
std::vector<Unit> findUnits(llvm::ArrayRef<graph::NodeOp> nodes,
                            const llvm::DenseMap<mlir::Operation *, unsigned> &index, const Regions &regions,
                            llvm::function_ref<bool(unsigned)> compiles);

} // namespace lathe::cluster

#endif
