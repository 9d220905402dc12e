// The integer dot products of processors, and the packs of their sums, written out.
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

static Value spellOut(ImplicitLocOpBuilder &b, LLVM::CallIntrinsicOp call) {
  StringRef name = call.getIntrin();
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
