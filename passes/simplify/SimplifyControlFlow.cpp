//===- SimplifyControlFlow.cpp - branches and loops that say little ---------===//
//
// Before: if, case and while as written. After: decided branches and loops of
// at most one turn are inlined; loops carry only what changes and is needed.
//
//===----------------------------------------------------------------------===//

#include "passes/simplify/Match.h"
#include "passes/simplify/Passes.h"
#include "passes/simplify/ProvenChecks.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/BitVector.h"

using namespace mlir;
using namespace lathe;

namespace lathe::simplify {
#define GEN_PASS_DEF_HLOSIMPLIFYCONTROLFLOW
#include "passes/simplify/Passes.h.inc"
} // namespace lathe::simplify

namespace {

/// Moves the block's ops before `op` and replaces the op by what the block returns.
void inlineBlock(Block &block, ValueRange args, Operation *op) {
  for (auto [arg, value] : llvm::zip_equal(block.getArguments(), args))
    arg.replaceAllUsesWith(value);
  Operation *end = block.getTerminator();
  SmallVector<Value> results(end->getOperands());
  op->getBlock()->getOperations().splice(op->getIterator(), block.getOperations(), block.begin(), end->getIterator());
  for (auto [old, value] : llvm::zip_equal(op->getResults(), results))
    old.replaceAllUsesWith(value);
  op->erase();
}

bool sameTypes(TypeRange a, TypeRange b) { return llvm::equal(a, b); }

bool inlineBranch(Operation *op) {
  Region *chosen = nullptr;
  if (auto branch = dyn_cast<hlo::IfOp>(op)) {
    std::optional<double> pred = splatNumber(branch.getPred());
    if (!pred)
      return false;
    chosen = *pred ? &branch.getTrueBranch() : &branch.getFalseBranch();
  } else {
    auto select = cast<hlo::CaseOp>(op);
    int64_t count = select.getBranches().size();
    std::optional<double> index = splatNumber(select.getIndex());
    if (count == 1)
      index = 0;
    if (!index)
      return false;
    int64_t i = *index >= 0 && *index < count ? static_cast<int64_t>(*index) : count - 1;
    chosen = &select.getBranches()[i];
  }
  if (!llvm::hasSingleElement(*chosen) ||
      !sameTypes(chosen->front().getTerminator()->getOperandTypes(), op->getResultTypes()))
    return false;
  inlineBlock(chosen->front(), {}, op);
  return true;
}

bool inlineLoop(hlo::WhileOp loop) {
  std::optional<int64_t> count = tripCount(loop);
  if (!count || *count > 1)
    return false;
  // an op with effects in the condition would still have to run
  for (Operation &op : loop.getCond().front().without_terminator())
    if (!isMemoryEffectFree(&op))
      return false;
  if (*count == 0) {
    if (!sameTypes(loop->getOperandTypes(), loop->getResultTypes()))
      return false;
    loop->replaceAllUsesWith(loop->getOperands());
    loop->erase();
    return true;
  }
  Block &body = loop.getBody().front();
  if (!sameTypes(body.getTerminator()->getOperandTypes(), loop->getResultTypes()) ||
      !sameTypes(body.getArgumentTypes(), loop->getOperandTypes()))
    return false;
  inlineBlock(body, loop->getOperands(), loop);
  return true;
}

/// The carried values that matter: wanted outside, read by the condition, or feeding one that is.
SmallVector<bool> liveCarried(hlo::WhileOp loop) {
  Block &cond = loop.getCond().front(), &body = loop.getBody().front();
  unsigned n = loop->getNumOperands();
  SmallVector<bool> live(n, false);
  DenseSet<Operation *> needed;
  SmallVector<Operation *> work;
  auto need = [&](Value v, Block *block, auto &&onArgument) {
    if (auto arg = dyn_cast<BlockArgument>(v)) {
      if (arg.getOwner() == block)
        onArgument(arg.getArgNumber());
      return;
    }
    Operation *def = block->findAncestorOpInBlock(*v.getDefiningOp());
    if (def && needed.insert(def).second)
      work.push_back(def);
  };
  SmallVector<unsigned> fresh;
  auto mark = [&](unsigned i) {
    if (!live[i]) {
      live[i] = true;
      fresh.push_back(i);
    }
  };
  auto drain = [&](Block *block) {
    while (!work.empty())
      work.pop_back_val()->walk([&](Operation *op) {
        for (Value v : op->getOperands())
          need(v, block, mark);
      });
  };
  for (unsigned i = 0; i < n; ++i)
    if (!loop->getResult(i).use_empty())
      mark(i);
  for (Value v : cond.getTerminator()->getOperands())
    need(v, &cond, mark);
  for (Operation &op : cond.without_terminator())
    if (!isMemoryEffectFree(&op) && needed.insert(&op).second)
      work.push_back(&op);
  drain(&cond);
  for (Operation &op : body.without_terminator())
    if (!isMemoryEffectFree(&op) && needed.insert(&op).second)
      work.push_back(&op);
  drain(&body);
  while (!fresh.empty()) {
    unsigned i = fresh.pop_back_val();
    need(body.getTerminator()->getOperand(i), &body, mark);
    drain(&body);
  }
  return live;
}

/// Drops carried values that never change or that nobody needs.
unsigned dropCarried(hlo::WhileOp &loop) {
  Block &cond = loop.getCond().front(), &body = loop.getBody().front();
  unsigned n = loop->getNumOperands();
  Operation *end = body.getTerminator();
  for (unsigned i = 0; i < n; ++i) {
    Value start = loop->getOperand(i);
    if (end->getOperand(i) != body.getArgument(i) || start.getType() != loop->getResult(i).getType() ||
        start.getType() != body.getArgument(i).getType())
      continue;
    cond.getArgument(i).replaceAllUsesWith(start);
    body.getArgument(i).replaceUsesWithIf(start, [&](OpOperand &use) { return use.getOwner() != end; });
    loop->getResult(i).replaceAllUsesWith(start);
  }
  SmallVector<bool> live = liveCarried(loop);
  // a loop of nothing is left to the removal of dead code
  if (llvm::all_of(live, [](bool v) { return v; }) || llvm::none_of(live, [](bool v) { return v; }))
    return 0;
  SmallVector<Value> operands;
  SmallVector<Type> types;
  llvm::BitVector dead(n);
  for (unsigned i = 0; i < n; ++i) {
    if (live[i]) {
      operands.push_back(loop->getOperand(i));
      types.push_back(loop->getResult(i).getType());
    } else {
      dead.set(i);
    }
  }
  // Only dead ops read the dropped arguments: they get the start values until they are removed.
  for (unsigned i = 0; i < n; ++i)
    if (dead[i]) {
      cond.getArgument(i).replaceAllUsesWith(loop->getOperand(i));
      body.getArgument(i).replaceAllUsesWith(loop->getOperand(i));
    }
  end->eraseOperands(dead);
  cond.eraseArguments(dead);
  body.eraseArguments(dead);
  OpBuilder b(loop);
  OperationState state(loop.getLoc(), hlo::WhileOp::getOperationName());
  state.addOperands(operands);
  state.addTypes(types);
  state.addAttributes(loop->getDiscardableAttrDictionary().getValue());
  Region *newCond = state.addRegion(), *newBody = state.addRegion();
  newCond->takeBody(loop.getCond());
  newBody->takeBody(loop.getBody());
  auto made = cast<hlo::WhileOp>(b.create(state));
  unsigned next = 0;
  for (unsigned i = 0; i < n; ++i)
    if (live[i])
      loop->getResult(i).replaceAllUsesWith(made->getResult(next++));
  loop->erase();
  loop = made;
  return dead.count();
}

/// Results of a branch that nobody reads.
unsigned dropResults(Operation *op) {
  llvm::BitVector dead(op->getNumResults());
  for (OpResult result : op->getResults())
    if (result.use_empty())
      dead.set(result.getResultNumber());
  if (dead.none())
    return 0;
  OpBuilder b(op);
  OperationState state(op->getLoc(), op->getName());
  state.addOperands(op->getOperands());
  for (OpResult result : op->getResults())
    if (!dead[result.getResultNumber()])
      state.addTypes(result.getType());
  state.addAttributes(op->getAttrs());
  for (Region &region : op->getRegions()) {
    for (Block &block : region)
      block.getTerminator()->eraseOperands(dead);
    state.addRegion()->takeBody(region);
  }
  Operation *made = b.create(state);
  unsigned next = 0;
  for (OpResult result : op->getResults())
    if (!dead[result.getResultNumber()])
      result.replaceAllUsesWith(made->getResult(next++));
  op->erase();
  return dead.count();
}

struct HloSimplifyControlFlow : simplify::impl::HloSimplifyControlFlowBase<HloSimplifyControlFlow> {
  using Base::Base;

