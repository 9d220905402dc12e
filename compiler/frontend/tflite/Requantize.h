// Integer arithmetic of quantized operators, bit for bit as the reference kernels round: a real factor is a 31-bit number and a
// power of two, the product is taken in 64 bits and rounded twice.
#ifndef LATHE_COMPILER_FRONTEND_TFLITE_REQUANTIZE_H
#define LATHE_COMPILER_FRONTEND_TFLITE_REQUANTIZE_H

#include "compiler/frontend/tflite/OpContext.h"

namespace lathe::tflite {

/// value * 2^(shift - 31), value in [2^30, 2^31) or 0.
struct Multiplier {
  int32_t value = 0;
  int shift = 0;
};

/// The nearest multiplier of a factor that is not negative; 0 for factors below 2^-32.
Multiplier multiplierOf(double factor);

/// x (i32) times the factor, i32: the high half of the doubled product rounded to nearest, then the right shift rounded to
/// nearest, ties away from zero.
Value multiplyBy(OpContext &c, Value x, Multiplier factor);
/// The same with a factor for each index of `axis`.
Value multiplyByEach(OpContext &c, Value x, ArrayRef<Multiplier> factors, int64_t axis);
/// x (i64) times the factors (one, or one for each index of `axis`), i32: the 16-bit kernels' way, with a factor of 15 bits
/// rounded once.
Value multiplyWide(OpContext &c, Value x, ArrayRef<Multiplier> factors, int64_t axis);
/// x / 2^exponent rounded to nearest, ties away from zero; of any integer type.
Value roundingShift(OpContext &c, Value x, int exponent);

/// Lowest and highest element of a type.
std::pair<int64_t, int64_t> rangeOf(tfl::TensorType type);
/// The range that a fused activation leaves of a quantized output.
FailureOr<std::pair<int64_t, int64_t>> activationRange(OpContext &c, const TensorInfo &output, Activation activation);
/// x + zeroPoint clamped to the range, in the element type.
Value finish(OpContext &c, Value x, int64_t zeroPoint, std::pair<int64_t, int64_t> range, Type element);

/// x as i32 (or `type`) plus a number.
Value widen(OpContext &c, Value x, int64_t plus, Type type = {});
/// x, an integer of 8 bits, replaced by the entry of a table of 256 that starts with the type's lowest number.
Value lookUp(OpContext &c, Value x, ArrayRef<int64_t> table, Type element);
/// The table of a function on real numbers between two quantized types of 8 bits, rounded as the reference kernels do.
FailureOr<SmallVector<int64_t>> tableOf(OpContext &c, llvm::function_ref<float(float)> function);

} // namespace lathe::tflite

#endif
