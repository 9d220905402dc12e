// Epilogues that end in bytes or in numbers of 32 bits, for generators whose accumulators hold the channels in the order in which
// instructions interleave and pack them: four vectors of sums become one of bytes without a permutation, or are stored by fours.
#ifndef LATHE_PASSES_CODEGEN_CPU_CONV_NARROWEPILOGUE_H
#define LATHE_PASSES_CODEGEN_CPU_CONV_NARROWEPILOGUE_H

#include "passes/codegen/cpu/product/Narrowing.h"
#include "passes/codegen/cpu/product/Tile.h"

namespace lathe::cpu {

/// Where the channels of a block are in its four vectors of `lanes` elements of 32 bits: what unpack
/// instructions make of bytes (four to an element, `bytes`) or of both halves' words, which work on each 128
/// bits alone.
struct UnpackedOrder {
  unsigned lanes = 4;
  bool bytes = false;
  static constexpr unsigned vectors = 4;
  unsigned channels() const { return vectors * lanes; }
  /// The first of the four channels in 128 bits number `part` of a vector.
  unsigned firstChannel(unsigned vector, unsigned part) const {
    return bytes ? 16 * part + 4 * vector : vector / 2 * 2 * lanes + 8 * part + vector % 2 * 4;
  }
};

class NarrowEpilogue {
public:
  NarrowEpilogue(KernelBuilder &b, mlir::Operation *op);
  /// What keeps the op's epilogue from this form: its only result is of f32, i32 or bytes, clamped to what they hold, and
  /// made of the accumulators, numbers for each channel and constants.
  static WhyNot whyNot(mlir::Operation *op);

  /// Bytes of the numbers for each channel of a block.
  int64_t tableBytes(UnpackedOrder order) const;
  /// Writes them to memory in the order of the vectors, for the block at a channel.
  void prepare(UnpackedOrder order, mlir::Value channel, mlir::Value table);
  /// What the accumulators of a vector start with: the bias, if the epilogue adds it first, which is left out
  /// then. Else null.
  mlir::Value start(UnpackedOrder order, unsigned vector) const;
  /// Epilogue and store of a block's four vectors, where the first channel has this index.
  mlir::LogicalResult emit(UnpackedOrder order, mlir::ArrayRef<mlir::Value> index, mlir::ValueRange accs);

private:
  mlir::Value load(mlir::BlockArgument arg, UnpackedOrder order, unsigned vector) const;

  KernelBuilder &b;
  mlir::Operation *op;
  mlir::Block &body;
  ElementEmitter emitter;
  const Narrowing narrowing;
  mlir::BlockArgument bias;
  mlir::SmallVector<std::pair<mlir::BlockArgument, mlir::Value>> perChannel; ///< and their pointers
  mlir::SmallVector<mlir::Value> resultDims;
  // of the block being emitted
  mlir::Value table, current;
  UnpackedOrder order;
  unsigned vector = 0;
};

} // namespace lathe::cpu

#endif
