// What compiled code checks and sets while it runs: assume_shape, set_size, check.
#include "dialects/hlo/Hlo.h"
#include "passes/codegen/element/Expr.h"
#include "passes/codegen/library/Library.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace lathe::codegen {

using hlo::elementType;
using hlo::tensorType;

Value symbolAddress(KernelBuilder &b, int64_t symbol) {
  return b.ptrAt(b.sizes, b.getI64Type(), b.i64(symbol));
}

LogicalResult emitAssumeShape(Operation *op, KernelBuilder &b) {
  SmallVector<Value> in = b.dims(tensorType(op->getOperand(0))), out = b.dims(tensorType(op->getResult(0)));
  b.units([&](Value) {
    Value same = b.cstI(b.getI1Type(), 1);
    for (auto [x, y] : llvm::zip(in, out))
      same = b.both(same, b.eq(x, y));
    b.ifElse(same, {}, [&] {
      emitCopy(b, b.results[0], b.operands[0], bytesOf(b, op->getResult(0)));
      return SmallVector<Value>();
    }, [&] {
      b.setError(kErrCheckFailed);
      return SmallVector<Value>();
    });
  });
  return success();
}

LogicalResult emitSetSize(Operation *op, KernelBuilder &b) {
  auto s = cast<hlo::SetSizeOp>(op);
  auto info = hlo::lookupSymbol(op->getParentOfType<ModuleOp>(), s.getSymbol());
  b.units([&](Value) {
    Value n = loadIndex(b, elementType(s.getOperand()), b.operands[0], b.i64(0));
    Value ok = b.ge(n, b.i64(0));
    Value bound;
    if (info && info->boundExpr)
      bound = b.dim(info->boundExpr);
    else if (info && info->bound >= 0)
      bound = b.i64(info->bound);
    if (bound)
      ok = b.both(ok, b.ge(bound, n));
    // a wrong size must not reach later kernels
    LLVM::StoreOp::create(b, b.select(ok, n, b.i64(0)), symbolAddress(b, s.getSymbol()), 8);
    Value bad = arith::XOrIOp::create(b, ok, b.cstI(b.getI1Type(), 1));
    b.ifThen(bad, [&] { b.setError(kErrSizeOutOfBound); });
  });
  return success();
}

LogicalResult emitCheck(Operation *op, KernelBuilder &b) {
  b.units([&](Value) {
    Value n = b.numElements(tensorType(op->getOperand(0)));
    Value bad = b.loop(b.i64(0), n, b.i64(1), ValueRange{b.cstI(b.getI1Type(), 0)}, [&](Value i, ValueRange a) {
                   E good(b, b.loadElem(b.getI1Type(), b.operands[0], i));
                   return SmallVector<Value>{E(b, a[0]) | !good};
                 })[0];
    b.ifThen(bad, [&] { b.setError(kErrCheckFailed); });
  });
  return success();
}

} // namespace lathe::codegen
