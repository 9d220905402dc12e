// The register tile shared by products and convolutions: rows x (vecs * lanes) accumulators held in vector
// registers over a nest of reduction loops, and the epilogue that turns accumulators into stored results.
#ifndef LATHE_PASSES_CODEGEN_CPU_PRODUCT_TILE_H
#define LATHE_PASSES_CODEGEN_CPU_PRODUCT_TILE_H

#include "passes/codegen/Plan.h"
#include "passes/codegen/element/ElementEmitter.h"
#include "passes/codegen/element/Special.h"
#include "passes/codegen/cpu/Emit.h"
#include "passes/codegen/cpu/product/Narrowing.h"

#include <optional>

namespace lathe::cpu {

using codegen::KernelPlan;

/// Shape of a register tile. One row is a row of the left matrix or an output pixel; columns are lanes.
struct TileShape {
  unsigned rows = 1, vecs = 1, lanes = 1;
  unsigned steps = 1; ///< of the sum that share a vector, side by side for each column; added up at the end
  unsigned columns() const { return vecs * lanes / steps; }
  /// What is left when they are added up.
  TileShape folded() const { return {rows, (vecs + steps - 1) / steps, lanes, 1}; }
};

/// The largest tile for a product with these sizes (nullopt: known only at run time). `accElem` is the type sums
/// are kept in. The columns are the panel width for packed operands.
TileShape chooseTile(const KernelTarget &target, mlir::Type accElem, std::optional<int64_t> rows,
                     std::optional<int64_t> columns);

/// The same with what the plan says.
TileShape chooseTile(const KernelTarget &target, mlir::Type accElem, std::optional<int64_t> rows,
                     std::optional<int64_t> columns, const KernelPlan &plan);

/// The tile for a product of few columns, a panel of them all, with several steps of the sum in a vector
/// where that leaves fewer lanes unused: 24 columns are three vectors of two steps rather than four of one,
/// and one column is a vector of steps. `padded`: zeros may be added to the right operand's depth. Says what keeps it
/// from the product; else sets `tile`.
struct ProductTypes {
  mlir::Type left, right, acc; ///< of elements
};
WhyNot whyNotFewColumns(const KernelTarget &target, const ProductTypes &types, std::optional<int64_t> rows, int64_t columns, int64_t depth,
                        bool padded, TileShape &tile);

/// Accumulator rows that fit the registers beside `vecs` vectors of the right operand.
unsigned maxTileRows(const KernelTarget &target, unsigned vecs);

/// The tile for an operand that comes in panels of this width, with so many steps interleaved.
TileShape panelTile(const KernelTarget &target, mlir::Type accElem, int64_t panel, std::optional<int64_t> rows,
                    const KernelPlan &plan = {}, unsigned steps = 1);

/// Instructions of a kernel's epilogue for one vector, roughly.
unsigned epilogueInstructions(mlir::Operation *op);

/// Rows cut into tiles without masks. A static count is cut into at most two heights that differ by one: the
/// first `numHigh` tiles have `low + 1` rows, the others `low`. A run-time count is cut into full tiles, then
/// fours, then single rows. A position is the number of a tile in the first case, of a row in the second.
struct RowTiles {
  RowTiles() = default;
  RowTiles(std::optional<int64_t> count, unsigned maxRows);
  bool isStatic = true;
  unsigned height = 1; ///< of the highest tile
  int64_t low = 0, numHigh = 0, numTiles = 0;

  /// The first row at a position.
  mlir::Value rowAt(KernelBuilder &b, mlir::Value position) const;
  /// The tile of a static count that has a row.
  mlir::Value tileAt(KernelBuilder &b, mlir::Value row) const;
  /// Calls `emit` once for each height, in a loop over the tiles of [first, last).
  void forEach(KernelBuilder &b, mlir::Value first, mlir::Value last,
               mlir::function_ref<void(unsigned height, mlir::Value row)> emit) const;
  /// All tiles of a static count in order, or those of [first, last). Those one after the other for which
  /// `inside(first row, height)` holds share a loop, where `known` is -1; the others come one by one, `known`
  /// being their first row.
  void forEachInside(KernelBuilder &b, mlir::function_ref<bool(int64_t row, int64_t height)> inside,
                     mlir::function_ref<void(mlir::Value row, unsigned height, int64_t known)> emit,
                     mlir::Value first = {}, mlir::Value last = {}) const;
};

/// One dimension of a window over images: `stride` from result to result, `dilation` from tap to tap.
struct WindowSteps {
  int64_t stride = 1, padLow = 0, dilation = 1;

