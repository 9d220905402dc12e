// Calls of kernels whose units may be spread over threads. The caller's parallel_for runs a thunk over chunks; chunk c
// of n does the units [c*units/n, (c+1)*units/n) with its own scratch, so results do not depend on the number of threads.
#include "passes/lower/FunctionLowering.h"
#include "runtime/abi/module_abi.h"

using namespace mlir;

namespace lathe::lower {

// More chunks than threads even out threads of unequal speed, where chunks need no scratch.
constexpr int64_t chunksPerThread = 4;

/// From how many units on a call is spread.
static int64_t leastUnits(const KernelInfo &info, int64_t parallelWork) {
  int64_t work = std::max<int64_t>(info.workPerUnit, 1);
  return std::max<int64_t>(2, parallelWork / work + (parallelWork % work != 0));
}

bool isParallel(const KernelInfo &info, const LowerOptions &options) {
  if (options.threads < 2)
    return false;
  auto units = dyn_cast<AffineConstantExpr>(info.extent);
  return !units || units.getValue() >= leastUnits(info, options.parallelWork);
}

void FunctionLowering::ensureThunk(KernelInfo &info) {
  if (!info.thunk.empty())
    return;
  info.thunk = info.name + "_chunks";
  OpBuilder::InsertionGuard guard(b);
  Type i64 = b.getI64Type(), ptr = b.ptrType();
  auto f = b.function(state.output, info.thunk, LLVM::LLVMVoidType::get(b.getContext()), {ptr, i64, i64});
  Value block = f.getArgument(0), begin = f.getArgument(1), end = f.getArgument(2);
  Value err = b.stack(8);
  b.store(b.i64(0), err);
  Value chunks = b.loadI64(block, 8 * Chunks), units = b.loadI64(block, 8 * Units);
  SmallVector<Value> args;
  for (unsigned i = 0; i < info.pointers; ++i)
    args.push_back(b.loadPtr(block, 8 * (FirstPointer + i)));
  Value scratch = b.loadPtr(block, 8 * ScratchBase), stride = b.loadI64(block, 8 * ScratchStride);
  Value sizes = b.loadPtr(block, 8 * SizesPtr);
  Block *head = b.block(), *body = b.block(), *after = b.block();
  LLVM::BrOp::create(b, ValueRange(begin), head);
  b.setInsertionPointToEnd(head);
  Value c = head->addArgument(i64, b.getLoc());
  b.condBranch(b.compare(LLVM::ICmpPredicate::slt, c, end), body, after);
  b.setInsertionPointToEnd(body);
  Value next = b.add(c, b.i64(1));
  Value from = LLVM::UDivOp::create(b, b.mul(c, units), chunks);
  Value to = LLVM::UDivOp::create(b, b.mul(next, units), chunks);
  args.append({b.offset(scratch, b.mul(c, stride)), sizes, err, from, to});
  b.call(info.name, TypeRange(), args);
  LLVM::BrOp::create(b, ValueRange(next), head);
  b.setInsertionPointToEnd(after);
  if (info.mayFail)
    LLVM::AtomicRMWOp::create(b, LLVM::AtomicBinOp::umax, b.loadPtr(block, 8 * ErrPtr), b.loadI64(err),
                              LLVM::AtomicOrdering::monotonic);
  b.ret();
}

// i32 lathe_dispatch(ctx, thunk, block): the one place that calls parallel_for.
void FunctionLowering::ensureHelpers() {
  if (state.output.lookupSymbol("lathe_dispatch"))
    return;
  OpBuilder::InsertionGuard guard(b);
  Type i64 = b.getI64Type(), ptr = b.ptrType(), i32 = b.getI32Type();
  Type voidType = LLVM::LLVMVoidType::get(b.getContext());
  Value outer = ctx;
  auto f = b.function(state.output, "lathe_dispatch", i32, {ptr, ptr, ptr});
  f.setNoInline(true);
  ctx = f.getArgument(0);
  Value thunk = f.getArgument(1), block = f.getArgument(2);
  Value args = slot(Args, ptr), threads = slot(Threads, i64);
  Value pf = b.loadPtr(args, offsetof(lathe_run_args, parallel_for));
  Value units = b.loadI64(block, 8 * Units);
  Value perThread = LLVM::SelectOp::create(
      b, b.compare(LLVM::ICmpPredicate::eq, b.loadI64(block, 8 * ScratchStride), b.i64(0)), b.i64(chunksPerThread),
      b.i64(1));
  Value chunks = b.min(units, LLVM::MulOp::create(b, threads, perThread));
  Value serial = LLVM::OrOp::create(b, b.compare(LLVM::ICmpPredicate::eq, pf, b.null()),
                                    b.compare(LLVM::ICmpPredicate::slt, b.min(threads, chunks), b.i64(2)));
  serial = LLVM::OrOp::create(b, serial, b.compare(LLVM::ICmpPredicate::slt, units, b.loadI64(block, 8 * LeastUnits)));
  Block *one = b.block(), *many = b.block();
  b.condBranch(serial, one, many);
  b.setInsertionPointToEnd(one);
  b.store(b.i64(1), block, 8 * Chunks);
  auto thunkType = LLVM::LLVMFunctionType::get(voidType, {ptr, i64, i64});
  LLVM::CallOp::create(b, thunkType, ValueRange{thunk, block, b.i64(0), b.i64(1)});
  b.ret(b.i32(0));
  b.setInsertionPointToEnd(many);
  b.store(chunks, block, 8 * Chunks);
  auto pfType = LLVM::LLVMFunctionType::get(i32, {ptr, ptr, ptr, i64});
  auto call = LLVM::CallOp::create(
      b, pfType, ValueRange{pf, b.loadPtr(args, offsetof(lathe_run_args, parallel_ctx)), thunk, block, chunks});
  failIf(b.compare(LLVM::ICmpPredicate::ne, call.getResult(), b.i32(0)), -1, b.i64(callParallel));
  b.ret(b.i32(0));
  ctx = outer;
}

void FunctionLowering::emitParallelCall(Operation *op, KernelInfo &info, ArrayRef<Value> pointers, Value units) {
  ensureThunk(info);
  ensureHelpers();
  Value block = b.stack(8 * (FirstPointer + pointers.size()));
  b.store(units, block, 8 * Units);
  b.store(b.i64(leastUnits(info, state.options.parallelWork)), block, 8 * LeastUnits);
  b.store(slot(Scratch, b.ptrType()), block, 8 * ScratchBase);
  b.store(b.alignTo64(b.expr(info.scratch, sizes())), block, 8 * ScratchStride);
  b.store(sizes(), block, 8 * SizesPtr);
  b.store(slot(Err, b.ptrType()), block, 8 * ErrPtr);
  for (auto [i, p] : llvm::enumerate(pointers))
    b.store(p, block, 8 * (FirstPointer + i));
  Value thunk = LLVM::AddressOfOp::create(b, b.ptrType(), info.thunk);
  returnIfNot0(b.call("lathe_dispatch", b.getI32Type(), {ctx, thunk, block}));
}

} // namespace lathe::lower
