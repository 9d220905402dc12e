//===- MinCut.h - nodes put on the cheaper of two sides ----------------------===//

#ifndef LATHE_PASSES_SIMPLIFY_MINCUT_H
#define LATHE_PASSES_SIMPLIFY_MINCUT_H

#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <limits>

namespace lathe {

/// A network of nodes between a first and a second side. An edge costs its capacity when its start ends up on
/// the first side and its end on the second. Node 0 is the first side, node 1 the second.
class MinCut {
public:
  static constexpr unsigned first = 0, second = 1;
  static constexpr int64_t infinite = std::numeric_limits<int64_t>::max() / 4;

  unsigned addNode();
  void addEdge(unsigned from, unsigned to, int64_t capacity);
  /// Finds sides of least cost, among those the one with the fewest nodes on the first side. False when that
  /// takes more than `steps` looks at an edge.
  bool solve(uint64_t steps);
  /// The cost that solve found.
  int64_t getCost() const { return cost; }
  bool isFirst(unsigned node) const { return level[node] >= 0; }
  size_t getNumEdges() const { return edges.size() / 2; }

private:
  struct Edge {
    unsigned to;
    int64_t rest; ///< what may still flow
  };

  bool findLevels(uint64_t &steps);

  // an edge and its reverse are neighbours
  llvm::SmallVector<Edge> edges;
  llvm::SmallVector<llvm::SmallVector<unsigned, 4>> out{{}, {}};
  llvm::SmallVector<int> level{-1, -1};
  int64_t cost = 0;
};

} // namespace lathe

#endif
