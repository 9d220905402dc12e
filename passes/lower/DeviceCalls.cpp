// Entries whose kernels are launched on a device. The functions stay what they are for a CPU: the context's pointers are
// addresses of the device, a call of a kernel becomes a launch, a copy one within the device. Around them, run() takes memory
// from the runtime, brings sizes, inputs and variables there, and outputs and variables back at the end. What the host itself
// must know (predicates, sizes that depend on data) is read back where it is needed, through pinned memory. Whether a kernel
// failed is seen in its cell, at the next of these reads, at the end, or before state changes.
#include "passes/lower/FunctionLowering.h"
#include "dialects/hlo/Loops.h"
#include "runtime/abi/cuda_abi.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace lathe::lower {

/// How many threads share the units of a kernel whose calls have scratch, and how many bytes of it they may have together.
constexpr int64_t mostScratchThreads = 1024, mostScratchBytes = int64_t(1) << 28;

static LLVM::LLVMFuncOp declare(ModuleOp module, MainBuilder &b, StringRef name, Type result, TypeRange args) {
  if (auto known = module.lookupSymbol<LLVM::LLVMFuncOp>(name))
    return known;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(module.getBody());
  return LLVM::LLVMFuncOp::create(b, name, LLVM::LLVMFunctionType::get(result, llvm::to_vector(args)));
}

void FunctionLowering::device(StringRef name, ArrayRef<Value> args) {
  const std::string callee = ("lathe_cuda_" + name + "_2").str();
  declare(state.output, b, callee, b.getI32Type(), TypeRange(ValueRange(args)));
  returnIfNot0(b.call(callee, b.getI32Type(), args));
}

Value FunctionLowering::onHost(Value pointer, int64_t bytes) {
  if (!launches())
    return pointer;
  Value host = b.offset(b.loadPtr(ctx, 8 * deviceSlot(Host)), flagOffset());
  state.result.hostBytes = std::max(state.result.hostBytes, flagOffset() + 8);
  device("read", {deviceCall(), host, pointer, b.i64(bytes)});
  unchecked = false;
  return host;
}

// An op that failed must not be followed by changes of variables: on a CPU the run is over by then.
void FunctionLowering::checkBeforeChange(const Buffer &buffer) {
  if (launches() && buffer.kind == Buffer::Variable)
    checkCells();
}

void FunctionLowering::checkCells() {
  if (unchecked)
    device("check", {deviceCall()});
  unchecked = false;
}

// More turns than this are not put into a stream without a look at what became of the first ones.
constexpr int64_t mostTrips = 4096;

std::optional<int64_t> FunctionLowering::tripsWithoutWaiting(Operation *op) {
  auto trips = op->getAttrOfType<IntegerAttr>(hlo::tripsAttrName);
  if (!launches() || !trips || trips.getInt() > mostTrips)
    return std::nullopt;
  // what the condition does beside deciding must happen: its failures have cells, a size is known from there on
  bool decides = true;
  op->getRegion(0).walk([&](Operation *inner) {
    decides &= !isControlFlow(inner) && (!state.kernels.has(inner) ||
                                         (!state.kernels.infoOf(inner).mayFail && !state.kernels.infoOf(inner).writesSizes));
  });
  return decides ? std::optional(trips.getInt()) : std::nullopt;
}

// The host counts: all turns are in the stream before the first has run.
void FunctionLowering::emitCountedLoop(Operation *op, int64_t trips) {
  Block &bodyRegion = op->getRegion(1).front();
  Block *cond = b.block(), *body = b.block(), *after = b.block();
  Value turn = b.stack(8);
  b.store(b.i64(0), turn, 0);
  b.branch(cond);
  b.setInsertionPointToEnd(cond);
  unchecked |= countCells() > 0; // as the body may have left it
  b.condBranch(b.compare(LLVM::ICmpPredicate::slt, b.loadI64(turn), b.i64(trips)), body, after);
  b.setInsertionPointToEnd(body);
  emitOps(bodyRegion);
  emitCopies(bodyRegion.getTerminator());
  b.store(b.add(b.loadI64(turn), b.i64(1)), turn, 0);
  b.branch(cond);
  b.setInsertionPointToEnd(after);
}

