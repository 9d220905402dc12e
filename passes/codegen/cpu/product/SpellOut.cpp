// The integer dot products of processors written out.
#include "passes/codegen/cpu/product/SpellOut.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
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

static Value spellOut(ImplicitLocOpBuilder &b, LLVM::CallIntrinsicOp call) {
  StringRef name = call.getIntrin();
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
