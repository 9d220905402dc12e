#include "passes/codegen/element/Shortcut.h"

#include "dialects/hlo/Marks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace lathe::codegen {

bool isShortcut(Operation *op) { return isa_and_nonnull<hlo::SelectOp>(op) && op->hasAttr(hlo::shortcutAttr); }

namespace {
/// x - (x rounded to nearest, ties to even) < limit, in f32.
struct JustAboveHalf {
  Value x;
  double limit;
};
} // namespace

static std::optional<JustAboveHalf> matchJustAboveHalf(hlo::SelectOp shortcut) {
  auto compare = shortcut.getPred().getDefiningOp<hlo::CompareOp>();
  if (!compare || compare.getComparisonDirection() != hlo::ComparisonDirection::LT)
    return std::nullopt;
  auto limit = compare->getOperand(1).getDefiningOp<hlo::ConstantOp>();
  auto dense = limit ? dyn_cast<DenseElementsAttr>(limit.getValue()) : DenseElementsAttr();
  auto less = compare->getOperand(0).getDefiningOp<hlo::SubtractOp>();
  if (!dense || !dense.isSplat() || !less || !hlo::elementType(less.getResult()).isF32())
    return std::nullopt;
  auto rounded = less->getOperand(1).getDefiningOp<hlo::RoundNearestEvenOp>();
  if (!rounded || rounded->getOperand(0) != less->getOperand(0))
    return std::nullopt;
  return JustAboveHalf{less->getOperand(0), dense.getSplatValue<APFloat>().convertToDouble()};
}

/// x - (x rounded to nearest, ties to even).
static Value aboveNearest(KernelBuilder &b, Value x) {
  const unsigned lanes = lanesOf(x.getType());
  if (lanes > 16 && lanes % 16 == 0) { // elements of bytes, as many as a register has: several registers of floats
    Value all = x;
    for (unsigned i = 0; i < lanes; i += 16) {
      Value part = vector::ExtractStridedSliceOp::create(b, x, ArrayRef<int64_t>(i), ArrayRef<int64_t>(16), ArrayRef<int64_t>(1));
      all = vector::InsertStridedSliceOp::create(b, aboveNearest(b, part), all, ArrayRef<int64_t>(i), ArrayRef<int64_t>(1));
    }
    return all;
  }
  if (!b.target.x86 || !b.target.avx512 || (lanes != 4 && lanes != 8 && lanes != 16))
    return arith::SubFOp::create(b, x, math::RoundEvenOp::create(b, x));
  Type mask = b.getIntegerType(std::max(8u, lanes));
  SmallVector<Value> args{x, b.cstI(b.getI32Type(), 8), x, b.cstI(mask, -1)};
  if (lanes == 16)
    args.push_back(b.cstI(b.getI32Type(), 4));
  const std::string name = "llvm.x86.avx512.mask.reduce.ps." + std::to_string(lanes * 32);
  return LLVM::CallIntrinsicOp::create(b, x.getType(), b.getStringAttr(name), args).getResult(0);
}

FailureOr<Value> seldomAny(KernelBuilder &b, hlo::SelectOp shortcut, unsigned count,
                           llvm::function_ref<FailureOr<Value>(Value tensor, unsigned i)> emit) {
  const std::optional<JustAboveHalf> half = matchJustAboveHalf(shortcut);
  Value all;
  for (unsigned i = 0; i < count; ++i) {
    FailureOr<Value> v = emit(half ? half->x : shortcut.getPred(), i);
    if (failed(v))
      return failure();
    if (half)
      v = aboveNearest(b, *v);
    if (!all)
      all = *v;
    else if (half) // one instruction, which llvm.minnum is not
      all = arith::SelectOp::create(b, arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, all, *v), all, *v);
    else
      all = arith::OrIOp::create(b, all, *v);
  }
  if (half)
    all = arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, all, b.cst(all.getType(), half->limit));
  Value any = vector::ReductionOp::create(b, vector::CombiningKind::OR, all);
  return Value(LLVM::ExpectOp::create(b, any, b.cstI(any.getType(), 0)));
}

