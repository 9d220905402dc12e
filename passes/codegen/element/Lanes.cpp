// See Lanes.h.
#include "passes/codegen/element/Lanes.h"

#include "dialects/hlo/Hlo.h"
#include "passes/codegen/element/Shortcut.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace lathe::codegen {

using hlo::elementType;
using hlo::tensorType;

/// `often`: without what only shortcuts read, seldom.
static void walk(ArrayRef<Value> roots, bool often, llvm::function_ref<void(Operation *)> f) {
  SmallVector<Value> work(roots);
  llvm::DenseSet<Operation *> seen;
  while (!work.empty()) {
    Operation *op = work.pop_back_val().getDefiningOp();
    if (!op || !seen.insert(op).second)
      continue;
    f(op);
    for (Value v : op->getOperands())
      if (!often || !isShortcut(op) || v != cast<hlo::SelectOp>(op).getOnTrue())
        work.push_back(v);
  }
}

void walkOps(ArrayRef<Value> roots, llvm::function_ref<void(Operation *)> f) { walk(roots, /*often=*/false, f); }

static bool isFunction(Operation *op) {
  return isa<hlo::ExpOp, hlo::LogOp, hlo::Log1pOp, hlo::Expm1Op, hlo::TanhOp, hlo::LogisticOp, hlo::ErfOp, hlo::ErfcOp,
             hlo::SineOp, hlo::CosineOp, hlo::TanOp, hlo::PowOp, hlo::CbrtOp, hlo::AtanOp, hlo::Atan2Op, hlo::SqrtOp,
             hlo::RsqrtOp, hlo::DivOp>(op);
}

int64_t elementCost(ArrayRef<Value> roots) {
  int64_t cost = 1;
  walk(roots, /*often=*/true, [&](Operation *op) {
    if (isElementwise(op))
      cost += isFunction(op) ? 12 : 1;
    else if (isa<hlo::ReduceOp, hlo::GatherOp>(op))
      cost += 8;
  });
  return cost;
}

bool keepsLanes(Operation *op) {
  auto out = tensorType(op->getResult(0));
  int64_t last = out.getRank() - 1;
  if (isElementwise(op) || isa<hlo::ConstantOp, hlo::IotaOp, hlo::ConcatenateOp, hlo::AssumeShapeOp, hlo::MapOp,
                               hlo::OptimizationBarrierOp, hlo::DynamicSliceOp, hlo::BitcastConvertOp>(op))
    return true;
  if (auto b = dyn_cast<hlo::BroadcastInDimOp>(op)) {
    auto in = tensorType(b.getOperand());
    auto map = b.getBroadcastDimensions();
    for (int64_t i = 0; i + 1 < in.getRank(); ++i)
      if (map[i] == last && hlo::constantValue(hlo::getDim(in, i)) != 1)
        return false;
    return true;
  }
  if (auto r = dyn_cast<hlo::ReshapeOp>(op)) {
    auto in = tensorType(r.getOperand());
    if (in.getRank() == 0 || isa<BlockArgument>(r.getOperand()))
      return true;
    return last >= 0 && hlo::equalDims(hlo::getDim(in, in.getRank() - 1), hlo::getDim(out, last));
  }
  if (auto t = dyn_cast<hlo::TransposeOp>(op))
    return last < 0 || t.getPermutation().back() == last;
  if (auto s = dyn_cast<hlo::SliceOp>(op))
    return last < 0 || s.getStrides().back() == 1;
  if (auto p = dyn_cast<hlo::PadOp>(op))
    return last < 0 || p.getInteriorPadding().back() == 0;
  if (isa<hlo::ReverseOp>(op))
    return true;
  if (auto r = dyn_cast<hlo::ReduceOp>(op))
    return !llvm::is_contained(r.getDimensions(), tensorType(r.getInputs()[0]).getRank() - 1);
  if (auto g = dyn_cast<hlo::GatherOp>(op)) {
    auto d = g.getDimensionNumbers();
    int64_t r = tensorType(g.getOperand()).getRank() - 1;
    return !d.getOffsetDims().empty() && d.getOffsetDims().back() == last &&
           !llvm::is_contained(d.getCollapsedSliceDims(), r) && !llvm::is_contained(d.getOperandBatchingDims(), r);
  }
  if (auto u = dyn_cast<hlo::DynamicUpdateSliceOp>(op))
    return last >= 0 && hlo::equalDims(hlo::getDim(tensorType(u.getUpdate()), last), hlo::getDim(out, last));
  return false;
}

unsigned lanesOfParts(Type elem, const KernelTarget &target) {
  auto complex = dyn_cast<ComplexType>(elem);
  return target.lanes(complex ? complex.getElementType() : elem);
}

unsigned chooseLanes(ArrayRef<Value> roots, const KernelTarget &target) {
  unsigned lanes = 64;
  bool scattered = false, heavy = false;
  for (Value r : roots) {
    if (!ElementEmitter::canVectorize(r))
      return 1;
    if (tensorType(r).getRank() == 0)
      return 1;
    lanes = std::min(lanes, lanesOfParts(elementType(r), target));
  }
  walk(roots, /*often=*/true, [&](Operation *op) {
    // sizes and indices of rank 0 do not count
    if (tensorType(op->getResult(0)).getRank() > 0) {
      lanes = std::min(lanes, lanesOfParts(elementType(op->getResult(0)), target));
      for (Value v : op->getOperands())
        if (tensorType(v).getRank() > 0 && isElementwise(op))
          lanes = std::min(lanes, lanesOfParts(elementType(v), target));
    }
    scattered |= !keepsLanes(op);
    heavy |= isFunction(op);
  });
  return scattered && !heavy ? 1 : lanes;
}

bool masksPay(ArrayRef<Value> roots, const KernelTarget &target) {
  bool ok = true;
  for (Value r : roots)
    ok &= target.hasMaskedMemory(elementType(r));
  walkOps(roots, [&](Operation *op) {
    for (Value v : op->getOperands())
      if (tensorType(v).getRank() > 0)
        ok &= target.hasMaskedMemory(elementType(v));
    // these would fall back lane by lane under a mask
    ok &= !isa<hlo::ReverseOp, hlo::ConcatenateOp>(op);
  });
  return ok;
}

LogicalResult vectorLoop(KernelBuilder &b, Value lo, Value hi, unsigned lanes, bool masked,
                         llvm::function_ref<LogicalResult(Value, unsigned, Value)> body) {
  LogicalResult ok = success();
  auto run = [&](Value i, unsigned n, Value mask) {
    if (failed(body(i, n, mask)))
      ok = failure();
  };
  if (lanes == 1) {
    b.loop(lo, hi, [&](Value i) { run(i, 1, Value()); });
    return ok;
  }
  Value count = b.max(b.sub(hi, lo), b.i64(0));
  Value whole = b.sub(count, b.remU(count, b.i64(lanes)));
  Value mid = b.add(lo, whole);
  b.loop(lo, mid, b.i64(lanes), [&](Value i) { run(i, lanes, Value()); });
  if (auto c = whole.getDefiningOp<arith::ConstantOp>())
    if (auto n = count.getDefiningOp<arith::ConstantOp>(); n && n.getValue() == c.getValue())
      return ok; // nothing is left over
  if (masked)
    b.ifThen(b.lt(mid, hi), [&] { run(mid, lanes, b.tailMask(b.sub(hi, mid), lanes)); });
  else
    b.loop(mid, hi, [&](Value i) { run(i, 1, Value()); });
  return ok;
}

} // namespace lathe::codegen
