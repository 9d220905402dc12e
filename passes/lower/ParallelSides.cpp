// Groups: each side is a function of the context, with a copy of it whose scratch is the side's own. A thunk
// that parallel_for runs over the sides calls them; on one thread they follow each other.
#include "passes/lower/FunctionLowering.h"
#include "passes/lower/SideBySide.h"

using namespace mlir;

namespace lathe::lower {

/// Bytes that the kernels of one side need at most.
int64_t FunctionLowering::sideScratch(ArrayRef<Operation *> ops) {
  int64_t most = 0;
  for (Operation *op : ops)
    op->walk<WalkOrder::PreOrder>([&](Operation *inner) {
      if (!state.kernels.has(inner))
        return WalkResult::advance();
      most = std::max(most, cast<AffineConstantExpr>(state.kernels.infoOf(inner).scratch).getValue());
      return WalkResult::skip();
    });
  return llvm::alignTo(most, 64);
}

void FunctionLowering::emitGroup(ArrayRef<Operation *> ops) {
  const std::string name = "lathe_run" + std::to_string(entry) + "_group" + std::to_string(groups++);
  SmallVector<std::string> sides;
  inSide = true;
  for (size_t i = 0, end; i < ops.size(); i = end) {
    end = i + 1;
    while (end < ops.size() && sideOf(ops[end]) == sideOf(ops[i]))
      ++end;
    sides.push_back(name + "_side" + std::to_string(sides.size()));
    emitFunction(sides.back(), ops.slice(i, end - i));
  }
  inSide = false;
  if (state.options.profile) { // times of kernels that run alone, by one thread
    for (const std::string &side : sides)
      returnIfNot0(b.call(side, b.getI32Type(), {ctx}));
    return;
  }

  Type i64 = b.getI64Type(), i32 = b.getI32Type(), ptr = b.ptrType();
  const int64_t contextBytes = 8 * (firstBlockSlot() + int64_t(blocks.size()));
  {
    OpBuilder::InsertionGuard guard(b);
    auto f = b.function(state.output, name, LLVM::LLVMVoidType::get(b.getContext()), {ptr, i64, i64});
    Value block = f.getArgument(0), begin = f.getArgument(1), end = f.getArgument(2);
    Value own = b.stack(contextBytes), err = b.stack(8);
    b.store(b.i64(0), err);
    LLVM::MemcpyOp::create(b, own, b.loadPtr(block, 8 * FirstPointer), b.i64(contextBytes),
                           /*isVolatile=*/false);
    b.store(err, own, 8 * Err);
    Value chunks = b.loadI64(block, 8 * Chunks), units = b.i64(sides.size());
    Value from = LLVM::UDivOp::create(b, b.mul(begin, units), chunks);
    Value to = LLVM::UDivOp::create(b, b.mul(end, units), chunks);
    Block *head = b.block(), *body = b.block(), *next = b.block(), *bad = b.block(), *after = b.block();
    LLVM::BrOp::create(b, ValueRange(from), head);
    b.setInsertionPointToEnd(head);
    Value side = head->addArgument(i64, b.getLoc());
    b.condBranch(b.compare(LLVM::ICmpPredicate::slt, side, to), body, after);
    b.setInsertionPointToEnd(body);
    b.store(b.offset(b.loadPtr(block, 8 * ScratchBase), b.mul(side, b.i64(sideScratch(ops)))), own,
            8 * Scratch);
    Value code = next->addArgument(i32, b.getLoc());
    SmallVector<Block *> calls;
    SmallVector<APInt> numbers;
    for (size_t k = 0; k < sides.size(); ++k) {
      calls.push_back(b.block());
      if (k > 0)
        numbers.push_back(APInt(64, k));
    }
    SmallVector<ValueRange> none(numbers.size());
    LLVM::SwitchOp::create(b, side, calls[0], ValueRange(), ArrayRef<APInt>(numbers),
                           BlockRange(ArrayRef<Block *>(calls).drop_front()), ArrayRef<ValueRange>(none));
    for (auto [call, callee] : llvm::zip(calls, sides)) {
      b.setInsertionPointToEnd(call);
      LLVM::BrOp::create(b, ValueRange(b.call(callee, i32, {own})), next);
    }
    b.setInsertionPointToEnd(next);
    Value following = b.add(side, b.i64(1));
    LLVM::CondBrOp::create(b, b.compare(LLVM::ICmpPredicate::eq, code, b.i32(0)), head, ValueRange(following),
                           bad, ValueRange());
    b.setInsertionPointToEnd(bad);
    LLVM::AtomicRMWOp::create(b, LLVM::AtomicBinOp::umax, b.loadPtr(block, 8 * ErrPtr),
                              LLVM::ZExtOp::create(b, i64, code), LLVM::AtomicOrdering::monotonic);
    b.branch(after);
    b.setInsertionPointToEnd(after);
    b.ret();
  }

  ensureHelpers();
  Value block = b.stack(8 * (FirstPointer + 1)), failure = b.stack(8);
  b.store(b.i64(0), failure);
  b.store(b.i64(sides.size()), block, 8 * Units);
  b.store(b.i64(0), block, 8 * LeastUnits);
  b.store(slot(Scratch, ptr), block, 8 * ScratchBase);
  b.store(b.i64(0), block, 8 * ScratchStride);
  b.store(failure, block, 8 * ErrPtr);
  b.store(ctx, block, 8 * FirstPointer);
  returnIfNot0(b.call("lathe_dispatch", i32, {ctx, LLVM::AddressOfOp::create(b, ptr, name), block}));
  returnIfNot0(LLVM::TruncOp::create(b, i32, b.loadI64(failure)));
}

} // namespace lathe::lower
