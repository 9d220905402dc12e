// What branches and loops over functions share.
#ifndef LATHE_PASSES_LEGALIZE_CONTROL_H
#define LATHE_PASSES_LEGALIZE_CONTROL_H

#include "passes/legalize/Lists.h"

namespace lathe::legalize {

using ControlState = llvm::MapVector<llvm::StringRef, GraphValue>;

/// Whether two values of any kind are the same.
bool sameValue(LegalizeContext &ctx, const GraphValue &a, const GraphValue &b);

/// A condition as TensorFlow takes it: numbers are true if not zero, tensors of other shapes if they have elements.
mlir::Value conditionOf(NodeContext &c, mlir::Value v);

mlir::Operation *createWithRegions(NodeContext &c, llvm::StringRef op, mlir::ValueRange operands, mlir::TypeRange types,
                                   unsigned regions);

/// While and StatelessWhile.
mlir::LogicalResult lowerWhile(NodeContext &c);

} // namespace lathe::legalize

#endif