  /// From the first to behind the last of so many taps.
  int64_t reach(int64_t taps) const { return (taps - 1) * dilation + 1; }
  /// Whether all taps of `count` results from the first one on are inside an image of this size.
  bool inside(int64_t first, int64_t count, int64_t taps, int64_t size) const {
    return first * stride - padLow >= 0 && (first + count - 1) * stride - padLow + (taps - 1) * dilation < size;
  }
  /// Where the window of a result starts, and those of its taps, from the first to before the last, that are inside.
  struct Position {
    mlir::Value start, firstTap, lastTap;
  };
  Position at(KernelBuilder &b, mlir::Value result, mlir::Value taps, mlir::Value size) const;
};

/// One level of the reduction, outermost first: `trips` steps, each moving the operands by these many elements.
struct ReductionLoop {
  mlir::Value trips, aStride, bStride;
};

/// Where a tile finds its operands. Element types other than the accumulator's are converted at the load.
struct TileOperands {
  mlir::Type aElem, bElem;
  bool pairs = false;     ///< both lie in groups (Format.h, by aElem), and a step of the innermost loop takes one of a row and a column
  mlir::Value a;          ///< first row, first step
  mlir::Value aRowStride; ///< elements
  mlir::Value b;          ///< first column, first step
  mlir::Value bLess;      ///< what is taken from b, laid out as it is, or null
  mlir::Value bKept;      ///< where the difference is stored
  mlir::Value bTailMask;  ///< mask of the last vector, or null
  unsigned lastSteps = 0; ///< interleaved steps of a last, incomplete iteration behind those of a single loop
  mlir::Value prefetch;   ///< where to start prefetching to L2, or null
  unsigned prefetchLines = 1; ///< cache lines for four steps of the innermost loop
  int64_t ahead = 0;          ///< bytes that `b`, which lies in one run, is fetched to the first cache before it is read
  /// Memory that is read or written row by row soon, fetched while the sums are made.
  struct Stream {
    mlir::Value first, rowBytes; ///< the first row; distance of rows
    int64_t bytes;               ///< of one row
    int64_t rows = 0;            ///< 0: as many as the tile has
  };
  mlir::SmallVector<Stream, 2> streams;
};

/// How many rows behind its own a tile fetches those that the epilogue reads and writes, if it sums up so many steps: none where
/// the sums take longer than memory.
int64_t rowsAhead(const KernelTarget &target, TileShape shape, int64_t steps);

/// Emits the sums of one tile, starting from `init` (empty: zeros); returns rows * vecs vectors of the folded
/// shape, row by row. Interleaved steps are one step of the innermost loop, and want f32 and rows whose steps
/// lie side by side.
mlir::SmallVector<mlir::Value> emitTile(KernelBuilder &b, TileShape shape, mlir::Type accElem, const TileOperands &operands,
                                        mlir::ArrayRef<ReductionLoop> loops, mlir::ValueRange init = {});
/// Loads or stores the accumulators of a tile in a buffer of rows of `columns()` elements.
mlir::SmallVector<mlir::Value> loadTile(KernelBuilder &b, TileShape shape, mlir::Type accElem, mlir::Value buffer);
/// Adds to those in a buffer.
void addToTile(KernelBuilder &b, TileShape shape, mlir::Type accElem, mlir::ValueRange accs, mlir::Value buffer);
void storeTile(KernelBuilder &b, TileShape shape, mlir::Type accElem, mlir::ValueRange accs, mlir::Value buffer);

/// Converts a register value of tensor element type `elem` to the accumulator's type.
mlir::Value toAccumulator(KernelBuilder &b, mlir::Value v, mlir::Type elem, mlir::Type accElem);

/// acc + x * y on register values; complex numbers only with one lane.
mlir::Value multiplyAdd(KernelBuilder &b, mlir::Value x, mlir::Value y, mlir::Value acc, mlir::Type accElem);

/// The epilogue region of an op with a core.
class Epilogue {
public:
  Epilogue(KernelBuilder &b, mlir::Operation *op);