int64_t FunctionLowering::countCells() {
  if (numCells)
    return *numCells;
  int64_t n = 0;
  func.walk([&](Operation *op) {
    n += state.kernels.has(op) && (op->getParentOp() == func || isControlFlow(op->getParentOp())) && state.kernels.infoOf(op).mayFail;
  });
  numCells = n;
  return n;
}

// The most pointers that a call takes in a table, 0 when none does.
int64_t FunctionLowering::tableSize() {
  int64_t most = 0;
  func.walk([&](Operation *op) {
    if (!state.kernels.has(op) || (op->getParentOp() != func && !isControlFlow(op->getParentOp())))
      return;
    int64_t n = op->getNumOperands() + op->getNumResults();
    most = n > LATHE_CUDA_MOST_POINTERS ? std::max(most, n) : most;
  });
  return most;
}

// Fills the table of pointers. Each call has a place of its own in pinned memory, since the copy runs later; a call that is
// repeated writes the same values there.
Value FunctionLowering::emitTable(ArrayRef<Value> pointers) {
  if (!tables)
    tables = flagOffset() + 8;
  Value host = b.offset(b.loadPtr(ctx, 8 * deviceSlot(Host)), tables), there = b.loadPtr(ctx, 8 * deviceSlot(Table));
  for (auto [i, p] : llvm::enumerate(pointers))
    b.store(p, host, 8 * i);
  device("upload", {deviceCall(), there, host, b.i64(8 * pointers.size())});
  tables += 8 * int64_t(pointers.size());
  state.result.hostBytes = std::max(state.result.hostBytes, tables);
  return there;
}

// The sizes pass through pinned memory: the caller's may change before a run that was left in a stream begins.
void FunctionLowering::moveSizes(bool toDevice) {
  const int64_t bytes = 8 * int64_t(state.result.symbols.size());
  if (!bytes)
    return;
  state.result.hostBytes = std::max(state.result.hostBytes, bytes);
  Value host = b.loadPtr(ctx, 8 * deviceSlot(Host)), there = b.loadPtr(ctx, 8 * deviceSlot(DeviceSizes));
  if (toDevice) {
    LLVM::MemcpyOp::create(b, host, sizes(), b.i64(bytes), /*isVolatile=*/false);
    device("upload", {deviceCall(), there, host, b.i64(bytes)});
    return;
  }
  device("read", {deviceCall(), host, there, b.i64(bytes)});
  LLVM::MemcpyOp::create(b, sizes(), host, b.i64(bytes), /*isVolatile=*/false);
  unchecked = false;
}

Value FunctionLowering::onHost(StringRef bytes) {
  std::string name = "lathe_element_" + llvm::toHex(bytes);
  if (!state.output.lookupSymbol(name)) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(state.output.getBody());
    LLVM::GlobalOp::create(b, LLVM::LLVMArrayType::get(b.getI8Type(), bytes.size()), /*isConstant=*/true, LLVM::Linkage::Internal,
                           name, b.getStringAttr(bytes), /*alignment=*/16);
  }
  return LLVM::AddressOfOp::create(b, b.ptrType(), name);
}

// As much as any number of threads that emitLaunch settles on takes.
Value FunctionLowering::deviceScratch(Value scratch, Value units) {
  Value stride = b.alignTo64(scratch), threads = b.min(units, b.i64(mostScratchThreads));
  return b.min(b.mul(threads, stride), b.max(stride, b.i64(mostScratchBytes)));
}

// For all kernels that have scratch.
Value FunctionLowering::deviceScratch(Value sizes) {
  llvm::SetVector<std::pair<AffineExpr, AffineExpr>> seen;
  func.walk([&](Operation *op) {
    if (!state.kernels.has(op) || (op->getParentOp() != func && !isControlFlow(op->getParentOp())))
      return;
    const KernelInfo &info = state.kernels.infoOf(op);
    if (state.result.launches[state.kernels.numberOf(op)].hasScratch)
      seen.insert({info.scratch, info.extent});
  });
  Value most = b.i64(0);
  for (auto [scratch, extent] : seen)
    most = b.max(most, deviceScratch(atMost(scratch, sizes), atMost(extent, sizes)));
  return most;
}

