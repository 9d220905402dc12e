// Run-time sizes of an entry: range checks, bounds of data symbols, the layout of the workspace, dimensions.
#include "dialects/hlo/ShapeBounds.h"
#include "passes/lower/FunctionLowering.h"
#include "passes/lower/SideBySide.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace lathe::lower {

// Larger values could overflow the products of sizes.
constexpr int64_t largestSize = int64_t(1) << 31;
constexpr double largestBuffer = 1e15;

Value FunctionLowering::sizesInRange(Value sizes) {
  Value ok;
  for (auto [k, symbol] : llvm::enumerate(state.result.symbols)) {
    if (symbol.isData)
      continue;
    Value v = b.loadI64(sizes, 8 * k);
    // unsigned: negative values are large
    Value fits = b.compare(LLVM::ICmpPredicate::ule, v, b.i64(symbol.bound >= 0 ? symbol.bound : largestSize));
    ok = ok ? LLVM::AndOp::create(b, ok, fits).getResult() : fits;
  }
  return ok;
}

bool FunctionLowering::isData(unsigned symbol) const { return symbol < state.result.symbols.size() && state.result.symbols[symbol].isData; }

// The least and the largest value: of `n - count`, with a count from 0 to n, 0 and n.
std::pair<Value, Value> FunctionLowering::rangeOf(AffineExpr e, Value sizes) {
  if (auto s = dyn_cast<AffineSymbolExpr>(e); s && isData(s.getPosition()))
    return {b.i64(0), b.expr(e, sizes)};
  auto binary = dyn_cast<AffineBinaryOpExpr>(e);
  if (!binary || llvm::none_of(hlo::getSymbols(e), [&](unsigned symbol) { return isData(symbol); })) {
    Value v = b.expr(e, sizes);
    return {v, v};
  }
  auto [xLow, xHigh] = rangeOf(binary.getLHS(), sizes);
  auto [yLow, yHigh] = rangeOf(binary.getRHS(), sizes);
  Value zero = b.i64(0);
  auto divisor = dyn_cast<AffineConstantExpr>(binary.getRHS());
  switch (e.getKind()) {
  case AffineExprKind::Add:
    return {b.add(xLow, yLow), b.add(xHigh, yHigh)};
  case AffineExprKind::Mul: {
    Value p = b.mul(xLow, yLow), q = b.mul(xLow, yHigh), r = b.mul(xHigh, yLow), s = b.mul(xHigh, yHigh);
    return {b.min(b.min(p, q), b.min(r, s)), b.max(b.max(p, q), b.max(r, s))};
  }
  case AffineExprKind::FloorDiv:
    if (divisor && divisor.getValue() > 0)
      return {b.floorDiv(xLow, yLow), b.floorDiv(xHigh, yLow)};
    [[fallthrough]];
  case AffineExprKind::CeilDiv:
    // by 1 or more
    return {b.min(xLow, zero), b.max(xHigh, zero)};
  default:
    return {zero, b.max(yHigh, zero)};
  }
}

Value FunctionLowering::atMost(AffineExpr e, Value sizes) {
  Value most = hlo::growsWith(e, [&](unsigned symbol) { return isData(symbol); }) ? b.expr(e, sizes) : rangeOf(e, sizes).second;
  // a size that is found to be negative is refused where it is made, or is that of a branch that is not taken
  return hlo::isNonNegative(e) ? most : b.max(most, b.i64(0));
}

// A copy of the sizes in which data symbols have their largest values.
Value FunctionLowering::boundedSizes(Value sizes) {
  int64_t n = state.result.symbols.size();
  if (n == 0)
    return b.null();
  bool anyData = llvm::any_of(state.result.symbols, [](const SymbolDesc &s) { return s.isData; });
  if (!anyData)
    return sizes;
  Value copy = b.stack(8 * n);
  for (int64_t k = 0; k < n; ++k)
    if (!state.result.symbols[k].isData)
      b.store(b.loadI64(sizes, 8 * k), copy, 8 * k);
  for (int64_t k = 0; k < n; ++k)
    if (state.result.symbols[k].isData)
      b.store(atMost(state.bounds[k], copy), copy, 8 * k);
  return copy;
}

Value FunctionLowering::layoutOverflows(Value sizes) {
  Value bad;
  for (const ArenaGroup &g : plan.groups().drop_front()) {
    // what is taken away may be nothing
    AffineExpr most = hlo::withoutNegatives(g.unit);
    Value bytes = LLVM::FMulOp::create(
        b, b.exprAsDouble(most ? most : g.unit, sizes),
        LLVM::ConstantOp::create(b, b.getF64Type(), b.getF64FloatAttr(static_cast<double>(g.bytes))));
    Value limit = LLVM::ConstantOp::create(b, b.getF64Type(), b.getF64FloatAttr(largestBuffer));
    Value over = LLVM::FCmpOp::create(b, LLVM::FCmpPredicate::ogt, bytes, limit);
    bad = bad ? LLVM::OrOp::create(b, bad, over).getResult() : over;
  }
  return bad;
}

