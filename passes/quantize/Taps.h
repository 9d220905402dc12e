// More results of a function: what calibration sees of its values.
#ifndef LATHE_PASSES_QUANTIZE_TAPS_H
#define LATHE_PASSES_QUANTIZE_TAPS_H

#include "passes/quantize/Units.h"

namespace lathe::quantize {

/// Where the range of a value is among the results of a tapped function, -1 where it has none (constants).
struct UnitTaps {
  llvm::SmallVector<int> inputs; ///< index of the lowest; the highest follows
  int output = -1;
};

/// Adds the lowest and highest element of every value that chosen units read or make as results of the function (f32 scalars);
/// of values in loops over all turns. Neutral elements (+-infinity) where nothing was computed. One entry a unit, as in
/// chosenUnits.
std::vector<UnitTaps> addRangeTaps(mlir::func::FuncOp function);

/// Adds values of the top block as they are; the index of the first among the results.
int addValueTaps(mlir::func::FuncOp function, llvm::ArrayRef<mlir::Value> values);

} // namespace lathe::quantize

#endif
