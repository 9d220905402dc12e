// What branches and loops share, over functions of a graph and over subgraphs of other formats.
#ifndef LATHE_PASSES_LEGALIZE_CONTROL_CONTROL_H
#define LATHE_PASSES_LEGALIZE_CONTROL_CONTROL_H

#include "passes/legalize/control/Lists.h"

#include <functional>

namespace lathe::legalize {

using ControlState = llvm::MapVector<llvm::StringRef, GraphValue>;

/// Whether two values of any kind are the same.
bool sameValue(LegalizeContext &ctx, const GraphValue &a, const GraphValue &b);

/// A condition as TensorFlow takes it: numbers are true if not zero, tensors of other shapes if they have elements.
mlir::Value conditionOf(Emitter &c, mlir::Value v);

mlir::Operation *createWithRegions(Emitter &c, llvm::StringRef op, mlir::ValueRange operands, mlir::TypeRange types,
                                   unsigned regions);

/// The two sides of a loop, each translated at the builder's place, maybe several times.
struct LoopParts {
  using Part = std::function<mlir::LogicalResult(llvm::ArrayRef<GraphValue> args, GraphValues &results)>;
  /// One result, a scalar; as many results as arguments.
  Part condition, body;
  /// Results of the body that are its arguments: such values are not carried.
  llvm::SmallVector<bool> invariant;
};

/// hlo.while over values of any kind, with the variables and arrays that the body writes. An error for values whose type,
/// shape or kind changes from one iteration to the next, and for lists that grow without bound.
mlir::FailureOr<GraphValues> makeLoop(Emitter &c, LegalizeContext &ctx, llvm::ArrayRef<GraphValue> values,
                                      const LoopParts &parts);

/// While and StatelessWhile.
mlir::LogicalResult lowerWhile(NodeContext &c);

} // namespace lathe::legalize

#endif
