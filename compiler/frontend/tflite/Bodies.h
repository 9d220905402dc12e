// Subgraphs that compute single numbers, as the bodies of hlo ops that have one: reductions, windows, scatters, sorts.
#ifndef LATHE_COMPILER_FRONTEND_TFLITE_BODIES_H
#define LATHE_COMPILER_FRONTEND_TFLITE_BODIES_H

#include "compiler/frontend/tflite/OpContext.h"

namespace lathe::tflite {

/// Makes the body of an hlo op from a subgraph: to be handed to the op's builder. What the subgraph may contain is checked: only
/// constants and ops of single elements on scalars.
class Body {
public:
  /// `results`: the element types that the subgraph must return.
  Body(OpContext &c, int64_t subgraph, ArrayRef<Type> results) : c(c), subgraph(subgraph), results(results) {}
  /// What the subgraph returns for arguments; zeros after an error, which has been reported.
  SmallVector<Value> operator()(mlir::OpBuilder &, mlir::Location, ValueRange arguments);
  /// Whether all went well.
  bool ok() const { return fine; }

private:
  LogicalResult run(ValueRange arguments, SmallVectorImpl<Value> &values);

  OpContext &c;
  int64_t subgraph;
  SmallVector<Type> results;
  bool fine = true;
};

} // namespace lathe::tflite

#endif
