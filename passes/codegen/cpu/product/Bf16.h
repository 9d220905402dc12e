// Products and convolutions of bf16 operands with f32 sums (--precision bf16).
//
// An op marked `bf16` is computed so: both operands are rounded to bf16 (nearest, ties to even; denormals become zero),
// products are summed in f32. Right operands lie in panels of pairs, [panel][depth / 2][columns][2], which both
// instruction sets read: AVX512_BF16 (vdpbf16ps) and AMX (tdpbf16ps, tiles of 16 rows by 16 columns).
#ifndef LATHE_PASSES_CODEGEN_CPU_PRODUCT_BF16_H
#define LATHE_PASSES_CODEGEN_CPU_PRODUCT_BF16_H

#include "dialects/kernel/Kernel.h"
#include "passes/codegen/cpu/product/Product.h"

#include <functional>

namespace lathe::cpu {

/// How the reduction of an op is cut. It is `runs` x `run` long; in the panels each run is padded by zeros to a
/// multiple of `step`, an even number of at most 32 elements.
struct Bf16Layout {
  int64_t panel = 32; ///< columns
  int64_t step = 32, run = 0, runs = 1;
  bool gathered = false; ///< the left operand is copied to rows of `paddedRun()` elements (one run)

  int64_t paddedRun() const { return (run + step - 1) / step * step; }
  int64_t depth() const { return runs * paddedRun(); }
  int64_t steps() const { return depth() / step; }
};

/// The layout of an op that refuseBf16 accepts.
Bf16Layout bf16Layout(kernel::DotOp op);
Bf16Layout bf16Layout(kernel::ConvOp op);

/// Why an op is not computed from bf16 operands, or null when it can be. `op` is a kernel.dot or kernel.conv.
const char *refuseBf16(mlir::Operation *op);

/// Marks what is computed from bf16 operands, packs constant right operands, and keeps tensors between kernels in
/// bf16. Without AMX what Winograd's algorithm does faster in f32 is left to it, unless `exact`. Does nothing on a target
/// without the instructions. Returns the number of ops marked.
mlir::FailureOr<unsigned> useBf16(mlir::ModuleOp module, const KernelTarget &target, bool exact = false);

/// A product with a layout, by its strides; m may be known at run time only, n and k are static.
mlir::LogicalResult emitBf16Product(KernelBuilder &b, const ProductSpec &spec, const Bf16Layout &layout,
                                    Epilogue &epilogue);
/// Emits a marked op.
mlir::LogicalResult emitBf16Dot(kernel::DotOp op, KernelBuilder &b);
mlir::LogicalResult emitBf16Conv(kernel::ConvOp op, KernelBuilder &b);

/// `lanes` elements of f32 or bf16 as bits of bf16 (i16). `mask`: lanes that are off give zero.
mlir::Value loadBf16Bits(KernelBuilder &b, mlir::Type elem, mlir::Value base, mlir::Value index, unsigned lanes = 1,
                         mlir::Value mask = {});
/// Copies `count` elements at unit stride, rounded to bf16, and zeros up to the next multiple of 32 that the target
/// must have room for.
void copyToBf16(KernelBuilder &b, mlir::Type elem, mlir::Value from, mlir::Value to, mlir::Value count);

/// A right operand known at run time only, one panel of it.
struct Bf16PanelSource {
  mlir::Type elem;
  mlir::Value pointer;      ///< first column, k = 0
  mlir::Value step, column; ///< strides of k and of columns
  int64_t columns = 0;      ///< that exist
};
/// Copies a panel to `to` as pairs; columns beyond the last one hold anything finite or not.
void packBf16Panel(KernelBuilder &b, const Bf16Layout &layout, const Bf16PanelSource &from, mlir::Value to);

/// The rows that the panels of the right operand meet, cut into tiles of `height` rows.
struct Bf16Rows {
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
class Bf16Tiles {
public:
  Bf16Tiles(KernelBuilder &b, const Bf16Layout &layout, Epilogue &epilogue, unsigned columnDim);

  /// Rows of the highest tile.
  static unsigned maxHeight(const KernelTarget &target) { return target.amxBf16 ? 16 : 12; }
  /// Before the first and after the last panel of a call.
  void begin(unsigned height);
  void end();
  /// Loops over the tiles of rows, as many at once as registers hold: `body` gets the first one and their number.
  void forEachGroup(const Bf16Rows &rows, llvm::function_ref<void(mlir::Value tile, unsigned count)> body);
  /// One group of tiles against one panel, of which `columns` exist. `outer`: the runs, outermost first (strides in
  /// elements). `next`: what all groups together fetch to L2 meanwhile, or null.
  mlir::LogicalResult emit(const Bf16Rows &rows, mlir::Value tile, unsigned count, mlir::Value panel, int64_t columns,
                           mlir::ArrayRef<ReductionLoop> outer, mlir::Value next = {});
  /// Whether all panels should meet a group of tiles before the next group's turn: the panels stay in L2, and the rows
  /// of the result are written as a whole.
  static bool rowsFirst(const KernelTarget &target, const Bf16Layout &layout, int64_t panels) {
    return panels > 1 && layout.depth() * layout.panel * 2 * panels <= target.ofL2(target.l2Panels);
  }

private:
  void sumsAmx(const Bf16Rows &rows, mlir::ArrayRef<mlir::Value> a, mlir::Value panel, unsigned vecs,
               mlir::ArrayRef<ReductionLoop> outer, mlir::Value tile, mlir::Value next);
  void sumsAvx512(const Bf16Rows &rows, mlir::Value a, mlir::Value panel, unsigned vecs,
                  mlir::ArrayRef<ReductionLoop> outer);
  mlir::LogicalResult finish(const Bf16Rows &rows, mlir::Value tile, mlir::Value sums, int64_t columns);
  mlir::LogicalResult finishRow(mlir::ArrayRef<mlir::Value> index, mlir::Value sums, int64_t columns);
  void intrinsic(llvm::StringRef name, mlir::ValueRange args);
  mlir::Value tileNumber(unsigned n);

  KernelBuilder &b;
  const Bf16Layout &layout;
  Epilogue &epilogue;
  unsigned columnDim;
  mlir::Value buffer; // sums of the tiles done at once, rows of layout.panel
};

} // namespace lathe::cpu

#endif
