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

/// Numbers that differ from element to element: value * 2^(-31 - shift), both i32.
struct Factors {
  Value value, shift;
};
/// 1 / sqrt(x) of i32; 1 or less counts as 1.
Factors inverseSqrt(OpContext &c, Value x);
/// The high half of the doubled product of 32-bit numbers, rounded; numbers are held in i64.
Value highProduct32(OpContext &c, Value x, Value y);
/// x times 2^bits, no further than i32 goes; of i64.
Value saturatedShift32(OpContext &c, Value x, int bits);
/// 1 / (1 + x) of 31 bits behind the point, x in [0, 1]; of i64.
Value overOnePlus32(OpContext &c, Value x);
/// 1 / x of positive i32.
Factors reciprocal(OpContext &c, Value x);
/// x (i32) times the factors, which are broadcast, rounded twice as multiplyBy() of one factor does; i32. What a shift to the left would
/// be is taken before the product.
Value multiplyBy(OpContext &c, Value x, const Factors &factors);

} // namespace lathe::tflite

#endif