// Behind arena and scratch: the sizes, the cells of errors, a table of pointers, then inputs, outputs and variables. `places` gets where they begin.
Value FunctionLowering::deviceLayout(Value sizes, Value ctx, SmallVectorImpl<Value> *places) {
  Value at = layout(sizes, b.i64(1), ctx);
  auto place = [&](Value bytes) {
    at = b.alignTo64(at);
    if (places)
      places->push_back(at);
    at = b.add(at, bytes);
  };
  place(b.i64(8 * std::max<int64_t>(1, state.result.symbols.size())));
  place(b.i64(8 * std::max<int64_t>(1, countCells())));
  place(b.i64(8 * tableSize()));
  const EntryDesc &desc = state.result.entries[entry];
  auto tensor = [&](const TensorDesc &t) {
    Value bytes = b.i64(t.elementSize);
    for (AffineExpr e : t.dims)
      bytes = b.mul(bytes, atMost(e, sizes));
    place(bytes);
  };
  for (const auto *list : {&desc.inputs, &desc.outputs})
    for (const TensorDesc &t : *list)
      tensor(t);
  for (const VariableDesc &v : state.result.variables)
    tensor(v.tensor);
  return b.alignTo64(at);
}

// i64 lathe_device_workspace<k>(sizes): what a run takes of the device's memory; -1 where the sizes are out of range.
void FunctionLowering::emitDeviceWorkspaceFunction() {
  auto f = b.function(state.output, "lathe_device_workspace" + std::to_string(entry), b.getI64Type(), {b.ptrType()});
  Value bounded = checkedSizes(f.getArgument(0));
  b.ret(deviceLayout(bounded, Value(), nullptr));
}

void FunctionLowering::emitDeviceRun(Value bounded) {
  const std::string body = "lathe_body" + std::to_string(entry);
  {
    OpBuilder::InsertionGuard guard(b);
    Value outer = ctx;
    emitDeviceBody(body);
    ctx = outer;
  }
  const EntryDesc &desc = state.result.entries[entry];
  SmallVector<Value> places;
  // the arena's address is not known yet: where scratch begins is noted from 0
  b.store(b.null(), ctx, 8 * Workspace);
  Value bytes = deviceLayout(bounded, ctx, &places);
  if (state.options.separateBuffers)
    bytes = b.i64(0); // the body takes a piece for each
  Value frame = b.stack(sizeof(lathe_cuda_frame));
  const Type ptr = b.ptrType(), i32 = b.getI32Type();
  Value module = LLVM::AddressOfOp::create(b, ptr, deviceModule);
  declare(state.output, b, "lathe_cuda_begin_2", i32, {ptr, ptr, ptr, b.getI64Type(), ptr});
  returnIfNot0(b.call("lathe_cuda_begin_2", i32, {module, slot(Args, ptr), slot(Constants, ptr), bytes, frame}));
  Value base = b.loadPtr(frame, offsetof(lathe_cuda_frame, memory));
  Value scratch = LLVM::PtrToIntOp::create(b, b.getI64Type(), slot(Scratch, ptr));
  b.store(base, ctx, 8 * Workspace);
  b.store(b.offset(base, scratch), ctx, 8 * Scratch);
  b.store(b.loadPtr(frame, offsetof(lathe_cuda_frame, constants)), ctx, 8 * Constants);
  Value call = b.loadPtr(frame, offsetof(lathe_cuda_frame, call));
  b.store(call, ctx, 8 * deviceSlot(Call));
  b.store(b.loadPtr(frame, offsetof(lathe_cuda_frame, host)), ctx, 8 * deviceSlot(Host));
  b.store(b.offset(base, places[0]), ctx, 8 * deviceSlot(DeviceSizes));
  b.store(b.offset(base, places[1]), ctx, 8 * Err);
  b.store(b.offset(base, places[2]), ctx, 8 * deviceSlot(Table));
  size_t next = 3;
  auto table = [&](Slot s, size_t count) {
    Value pointers = b.stack(8 * std::max<size_t>(count, 1));
    for (size_t i = 0; i < count; ++i)
      b.store(b.offset(base, places[next++]), pointers, 8 * i);
    b.store(pointers, ctx, 8 * s);
  };
  table(Inputs, desc.inputs.size());
  table(Outputs, desc.outputs.size());
  table(Variables, state.result.variables.size());

  Value code = b.call(body, i32, {ctx});
  declare(state.output, b, "lathe_cuda_end_2", i32, {ptr, i32});
  b.ret(b.call("lathe_cuda_end_2", i32, {call, code}));
}

