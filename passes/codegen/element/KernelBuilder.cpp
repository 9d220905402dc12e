// The shared builder of the kernel generators: function with the contract's signature, sizes, memory access.
#include "passes/codegen/element/KernelBuilder.h"

#include "dialects/hlo/Shape.h"
#include "passes/codegen/element/NarrowFloat.h"

#include "mlir/IR/Matchers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/AffineMap.h"

using namespace mlir;

namespace lathe::codegen {

KernelTarget KernelTarget::get(llvm::StringRef triple, llvm::StringRef features) {
  KernelTarget t;
  static_cast<ProcessorModel &>(t) = modelOf(triple, features);
  auto has = [&](llvm::StringRef name) { return hasFeature(features, name); };
  t.x86 = triple.starts_with("x86_64") || triple.starts_with("i");
  if (!t.x86) {
    t.avx = t.avx2 = t.fma = t.f16c = false;
    t.neon = triple.starts_with("aarch64") || triple.starts_with("arm64");
    t.fma = t.rounds = t.neon;
    t.dotprod = t.neon && has("dotprod");
    t.i8mm = t.neon && has("i8mm");
    t.vectorBits = 128;
    t.numVectorRegs = t.neon ? 32 : 16;
    return t;
  }
  t.avx = has("avx");
  t.avx2 = has("avx2");
  t.fma = has("fma");
  t.rounds = has("sse4.1");
  t.f16c = has("f16c");
  t.avx512 = has("avx512f") && has("avx512bw") && has("avx512dq") && has("avx512vl");
  t.avx512bf16 = t.avx512 && has("avx512bf16");
  t.amxBf16 = t.avx512bf16 && has("amx-tile") && has("amx-bf16");
  t.avx512vnni = (t.avx512 && has("avx512vnni")) || (t.avx2 && has("avxvnni")); // the latter on 256 bits
  t.amxInt8 = t.avx512 && t.avx512vnni && has("amx-tile") && has("amx-int8");
  t.vectorBits = t.avx512 ? 512 : t.avx2 ? 256 : 128;
  t.numVectorRegs = t.avx512 ? 32 : 16;
  return t;
}

unsigned KernelTarget::lanes(Type elem) const {
  if (isa<ComplexType>(elem))
    return 1;
  Type reg = regType(elem);
  unsigned bits = isa<FloatType>(reg) ? reg.getIntOrFloatBitWidth() : elemBytes(elem) * 8;
  return std::max(1u, vectorBits / std::max(8u, bits));
}

bool KernelTarget::hasMaskedMemory(Type elem) const { return avx512 || (avx2 && elemBytes(elem) >= 4); }

bool isUnsignedElem(Type elem) {
  auto i = dyn_cast<IntegerType>(elem);
  return i && (i.isUnsigned() || i.getWidth() == 1);
}

Type widen(Type t, unsigned lanes) {
  if (auto v = dyn_cast<VectorType>(t))
    return VectorType::get({v.getDimSize(0) * int64_t(lanes)}, v.getElementType());
  return lanes == 1 ? t : VectorType::get({int64_t(lanes)}, t);
}

unsigned lanesOf(Type t) {
  if (auto v = dyn_cast<VectorType>(t))
    return v.getDimSize(0);
  return 1;
}

Type regType(Type elem, unsigned lanes) {
  MLIRContext *c = elem.getContext();
  if (auto complex = dyn_cast<ComplexType>(elem))
    return VectorType::get({2 * int64_t(lanes)}, complex.getElementType());
  if (auto i = dyn_cast<IntegerType>(elem))
    return widen(IntegerType::get(c, i.getWidth()), lanes);
  if (elem.isF64())
    return widen(elem, lanes);
  return widen(Float32Type::get(c), lanes);
}

Type memType(Type elem) {
  MLIRContext *c = elem.getContext();
  if (auto complex = dyn_cast<ComplexType>(elem))
    return complex.getElementType();
  if (auto i = dyn_cast<IntegerType>(elem))
    return IntegerType::get(c, std::max(8u, i.getWidth()));
  if (elem.isF64() || elem.isF32())
    return elem;
  return IntegerType::get(c, elem.getIntOrFloatBitWidth());
}

int64_t elemBytes(Type elem) {
  int64_t n = memType(elem).getIntOrFloatBitWidth() / 8;
  return isa<ComplexType>(elem) ? 2 * n : n;
}

void loadKernelDialects(MLIRContext &context) {
  context.loadDialect<arith::ArithDialect, func::FuncDialect, LLVM::LLVMDialect, math::MathDialect,
                      scf::SCFDialect, vector::VectorDialect>();
}

KernelBuilder::KernelBuilder(Operation *op, ModuleOp module, llvm::StringRef name, const KernelTarget &target)
    : ImplicitLocOpBuilder(op->getLoc(), op->getContext()), target(target) {
  loadKernelDialects(*op->getContext());
  setInsertionPointToEnd(module.getBody());
  auto ptr = LLVM::LLVMPointerType::get(getContext());
  unsigned nIn = op->getNumOperands(), nOut = op->getNumResults();
  SmallVector<Type> types(nIn + nOut + 3, ptr);
  types.append(2, getI64Type());
  func = func::FuncOp::create(*this, name, getFunctionType(types, {}));
  func.setPrivate();
  // all at once: each call would make the list of all arguments anew
  NamedAttribute nonnull = getNamedAttr("llvm.nonnull", getUnitAttr()), noalias = getNamedAttr("llvm.noalias", getUnitAttr()),
                 readonly = getNamedAttr("llvm.readonly", getUnitAttr());
  SmallVector<DictionaryAttr> attrs;
  for (unsigned i = 0; i < nIn; ++i)
    attrs.push_back(getDictionaryAttr({nonnull, noalias, readonly}));
  for (unsigned i = 0; i <= nOut; ++i) // results and scratch
    attrs.push_back(getDictionaryAttr({nonnull, noalias}));
  attrs.append(2, getDictionaryAttr({nonnull})); // sizes and err
  attrs.append(2, getDictionaryAttr({}));
  func.setAllArgAttrs(attrs);
  Block *block = func.addEntryBlock();
  operands.assign(block->args_begin(), block->args_begin() + nIn);
  results.assign(block->args_begin() + nIn, block->args_begin() + nIn + nOut);
  scratch = block->getArgument(nIn + nOut);
  sizes = block->getArgument(nIn + nOut + 1);
  err = block->getArgument(nIn + nOut + 2);
  begin = block->getArgument(nIn + nOut + 3);
  end = block->getArgument(nIn + nOut + 4);
  setInsertionPointToStart(block);
  auto ret = func::ReturnOp::create(*this);
  setInsertionPoint(ret);
  setExtent(getAffineConstantExpr(1));
  setScratch(0);
}

static AffineMap mapOf(AffineExpr e) {
  unsigned symbols = 0;
  e.walk([&](AffineExpr s) {
    if (auto sym = dyn_cast<AffineSymbolExpr>(s))
      symbols = std::max(symbols, sym.getPosition() + 1);
  });
  return AffineMap::get(0, symbols, e);
}

void KernelBuilder::setExtent(AffineExpr e) { func->setAttr("kernel.extent", AffineMapAttr::get(mapOf(e))); }
void KernelBuilder::setScratch(AffineExpr e) { func->setAttr("kernel.scratch", AffineMapAttr::get(mapOf(e))); }
void KernelBuilder::setScratch(int64_t bytes) { setScratch(getAffineConstantExpr(bytes)); }
void KernelBuilder::setWork(int64_t n) { func->setAttr("kernel.work", getI64IntegerAttr(n)); }
int64_t KernelBuilder::multiplyAddWork(int64_t n) const {
  return static_cast<int64_t>(static_cast<double>(n) / target.fmas);
}

int64_t KernelBuilder::attribute(StringRef name) const {
  if (auto map = func->getAttrOfType<AffineMapAttr>(name))
    return hlo::constantValue(map.getValue().getResult(0)).value_or(0);
  auto value = func->getAttrOfType<IntegerAttr>(name);
  return value ? value.getInt() : 0;
}

// Kept in the entry block, one each: equal indices are then equal Values, which the element cache relies on.
Value KernelBuilder::i64(int64_t v) {
  Value &c = constantCache[v];
  if (!c) {
    OpBuilder::InsertionGuard guard(*this);
    setInsertionPointToStart(&func.getBody().front());
    c = arith::ConstantIntOp::create(*this, v, 64);
  }
  return c;
}

std::optional<int64_t> constantOf(Value v) {
  APInt c;
  if (v && matchPattern(v, m_ConstantInt(&c)))
    return c.getSExtValue();
  return std::nullopt;
}

Value KernelBuilder::add(Value a, Value b) {
  auto x = constantOf(a), y = constantOf(b);
  if (x && y)
    return i64(*x + *y);
  if (x && *x == 0)
    return b;
  if (y && *y == 0)
    return a;
  return arith::AddIOp::create(*this, a, b, arith::IntegerOverflowFlags::nsw);
}
Value KernelBuilder::sub(Value a, Value b) {
  auto x = constantOf(a), y = constantOf(b);
  if (x && y)
    return i64(*x - *y);
  if (y && *y == 0)
    return a;
  return arith::SubIOp::create(*this, a, b, arith::IntegerOverflowFlags::nsw);
}
Value KernelBuilder::mul(Value a, Value b) {
  auto x = constantOf(a), y = constantOf(b);
  if (x && y)
    return i64(*x * *y);
  if ((x && *x == 0) || (y && *y == 0))
    return i64(0);
  if (x && *x == 1)
    return b;
  if (y && *y == 1)
    return a;
  return arith::MulIOp::create(*this, a, b, arith::IntegerOverflowFlags::nsw);
}
Value KernelBuilder::divU(Value a, Value b) {
  auto x = constantOf(a), y = constantOf(b);
  if (x && y && *y > 0)
    return i64(*x / *y);
  if (y && *y == 1)
    return a;
  return arith::DivUIOp::create(*this, a, b);
}
Value KernelBuilder::remU(Value a, Value b) {
  auto x = constantOf(a), y = constantOf(b);
  if (x && y && *y > 0)
    return i64(*x % *y);
  if (y && *y == 1)
    return i64(0);
  return arith::RemUIOp::create(*this, a, b);
}
Value KernelBuilder::min(Value a, Value b) { return createOrFold<arith::MinSIOp>(a, b); }
Value KernelBuilder::max(Value a, Value b) { return createOrFold<arith::MaxSIOp>(a, b); }
Value KernelBuilder::lt(Value a, Value b) {
  return createOrFold<arith::CmpIOp>(arith::CmpIPredicate::slt, a, b);
}
Value KernelBuilder::ge(Value a, Value b) {
  return createOrFold<arith::CmpIOp>(arith::CmpIPredicate::sge, a, b);
}
Value KernelBuilder::eq(Value a, Value b) {
  return createOrFold<arith::CmpIOp>(arith::CmpIPredicate::eq, a, b);
}
Value KernelBuilder::both(Value a, Value b) { return createOrFold<arith::AndIOp>(a, b); }
Value KernelBuilder::select(Value c, Value a, Value b) { return createOrFold<arith::SelectOp>(c, a, b); }
Value KernelBuilder::inRange(Value v, Value lo, Value hi) { return both(ge(v, lo), lt(v, hi)); }

Value KernelBuilder::cst(Type t, double v) {
  Type e = getElementTypeOrSelf(t);
  Attribute a;
  if (auto f = dyn_cast<FloatType>(e))
    a = FloatAttr::get(f, v);
  else
    return cstI(t, int64_t(v));
  if (auto vec = dyn_cast<VectorType>(t))
    a = DenseElementsAttr::get(vec, a);
  return arith::ConstantOp::create(*this, t, cast<TypedAttr>(a));
}
Value KernelBuilder::cstI(Type t, int64_t v) {
  Type e = getElementTypeOrSelf(t);
  if (isa<FloatType>(e))
    return cst(t, double(v));
  Attribute a = IntegerAttr::get(e, APInt(e.getIntOrFloatBitWidth(), v, true, true));
  if (auto vec = dyn_cast<VectorType>(t))
    a = DenseElementsAttr::get(vec, a);
  return arith::ConstantOp::create(*this, t, cast<TypedAttr>(a));
}
Value KernelBuilder::cstBits(Type t, uint64_t bits) {
  auto e = cast<FloatType>(getElementTypeOrSelf(t));
  Attribute a = FloatAttr::get(
      e, APFloat(e.getFloatSemantics(), APInt(e.getWidth(), bits, false, true)));
  if (auto vec = dyn_cast<VectorType>(t))
    a = DenseElementsAttr::get(vec, a);
  return arith::ConstantOp::create(*this, t, cast<TypedAttr>(a));
}

Value KernelBuilder::splat(Value v, unsigned lanes) {
  if (lanes == 1)
    return v;
  if (auto c = v.getDefiningOp<arith::ConstantOp>()) {
    auto vec = VectorType::get({int64_t(lanes)}, v.getType());
    return arith::ConstantOp::create(*this, vec, DenseElementsAttr::get(vec, c.getValue()));
  }
  return vector::BroadcastOp::create(*this, VectorType::get({int64_t(lanes)}, v.getType()), v);
}

Value KernelBuilder::splatElem(Type elem, Value v, unsigned lanes) {
  if (lanes == 1)
    return v;
  if (!isa<ComplexType>(elem))
    return splat(v, lanes);
  SmallVector<int64_t> pick(2 * lanes, 0);
  std::fill(pick.begin() + lanes, pick.end(), 1);
  return vector::ShuffleOp::create(*this, v, v, pick);
}

Value KernelBuilder::symbol(unsigned k) {
  Value &v = symbolCache[k];
  if (!v) {
    OpBuilder::InsertionGuard guard(*this);
    setInsertionPointToStart(&func.getBody().front());
    Value p = LLVM::GEPOp::create(*this, sizes.getType(), getI64Type(), sizes,
                                  ArrayRef<LLVM::GEPArg>{int32_t(k)});
    v = LLVM::LoadOp::create(*this, getI64Type(), p, 8);
  }
  return v;
}

Value KernelBuilder::dim(AffineExpr e) {
  if (auto c = dyn_cast<AffineConstantExpr>(e))
    return i64(c.getValue());
  if (auto s = dyn_cast<AffineSymbolExpr>(e))
    return symbol(s.getPosition());
  auto bin = cast<AffineBinaryOpExpr>(e);
  Value a = dim(bin.getLHS()), b = dim(bin.getRHS());
  // divisors are positive by construction of the shapes; guarded so that a wrong size cannot trap
  auto divisor = [&](Value d) { return constantOf(d) ? d : max(d, i64(1)); };
  switch (e.getKind()) {
  case AffineExprKind::Add:
    return add(a, b);
  case AffineExprKind::Mul:
    return mul(a, b);
  case AffineExprKind::FloorDiv:
    return createOrFold<arith::FloorDivSIOp>(a, divisor(b));
  case AffineExprKind::CeilDiv:
    return createOrFold<arith::FloorDivSIOp>(add(a, sub(divisor(b), i64(1))), divisor(b));
  default: { // Mod: the result has the sign of the (positive) divisor
    Value d = divisor(b);
    return sub(a, mul(createOrFold<arith::FloorDivSIOp>(a, d), d));
  }
  }
}

Value KernelBuilder::linearize(ValueRange index, ValueRange dims) {
  Value r = index.empty() ? i64(0) : index[0];
  for (unsigned i = 1; i < index.size(); ++i)
    r = add(mul(r, dims[i]), index[i]);
  return r;
}

SmallVector<Value> KernelBuilder::delinearize(Value linear, ValueRange dims) {
  SmallVector<Value> r(dims.size());
  for (int i = int(dims.size()) - 1; i >= 0; --i) {
    if (i == 0) {
      r[0] = linear;
      break;
    }
    if (auto c = constantOf(dims[i]); c && *c == 1) {
      r[i] = i64(0);
      continue;
    }
    r[i] = remU(linear, dims[i]);
    linear = divU(linear, dims[i]);
  }
  return r;
}

SmallVector<Value> KernelBuilder::dims(RankedTensorType t) {
  SmallVector<Value> r;
  for (AffineExpr e : hlo::getDims(t))
    r.push_back(dim(e));
  return r;
}

SmallVector<Value> KernelBuilder::rowDims(RankedTensorType t, int64_t row) {
  SmallVector<Value> r = dims(t);
  if (row && !r.empty())
    r.back() = i64(row);
  return r;
}

Value KernelBuilder::numElements(RankedTensorType t) {
  Value n = i64(1);
  for (Value d : dims(t))
    n = mul(n, d);
  return n;
}

Value KernelBuilder::ptrAt(Value base, Type elem, Value index) {
  if (isa<ComplexType>(elem))
    index = mul(index, i64(2));
  if (auto c = constantOf(index); c && *c == 0)
    return base;
  return LLVM::GEPOp::create(*this, base.getType(), memType(elem), base, ArrayRef<LLVM::GEPArg>{index});
}

Value KernelBuilder::ptrBytes(Value base, Value bytes) {
  if (auto c = constantOf(bytes); c && *c == 0)
    return base;
  return LLVM::GEPOp::create(*this, base.getType(), getI8Type(), base, ArrayRef<LLVM::GEPArg>{bytes});
}

// A mask of elements as one of their parts in memory.
static Value maskOfParts(KernelBuilder &b, Value mask) {
  SmallVector<int64_t> pick;
  for (unsigned l = 0; l < 2 * lanesOf(mask.getType()); ++l)
    pick.push_back(l / 2);
  if (auto known = mask.getDefiningOp<arith::ConstantOp>()) {
    auto bits = llvm::to_vector(cast<DenseElementsAttr>(known.getValue()).getValues<bool>());
    SmallVector<bool> parts;
    for (int64_t l : pick)
      parts.push_back(bits[l]);
    auto type = VectorType::get({int64_t(parts.size())}, b.getI1Type());
    return arith::ConstantOp::create(b, type, DenseElementsAttr::get(type, ArrayRef<bool>(parts)));
  }
  return vector::ShuffleOp::create(b, mask, mask, pick);
}

Value KernelBuilder::loadElem(Type elem, Value base, Value index, unsigned lanes, Value mask) {
  Value p = ptrAt(base, elem, index);
  Type mem = memType(elem);
  unsigned align = mem.getIntOrFloatBitWidth() / 8;
  bool complex = isa<ComplexType>(elem);
  Type vec = widen(mem, complex ? 2 * lanes : lanes);
  Value v;
  if (mask && lanes > 1 && complex)
    mask = maskOfParts(*this, mask);
  if (mask && lanes > 1)
    v = LLVM::MaskedLoadOp::create(*this, vec, p, mask, cstI(vec, 0), getI32IntegerAttr(align));
  else
    v = LLVM::LoadOp::create(*this, vec, p, align);
  if (complex) {
    if (lanes == 1)
      return v;
    SmallVector<int64_t> pick; // re,im,re,im,... -> re...,im...
    for (unsigned part = 0; part < 2; ++part)
      for (unsigned i = 0; i < lanes; ++i)
        pick.push_back(2 * i + part);
    return vector::ShuffleOp::create(*this, v, v, pick);
  }
  if (auto i = dyn_cast<IntegerType>(elem)) {
    if (i.getWidth() == 1)
      return arith::CmpIOp::create(*this, arith::CmpIPredicate::ne, v, cstI(v.getType(), 0));
    if (i.getWidth() < 8)
      return arith::TruncIOp::create(*this, regType(elem, lanes), v);
    return v;
  }
  if (elem.isF32() || elem.isF64())
    return v;
  return narrowToF32(*this, cast<FloatType>(elem), v);
}

void KernelBuilder::storeElem(Type elem, Value v, Value base, Value index, Value mask) {
  Value p = ptrAt(base, elem, index);
  Type mem = memType(elem);
  unsigned align = mem.getIntOrFloatBitWidth() / 8;
  unsigned lanes = lanesOf(v.getType());
  if (isa<ComplexType>(elem)) {
    if (lanes > 2) {
      SmallVector<int64_t> pick;
      for (unsigned i = 0; i < lanes / 2; ++i) {
        pick.push_back(i);
        pick.push_back(i + lanes / 2);
      }
      v = vector::ShuffleOp::create(*this, v, v, pick);
    }
    if (mask && lanes > 2)
      LLVM::MaskedStoreOp::create(*this, v, p, maskOfParts(*this, mask), getI32IntegerAttr(align));
    else
      LLVM::StoreOp::create(*this, v, p, align);
    return;
  }
  if (auto i = dyn_cast<IntegerType>(elem)) {
    if (i.getWidth() < 8) {
      Type t = widen(mem, lanes);
      v = isUnsignedElem(elem) ? Value(arith::ExtUIOp::create(*this, t, v))
                               : Value(arith::ExtSIOp::create(*this, t, v));
    }
  } else if (!elem.isF32() && !elem.isF64()) {
    v = f32ToNarrow(*this, cast<FloatType>(elem), v);
  }
  // LLVM 22 makes a store of the wider type from a masked store of one known lane of truncated values: it would write
  // beyond the element.
  if (auto c = mask ? mask.getDefiningOp<arith::ConstantOp>() : arith::ConstantOp(); c && lanes > 1) {
    auto bits = cast<DenseElementsAttr>(c.getValue()).getValues<bool>();
    if (llvm::count(bits, true) == 1) {
      int64_t lane = std::distance(bits.begin(), llvm::find(bits, true));
      Value one = vector::ExtractOp::create(*this, v, lane);
      LLVM::StoreOp::create(*this, one, ptrAt(base, elem, add(index, i64(lane))), align);
      return;
    }
  }
  if (mask && lanes > 1)
    LLVM::MaskedStoreOp::create(*this, v, p, mask, getI32IntegerAttr(align));
  else
    LLVM::StoreOp::create(*this, v, p, align);
}

Value KernelBuilder::alloca(int64_t bytes) {
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(&func.getBody().front());
  // not i64(): the shared constant may stand further down
  Value size = arith::ConstantIntOp::create(*this, bytes, 64);
  return LLVM::AllocaOp::create(*this, LLVM::LLVMPointerType::get(getContext()), getI8Type(), size, 64u);
}

Value KernelBuilder::tailMask(Value n, unsigned lanes) {
  SmallVector<int64_t> iota(lanes);
  for (unsigned i = 0; i < lanes; ++i)
    iota[i] = i;
  // compared in i32: cheaper than i64 and lanes are few
  SmallVector<int32_t> iota32(iota.begin(), iota.end());
  auto vec = VectorType::get({int64_t(lanes)}, getI32Type());
  if (auto known = n.getDefiningOp<arith::ConstantIntOp>()) {
    SmallVector<bool> bits;
    for (int64_t i : iota)
      bits.push_back(i < known.value());
    auto type = VectorType::get({int64_t(lanes)}, getI1Type());
    return arith::ConstantOp::create(*this, type, DenseElementsAttr::get(type, ArrayRef<bool>(bits)));
  }
  Value lane = arith::ConstantOp::create(*this, vec, DenseElementsAttr::get(vec, ArrayRef<int32_t>(iota32)));
  Value limit = arith::TruncIOp::create(*this, getI32Type(), min(n, i64(lanes)));
  return arith::CmpIOp::create(*this, arith::CmpIPredicate::slt, lane, splat(limit, lanes));
}

Value KernelBuilder::constantData(llvm::StringRef bytes) {
  std::string name = (func.getName() + "_data" + Twine(numGlobals++)).str();
  auto type = LLVM::LLVMArrayType::get(getI8Type(), bytes.size());
  {
    OpBuilder::InsertionGuard guard(*this);
    setInsertionPoint(func);
    LLVM::GlobalOp::create(*this, type, /*isConstant=*/true, LLVM::Linkage::Private, name,
                           getStringAttr(bytes), /*alignment=*/64);
  }
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(&func.getBody().front());
  return LLVM::AddressOfOp::create(*this, LLVM::LLVMPointerType::get(getContext()), name);
}

void KernelBuilder::loop(Value lb, Value ub, Value step, llvm::function_ref<void(Value)> body) {
  loop(lb, ub, step, ValueRange{}, [&](Value iv, ValueRange) {
    body(iv);
    return SmallVector<Value>();
  });
}
void KernelBuilder::loop(Value lb, Value ub, llvm::function_ref<void(Value)> body) {
  loop(lb, ub, i64(1), body);
}

SmallVector<Value>
KernelBuilder::loop(Value lb, Value ub, Value step, ValueRange inits,
                    llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  auto op = scf::ForOp::create(*this, lb, ub, step, inits,
                               [&](OpBuilder &, Location, Value, ValueRange) {});
  OpBuilder::InsertionGuard guard(*this);
  Block *block = op.getBody();
  if (!block->empty() && block->back().hasTrait<OpTrait::IsTerminator>())
    block->back().erase();
  setInsertionPointToEnd(block);
  SmallVector<Value> out = body(op.getInductionVar(), op.getRegionIterArgs());
  scf::YieldOp::create(*this, out);
  return SmallVector<Value>(op.getResults());
}

SmallVector<Value>
KernelBuilder::whileLoop(ValueRange inits, llvm::function_ref<Value(ValueRange)> cond,
                         llvm::function_ref<SmallVector<Value>(ValueRange)> body) {
  auto op = scf::WhileOp::create(*this, inits.getTypes(), inits);
  OpBuilder::InsertionGuard guard(*this);
  SmallVector<Location> locs(inits.size(), getLoc());
  Block *before = createBlock(&op.getBefore(), {}, inits.getTypes(), locs);
  setInsertionPointToEnd(before);
  Value c = cond(before->getArguments());
  scf::ConditionOp::create(*this, c, before->getArguments());
  Block *after = createBlock(&op.getAfter(), {}, inits.getTypes(), locs);
  setInsertionPointToEnd(after);
  SmallVector<Value> out = body(after->getArguments());
  scf::YieldOp::create(*this, out);
  return SmallVector<Value>(op.getResults());
}

void KernelBuilder::ifThen(Value cond, llvm::function_ref<void()> body) {
  auto op = scf::IfOp::create(*this, cond, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(op.thenBlock());
  body();
}

SmallVector<Value> KernelBuilder::ifElse(Value cond, TypeRange types,
                                         llvm::function_ref<SmallVector<Value>()> then,
                                         llvm::function_ref<SmallVector<Value>()> otherwise) {
  auto op = scf::IfOp::create(*this, types, cond, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(*this);
  auto fill = [&](Block *block, llvm::function_ref<SmallVector<Value>()> f) {
    if (!block->empty() && block->back().hasTrait<OpTrait::IsTerminator>())
      block->back().erase();
    setInsertionPointToEnd(block);
    SmallVector<Value> v = f();
    scf::YieldOp::create(*this, v);
  };
  fill(op.thenBlock(), then);
  fill(op.elseBlock(), otherwise);
  return SmallVector<Value>(op.getResults());
}

static void nestFrom(KernelBuilder &b, ValueRange sizes, SmallVector<Value> &index,
                     llvm::function_ref<void(ValueRange)> body) {
  if (index.size() == sizes.size())
    return body(index);
  Value n = sizes[index.size()];
  if (auto c = constantOf(n); c && *c == 1) {
    index.push_back(b.i64(0));
    nestFrom(b, sizes, index, body);
    index.pop_back();
    return;
  }
  b.loop(b.i64(0), n, [&](Value iv) {
    index.push_back(iv);
    nestFrom(b, sizes, index, body);
    index.pop_back();
  });
}

void KernelBuilder::nest(ValueRange sizes, llvm::function_ref<void(ValueRange)> body) {
  SmallVector<Value> index;
  nestFrom(*this, sizes, index, body);
}

void KernelBuilder::setError(KernelError code) {
  func->setAttr("kernel.may_fail", getUnitAttr());
  LLVM::StoreOp::create(*this, i64(code), err, 8);
}

} // namespace lathe::codegen
