// See HighProduct.h. Products of even and of odd lanes stay where they are: neither operands nor results move
// between vectors of 32 and of 64 bits.
#include "passes/codegen/element/HighProduct.h"

#include "dialects/hlo/Hlo.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace lathe::codegen {

static bool isSignless(Value v, unsigned width) { return hlo::elementType(v).isSignlessInteger(width); }

static std::optional<int64_t> splatOf(Value v) {
  while (auto broadcast = v.getDefiningOp<hlo::BroadcastInDimOp>())
    v = broadcast.getOperand();
  auto constant = v.getDefiningOp<hlo::ConstantOp>();
  auto dense = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
  if (!dense || !dense.isSplat() || !isa<IntegerType>(dense.getElementType()))
    return std::nullopt;
  return dense.getSplatValue<APInt>().getSExtValue();
}

/// The operand that is not this number; null where neither is.
static Value otherThan(Operation *op, int64_t number) {
  for (unsigned i : {1, 0})
    if (splatOf(op->getOperand(i)) == number)
      return op->getOperand(1 - i);
  return {};
}

/// What is widened from i32 to v; null where nothing is.
static Value widened(Value v) {
  auto convert = v.getDefiningOp<hlo::ConvertOp>();
  return convert && isSignless(convert.getOperand(), 32) ? convert.getOperand() : Value();
}

static bool holdsWords(Value v) {
  if (std::optional<int64_t> number = splatOf(v))
    return *number == static_cast<int32_t>(*number);
  while (auto broadcast = v.getDefiningOp<hlo::BroadcastInDimOp>())
    v = broadcast.getOperand();
  return static_cast<bool>(widened(v));
}

std::optional<HighProduct> matchHighProduct(Operation *op) {
  auto convert = dyn_cast<hlo::ConvertOp>(op);
  if (!convert || !isSignless(convert.getResult(), 32) || !isSignless(convert.getOperand(), 64))
    return std::nullopt;
  auto shift = convert.getOperand().getDefiningOp<hlo::ShiftRightArithmeticOp>();
  if (!shift || splatOf(shift->getOperand(1)) != 31)
    return std::nullopt;
  auto add = shift->getOperand(0).getDefiningOp<hlo::AddOp>();
  Value product = add ? otherThan(add, int64_t(1) << 30) : Value();
  auto mul = product ? product.getDefiningOp<hlo::MulOp>() : hlo::MulOp();
  if (!mul)
    return std::nullopt;
  for (unsigned i : {0, 1})
    if (Value x = widened(mul->getOperand(i)); x && holdsWords(mul->getOperand(1 - i)))
      return HighProduct{x, mul->getOperand(1 - i)};
  return std::nullopt;
}

bool hasHighProduct(const KernelBuilder &b, unsigned lanes) {
  return b.target.x86 && b.target.rounds && lanes >= 4 && lanes % 2 == 0;
}

Value emitHighProduct(KernelBuilder &b, Value x, Value y) {
  const unsigned lanes = lanesOf(x.getType());
  auto pairs = VectorType::get({lanes / 2}, b.getI64Type());
  auto number = [&](int64_t n) { return b.cstI(pairs, n); };
  y = arith::TruncIOp::create(b, x.getType(), y);
  auto product = [&](bool odd) -> Value {
    auto part = [&](Value v) -> Value {
      v = vector::BitCastOp::create(b, pairs, v);
      if (!odd)
        v = arith::ShLIOp::create(b, v, number(32));
      return arith::ShRSIOp::create(b, v, number(32)); // which the multiplication does not need
    };
    return arith::AddIOp::create(b, arith::MulIOp::create(b, part(x), part(y)), number(int64_t(1) << 30));
  };
  // bits 31 to 62, in the lower half of the even lanes' and the upper half of the odd ones'
  Value even =
      arith::AndIOp::create(b, arith::ShRUIOp::create(b, product(false), number(31)), number(0xFFFFFFFF));
  Value odd = arith::AndIOp::create(b, arith::ShLIOp::create(b, product(true), number(1)),
                                    number(int64_t(0xFFFFFFFF00000000)));
  return vector::BitCastOp::create(b, x.getType(), arith::OrIOp::create(b, even, odd));
}

} // namespace lathe::codegen
