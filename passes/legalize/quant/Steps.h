// Integers of quantised tensors, and the numbers that they stand for in a range of floats: pieces that the families share. Each is
// written as one of TensorFlow's functions rounds, since their results are compared bit for bit.
#ifndef LATHE_PASSES_LEGALIZE_QUANT_STEPS_H
#define LATHE_PASSES_LEGALIZE_QUANT_STEPS_H

#include "passes/legalize/NodeContext.h"

namespace lathe::legalize {

/// The integers of a carrier type.
struct Steps {
  Type type;
  int64_t bits = 0;
  bool isSigned = false;
  double lowest = 0, highest = 0;

  static FailureOr<Steps> of(NodeContext &c, Type type);
  double range() const { return highest - lowest; }
  double halfRange() const { return isSigned ? (range() + 1) / 2 : 0; }
  double count() const { return range() + 1; }
};

/// The element type of `of`'s integers by constant scales and zero points, one or one for each channel along `axis`; null where there is
/// none that gives the bits of TensorFlow's 32-bit differences, or where the number of channels is known at run time only.
Type uniformElement(Type integer, ArrayRef<float> scales, ArrayRef<int32_t> zeroPoints, int64_t axis, RankedTensorType of, int64_t low,
                    int64_t high);

/// Floats to integers; 32-bit ones that do not fit become the lowest, as x86's conversion has it.
Value toSteps(NodeContext &c, Value v, const Steps &s);

/// Two scalars, f32: what the lowest and the highest integer stand for.
struct StepRange {
  Value low, high;
};

/// Inputs `i` and `i + 1` as a range; tensors of one element count as scalars, as in TensorFlow's older kernels.
FailureOr<StepRange> rangeInput(NodeContext &c, unsigned i);
/// Sets results 1 and 2.
LogicalResult setRange(NodeContext &c, const StepRange &range);

/// An operand with its range.
struct Quantised {
  Value q;
  StepRange range;
  Steps steps;
};
/// Input `i`, its range in inputs `rangeAt` and the one behind it.
FailureOr<Quantised> quantisedInput(NodeContext &c, unsigned i, unsigned rangeAt);
/// The integer for zero (i32), which need not be one of its type.
Value zeroOf(NodeContext &c, const Quantised &x);
/// Its integers as i32, the one for zero being 0.
Value aroundZero(NodeContext &c, const Quantised &x);

/// The number that integers stand for, computed in f64 and rounded to f32 (QuantizedToFloat).
Value numberOf(NodeContext &c, Value q, const StepRange &range, const Steps &s);
/// The integer for a number (f32), computed in f64, not clamped; whole numbers in f64 (FloatToQuantizedUnclamped).
Value stepOf(NodeContext &c, Value x, const StepRange &range, const Steps &s);
/// The same clamped, in the type of the steps (FloatToQuantized).
Value clampedStepOf(NodeContext &c, Value x, const StepRange &range, const Steps &s);

/// The two directions in f32 (DEQUANTIZE_WITH_EIGEN, QUANTIZE_WITH_EIGEN).
Value numberInFloat(NodeContext &c, Value q, const StepRange &range, const Steps &s);
Value stepInFloat(NodeContext &c, Value x, const StepRange &range, const Steps &s);

/// 32-bit integers in a range as unsigned bytes in another one, by fixed-point arithmetic (RequantizeManyInNewRange).
Value requantizeToBytes(NodeContext &c, Value q, const StepRange &from, const StepRange &to);

/// The range of sums of products of integers in two ranges: QuantizationRangeForMultiplication.
StepRange rangeOfProducts(NodeContext &c, const StepRange &x, const Steps &xs, const StepRange &y, const Steps &ys, const Steps &out);

} // namespace lathe::legalize

#endif
