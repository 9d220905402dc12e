// Main code of an entry. All state is reached through a context in memory (slots of 8 bytes), so that any stretch of
// ops can become a function of its own: no function grows with the model.
#include "passes/lower/FunctionLowering.h"
#include "dialects/graph/Types.h"
#include "dialects/hlo/Hlo.h"
#include "passes/lower/SideBySide.h"
#include "runtime/abi/module_abi.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace lathe::lower {

constexpr size_t opsPerPiece = 200;

FunctionLowering::FunctionLowering(ModuleState &state, func::FuncOp func, int entry, const MemoryPlan &plan)
    : state(state), func(func), entry(entry), plan(plan), b(UnknownLoc::get(func.getContext()), func.getContext()) {}

void FunctionLowering::run() {
  emitWorkspaceFunction();
  if (launches())
    emitDeviceWorkspaceFunction();
  emitBoundFunction();
  emitDimsFunction();
  emitRunFunction();
}

Value FunctionLowering::slot(Slot s, Type type) { return b.load(type, ctx, 8 * s); }

Value FunctionLowering::pointer(const Buffer &buffer) {
  if (auto block = blocks.find(&buffer); block != blocks.end())
    return b.loadPtr(ctx, 8 * block->second);
  switch (buffer.kind) {
  case Buffer::Input:
    return b.loadPtr(slot(Inputs, b.ptrType()), 8 * buffer.index);
  case Buffer::Output:
    return b.loadPtr(slot(Outputs, b.ptrType()), 8 * buffer.index);
  case Buffer::Variable:
    return b.loadPtr(slot(Variables, b.ptrType()), 8 * buffer.index);
  case Buffer::Constant:
    return b.offset(slot(Constants, b.ptrType()), buffer.index);
  case Buffer::Fill:
    return b.null();
  case Buffer::Arena:
    break;
  }
  Value base = slot(Workspace, b.ptrType());
  if (buffer.group <= 0)
    return b.offset(base, buffer.offset);
  int64_t first = 8 * (FirstGroup + 2 * (buffer.group - 1));
  Value at = b.loadI64(ctx, first);
  if (buffer.offset)
    at = b.add(at, b.mul(b.loadI64(ctx, first + 8), b.i64(buffer.offset)));
  return b.offset(base, at);
}

int FunctionLowering::siteOf(Operation *op) {
  SiteDesc site;
  site.node = graph::getNodeName(op->getLoc()).str();
  site.op = graph::getNodeOp(op->getLoc()).str();
  if (site.op.empty())
    site.op = op->getName().stripDialect().str();
  // ops that check say what and where
  if (auto message = op->getAttrOfType<StringAttr>("message"); message && isa<hlo::CheckOp, hlo::AssumeShapeOp>(op))
    site.message = message.getValue().str();
  if (auto node = op->getAttrOfType<StringAttr>("node"); node && !node.getValue().empty())
    site.node = node.getValue().str();
  state.result.sites.push_back(std::move(site));
  return static_cast<int>(state.result.sites.size()) - 1;
}

void FunctionLowering::failIf(Value bad, int site, Value failure) {
  Block *fail = b.block(), *next = b.block();
  b.condBranch(bad, fail, next, /*unlikelyTrue=*/true);
  b.setInsertionPointToEnd(fail);
  Value code = LLVM::TruncOp::create(b, b.getI32Type(), failure);
  b.ret(b.call("lathe_fail", b.getI32Type(), {slot(Args, b.ptrType()), b.i32(site), code}));
  b.setInsertionPointToEnd(next);
}

void FunctionLowering::returnIfNot0(Value code) {
  Block *fail = b.block(), *next = b.block();
  b.condBranch(b.compare(LLVM::ICmpPredicate::ne, code, b.i32(0)), fail, next, /*unlikelyTrue=*/true);
  b.setInsertionPointToEnd(fail);
  b.ret(code);
  b.setInsertionPointToEnd(next);
}

