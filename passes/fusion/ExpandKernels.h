// Kernel ops back into the hlo ops they stand for, so that the reference evaluator can run a fused module.
#ifndef LATHE_PASSES_FUSION_EXPANDKERNELS_H
#define LATHE_PASSES_FUSION_EXPANDKERNELS_H

#include "mlir/IR/BuiltinOps.h"

namespace lathe {

/// Replaces every kernel op of the module (before weights are packed) by hlo ops; values keep their types. Fails, with a
/// diagnostic, on packed operands.
mlir::LogicalResult expandKernels(mlir::ModuleOp module);

/// The same for one op; returns the values that replaced its results.
mlir::FailureOr<llvm::SmallVector<mlir::Value>> expandKernel(mlir::Operation *op);

} // namespace lathe

#endif
