// Products and convolutions in tile registers (AMX): 16 rows by 16 columns, 64 bytes of the sum's steps an instruction.
//
// - Ops marked `bf16` (--precision bf16): both operands are rounded to bf16 (nearest, ties to even; denormals become zero),
//   products are summed in f32.
// - Sums in i32 of bytes, with or without sign on the left, signed ones on the right, constant.
//
// Right operands lie in panels of groups of four bytes, [panel][depth / group][columns][group].
#ifndef LATHE_PASSES_CODEGEN_CPU_PRODUCT_AMX_H
#define LATHE_PASSES_CODEGEN_CPU_PRODUCT_AMX_H

#include "dialects/kernel/Kernel.h"
#include "passes/codegen/cpu/product/Product.h"

#include <functional>

namespace lathe::cpu {

/// How the reduction of an op is cut. It is `runs` x `run` long; in the panels each run is padded by zeros to a
/// multiple of `step`, whole groups of at most 64 bytes.
struct AmxLayout {
  int64_t panel = 32; ///< columns
  int64_t group = 2;  ///< elements of four bytes: 2 of bf16, 4 of bytes
  bool isUnsigned = false; ///< bytes on the left
  int64_t step = 32, run = 0, runs = 1;
  bool gathered = false; ///< the left operand is copied to rows of `paddedRun()` elements (one run)

  int64_t paddedRun() const { return (run + step - 1) / step * step; }
  int64_t depth() const { return runs * paddedRun(); }
  int64_t steps() const { return depth() / step; }
  bool isBytes() const { return group == 4; }
  int64_t elemBytes() const { return 4 / group; }
  /// Elements of 64 bytes.
  int64_t fullStep() const { return 16 * group; }
  /// Elements of the operands in scratch and in panels, and of the sums.
  mlir::Type elem(mlir::Builder &b) const { return isBytes() ? mlir::Type(b.getI8Type()) : b.getBF16Type(); }
  mlir::Type sumElem(mlir::Builder &b) const { return isBytes() ? mlir::Type(b.getI32Type()) : b.getF32Type(); }
};

/// The layout of an op that whyNotBf16 or whyNotByteTiles lets pass, in tile registers.
AmxLayout amxLayout(kernel::DotOp op);
AmxLayout amxLayout(kernel::ConvOp op);

/// Why an op is not computed from bf16 operands. `op` is a kernel.dot or kernel.conv.
WhyNot whyNotBf16(mlir::Operation *op);
/// Why a product of bytes, `rightIsSigned` once it is packed, is not one of tile registers. `op` is a kernel.dot or kernel.conv with a
/// constant right operand.
WhyNot whyNotByteTiles(mlir::Operation *op, const KernelTarget &target, bool rightIsSigned);
/// Whether tile registers multiply for an op: one marked bf16, or of bytes packed for them.
bool inTileRegisters(mlir::Operation *op, const KernelTarget &target);

/// Marks what is computed from bf16 operands, packs constant right operands, and keeps tensors between kernels in
/// bf16. Without AMX what Winograd's algorithm does faster in f32 is left to it, unless `exact`. Does nothing on a target
/// without the instructions. Returns the number of ops marked.
mlir::FailureOr<unsigned> useBf16(mlir::ModuleOp module, const KernelTarget &target, bool exact = false);

/// A product with a layout, by its strides; m may be known at run time only, n and k are static.
mlir::LogicalResult emitAmxProduct(KernelBuilder &b, const ProductSpec &spec, const AmxLayout &layout,
                                    Epilogue &epilogue);
/// Emits an op `inTileRegisters`.
mlir::LogicalResult emitAmxDot(kernel::DotOp op, KernelBuilder &b);
mlir::LogicalResult emitAmxConv(kernel::ConvOp op, KernelBuilder &b);

/// `lanes` elements of f32 or bf16 as bits of bf16 (i16). `mask`: lanes that are off give zero.
mlir::Value loadBf16Bits(KernelBuilder &b, mlir::Type elem, mlir::Value base, mlir::Value index, unsigned lanes = 1,
                         mlir::Value mask = {});
/// Copies `count` elements at unit stride, rounded to bf16, and zeros up to the next multiple of 32 that the target
/// must have room for.
void copyToBf16(KernelBuilder &b, mlir::Type elem, mlir::Value from, mlir::Value to, mlir::Value count);
/// The same for the layout's elements: zeros up to the next multiple of 64 bytes.
void copyToRow(KernelBuilder &b, const AmxLayout &layout, mlir::Type elem, mlir::Value from, mlir::Value to, mlir::Value count);
/// A number of the layout's elements, `count` times; for floats 0 alone.
void repeatInRow(KernelBuilder &b, const AmxLayout &layout, int64_t value, mlir::Value to, mlir::Value count);

/// A right operand known at run time only, one panel of it.
struct AmxPanelSource {
  mlir::Type elem;
  mlir::Value pointer;      ///< first column, k = 0
  mlir::Value step, column; ///< strides of k and of columns
  int64_t columns = 0;      ///< that exist
};
/// Copies a panel to `to` as pairs, of bf16 or, of integers of 8 and 16 bits, of 16 bits; columns beyond the last one hold anything
/// finite or not. The panel is a multiple of `lanes`.
void packAmxPanel(KernelBuilder &b, const AmxLayout &layout, const AmxPanelSource &from, mlir::Value to, unsigned lanes = 16);

/// The rows that the panels of the right operand meet, cut into tiles of `height` rows.
struct AmxRows {
  unsigned height = 16;
  mlir::Value tiles;     ///< how many
  mlir::Value rowStride; ///< elements
  std::function<mlir::Value(mlir::Value tile)> pointer; ///< of the tile's first row
  /// Rows of the tile that are part of the result: [first, second).
  std::function<std::pair<mlir::Value, mlir::Value>(mlir::Value tile)> bounds;
  /// Index of a row's first column in the result.
  std::function<mlir::SmallVector<mlir::Value>(mlir::Value tile, mlir::Value row)> index;
  /// Whether a row within the bounds exists (null: all do).
  std::function<mlir::Value(mlir::Value tile, mlir::Value row)> exists;
};

/// The part of a marked op that products and convolutions share: all tiles of a block of rows against one panel.
class AmxTiles {
public:
  AmxTiles(KernelBuilder &b, const AmxLayout &layout, Epilogue &epilogue, unsigned columnDim);