/// Whether element i of the result is made of element i of this operand.
static bool keepsIndex(Operation *op, Value operand) {
  return (isElementwise(op) || isa<hlo::AssumeShapeOp>(op)) &&
         hlo::tensorType(operand).getRank() == hlo::tensorType(op->getResult(0)).getRank();
}

/// Those whose element i the roots' element i is made of, and no other element of them: what pads, slices or transposes read lies
/// elsewhere, or nowhere. Operands first.
static SmallVector<hlo::SelectOp> shortcutsBeneath(ArrayRef<Value> roots) {
  SmallVector<hlo::SelectOp> found;
  llvm::DenseSet<Operation *> here, elsewhere;
  SmallVector<Value> moved;                           // operands that are read at other indices
  SmallVector<std::pair<Operation *, unsigned>> path; // and the next operand
  auto visit = [&](Value v) {
    if (Operation *op = v.getDefiningOp(); op && here.insert(op).second)
      path.push_back({op, 0});
  };
  for (Value root : roots) {
    visit(root);
    while (!path.empty()) {
      auto &[op, next] = path.back();
      if (next < op->getNumOperands()) {
        Value operand = op->getOperand(next++);
        if (keepsIndex(op, operand))
          visit(operand);
        else
          moved.push_back(operand);
        continue;
      }
      if (isShortcut(op))
        found.push_back(cast<hlo::SelectOp>(op));
      path.pop_back();
    }
  }
  while (!moved.empty())
    if (Operation *op = moved.pop_back_val().getDefiningOp(); op && elsewhere.insert(op).second)
      moved.append(op->operand_begin(), op->operand_end());
  llvm::erase_if(found, [&](hlo::SelectOp select) { return elsewhere.contains(select); });
  return found;
}

bool hasShortcuts(ArrayRef<Value> roots) { return !shortcutsBeneath(roots).empty(); }

FailureOr<std::vector<SmallVector<Value>>> emitTogether(ElementEmitter &emitter, ArrayRef<Value> roots, unsigned count, unsigned lanes,
                                                        llvm::function_ref<ArrayRef<Value>(unsigned i)> enter) {
  KernelBuilder &b = emitter.builder();
  unsigned current = 0;
  LogicalResult ok = success();
  auto emit = [&](Value v, unsigned i) -> Value {
    FailureOr<Value> r = emitter.emit(v, enter(current = i), lanes);
    if (failed(r))
      ok = failure();
    return succeeded(r) ? *r : Value();
  };
  SmallVector<hlo::SelectOp> shortcuts = lanes > 1 ? shortcutsBeneath(roots) : SmallVector<hlo::SelectOp>();
  std::vector<SmallVector<Value>> chosen(shortcuts.size());
  for (size_t k = 0; k < shortcuts.size(); ++k) {
    hlo::SelectOp select = shortcuts[k];
    SmallVector<Value> quick;
    auto any = seldomAny(b, select, count, [&](Value tensor, unsigned i) -> FailureOr<Value> {
      emitter.clearCache();
      Value v = emit(tensor, i);
      quick.push_back(emit(select.getOnFalse(), i));
      return v ? FailureOr<Value>(v) : FailureOr<Value>(failure());
    });
    if (failed(any) || failed(ok))
      return failure();
    chosen[k] = b.ifElse(
        *any, TypeRange(ValueRange(quick)),
        [&] {
          SmallVector<Value> exact;
          for (unsigned i = 0; i < count; ++i) {
            emitter.clearCache();
            Value v = emit(select.getOnTrue(), i);
            exact.push_back(v ? v : quick[i]);
          }
          emitter.clearCache();
          return exact;
        },
        [&] { return quick; });
    emitter.bindElement(select.getResult(),
                        [&chosen, &current, k](ArrayRef<Value>, unsigned) -> FailureOr<Value> { return chosen[k][current]; });
  }
  std::vector<SmallVector<Value>> values(count);
  for (unsigned i = 0; i < count && succeeded(ok); ++i) {
    emitter.clearCache();
    for (Value root : roots)
      values[i].push_back(emit(root, i));
  }
  for (hlo::SelectOp select : shortcuts)
    emitter.unbindElement(select.getResult());
  emitter.clearCache();
  if (failed(ok))
    return failure();
  return values;
}

} // namespace lathe::codegen
