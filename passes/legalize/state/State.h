// Reading and writing the variable that an input of a node names; for the families that update variables.
#ifndef LATHE_PASSES_LEGALIZE_STATE_STATE_H
#define LATHE_PASSES_LEGALIZE_STATE_STATE_H

#include "passes/legalize/NodeContext.h"

namespace lathe::legalize {

/// The variable's name of a handle or reference input, or an error.
FailureOr<StringRef> variableInput(NodeContext &c, unsigned i);
/// Its current value; null after an error.
Value readInput(NodeContext &c, unsigned i);
/// Its new value (a null value is a failure that has been reported). The shape must be the variable's unless
/// `checkShape` is false.
LogicalResult writeInput(NodeContext &c, unsigned i, Value value, bool checkShape = true);
/// Result 0 of ops on reference variables: the reference itself. Nothing for ops on resources, which have no result.
LogicalResult returnReference(NodeContext &c, unsigned i);

/// Reads and writes of parts of variables (GraphToHloResource.cpp).
void registerResource(HandlerTable &);

} // namespace lathe::legalize

#endif
