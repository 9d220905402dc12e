//===- Regions.h - which nodes run together under v1 control flow *- C++ -*-===//
//
// Frame: one v1 loop (what an Enter's frame_name names), inside another frame or the graph itself.
// Liveness: the conditions under which a value is not dead, as a set of literals (predicate, side) that all must hold;
// a literal may also be the name of a Merge that is alive when it wants. Two nodes of one frame with the same liveness
// are dead together, so a launch can stand for both.
//
//===----------------------------------------------------------------------===//
#ifndef LATHE_PASSES_CLUSTER_REGIONS_H
#define LATHE_PASSES_CLUSTER_REGIONS_H

#include "dialects/graph/Graph.h"
#include "llvm/ADT/DenseMap.h"

#include <map>
#include <set>
#include <vector>

namespace lathe::cluster {

/// The frame and liveness of a node; equal numbers are equal regions.
struct Region {
  int frame = 0, liveness = 0;
  bool operator==(const Region &o) const { return frame == o.frame && liveness == o.liveness; }
};

class Regions {
public:
  /// Looks at all nodes of a function. Fails on a cycle that is no v1 loop, and where frames are left or entered in a way
  /// that no loop does.
  mlir::LogicalResult analyze(mlir::Block &block);

  Region of(mlir::Operation *op) const { return regions.lookup(op); }
  int parentFrame(int frame) const { return frames[frame].parent; }
  int numFrames() const { return static_cast<int>(frames.size()); }
  /// Whether a frame is another one, or inside it.
  bool isWithin(int frame, int outer) const;
  /// The liveness that what a loop gives back has.
  int entryLiveness(int frame) const { return frames[frame].entryLiveness; }

  /// A predicate and its side, or an opaque name.
  using Literal = std::pair<const void *, int>;
  const std::set<Literal> &conditionsOf(int liveness) const { return literals[liveness]; }
  /// The liveness of one of a node's results: a Switch's sides have more conditions than the Switch.
  int livenessOf(mlir::Value value) const;
  /// Nodes with every node after its operands, but for the edges that close loops.
  llvm::ArrayRef<mlir::Operation *> order() const { return ordered; }
  /// False: the function has no v1 control flow, and one region.
  bool hasControlFlow() const { return anyControlFlow; }

private:
  struct Frame {
    int parent = 0, entryLiveness = 0;
  };
  int intern(const std::set<Literal> &literals);

  std::vector<mlir::Operation *> ordered;
  llvm::DenseMap<mlir::Operation *, Region> regions;
  std::vector<Frame> frames;
  std::map<std::set<Literal>, int> numbers;
  std::vector<std::set<Literal>> literals;
  llvm::DenseMap<mlir::Value, int> switched; // liveness of values that differ from their node's
  bool anyControlFlow = false;
};

/// What a condition is known by: its value, looked at through Identity and the Switches of other conditions.
mlir::Value predicateOf(mlir::Value condition);

/// Switch, Merge, Enter, Exit, NextIteration, LoopCond and their reference forms.
bool isControlFlow(mlir::Operation *op);

} // namespace lathe::cluster

#endif
