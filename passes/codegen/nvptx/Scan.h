// What nvptx-split-scans and the kernel of running reductions (Scan.cpp) have in common.
#ifndef LATHE_PASSES_CODEGEN_NVPTX_SCAN_H
#define LATHE_PASSES_CODEGEN_NVPTX_SCAN_H

#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Running.h"

namespace lathe::nvptx {

/// The lines of a running reduction: outer x length x inner elements.
struct ScannedSpace {
  explicit ScannedSpace(hlo::ReduceWindowOp op);

  bool isRunning = false; ///< else nothing below is known
  hlo::RunningWindow window{};
  mlir::AffineExpr outer, length, inner;
};

/// Threads that go over a line together: a warp, a block of more, or one alone.
int64_t scanTeam(const ScannedSpace &space);

} // namespace lathe::nvptx

#endif
