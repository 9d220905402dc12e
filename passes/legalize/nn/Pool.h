// Windows of pooling, shared by the ops and their gradients.
#ifndef LATHE_PASSES_LEGALIZE_NN_POOL_H
#define LATHE_PASSES_LEGALIZE_NN_POOL_H

#include "passes/legalize/nn/Window.h"

namespace lathe::legalize {

struct Pool {
  DataFormat format;
  SmallVector<WindowDim> dims;

  bool padded() const {
    return llvm::any_of(dims, [](const WindowDim &d) { return d.low || d.high || d.openLow; });
  }
};

/// What reduce_window and its relatives take.
struct PoolShape {
  SmallVector<int64_t> window;
  hlo::ReduceWindow config;
};

/// The windows over something of the sizes `input`: of attributes, or of two inputs from `firstSizeInput` on (-1: none). Padding may depend
/// on open sizes where `mayBeOpen`, and is then to be made by padOpen.
FailureOr<Pool> poolOf(NodeContext &c, const Dims &input, int64_t firstSizeInput, bool mayBeOpen = false);
PoolShape shapeOf(const Pool &pool, int64_t rank);
/// The mean of each window over what of it lies in the input: summed up in the type of `x`, divided in `type` (null: that of `x`).
Value averageWindows(NodeContext &c, const Pool &pool, Value x, Type type = {});

/// MaxPoolWithArgmax, its gradients, and the second derivatives of max pooling.
void registerPoolArgmax(HandlerTable &);

} // namespace lathe::legalize

#endif
