// See Block.h.
#include "passes/codegen/nvptx/Block.h"

#include "dialects/hlo/Shape.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <cassert>

using namespace mlir;

namespace lathe::nvptx {

static Value intrinsic(codegen::KernelBuilder &b, StringRef name, Type result, ValueRange args) {
  return LLVM::CallIntrinsicOp::create(b, result, b.getStringAttr(name), args).getResult(0);
}

static Value i32(codegen::KernelBuilder &b, int64_t v) { return b.cstI(b.getI32Type(), v); }

BlockFrame::BlockFrame(codegen::KernelBuilder &b, int64_t threads) : b(b), threads(threads) {
  assert(threads >= warpThreads && threads <= 1024 && llvm::isPowerOf2_64(threads));
  b.func->setAttr(blockAttribute, b.getI64IntegerAttr(threads));
  thread = arith::ExtUIOp::create(b, b.getI64Type(), intrinsic(b, "llvm.nvvm.read.ptx.sreg.tid.x", b.getI32Type(), {}));
}

void BlockFrame::setBlocks(AffineExpr count) { b.setExtent(hlo::simplify(count * threads)); }

Value BlockFrame::shared(int64_t bytes, int64_t align) {
  constexpr unsigned space = 3;
  auto type = [&](int64_t size) { return LLVM::LLVMArrayType::get(b.getI8Type(), size); };
  if (!global) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(b.func);
    const std::string name = b.func.getSymName().str() + "_shared";
    global = LLVM::GlobalOp::create(b, type(bytes), /*isConstant=*/false, LLVM::Linkage::Internal, name, Attribute(),
                                    /*alignment=*/16, space);
    b.setInsertionPointToStart(&b.func.getBody().front());
    memory = LLVM::AddressOfOp::create(b, LLVM::LLVMPointerType::get(b.getContext(), space), name);
  }
  auto old = cast<LLVM::GlobalOp>(global);
  old.setAlignment(std::max<uint64_t>(align, old.getAlignment().value_or(16)));
  old.setGlobalType(type(std::max<int64_t>(bytes, cast<LLVM::LLVMArrayType>(old.getGlobalType()).getNumElements())));
  return memory;
}

Value BlockFrame::launchedShared(int64_t bytes, int64_t align) {
  constexpr unsigned space = 3;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(b.func);
  const std::string name = b.func.getSymName().str() + "_launched";
  LLVM::GlobalOp::create(b, LLVM::LLVMArrayType::get(b.getI8Type(), 0), /*isConstant=*/false, LLVM::Linkage::External, name, Attribute(),
                         align, space);
  b.func->setAttr(sharedAttribute, b.getI64IntegerAttr(bytes));
  b.setInsertionPointToStart(&b.func.getBody().front());
  return LLVM::AddressOfOp::create(b, LLVM::LLVMPointerType::get(b.getContext(), space), name);
}

void BlockFrame::setResidents(int64_t blocks) { b.func->setAttr(residentsAttribute, b.getI64IntegerAttr(blocks)); }

void BlockFrame::barrier() {
  LLVM::CallIntrinsicOp::create(b, b.getStringAttr("llvm.nvvm.barrier.cta.sync.aligned.all"), ValueRange{i32(b, 0)});
}

Value BlockFrame::exchange(Value v, int64_t distance) { return shuffle(v, "llvm.nvvm.shfl.sync.bfly.i32", i32(b, distance)); }

Value BlockFrame::broadcast(Value v, Value lane) { return shuffle(v, "llvm.nvvm.shfl.sync.idx.i32", lane ? lane : i32(b, 0)); }

Value BlockFrame::ballot(Value condition) {
  return intrinsic(b, "llvm.nvvm.vote.ballot.sync", b.getI32Type(), {i32(b, -1), condition});
}

// The instruction moves 32 bits.
Value BlockFrame::shuffle(Value v, StringRef how, Value which) {
  Type type = v.getType(), word = b.getI32Type();
  if (auto parts = dyn_cast<VectorType>(type)) { // a complex number
    SmallVector<Value> moved;
    for (int64_t i = 0; i < parts.getNumElements(); ++i)
      moved.push_back(shuffle(vector::ExtractOp::create(b, v, i), how, which));
    return vector::FromElementsOp::create(b, parts, moved);
  }
  auto move = [&](Value x) { return intrinsic(b, how, word, {i32(b, -1), x, which, i32(b, 31)}); };
  const unsigned bits = type.getIntOrFloatBitWidth();
  Type whole = b.getIntegerType(bits);
  Value raw = type == whole ? v : arith::BitcastOp::create(b, whole, v).getResult(), result;
  if (bits == 64) {
    Value half = b.i64(32);
    Value low = move(arith::TruncIOp::create(b, word, raw));
    Value high = move(arith::TruncIOp::create(b, word, arith::ShRUIOp::create(b, raw, half)));
    low = arith::ExtUIOp::create(b, whole, low);
    high = arith::ExtUIOp::create(b, whole, high);
    result = arith::OrIOp::create(b, low, arith::ShLIOp::create(b, high, half));
  } else if (bits == 32) {
    result = move(raw);
  } else {
    result = arith::TruncIOp::create(b, whole, move(arith::ExtUIOp::create(b, word, raw)));
  }
  return type == whole ? result : arith::BitcastOp::create(b, type, result).getResult();
}

} // namespace lathe::nvptx
