// The frame of kernels whose work is done by all threads of a block together. The function's attribute `kernel.block` holds how
// many they are; its extent counts threads, those of all blocks, and %begin is the number of the block, the same for all its
// threads.
#ifndef LATHE_PASSES_CODEGEN_NVPTX_BLOCK_H
#define LATHE_PASSES_CODEGEN_NVPTX_BLOCK_H

#include "passes/codegen/element/KernelBuilder.h"

namespace lathe::nvptx {

constexpr llvm::StringLiteral blockAttribute = "kernel.block";
constexpr llvm::StringLiteral residentsAttribute = "kernel.residents", sharedAttribute = "kernel.shared";
constexpr int64_t warpThreads = 32;
constexpr int64_t unitThreads = 128; ///< of a block where each has a unit of its own

class BlockFrame {
public:
  /// `threads`: a power of two, at least a warp, at most 1024.
  BlockFrame(codegen::KernelBuilder &b, int64_t threads);

  codegen::KernelBuilder &b;
  const int64_t threads;
  mlir::Value thread; ///< i64, in [0, threads)
  mlir::Value block() const { return b.begin; }
  /// Says how many blocks there are.
  void setBlocks(mlir::AffineExpr count);

  /// The block's shared memory, at least `bytes` of it; at most 48 KiB. The same for each call.
  mlir::Value shared(int64_t bytes, int64_t align = 16);
  /// Memory beyond that, of which a block has `bytes` when it is launched, in place of the former. For functions of
  /// Form::emitHopper only: an image for one architecture says how much its kernels need.
  mlir::Value launchedShared(int64_t bytes, int64_t align);
  /// So many blocks are to fit a multiprocessor. As long as nothing else is said, two of 256 threads are.
  void setResidents(int64_t blocks);
  /// All threads of the block must reach it.
  void barrier();
  /// The value that the thread has whose number in the warp differs in the bits of `distance`. All threads of the warp take part.
  mlir::Value exchange(mlir::Value v, int64_t distance);
  /// The value that the warp's first thread has, or that with this number, an i32. All threads of the warp take part.
  mlir::Value broadcast(mlir::Value v, mlir::Value lane = {});
  /// An i32 with a bit for each thread of the warp for which `condition` holds. All of them take part.
  mlir::Value ballot(mlir::Value condition);

private:
  mlir::Value shuffle(mlir::Value v, llvm::StringRef how, mlir::Value which);
  mlir::Value memory;
  mlir::Operation *global = nullptr;
};

} // namespace lathe::nvptx

#endif
