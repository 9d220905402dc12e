// Operators as they stand in a file, for files that are written from it (graph/tflite/AsIs.h).
#ifndef LATHE_COMPILER_FRONTEND_TFLITE_KEEPOPERATORS_H
#define LATHE_COMPILER_FRONTEND_TFLITE_KEEPOPERATORS_H

#include "compiler/frontend/tflite/OpContext.h"

namespace lathe::tflite {

/// Whether an operator reads or makes integers with scales and all of it can be written again. Sizes, variables and control flow
/// are hlo in any case.
bool canKeep(const OpContext &c);
/// Whether it keeps a state in one of its inputs, whose translation would make a variable of it.
bool keepsState(const OpContext &c);
/// Replaces the results, which say the sizes, by those of the operator itself. Of one with a state the inputs say them.
LogicalResult keepOperator(OpContext &c);

} // namespace lathe::tflite

#endif
