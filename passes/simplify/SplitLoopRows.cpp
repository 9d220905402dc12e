//===- SplitLoopRows.cpp - recurrent loops, some sequences a thread ---------===//
//
// The kernels of a recurrent step are short: threads that share each of them
// meet thousands of times a second. Before: one loop over a batch. After: a loop
// for each thread's share of the batch, which meet once, at their end.
//
//   %r = while(%i, %h[8x128])        %a = while(%i, slice %h[0:4])  {hlo.one_thread}
//                                    %b = while(%i, slice %h[4:8])  {hlo.one_thread}
//                                    %r = concatenate %a, %b
//
//===----------------------------------------------------------------------===//

#include "dialects/hlo/Constants.h"
#include "passes/simplify/Match.h"
#include "passes/simplify/Passes.h"
#include "passes/simplify/Rowwise.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace lathe;

namespace lathe::simplify {
#define GEN_PASS_DEF_HLOSPLITLOOPROWS
#include "passes/simplify/Passes.h.inc"
} // namespace lathe::simplify

namespace {

using simplify::HloSplitLoopRowsOptions;

/// Turns of a loop that are not known.
constexpr int64_t unknownTurns = 8;
/// What is gained must be worth the larger code: this share of a step.
constexpr double leastGain = 0.04;

/// How far back from the loop what is made for it is looked for.
constexpr unsigned maxDepth = 12;
/// More loops than this only make code.
constexpr int64_t maxSides = 64;

RankedTensorType typeOf(Value v) { return cast<RankedTensorType>(v.getType()); }

/// A thread's rows.
struct Share {
  int64_t from, to, sides;
  int64_t rows() const { return to - from; }
};

/// One loop, whose values are rows of a batch along a dimension each or the same for all rows.
class Splitter {
public:
  Splitter(hlo::WhileOp loop, const HloSplitLoopRowsOptions &core)
      : loop(loop), threads(std::min(core.threads, maxSides)), core(core), b(loop) {}
  bool run();

private:
  bool isInside(Value v) const { return loop->isAncestor(v.getParentRegion()->getParentOp()); }
  bool isPlain();
  bool place(Value v, int64_t dim);
  bool placeOperands(Operation *op, int64_t resultDim);
  bool follow(Value v);
  bool isConsistent();
  bool pays();
  bool isForLoop(Value v, unsigned depth = 0);
  bool isMadeFor(Value v, Share share);
  Value shareOf(Value v, int64_t dim, Share share, unsigned depth = 0);
  hlo::WhileOp makeSide(Share share);
  void cloneBlock(Block &from, Block &to, IRMapping &map, Share share);

