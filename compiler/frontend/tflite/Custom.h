// Custom operators that have a compiled form, by their names.
#ifndef LATHE_COMPILER_FRONTEND_TFLITE_CUSTOM_H
#define LATHE_COMPILER_FRONTEND_TFLITE_CUSTOM_H

#include "compiler/frontend/tflite/OpContext.h"

namespace lathe::tflite {

bool isKnownCustom(StringRef name);
LogicalResult translateCustom(OpContext &c);

} // namespace lathe::tflite

#endif
