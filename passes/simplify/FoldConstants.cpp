//===- FoldConstants.cpp - evaluates ops whose operands are constants -------===//
//
// Before and after: hlo. Ops are visited in order. One whose operands all come
// from constants is either replaced by its value or, when that would be much
// larger than what it is made of (a broadcast, an iota), remembered: consumers
// that make something small of it are evaluated through it.
//
//===----------------------------------------------------------------------===//

#include "passes/simplify/Match.h"
#include "passes/simplify/Passes.h"

#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Evaluator.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace lathe;

namespace lathe::simplify {
#define GEN_PASS_DEF_HLOFOLDCONSTANTS
#include "passes/simplify/Passes.h.inc"
} // namespace lathe::simplify

namespace {

/// Results up to this size are stored whatever they are made of.
constexpr int64_t smallBytes = 4096;
/// Unstored ops between constants and an op that is evaluated.
constexpr unsigned maxChain = 24;
/// Tensors that only exist during folding (unstored ops, expanded splats) are at most this large.
constexpr int64_t maxTemporary = int64_t(1) << 28;

int64_t storedBytes(RankedTensorType type) {
  if (!type.hasStaticShape())
    return -1;
  DType dtype = hlo::toDType(type.getElementType());
  int64_t size = dtypeSize(dtype), count = 1;
  for (int64_t d : type.getShape())
    if (__builtin_mul_overflow(count, d, &count))
      return -1;
  if (size == 0 || __builtin_mul_overflow(count, size, &count))
    return -1;
  return count;
}

bool isWidening(Operation *op) {
  auto convert = dyn_cast<hlo::ConvertOp>(op);
  return convert && hlo::elementType(convert.getOperand()).isF16() && hlo::elementType(convert.getResult()).isF32();
}

/// Only read, perhaps after moves, as the weights of one product: unfolded they could not be packed.
bool becomesWeights(Operation *op) {
  while (op->getNumResults() == 1 && op->hasOneUse()) {
    OpOperand &use = *op->use_begin();
    op = use.getOwner();
    if (isa<hlo::ConvolutionOp, hlo::DotGeneralOp>(op))
      return use.getOperandNumber() == 1;
    if (!isa<hlo::ConcatenateOp, hlo::PadOp, hlo::ReshapeOp, hlo::TransposeOp>(op))
      return false;
  }
  return false;
}

struct HloFoldConstants : simplify::impl::HloFoldConstantsBase<HloFoldConstants> {
  using Base::Base;

  /// What is known about an op that was not replaced although its value is known.
  struct Pending {
    int64_t leafBytes, work;
    unsigned chain;
  };
  DenseMap<Operation *, Pending> pending;
  int64_t left = 0, operationsLeft = 0;

  void runOnOperation() override {
    pending.clear();
    left = budget;
    operationsLeft = operations;
    // Bodies of reductions belong to their op; constants inside them stay.
    SmallVector<Operation *> order;
    getOperation()->walk<WalkOrder::PreOrder>([&](Operation *op) {
      order.push_back(op);
      bool descend = isa<ModuleOp, hlo::WhileOp, hlo::IfOp, hlo::CaseOp>(op) || !isa<hlo::HloDialect>(op->getDialect());
      return descend ? WalkResult::advance() : WalkResult::skip();
    });
    SmallVector<Operation *> dead;
    for (Operation *op : order)
      if (visit(op))
        dead.push_back(op);
    for (Operation *op : llvm::reverse(dead))
      if (op->use_empty())
        op->erase();
    // what only the folded ops used
    for (Operation *op : llvm::reverse(order))
      if (pending.count(op) && op->use_empty())
        op->erase();
    pending.clear();
  }

