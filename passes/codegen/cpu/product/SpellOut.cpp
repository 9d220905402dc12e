// The integer dot products of processors, the packs of their sums, and what functions of floats take from AVX-512, written out.
#include "passes/codegen/cpu/product/SpellOut.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace lathe::cpu {

/// The elements that lie `part` behind the start of each group of a vector, extended to 32 bits.
static Value partOfGroups(ImplicitLocOpBuilder &b, Value v, int64_t lanes, int64_t group, int64_t part, bool isUnsigned) {
  SmallVector<int64_t> pick;
  for (int64_t lane = 0; lane < lanes; ++lane)
    pick.push_back(lane * group + part);
  Value few = vector::ShuffleOp::create(b, v, v, pick);
  Type wide = VectorType::get({lanes}, b.getI32Type());
  return isUnsigned ? arith::ExtUIOp::create(b, wide, few).getResult() : arith::ExtSIOp::create(b, wide, few);
}

/// A saturating pack: the elements of both operands in turn, 128 bits at a time, in half as many bits.
static Value spellOutPack(ImplicitLocOpBuilder &b, LLVM::CallIntrinsicOp call, bool isUnsigned) {
  auto result = cast<VectorType>(call.getResult(0).getType());
  const int64_t count = result.getNumElements() / 2, bits = result.getElementTypeBitWidth(), each = 64 / bits;
  auto narrow = [&](Value v) -> Value {
    Type wide = v.getType();
    auto limit = [&](int64_t value) {
      return arith::ConstantOp::create(b, DenseElementsAttr::get(cast<ShapedType>(wide), b.getIntegerAttr(getElementTypeOrSelf(wide), value)));
    };
    v = arith::MaxSIOp::create(b, v, limit(isUnsigned ? 0 : -(int64_t(1) << (bits - 1))));
    v = arith::MinSIOp::create(b, v, limit((int64_t(1) << (isUnsigned ? bits : bits - 1)) - 1));
    return arith::TruncIOp::create(b, VectorType::get({count}, result.getElementType()), v);
  };
  SmallVector<int64_t> pick;
  for (int64_t part = 0; part < count; part += each)
    for (int64_t from : {part, count + part})
      for (int64_t i = 0; i < each; ++i)
        pick.push_back(from + i);
  return vector::ShuffleOp::create(b, narrow(call.getArgs()[0]), narrow(call.getArgs()[1]), pick);
}

static Value splat(ImplicitLocOpBuilder &b, Type type, double value) {
  auto shaped = cast<ShapedType>(type);
  TypedAttr one = isa<FloatType>(shaped.getElementType()) ? TypedAttr(b.getFloatAttr(shaped.getElementType(), value))
                                                          : TypedAttr(b.getIntegerAttr(shaped.getElementType(), int64_t(value)));
  return arith::ConstantOp::create(b, DenseElementsAttr::get(shaped, Attribute(one)));
}

/// The entries of a table of 16 or 32 numbers at the low bits of each of 16 indices.
static Value spellOutTable(ImplicitLocOpBuilder &b, LLVM::CallIntrinsicOp call) {
  ValueRange args = call.getArgs();
  Value table = args[0], index = args[1], result = splat(b, call.getResult(0).getType(), 0);
  const int64_t lanes = cast<VectorType>(result.getType()).getDimSize(0), size = args.size() == 2 ? lanes : 2 * lanes;
  if (args.size() == 3) {
    SmallVector<int64_t> both;
    for (int64_t i = 0; i < size; ++i)
      both.push_back(i);
    table = vector::ShuffleOp::create(b, args[0], args[2], both);
  }
  index = arith::AndIOp::create(b, index, splat(b, index.getType(), double(size - 1)));
  for (int64_t i = 0; i < lanes; ++i) {
    Value at = arith::IndexCastOp::create(b, b.getIndexType(), vector::ExtractOp::create(b, index, i));
    result = vector::InsertOp::create(b, vector::ExtractOp::create(b, table, OpFoldResult(at)), result, i);
  }
  return result;
}

/// p * 2^floor(n), or the third operand where the mask has 0. Half of the power at a time, so that both are numbers.
static Value spellOutScale(ImplicitLocOpBuilder &b, LLVM::CallIntrinsicOp call) {
  ValueRange args = call.getArgs();
  auto type = cast<VectorType>(args[0].getType());
  Type ints = type.clone(b.getI32Type());
  Value n = arith::MaxNumFOp::create(b, arith::MinNumFOp::create(b, args[1], splat(b, type, 250)), splat(b, type, -250));
  Value k = arith::FPToSIOp::create(b, ints, math::FloorOp::create(b, n)), half = arith::ShRSIOp::create(b, k, splat(b, ints, 1)), result = args[0];
  for (Value part : {half, arith::SubIOp::create(b, k, half).getResult()}) {
    Value bits = arith::ShLIOp::create(b, arith::AddIOp::create(b, part, splat(b, ints, 127)), splat(b, ints, 23));
    result = arith::MulFOp::create(b, result, arith::BitcastOp::create(b, type, bits));
  }
  Value on = LLVM::BitcastOp::create(b, type.clone(b.getI1Type()), args[3]);
  return arith::SelectOp::create(b, on, result, args[2]);
}

static Value spellOut(ImplicitLocOpBuilder &b, LLVM::CallIntrinsicOp call) {
  StringRef name = call.getIntrin();
  if (name.contains(".permvar.sf.") || name.contains(".vpermi2var.ps."))
    return spellOutTable(b, call);
  if (name.contains(".mask.scalef.ps."))
    return spellOutScale(b, call);
  if (name.contains(".rcp14.ps.")) // to more bits than the instruction has
    return arith::DivFOp::create(b, splat(b, call.getResult(0).getType(), 1), call.getArgs()[0]);
  if (name.contains(".packss") || name.contains(".packus"))
    return spellOutPack(b, call, name.contains(".packus"));
  if (name.contains(".mask.reduce.ps")) // less what it is rounded to nearest
    return arith::SubFOp::create(b, call.getArgs()[0], math::RoundEvenOp::create(b, call.getArgs()[0]));
  const bool words = name.contains(".pmadd.wd") || name.contains(".pmaddw.d.") || name.contains(".vpdpwssd.");
  const bool isUnsigned = name.contains(".vpdpbusd.") || name.contains(".neon.usdot."), bytes = isUnsigned || name.contains(".neon.sdot.");
  if (!words && !bytes)
    return {};
  ValueRange args = call.getArgs();
  const int64_t lanes = cast<VectorType>(call.getResult(0).getType()).getDimSize(0), group = words ? 2 : 4;
  Value sum = args.size() == 2 ? Value() : args[0], x = args[args.size() - 2], y = args.back();
  for (int64_t i = 0; i < group; ++i) {
    Value product = arith::MulIOp::create(b, partOfGroups(b, x, lanes, group, i, isUnsigned), partOfGroups(b, y, lanes, group, i, false));
    sum = sum ? arith::AddIOp::create(b, sum, product).getResult() : product;
  }
  return sum;
}

void spellOutDots(func::FuncOp function) {
  function.walk([](LLVM::CallIntrinsicOp call) {
    ImplicitLocOpBuilder b(call.getLoc(), call);
    if (Value sum = spellOut(b, call)) {
      call.getResult(0).replaceAllUsesWith(sum);
      call.erase();
    }
  });
}

} // namespace lathe::cpu
