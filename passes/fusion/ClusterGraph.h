//===- ClusterGraph.h - an acyclic graph whose nodes merge ------------------===//
//
// Nodes are numbered in a topological order; merging two keeps that order valid
// (Pearce and Kelly) and is refused when it would close a cycle.
//
//===----------------------------------------------------------------------===//

#ifndef LATHE_PASSES_FUSION_CLUSTERGRAPH_H
#define LATHE_PASSES_FUSION_CLUSTERGRAPH_H

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallVector.h"

namespace lathe {

/// A directed acyclic graph under node merging. Node i must only have edges to nodes above i at first.
class ClusterGraph {
public:
  enum class Merge { Done, Cycle, TooFar };

  explicit ClusterGraph(unsigned size);

  /// Adds from -> to; to must come later in the present order.
  void addEdge(unsigned from, unsigned to);

  /// The present representative of a node.
  unsigned find(unsigned node);

  /// Merges the clusters of two nodes unless a path outside connects them (or the search for one gets too long).
  Merge merge(unsigned a, unsigned b);

  /// Position of the node's cluster in the present topological order (unique per cluster, not dense).
  unsigned rank(unsigned node) { return ranks[find(node)]; }

private:
  /// Collects what is reachable from start with ranks inside (low, high); false when it meets `stop` or runs too long.
  bool search(unsigned start, unsigned stop, bool forward, unsigned low, unsigned high,
              llvm::SmallVectorImpl<unsigned> &found, bool &tooFar);

  llvm::SmallVector<unsigned> parents, ranks, stamps;
  llvm::SmallVector<llvm::SmallVector<unsigned, 4>> next, previous;
  unsigned stamp = 0;
};

} // namespace lathe

#endif
