// Products in tiles: result[m, n] = sum over k of lhs[m, k] * rhs[k, n], a tile of results a block. Both operands pass through shared
// memory, two stages of them, and each thread keeps a small rectangle of sums in registers. Where the operands' elements
// lie and what becomes of a sum is the caller's.
//
// A sum is a chain of multiply-adds in the order of k, whatever the tile. Only where tiles are few and deep, several groups of a block's
// threads share the depth: then it is as many chains, added up in order.
#ifndef LATHE_PASSES_CODEGEN_NVPTX_TILE_H
#define LATHE_PASSES_CODEGEN_NVPTX_TILE_H

#include "passes/codegen/nvptx/Block.h"

#include <functional>

namespace lathe::nvptx {

/// Sizes of a tile and of a thread's part of it. Powers of two.
struct TileShape {
  int64_t rows, columns, depth; ///< of a tile; `depth` steps of the sum are in shared memory at once
  int64_t threadRows, threadColumns;
  int64_t parts = 1; ///< groups of threads that share the depth, step by step in turn
  int64_t groupThreads() const { return rows / threadRows * (columns / threadColumns); }
  int64_t threads() const { return parts * groupThreads(); }
};

/// One operand, as elements [line, k]: lines are rows of the left operand or columns of the right one.
struct TileOperand {
  bool alongDepth = true; ///< neighbours in k lie side by side in memory, else those in lines
  int64_t vector = 1;     ///< elements that one access takes in that direction
  /// Called once for each line that a thread reads, before the first load; the line exists.
  std::function<void(int64_t slot, mlir::Value line)> begin;
  /// Elements from [line, k] on, in the type of the sums: a scalar, or a vector of `vector`. k is in range.
  std::function<mlir::Value(int64_t slot, mlir::Value line, mlir::Value k)> load;
};

/// A dense operand whose lines lie along dimension `line` and whose depth along `depth`; `base`: elements to the part that is read.
TileOperand denseOperand(codegen::KernelBuilder &b, mlir::RankedTensorType type, int64_t line, int64_t depth, mlir::Value pointer,
                         mlir::Value base, mlir::Type sum);

struct TileProduct {
  mlir::Type sum; ///< element type: f32, f64, or an integer of 32 or 64 bits
  mlir::Value rows, columns, depth;
  mlir::Value tileRow, tileColumn; ///< numbers of this block's tile
  TileOperand lhs, rhs;
  bool rowsInner = false; ///< results of neighbouring rows lie side by side, else those of columns
  /// Stores the result of a sum at [row, column].
  std::function<mlir::LogicalResult(mlir::Value row, mlir::Value column, mlir::Value sum)> store;
};

/// The shape for a product of so many results; negative where it is known at run time only. Depends on sizes alone.
TileShape chooseTile(int64_t rows, int64_t columns, int64_t depth, int64_t batch, mlir::Type sum);

/// Emits the work of one block.
mlir::LogicalResult emitTile(BlockFrame &frame, const TileShape &shape, const TileProduct &product);

} // namespace lathe::nvptx

#endif