  hlo::WhileOp loop;
  const int64_t threads;
  const HloSplitLoopRowsOptions &core; ///< what a core does in a cycle
  OpBuilder b;
  int64_t batch = 0;
  llvm::DenseMap<Value, int64_t> dimOf; ///< of values inside: along which dimension their rows lie
  SmallVector<Value> worklist;
  llvm::DenseSet<Operation *> placed;  ///< ops whose operands and results have been placed
  llvm::DenseMap<Value, bool> forLoop; ///< what isForLoop found
  llvm::DenseMap<std::pair<Value, int64_t>, Value> shares; ///< of one side, of values outside
};

/// Known sizes, no effects, no other control flow: what sides may do beside each other.
bool Splitter::isPlain() {
  for (Type t : loop->getResultTypes())
    if (!cast<RankedTensorType>(t).hasStaticShape())
      return false;
  for (Region *region : {&loop.getCond(), &loop.getBody()}) {
    if (!region->hasOneBlock())
      return false;
    for (Operation &op : region->front().without_terminator()) {
      if (isa<hlo::WhileOp, hlo::IfOp, hlo::CaseOp>(op) || !isMemoryEffectFree(&op) ||
          op.getNumResults() == 0)
        return false;
      for (Type t : op.getResultTypes())
        if (!cast<RankedTensorType>(t).hasStaticShape())
          return false;
    }
  }
  return true;
}

/// The rows of `v` lie along `dim`: false where it is known otherwise.
bool Splitter::place(Value v, int64_t dim) {
  if (!isInside(v))
    return true; // sliced where it is read
  if (typeOf(v).getDimSize(dim) != batch)
    return false;
  auto [it, isNew] = dimOf.try_emplace(v, dim);
  if (isNew)
    worklist.push_back(v);
  return it->second == dim;
}

bool Splitter::placeOperands(Operation *op, int64_t resultDim) {
  if (!placed.insert(op).second)
    return dimOf.lookup(op->getResult(0)) == resultDim;
  std::optional<SmallVector<int64_t>> dims = operandRows(op, resultDim);
  if (!dims)
    return false;
  for (auto [v, dim] : llvm::zip(op->getOperands(), *dims))
    if (dim >= 0 && !place(v, dim))
      return false;
  return llvm::all_of(op->getResults(), [&](Value r) { return place(r, resultDim); });
}

/// Places what `v`'s rows decide about others: what it is made of, what is made of it, the same value in
/// other turns.
bool Splitter::follow(Value v) {
  const int64_t dim = dimOf.lookup(v);
  if (Operation *op = v.getDefiningOp()) {
    if (!placeOperands(op, dim))
      return false;
  } else {
    const unsigned i = cast<BlockArgument>(v).getArgNumber();
    if (v.getParentRegion() != &loop.getCond() && v.getParentRegion() != &loop.getBody())
      return false;
    if (!place(loop.getCond().getArgument(i), dim) || !place(loop.getBody().getArgument(i), dim) ||
        !place(loop.getBody().front().getTerminator()->getOperand(i), dim) ||
        !isInside(loop.getBody().front().getTerminator()->getOperand(i)))
      return false;
  }
  for (OpOperand &use : v.getUses()) {
    Operation *user = use.getOwner();
    if (isa<hlo::ReturnOp>(user)) {
      // the decision must not depend on rows, nor what is returned of a region inside
      if (user->getParentRegion() != &loop.getBody() ||
          !place(loop.getBody().getArgument(use.getOperandNumber()), dim))
        return false;
      continue;
    }
    if (user->getParentOp() != loop)
      return false;
    std::optional<int64_t> result = resultRows(user, use.getOperandNumber(), dim);
    if (!result || !placeOperands(user, *result))
      return false;
  }
  return true;
}

/// After everything has been followed: operands that an op wants whole are whole.
bool Splitter::isConsistent() {
  for (Region *region : {&loop.getCond(), &loop.getBody()})
    for (Operation &op : region->front().without_terminator()) {
      auto it = dimOf.find(op.getResult(0));
      if (it == dimOf.end())
        continue; // its operands are whole, or it would have been reached from them
      std::optional<SmallVector<int64_t>> dims = operandRows(&op, it->second);
      for (auto [v, dim] : llvm::zip(op.getOperands(), *dims))
        if (dim < 0 && dimOf.contains(v))
          return false;
    }
  return true;
}

/// Cycles of a turn with threads that share each product, and with a loop each.
bool Splitter::pays() {
  const double sides = std::min(threads, batch), largest = double((batch + threads - 1) / threads) / batch;
  double together = 0, apart = 0, weights = 0, split = 0;
  for (Operation &op : loop.getBody().front().without_terminator()) {
    const bool rows = dimOf.contains(op.getResult(0));
    double cycles = 0;
    if (auto dot = dyn_cast<hlo::DotGeneralOp>(op)) {
      RankedTensorType lhs = typeOf(dot.getLhs());
      double depth = 1;
      for (int64_t d : dot.getDotDimensionNumbers().getLhsContractingDimensions())
        depth *= lhs.getDimSize(d);
      cycles = depth * typeOf(dot).getNumElements() / core.multiplyAdds;
      for (Value v : dot->getOperands())
        if (!dimOf.contains(v) && !isInside(v))
          weights += static_cast<double>(bytesOf(v.getType()));
      split += rows ? cycles : 0;
    } else if (isa<hlo::ConvolutionOp>(op)) {
      return false; // long enough to be shared by all
    } else if (op.hasTrait<hlo::HloElementwise>()) {
      cycles = typeOf(op.getResult(0)).getNumElements() * core.elementCycles / 4; // about one in four is costly
    }
    const double shared = cycles / threads + core.meeting;
    together += isa<hlo::DotGeneralOp>(op) ? std::min(shared, cycles) : cycles;
    apart += rows ? cycles * largest : cycles;
  }
  apart = std::max(apart, weights / (weights <= static_cast<double>(core.cache) ? core.keptBytes : core.fetchedBytes));
  const double saved = together - apart;
  return sides > 1 && split > 0 && saved > leastGain * together &&
         saved * static_cast<double>(tripCount(loop).value_or(unknownTurns)) > 2 * core.meeting;
}

/// Whether nothing but the loop needs `v`, directly or through ops like its own.
bool Splitter::isForLoop(Value v, unsigned depth) {
  if (depth >= maxDepth)
    return false;
  if (auto known = forLoop.find(v); known != forLoop.end())
    return known->second;
  const bool is = llvm::all_of(v.getUsers(), [&](Operation *user) {
    if (loop->isAncestor(user))
      return true;
    return user->getBlock() == loop->getBlock() && user->getNumResults() == 1 && user->getNumRegions() == 0 &&
           isForLoop(user->getResult(0), depth + 1);
  });
  forLoop[v] = is;
  return is;
}

/// Whether each side should make its share of `v` itself: unequal shares of long products had better be
/// spread.
bool Splitter::isMadeFor(Value v, Share share) {
  return batch % share.sides == 0 && v.getDefiningOp() && isForLoop(v);
}

/// The share of `v`'s rows, where position p along `dim` belongs to row p % batch. What is made for the loop
/// alone is made from shares itself, so that it lies in the cache of the thread that reads it; of the rest it
/// is a slice.
Value Splitter::shareOf(Value v, int64_t dim, Share share, unsigned depth) {
  if (Value known = shares.lookup({v, dim}))
    return known;
  Operation *op = v.getDefiningOp();
  if (op && depth < maxDepth && op->getNumResults() == 1 && op->getNumRegions() == 0 &&
      isMemoryEffectFree(op) && !isa<hlo::ConstantOp>(op) &&
      (isa<hlo::BroadcastInDimOp>(op) || isMadeFor(v, share))) {
    auto reshape = dyn_cast<hlo::ReshapeOp>(op);
    std::optional<SmallVector<int64_t>> dims = operandRows(op, dim);
    if (reshape && !dims)
      if (std::optional<int64_t> from = dimOfRows(typeOf(v), typeOf(reshape.getOperand()), dim, batch))
        dims = SmallVector<int64_t>{*from};
    if (dims) {
      SmallVector<Value> operands;
      for (auto [operand, from] : llvm::zip(op->getOperands(), *dims))
        operands.push_back(from < 0 ? operand : shareOf(operand, from, share, depth + 1));
      Operation *made = b.clone(*op);
      made->setOperands(operands);
      narrowRows(made, dim, typeOf(v).getDimSize(dim) / batch * share.rows());
      return shares[{v, dim}] = made->getResult(0);
    }
  }
  SmallVector<int64_t> sizes(typeOf(v).getShape());
  const int64_t outer = sizes[dim] / batch;
  Location loc = v.getLoc();
  int64_t at = dim;
  if (outer > 1) {
    sizes[dim] = batch;
    sizes.insert(sizes.begin() + at++, outer);
    v = hlo::ReshapeOp::create(b, loc, v, sizes);
  }
  SmallVector<int64_t> starts(sizes.size(), 0), strides(sizes.size(), 1);
  starts[at] = share.from;
  sizes[at] = share.to;
  Value made = hlo::SliceOp::create(b, loc, v, starts, sizes, strides);
  if (outer > 1) {
    sizes.erase(sizes.begin() + at);
    sizes[dim] = outer * share.rows();
    made = hlo::ReshapeOp::create(b, loc, made, sizes);
  }
  return shares[{v, dim}] = made;
}

void Splitter::cloneBlock(Block &from, Block &to, IRMapping &map, Share share) {
  for (Operation &op : from) {
    b.setInsertionPoint(loop);
    auto it = op.getNumResults() ? dimOf.find(op.getResult(0)) : dimOf.end();
    SmallVector<Value> operands;
    if (it != dimOf.end()) {
      std::optional<SmallVector<int64_t>> dims = operandRows(&op, it->second);
      // a slice reads its rows where they are, unless they are made for the loop
      const bool inPlace =
          isa<hlo::DynamicSliceOp>(op) && !isInside(op.getOperand(0)) && !isMadeFor(op.getOperand(0), share);
      for (auto [v, dim] : llvm::zip(op.getOperands(), *dims))
        operands.push_back(dim < 0 || isInside(v) || inPlace ? map.lookupOrDefault(v)
                                                             : shareOf(v, dim, share));
      if (inPlace) {
        Value &start = operands[1 + it->second];
        start = hlo::makeSplat(b, op.getLoc(), share.from, typeOf(start));
      }
    }
    b.setInsertionPointToEnd(&to);
    Operation *made = b.clone(op, map);
    if (it == dimOf.end())
      continue;
    made->setOperands(operands);
    narrowRows(made, it->second, share.rows());
    map.map(op.getResults(), made->getResults());
  }
}

hlo::WhileOp Splitter::makeSide(Share share) {
  shares.clear();
  b.setInsertionPoint(loop);
  OperationState state(loop.getLoc(), hlo::WhileOp::getOperationName());
  SmallVector<Value> start;
  Block &body = loop.getBody().front();
  for (auto [v, arg] : llvm::zip(loop->getOperands(), body.getArguments())) {
    auto it = dimOf.find(arg);
    start.push_back(it == dimOf.end() ? v : shareOf(v, it->second, share));
  }
  state.addOperands(start);
  state.addTypes(ValueRange(start).getTypes());
  state.addAttribute(hlo::oneThreadAttr, b.getUnitAttr());
  for (Block *block : {&loop.getCond().front(), &body}) {
    SmallVector<Location> locs;
    for (BlockArgument arg : block->getArguments())
      locs.push_back(arg.getLoc());
    Block *made = b.createBlock(state.addRegion(), {}, ValueRange(start).getTypes(), locs);
    IRMapping map;
    map.map(block->getArguments(), made->getArguments());
    cloneBlock(*block, *made, map, share);
  }
  b.setInsertionPoint(loop);
  return cast<hlo::WhileOp>(b.create(state));
}

bool Splitter::run() {
  if (!isPlain())
    return false;
  // from the longest product whose rows come from the turn before
  hlo::DotGeneralOp longest;
  for (auto dot : loop.getBody().front().getOps<hlo::DotGeneralOp>())
    if (isInside(dot.getLhs()) && dot.getDotDimensionNumbers().getLhsBatchingDimensions().empty() &&
        typeOf(dot.getLhs()).getRank() == 2 && typeOf(dot).getRank() == 2 &&
        (!longest || typeOf(dot).getNumElements() > typeOf(longest).getNumElements()))
      longest = dot;
  if (!longest || (batch = typeOf(longest).getDimSize(0)) < 2 || !place(longest, 0))
    return false;
  while (!worklist.empty())
    if (!follow(worklist.pop_back_val()))
      return false;
  if (!isConsistent() || !pays())
    return false;

  SmallVector<SmallVector<Value>> parts(loop->getNumResults());
  const int64_t sides = std::min(threads, batch);
  for (int64_t k = 0; k < sides; ++k) {
    hlo::WhileOp side = makeSide({batch * k / sides, batch * (k + 1) / sides, sides});
    for (auto [list, v] : llvm::zip(parts, side.getResults()))
      list.push_back(v);
  }
  for (auto [i, v] : llvm::enumerate(loop->getResults())) {
    auto it = dimOf.find(loop.getBody().getArgument(i));
    v.replaceAllUsesWith(
        it == dimOf.end() ? parts[i].front()
                          : hlo::ConcatenateOp::create(b, loop.getLoc(), parts[i], it->second).getResult());
  }
  loop->erase();
  return true;
}

struct SplitLoopRows : simplify::impl::HloSplitLoopRowsBase<SplitLoopRows> {
  using HloSplitLoopRowsBase::HloSplitLoopRowsBase;
  void runOnOperation() override {
    if (threads < 2)
      return;
    const HloSplitLoopRowsOptions core{threads, multiplyAdds, cache, meeting, elementCycles, keptBytes, fetchedBytes};
    SmallVector<hlo::WhileOp> loops;
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (!func.isDeclaration())
        llvm::append_range(loops, func.getBody().front().getOps<hlo::WhileOp>());
    for (hlo::WhileOp loop : loops)
      numSplit += Splitter(loop, core).run();
  }
};

} // namespace
