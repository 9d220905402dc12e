// Unit: the ops that a quantized kernel computes as one, with one rounding at the end: a convolution with its bias and clamp, a
// softmax, a function of one value that becomes a table. Passes of this room find the units anew in the same IR, so that
// marks on ops are all that they hand on.
//
// Marks, on the op that makes a unit's result:
//   hlo.quantize   string: chosen, with the unit's kind
//   hlo.ranges     f64 array: lowest and highest of each input, then of the result (calibration)
//   hlo.quantized  types of MLIR's quant dialect: each input's, the result's, then that of the weights if there are any
//   hlo.keep_float unit: not to be chosen
//   hlo.given_range f64 array: lowest and highest of an op's result or of an argument, which the model itself says; calibration does not change it
#ifndef LATHE_PASSES_QUANTIZE_UNITS_H
#define LATHE_PASSES_QUANTIZE_UNITS_H

#include "dialects/hlo/Hlo.h"
#include "passes/simplify/MatchResize.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <cmath>
#include <optional>
#include <vector>

namespace lathe::quantize {

constexpr const char *markAttr = "hlo.quantize", *rangesAttr = "hlo.ranges", *typesAttr = "hlo.quantized", *keepAttr = "hlo.keep_float",
                     *givenAttr = "hlo.given_range", *unreachedAttr = "hlo.unreached";

enum class UnitKind {
  Conv,     ///< a convolution with constant weights, scaled per output channel
  Dot,      ///< a product with a constant matrix, scaled per column
  Scale,    ///< x * constant per channel
  Matmul,   ///< a product of two values
  Add, Sub, Mul,
  MaxPool, AveragePool, Mean,
  Softmax,
  Resize,   ///< bilinear, of images: input and result share parameters
  Table,    ///< any function of single elements of one value
  Move      ///< elements go to other places: inputs and result share parameters
};
llvm::StringRef unitName(UnitKind kind);

struct Unit {
  UnitKind kind;
  mlir::Operation *root = nullptr;          ///< the op that stands for it in messages
  mlir::Value out;                          ///< its result
  llvm::SmallVector<mlir::Value, 2> inputs; ///< floats that it takes quantized; constants among them too
  mlir::Value weights;                      ///< of Conv, Dot, Scale
  std::vector<double> bias;                 ///< one number, or one for each channel; none if there is no bias
  double low = -INFINITY, high = INFINITY;  ///< clamp of the result
  llvm::SmallVector<int64_t> axes;          ///< that Mean reduces
  int64_t count = 1;                        ///< elements of a mean or of an average's window
  std::optional<BilinearResize> resize;     ///< of Resize
  llvm::SmallVector<mlir::Operation *> ops; ///< all of it, in order
  mlir::Operation *last() const { return out.getDefiningOp(); }
  bool hasWeights() const { return kind == UnitKind::Conv || kind == UnitKind::Dot || kind == UnitKind::Scale; }
  bool isProduct() const { return kind == UnitKind::Conv || kind == UnitKind::Dot || kind == UnitKind::Matmul; }
};

/// The units of a function, blocks of its loops and branches included, in program order. Each op is in at most one, but for
/// ops of tables, which several may compute.
std::vector<Unit> findUnits(mlir::func::FuncOp function);
/// Those with the mark hlo.quantize.
std::vector<Unit> chosenUnits(mlir::func::FuncOp function);
/// Multiply-adds of a product; sizes known at run time only count as 1.
int64_t multiplyAdds(const Unit &unit);
/// The range that a unit's kind fixes for its result: softmax and logistic [0, 1), tanh [-1, 1).
std::optional<std::pair<double, double>> fixedRange(const Unit &unit);
/// The function of a table at points, by the evaluator.
mlir::FailureOr<std::vector<float>> evaluateTable(const Unit &unit, llvm::ArrayRef<float> points);

} // namespace lathe::quantize

#endif
