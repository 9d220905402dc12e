// Padding of windows as the format names it.
#ifndef LATHE_COMPILER_EXPORT_TFLITE_WINDOW_H
#define LATHE_COMPILER_EXPORT_TFLITE_WINDOW_H

#include "dialects/hlo/Shape.h"

namespace lathe::tflwrite {

/// A window along one dimension.
struct WindowSide {
  mlir::AffineExpr in, out;
  int64_t size, stride, dilation, low, high;
};

/// "VALID" or "SAME" where that gives the same elements at all sizes that the dimensions may have; else empty.
llvm::StringRef paddingOf(llvm::ArrayRef<WindowSide> sides);

} // namespace lathe::tflwrite

#endif
