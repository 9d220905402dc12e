//===- PartiallyDecluster.cpp - what is better off outside ----------------===//
//
// Before: nodes with graph.cluster. After: some of them without.
//
// A node at a cluster's edge whose users are all outside makes them wait for the whole cluster, and one that only hands
// on or measures its input (Shape, Size ...) needs no compiled code. Such nodes go back to their host kernels, as far
// as they have one and take nothing from the cluster.
//
//===----------------------------------------------------------------------===//
#include "dialects/graph/ClusterAttrs.h"
#include "ops/Flags.h"
#include "passes/cluster/Outline.h"
#include "passes/cluster/Passes.h"
#include "passes/cluster/Policy.h"

using namespace mlir;

namespace lathe::cluster {

#define GEN_PASS_DEF_PARTIALLYDECLUSTER
#include "passes/cluster/Passes.h.inc"

namespace {

bool isShapeOp(StringRef op) { return ops::is(op, ops::Flag::Sizes); }
bool isHandOn(StringRef op) { return ops::is(op, ops::Flag::Idle); }

class PartiallyDecluster : public impl::PartiallyDeclusterBase<PartiallyDecluster> {
public:
  using PartiallyDeclusterBase::PartiallyDeclusterBase;

  void runOnOperation() override {
    hosts.clear();
    for (const std::string &op : hostOps)
      hosts.insert(op);
    for (auto func : getOperation().getOps<graph::FuncOp>())
      if (!func.isPrivate())
        decluster(func);
  }

private:
  void decluster(graph::FuncOp func) {
    // all that might leave, less what takes from or gives to a node of its cluster that stays
    llvm::SetVector<Operation *> leaving;
    for (auto node : func.getBody().getOps<graph::NodeOp>())
      if (node->hasAttr(graph::kClusterAttr) && hosts.contains(node.getOp()) &&
          (isShapeOp(node.getOp()) || isHandOn(node.getOp())))
        leaving.insert(node);
    for (bool changed = true; changed;) {
      changed = leaving.remove_if([&](Operation *op) {
        auto stays = [&](Operation *other) {
          return other && other->getAttr(graph::kClusterAttr) == op->getAttr(graph::kClusterAttr) &&
                 !leaving.contains(other);
        };
        return llvm::any_of(op->getOperands(), [&](Value v) { return stays(v.getDefiningOp()); }) ||
               llvm::any_of(op->getUsers(), stays);
      });
    }
    for (Operation *op : leaving) {
      op->removeAttr(graph::kClusterAttr);
      ++(isShapeOp(cast<graph::NodeOp>(op).getOp()) ? numShapeOps : numHostBound);
      if (explain)
        op->emitRemark("left its cluster: only nodes outside wait for it");
    }
  }

  llvm::StringSet<> hosts;
};
} // namespace

} // namespace lathe::cluster