void FunctionLowering::emitRunFunction() {
  Type i32 = b.getI32Type(), ptr = b.ptrType();
  auto f = b.function(state.output, "lathe_run" + std::to_string(entry), i32, {ptr});
  Value args = f.getArgument(0);
  if (state.options.separateBuffers)
    for (int i = 0; i < plan.numBuffers(); ++i) {
      const Buffer &buffer = plan.buffer(i);
      if ((buffer.kind == Buffer::Arena || buffer.kind == Buffer::Constant) && !buffer.spans.empty())
        blocks.try_emplace(&buffer, firstBlockSlot() + int64_t(blocks.size()));
    }
  ctx = b.stack(8 * (firstBlockSlot() + int64_t(blocks.size()) + (launches() ? NumDeviceSlots : 0)));
  b.store(args, ctx, 8 * Args);
  // a caller built against an older layout passes fewer fields; all of these exist since version 1
  Value size = b.load(i32, args, offsetof(lathe_run_args, struct_size));
  Value tooShort = b.compare(LLVM::ICmpPredicate::ult, size, b.i32(sizeof(lathe_run_args)));
  returnIfNot0(LLVM::SelectOp::create(b, tooShort, b.i32(LATHE_INVALID_ARGUMENT), b.i32(0)));
  auto field = [&](Slot s, size_t offset) { b.store(b.loadPtr(args, offset), ctx, 8 * s); };
  field(Inputs, offsetof(lathe_run_args, inputs));
  field(Outputs, offsetof(lathe_run_args, outputs));
  field(Variables, offsetof(lathe_run_args, variables));
  field(Workspace, offsetof(lathe_run_args, workspace));
  field(Sizes, offsetof(lathe_run_args, sizes));
  Value err = b.stack(8);
  b.store(b.i64(0), err);
  b.store(err, ctx, 8 * Err);
  Value threads = LLVM::SExtOp::create(b, b.getI64Type(), b.load(i32, args, offsetof(lathe_run_args, threads)));
  threads = b.max(threads, b.i64(1));
  b.store(threads, ctx, 8 * Threads);

  Value constants = LLVM::AddressOfOp::create(b, ptr, constantsSymbol);
  if (state.options.externalWeights && state.result.pool.size() > 0) {
    constants = b.loadPtr(constants);
    failIf(b.compare(LLVM::ICmpPredicate::eq, constants, b.null()), -1, b.i64(callWeights));
  }
  b.store(constants, ctx, 8 * Constants);

  if (state.options.amx) {
    Value granted = b.load(i32, LLVM::AddressOfOp::create(b, ptr, amxGranted), 0);
    failIf(b.compare(LLVM::ICmpPredicate::eq, granted, b.i32(0)), -1, b.i64(callAmx));
  }

  auto not1 = [&](Value v) -> Value {
    return LLVM::XOrOp::create(b, v, LLVM::ConstantOp::create(b, b.getI1Type(), b.getBoolAttr(true)));
  };
  if (Value ok = sizesInRange(sizes()))
    failIf(not1(ok), -1, b.i64(callSizes));
  if (auto checks = func->getAttrOfType<ArrayAttr>("hlo.size_checks"))
    for (auto check : checks.getAsRange<DictionaryAttr>()) {
      auto lhs = check.getAs<AffineMapAttr>("lhs"), rhs = check.getAs<AffineMapAttr>("rhs");
      auto node = check.getAs<StringAttr>("node");
      if (!lhs || !rhs)
        continue;
      SiteDesc site;
      site.node = node ? node.getValue().str() : "";
      auto op = check.getAs<StringAttr>("op");
      site.op = op ? op.getValue().str() : "size check";
      state.result.sites.push_back(site);
      Value x = b.expr(lhs.getValue().getResult(0), sizes()), y = b.expr(rhs.getValue().getResult(0), sizes());
      failIf(b.compare(LLVM::ICmpPredicate::ne, x, y), static_cast<int>(state.result.sites.size()) - 1,
             b.i64(siteSizeCheck));
    }
  Value bounded = boundedSizes(sizes());
  if (Value over = layoutOverflows(bounded))
    failIf(over, -1, b.i64(callSizes));
  if (launches())
    return emitDeviceRun(bounded);
  Value need = layout(bounded, threads, ctx);
  Value have = b.loadI64(args, offsetof(lathe_run_args, workspace_size));
  failIf(b.compare(LLVM::ICmpPredicate::slt, have, need), -1, b.i64(callWorkspace));

  if (state.options.separateBuffers)
    return emitSeparateRun(bounded);
  emitOps(func.front());
  emitCopies(func.front().getTerminator());
  b.ret(b.i32(0));
}

