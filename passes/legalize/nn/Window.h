// Windows of convolutions and pooling as TensorFlow's attributes describe them.
#ifndef LATHE_PASSES_LEGALIZE_NN_WINDOW_H
#define LATHE_PASSES_LEGALIZE_NN_WINDOW_H

#include "passes/legalize/NodeContext.h"

namespace lathe::legalize {

/// Where batch, channels and space are in a data format such as NHWC, NCHW, NDHWC.
struct DataFormat {
  int64_t batch = 0, feature = 0;
  SmallVector<int64_t> spatial;

  static FailureOr<DataFormat> parse(Emitter &c, StringRef format, int64_t rank);
  int64_t rank() const { return spatial.size() + 2; }
};

/// One spatial dimension of a window.
struct WindowDim {
  AffineExpr input;
  int64_t size = 1, stride = 1, dilation = 1, low = 0, high = 0;
  /// Padding that depends on an open size, on top of `low` and `high`; null where there is none.
  AffineExpr openLow, openHigh;
  int64_t effective() const { return (size - 1) * dilation + 1; }
};

/// The padding of each dimension from the attribute `padding` (SAME, VALID or EXPLICIT with `explicit_paddings`).
/// `dims` has sizes, strides and dilations filled in. Padding that depends on an open size becomes openLow and openHigh where `mayBeOpen`,
/// which padOpen makes of it, else it is an error.
LogicalResult computePadding(Emitter &c, const DataFormat &format, llvm::MutableArrayRef<WindowDim> dims,
                             StringRef padding, ArrayRef<int64_t> explicitPaddings, bool mayBeOpen = false);
/// `x` with the open padding of its spatial dimensions around it, made of the scalar `with`.
Value padOpen(NodeContext &c, Value x, Value with, ArrayRef<int64_t> spatial, ArrayRef<WindowDim> dims);

/// Checks sizes, strides and dilations for what files could hold.
LogicalResult checkWindow(Emitter &c, ArrayRef<WindowDim> dims);

} // namespace lathe::legalize

#endif
