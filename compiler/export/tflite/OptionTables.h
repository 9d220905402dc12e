// The options of operators as the format's tables.
#ifndef LATHE_COMPILER_EXPORT_TFLITE_OPTIONTABLES_H
#define LATHE_COMPILER_EXPORT_TFLITE_OPTIONTABLES_H

#include "compiler/export/tflite/ModelWriter.h"
#include "compiler/export/tflite/Operators.h"

namespace lathe::tflwrite {

/// The same for one that a file had (tfl.AS_IS).
void describeAsIs(mlir::Operation *op, ModelWriter &writer, ModelWriter::OperatorDesc &desc);

/// Fills in code, version and options of an operator in hlo (Operators.h); false for a name that the format does not have.
bool describeOperator(mlir::Operation *op, ModelWriter &writer, ModelWriter::OperatorDesc &desc);

} // namespace lathe::tflwrite

#endif
