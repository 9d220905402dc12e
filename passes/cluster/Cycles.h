//===- Cycles.h - contracting a graph that has to stay acyclic --*- C++ -*-===//
//
// Union-find over nodes with the edges between the groups, kept in a topological order that is repaired locally (Pearce
// and Kelly, "A dynamic topological sort algorithm for directed acyclic graphs"). Groups merge only where no other path
// leads from one to the other, so that the contracted graph never has a cycle.
//
//===----------------------------------------------------------------------===//
#ifndef LATHE_PASSES_CLUSTER_CYCLES_H
#define LATHE_PASSES_CLUSTER_CYCLES_H

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <vector>

namespace lathe::cluster {

class AcyclicGraph {
public:
  explicit AcyclicGraph(unsigned numNodes);

  /// False, and no edge, when it would close a cycle. Edges of a node to itself are ignored.
  bool addEdge(unsigned from, unsigned to);
  /// The group of a node, named by one of its members.
  unsigned find(unsigned node) const;
  /// Merges two groups, unless a path of two or more edges leads from one to the other.
  bool merge(unsigned a, unsigned b);
  /// Whether b can be reached from a over at least one edge.
  bool reaches(unsigned a, unsigned b) const;
  /// The groups that a group has edges to, and from; by their current names, in ascending order.
  std::vector<unsigned> successors(unsigned group) const;
  std::vector<unsigned> predecessors(unsigned group) const;
  /// Whether the kept order is topological: for tests.
  bool isConsistent() const;

private:
  bool pathAround(unsigned from, unsigned to) const;
  bool insertOrdered(unsigned from, unsigned to);

  mutable std::vector<unsigned> parent;
  std::vector<llvm::DenseSet<unsigned>> out, in; // of group names only
  std::vector<unsigned> rank;
};

} // namespace lathe::cluster

#endif
