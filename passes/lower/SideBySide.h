// Parts of the main code that may run at the same time.
//
// Words: a *group* is a run of ops of one block, its *sides* lie one after the other in it and read nothing
// of each other; what is not in any side stays before or behind the group.
#ifndef LATHE_PASSES_LOWER_SIDEBYSIDE_H
#define LATHE_PASSES_LOWER_SIDEBYSIDE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/lower/KernelSet.h"
#include <optional>

namespace lathe::lower {

/// Where an op runs, its attribute `kernel.side`; groups are numbered in each function.
struct Side {
  int64_t group, number;
  bool operator==(const Side &o) const { return group == o.group && number == o.number; }
};
std::optional<Side> sideOf(mlir::Operation *op);
/// That of the op or of a loop or branch around it.
std::optional<Side> enclosingSide(mlir::Operation *op);

struct SideStatistics {
  int64_t groups = 0, sides = 0;
  int64_t refusedAlone = 0;     ///< nothing of some length beside the op
  int64_t refusedNotFaster = 0; ///< the sides' own threads, or their unequal lengths, leave nothing to gain
};

/// Sets `kernel.side` where parts of the function are faster side by side, and moves ops accordingly. All
/// kernels are in the set. Attributes of an earlier call are removed first.
SideStatistics placeSideBySide(mlir::func::FuncOp func, KernelSet &kernels, const LowerOptions &options);

} // namespace lathe::lower

#endif
