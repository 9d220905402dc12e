// Products in tiles: result[m, n] = sum over k of lhs[m, k] * rhs[k, n], a tile of results a block. Both
// operands pass through shared memory, two stages of them, and each thread keeps a small rectangle of sums in
// registers. Where the operands' elements lie and what becomes of a sum is the caller's.
//
// A sum is a chain of multiply-adds in the order of k, whatever the tile. Only where tiles are few and deep,
// several groups of a block's threads share the depth: then it is as many chains, added up in order.
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
  /// Times that all groups do such a tile of a sum of so many steps.
  int64_t turns(int64_t steps) const { return llvm::divideCeil(steps, depth * parts); }
};

/// Where elements of an operand lie.
struct TilePlace {
  mlir::Value index;  ///< of the first, in elements
  mlir::Value inside; ///< false where zeros stand for them, and `index` is one that may be read all the same;
                      ///< null: never
};

/// The same of an operand with a table.
struct TileAddress {
  mlir::Value pointer;
  mlir::Value inside; ///< false where zeros stand for the elements, and none may be read; null: never
};

/// What a step adds to the places of an operand's elements, looked up in shared memory.
struct TileTable {
  int64_t bytes = 0; ///< 0: there is none, and places are computed
  /// Called once, before the first `look`: each of so many threads writes its share. A barrier follows.
  std::function<void(mlir::Value memory, mlir::Value thread, int64_t threads)> fill;
  /// The place of a line's element `k` in step `step`, a number, of the depth; also of the steps of one turn more than there are.
  std::function<TileAddress(int64_t slot, mlir::Value step, mlir::Value k)> look;
};

/// One operand, as elements [line, k]: lines are rows of the left operand or columns of the right one.
struct TileOperand {
  mlir::Value pointer;
  mlir::Type element;
  bool alongDepth = true; ///< neighbours in k lie side by side in memory, else those in lines
  int64_t vector =
      1; ///< elements that one access takes in that direction, where the first is a multiple of that many
  /// Called once for each line that a thread reads, before the first load; the line exists.
  std::function<void(int64_t slot, mlir::Value line)> begin;
  /// The place of [line, first + k], which exists. `first` is the same for neighbouring threads.
  std::function<TilePlace(int64_t slot, mlir::Value first, mlir::Value k)> at;
  TileTable table;
  /// A thread's accesses are of one line, side by side with those of its neighbour, where that leaves accesses of 32 bytes together; what
  /// places them is then the same for all.
  bool oneLine = false;
};

/// A dense operand whose lines lie along dimension `line` and whose depth along `depth`; `base`: elements to
/// the part that is read; `widest`: bytes of an access.
TileOperand denseOperand(codegen::KernelBuilder &b, mlir::RankedTensorType type, int64_t line, int64_t depth,
                         mlir::Value pointer, mlir::Value base, int64_t widest);
/// The most elements, a power of two, of at most `widest` bytes together, into which runs of `inner` divide;
/// 1 if it is unknown.
int64_t widestVector(int64_t inner, mlir::Type element, int64_t widest);

struct TileProduct {
  mlir::Type sum; ///< element type: f32, f64, or an integer of 32 or 64 bits
  mlir::Value rows, columns, depth;
  mlir::Value tileRow, tileColumn; ///< numbers of this block's tile
  TileOperand lhs, rhs;
  bool rowsInner = false; ///< results of neighbouring rows lie side by side, else those of columns
  int64_t lanes = 1;      ///< neighbouring columns that are stored together: see storedLanes
  /// Stores the result of a sum, or of a vector of `lanes` sums, at [row, column].
  std::function<mlir::LogicalResult(mlir::Value row, mlir::Value column, mlir::Value sum)> store;
};

/// The largest of the tiles of 128, 64 and 32 results a side that keeps a device busy; 64 at most unless
/// `large`. Negative sizes are known at run time only. Depends on sizes alone.
int64_t tileEdge(int64_t rows, int64_t columns, int64_t batch, bool large);
/// The shape for a product of so many results.
TileShape chooseTile(int64_t rows, int64_t columns, int64_t depth, int64_t batch, mlir::Type sum,
                     bool large = true);

/// Emits the work of one block.
mlir::LogicalResult emitTile(BlockFrame &frame, const TileShape &shape, const TileProduct &product);

// --- what tiles of other kinds share with these

/// What one thread of a group loads of an operand's tile: the places of its accesses there.
struct TileSide {
  const TileOperand *operand = nullptr;
  int64_t lines = 0, depth = 0;        ///< of a tile
  mlir::SmallVector<mlir::Value> line; ///< of each access, in the tile
  mlir::SmallVector<mlir::Value> k;
  int64_t apart = 0; ///< steps from one access of a thread to the next where all are of one line
  size_t slots() const { return line.size(); }

  TileSide() = default;
  /// `thread`: of the `threads` that load the tile with number `tile`, of an operand with `count` lines.
  TileSide(codegen::KernelBuilder &b, const TileOperand &operand, int64_t lines, int64_t depth,
           mlir::Value thread, int64_t threads, mlir::Value tile, mlir::Value count);
  /// The place of an access in step `step`, of a sum of `count` elements. What lies beyond the depth is not
  /// `inside`, but for steps beyond the last one, counted in groups of `together`: those read something and
  /// nobody uses it.
  TilePlace at(codegen::KernelBuilder &b, size_t slot, mlir::Value step, mlir::Value count,
               int64_t together) const;
  /// The same of a step that is known to lie within the depth.
  TilePlace within(codegen::KernelBuilder &b, size_t slot, mlir::Value step) const;
};

/// Sums of some rows of a tile in shared memory.
struct TileSums {
  mlir::Value memory;
  int64_t rows = 0, columns = 0;
  int64_t pitch = 0;                             ///< elements from one row to the next
  int64_t parts = 1, partElements = 0;           ///< so many such areas are added up, in order
  mlir::Value top, left;                         ///< of the tile
  std::function<mlir::Value(mlir::Value)> rowOf; ///< number in the tile of a row
};
/// Stores the results of sums; all threads of the block must reach it, behind a barrier.
mlir::LogicalResult storeSums(BlockFrame &frame, const TileProduct &product, const TileSums &sums);

} // namespace lathe::nvptx

#endif
