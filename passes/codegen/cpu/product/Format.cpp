// Operand formats: which one a product has, its instruction, and copies of left operands.
#include "passes/codegen/cpu/product/Format.h"

#include "passes/codegen/cpu/product/Amx.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace lathe::cpu {

Type OperandFormat::leftElem(Type accElem) const {
  MLIRContext *c = accElem.getContext();
  switch (kind) {
  case Kind::Single: return accElem;
  case Kind::Bf16: return BFloat16Type::get(c);
  case Kind::Words: return IntegerType::get(c, 16);
  case Kind::Bytes: return leftUnsigned ? IntegerType::get(c, 8, IntegerType::Unsigned) : IntegerType::get(c, 8);
  }
  return accElem;
}

OperandFormat integerFormat(const KernelTarget &target, Type aElem, Type bElem, Type accElem) {
  auto isByte = [](Type t) { return t.isInteger(8); };
  // numbers of 16 bits without sign have no instruction
  auto isNarrow = [&](Type t) { return isByte(t) || (t.isInteger(16) && !t.isUnsignedInteger()); };
  if (!accElem.isInteger(32) || !isNarrow(aElem) || !isNarrow(bElem))
    return {};
  if (target.dotprod && isByte(aElem) && isByte(bElem) && !bElem.isUnsignedInteger()) {
    const bool isUnsigned = aElem.isUnsignedInteger();
    return {OperandFormat::Kind::Bytes, isUnsigned && !target.i8mm, isUnsigned && target.i8mm, -128};
  }
  if (!target.x86)
    return {};
  if (target.avx512vnni && isByte(aElem) && isByte(bElem) && !bElem.isUnsignedInteger())
    return {OperandFormat::Kind::Bytes, !aElem.isUnsignedInteger()};
  return {OperandFormat::Kind::Words};
}

OperandFormat runTimeFormat(const KernelTarget &target, Type aElem, Type bElem, Type accElem) {
  const bool narrow = target.x86 && integerFormat(target, aElem, bElem, accElem).isInteger();
  return {narrow ? OperandFormat::Kind::Words : OperandFormat::Kind::Single};
}

WhyNot whyNotRunTimeGroups(const KernelTarget &target, const ProductTypes &types, std::optional<int64_t> rows, std::optional<int64_t> columns,
                           std::optional<int64_t> depth) {
  // with fewer the copy costs more than it brings
  constexpr int64_t fewestRows = 4, fewestColumns = 4, shortestSum = 4;
  if (!runTimeFormat(target, types.left, types.right, types.acc).isGrouped())
    return WhyNot::notMeant("operands are not narrow integers, or sums not of 32 bits");
  if (!columns || !depth)
    return WhyNot::notMeant("depth or columns are known at run time only");
  if (*columns < fewestColumns || *depth < shortestSum || (rows && *rows < fewestRows))
    return WhyNot::notMeant("few rows, columns or steps of the sum");
  return WhyNot::none();
}

OperandFormat formatOf(const TileOperands &operands) {
  if (!operands.pairs)
    return {};
  if (operands.aElem.isBF16())
    return bf16Format();
  return {operands.aElem.isInteger(8) ? OperandFormat::Kind::Bytes : OperandFormat::Kind::Words, false, operands.aElem.isUnsignedInteger()};
}

OperandFormat formatOf(const KernelTarget &target, const ProductSpec &spec) {
  if (!spec.pairedDepth)
    return {};
  if (spec.accElem.isF32())
    return bf16Format();
  return (spec.panel ? integerFormat : runTimeFormat)(target, spec.aElem, spec.bElem, spec.accElem);
}

KernelTarget tileTarget(const KernelTarget &target, const OperandFormat &format) {
  KernelTarget t = target;
  if (format.kind == OperandFormat::Kind::Words && !target.avx512vnni)
    t.fma = false;
  return t;
}

