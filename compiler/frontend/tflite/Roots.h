// Roots and normalized vectors, and tables of functions between two quantized types of 16 bits by the scales of the operator.
#ifndef LATHE_COMPILER_FRONTEND_TFLITE_ROOTS_H
#define LATHE_COMPILER_FRONTEND_TFLITE_ROOTS_H

#include "compiler/frontend/tflite/OpTable.h"

namespace lathe::tflite {

/// The 513 entries for lookUp16(), in the float arithmetic of the reference kernels.
FailureOr<SmallVector<int64_t>> tableOf16(OpContext &c, llvm::function_ref<float(float)> function);

/// Called by registerNorm().
void registerRoots(OpTable &t);

} // namespace lathe::tflite

#endif