  void runOnOperation() override {
    numProven += dropProvenChecks(getOperation());
    // Outer ops first, so that what is inlined or dropped there reaches the inner ones.
    SmallVector<Operation *> order;
    getOperation()->walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<hlo::WhileOp, hlo::IfOp, hlo::CaseOp>(op))
        order.push_back(op);
    });
    DenseSet<Operation *> gone;
    for (Operation *op : order) {
      if (gone.count(op))
        continue;
      if (isa<hlo::IfOp, hlo::CaseOp>(op)) {
        // the branches not taken go with the op
        SmallVector<Operation *> inner;
        op->walk([&](Operation *nested) {
          if (nested != op)
            inner.push_back(nested);
        });
        Operation *before = op->getPrevNode();
        Block *block = op->getBlock();
        if (inlineBranch(op)) {
          ++numInlined;
          DenseSet<Operation *> alive;
          for (auto it = before ? std::next(before->getIterator()) : block->begin(), e = block->end(); it != e; ++it)
            it->walk([&](Operation *nested) { alive.insert(nested); });
          for (Operation *nested : inner)
            if (!alive.count(nested))
              gone.insert(nested);
        } else if (op->getNumResults()) {
          numDropped += dropResults(op);
        }
        continue;
      }
      auto loop = cast<hlo::WhileOp>(op);
      if (!llvm::hasSingleElement(loop.getCond()) || !llvm::hasSingleElement(loop.getBody()))
        continue;
      numDropped += dropCarried(loop);
      SmallVector<Operation *> condOps;
      loop.getCond().walk([&](Operation *nested) { condOps.push_back(nested); });
      std::optional<int64_t> count = tripCount(loop);
      SmallVector<Operation *> bodyOps;
      if (count && *count == 0)
        loop.getBody().walk([&](Operation *nested) { bodyOps.push_back(nested); });
      if (inlineLoop(loop)) {
        ++numInlined;
        gone.insert(condOps.begin(), condOps.end());
        gone.insert(bodyOps.begin(), bodyOps.end());
      }
    }
  }
};

} // namespace
