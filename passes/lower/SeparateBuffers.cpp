// The run function when every buffer is a heap block of its own: allocate all blocks, copy the constants into theirs,
// call the body, free. What the body does is what it does in an arena; only addresses differ.
#include "passes/lower/FunctionLowering.h"

using namespace mlir;

namespace lathe::lower {

static void declare(ModuleOp module, MainBuilder &b, StringRef name, Type result, TypeRange args) {
  if (module.lookupSymbol(name))
    return;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(module.getBody());
  LLVM::LLVMFuncOp::create(b, name, LLVM::LLVMFunctionType::get(result, llvm::to_vector(args)));
}

// Stores a block of exactly `bytes` bytes at `slotAddress`; returns 0 or what posix_memalign says.
Value FunctionLowering::allocate(Value slotAddress, Value bytes) {
  if (launches()) {
    device("allocate", {deviceCall(), slotAddress, bytes});
    return b.i32(0);
  }
  Type i64 = b.getI64Type();
  declare(state.output, b, "posix_memalign", b.getI32Type(), {b.ptrType(), i64, i64});
  b.store(b.null(), slotAddress);
  return b.call("posix_memalign", b.getI32Type(), {slotAddress, b.i64(64), bytes});
}

void FunctionLowering::release(Value slotAddress) {
  if (launches())
    return device("release", {deviceCall(), slotAddress});
  declare(state.output, b, "free", LLVM::LLVMVoidType::get(b.getContext()), {b.ptrType()});
  b.call("free", TypeRange(), {b.loadPtr(slotAddress)});
  b.store(b.null(), slotAddress);
}

void FunctionLowering::allocateScratch(const KernelInfo &info) {
  Value at = b.offset(ctx, 8 * Scratch);
  if (auto c = dyn_cast<AffineConstantExpr>(info.scratch); c && c.getValue() == 0) {
    b.store(b.null(), at);
    return;
  }
  Value bytes = b.expr(info.scratch, sizes());
  if (launches())
    bytes = deviceScratch(bytes, b.expr(info.extent, sizes()));
  else if (isParallel(info)) // one piece a thread
    bytes = b.mul(b.alignTo64(bytes), slot(Threads, b.getI64Type()));
  failIf(b.compare(LLVM::ICmpPredicate::ne, allocate(at, bytes), b.i32(0)), -1, b.i64(callWorkspace));
}

void FunctionLowering::emitSeparateRun(Value boundedSizes) {
  std::string body = "lathe_body" + std::to_string(entry);
  {
    OpBuilder::InsertionGuard guard(b);
    Value outer = ctx;
    auto f = b.function(state.output, body, b.getI32Type(), {b.ptrType()});
    f.setNoInline(true);
    ctx = f.getArgument(0);
    emitOps(func.front());
    emitCopies(func.front().getTerminator());
    b.ret(b.i32(0));
    ctx = outer;
  }
  SmallVector<std::pair<int64_t, const Buffer *>> bySlot;
  for (auto [buffer, at] : blocks)
    bySlot.push_back({at, buffer});
  llvm::sort(bySlot);
  b.store(b.null(), ctx, 8 * Scratch);
  Value bad = b.i32(0);
  for (auto [at, buffer] : bySlot)
    bad = LLVM::OrOp::create(b, bad, allocate(b.offset(ctx, 8 * at), atMost(buffer->bytes, boundedSizes)));
  Block *run = b.block(), *noMemory = b.block(), *done = b.block();
  Value code = done->addArgument(b.getI32Type(), b.getLoc());
  b.condBranch(b.compare(LLVM::ICmpPredicate::ne, bad, b.i32(0)), noMemory, run, /*unlikelyTrue=*/true);

  b.setInsertionPointToEnd(noMemory);
  Value failed = b.call("lathe_fail", b.getI32Type(), {slot(Args, b.ptrType()), b.i32(-1), b.i32(callWorkspace)});
  LLVM::BrOp::create(b, ValueRange(failed), done);

  b.setInsertionPointToEnd(run);
  for (auto [at, buffer] : bySlot)
    if (buffer->kind == Buffer::Constant)
      LLVM::MemcpyOp::create(b, b.loadPtr(ctx, 8 * at), b.offset(slot(Constants, b.ptrType()), buffer->index),
                             atMost(buffer->bytes, boundedSizes), /*isVolatile=*/false);
  Value result = b.call(body, b.getI32Type(), {ctx});
  LLVM::BrOp::create(b, ValueRange(result), done);

  b.setInsertionPointToEnd(done);
  for (auto [at, buffer] : bySlot)
    release(b.offset(ctx, 8 * at));
  release(b.offset(ctx, 8 * Scratch));
  b.ret(code);
}

} // namespace lathe::lower
