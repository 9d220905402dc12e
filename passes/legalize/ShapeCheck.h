// What handlers make of a node against what the op's shape function says of it.
#ifndef LATHE_PASSES_LEGALIZE_SHAPECHECK_H
#define LATHE_PASSES_LEGALIZE_SHAPECHECK_H

#include "passes/legalize/LegalizeContext.h"

namespace lathe::legalize {

/// Asks the function of ops/Shapes.h about a node that was translated. An error of the node where it knows another rank or size of a
/// result than the handler gave it.
mlir::LogicalResult verifyShapes(LegalizeContext &context, graph::NodeOp node);

} // namespace lathe::legalize

#endif
