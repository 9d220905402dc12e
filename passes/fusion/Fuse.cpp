//===- Fuse.cpp - groups of hlo ops become kernel ops -----------------------===//
//
// Before: hlo on tensors, one op a value. After: kernel ops whose regions hold
// the fused hlo ops, plus constants, views, control flow and bare hlo ops.
//
//===----------------------------------------------------------------------===//

#include "dialects/hlo/Hlo.h"
#include "dialects/kernel/Kernel.h"
#include "passes/fusion/CoreOps.h"
#include "passes/fusion/FusionPlan.h"
#include "passes/fusion/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace lathe;

namespace lathe::fusion {
#define GEN_PASS_DEF_HLOFUSE
#include "passes/fusion/Passes.h.inc"
} // namespace lathe::fusion

namespace {

/// Turns the plan of one block into kernel ops.
class KernelBuilder {
public:
  KernelBuilder(Block &block, FusionPlan &plan) : block(block), plan(plan) {
    for (auto [i, node] : llvm::enumerate(plan.getNodes()))
      index[node.op] = i;
  }

  void run();

private:
  void emitGroup(unsigned g, OpBuilder &b);
  /// Splats and iotas are made again in the region that needs them.
  static Operation *generator(Value v) {
    Operation *op = v.getDefiningOp();
    return op && classify(op) == OpClass::Generator ? op : nullptr;
  }

  static void cloneGenerator(OpBuilder &b, Operation *op, IRMapping &map) {
    for (Value v : op->getOperands())
      if (!map.contains(v))
        b.clone(*v.getDefiningOp(), map);
    b.clone(*op, map);
  }
  /// Where a value of the old block is stored now.
  Value stored(Value v) const { return replaced.lookup_or(v, v); }

  Block &block;
  FusionPlan &plan;
  DenseMap<Operation *, unsigned> index;
  DenseMap<Value, Value> replaced;
};

void KernelBuilder::emitGroup(unsigned g, OpBuilder &b) {
  const FusionGroup &group = plan.getGroups()[g];
  ArrayRef<FusionNode> nodes = plan.getNodes();
  bool core = group.kind == FusionGroup::Kind::Core;
  auto inCore = [&](unsigned m) {
    return core && (m == group.anchor || static_cast<int>(m) == group.resultTranspose);
  };
  auto isInside = [&](Value v) {
    Operation *def = v.getDefiningOp();
    auto it = def ? index.find(def) : index.end();
    return it != index.end() && plan.isMember(it->second, g);
  };

  SetVector<Value> inputs;
  SmallVector<Value> outputs;
  SmallVector<Location> locs;
  bool lone = group.members.size() == 1;
  for (unsigned m : group.members) {
    Operation *op = nodes[m].op;
    locs.push_back(op->getLoc());
    if (!inCore(m))
      for (Value v : op->getOperands())
        // a generator that is a group by itself is cloned as its body
        if (!isInside(v) && !generator(v))
          inputs.insert(v);
    if (plan.isOutput(m, g))
      llvm::append_range(outputs, op->getResults());
  }
  Location loc = lone ? locs.front() : FusedLoc::get(b.getContext(), locs);
  SmallVector<Type> types;
  for (Value v : outputs)
    types.push_back(v.getType());
  SmallVector<Value> operands;
  for (Value v : inputs)
    operands.push_back(stored(v));

  auto fill = [&](OpBuilder &inner, IRMapping &map) {
    for (unsigned m : group.members) {
      if (inCore(m))
        continue;
      for (Value v : nodes[m].op->getOperands())
        if (!map.contains(v))
          if (Operation *made = generator(v))
            cloneGenerator(inner, made, map);
      inner.clone(*nodes[m].op, map);
    }
    SmallVector<Value> values;
    for (Value v : outputs)
      values.push_back(map.lookup(v));
    return values;
  };

  Operation *made;
  if (core) {
    Operation *op = nodes[group.anchor].op;
    CoreOperands read = coreOperands(op, [&](Operation *transpose) {
      auto it = index.find(transpose);
      return it != index.end() && nodes[it->second].absorbed;
    });
    for (Value &v : read.values)
      v = stored(v);
    ArrayRef<int64_t> permutation;
    Value result = op->getResult(0);
    if (group.resultTranspose >= 0) {
      auto transpose = cast<hlo::TransposeOp>(nodes[group.resultTranspose].op);
      permutation = transpose.getPermutation();
      result = transpose.getResult();
    }
    made = buildCoreKernel(b, loc, op, read, permutation, types, operands,
                           [&](OpBuilder &inner, Value value, ValueRange extras) {
                             IRMapping map;
                             map.map(result, value);
                             map.map(inputs.getArrayRef(), extras);
                             return fill(inner, map);
                           });
  } else {
    auto body = [&](OpBuilder &inner, Location, ValueRange args) {
      IRMapping map;
      map.map(inputs.getArrayRef(), args);
      return fill(inner, map);
    };
    if (group.kind == FusionGroup::Kind::Loop)
      made = kernel::LoopOp::create(b, loc, types, operands, body);
    else if (group.kind == FusionGroup::Kind::Reduce)
      made = kernel::ReduceOp::create(b, loc, types, operands, body);
    else
      made = kernel::RowsOp::create(b, loc, types, operands, body);
  }
  for (auto [value, result] : llvm::zip_equal(outputs, made->getResults()))
    replaced[value] = result;
}

void KernelBuilder::run() {
  Operation *end = block.getTerminator();
  OpBuilder b(end);
  auto update = [&](Operation *op) {
    op->walk([&](Operation *inner) {
      for (OpOperand &operand : inner->getOpOperands())
        if (auto it = replaced.find(operand.get()); it != replaced.end())
          operand.set(it->second);
    });
  };
  for (const FusionPlan::Step &step : plan.order()) {
    if (step.group >= 0) {
      emitGroup(step.group, b);
      continue;
    }
    Operation *op = plan.getNodes()[step.node].op;
    op->moveBefore(end);
    const FusionNode &node = plan.getNodes()[step.node];
    if (node.copies.empty() && !node.absorbed)
      update(op);
  }
  update(end);
  for (const FusionNode &node : llvm::reverse(plan.getNodes())) {
    bool ours = node.group >= 0 || !node.copies.empty() || node.absorbed || isElemental(node.cls) ||
                node.cls == OpClass::Constant || node.cls == OpClass::View;
    if (ours && node.op->use_empty())
      node.op->erase();
  }
}

struct HloFuse : lathe::fusion::impl::HloFuseBase<HloFuse> {
  using Base::Base;

