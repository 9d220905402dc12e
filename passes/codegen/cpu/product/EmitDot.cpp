// kernel.dot as a blocked matrix product over its operands in place: dimension lists become strides.
#include "dialects/hlo/Shape.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/cpu/layout/Layout.h"
#include "passes/codegen/cpu/product/Format.h"

using namespace mlir;

namespace lathe::cpu {

ProductSpec dotSpec(kernel::DotOp op, KernelBuilder &b) {
  auto lhs = cast<RankedTensorType>(op.getLhs().getType()), rhs = cast<RankedTensorType>(op.getRhs().getType());
  ArrayRef<int64_t> aDims = op.getLhsDims(), bDims = op.getRhsDims();
  SmallVector<int64_t> cDims(op.getResultDims());
  int64_t batchRank = op.getBatchRank();
  SmallVector<AffineExpr> accDims = hlo::getDims(op.getAccType());

  ProductSpec spec;
  spec.plan = KernelPlan::of(op);
  spec.aElem = lhs.getElementType();
  spec.bElem = rhs.getElementType();
  spec.accElem = op.getAccType().getElementType();
  spec.a = b.operands[0];
  spec.b = b.operands[1];
  spec.m = accDims[cDims[batchRank]];
  spec.n = accDims[cDims.back()];
  spec.k = hlo::getDims(lhs)[aDims.back()];
  spec.panel = panelColumns(op);
  spec.interleaved = op.getBf16() ? 1 : panelGroup(op); // pairs of bf16 are the format's
  if (op.getBf16() && !b.target.amxBf16) {
    spec.pairedDepth = bf16Format().paddedDepth(*hlo::constantValue(spec.k));
  } else if (OperandFormat format = integerFormat(b.target, spec.aElem, spec.bElem, spec.accElem); spec.panel && format.isGrouped()) {
    spec.interleaved = 1; // the groups of the format
    spec.pairedDepth = format.paddedDepth(hlo::constantValue(spec.k).value_or(0));
  } else if (!spec.panel && runTimeFormat(b.target, spec.aElem, spec.bElem, spec.accElem).isGrouped() &&
             chooseSpecial(b, "run-time-groups",
                           whyNotRunTimeGroups(b.target, {spec.aElem, spec.bElem, spec.accElem}, hlo::constantValue(spec.m),
                                               hlo::constantValue(spec.n), hlo::constantValue(spec.k)))) {
    spec.pairedDepth = llvm::alignTo(*hlo::constantValue(spec.k), 2);
  }
  spec.strassen = isStrassen(op);

  SmallVector<Value> aStrides = stridesOf(b, lhs, kernel::operandRow(op, 0)), bStrides = stridesOf(b, rhs);
  spec.aRow = aStrides[aDims[aDims.size() - 2]];
  spec.aStep = aStrides[aDims.back()];
  if (!spec.panel) {
    spec.bStep = bStrides[bDims[bDims.size() - 2]];
    spec.bColumn = bStrides[bDims.back()];
  }
  bool aBatched = lhs.getRank() > 2, bBatched = rhs.getRank() > (spec.panel ? 3 : 2);
  for (int64_t i = 0; i < batchRank; ++i) {
    spec.batch.push_back(accDims[cDims[i]]);
    spec.aBatchStrides.push_back(aBatched ? aStrides[aDims[i]] : b.i64(0));
    spec.bBatchStrides.push_back(bBatched ? bStrides[spec.panel ? i : bDims[i]] : b.i64(0));
  }
  spec.columnDim = cDims.back();
  spec.resultRow = stridesOf(b, op.getAccType())[cDims[batchRank]];
  spec.index = [=](ValueRange batch, Value row, Value column) {
    SmallVector<Value> index(batchRank + 2);
    for (int64_t i = 0; i < batchRank; ++i)
      index[cDims[i]] = batch[i];
    index[cDims[batchRank]] = row;
    index[cDims.back()] = column;
    return index;
  };
  return spec;
}

LogicalResult emitDot(Operation *op, KernelBuilder &b) {
  Epilogue epilogue(b, op);
  return emitProduct(b, dotSpec(cast<kernel::DotOp>(op), b), epilogue);
}

} // namespace lathe::cpu
