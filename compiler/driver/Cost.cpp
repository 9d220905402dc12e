#include "compiler/driver/Cost.h"

#include "dialects/hlo/Hlo.h"
#include "dialects/kernel/Kernel.h"
#include "passes/simplify/Match.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;

namespace lathe {

static int64_t dimOf(RankedTensorType t, int64_t i) { return t.isDynamicDim(i) ? 1 : t.getDimSize(i); }

static int64_t elements(Type type) {
  auto t = dyn_cast<RankedTensorType>(type);
  int64_t n = 1;
  for (int64_t i = 0; t && i < t.getRank(); ++i)
    n *= dimOf(t, i);
  return n;
}

static int64_t bytes(Type type) { return isa<RankedTensorType>(type) ? bytesOf(type) : 0; }

/// Operations of an elementwise op on one element: those of the code that the f32 functions become (a multiply-add is two,
/// bits and permutations none), one for any other.
static int64_t elementFlops(Operation &op) {
  Type elem = getElementTypeOrSelf(op.getResult(0).getType());
  if (!elem.isF32() && !elem.isF16() && !elem.isBF16())
    return 1;
  return llvm::TypeSwitch<Operation *, int64_t>(&op)
      .Case<hlo::ExpOp>([](auto) { return 15; })
      .Case<hlo::TanhOp>([](auto) { return 16; })
      .Case<hlo::ErfOp>([](auto) { return 19; })
      .Case<hlo::LogisticOp>([](auto) { return 23; })
      .Case<hlo::Expm1Op>([](auto) { return 24; })
      .Case<hlo::LogOp>([](auto) { return 30; })
      .Case<hlo::Log1pOp>([](auto) { return 36; })
      .Default([](auto) { return 1; });
}

/// Operations of what a region computes beside its core.
static int64_t regionFlops(Operation *op) {
  int64_t n = 0;
  for (Region &region : op->getRegions())
    for (Block &block : region)
      for (Operation &inner : block) {
        if (inner.hasTrait<OpTrait::IsTerminator>() || isa<hlo::ConstantOp, hlo::BroadcastInDimOp, hlo::ReshapeOp>(inner))
          continue;
        if (isa<hlo::ReduceOp>(inner))
          n += elements(inner.getOperand(0).getType());
        else if (inner.getNumResults())
          n += elements(inner.getResult(0).getType()) * elementFlops(inner);
      }
  return n;
}

Cost operationCost(Operation *op) {
  Cost c;
  for (Value v : op->getOperands())
    c.bytes += bytes(v.getType());
  for (Value v : op->getResults())
    c.bytes += bytes(v.getType());
  if (auto dot = dyn_cast<kernel::DotOp>(op)) {
    auto lhs = cast<RankedTensorType>(dot.getLhs().getType());
    int64_t k = dimOf(lhs, dot.getLhsDims().back());
    c.flops = 2 * elements(dot.getAccType()) * k + regionFlops(op);
  } else if (isa<kernel::ConvOp, kernel::DepthwiseConvOp>(op)) {
    auto filter = cast<RankedTensorType>(op->getOperand(1).getType());
    RankedTensorType acc = isa<kernel::ConvOp>(op) ? cast<kernel::ConvOp>(op).getAccType()
                                                   : cast<kernel::DepthwiseConvOp>(op).getAccType();
    int64_t oc = std::max<int64_t>(1, dimOf(acc, acc.getRank() - 1));
    c.flops = 2 * elements(acc) * (elements(filter) / oc) + regionFlops(op);
  } else if (auto pool = dyn_cast<kernel::PoolOp>(op)) {
    int64_t window = 1;
    for (int64_t w : pool.getWindow())
      window *= w;
    c.flops = elements(pool.getAccType()) * window + regionFlops(op);
  } else if (isa<hlo::DotGeneralOp>(op)) {
    int64_t l = elements(op->getOperand(0).getType()), r = elements(op->getOperand(1).getType()),
            o = std::max<int64_t>(1, elements(op->getResult(0).getType()));
    // l * r * o = (batch^3) (m n k)^2; without the batch this is exact
    c.flops = int64_t(2 * std::sqrt(double(l) * double(r) * double(o)));
  } else {
    c.flops = op->getNumRegions() ? regionFlops(op) : op->getNumResults() ? elements(op->getResult(0).getType()) * elementFlops(*op) : 0;
  }
  return c;
}

std::vector<OpCost> moduleCosts(ModuleOp module) {
  std::vector<OpCost> all;
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    bool kernel = isa_and_nonnull<kernel::KernelDialect>(op->getDialect());
    bool bare = isa_and_nonnull<hlo::HloDialect>(op->getDialect());
    if (bare && (isa<hlo::ConstantOp, hlo::ReshapeOp, hlo::WhileOp, hlo::IfOp, hlo::CaseOp>(op) ||
                 op->hasTrait<OpTrait::IsTerminator>()))
      return WalkResult::advance();
    if (!kernel && !bare)
      return WalkResult::advance();
    all.push_back({op, operationCost(op)});
    return WalkResult::skip(); // what the region does is counted
  });
  return all;
}

void annotateCosts(ModuleOp module) {
  for (const OpCost &c : moduleCosts(module)) {
    SmallVector<Value> values(c.op->getOperands());
    llvm::append_range(values, c.op->getResults());
    if (llvm::any_of(values, [](Value v) {
          auto t = dyn_cast<RankedTensorType>(v.getType());
          return !t || !t.hasStaticShape();
        }))
      continue;
    int64_t constants = 0;
    for (Value v : c.op->getOperands()) {
      while (auto view = v.getDefiningOp<hlo::ReshapeOp>())
        v = view->getOperand(0);
      if (v.getDefiningOp<hlo::ConstantOp>())
        constants += bytes(v.getType());
    }
    c.op->setAttr("kernel.cost", DenseI64ArrayAttr::get(module.getContext(), {c.cost.flops, constants, c.cost.bytes - constants}));
  }
}

int64_t parameterCount(ModuleOp module) {
  int64_t n = 0;
  module.walk([&](hlo::ConstantOp c) {
    if (!c->getParentOfType<kernel::LoopOp>())
      n += elements(c->getResult(0).getType());
  });
  return n;
}

} // namespace lathe
