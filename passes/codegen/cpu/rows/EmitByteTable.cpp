// A gather from a table of 256 bytes by bytes, what functions of quantized numbers become: two instructions
// look 64 of them up in half of the table each (AVX512-VBMI), and the upper bit of the index says which half
// counts.
#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Shape.h"
#include "passes/codegen/Target.h"
#include "passes/codegen/cpu/rows/Rows.h"
#include "passes/codegen/cpu/target/CpuTarget.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace lathe::cpu {

WhyNot whyNotByteTable(hlo::GatherOp op, const KernelTarget &target) {
  auto table = hlo::tensorType(op.getOperand()), index = hlo::tensorType(op.getStartIndices()),
       out = hlo::tensorType(op.getResult());
  auto numbers = op.getDimensionNumbers();
  if (!table.getElementType().isInteger(8) || !index.getElementType().isInteger(8) ||
      !index.getElementType().isUnsignedInteger() || table.getRank() != 1 || table.getDimSize(0) != 256)
    return WhyNot::notMeant("it is no table of bytes by bytes");
  if (numbers.getStartIndexMap() != ArrayRef<int64_t>{0} ||
      numbers.getCollapsedSliceDims() != ArrayRef<int64_t>{0} ||
      numbers.getIndexVectorDim() != index.getRank() || !numbers.getOperandBatchingDims().empty() ||
      hlo::getDims(index) != hlo::getDims(out))
    return WhyNot::notMeant("it is no look-up of single elements");
  // four instructions for each of 16 parts of the table would be no faster than single bytes
  auto module = op->getParentOfType<ModuleOp>();
  FailureOr<codegen::Target> whole =
      module ? codegen::targetOf(module) : FailureOr<codegen::Target>(failure());
  if (!target.avx512 || failed(whole) || spellsOutDots(whole->processor) || !StringRef(whole->processor.features + ",").contains("+avx512vbmi,"))
    return WhyNot::notMeant("the target looks up no bytes in vectors");
  return WhyNot::none();
}

LogicalResult emitByteTable(hlo::GatherOp op, KernelBuilder &b) {
  constexpr int64_t lanes = 64, unit = 64 * lanes;
  auto out = hlo::tensorType(op.getResult());
  Type byte = b.getI8Type();
  b.setExtent(hlo::ceilDiv(hlo::numElements(hlo::getDims(out), b.getContext()), unit));
  b.setWork(unit);
  Value count = b.numElements(out), parts[4];
  for (int64_t i = 0; i < 4; ++i)
    parts[i] = b.loadElem(byte, b.operands[0], b.i64(i * lanes), lanes);
  auto permute = [&](Value index, Value low, Value high) {
    return LLVM::CallIntrinsicOp::create(b, index.getType(),
                                         b.getStringAttr("llvm.x86.avx512.vpermi2var.qi.512"),
                                         ValueRange{low, index, high})
        .getResult(0);
  };
  b.units([&](Value u) {
    Value first = b.mul(u, b.i64(unit)), last = b.min(count, b.add(first, b.i64(unit)));
    Value whole = b.add(first, b.mul(b.divU(b.sub(last, first), b.i64(lanes)), b.i64(lanes)));
    b.loop(first, whole, b.i64(lanes), [&](Value at) {
      Value index = b.loadElem(byte, b.operands[1], at, lanes);
      Value isUpper = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, index, b.cstI(index.getType(), 0));
      Value found = arith::SelectOp::create(b, isUpper, permute(index, parts[2], parts[3]),
                                            permute(index, parts[0], parts[1]));
      b.storeElem(byte, found, b.results[0], at);
    });
    b.loop(whole, last, [&](Value at) {
      Value index = arith::ExtUIOp::create(b, b.getI64Type(), b.loadElem(byte, b.operands[1], at));
      b.storeElem(byte, b.loadElem(byte, b.operands[0], index), b.results[0], at);
    });
  });
  return success();
}

} // namespace lathe::cpu