// Workspace: group 0 (static), the other groups one after the other, then scratch of the kernels. Returns the bytes;
// with a context, notes where the groups and the scratch begin.
Value FunctionLowering::layout(Value sizes, Value threads, Value ctx) {
  Value at = b.i64(plan.groups()[0].bytes);
  for (auto [g, group] : llvm::enumerate(plan.groups())) {
    if (g == 0)
      continue;
    Value unit = atMost(group.unit, sizes);
    if (ctx) {
      b.store(at, ctx, 8 * (FirstGroup + 2 * (g - 1)));
      b.store(unit, ctx, 8 * (FirstGroup + 2 * (g - 1) + 1));
    }
    at = b.add(at, b.mul(unit, b.i64(group.bytes)));
  }
  if (ctx)
    b.store(b.offset(b.loadPtr(ctx, 8 * Workspace), at), ctx, 8 * Scratch);
  return b.add(at, launches() ? deviceScratch(sizes) : scratchOfCalls(sizes, threads));
}

Value FunctionLowering::scratchOfCalls(Value sizes, Value threads) {
  llvm::SetVector<std::pair<AffineExpr, int>> seen;
  llvm::MapVector<int64_t, SmallVector<Operation *>> grouped;
  func.walk([&](Operation *op) {
    if (op->getParentOp() != func && !isControlFlow(op->getParentOp()))
      return;
    if (std::optional<Side> side = sideOf(op))
      grouped[side->group].push_back(op);
    if (!state.kernels.has(op) || enclosingSide(op))
      return;
    const KernelInfo &info = state.kernels.infoOf(op);
    seen.insert({info.scratch, isParallel(info)});
  });
  int64_t constant = 0, constantParallel = 0;
  for (auto &[group, ops] : grouped)
    constant = std::max(constant, (sideOf(ops.back())->number + 1) * sideScratch(ops));
  Value scratch;
  for (auto [e, parallel] : seen) {
    if (auto c = dyn_cast<AffineConstantExpr>(e)) {
      int64_t &most = parallel ? constantParallel : constant;
      most = std::max<int64_t>(most, llvm::alignTo(c.getValue(), 64));
      continue;
    }
    Value v = b.alignTo64(atMost(e, sizes));
    if (parallel)
      v = b.mul(v, threads);
    scratch = scratch ? b.max(scratch, v) : v;
  }
  state.result.scratchBytes = std::max(state.result.scratchBytes, std::max(constant, constantParallel));
  Value fixed = b.i64(constant);
  if (constantParallel)
    fixed = b.max(fixed, b.mul(threads, b.i64(constantParallel)));
  return scratch ? b.max(scratch, fixed) : fixed;
}

Value FunctionLowering::checkedSizes(Value sizes) {
  Block *bad = nullptr;
  auto require = [&](Value ok, bool inverted) {
    if (!ok)
      return;
    if (!bad) {
      OpBuilder::InsertionGuard guard(b);
      bad = b.block();
      b.setInsertionPointToEnd(bad);
      b.ret(b.i64(-1));
    }
    Block *next = b.block();
    b.condBranch(ok, inverted ? bad : next, inverted ? next : bad);
    b.setInsertionPointToEnd(next);
  };
  require(sizesInRange(sizes), false);
  Value bounded = boundedSizes(sizes);
  require(layoutOverflows(bounded), true);
  return bounded;
}

void FunctionLowering::emitWorkspaceFunction() {
  auto f = b.function(state.output, "lathe_workspace" + std::to_string(entry), b.getI64Type(),
                      {b.ptrType(), b.getI32Type()});
  Value bounded = checkedSizes(f.getArgument(0));
  Value threads = b.max(LLVM::SExtOp::create(b, b.getI64Type(), f.getArgument(1)), b.i64(1));
  // what a device needs is its own memory
  b.ret(launches() ? b.i64(0) : layout(bounded, threads, Value()));
}

void FunctionLowering::emitBoundFunction() {
  auto f = b.function(state.output, "lathe_bound" + std::to_string(entry),
                      LLVM::LLVMVoidType::get(b.getContext()), {b.ptrType()});
  Value sizes = f.getArgument(0);
  for (auto [k, symbol] : llvm::enumerate(state.result.symbols))
    if (symbol.isData)
      b.store(atMost(state.bounds[k], sizes), sizes, 8 * k);
  b.ret();
}

void FunctionLowering::emitDimsFunction() {
  auto f = b.function(state.output, "lathe_dims" + std::to_string(entry),
                      LLVM::LLVMVoidType::get(b.getContext()), {b.ptrType(), b.ptrType()});
  int64_t at = 0;
  const EntryDesc &desc = state.result.entries[entry];
  for (const auto *list : {&desc.inputs, &desc.outputs})
    for (const TensorDesc &t : *list)
      for (AffineExpr e : t.dims)
        b.store(b.expr(e, f.getArgument(0)), f.getArgument(1), 8 * at++);
  b.ret();
}

} // namespace lathe::lower
