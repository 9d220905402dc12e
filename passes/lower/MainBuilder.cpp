#include "passes/lower/MainBuilder.h"

using namespace mlir;

namespace lathe::lower {

Value MainBuilder::i64(int64_t v) { return LLVM::ConstantOp::create(*this, getI64Type(), getI64IntegerAttr(v)); }
Value MainBuilder::i32(int32_t v) { return LLVM::ConstantOp::create(*this, getI32Type(), getI32IntegerAttr(v)); }
Value MainBuilder::null() { return LLVM::ZeroOp::create(*this, ptrType()); }

static std::optional<int64_t> constantOf(Value v) {
  if (auto c = v.getDefiningOp<LLVM::ConstantOp>())
    if (auto i = dyn_cast<IntegerAttr>(c.getValue()))
      return i.getInt();
  return std::nullopt;
}

Value MainBuilder::add(Value a, Value b) {
  auto x = constantOf(a), y = constantOf(b);
  if (x && y)
    return i64(*x + *y);
  if (x == 0)
    return b;
  if (y == 0)
    return a;
  return LLVM::AddOp::create(*this, a, b);
}

Value MainBuilder::mul(Value a, Value b) {
  auto x = constantOf(a), y = constantOf(b);
  if (x && y)
    return i64(*x * *y);
  if (x == 1)
    return b;
  if (y == 1)
    return a;
  return LLVM::MulOp::create(*this, a, b);
}

Value MainBuilder::min(Value a, Value b) { return LLVM::SMinOp::create(*this, a, b); }

Value MainBuilder::max(Value a, Value b) {
  auto x = constantOf(a), y = constantOf(b);
  if (x && y)
    return i64(std::max(*x, *y));
  return LLVM::SMaxOp::create(*this, a, b);
}

Value MainBuilder::compare(LLVM::ICmpPredicate p, Value a, Value b) { return LLVM::ICmpOp::create(*this, p, a, b); }

Value MainBuilder::floorDiv(Value a, Value b) {
  if (!constantOf(b))
    b = max(b, i64(1));
  Value q = LLVM::SDivOp::create(*this, a, b);
  Value r = LLVM::SubOp::create(*this, a, LLVM::MulOp::create(*this, q, b));
  Value negative = LLVM::LShrOp::create(*this, r, i64(63));
  return LLVM::SubOp::create(*this, q, negative);
}

Value MainBuilder::alignTo64(Value a) {
  if (auto c = constantOf(a))
    return i64((*c + 63) & ~int64_t(63));
  return LLVM::AndOp::create(*this, LLVM::AddOp::create(*this, a, i64(63)), i64(~int64_t(63)));
}

Value MainBuilder::offset(Value base, int64_t bytes) {
  if (bytes == 0)
    return base;
  return LLVM::GEPOp::create(*this, ptrType(), getI8Type(), base, ArrayRef<LLVM::GEPArg>{LLVM::GEPArg(i64(bytes))});
}

Value MainBuilder::offset(Value base, Value bytes) {
  if (constantOf(bytes) == 0)
    return base;
  return LLVM::GEPOp::create(*this, ptrType(), getI8Type(), base, ArrayRef<LLVM::GEPArg>{LLVM::GEPArg(bytes)});
}

Value MainBuilder::load(Type type, Value base, int64_t bytes) {
  return LLVM::LoadOp::create(*this, type, offset(base, bytes));
}

void MainBuilder::store(Value v, Value base, int64_t bytes) { LLVM::StoreOp::create(*this, v, offset(base, bytes)); }

Value MainBuilder::stack(int64_t bytes) {
  OpBuilder::InsertionGuard guard(*this);
  Block &entry = getInsertionBlock()->getParent()->front();
  setInsertionPointToStart(&entry);
  return LLVM::AllocaOp::create(*this, ptrType(), getI8Type(), i64(bytes), /*alignment=*/64);
}

Value MainBuilder::call(StringRef callee, TypeRange result, ValueRange args) {
  auto op = LLVM::CallOp::create(*this, result, SymbolRefAttr::get(getContext(), callee), args);
  return result.empty() ? Value() : op.getResult();
}

Value MainBuilder::expr(AffineExpr e, Value sizes) {
  if (auto c = dyn_cast<AffineConstantExpr>(e))
    return i64(c.getValue());
  if (auto s = dyn_cast<AffineSymbolExpr>(e))
    return loadI64(sizes, 8 * int64_t(s.getPosition()));
  auto bin = cast<AffineBinaryOpExpr>(e);
  Value a = expr(bin.getLHS(), sizes), b = expr(bin.getRHS(), sizes);
  switch (bin.getKind()) {
  case AffineExprKind::Add:
    return add(a, b);
  case AffineExprKind::Mul:
    return mul(a, b);
  case AffineExprKind::FloorDiv:
    return floorDiv(a, b);
  case AffineExprKind::CeilDiv: {
    Value negated = LLVM::SubOp::create(*this, i64(0), a);
    return LLVM::SubOp::create(*this, i64(0), floorDiv(negated, b));
  }
  default: {
    Value q = floorDiv(a, b);
    return LLVM::SubOp::create(*this, a, mul(q, constantOf(b) ? b : max(b, i64(1))));
  }
  }
}

Value MainBuilder::exprAsDouble(AffineExpr e, Value sizes) {
  Type f64 = getF64Type();
  if (auto c = dyn_cast<AffineConstantExpr>(e))
    return LLVM::ConstantOp::create(*this, f64, getF64FloatAttr(static_cast<double>(c.getValue())));
  auto bin = dyn_cast<AffineBinaryOpExpr>(e);
  if (bin && bin.getKind() == AffineExprKind::Add)
    return LLVM::FAddOp::create(*this, exprAsDouble(bin.getLHS(), sizes), exprAsDouble(bin.getRHS(), sizes));
  if (bin && bin.getKind() == AffineExprKind::Mul)
    return LLVM::FMulOp::create(*this, exprAsDouble(bin.getLHS(), sizes), exprAsDouble(bin.getRHS(), sizes));
  // quotients and remainders are no larger than what is divided
  if (bin)
    return exprAsDouble(bin.getLHS(), sizes);
  return LLVM::SIToFPOp::create(*this, f64, expr(e, sizes));
}

LLVM::LLVMFuncOp MainBuilder::function(ModuleOp module, StringRef name, Type result, TypeRange args) {
  setInsertionPointToEnd(module.getBody());
  auto type = LLVM::LLVMFunctionType::get(result, llvm::to_vector(args));
  auto func = LLVM::LLVMFuncOp::create(*this, name, type, LLVM::Linkage::Internal, /*dsoLocal=*/true);
  setInsertionPointToStart(func.addEntryBlock(*this));
  return func;
}

Block *MainBuilder::block() {
  OpBuilder::InsertionGuard guard(*this);
  Region *region = getInsertionBlock()->getParent();
  return createBlock(region, region->end());
}

void MainBuilder::branch(Block *to) { LLVM::BrOp::create(*this, ValueRange(), to); }

void MainBuilder::condBranch(Value c, Block *yes, Block *no, bool unlikelyTrue) {
  auto op = LLVM::CondBrOp::create(*this, c, yes, ValueRange(), no, ValueRange());
  if (unlikelyTrue)
    op.setBranchWeights(ArrayRef<int32_t>{1, 100000});
}

void MainBuilder::ret(Value v) {
  if (v)
    LLVM::ReturnOp::create(*this, v);
  else
    LLVM::ReturnOp::create(*this, ValueRange());
}

} // namespace lathe::lower