// Memory of its own for whatever has a place, and for each constant that is used.
void FunctionLowering::emitDeviceBlocks() {
  const EntryDesc &desc = state.result.entries[entry];
  Value bounded = boundedSizes(sizes());
  auto place = [&](Value slotAddress, Value bytes) { device("allocate", {deviceCall(), slotAddress, bytes}); };
  place(b.offset(ctx, 8 * deviceSlot(DeviceSizes)), b.i64(8 * state.result.symbols.size()));
  place(b.offset(ctx, 8 * Err), b.i64(8 * std::max<int64_t>(1, countCells())));
  place(b.offset(ctx, 8 * deviceSlot(Table)), b.i64(8 * tableSize()));
  auto table = [&](Slot s, int64_t i, const TensorDesc &t) {
    Value bytes = b.i64(t.elementSize);
    for (AffineExpr e : t.dims)
      bytes = b.mul(bytes, b.expr(e, bounded));
    place(b.offset(slot(s, b.ptrType()), 8 * i), bytes);
  };
  for (auto [i, t] : llvm::enumerate(desc.inputs))
    table(Inputs, i, t);
  for (auto [i, t] : llvm::enumerate(desc.outputs))
    table(Outputs, i, t);
  for (auto [i, v] : llvm::enumerate(state.result.variables))
    table(Variables, i, v.tensor);
  SmallVector<std::pair<int64_t, const Buffer *>> bySlot;
  for (auto [buffer, at] : blocks)
    bySlot.push_back({at, buffer});
  llvm::sort(bySlot);
  for (auto [at, buffer] : bySlot) {
    Value bytes = b.expr(buffer->bytes, bounded);
    place(b.offset(ctx, 8 * at), bytes);
    if (buffer->kind == Buffer::Constant)
      device("copy", {deviceCall(), b.loadPtr(ctx, 8 * at), b.offset(slot(Constants, b.ptrType()), buffer->index), bytes});
  }
  b.store(b.null(), ctx, 8 * Scratch);
}

