// What select_and_scatter selects.
#ifndef LATHE_PASSES_CODEGEN_LIBRARY_SELECTED_H
#define LATHE_PASSES_CODEGEN_LIBRARY_SELECTED_H

#include "dialects/hlo/Hlo.h"
#include "passes/codegen/element/KernelBuilder.h"

namespace lathe::codegen {

/// Windows of a select_and_scatter along each dimension.
struct SelectedWindows {
  explicit SelectedWindows(hlo::SelectAndScatterOp s);
  mlir::SmallVector<int64_t> size, stride, low;
};

/// The place in the operand, as one number, of the element that the window at `index` selects; -1 where it lies outside. `init`: the initial
/// value; `inSizes`: of the operand.
mlir::FailureOr<mlir::Value> emitSelected(KernelBuilder &b, hlo::SelectAndScatterOp s, const SelectedWindows &windows, mlir::Value init,
                                          mlir::ValueRange inSizes, mlir::ValueRange index);

} // namespace lathe::codegen

#endif