static bool sameGroup(Operation *a, Operation *b) {
  std::optional<Side> x = sideOf(a), y = sideOf(b);
  return x && y && x->group == y->group;
}

// Ops of a block without its terminator; in pieces when there are many.
void FunctionLowering::emitOps(Block &block) {
  SmallVector<Operation *> ops;
  for (Operation &op : block.without_terminator())
    if ((!isView(&op) || isa<hlo::AssumeShapeOp>(op)) && !isJoin(&op) &&
        (!isa<hlo::ConstantOp>(op) || plan.fillAt(&op)))
      ops.push_back(&op);
  if (ops.size() <= opsPerPiece + opsPerPiece / 2)
    return emitOps(ops);
  for (size_t i = 0, end; i < ops.size(); i = end) {
    end = std::min(i + opsPerPiece, ops.size());
    while (end < ops.size() && sameGroup(ops[end - 1], ops[end]))
      ++end;
    std::string name = "lathe_run" + std::to_string(entry) + "_" + std::to_string(pieces++);
    emitFunction(name, ArrayRef<Operation *>(ops).slice(i, end - i));
    returnIfNot0(b.call(name, b.getI32Type(), {ctx}));
  }
}

void FunctionLowering::emitOps(ArrayRef<Operation *> ops) {
  for (size_t i = 0, end; i < ops.size(); i = end) {
    end = i + 1;
    if (inSide || !sideOf(ops[i])) {
      emitOp(ops[i]);
      continue;
    }
    while (end < ops.size() && sameGroup(ops[i], ops[end]))
      ++end;
    emitGroup(ops.slice(i, end - i));
  }
}

void FunctionLowering::emitFunction(StringRef name, ArrayRef<Operation *> ops) {
  OpBuilder::InsertionGuard guard(b);
  Value outer = ctx;
  auto f = b.function(state.output, name, b.getI32Type(), {b.ptrType()});
  f.setNoInline(true);
  ctx = f.getArgument(0);
  emitOps(ops);
  b.ret(b.i32(0));
  ctx = outer;
}

void FunctionLowering::emitOp(Operation *op) {
  if (isa<hlo::WhileOp>(op))
    return emitWhile(op);
  if (isControlFlow(op))
    return emitBranches(op);
  if (isa<hlo::AssumeShapeOp>(op))
    return emitShapeCheck(op);
  if (const std::string *element = plan.fillAt(op)) {
    checkBeforeChange(plan.of(op->getResult(0)));
    return emitFill(pointer(op->getResult(0)), *element, tensorBytes(op->getResult(0).getType()));
  }
  emitCopies(op);
  emitKernelCall(op);
}

void FunctionLowering::emitShapeCheck(Operation *op) {
  auto from = hlo::getDims(cast<RankedTensorType>(op->getOperand(0).getType()));
  auto to = hlo::getDims(cast<RankedTensorType>(op->getResult(0).getType()));
  int site = -1;
  for (auto [x, y] : llvm::zip(from, to)) {
    if (hlo::equalDims(x, y))
      continue;
    if (site < 0)
      site = siteOf(op);
    failIf(b.compare(LLVM::ICmpPredicate::ne, b.expr(x, sizes()), b.expr(y, sizes())), site, b.i64(siteSizeCheck));
  }
}

