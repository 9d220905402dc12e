// Windows of reduce_window that reach all elements before each: running sums and the like.
#ifndef LATHE_DIALECTS_HLO_RUNNING_H
#define LATHE_DIALECTS_HLO_RUNNING_H

#include "dialects/hlo/Hlo.h"

namespace lathe::hlo {

/// The window of a running reduction over a dimension of run-time size: longer than any.
constexpr int64_t kUnboundedWindow = int64_t(1) << 40;

struct RunningWindow {
  int64_t dim;
  bool reverse, exclusive; ///< from the end on; without the element itself
};

/// The running reduction that the windows of `op` over these sizes make, whose start is taken to be the
/// identity.
std::optional<RunningWindow> runningWindow(ReduceWindowOp op, llvm::ArrayRef<mlir::AffineExpr> dims);
std::optional<RunningWindow> runningWindow(ReduceWindowOp op);

} // namespace lathe::hlo

#endif // LATHE_DIALECTS_HLO_RUNNING_H
