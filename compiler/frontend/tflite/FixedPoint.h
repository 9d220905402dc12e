// Functions of fixed-point numbers as the reference kernels of recurrent and normalizing operators compute them. Numbers of 16 bits are
// held in i32; "n integer bits" leaves 15 - n behind the point.
#ifndef LATHE_COMPILER_FRONTEND_TFLITE_FIXEDPOINT_H
#define LATHE_COMPILER_FRONTEND_TFLITE_FIXEDPOINT_H

#include "compiler/frontend/tflite/OpContext.h"

namespace lathe::tflite {

/// The high half of the doubled product of 16-bit numbers, rounded and saturated.
Value highProduct16(OpContext &c, Value x, Value y);
Value saturate16(OpContext &c, Value x);

/// 1 / (1 + exp(-x)) of a number with 3 integer bits, as one with none.
Value fixedLogistic(OpContext &c, Value x);
/// tanh of a number with 0 to 6 integer bits, as one with none.
Value fixedTanh(OpContext &c, Value x, int integerBits);

/// 1 / sqrt(x) as value * 2^(-31 - shift), both i32 of the shape of x (i32); 1 or less counts as 1.
struct InverseSqrt {
  Value value, shift;
};
InverseSqrt inverseSqrt(OpContext &c, Value x);
/// x (i32) times factor.value * 2^(-31 - factor.shift), which are broadcast, rounded twice as multiplyBy() does; i32.
Value multiplyBy(OpContext &c, Value x, const InverseSqrt &factor);

} // namespace lathe::tflite

#endif
