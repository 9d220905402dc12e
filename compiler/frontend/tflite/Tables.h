// Functions of 16-bit quantized numbers by tables of 513 entries with interpolation between them.
#ifndef LATHE_COMPILER_FRONTEND_TFLITE_TABLES_H
#define LATHE_COMPILER_FRONTEND_TFLITE_TABLES_H

#include "compiler/frontend/tflite/OpContext.h"

namespace lathe::tflite {

/// The function at 513 places from `low` to `high`, times 2^15, each moved by half the error of interpolation after it.
SmallVector<int64_t> table16(llvm::function_ref<double(double)> function, double low, double high);
/// The function of an i32 value in [-32768, 32767], i32.
Value lookUp16(OpContext &c, Value x, ArrayRef<int64_t> table);
/// Entries of a table of i32 at i32 indices.
Value entries(OpContext &c, ArrayRef<int64_t> table, Value index);

} // namespace lathe::tflite

#endif