  /// Whether whole vectors along the last dimension can be computed and stored at once.
  bool isVector() const { return vector; }
  /// The accumulator's type, which all results share in shape.
  mlir::RankedTensorType type() const { return mlir::cast<mlir::RankedTensorType>(body.getArgument(0).getType()); }
  /// Memory that goes with the accumulators, element by element.
  struct Stream {
    mlir::Value pointer;
    mlir::Type elem;
    mlir::SmallVector<mlir::Value> dims; ///< for linearize
  };
  /// The results and those operands of the region that have their shape.
  mlir::SmallVector<Stream> streams() const;
  /// Where it has the element at `index`.
  mlir::Value streamAt(const Stream &stream, mlir::ArrayRef<mlir::Value> index) const;
  /// How many bytes it has from an index of a dimension to the next, where dense tensors have `elements`
  /// elements.
  mlir::Value streamStep(const Stream &stream, mlir::Value elements) const;
  /// Rough number of instructions for one vector.
  unsigned cost() const { return instructions; }
  /// Rows of the results are so many elements apart.
  void setRowStride(mlir::Value stride) { resultDims.back() = stride; }

  /// Epilogue and stores for `lanes` consecutive elements starting at `index`, of which `mask` (null: all) exist.
  mlir::LogicalResult emit(mlir::ArrayRef<mlir::Value> index, mlir::Value acc, unsigned lanes, mlir::Value mask = {});

  /// The same for several vectors that lie anywhere, which share the tests of shortcuts and the packs that make bytes; of all elements. The
  /// values of all are computed before the first store, so that loads of extras that several rows share happen once. Bytes are stored four
  /// vectors at a time: LLVM would move all packs to the stores, and keep what they pack until then.
  mlir::LogicalResult emitVectors(mlir::ArrayRef<mlir::SmallVector<mlir::Value>> indices, mlir::ValueRange accs);
  /// How many share a test.
  static constexpr unsigned vectorsAtOnce = 4;

  /// The same for a tile. `rowIndex(r)` gives the full index of row r's first column; `columnDim` is the
  /// dimension along which the lanes run; `columns` the number of valid columns (null: all). The row given to
  /// `rowIndex` may be a run-time value.
  mlir::LogicalResult emitTile(TileShape shape, mlir::ValueRange accs, unsigned columnDim, mlir::Value columns,
                               mlir::function_ref<mlir::SmallVector<mlir::Value>(mlir::Value row)> rowIndex);

  /// The same in a loop over `rows` rows of accumulators in a buffer.
  mlir::LogicalResult emitBuffered(TileShape shape, mlir::Value buffer, mlir::Value rows, unsigned columnDim,
                                   mlir::Value columns,
                                   mlir::function_ref<mlir::SmallVector<mlir::Value>(mlir::Value row)> rowIndex);

private:
  mlir::LogicalResult computeTogether(mlir::ArrayRef<mlir::SmallVector<mlir::Value>> indices, mlir::ValueRange accs,
                                      mlir::SmallVector<std::function<void()>> &stores);
  mlir::FailureOr<mlir::SmallVector<mlir::Value>> compute(mlir::ArrayRef<mlir::Value> index, mlir::Value acc,
                                                          unsigned lanes);
  void store(mlir::ArrayRef<mlir::Value> index, mlir::ValueRange values, mlir::Value mask = {});
  /// Whether everything that the epilogue touches has masked loads and stores.
  bool hasMasks() const;

  KernelBuilder &b;
  mlir::Operation *op;
  mlir::Block &body;
  ElementEmitter emitter;
  mlir::Type accElem;
  mlir::SmallVector<mlir::Value> resultDims;
  mlir::SmallVector<mlir::SmallVector<mlir::Value>> rowDims; ///< for each result, if it is not dense
  mlir::Value current; // what the accumulator argument stands for at the moment
  mlir::Value tileBuffer;
  int64_t tileBufferBytes = 0;
  bool vector = true;
  unsigned instructions = 0;
  Narrowing narrowing; ///< of the only result
};

} // namespace lathe::cpu

#endif
