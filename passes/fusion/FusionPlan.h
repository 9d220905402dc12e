//===- FusionPlan.h - which operations of a block share a kernel ------------===//
//
// Words used here: a group becomes one kernel op. A member of a group is an op
// computed in it; a copy is a member whose op is computed in other groups too.
// An op no group holds stays where it is (constants, views, control flow, ops
// with a kernel of their own).
//
//===----------------------------------------------------------------------===//

#ifndef LATHE_PASSES_FUSION_FUSIONPLAN_H
#define LATHE_PASSES_FUSION_FUSIONPLAN_H

#include "passes/fusion/ClusterGraph.h"
#include "passes/fusion/OpInfo.h"

#include "mlir/IR/Block.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"

namespace lathe {

/// Why an op did not join the group of a consumer.
enum class Refusal {
  None,
  TooManyOps,      ///< the region has reached its limit
  Replicated,      ///< the consumer reads each element many times
  Strided,         ///< expensive, and the consumer's order would keep it from vectors
  CoreOperand,     ///< read by the product or window itself
  OtherShape,      ///< the group's loops run over another shape
  NotElemental,    ///< the op has a loop nest of its own
  NeededElsewhere, ///< ops outside the group read it too
  Cycle,           ///< would make two kernels wait for each other
};
constexpr unsigned numRefusals = 9;

/// Text of a refusal for remarks.
llvm::StringRef describe(Refusal refusal);

/// One kernel to be.
struct FusionGroup {
  enum class Kind { Loop, Reduce, Rows, Core };
  Kind kind = Kind::Loop;
  /// Nodes computed here, in order of the block.
  llvm::SmallVector<unsigned> members;
  /// The core op, the first reduce, or the op that the group began with.
  unsigned anchor = 0;
  /// Shape that the outputs have (for Rows: the full shape) and, for Rows, the shape of the reduced values.
  mlir::RankedTensorType shape, rowShape;
  /// For Core: the transpose node that the kernel's result dimensions absorb.
  int resultTranspose = -1;
  bool dead = false;
};

/// An op of the block as the plan sees it.
struct FusionNode {
  mlir::Operation *op = nullptr;
  OpClass cls = OpClass::Opaque;
  unsigned cost = 0;
  llvm::SmallVector<unsigned, 4> users, producers;
  /// Read by the block's terminator.
  bool escapes = false;
  /// What the cores reading it take in.
  bool absorbed = false;
  /// Read for values alone that shortcuts (dialects/hlo/Marks.h) seldom need.
  bool aside = false;
  /// The group whose output holds its value; -1: none.
  int group = -1;
  /// Groups that compute it for themselves.
  llvm::SmallVector<unsigned, 2> copies;
  /// The first reason met for not joining a consumer.
  Refusal refusal = Refusal::None;
};

struct FusionLimits {
  bool fuse = true;
  unsigned maxOps = 64;
  /// So many of those that lie aside count as one.
  unsigned asideAsOne = 16;
  /// Elements of a producer that one element of a kernel may compute. A chain of sums with itself shifted, as
  /// running sums are, would compute twice as many in each step.
  unsigned maxReadings = 8;
};

/// The plan for one block.
class FusionPlan {
public:
  FusionPlan(mlir::Block &block, FusionLimits limits);

  /// What to emit, in order: a group (first) or a lone node (second).
  struct Step {
    int group = -1;
    unsigned node = 0;
  };
  llvm::SmallVector<Step> order();

  llvm::ArrayRef<FusionNode> getNodes() const { return nodes; }
  llvm::ArrayRef<FusionGroup> getGroups() const { return groups; }
  /// True when values of the node are read outside `group`.
  bool isOutput(unsigned node, unsigned group) const;
  bool isMember(unsigned node, unsigned group) const;

private:
  void buildNodes(mlir::Block &block);
  void absorbOperands();
  void planCores();
  void planRows();
  void planReduces();
  void planProducers();
  void mergeSiblings();
  void planAlone();

  unsigned newGroup(FusionGroup::Kind kind, unsigned anchor);
  bool join(unsigned node, unsigned group);
  void copyInto(unsigned node, unsigned group);
  /// Forward growth over elementwise users of the group's shape; stops where exactly one value leaves the group.
  void growEpilogue(unsigned group, unsigned last, unsigned limit);
  bool mergeGroups(unsigned a, unsigned b);
  Refusal refuse(unsigned node, unsigned group) const;
  /// Whether a pad of the group reads the op, directly or not: its edges keep blocks from being transposed.
  bool isPadded(unsigned node, unsigned group) const;
  /// How many elements of a node one element of the group needs, as far as slices, pads and the like tell
  /// them apart.
  unsigned readings(unsigned node, unsigned group) const;
  /// What counts of some nodes towards the limit of ops.
  unsigned sizeOf(llvm::ArrayRef<unsigned> members) const;
  void note(unsigned node, Refusal refusal);

  FusionLimits limits;
  llvm::SmallVector<FusionNode> nodes;
  llvm::SmallVector<FusionGroup> groups;
  std::optional<ClusterGraph> clusters;
  /// What `readings` found for members (node, group) that joined as producers; others are read once.
  llvm::DenseMap<std::pair<unsigned, unsigned>, unsigned> memberReadings;
};

} // namespace lathe

#endif
