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
#include "passes/cluster/Outline.h"
#include "passes/cluster/Passes.h"
#include "passes/cluster/Policy.h"

using namespace mlir;

namespace lathe::cluster {

#define GEN_PASS_DEF_PARTIALLYDECLUSTER
#include "passes/cluster/Passes.h.inc"

namespace {

bool isShapeOp(StringRef op) {
  return op == "Shape" || op == "ShapeN" || op == "Size" || op == "Rank" || op == "VariableShape";
}
bool isHandOn(StringRef op) { return op == "Identity" || op == "IdentityN" || op == "NoOp" || op == "StopGradient"; }

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
    SmallVector<graph::NodeOp> work;
    for (auto node : func.getBody().getOps<graph::NodeOp>())
      if (node->hasAttr(graph::kClusterAttr))
        work.push_back(node);
    // a node that leaves may free those before and behind it
    for (bool changed = true; changed;) {
      changed = false;
      for (graph::NodeOp &node : work) {
        Attribute cluster = node->getAttr(graph::kClusterAttr);
        bool shape = isShapeOp(node.getOp());
        if (!cluster || (!shape && !isHandOn(node.getOp())) || !hosts.contains(node.getOp()))
          continue;
        auto sameCluster = [&](Operation *op) { return op && op->getAttr(graph::kClusterAttr) == cluster; };
        bool takes = llvm::any_of(node->getOperands(), [&](Value v) { return sameCluster(v.getDefiningOp()); });
        bool gives = llvm::any_of(node->getUsers(), sameCluster);
        if (takes || gives)
          continue;
        node->removeAttr(graph::kClusterAttr);
        changed = true;
        ++(shape ? numShapeOps : numHostBound);
        if (explain)
          node.emitRemark("left its cluster: only nodes outside wait for it");
      }
    }
  }

  llvm::StringSet<> hosts;
};
} // namespace

} // namespace lathe::cluster
