// Before: float hlo. After: the same, with hlo.quantize on the result of each unit that will be computed in integers.
#include "passes/quantize/Passes.h"
#include "passes/quantize/Units.h"

#include "passes/simplify/Match.h"

#include "mlir/Dialect/Quant/IR/Quant.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace lathe::quantize {
#define GEN_PASS_DEF_HLOQUANTIZESELECT
#include "passes/quantize/Passes.h.inc"

namespace {

enum class Refusal { None, Kept, Kind, Input };

/// Why a unit stays float; `quantized` are the results of those chosen so far.
Refusal reasonToRefuse(const Unit &unit, int64_t bits, const llvm::DenseSet<Value> &quantized) {
  if (unit.last()->hasAttr(keepAttr) || unit.last()->hasAttr(unreachedAttr))
    return Refusal::Kept;
  // tables of 16-bit functions and the 16-bit softmax are interpolated: float is more exact and no slower
  if (bits == 16 && (unit.kind == UnitKind::Table || unit.kind == UnitKind::Softmax))
    return Refusal::Kind;
  if (bits == 16 && unit.kind == UnitKind::Mean && unit.count > 65535) // the sum is of 32 bits
    return Refusal::Kind;
  if (unit.isProduct())
    return Refusal::None;
  bool any = false;
  for (Value v : unit.inputs) {
    if (quantized.contains(v))
      any = true;
    else if (!constantValue(v) && !splatElement(v))
      return Refusal::Input;
  }
  return any ? Refusal::None : Refusal::Input;
}

struct Select : impl::HloQuantizeSelectBase<Select> {
  using HloQuantizeSelectBase::HloQuantizeSelectBase;
  void runOnOperation() override {
    if (bits != 8 && bits != 16) {
      getOperation().emitError("expected 8 or 16 bits, found ") << bits;
      return signalPassFailure();
    }
    getOperation()->walk([](Operation *op) { op->removeAttr(markAttr); });
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      llvm::DenseSet<Value> quantized;
      for (const Unit &unit : findUnits(function)) {
        switch (reasonToRefuse(unit, bits, quantized)) {
        case Refusal::Kept: ++refusedKept; continue;
        case Refusal::Kind: ++refusedKind; continue;
        case Refusal::Input: ++refusedInput; continue;
        case Refusal::None: break;
        }
        quantized.insert(unit.out);
        unit.last()->setAttr(markAttr, StringAttr::get(&getContext(), unitName(unit.kind)));
        ++numChosen;
      }
    }
  }
};

} // namespace
} // namespace lathe::quantize
