// What a kernel's generator decides by estimates, as something that can be said from outside: a tuning file names the
// plan of a kernel, and generators take from it what it says and estimate the rest.
#ifndef LATHE_PASSES_CODEGEN_PLAN_H
#define LATHE_PASSES_CODEGEN_PLAN_H

#include "mlir/IR/BuiltinOps.h"

#include <map>
#include <optional>
#include <string>

namespace lathe::codegen {

/// How one product or convolution is computed. What is absent is estimated.
struct KernelPlan {
  std::optional<int64_t> vecs;     ///< vectors of a register tile: the width of a panel
  std::optional<int64_t> rows;     ///< most rows of a register tile
  std::optional<int64_t> block;    ///< tiles of rows, rows of an image, or Winograd tiles in a block; for one thread only
  std::optional<int64_t> depth;    ///< steps of a long sum done at once; 0: all
  std::optional<int64_t> winograd; ///< 2, 3, 4 or 6: the size of tiles; 0: direct
  std::optional<int64_t> perUnit;  ///< Winograd: panels of one unit of work

  bool isEmpty() const { return !vecs && !rows && !block && !depth && !winograd && !perUnit; }
  bool operator==(const KernelPlan &o) const;
  /// Names and values of what it says, in a fixed order.
  mlir::SmallVector<std::pair<llvm::StringRef, int64_t>> items() const;
  /// Sets an item by its name; what is wrong with it, or "".
  std::string set(llvm::StringRef name, int64_t value);

  /// The plan an op carries (attribute `kernel.plan`).
  static KernelPlan of(mlir::Operation *op);
  void attach(mlir::Operation *op) const;
};

/// Plans by the signature of their kernel.
using PlanTable = std::map<std::string, KernelPlan>;

/// Whether plans apply to the op: a product or convolution of static f32 shapes that is not packed yet.
bool isTunable(mlir::Operation *op);
/// Steps of the sum of one result of such an op.
int64_t sumSteps(mlir::Operation *op);
/// What the op computes, as a short readable text and a hash of all of it: equal for ops that share a kernel.
std::string planSignature(mlir::Operation *op);
/// Gives each tunable op of the module the plan that the table has for it; returns how many have one.
unsigned attachPlans(mlir::ModuleOp module, const PlanTable &plans);

} // namespace lathe::codegen

#endif
