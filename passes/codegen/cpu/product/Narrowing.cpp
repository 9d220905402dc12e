#include "passes/codegen/cpu/product/Narrowing.h"

#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Shape.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace lathe::cpu {

/// A number that all elements of a constant have, or of one repeated: what those of sizes known at run time are.
static std::optional<int64_t> splatOf(Value v) {
  while (auto broadcast = v.getDefiningOp<hlo::BroadcastInDimOp>())
    v = broadcast.getOperand();
  auto constant = v.getDefiningOp<hlo::ConstantOp>();
  auto dense = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
  if (!dense || !dense.isSplat() || !isa<IntegerType>(dense.getElementType()))
    return std::nullopt;
  return dense.getSplatValue<APInt>().getSExtValue();
}

Narrowing Narrowing::of(Block &body) { return of(body.getTerminator()->getOperand(0)); }

Narrowing Narrowing::of(Value bytes) {
  Narrowing n;
  n.low = std::numeric_limits<int64_t>::min();
  n.high = std::numeric_limits<int64_t>::max();
  if (auto cast = bytes.getDefiningOp<hlo::BitcastConvertOp>()) // as the index of a table
    bytes = cast.getOperand();
  auto convert = bytes.getDefiningOp<hlo::ConvertOp>();
  if (!convert || !hlo::elementType(bytes).isInteger(8))
    return {};
  n.isUnsigned = hlo::elementType(bytes).isUnsignedInteger();
  n.wide = convert->getOperand(0);
  for (Operation *op = n.wide.getDefiningOp(); op && isa<hlo::MaxOp, hlo::MinOp>(op); op = n.wide.getDefiningOp()) {
    std::optional<int64_t> limit = splatOf(op->getOperand(1));
    Value rest = op->getOperand(limit ? 0 : 1);
    if (!limit)
      limit = splatOf(op->getOperand(0));
    if (!limit)
      break;
    // a limit further inside does not move one further out
    if (isa<hlo::MaxOp>(op))
      n.low = std::max(n.low, *limit);
    else
      n.high = std::min(n.high, *limit);
    n.wide = rest;
  }
  Type elem = hlo::elementType(n.wide);
  if (!elem.isInteger(32) || elem.isUnsignedInteger() || n.low < (n.isUnsigned ? 0 : -128) || n.high > (n.isUnsigned ? 255 : 127) ||
      n.low > n.high)
    return {};
  return n;
}

Value Narrowing::pack(KernelBuilder &b, ValueRange four) const {
  const unsigned lanes = lanesOf(four.front().getType());
  // saturating packs, once to 16 and once to 8 bits, clamp as the type's own limits do
  auto half = [&](const char *name, Type elem, unsigned count, Value x, Value y) -> Value {
    const std::string full = lanes == 16  ? std::string("llvm.x86.avx512.") + name + ".512"
                             : lanes == 8 ? std::string("llvm.x86.avx2.") + name
                                          : std::string("llvm.x86.sse2.") + name + ".128";
    return LLVM::CallIntrinsicOp::create(b, VectorType::get({count}, elem), b.getStringAttr(full), ValueRange{x, y}).getResult(0);
  };
  Value first = half("packssdw", b.getI16Type(), 2 * lanes, four[0], four[1]);
  Value second = half("packssdw", b.getI16Type(), 2 * lanes, four[2], four[3]);
  Value bytes = half(isUnsigned ? "packuswb" : "packsswb", b.getI8Type(), 4 * lanes, first, second);
  Type type = bytes.getType();
  if (low > (isUnsigned ? 0 : -128))
    bytes = isUnsigned ? arith::MaxUIOp::create(b, bytes, b.cstI(type, low)).getResult()
                       : arith::MaxSIOp::create(b, bytes, b.cstI(type, low));
  if (high < (isUnsigned ? 255 : 127))
    bytes = isUnsigned ? arith::MinUIOp::create(b, bytes, b.cstI(type, high)).getResult()
                       : arith::MinSIOp::create(b, bytes, b.cstI(type, high));
  return bytes;
}

Value Narrowing::inOrder(KernelBuilder &b, Value packed) {
  const int64_t parts = lanesOf(packed.getType()) / 16; // of 128 bits
  if (parts == 1)
    return packed;
  SmallVector<int64_t> pick;
  for (int64_t vector = 0; vector < 4; ++vector)
    for (int64_t part = 0; part < parts; ++part)
      for (int64_t i = 0; i < 4; ++i)
        pick.push_back(16 * part + 4 * vector + i);
  return vector::ShuffleOp::create(b, packed, packed, pick);
}

} // namespace lathe::cpu
