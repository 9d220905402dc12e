// Products in tiles, as in Tile.h, whose sums are made by tensor cores (mma.sync): a warp has a rectangle of
// 16x8 results. Operands lie in shared memory in lines of 16-byte pieces, whose places are permuted so that
// neither stores nor ldmatrix meet a bank twice.
//
// Operands that lie in memory as they are multiplied are copied there by cp.async, three stages of them;
// others pass through registers, where they are rounded once, in two stages. Products are exact and sums f32
// (or i32); in which order a device adds the products of one instruction, and how it rounds on the way, is
// its own.
#ifndef LATHE_PASSES_CODEGEN_NVPTX_MMATILE_H
#define LATHE_PASSES_CODEGEN_NVPTX_MMATILE_H

#include "passes/codegen/nvptx/Tile.h"

namespace lathe::nvptx {

/// The elements that are multiplied.
enum class MmaKind { Tf32, Bf16, F16, S8 };

/// Finds the kind for operands of these types and sums of that. Returns why there is none, or "": f32 is
/// rounded only where the target's precision says so, and nothing is where it is exact.
std::string chooseMmaKind(mlir::Operation *op, mlir::Type lhs, mlir::Type rhs, mlir::Type sum, MmaKind &kind);
/// Steps of the sum in shared memory at once.
int64_t mmaDepth(MmaKind kind);
/// The most bytes of an access to an operand of elements of this type.
int64_t mmaAccess(MmaKind kind, mlir::Type element);

// --- what tiles of other instructions share with these

/// Bytes of an element that is multiplied.
int64_t mmaBytes(MmaKind kind);
/// Whether elements in memory are what is multiplied.
bool isMmaElement(MmaKind kind, mlir::Type element);
/// What a thread loads of an operand's tile in step `step`, as it lies in memory, by one access or by all: see TileSide::at.
mlir::Value loadMmaSlot(codegen::KernelBuilder &b, MmaKind kind, const TileSide &side, size_t slot, mlir::Value step, mlir::Value depth,
                        int64_t together);
mlir::SmallVector<mlir::Value> loadMmaSide(codegen::KernelBuilder &b, MmaKind kind, const TileSide &side, mlir::Value step,
                                           mlir::Value depth, int64_t together);
/// What is multiplied of one of these values, as integers of that width.
mlir::Value roundMmaElements(codegen::KernelBuilder &b, MmaKind kind, const TileOperand &operand, mlir::Value loaded);
/// The same for elements that are what is multiplied, by cp.async to the place in shared memory of each access.
void copyMmaSide(codegen::KernelBuilder &b, MmaKind kind, const TileSide &side, mlir::Value step, mlir::Value depth, int64_t together,
                 llvm::function_ref<mlir::Value(size_t slot)> place);

/// Results of a tile and of a warp, multiples of 16.
struct MmaShape {
  int64_t rows, columns, warpRows, warpColumns;
  int64_t parts = 1; ///< groups of warps that share the depth, stage by stage in turn
  int64_t groupThreads() const { return rows / warpRows * (columns / warpColumns) * warpThreads; }
  int64_t threads() const { return parts * groupThreads(); }
};

/// `wide`: operands are loaded several elements at a time; where they are not, large tiles, and large shares of
/// one, need more registers than there are. Negative sizes are known at run time only.
MmaShape chooseMmaShape(MmaKind kind, int64_t rows, int64_t columns, int64_t depth, int64_t batch, bool wide);

/// A product on tensor cores, and its tile.
struct MmaPlan {
  MmaKind kind;
  MmaShape shape;
  bool wide; ///< see chooseMmaShape

  /// Of an op that chooseMmaKind takes.
  MmaPlan(mlir::Operation *op, mlir::Type lhs, mlir::Type rhs, mlir::Type sum, int64_t rows, int64_t columns, int64_t depth, int64_t batch,
          bool wide);
};

/// Emits the work of one block.
mlir::LogicalResult emitMmaTile(BlockFrame &frame, MmaKind kind, const MmaShape &shape,
                                const TileProduct &product);

} // namespace lathe::nvptx

#endif
