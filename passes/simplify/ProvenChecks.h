//===- ProvenChecks.h - run-time checks that a loop's condition makes true --===//

#ifndef LATHE_PASSES_SIMPLIFY_PROVENCHECKS_H
#define LATHE_PASSES_SIMPLIFY_PROVENCHECKS_H

#include "dialects/hlo/Hlo.h"

namespace lathe {

/// Erases checks 0 <= i < n of a loop's counter that its start, step and condition imply; returns how many.
unsigned dropProvenChecks(mlir::Operation *root);

} // namespace lathe

#endif