  void runOnOperation() override {
    // Regions of control flow are blocks like the function's own; those of reductions and sorts belong to their op.
    SmallVector<Block *> work;
    for (auto func : getOperation().getOps<func::FuncOp>())
      for (Block &block : func.getBody())
        work.push_back(&block);
    while (!work.empty()) {
      Block *block = work.pop_back_val();
      for (Operation &op : *block)
        if (isa<hlo::WhileOp, hlo::IfOp, hlo::CaseOp>(op))
          for (Region &region : op.getRegions())
            for (Block &inner : region)
              work.push_back(&inner);
      runOnBlock(*block);
    }
  }

  void runOnBlock(Block &block) {
    if (block.empty() || !block.back().hasTrait<OpTrait::IsTerminator>())
      return;
    // the plan has no place for values that nobody reads
    for (Operation *op = block.getTerminator()->getPrevNode(); op;) {
      Operation *before = op->getPrevNode();
      if (isOpTriviallyDead(op))
        op->erase();
      op = before;
    }
    FusionLimits limits;
    limits.fuse = fuse;
    limits.maxOps = std::max(1u, static_cast<unsigned>(maxOps));
    FusionPlan plan(block, limits);
    count(plan);
    KernelBuilder(block, plan).run();
  }

  void count(const FusionPlan &plan) {
    for (const FusionGroup &group : plan.getGroups()) {
      if (group.dead)
        continue;
      if (group.members.size() > 1)
        numFused += group.members.size();
      switch (group.kind) {
      case FusionGroup::Kind::Loop:
        ++numLoops;
        break;
      case FusionGroup::Kind::Reduce:
        ++numReduces;
        break;
      case FusionGroup::Kind::Rows:
        ++numRows;
        break;
      case FusionGroup::Kind::Core:
        ++numCores;
        break;
      }
    }
    for (const FusionNode &node : plan.getNodes()) {
      if (node.cls == OpClass::Opaque && !isa<hlo::WhileOp, hlo::IfOp, hlo::CaseOp>(node.op) &&
          !kernel::isKernelOp(node.op))
        ++numBare;
      // a reason met on the way counts only if the op went its own way in the end
      if (node.refusal == Refusal::None || (node.group < 0 && !node.copies.empty()))
        continue;
      countRefusal(node.refusal);
      if (explain)
        node.op->emitRemark() << "not fused with its consumer: " << describe(node.refusal);
    }
  }

  void countRefusal(Refusal refusal) {
    switch (refusal) {
    case Refusal::None:
      break;
    case Refusal::TooManyOps:
      ++refusedTooManyOps;
      break;
    case Refusal::Replicated:
      ++refusedReplicated;
      break;
    case Refusal::Strided:
      ++refusedStrided;
      break;
    case Refusal::CoreOperand:
      ++refusedCoreOperand;
      break;
    case Refusal::OtherShape:
      ++refusedOtherShape;
      break;
    case Refusal::NotElemental:
      ++refusedNotElemental;
      break;
    case Refusal::NeededElsewhere:
      ++refusedNeededElsewhere;
      break;
    case Refusal::Cycle:
      ++refusedCycle;
      break;
    }
  }
};

} // namespace