Value multiplyGroups(KernelBuilder &b, const OperandFormat &format, Value x, Value y, Value acc) {
  const unsigned lanes = lanesOf(acc.getType());
  auto call = [&](StringRef name, ValueRange args) -> Value {
    return LLVM::CallIntrinsicOp::create(b, acc.getType(), b.getStringAttr(name), args).getResult(0);
  };
  const bool words = format.kind == OperandFormat::Kind::Words;
  if (format.kind == OperandFormat::Kind::Bf16)
    return call("llvm.x86.avx512bf16.dpbf16ps.512", {acc, x, y});
  if (words && getElementTypeOrSelf(y.getType()).isInteger(8))
    y = arith::ExtSIOp::create(b, x.getType(), y);
  if (words && b.target.avx512vnni) {
    StringRef name = lanes == 16  ? "llvm.x86.avx512.vpdpwssd.512"
                     : lanes == 8 ? "llvm.x86.avx512.vpdpwssd.256"
                                  : "llvm.x86.avx512.vpdpwssd.128";
    return call(name, {acc, x, y});
  }
  if (words) {
    StringRef name = lanes == 16  ? "llvm.x86.avx512.pmaddw.d.512"
                     : lanes == 8 ? "llvm.x86.avx2.pmadd.wd"
                                  : "llvm.x86.sse2.pmadd.wd";
    return arith::AddIOp::create(b, acc, call(name, {x, y}));
  }
  if (b.target.neon)
    return call(format.leftUnsigned ? "llvm.aarch64.neon.usdot.v4i32.v16i8" : "llvm.aarch64.neon.sdot.v4i32.v16i8", {acc, x, y});
  StringRef name = lanes == 16  ? "llvm.x86.avx512.vpdpbusd.512"
                   : lanes == 8 ? "llvm.x86.avx512.vpdpbusd.256"
                                : "llvm.x86.avx512.vpdpbusd.128";
  return call(name, {acc, x, y});
}

SmallVector<Value> loadHead(KernelBuilder &b, TileShape shape, Type accElem, Value head) {
  SmallVector<Value> accs;
  for (unsigned r = 0; r < shape.rows; ++r)
    for (unsigned v = 0; v < shape.vecs; ++v)
      accs.push_back(b.loadElem(accElem, head, b.i64(v * shape.lanes), shape.lanes));
  return accs;
}

int64_t narrowAt(const Tensor &t, int64_t i) {
  switch (t.dtype()) {
  case DType::Int8: return t.data<int8_t>()[i];
  case DType::UInt8: return t.data<uint8_t>()[i];
  default: return t.data<int16_t>()[i];
  }
}

void copyToFormat(KernelBuilder &b, const OperandFormat &format, Type accElem, Type elem, Value from, Value to, Value count) {
  Type left = format.leftElem(accElem);
  if (format.kind == OperandFormat::Kind::Bf16)
    return copyToBf16(b, elem, from, to, count);
  if (!format.biased)
    return copyRun(b, elem, from, left, to, count);
  // plus 128: the upper bit changes
  const int64_t lanes = b.target.lanes(left);
  auto copy = [&](Value x, unsigned n) {
    Value v = b.loadElem(elem, from, x, n);
    b.storeElem(left, arith::XOrIOp::create(b, v, b.cstI(v.getType(), -128)), to, x);
  };
  Value done = b.mul(b.divU(count, b.i64(lanes)), b.i64(lanes));
  if (constantOf(done) != 0)
    b.loop(b.i64(0), done, b.i64(lanes), [&](Value x) { copy(x, lanes); });
  const std::optional<int64_t> all = constantOf(count);
  if (!all)
    return b.loop(done, count, [&](Value x) { copy(x, 1); });
  // the rest by halves of a vector: rows of few channels are nothing else
  for (int64_t at = *all / lanes * lanes, n = lanes; at < *all; n /= 2)
    if (at + n <= *all) {
      copy(b.i64(at), n);
      at += n;
    }
}

void repeatInFormat(KernelBuilder &b, const OperandFormat &format, Type accElem, int64_t value, Value to, Value count) {
  Type left = format.kind == OperandFormat::Kind::Bf16 ? b.getI16Type() : format.leftElem(accElem);
  if (!format.biased && value == 0)
    return zeroRun(b, left, to, count);
  const int64_t lanes = b.target.lanes(left), bits = format.biased ? int8_t(value ^ 128) : value;
  Value done = b.mul(b.divU(count, b.i64(lanes)), b.i64(lanes));
  b.loop(b.i64(0), done, b.i64(lanes), [&](Value x) { b.storeElem(left, b.cstI(regType(left, lanes), bits), to, x); });
  b.loop(done, count, [&](Value x) { b.storeElem(left, b.cstI(left, bits), to, x); });
}

} // namespace lathe::cpu
