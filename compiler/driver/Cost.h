// The work of kernels: multiply-adds counted as two operations, functions as those of their code, bytes as operands read plus
// results written once.
#ifndef LATHE_COMPILER_DRIVER_COST_H
#define LATHE_COMPILER_DRIVER_COST_H

#include "mlir/IR/BuiltinOps.h"

#include <vector>

namespace lathe {

struct Cost {
  int64_t flops = 0, bytes = 0;
};

struct OpCost {
  mlir::Operation *op;
  Cost cost;
};

/// Cost of one kernel op or hlo op; run-time sizes count as 1.
Cost operationCost(mlir::Operation *op);
/// Every kernel and unfused hlo op of the module's functions in order, loop bodies once.
std::vector<OpCost> moduleCosts(mlir::ModuleOp module);
/// Sets `kernel.cost` = [operations, bytes of constants read, other bytes] on every op of moduleCosts whose sizes are all
/// known: what profiles tell of each call.
void annotateCosts(mlir::ModuleOp module);
/// Elements of all constants.
int64_t parameterCount(mlir::ModuleOp module);

} // namespace lathe

#endif
