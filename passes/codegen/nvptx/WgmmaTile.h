// Products in tiles, as in Tile.h, by the warpgroup products of sm_90a (wgmma): four warps multiply what lies in shared memory
// and keep 64 rows of sums in registers. In the portable image the same kernel is that of MmaTile.h, whose launch serves both:
// blocks have as many threads, and where a tile has more columns, the last blocks have nothing to do.
//
// Operands lie in shared memory as the instruction's descriptors know them, in lines of 64 or 128 bytes whose 16-byte pieces
// are permuted by xor. What is multiplied as it lies in memory comes there by cp.async; what is rounded, or words and bytes that
// do not lie along the depth, through registers.
#ifndef LATHE_PASSES_CODEGEN_NVPTX_WGMMATILE_H
#define LATHE_PASSES_CODEGEN_NVPTX_WGMMATILE_H

#include "passes/codegen/nvptx/MmaTile.h"

namespace lathe::nvptx {

/// Results of a tile, in multiples of 64, and what passes through shared memory.
struct WgmmaShape {
  int64_t rows, columns;
  int64_t lineBytes; ///< of steps of a line in a stage: 64 or 128
  int64_t stages;
  int64_t underWay;  ///< stages whose products may be under way when the next one's begin: 0 or 1
  int64_t residents; ///< blocks that are to fit a multiprocessor
  int64_t threads() const { return 2 * rows; } ///< a warpgroup has 64 rows
};

/// Why there are none in place of tiles of this shape; empty if there are. `wide`: as chooseMmaShape has it.
std::string whyNoWgmmaTile(MmaKind kind, const MmaShape &shape, bool wide);
/// Whether an operand of these elements is multiplied as it lies in memory; else it passes through registers.
bool isWgmmaCopied(MmaKind kind, mlir::Type element, bool alongDepth);
/// The shape in place of that; `copied`: both operands are. Negative sizes are known at run time only.
WgmmaShape chooseWgmmaShape(MmaKind kind, const MmaShape &shape, bool copied, int64_t rows, int64_t columns, int64_t batch);
/// Emits the work of one block.
mlir::LogicalResult emitWgmmaTile(BlockFrame &frame, MmaKind kind, const WgmmaShape &shape, const TileProduct &product);

} // namespace lathe::nvptx

#endif
