// Integer arithmetic of quantized operators, bit for bit as the reference kernels round: a real factor is a 31-bit number and a
// power of two, the product is taken in 64 bits and rounded twice. The frontend of quantized files and the quantizer emit the
// same forms from here, so that a kernel that is fast for one is fast for the other.
#ifndef LATHE_PASSES_QUANTIZE_ARITHMETIC_H
#define LATHE_PASSES_QUANTIZE_ARITHMETIC_H

#include "passes/legalize/Emitter.h"

namespace lathe::quantize {

using legalize::Emitter;
using mlir::ArrayRef;
using mlir::SmallVector;
using mlir::Type;
using mlir::Value;

/// real = scale * (element - zeroPoint).
struct Params {
  float scale = 1;
  int64_t zeroPoint = 0;
  bool operator==(const Params &o) const { return scale == o.scale && zeroPoint == o.zeroPoint; }
};
/// Lowest and highest element.
using Range = std::pair<int64_t, int64_t>;

/// value * 2^(shift - 31), value in [2^30, 2^31) or 0.
struct Multiplier {
  int32_t value = 0;
  int shift = 0;
};

/// The nearest multiplier of a factor that is not negative; 0 for factors below 2^-32.
Multiplier multiplierOf(double factor);

/// x (i32) times the factor, i32: the high half of the doubled product rounded to nearest, then the right shift rounded to
/// nearest, ties away from zero.
Value multiplyBy(Emitter &e, Value x, Multiplier factor);
/// The same with a factor for each index of `axis`.
Value multiplyByEach(Emitter &e, Value x, ArrayRef<Multiplier> factors, int64_t axis);
/// x (i64) times the factors (one, or one for each index of `axis`), i32: the 16-bit kernels' way, with a factor of 15 bits
/// rounded once. Null and an error for factors of 2^14 and more.
Value multiplyWide(Emitter &e, Value x, ArrayRef<Multiplier> factors, int64_t axis);
/// x / 2^exponent rounded to nearest, ties away from zero; of any integer type.
Value roundingShift(Emitter &e, Value x, int exponent);

/// Sums (i32 or i64) of what is one for all or for each index of `axis` of the output's step, as quantized numbers: rounded as the reference kernels
/// do, or with HloContext::fastQuantizedMath in f32 (i32 sums alone), at most one step off.
Value requantize(Emitter &e, Value sums, ArrayRef<Multiplier> factors, int64_t axis, int64_t zeroPoint, Range range, Type element);

/// How reference kernels round: what becomes of a sum with factor i, zero point included, and the ops that do that to all sums (i32).
/// `ties`: by how much, for each factor, halves lie closer to 0; none: not at all.
struct Rounding {
  llvm::function_ref<int64_t(size_t i, int32_t sum)> of;
  llvm::function_ref<Value()> ops;
  ArrayRef<double> ties;
};
/// Sums (i32) times factors plus the zero point, rounded as that says, i32; the same once it is clamped to the range. In f32 where numbers
/// are found that give the same for all sums (FloatSteps.h), else where that is sure to give the same: everywhere but close to halves. By
/// its ops where f32 is no shorter.
Value roundInFloat(Emitter &e, Value sums, const Rounding &exact, ArrayRef<double> factors, int64_t axis, int64_t zeroPoint, Range range,
                   Type element);
/// Whether results of this type are rounded once, in f32: those of 16 bits, with their i64 sums, need more digits than that has.
bool isFast(Emitter &e, Type element);
/// Whole numbers in floats as i32; they are known to fit.
Value convertInRange(Emitter &e, Value x);
/// x + zeroPoint clamped to the range, in the element type.
Value finish(Emitter &e, Value x, int64_t zeroPoint, Range range, Type element);
/// x as i32 (or `type`) plus a number.
Value widen(Emitter &e, Value x, int64_t plus, Type type = {});
/// x, an integer of 8 bits, replaced by the entry of a table of 256 that starts with the type's lowest number.
Value lookUp(Emitter &e, Value x, ArrayRef<int64_t> table, Type element);

/// x + y (or x - y) of two quantized values: both sides at twice the larger scale, with `left` bits more (20 for elements of 8
/// bits, 15 for those of 16).
Value sum(Emitter &e, Value x, Params xp, Value y, Params yp, Params out, Range range, int left, bool subtract, Type element);
/// x * y of two quantized values.
Value product(Emitter &e, Value x, Params xp, Value y, Params yp, Params out, Range range, Type element);
/// A quantized value (8 or 16 bits) with other parameters.
Value rescale(Emitter &e, Value x, Params in, Params out, Range range, Type element);
/// The mean of `count` elements from their sum (i32, of elements as they are), with other parameters.
Value mean(Emitter &e, Value sums, int64_t count, Params in, Params out, Range range, Type element);
/// sums / counts (both i32, counts from 1 to `most`) rounded to nearest, ties away from zero, clamped.
Value average(Emitter &e, Value sums, Value counts, int64_t most, Range range, Type element);
/// Softmax of 8-bit elements over the last dimension: a table of exp over the distance to the largest, sums and quotients in
/// float. `beta` multiplies the real input.
Value softmax8(Emitter &e, Value x, float scale, float beta, Params out, Range range, Type element);

} // namespace lathe::quantize

#endif