  /// Folds the op if it can; true when its results are no longer used.
  bool visit(Operation *op) {
    if (!isa<hlo::HloDialect>(op->getDialect()) || op->getNumResults() == 0 || isa<hlo::ConstantOp>(op) ||
        isa<hlo::WhileOp, hlo::IfOp, hlo::CaseOp, hlo::OptimizationBarrierOp, hlo::CustomCallOp>(op) ||
        op->hasTrait<OpTrait::IsTerminator>() || !isMemoryEffectFree(op))
      return false;
    if (op->getDialect()->getNamespace() == "hlo" && op->getName().stripDialect().starts_with("rng"))
      return false;
    int64_t leafBytes = 0, work = 0;
    unsigned chain = 1;
    bool splats = true, huge = false;
    for (Value v : op->getOperands()) {
      Operation *def = v.getDefiningOp();
      if (!def)
        return false;
      splats &= isSplatConstant(v);
      int64_t size = storedBytes(cast<RankedTensorType>(v.getType()));
      if (size < 0)
        return false;
      work += size;
      huge |= isSplatConstant(v) && size > maxTemporary;
      if (isa<hlo::ConstantOp>(def)) {
        leafBytes += isSplatConstant(v) ? 8 : size;
        continue;
      }
      auto it = pending.find(def);
      if (it == pending.end())
        return false;
      leafBytes += it->second.leafBytes;
      chain += it->second.chain;
      work += it->second.work;
    }
    if (op->getNumRegions()) {
      SetVector<Value> captured;
      getUsedValuesDefinedAbove(op->getRegions(), captured);
      if (!captured.empty())
        return false;
    }
    int64_t resultBytes = 0;
    for (Type t : op->getResultTypes()) {
      int64_t size = storedBytes(cast<RankedTensorType>(t));
      if (size < 0)
        return false;
      resultBytes += size;
    }
    work += resultBytes;
    if (splats && op->hasTrait<hlo::HloElementwise>() && foldSplat(op)) {
      ++numSplats;
      return true;
    }
    if (huge || (op->getNumOperands() == 0 && !isa<hlo::IotaOp>(op)))
      return false;
    // products cost more than they read
    if (isa<hlo::DotGeneralOp, hlo::DotOp, hlo::ConvolutionOp, hlo::ReduceWindowOp>(op)) {
      int64_t factor = isa<hlo::ReduceWindowOp>(op) ? 64 : 4096;
      if (__builtin_mul_overflow(work, factor, &work))
        return false;
    }
    bool grows = resultBytes > smallBytes && resultBytes > leafBytes + leafBytes / 4;
    // filters of transposed convolutions are padded to a common size
    if (grows && isa<hlo::PadOp, hlo::ConcatenateOp>(op) && resultBytes <= 4 * leafBytes && becomesWeights(op))
      grows = false;
    // each run would widen them, and they are no constants to packing and to quantization
    if (grows && widen && isWidening(op) && becomesWeights(op))
      grows = false;
    if (grows) {
      if (chain < maxChain && resultBytes <= maxTemporary && op->getNumResults() == 1)
        pending[op] = {leafBytes, work, chain};
      else
        ++refusedGrowth;
      return false;
    }
    if (resultBytes > left || work > operationsLeft) {
      ++refusedBudget;
      return false;
    }
    SmallVector<Tensor> values;
    if (!evaluate(op, values))
      return false;
    left -= resultBytes;
    operationsLeft -= work;
    bytesMade += resultBytes;
    ++numFolded;
    OpBuilder b(op);
    for (auto [result, tensor] : llvm::zip_equal(op->getResults(), values)) {
      Value made = hlo::makeConstant(b, op->getLoc(), tensor);
      if (!made || made.getType() != result.getType())
        return false;
      result.replaceAllUsesWith(made);
    }
    return true;
  }

  static bool isSplatConstant(Value v) {
    auto dense = dyn_cast_or_null<DenseElementsAttr>(constantValue(v));
    return dense && !dense.empty() && dense.isSplat();
  }

  /// An elementwise op on splats, computed once.
  bool foldSplat(Operation *op) {
    OpBuilder b(op);
    SmallVector<Tensor> scalars;
    for (Value v : op->getOperands()) {
      auto dense = cast<DenseElementsAttr>(constantValue(v));
      auto scalar = RankedTensorType::get({}, dense.getElementType());
      FailureOr<Tensor> tensor = hlo::readConstant(cast<ElementsAttr>(Attribute(dense.resizeSplat(scalar))));
      if (failed(tensor))
        return false;
      scalars.push_back(*tensor);
    }
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    // the evaluator reads the shape from the op, so it gets one of rank 0
    SmallVector<Value> operands;
    SmallVector<Operation *> temporary;
    for (Tensor &t : scalars) {
      operands.push_back(hlo::makeConstant(b, op->getLoc(), t));
      temporary.push_back(operands.back().getDefiningOp());
    }
    Operation *small = rebuild(b, op, operands, RankedTensorType::get({}, type.getElementType()));
    FailureOr<SmallVector<Tensor>> results = hlo::evaluateOp(small, scalars);
    small->erase();
    for (Operation *t : temporary)
      t->erase();
    if (failed(results))
      return false;
    auto element = dyn_cast_or_null<DenseElementsAttr>(Attribute(hlo::makeElements(op->getContext(), results->front())));
    if (!element || element.empty())
      return false;
    auto made = hlo::ConstantOp::create(b, op->getLoc(), type, element.resizeSplat(type));
    op->getResult(0).replaceAllUsesWith(made);
    return true;
  }

  /// Evaluates the op and the pending ones it is made of.
  bool evaluate(Operation *op, SmallVector<Tensor> &values) {
    DenseMap<Value, Tensor> known;
    SmallVector<std::pair<Operation *, bool>> work = {{op, false}};
    while (!work.empty()) {
      auto [current, ready] = work.pop_back_val();
      if (current != op && known.count(current->getResult(0)))
        continue;
      if (auto constant = dyn_cast<hlo::ConstantOp>(current)) {
        FailureOr<Tensor> tensor = hlo::readConstant(constant.getValue());
        if (failed(tensor))
          return false;
        known[constant.getResult()] = *tensor;
        continue;
      }
      if (!ready) {
        work.push_back({current, true});
        for (Value v : current->getOperands())
          work.push_back({v.getDefiningOp(), false});
        continue;
      }
      SmallVector<Tensor> operands;
      for (Value v : current->getOperands())
        operands.push_back(known.lookup(v));
      FailureOr<SmallVector<Tensor>> results = hlo::evaluateOp(current, operands);
      if (failed(results))
        return false;
      if (current == op) {
        values = std::move(*results);
        return true;
      }
      for (auto [value, tensor] : llvm::zip_equal(current->getResults(), *results))
        known[value] = tensor;
    }
    return false;
  }
};

} // namespace
