// Exact conversions between f32 and the narrow float types by integer operations.
#include "passes/codegen/element/NarrowFloat.h"

#include "passes/codegen/element/KernelBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace lathe::codegen {

namespace {
struct Format {
  int mantissa, bias;
  bool infinity; ///< f8E4M3FN has none
  int bits;
};
} // namespace

static Format formatOf(FloatType t) {
  if (isa<Float8E5M2Type>(t))
    return {2, 15, true, 8};
  if (isa<Float8E4M3FNType>(t))
    return {3, 7, false, 8};
  return {10, 15, true, 16};
}

Value narrowToF32(KernelBuilder &b, FloatType narrow, Value bits) {
  unsigned lanes = lanesOf(bits.getType());
  Type f32 = widen(b.getF32Type(), lanes), i32 = widen(b.getI32Type(), lanes);
  auto c = [&](int64_t v) { return b.cstI(i32, v); };
  if (narrow.isF16() && b.target.f16c) {
    Value h = arith::BitcastOp::create(b, widen(narrow, lanes), bits);
    return arith::ExtFOp::create(b, f32, h);
  }
  Value x = arith::ExtUIOp::create(b, i32, bits);
  if (narrow.isBF16())
    return arith::BitcastOp::create(b, f32, arith::ShLIOp::create(b, x, c(16)));
  Format f = formatOf(narrow);
  int magBits = f.bits - 1;
  Value sign = arith::ShLIOp::create(b, arith::ShRUIOp::create(b, x, c(magBits)), c(31));
  Value em = arith::AndIOp::create(b, x, c((1 << magBits) - 1));
  Value mag = arith::ShLIOp::create(b, em, c(23 - f.mantissa));
  // the multiplication rebiases normal numbers and normalises denormal ones
  Value scaled = arith::MulFOp::create(b, arith::BitcastOp::create(b, f32, mag),
                                       b.cstBits(f32, uint64_t(254 - f.bias) << 23));
  Value r = arith::BitcastOp::create(b, i32, scaled);
  int special = f.infinity ? ((1 << (magBits - f.mantissa)) - 1) << f.mantissa : (1 << magBits) - 1;
  Value isSpecial = arith::CmpIOp::create(b, arith::CmpIPredicate::uge, em, c(special));
  Value inf = arith::OrIOp::create(b, mag, c(0x7f800000));
  r = arith::SelectOp::create(b, isSpecial, inf, r);
  return arith::BitcastOp::create(b, f32, arith::OrIOp::create(b, r, sign));
}

/// i32 with the narrow bits in the low part.
static Value roundBits(KernelBuilder &b, FloatType narrow, Value v) {
  unsigned lanes = lanesOf(v.getType());
  Type f32 = widen(b.getF32Type(), lanes), i32 = widen(b.getI32Type(), lanes);
  auto c = [&](int64_t x) { return b.cstI(i32, x); };
  Value x = arith::BitcastOp::create(b, i32, v);
  Value isNan = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, v, v);
  if (narrow.isBF16()) {
    Value lsb = arith::AndIOp::create(b, arith::ShRUIOp::create(b, x, c(16)), c(1));
    Value r = arith::AddIOp::create(b, x, arith::AddIOp::create(b, lsb, c(0x7fff)));
    Value nan = arith::OrIOp::create(b, arith::AndIOp::create(b, x, c(int32_t(0x80000000))), c(0x7fc00000));
    r = arith::SelectOp::create(b, isNan, nan, r);
    return arith::ShRUIOp::create(b, r, c(16));
  }
  Format f = formatOf(narrow);
  int magBits = f.bits - 1, drop = 23 - f.mantissa;
  Value mag = arith::AndIOp::create(b, x, c(0x7fffffff));
  Value sign = arith::ShLIOp::create(b, arith::ShRUIOp::create(b, x, c(31)), c(magBits));
  Value lsb = arith::AndIOp::create(b, arith::ShRUIOp::create(b, mag, c(drop)), c(1));
  Value normal = arith::AddIOp::create(b, mag, arith::AddIOp::create(b, lsb, c((1 << (drop - 1)) - 1)));
  normal = arith::SubIOp::create(b, arith::ShRUIOp::create(b, normal, c(drop)),
                                 c(int64_t(127 - f.bias) << f.mantissa));
  // denormal results: adding 2^k whose last place is the smallest denormal makes the FPU round
  uint64_t magicBits = uint64_t(127 + 1 - f.bias - f.mantissa + 23) << 23;
  Value magic = b.cstBits(f32, magicBits);
  Value sum = arith::AddFOp::create(b, arith::BitcastOp::create(b, f32, mag), magic);
  Value denormal = arith::SubIOp::create(b, arith::BitcastOp::create(b, i32, sum), c(magicBits));
  Value isDenormal =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ult, mag, c(int64_t(128 - f.bias) << 23));
  Value r = arith::SelectOp::create(b, isDenormal, denormal, normal);
  int top = f.infinity ? ((1 << (magBits - f.mantissa)) - 1) << f.mantissa : (1 << magBits) - 1;
  Value over = arith::CmpIOp::create(b, arith::CmpIPredicate::ugt, mag, c(int64_t(254) << 23));
  // huge magnitudes: the subtraction above cannot wrap below `top` for finite inputs
  r = arith::MinUIOp::create(b, r, c(top));
  r = arith::SelectOp::create(b, over, c(top), r);
  Value nan;
  if (f.infinity) {
    Value payload = arith::AndIOp::create(b, arith::ShRUIOp::create(b, mag, c(drop)), c((1 << f.mantissa) - 1));
    nan = arith::OrIOp::create(b, payload, c(top | 1 << (f.mantissa - 1)));
  } else {
    nan = c(top);
  }
  r = arith::SelectOp::create(b, isNan, nan, r);
  return arith::OrIOp::create(b, r, sign);
}

Value f32ToNarrow(KernelBuilder &b, FloatType narrow, Value v) {
  unsigned lanes = lanesOf(v.getType());
  Type mem = widen(memType(narrow), lanes);
  if (narrow.isF16() && b.target.f16c) {
    Value h = arith::TruncFOp::create(b, widen(narrow, lanes), v);
    return arith::BitcastOp::create(b, mem, h);
  }
  if (narrow.isBF16() && b.target.fastBf16)
    return arith::BitcastOp::create(b, mem, arith::TruncFOp::create(b, widen(narrow, lanes), v));
  return arith::TruncIOp::create(b, mem, roundBits(b, narrow, v));
}

Value roundToElem(KernelBuilder &b, Type elem, Value v) {
  auto f = dyn_cast<FloatType>(elem);
  if (!f || f.isF32() || f.isF64())
    return v;
  if (f.isBF16() && b.target.fastBf16) { // a store that follows rounds again: the pair folds
    Value narrow = arith::TruncFOp::create(b, widen(f, lanesOf(v.getType())), v);
    return arith::ExtFOp::create(b, v.getType(), narrow);
  }
  if (f.isBF16()) {
    unsigned lanes = lanesOf(v.getType());
    Type f32 = widen(b.getF32Type(), lanes), i32 = widen(b.getI32Type(), lanes);
    Value bits = arith::ShLIOp::create(b, roundBits(b, f, v), b.cstI(i32, 16));
    return arith::BitcastOp::create(b, f32, bits);
  }
  return narrowToF32(b, f, f32ToNarrow(b, f, v));
}

} // namespace lathe::codegen