// i32 lathe_body<k>(ctx): the uploads, the ops, the downloads.
void FunctionLowering::emitDeviceBody(StringRef name) {
  auto f = b.function(state.output, name, b.getI32Type(), {b.ptrType()});
  f.setNoInline(true);
  ctx = f.getArgument(0);
  const EntryDesc &desc = state.result.entries[entry];
  Value call = deviceCall();
  if (state.options.separateBuffers)
    emitDeviceBlocks();
  enum List { InputList, OutputList, VariableList };
  auto move = [&](StringRef what, List list, int64_t i, Value bytes) {
    const Slot table[] = {Inputs, Outputs, Variables};
    device(what, {call, b.i32(list), b.i32(i), b.offset(slot(table[list], b.ptrType()), 8 * i), bytes});
  };
  auto bytesOf = [&](Type type) { return b.expr(tensorBytes(type), sizes()); };

  moveSizes(/*toDevice=*/true);
  const int64_t cells = countCells();
  const std::string cellSites = "lathe_cells" + std::to_string(entry);
  if (cells) {
    device("cells", {call, slot(Err, b.ptrType()), LLVM::AddressOfOp::create(b, b.ptrType(), cellSites), b.i32(cells)});
    state.result.cells = std::max(state.result.cells, cells);
  }
  int64_t input = 0;
  for (BlockArgument argument : func.getArguments()) {
    if (func.getArgAttr(argument.getArgNumber(), "hlo.variable"))
      continue;
    if (!argument.use_empty())
      move("bind", InputList, input, bytesOf(argument.getType()));
    ++input;
  }
  auto variables = [&](bool written) { // numbers of those that the entry reads or writes
    SmallVector<int64_t> numbers;
    for (auto [k, v] : llvm::enumerate(state.result.variables)) {
      bool used = false;
      for (unsigned i = 0; i < func.getNumResults(); ++i)
        if (auto attr = func.getResultAttrOfType<StringAttr>(i, "hlo.variable"))
          used |= attr.getValue() == v.tensor.name;
      for (unsigned i = 0; !written && i < func.getNumArguments(); ++i)
        if (auto attr = func.getArgAttrOfType<StringAttr>(i, "hlo.variable"))
          used |= attr.getValue() == v.tensor.name;
      if (used)
        numbers.push_back(k);
    }
    return numbers;
  };
  auto variableBytes = [&](int64_t k) {
    int64_t n = state.result.variables[k].tensor.elementSize;
    for (AffineExpr e : state.result.variables[k].tensor.dims)
      n *= cast<AffineConstantExpr>(e).getValue();
    return b.i64(n);
  };
  auto outputBytes = [&](const TensorDesc &t, Value at) {
    Value bytes = b.i64(t.elementSize);
    for (AffineExpr e : t.dims)
      bytes = b.mul(bytes, b.expr(e, at));
    return bytes;
  };
  for (int64_t k : variables(false))
    move("bind", VariableList, k, variableBytes(k));
  for (auto [i, t] : llvm::enumerate(desc.outputs))
    move("bind", OutputList, i, outputBytes(t, sizes()));

  emitOps(func.front());
  emitCopies(func.front().getTerminator());

  // sizes that depend on data are known by now: no more is copied than was written
  for (auto [i, t] : llvm::enumerate(desc.outputs))
    move("store", OutputList, i, outputBytes(t, sizes()));
  if (SmallVector<int64_t> written = variables(true); !written.empty()) {
    checkCells();
    for (int64_t k : written)
      move("store", VariableList, k, variableBytes(k));
  }
  b.ret(b.i32(0));

  assert(int64_t(cellsOfSites.size()) == cells && "an op that can fail was written twice or never");
  if (!cells)
    return;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(state.output.getBody());
  auto type = RankedTensorType::get({cells}, b.getI32Type());
  LLVM::GlobalOp::create(b, LLVM::LLVMArrayType::get(b.getI32Type(), cells), /*isConstant=*/true, LLVM::Linkage::Internal, cellSites,
                         DenseIntElementsAttr::get(type, ArrayRef<int32_t>(cellsOfSites)), /*alignment=*/4);
}

void FunctionLowering::emitLaunch(Operation *op, const KernelInfo &info, ArrayRef<Value> pointers, Value units) {
  const int number = state.kernels.numberOf(op);
  const codegen::Launch &launch = state.result.launches[number];
  Value threads = units, stride = b.i64(0);
  if (launch.hasScratch) {
    stride = b.alignTo64(b.expr(info.scratch, sizes()));
    threads = b.min(threads, b.i64(mostScratchThreads));
    Value fit = b.max(b.floorDiv(b.i64(mostScratchBytes), b.max(stride, b.i64(1))), b.i64(1));
    threads = b.min(threads, fit);
  }
  SmallVector<Value> parameters(pointers);
  if (pointers.size() > LATHE_CUDA_MOST_POINTERS)
    parameters = {emitTable(pointers)};
  Value deviceSizes = b.loadPtr(ctx, 8 * deviceSlot(DeviceSizes));
  Value err = slot(Err, b.ptrType());
  if (info.mayFail) {
    err = b.offset(err, 8 * int64_t(cellsOfSites.size()));
    cellsOfSites.push_back(siteOf(op));
    unchecked = true;
  }
  parameters.append({slot(Scratch, b.ptrType()), deviceSizes, err, units, threads, stride});
  Value block = b.stack(8 * parameters.size());
  for (auto [i, p] : llvm::enumerate(parameters))
    b.store(p, block, 8 * i);
  Value blocks = b.floorDiv(b.add(threads, b.i64(launch.threads - 1)), b.i64(launch.threads));
  device("launch", {deviceCall(), b.i32(number), blocks, block, b.i32(parameters.size())});
  if (info.writesSizes)
    moveSizes(/*toDevice=*/false);
}

} // namespace lathe::lower
