// Integers of the program as sizes: followed through the hlo that makes them, and where the run chooses them, bounded by it.
#ifndef LATHE_PASSES_LEGALIZE_SIZEREADER_H
#define LATHE_PASSES_LEGALIZE_SIZEREADER_H

#include "passes/legalize/Emitter.h"

#include <optional>

namespace lathe::legalize {

class NodeContext;

/// The elements of an integer tensor as sizes, row-major. What is not an expression of sizes becomes a data symbol if something bounds it:
/// the larger one of two sizes, one that a condition chooses, a number from the caller that is at most a size. Nothing where an element
/// has no bound.
std::optional<Dims> readSizes(HloContext &ctx, mlir::Location loc, StringRef nodeName, Value v);

/// Input i in the same way, without an error where it has no sizes.
std::optional<Dims> boundedSizes(NodeContext &c, unsigned i);

/// The smaller one of two sizes.
AffineExpr smallerSize(Emitter &e, AffineExpr a, AffineExpr b);

/// A size that neither of two sizes exceeds.
AffineExpr sizeAtLeast(HloContext &ctx, AffineExpr a, AffineExpr b);

} // namespace lathe::legalize

#endif