void FunctionLowering::emitCopies(Operation *op) {
  for (const Copy &c : plan.copiesAt(op)) {
    const Buffer &from = plan.buffer(c.from);
    Value to = pointer(plan.buffer(c.to));
    checkBeforeChange(plan.buffer(c.to));
    if (from.kind == Buffer::Fill) {
      emitFill(to, from.fill, c.bytes);
      continue;
    }
    if (launches())
      device("copy", {deviceCall(), to, pointer(from), b.expr(c.bytes, sizes())});
    else
      LLVM::MemcpyOp::create(b, to, pointer(from), b.expr(c.bytes, sizes()), /*isVolatile=*/false);
  }
}

void FunctionLowering::emitFill(Value to, StringRef element, AffineExpr bytes) {
  Value n = b.expr(bytes, sizes());
  if (launches())
    return device("fill", {deviceCall(), to, onHost(element), b.i64(element.size()), n});
  bool same = llvm::all_of(element, [&](char c) { return c == element[0]; });
  if (same) {
    Value byte = LLVM::ConstantOp::create(b, b.getI8Type(), b.getI8IntegerAttr(element[0]));
    LLVM::MemsetOp::create(b, to, byte, n, /*isVolatile=*/false);
    return;
  }
  uint64_t bits = 0;
  memcpy(&bits, element.data(), element.size());
  Type type = b.getIntegerType(8 * element.size());
  Value value = LLVM::ConstantOp::create(b, type, b.getIntegerAttr(type, bits));
  Block *head = b.block(), *body = b.block(), *after = b.block();
  Value zero = b.i64(0);
  LLVM::BrOp::create(b, ValueRange(zero), head);
  b.setInsertionPointToEnd(head);
  Value i = head->addArgument(b.getI64Type(), b.getLoc());
  b.condBranch(b.compare(LLVM::ICmpPredicate::slt, i, n), body, after);
  b.setInsertionPointToEnd(body);
  LLVM::StoreOp::create(b, value, b.offset(to, i), /*alignment=*/element.size());
  LLVM::BrOp::create(b, ValueRange(b.add(i, b.i64(element.size()))), head);
  b.setInsertionPointToEnd(after);
}

void FunctionLowering::emitTrace(int64_t step, int phase) {
  Value args = slot(Args, b.ptrType());
  Value fn = b.loadPtr(args, offsetof(lathe_run_args, trace));
  Block *call = b.block(), *next = b.block();
  b.condBranch(b.compare(LLVM::ICmpPredicate::ne, fn, b.null()), call, next);
  b.setInsertionPointToEnd(call);
  if (phase == 1 && launches()) // a kernel's time ends when it has ended; runs that nobody times are not held up
    device("check", {deviceCall()});
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()),
                                          {b.ptrType(), b.getI32Type(), b.getI32Type()});
  LLVM::CallOp::create(
      b, type, ValueRange{fn, b.loadPtr(args, offsetof(lathe_run_args, trace_ctx)), b.i32(step), b.i32(phase)});
  b.branch(next);
  b.setInsertionPointToEnd(next);
}

static std::string nodesOf(Operation *op) {
  llvm::SetVector<StringRef> names;
  op->getLoc()->walk([&](Location l) {
    if (auto name = dyn_cast<NameLoc>(l)) {
      names.insert(name.getName().getValue());
      return WalkResult::skip();
    }
    return WalkResult::advance();
  });
  return llvm::join(names.begin(), names.end(), ";");
}

