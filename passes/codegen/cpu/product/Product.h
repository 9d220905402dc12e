// A blocked matrix product over strided operands: what kernel.dot and 1x1 convolutions have in common.
#ifndef LATHE_PASSES_CODEGEN_CPU_PRODUCT_PRODUCT_H
#define LATHE_PASSES_CODEGEN_CPU_PRODUCT_PRODUCT_H

#include "dialects/kernel/Kernel.h"
#include "passes/codegen/cpu/product/Tile.h"
#include "passes/codegen/cpu/Emit.h"

#include <functional>

namespace lathe::cpu {

/// acc[batch..., m, n] = sum over k of a[batch..., m, k] * b[batch..., k, n]; strides in elements.
struct ProductSpec {
  mlir::Type aElem, bElem, accElem;
  mlir::Value a, b; ///< pointers
  mlir::SmallVector<mlir::AffineExpr> batch;
  mlir::SmallVector<mlir::Value> aBatchStrides, bBatchStrides;
  mlir::AffineExpr m, n, k;
  mlir::Value aRow, aStep;       ///< strides of m and k
  /// Rows that are no fixed distance apart: where row m starts, in elements. They are copied to scratch.
  std::function<mlir::Value(mlir::Value row)> aRowStart;
  /// Rows that are put together from several places: writes the k elements of row m.
  std::function<void(mlir::Value row, mlir::Value to)> fillRow;
  mlir::Value resultRow;         ///< stride of m in the result, or null when not known
  mlir::Value bStep, bColumn;    ///< strides of k and n; unused when packed
  KernelPlan plan;               ///< what is not to be estimated
  std::optional<int64_t> panel;  ///< b is [batch..., ceil(n / panel), k, panel]
  /// Only these tiles of the rows of an entry of the batch, where `a` and `b` start, `atOnce` at a time: a
  /// part of another kernel's unit.
  struct TileRange {
    mlir::Value first, last;
    int64_t atOnce;
    mlir::SmallVector<mlir::Value> batch = {};
  };
  std::optional<TileRange> tiles;
  bool panelsFollow = false; ///< in memory, behind those of b: for products that come next
  /// Memory to be fetched row by row beside the product's, if it has any: the first row, the distance of rows
  /// in bytes, and the bytes of a row.
  std::optional<TileOperands::Stream> fetched;
  /// Steps side by side, if packed: [..., ceil(k / interleaved), panel, interleaved]; k is static.
  int64_t interleaved = 1;
  /// Operands in groups (Format.h): b comes in panels of them, or is packed so if of floats, and k is padded by zeros to
  /// this depth.
  std::optional<int64_t> pairedDepth;
  bool strassen = false;         ///< by Strassen's algorithm: see Strassen.h
  unsigned columnDim = 0;        ///< dimension of the result along which n runs
  /// Index in the result of an element.
  std::function<mlir::SmallVector<mlir::Value>(mlir::ValueRange batch, mlir::Value row, mlir::Value column)> index;
};

/// The product that an op computes, on the operands of its function.
ProductSpec dotSpec(kernel::DotOp op, KernelBuilder &b);

/// Where the operands of an entry of the batch start.
std::pair<mlir::Value, mlir::Value> operandsOf(KernelBuilder &b, const ProductSpec &spec,
                                               mlir::ValueRange batchIndex);

/// The register tile of a product.
TileShape productTile(KernelBuilder &b, const ProductSpec &spec);

/// Emits all loops, and the attributes of the function.
mlir::LogicalResult emitProduct(KernelBuilder &b, const ProductSpec &spec, Epilogue &epilogue);

/// A panel of the right operand to be copied to scratch as [k][columns], zero-padded on the right.
struct PanelSource {
  mlir::Type elem;
  mlir::Value pointer;        ///< first column, k = 0
  mlir::Value k, step, column; ///< size and strides
  mlir::Value validColumns;   ///< null: all
};
void packPanel(KernelBuilder &b, TileShape shape, mlir::Type accElem, const PanelSource &from, mlir::Value to);
/// All panels of a right operand of n columns one after the other, and the bytes they take.
void packPanels(KernelBuilder &b, TileShape shape, mlir::Type accElem, const PanelSource &from, int64_t n,
                mlir::Value to);
int64_t panelBytes(TileShape shape, mlir::Type accElem, int64_t n, int64_t k);

/// Copies `count` elements at unit stride with conversion to `toElem`.
void copyRun(KernelBuilder &b, mlir::Type fromElem, mlir::Value from, mlir::Type toElem, mlir::Value to, mlir::Value count);
void zeroRun(KernelBuilder &b, mlir::Type elem, mlir::Value to, mlir::Value count);

/// One dimension of the window of an output pixel.
struct CopiedDim {
  mlir::Value in, taps, start; ///< sizes; the position in the input of the first tap, maybe beside it
  int64_t dilation = 1;
  bool leaves = true; ///< some taps may lie beside the input
};
/// Writes a window to `to` in the order of the filter, the last dimension (without dilation) and the channels as one run of
/// `elem`. `copy` gets the offset in the input, `zeros` and it where to write and how many elements; what they write beyond their
/// end is overwritten.
void fillWindow(KernelBuilder &b, mlir::ArrayRef<CopiedDim> dims, mlir::Value image, mlir::Value channels, mlir::Type elem,
                mlir::Value to, mlir::function_ref<void(mlir::Value from, mlir::Value to, mlir::Value count)> copy,
                mlir::function_ref<void(mlir::Value to, mlir::Value count)> zeros);

/// Row-major strides in elements; `row`: of rows of the last dimension that lie apart.
mlir::SmallVector<mlir::Value> stridesOf(KernelBuilder &b, mlir::RankedTensorType type, int64_t row = 0);

} // namespace lathe::cpu

#endif