  static constexpr unsigned maxHeight = 16; ///< rows of the highest tile
  /// Before the first and after the last panel of a call.
  void begin(unsigned height);
  void end();
  /// Loops over the tiles of rows, as many at once as registers hold: `body` gets the first one and their number.
  void forEachGroup(const AmxRows &rows, llvm::function_ref<void(mlir::Value tile, unsigned count)> body);
  /// One group of tiles against one panel, of which `columns` exist. `outer`: the runs, outermost first (strides in
  /// elements). `next`: what all groups together fetch to L2 meanwhile, or null.
  mlir::LogicalResult emit(const AmxRows &rows, mlir::Value tile, unsigned count, mlir::Value panel, int64_t columns,
                           mlir::ArrayRef<ReductionLoop> outer, mlir::Value next = {});
  /// Whether all panels should meet a group of tiles before the next group's turn: the panels stay in L2, and the rows
  /// of the result are written as a whole.
  static bool rowsFirst(const KernelTarget &target, const AmxLayout &layout, int64_t panels) {
    return panels > 1 && layout.depth() * layout.panel * layout.elemBytes() * panels <= target.ofL2(target.l2Panels);
  }

private:
  void sumTiles(const AmxRows &rows, mlir::ArrayRef<mlir::Value> a, mlir::Value panel, unsigned vecs,
               mlir::ArrayRef<ReductionLoop> outer, mlir::Value tile, mlir::Value next);
  mlir::LogicalResult finish(const AmxRows &rows, mlir::Value tile, mlir::Value sums, int64_t columns);
  mlir::LogicalResult finishRow(mlir::ArrayRef<mlir::Value> index, mlir::Value sums, int64_t columns);
  void intrinsic(llvm::StringRef name, mlir::ValueRange args);
  mlir::Value tileNumber(unsigned n);

  KernelBuilder &b;
  const AmxLayout &layout;
  Epilogue &epilogue;
  unsigned columnDim;
  mlir::Value buffer; // sums of the tiles done at once, rows of layout.panel
};

} // namespace lathe::cpu

#endif