void FunctionLowering::emitKernelCall(Operation *op) {
  KernelInfo &info = state.kernels.infoOf(op);
  ++state.result.kernelCalls;
  int64_t step = state.result.steps.size();
  if (state.options.profile) {
    StepDesc desc{entry, nodesOf(op), info.name};
    if (auto cost = op->getAttrOfType<DenseI64ArrayAttr>("kernel.cost"); cost && cost.size() == 3) {
      desc.flops = cost[0];
      desc.constantBytes = cost[1];
      desc.otherBytes = cost[2];
    }
    state.result.steps.push_back(std::move(desc));
    emitTrace(step, 0);
  }
  SmallVector<Value> pointers;
  for (Value v : op->getOperands())
    pointers.push_back(pointer(v));
  for (Value v : op->getResults()) {
    checkBeforeChange(plan.of(v));
    pointers.push_back(pointer(v));
  }
  Value units = b.expr(info.extent, sizes());
  if (state.options.separateBuffers)
    allocateScratch(info);
  if (launches()) {
    emitLaunch(op, info, pointers, units);
  } else if (isParallel(info)) {
    emitParallelCall(op, info, pointers, units);
  } else {
    SmallVector<Value> args = pointers;
    args.append({slot(Scratch, b.ptrType()), sizes(), slot(Err, b.ptrType()), b.i64(0), units});
    b.call(info.name, TypeRange(), args);
  }
  if (state.options.separateBuffers)
    release(b.offset(ctx, 8 * Scratch));
  if (state.options.profile)
    emitTrace(step, 1);
  if (info.mayFail && !launches()) {
    Value code = b.loadI64(slot(Err, b.ptrType()));
    failIf(b.compare(LLVM::ICmpPredicate::ne, code, b.i64(0)), siteOf(op), code);
  }
}

static Value loadPredicate(MainBuilder &b, Value pointer) { // bool is a byte
  return b.compare(LLVM::ICmpPredicate::ne, b.load(b.getI8Type(), pointer),
                   LLVM::ConstantOp::create(b, b.getI8Type(), b.getI8IntegerAttr(0)));
}

void FunctionLowering::emitWhile(Operation *op) {
  emitCopies(op);
  if (std::optional<int64_t> trips = tripsWithoutWaiting(op))
    return emitCountedLoop(op, *trips);
  Block &condRegion = op->getRegion(0).front(), &bodyRegion = op->getRegion(1).front();
  Block *cond = b.block(), *body = b.block(), *after = b.block();
  b.branch(cond);
  b.setInsertionPointToEnd(cond);
  unchecked |= launches() && countCells() > 0; // as the body may have left it
  emitOps(condRegion);
  b.condBranch(loadPredicate(b, onHost(pointer(condRegion.getTerminator()->getOperand(0)), 1)), body, after);
  b.setInsertionPointToEnd(body);
  emitOps(bodyRegion);
  emitCopies(bodyRegion.getTerminator());
  b.branch(cond);
  b.setInsertionPointToEnd(after);
}

void FunctionLowering::emitBranches(Operation *op) {
  Value selector = op->getOperand(0);
  Block *after = b.block();
  SmallVector<Block *> blocks;
  for (unsigned i = 0; i < op->getNumRegions(); ++i)
    blocks.push_back(b.block());
  if (isa<hlo::IfOp>(op)) {
    b.condBranch(loadPredicate(b, onHost(pointer(selector), 1)), blocks[0], blocks[1]);
  } else {
    Type type = b.getIntegerType(getElementTypeOrSelf(selector.getType()).getIntOrFloatBitWidth());
    Value index = b.load(type, onHost(pointer(selector), type.getIntOrFloatBitWidth() / 8));
    SmallVector<APInt> values;
    for (unsigned i = 0; i + 1 < blocks.size(); ++i)
      values.push_back(APInt(type.getIntOrFloatBitWidth(), i));
    SmallVector<ValueRange> none(values.size());
    LLVM::SwitchOp::create(b, index, blocks.back(), ValueRange(), ArrayRef<APInt>(values),
                           BlockRange(ArrayRef<Block *>(blocks).drop_back()), ArrayRef<ValueRange>(none));
  }
  const bool uncheckedBefore = unchecked;
  bool uncheckedAfter = false;
  for (unsigned i = 0; i < blocks.size(); ++i) {
    b.setInsertionPointToEnd(blocks[i]);
    Block &branch = op->getRegion(i).front();
    unchecked = uncheckedBefore;
    emitOps(branch);
    emitCopies(branch.getTerminator());
    uncheckedAfter |= unchecked;
    b.branch(after);
  }
  unchecked = uncheckedAfter;
  b.setInsertionPointToEnd(after);
}

} // namespace lathe::lower
