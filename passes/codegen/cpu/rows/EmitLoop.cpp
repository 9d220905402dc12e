// kernel.loop and the bare ops: those whose elements need no memory of their own here, the rest by name.
#include "dialects/hlo/Hlo.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/cpu/rows/Elemental.h"
#include "passes/codegen/cpu/rows/Rows.h"
#include "passes/codegen/library/Library.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace lathe::cpu {

LogicalResult emitLoopKernel(Operation *op, KernelBuilder &b) {
  Block &body = op->getRegion(0).front();
  SmallVector<Value> roots(body.getTerminator()->getOperands()), leaves(body.getArguments());
  SmallVector<int64_t> rows, leafRows;
  for (OpResult result : op->getResults())
    rows.push_back(kernel::resultRow(result));
  for (unsigned i = 0; i < op->getNumOperands(); ++i)
    leafRows.push_back(kernel::operandRow(op, i));
  auto isDense = [](int64_t row) { return row == 0; };
  if (llvm::all_of(rows, isDense) && llvm::all_of(leafRows, isDense)) {
    // what is left of the rows once dimensions that need not be told apart are one: a bias of few channels keeps them short
    Collapsed collapsed(roots, leaves);
    auto type = hlo::tensorType(collapsed.roots[0]);
    auto same = [&](Value v) { return v.getType() == roots[0].getType(); };
    if (type.getRank() > 1 && llvm::all_of(roots, same) &&
        hlo::equalDims(hlo::getDims(type).back(), hlo::getDims(hlo::tensorType(roots[0])).back()))
      if (std::optional<LogicalResult> done = emitShortRows(op, b))
        return *done;
  }
  return emitElemental(b, roots, b.results, leaves, b.operands, rows, leafRows);
}

// Each result on its own: they may differ in shape.
static LogicalResult emitResults(Operation *op, KernelBuilder &b) {
  SmallVector<Value> leaves(op->getOperands());
  if (op->getNumResults() == 1)
    return emitElemental(b, op->getResult(0), b.results, leaves, b.operands);
  // several shapes: one unit after the other cannot share an extent, so everything is one unit
  Value begin = b.begin, end = b.end;
  LogicalResult ok = success();
  b.loop(begin, end, [&](Value) {
    for (auto [r, out] : llvm::zip(op->getResults(), b.results)) {
      ElementEmitter e(b);
      for (auto [l, p] : llvm::zip(leaves, b.operands))
        e.bindBuffer(l, p);
      SmallVector<Value> dims = b.dims(hlo::tensorType(r));
      Value result = r, ptr = out;
      b.nest(dims, [&](ValueRange index) {
        ElementEmitter::Scope scope(e);
        FailureOr<Value> v = e.emit(result, SmallVector<Value>(index), 1);
        if (failed(v))
          ok = failure();
        else
          b.storeElem(hlo::elementType(result), *v, ptr, b.linearize(index, dims));
      });
    }
  });
  return ok;
}

LogicalResult emitBareOp(Operation *op, KernelBuilder &b) {
  if (isElementwise(op))
    return emitResults(op, b);
  if (auto gather = dyn_cast<hlo::GatherOp>(op); gather && chooseSpecial(b, "byte-table", whyNotByteTable(gather, b.target)))
    return emitByteTable(gather, b);
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<hlo::BroadcastInDimOp, hlo::BroadcastOp, hlo::ReshapeOp, hlo::TransposeOp, hlo::SliceOp,
            hlo::DynamicSliceOp, hlo::PadOp, hlo::IotaOp, hlo::ReverseOp, hlo::GatherOp, hlo::MapOp,
            hlo::SizeOp, hlo::GetDimensionSizeOp, hlo::OptimizationBarrierOp>(
          [&](auto) { return emitResults(op, b); })
      .Case<hlo::ReduceOp>([&](auto) { return emitReduceKernel(op, b); })
      .Default([&](Operation *o) { return emitLibraryOp(o, b); });
}

} // namespace lathe::cpu
